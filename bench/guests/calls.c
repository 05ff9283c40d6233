/* Costs of the commonest system calls to a Linux program. Most of them have a short cut in the
 * Unix server; file-calls.c, process-calls.c and lmbench.c have the others. Built as a static
 * program with musl; docs/src/results.md has the figures. With the argument "x", as which it
 * executes itself, it does nothing; with "profile" it makes a few calls between marks. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/syscall.h>
#include "measure.h"

static void ignore(int signal)
{
    (void)signal;
}

static void run(const char *path, const char *argument)
{
    pid_t child = vfork();
    if (child == 0) {
        execl(path, path, argument, (char *)0);
        _exit(9);
    }
    waitpid(child, 0, 0);
}

static void fork_and_wait(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, 0, 0);
}

/* Measures fork while `others` processes exist, which only wait. */
static void fork_beside(int others)
{
    char name[40], byte;
    int hold[2];
    if (pipe(hold))
        exit(1);
    for (int i = 0; i < others; i++) {
        pid_t other = fork();
        if (other < 0)
            exit(1);
        if (other == 0) {
            close(hold[1]);
            _exit(read(hold[0], &byte, 1));
        }
    }
    snprintf(name, sizeof name, "the same beside %d others", others);
    MEASURE(name, 30, fork_and_wait());
    close(hold[1]);
    close(hold[0]);
    for (int i = 0; i < others; i++)
        wait(0);
}

static char *pages(void)
{
    return mmap(0, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* The calls whose costs are attributed to functions. */
static void profile(void)
{
    char byte[1], *memory = pages();
    struct stat status;
    int zero = open("/dev/zero", O_RDONLY), page = 0;
    profiled = 1;
    MEASURE("getpid", 1000, syscall(SYS_getpid));
    MEASURE("read 1 byte of /dev/zero", 1000, read(zero, byte, 1));
    MEASURE("stat /usr/bin/env", 200, stat("/usr/bin/env", &status));
    MEASURE("sigaction", 500, signal(SIGUSR1, ignore));
    MEASURE("signal to itself", 200, kill(getpid(), SIGUSR1));
    MEASURE("page fault, zeros", 500, memory[4096 * page++] = 1);
    MEASURE("fork, exit, wait", 30, fork_and_wait());
}

int main(int argc, char **argv)
{
    char byte[64];
    struct stat status;
    int there[2], back[2];
    if (argc > 1 && argv[1][0] == 'x')
        return 0;
    if (argc > 1 && argv[1][0] == 'p') {
        profile();
        return 0;
    }
    int zero = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY);
    MEASURE("getpid", 1000, syscall(SYS_getpid));
    MEASURE("getppid", 1000, syscall(SYS_getppid));
    MEASURE("read 1 byte of /dev/zero", 1000, read(zero, byte, 1));
    MEASURE("write 1 byte to /dev/null", 1000, write(null, byte, 1));
    MEASURE("open and close /dev/null", 200, close(open("/dev/null", O_RDONLY)));
    MEASURE("stat /", 200, stat("/", &status));
    MEASURE("stat /usr/bin/env", 200, stat("/usr/bin/env", &status));
    if (pipe(there) || pipe(back))
        return 1;
    MEASURE("pipe, write and read", 300, (write(there[1], byte, 1), read(there[0], byte, 1)));
    if (fork() == 0) {
        close(there[1]);
        while (read(there[0], byte, 1) == 1)
            write(back[1], byte, 1);
        _exit(0);
    }
    MEASURE("pipe round trip", 200, (write(there[1], byte, 1), read(back[0], byte, 1)));
    MEASURE("sigaction", 500, signal(SIGUSR1, ignore));
    MEASURE("signal to itself", 200, kill(getpid(), SIGUSR1));
    MEASURE("fork, exit, wait", 30, fork_and_wait());
    fork_beside(400);
    MEASURE("vfork, exec static, wait", 20, run(argv[0], "x"));
    if (access("/usr/bin/true", X_OK) == 0)
        MEASURE("vfork, exec dynamic, wait", 10, run("/usr/bin/true", 0));
    char *memory = pages();
    int page = 0;
    MEASURE("page fault, zeros", 500, memory[4096 * page++] = 1);
    MEASURE("mmap and munmap 64 KiB", 200,
            munmap(mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 65536));
    return 0;
}
