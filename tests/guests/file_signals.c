/* Signals that files and directories send to their owners (O_ASYNC, F_SETOWN, F_SETSIG, F_NOTIFY of
 * fcntl). Signals are blocked and fetched, so that each is seen once and in order. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "chosen.h"
#include "ended.h"

/* The descriptors' numbers depend on what was open before. */
static int base;

/* Fetches all signals that have come, and shows what they say. A descriptor is shown by its
 * distance from the first one of the test. */
static void show(const char *what)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGIO);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGRTMIN + 3);
    printf("%s:", what);
    siginfo_t information;
    struct timespec wait = {0, 200000000};
    for (;;) {
        int signal = sigtimedwait(&set, &information, &wait);
        if (signal < 0)
            break;
        int own = signal == SIGIO || signal == SIGRTMIN + 3 || signal == SIGUSR1;
        printf(" %s", signal == SIGIO ? "SIGIO" : signal == SIGUSR1 ? "SIGUSR1"
                                              : own                 ? "SIGRTMIN+3"
                                                                    : "SIGCHLD");
        if (own && information.si_code > 0 && information.si_code < 7)
            printf("(code %d, band %#lx, descriptor +%d)", information.si_code, information.si_band,
                   information.si_fd - base);
        else if (own)
            printf("(code %d)", information.si_code);
    }
    printf("\n");
}

static void must(int result, const char *what)
{
    if (result < 0)
        printf("%s: %s\n", what, strerror(errno));
}

/* Makes the caller the owner of a file, which sends `signal`, or SIGIO. */
static void own(int file, int signal)
{
    must(fcntl(file, F_SETOWN, getpid()), "F_SETOWN");
    must(fcntl(file, F_SETSIG, signal), "F_SETSIG");
    must(fcntl(file, F_SETFL, fcntl(file, F_GETFL) | O_ASYNC), "O_ASYNC");
}

static void put(int file)
{
    must(write(file, "x", 1), "write");
}

static void take(int file)
{
    char byte;
    must(read(file, &byte, 1), "read");
}

static int pipes(void)
{
    int ends[2];
    must(pipe(ends), "pipe");
    base = ends[0];
    put(ends[1]);
    show("not asked for");
    take(ends[0]);
    own(ends[0], 0);
    printf("asked for: %d, signal %d\n", (fcntl(ends[0], F_GETFL) & O_ASYNC) != 0,
           fcntl(ends[0], F_GETSIG));
    put(ends[1]);
    show("bytes");
    must(fcntl(ends[0], F_SETSIG, SIGRTMIN + 3), "F_SETSIG");
    put(ends[1]);
    put(ends[1]);
    show("bytes, with a signal that says which");
    must(fcntl(ends[0], F_SETSIG, 65), "signal 65");
    must(fcntl(ends[0], F_SETOWN, 0x3fffffff), "owner that is not there");
    own(ends[1], SIGRTMIN + 3);
    take(ends[0]);
    take(ends[0]);
    take(ends[0]);
    show("the pipe is empty");
    int copy = dup(ends[0]);
    close(ends[0]);
    put(ends[1]);
    show("after dup and close");
    close(ends[1]);
    show("the other end is closed");
    close(copy);
    return 0;
}

static int sockets(void)
{
    int ends[2];
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
    base = ends[0];
    own(ends[0], SIGRTMIN + 3);
    put(ends[1]);
    show("bytes");
    take(ends[0]);
    must(fcntl(ends[0], F_SETFL, fcntl(ends[0], F_GETFL) & ~O_ASYNC), "no O_ASYNC");
    put(ends[1]);
    show("no longer asked for");
    close(ends[0]);
    close(ends[1]);
    return 0;
}

static int terminals(void)
{
    int master, slave;
    struct termios plain;
    must(openpty(&master, &slave, 0, 0, 0), "openpty");
    base = master;
    must(tcgetattr(slave, &plain), "tcgetattr");
    plain.c_lflag &= ~ECHO;
    must(tcsetattr(slave, TCSANOW, &plain), "tcsetattr");
    own(slave, SIGRTMIN + 3);
    put(master);
    show("a line has begun");
    must(write(master, "\n", 1), "write");
    show("a line has ended");
    own(master, SIGRTMIN + 3);
    put(slave);
    show("output");
    close(slave);
    close(master);
    return 0;
}

