/* Sockets of 127.0.0.1. */
#ifndef LOOPBACK_H
#define LOOPBACK_H

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include "measure.h"

/* Linux starts with the interface down. */
static inline void start_loopback(void)
{
    int control = (int)must(socket(AF_INET, SOCK_DGRAM, 0), "socket");
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    must(ioctl(control, SIOCSIFFLAGS, &request), "SIOCSIFFLAGS");
    close(control);
}

/* A socket with a free port of 127.0.0.1, and the address of it. */
static inline int bound(int kind, struct sockaddr_in *address)
{
    socklen_t length = sizeof *address;
    int made = (int)must(socket(AF_INET, kind, 0), "socket");
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    must(bind(made, (struct sockaddr *)address, length), "bind");
    must(getsockname(made, (struct sockaddr *)address, &length), "getsockname");
    return made;
}

static inline int connected(int kind, const struct sockaddr_in *to)
{
    int made = (int)must(socket(AF_INET, kind, 0), "socket");
    must(connect(made, (const struct sockaddr *)to, sizeof *to), "connect");
    return made;
}

#endif
