/* How many instructions something takes: under -icount shift=0 the time-stamp counter counts those
 * of everything on the machine. Each result is a line on standard error: a name, a tabulator, the
 * number.
 *
 *   stopwatch now NAME             since power-on stopwatch run NAME COMMAND ..  from fork to wait
 *   stopwatch keys NAME COUNT      from a key press on a terminal to its echo by bash, on the
 *   average */
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static inline uint64_t now(void)
{
    uint32_t low, high;
    __asm__ volatile("lfence; rdtsc" : "=a"(low), "=d"(high)::"memory");
    return (uint64_t)high << 32 | low;
}

static int report(const char *name, uint64_t count)
{
    fprintf(stderr, "%s\t%llu\n", name, (unsigned long long)count);
    return 0;
}

static int run(const char *name, char **command)
{
    uint64_t start = now();
    pid_t child = fork();
    int status;
    if (child == 0) {
        execvp(command[0], command);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "stopwatch: %s has failed\n", name);
        return 1;
    }
    return report(name, now() - start);
}

/* Reads a shell's output until this text is in it. Output that the terminal asks for because of
 * its speed may follow. */
static int until(int master, char sign)
{
    char bytes[4096];
    ssize_t count;
    while ((count = read(master, bytes, sizeof bytes)) > 0)
        if (memchr(bytes, sign, (size_t)count))
            return 0;
    return 1;
}

static int keys(const char *name, int count)
{
    int master;
    struct winsize size = {24, 80, 0, 0};
    pid_t child = forkpty(&master, 0, 0, &size);
    if (child == 0) {
        putenv("PS1=>");
        putenv("TERM=xterm");
        execl("/bin/bash", "bash", "--norc", "--noprofile", "-i", (char *)0);
        _exit(127);
    }
    if (child < 0 || until(master, '>') != 0)
        return 1;
    uint64_t sum = 0;
    for (int i = 0; i < count; i++) {
        if (i % 60 == 59) {
            if (write(master, "\x15", 1) != 1 || until(master, 'K') != 0)
                return 1;
        }
        uint64_t start = now();
        if (write(master, "x", 1) != 1 || until(master, 'x') != 0)
            return 1;
        sum += now() - start;
    }
    kill(child, SIGKILL);
    waitpid(child, 0, 0);
    return report(name, sum / (uint64_t)count);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "now") == 0)
        return report(argv[2], now());
    if (argc > 3 && strcmp(argv[1], "run") == 0)
        return run(argv[2], argv + 3);
    if (argc == 4 && strcmp(argv[1], "keys") == 0)
        return keys(argv[2], atoi(argv[3]));
    fprintf(stderr, "usage: stopwatch now NAME | run NAME COMMAND .. | keys NAME COUNT\n");
    return 2;
}