/* A group as the owner: each of its processes is signalled. A group that has ended is no owner. */
static int groups(void)
{
    int ends[2], ready[2], go[2];
    must(pipe(ends), "pipe");
    must(pipe(ready), "pipe");
    must(pipe(go), "pipe");
    base = ends[0];
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        pid_t second = fork();
        put(ready[1]);
        take(go[0]);
        if (second != 0)
            ended(second);
        show(second ? "the group's first process" : "the group's second process");
        fflush(stdout);
        _exit(0);
    }
    take(ready[0]);
    take(ready[0]);
    must(fcntl(ends[0], F_SETOWN, -child), "F_SETOWN");
    must(fcntl(ends[0], F_SETSIG, SIGUSR1), "F_SETSIG");
    must(fcntl(ends[0], F_SETFL, O_ASYNC), "O_ASYNC");
    struct f_owner_ex owner;
    must(fcntl(ends[0], F_GETOWN_EX, &owner), "F_GETOWN_EX");
    printf("a group: %d, the child's: %d\n", owner.type == F_OWNER_PGRP, owner.pid == child);
    fflush(stdout);
    put(ends[1]);
    show("outside of the group");
    fflush(stdout);
    put(go[1]);
    put(go[1]);
    printf("ended: %d\n", ended(child));
    must(fcntl(ends[0], F_GETOWN_EX, &owner), "F_GETOWN_EX");
    printf("owner afterwards: %d\n", owner.pid);
    put(ends[1]);
    show("afterwards");
    return 0;
}

static int directories(void)
{
    must(mkdir("watched", 0755), "mkdir");
    int directory = open("watched", O_RDONLY | O_DIRECTORY);
    base = directory;
    int ends[2];
    must(pipe(ends), "pipe");
    must(fcntl(ends[1], F_NOTIFY, DN_CREATE), "F_NOTIFY of a pipe");
    must(fcntl(directory, F_NOTIFY, DN_CREATE), "F_NOTIFY");
    must(mknod("watched/one", S_IFREG | 0644, 0), "mknod");
    show("made");
    must(mknod("watched/two", S_IFREG | 0644, 0), "mknod");
    show("made again, asked for once");
    must(fcntl(directory, F_SETSIG, SIGRTMIN + 3), "F_SETSIG");
    must(fcntl(directory, F_NOTIFY,
               DN_MULTISHOT | DN_ACCESS | DN_MODIFY | DN_CREATE | DN_DELETE | DN_RENAME | DN_ATTRIB),
         "F_NOTIFY");
    int file = open("watched/one", O_RDWR);
    show("opened");
    put(file);
    show("written");
    must(lseek(file, 0, SEEK_SET), "lseek");
    take(file);
    show("read");
    must(chmod("watched/one", 0600), "chmod");
    show("its mode changed");
    must(rename("watched/one", "watched/three"), "rename");
    show("renamed");
    must(unlink("watched/two"), "unlink");
    show("removed");
    must(mkdir("watched/inner", 0755), "mkdir");
    show("a directory made");
    must(mknod("watched/inner/deep", S_IFREG | 0644, 0), "mknod");
    show("made below");
    must(fcntl(directory, F_NOTIFY, 0), "F_NOTIFY");
    put(file);
    show("written, no longer asked for");
    must(fcntl(directory, F_NOTIFY, DN_MULTISHOT | DN_MODIFY), "F_NOTIFY");
    close(directory);
    put(file);
    show("written, the directory closed");
    return 0;
}

int main(int argc, char **argv)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, 0);
    static const struct test tests[] = {
        {"pipes", pipes},         {"sockets", sockets},         {"terminals", terminals},
        {"groups", groups},       {"directories", directories},
    };
    return RUN_CHOSEN(tests);
}
