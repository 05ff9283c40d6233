/* shares: a program that has slept gets what it needs in little more than its own time, while
 * hundreds of programs compute. Nothing is measured by a clock, except how much work a few time
 * slices are: each program counts its work in shared memory, and the test compares the counts. On
 * another kernel, which may give all programs equal shares, the comparison is left out. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SPINNERS = 300, CHAINS = 40, ROUNDS = 2, LINE = 64 };

/* A part of the work, some tens of microseconds. */
enum { PART = 20000 };

/* The parts that each program or chain of programs has done, each in a cache line of its own. */
static struct {
    _Atomic long parts;
    char rest[LINE - sizeof(long)];
} *counts;
static _Atomic int *stop;

static void part(void)
{
    for (volatile int i = 0; i < PART; i++)
        ;
}

static void work(int place, long parts)
{
    for (long done = 0; done < parts; done++) {
        part();
        atomic_fetch_add_explicit(&counts[place].parts, 1, memory_order_relaxed);
    }
}

static long all(int places)
{
    long sum = 0;
    for (int place = 0; place < places; place++)
        sum += atomic_load_explicit(&counts[place].parts, memory_order_relaxed);
    return sum;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

/* How many parts are done in 20 time slices. */
static long parts_of_slices(void)
{
    long parts = 0;
    for (double end = now() + 0.2; now() < end; parts++)
        part();
    return parts;
}

static void pause_for(int seconds)
{
    for (int left = seconds; left > 0;)
        left = sleep(left);
}

/* Sleeps and does `own` parts of work, in rounds, while other programs with `places` counts run.
 * Exits if the others do more work meanwhile than the processors can in twice that time. */
static void answer(const char *what, int places, long own)
{
    struct utsname system;
    uname(&system);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    int compares = strstr(system.version, "Macadamia") != 0;
    for (int round = 0; round < ROUNDS; round++) {
        pause_for(3);
        long before = all(places), mine = 0;
        while (mine++ < own)
            part();
        long others = all(places) - before;
        if (compares && others > own * (2 * processors - 1)) {
            printf("%s: round %d: the others did %ld parts during %ld\n", what, round, others, own);
            exit(1);
        }
    }
}

static void spin(int place)
{
    while (!*stop)
        work(place, 1);
    _exit(0);
}

/* A chain of short programs: each makes the next one and ends. */
static void chain(int place)
{
    while (!*stop) {
        work(place, 20);
        pid_t next = fork();
        if (next > 0)
            _exit(0);
    }
    _exit(0);
}

static void among(const char *what, void (*run)(int), int places, long own)
{
    *stop = 0;
    for (int place = 0; place < places; place++) {
        pid_t child = fork();
        if (child < 0) {
            perror("fork");
            exit(1);
        }
        if (child == 0)
            run(place);
    }
    answer(what, places, own);
    long least = counts[0].parts;
    for (int place = 0; place < places; place++)
        if (counts[place].parts < least)
            least = counts[place].parts;
    *stop = 1;
    while (wait(0) > 0)
        ;
    printf("%s: answered in time; all work: %s\n", what, least > 0 ? "yes" : "no");
    fflush(stdout);
}

int main(void)
{
    size_t size = SPINNERS * sizeof *counts;
    counts = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    stop = mmap(0, sizeof *stop, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (counts == MAP_FAILED || stop == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    long own = parts_of_slices();
    among("programs that compute", spin, SPINNERS, own);
    memset(counts, 0, size);
    among("chains of short programs", chain, CHAINS, own);
    return 0;
}
