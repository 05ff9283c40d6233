/* Sockets of the internet over the loopback, in instructions. Two processes send, receive and wait
 * for each other, but where a line says "one process". */
#define _GNU_SOURCE
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "loopback.h"
#include "measure.h"
#include "stream.h"

enum { CHUNK = 64 << 10, DATAGRAM = 1400, MANY = 1000 };

static char buffer[CHUNK];

/* Two ends of a connection that delays no small segments. */
static void connection(int ends[2])
{
    struct sockaddr_in address;
    int on = 1, listener = bound(SOCK_STREAM, &address);
    must(listen(listener, 8), "listen");
    ends[0] = connected(SOCK_STREAM, &address);
    ends[1] = (int)must(accept(listener, 0, 0), "accept");
    for (int i = 0; i < 2; i++)
        must(setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
    close(listener);
}

/* Two sockets of UDP that are connected to each other. */
static void datagrams(int ends[2])
{
    struct sockaddr_in addresses[2];
    for (int i = 0; i < 2; i++)
        ends[i] = bound(SOCK_DGRAM, &addresses[i]);
    for (int i = 0; i < 2; i++)
        must(connect(ends[i], (struct sockaddr *)&addresses[1 - i], sizeof addresses[i]), "connect");
}

/* Measures a message to another process that sends it back. The first end is used here and closed
 * afterwards. */
static void round_trip(const char *name, int ends[2], size_t length)
{
    pid_t child = (pid_t)must(fork(), "fork");
    if (child == 0) {
        close(ends[0]);
        for (ssize_t got; (got = read(ends[1], buffer, length)) > 0;)
            if (write(ends[1], buffer, (size_t)got) != got)
                break;
        _exit(0);
    }
    close(ends[1]);
    MEASURE(name, 200, (write(ends[0], buffer, length), must(read(ends[0], buffer, length), name)));
    close(ends[0]);
    kill(child, SIGKILL);
    waitpid(child, 0, 0);
}

static void connections(void)
{
    struct sockaddr_in address;
    int listener = bound(SOCK_STREAM, &address);
    /* Without it, the closed connections stay for a minute, and take all ports. */
    struct linger none = {.l_onoff = 1};
    must(listen(listener, 8), "listen");
    CALL("TCP: connect, accept, close", 100, ({
             int client = socket(AF_INET, SOCK_STREAM, 0);
             int result = connect(client, (struct sockaddr *)&address, sizeof address);
             close(accept(listener, 0, 0));
             close(client);
             result;
         }));
    CALL("TCP: connect, accept, reset", 100, ({
             int client = socket(AF_INET, SOCK_STREAM, 0);
             int result = connect(client, (struct sockaddr *)&address, sizeof address);
             int server = accept(listener, 0, 0);
             setsockopt(client, SOL_SOCKET, SO_LINGER, &none, sizeof none);
             close(client), close(server);
             result;
         }));
    close(listener);
}

/* Measures the calls that make and end connections, each by itself, of a hundred connections at the
 * same time. */
static void calls(void)
{
    enum { COUNT = 100, ALL = COUNT + 4 };
    struct sockaddr_in address;
    int clients[ALL], servers[ALL], at, listener = bound(SOCK_STREAM, &address);
    must(listen(listener, ALL), "listen");
    at = 0;
    CALL("TCP: socket, connect", COUNT, ({
             clients[at] = socket(AF_INET, SOCK_STREAM, 0);
             connect(clients[at++], (struct sockaddr *)&address, sizeof address);
         }));
    at = 0;
    CALL("TCP: accept", COUNT, servers[at++] = accept(listener, 0, 0));
    at = 0;
    CALL("TCP: close, the first end", COUNT, close(clients[at++]));
    at = 0;
    CALL("TCP: close, the other end", COUNT, close(servers[at++]));
    close(listener);
}

/* Measures a byte over one connection, and the wait for it, while there are others. */
static void among(const char *name, int count)
{
    static int pairs[MANY][2];
    int epoll = (int)must(epoll_create1(0), "epoll_create1");
    for (int i = 0; i < count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data = {.u32 = (uint32_t)i}};
        connection(pairs[i]);
        must(epoll_ctl(epoll, EPOLL_CTL_ADD, pairs[i][1], &event), "epoll_ctl");
    }
    int next = 0;
    CALL(name, 200, ({
             struct epoll_event event;
             next = (next + 331) % count;
             long sent = write(pairs[next][0], buffer, 1), ready = epoll_wait(epoll, &event, 1, 1000);
             sent == 1 && ready == 1 ? read(pairs[event.data.u32][1], buffer, 1) : -1;
         }));
    for (int i = 0; i < count; i++)
        close(pairs[i][0]), close(pairs[i][1]);
    close(epoll);
}

/* Measures a buffer that another process sends back. */
static void there_and_back(const char *name, int ends[2])
{
    pid_t child = (pid_t)must(fork(), "fork");
    if (child == 0) {
        close(ends[0]);
        for (;;) {
            ssize_t got = recv(ends[1], buffer, CHUNK, MSG_WAITALL);
            if (got <= 0 || write(ends[1], buffer, (size_t)got) != got)
                _exit(0);
        }
    }
    close(ends[1]);
    CALL(name, 40, (write(ends[0], buffer, CHUNK), recv(ends[0], buffer, CHUNK, MSG_WAITALL)));
    close(ends[0]);
    kill(child, SIGKILL);
    waitpid(child, 0, 0);
}

int main(void)
{
    int ends[2];
    start_loopback();
    CALL("UDP: socket and close", 100, close(socket(AF_INET, SOCK_DGRAM, 0)));
    CALL("TCP: socket and close", 100, close(socket(AF_INET, SOCK_STREAM, 0)));
    datagrams(ends);
    CALL("UDP, one process: send and receive 1 byte", 200, (write(ends[0], buffer, 1), read(ends[1], buffer, 1)));
    CALL("UDP, one process: send and receive 1400 bytes", 200,
         (write(ends[0], buffer, DATAGRAM), read(ends[1], buffer, DATAGRAM)));
    round_trip("UDP round trip, 1 byte", ends, 1);
    connection(ends);
    CALL("TCP, one process: write and read 1 byte", 200, (write(ends[0], buffer, 1), read(ends[1], buffer, 1)));
    CALL("TCP, one process: write and read 16 KiB", 200,
         (write(ends[0], buffer, CHUNK / 4), recv(ends[1], buffer, CHUNK / 4, MSG_WAITALL)));
    round_trip("TCP round trip, 1 byte", ends, 1);
    connection(ends);
    measure_stream("64 KiB through TCP", ends, buffer, buffer, CHUNK);
    connection(ends);
    there_and_back("64 KiB through TCP and back", ends);
    connections();
    calls();
    struct rlimit limit = {4096, 4096};
    must(setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
    among("TCP, one connection: write, epoll_wait, read", 1);
    among("TCP, one of 10: write, epoll_wait, read", 10);
    among("TCP, one of 100: write, epoll_wait, read", 100);
    among("TCP, one of 1000: write, epoll_wait, read", MANY);
    return 0;
}
