/* memory TEST: which process ends when memory runs out, and that no other process is affected.
 * Prints what does not depend on how much memory there is. */
#define _GNU_SOURCE
#include "chosen.h"
#include "ended.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYSTANDERS = 4, PIECE = 1 << 20, HELD = 24, PAGE = 4096 };

/* Allocates more memory and uses it; a system may refuse it. */
static char *take(size_t size)
{
    char *more = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t at = 0; more != MAP_FAILED && at < size; at += PAGE)
        more[at] = 1;
    return more == MAP_FAILED ? 0 : more;
}

/* The score of a process, or -1. */
static long score(pid_t process)
{
    char path[64], text[32] = "";
    snprintf(path, sizeof path, "/proc/%d/oom_score", (int)process);
    int file = open(path, O_RDONLY);
    if (file < 0)
        return -1;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    return length > 0 ? atol(text) : -1;
}

/* Writes oom_score_adj; returns the error, or 0. */
static int wish(const char *adjustment)
{
    int file = open("/proc/self/oom_score_adj", O_WRONLY);
    int failed = write(file, adjustment, strlen(adjustment)) < 0 ? errno : 0;
    close(file);
    return failed;
}

static pid_t taker(void)
{
    pid_t child = fork();
    while (child == 0)
        if (!take(PIECE))
            raise(SIGKILL);
    return child;
}

/* Touches new pages, lets the kernel write to new pages, and makes processes, as long as the
 * pipe is open. Counts what fails. */
static int stand_by(int pipe)
{
    int failed = 0, zeros = open("/dev/zero", O_RDONLY);
    char byte;
    fcntl(pipe, F_SETFL, O_NONBLOCK);
    while (read(pipe, &byte, 1) < 0) {
        char *own = take(65536);
        failed += !own;
        char *read_into = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        failed += read(zeros, read_into, 65536) != 65536;
        pid_t child = fork();
        if (child == 0)
            _exit(own[PAGE] + read_into[PAGE]);
        failed += child < 0 || ended(child) != 1;
        munmap(own, 65536);
        munmap(read_into, 65536);
        /* Gives the process that takes all memory time to do it. */
        usleep(5000);
    }
    return failed != 0;
}

/* The biggest process ends, whichever process it is that finds no memory: first one, then two big
 * ones, with others at work that need some memory all the time. */
static int bystanders(void)
{
    int open_until[2], right = 0;
    pid_t others[BYSTANDERS];
    if (pipe(open_until))
        return 1;
    for (int i = 0; i < BYSTANDERS; i++)
        if ((others[i] = fork()) == 0) {
            close(open_until[1]);
            _exit(stand_by(open_until[0]));
        }
    printf("takers ended %d", ended(taker()));
    pid_t both[2] = {taker(), taker()};
    printf(" %d %d", ended(both[0]), ended(both[1]));
    close(open_until[1]);
    for (int i = 0; i < BYSTANDERS; i++)
        right += ended(others[i]) == 0;
    printf(", bystanders well %d\n", right);
    return 0;
}

/* A process that is not the biggest, but has asked to be killed first (oom_score_adj), ends; the
 * one that takes the memory goes on. */
static int wishes(void)
{
    int ready[2];
    char byte;
    if (pipe(ready))
        return 1;
    pid_t holder = fork();
    if (holder == 0) {
        for (int i = 0; i < HELD; i++)
            take(PIECE);
        wish("1000");
        close(ready[1]);
        for (;;)
            pause();
    }
    close(ready[1]);
    int held = read(ready[0], &byte, 1) == 0;
    printf("ready %d, ", held);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        /* The existence of the holder, its sibling, is seen at its directory: a zombie has no
         * score. */
        while (score(holder) > 0)
            if (!take(PIECE))
                _exit(1);
        _exit(0);
    }
    printf("taker ended %d", ended(child));
    printf(", holder ended %d\n", ended(holder));
    return 0;
}

/* What the files of /proc say and take. */
static int files(void)
{
    long usual = score(getpid());
    printf("usual %d", usual > 600 && usual < 800);
    printf(", first process %ld", score(1));
    printf(", errors %d %d %d", wish("1001"), wish("-1001"), wish("many"));
    printf(", 1000 %d", wish("1000"));
    printf(" %d", score(getpid()) >= 1300);
    pid_t child = fork();
    if (child == 0)
        _exit(score(getpid()) >= 1300 ? 3 : 1);
    printf(", child's %d", ended(child));
    printf(", -1000 %d", wish("-1000"));
    printf(" %ld", score(getpid()));
    printf(", 500 %d", wish(" 500\n"));
    printf(", 0 %d\n", wish("0"));
    return 0;
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {{"bystanders", bystanders}, {"wishes", wishes}, {"files", files}};
    setvbuf(stdout, 0, _IOFBF, 4096);
    return RUN_CHOSEN(tests);
}
