/* Sockets over a network device, between marks, which are NOPs except to the emulator's plugin that
 * counts instructions. `./mac bench device` boots it with 1, 2 and 4 processors. The peer is in the
 * emulator: its router answers echo requests, and a program of the host at port 7 of 10.0.2.100
 * sends back what it gets. The output has a line for each region: its name and the number of
 * operations. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include "modules.h"

enum { TRIPS = 200, WARM = 20, CHUNK = 64 << 10, CHUNKS = 20, CONNECTIONS = 20 };

static char buffer[CHUNK], back[CHUNK];

static struct sockaddr_in address(const char *ip, uint16_t port)
{
    struct sockaddr_in made = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, ip, &made.sin_addr);
    return made;
}

/* Gives the interface the address that the emulator's network expects. */
static void start_interface(void)
{
    int control = (int)must(socket(AF_INET, SOCK_DGRAM, 0), "socket");
    struct ifreq request = {.ifr_name = "eth0"};
    struct sockaddr_in own = address("10.0.2.15", 0), mask = address("255.255.255.0", 0);
    for (int tries = 0; ioctl(control, SIOCGIFINDEX, &request) == -1; tries++) {
        must(tries < 1000 ? 0 : -1, "finding eth0");
        usleep(10000);
    }
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    must(ioctl(control, SIOCSIFFLAGS, &request), "SIOCSIFFLAGS");
    memcpy(&request.ifr_addr, &own, sizeof own);
    if (ioctl(control, SIOCSIFADDR, &request) == -1 && errno != EEXIST)
        must(-1, "SIOCSIFADDR");
    memcpy(&request.ifr_netmask, &mask, sizeof mask);
    must(ioctl(control, SIOCSIFNETMASK, &request), "SIOCSIFNETMASK");
    close(control);
}

static int echo_connection(void)
{
    int on = 1, made = -1;
    struct sockaddr_in to = address("10.0.2.100", 7);
    for (int tries = 0; tries < 100; tries++) {
        made = (int)must(socket(AF_INET, SOCK_STREAM, 0), "socket");
        if (connect(made, (struct sockaddr *)&to, sizeof to) == 0)
            break;
        close(made);
        made = -1;
        usleep(100000);
    }
    must(made, "connecting to 10.0.2.100");
    must(setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
    return made;
}

static void echo(int made, size_t length)
{
    must(write(made, buffer, length) == (ssize_t)length ? 0 : -1, "write");
    must(recv(made, back, length, MSG_WAITALL) == (ssize_t)length ? 0 : -1, "read");
}

/* Sends a buffer and receives it: at most so many bytes are on their way, which the emulator
 * keeps. */
static void there_and_back(int made)
{
    enum { PIECE = 8 << 10 };
    for (size_t at = 0; at < CHUNK; at += PIECE) {
        must(write(made, buffer + at, PIECE) == PIECE ? 0 : -1, "write");
        must(recv(made, back + at, PIECE, MSG_WAITALL) == PIECE ? 0 : -1, "read");
    }
    errno = EIO;
    must(memcmp(buffer, back, CHUNK) == 0 ? 0 : -1, "comparing");
}

/* An echo request by a datagram socket, and its answer. */
static void ping(int made, uint16_t number)
{
    struct icmphdr request = {.type = ICMP_ECHO, .un.echo.sequence = htons(number)};
    char packet[sizeof request + 56];
    memset(packet, 'x', sizeof packet);
    memcpy(packet, &request, sizeof request);
    must(send(made, packet, sizeof packet, 0), "sending an echo request");
    must(recv(made, packet, sizeof packet, 0) == sizeof packet ? 0 : -1, "receiving an echo");
}

/* After some that do not count. */
#define WARMED(name, count, code)      \
    do {                               \
        for (int i = 0; i < WARM; i++) \
            code;                      \
        REGION(name, count, code);     \
    } while (0)

int main(void)
{
    static const char *const modules[] = {VIRTIO_MODULES, "failover", "net_failover", "virtio_net"};
    load_modules(modules, sizeof modules / sizeof *modules);
    start_interface();
    for (size_t i = 0; i < sizeof buffer; i++)
        buffer[i] = (char)(i * 7 % 251);
    int stream = echo_connection();
    struct sockaddr_in router = address("10.0.2.2", 0);
    int range = open("/proc/sys/net/ipv4/ping_group_range", O_WRONLY);
    if (range >= 0)
        (void)!write(range, "0 2147483647", 12), close(range);
    int datagrams = (int)must(socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP), "socket of ICMP");
    must(connect(datagrams, (struct sockaddr *)&router, sizeof router), "connect");
    WARMED("echo request and answer, 56 bytes", TRIPS, ping(datagrams, (uint16_t)i));
    WARMED("TCP round trip, 1 byte", TRIPS, echo(stream, 1));
    WARMED("TCP round trip, 1400 bytes", TRIPS, echo(stream, 1400));
    WARMED("64 KiB through TCP and back", CHUNKS, there_and_back(stream));
    WARMED("TCP: connect, echo, close", CONNECTIONS, ({
               int made = echo_connection();
               echo(made, 1);
               close(made);
           }));
    return 0;
}
