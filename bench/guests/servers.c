/* Requests to redis and nginx over the loopback, in instructions of the whole machine: server,
 * client and system. The servers are Debian's. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "loopback.h"
#include "measure.h"

enum { REQUESTS = 400, CONNECTIONS = 50, PAGE = 8900 };

static char answer[2 * PAGE];

static struct sockaddr_in port(uint16_t number)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(number), .sin_addr = {htonl(INADDR_LOOPBACK)}};
}

/* Starts a program that prints nothing. */
static pid_t start(char *const words[])
{
    pid_t child = (pid_t)must(fork(), "fork");
    if (child == 0) {
        int nowhere = open("/dev/null", O_RDWR);
        for (int i = 0; i < 3; i++)
            dup2(nowhere, i);
        execv(words[0], words);
        _exit(127);
    }
    return child;
}

/* Waits until a server takes connections at its port. */
static void wait_for(uint16_t number, pid_t server)
{
    struct sockaddr_in to = port(number);
    for (int tries = 0; tries < 3000; tries++) {
        int made = (int)must(socket(AF_INET, SOCK_STREAM, 0), "socket");
        int done = connect(made, (struct sockaddr *)&to, sizeof to);
        close(made);
        if (done == 0)
            return;
        if (waitpid(server, 0, WNOHANG) == server)
            break;
        usleep(10000);
    }
    errno = ECONNREFUSED;
    must(-1, "connecting to a server");
}

static int open_connection(uint16_t number)
{
    int on = 1;
    struct sockaddr_in to = port(number);
    int made = connected(SOCK_STREAM, &to);
    must(setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
    return made;
}

/* Sends a request and reads the answer until its end. Returns its length. */
static long ask(int connection, const char *request, const char *end)
{
    size_t length = 0, tail = strlen(end);
    if (write(connection, request, strlen(request)) != (ssize_t)strlen(request))
        return -1;
    for (;;) {
        ssize_t got = read(connection, answer + length, sizeof answer - length);
        if (got <= 0)
            return -1;
        length += (size_t)got;
        if (length >= tail && memcmp(answer + length - tail, end, tail) == 0)
            return (long)length;
    }
}

/* Measures requests by this many connections in turn. */
static void requests(const char *name, uint16_t number, int count, const char *request, const char *end)
{
    int connections[CONNECTIONS], next = 0;
    for (int i = 0; i < count; i++)
        connections[i] = open_connection(number);
    CALL(name, REQUESTS, ask(connections[next++ % count], request, end));
    for (int i = 0; i < count; i++)
        close(connections[i]);
}

/* The instructions of one run of redis-benchmark. */
static double benchmark(const char *test, char *count)
{
    char *const words[] = {"/usr/bin/redis-benchmark", "-q", "-c", "50", "-t", (char *)test, "-n", count, 0};
    int status;
    uint64_t began = now();
    waitpid(start(words), &status, 0);
    uint64_t took = now() - began;
    errno = EIO;
    must(status == 0 ? 0 : -1, "redis-benchmark");
    return (double)took;
}

/* A request of redis-benchmark is what a longer run costs more than a shorter one. */
static void by_benchmark(const char *name, const char *test)
{
    double shorter = benchmark(test, "1000"), longer = benchmark(test, "5000");
    printf("%-30s %10.0f\n", name, (longer - shorter) / 4000);
}

static void redis(void)
{
    char *const words[] = {"/usr/bin/redis-server", "--port", "6379", "--save", "", "--dir", "/tmp", 0};
    const char *set = "*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n";
    const char *get = "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n";
    pid_t server = start(words);
    wait_for(6379, server);
    requests("redis: SET, one connection", 6379, 1, set, "+OK\r\n");
    requests("redis: GET, one connection", 6379, 1, get, "value\r\n");
    requests("redis: GET, 50 connections in turn", 6379, CONNECTIONS, get, "value\r\n");
    by_benchmark("redis-benchmark, 50 connections: SET", "set");
    by_benchmark("redis-benchmark, 50 connections: GET", "get");
    kill(server, SIGKILL);
    waitpid(server, 0, 0);
}

static void put(const char *path, const char *bytes, size_t length)
{
    int file = (int)must(open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644), path);
    errno = EIO;
    must(write(file, bytes, length) == (ssize_t)length ? 0 : -1, path);
    close(file);
}

static void nginx(void)
{
    static const char configuration[] =
        "user root; daemon off; worker_processes 1; pid /tmp/nginx.pid; error_log /tmp/error.log;\n"
        "events { worker_connections 256; }\n"
        "http { access_log off; sendfile on; keepalive_requests 1000000;\n"
        "server { listen 127.0.0.1:8080; root /tmp/www; } }\n";
    char page[PAGE];
    char *const words[] = {"/usr/sbin/nginx", "-c", "/tmp/nginx.conf", 0};
    const char *get = "GET /page HTTP/1.1\r\nHost: here\r\n\r\n";
    const char *small = "GET /small HTTP/1.1\r\nHost: here\r\n\r\n";
    const char *once = "GET /page HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n";
    memset(page, 'x', sizeof page);
    memcpy(page + sizeof page - 4, "\nend", 4);
    mkdir("/tmp/www", 0755);
    put("/tmp/www/page", page, sizeof page);
    put("/tmp/www/small", "an\nend", 6);
    put("/tmp/nginx.conf", configuration, sizeof configuration - 1);
    pid_t server = start(words);
    wait_for(8080, server);
    requests("nginx: 6 bytes, one connection", 8080, 1, small, "\nend");
    requests("nginx: 8.9 KB, one connection", 8080, 1, get, "\nend");
    requests("nginx: 8.9 KB, 10 connections in turn", 8080, 10, get, "\nend");
    CALL("nginx: 8.9 KB, a connection each", 100, ({
             int connection = open_connection(8080);
             long length = ask(connection, once, "\nend");
             close(connection);
             length;
         }));
    kill(server, SIGTERM);
    waitpid(server, 0, 0);
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN);
    start_loopback();
    redis();
    nginx();
    return 0;
}
