/* Measures how much faster several processors are: three programs, each run by many processes at
 * the same time, between two marks, which are NOPs except to the emulator's plugin that counts
 * instructions. `./mac bench speedup` boots it with 1, 2 and 4 processors. The output has a line
 * for each program: its name and the number of its parts. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MARK(which) __asm__ volatile(".byte 0x0f, 0x1f, 0x80, 0x00, " #which ", 0x4c, 0x4d" ::: "memory")

enum { PARTS = 8, NUMBERS = 1 << 18, EXECUTIONS = 25 };

static void must(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "speedup: %s\n", what);
        exit(1);
    }
}

/* The sort: each thread sorts its part, then all threads merge two runs into one until there is
 * one, each thread the same share of what comes out. */

static uint32_t numbers[NUMBERS], others[NUMBERS];
static pthread_barrier_t barrier;

static void merge(const uint32_t *a, size_t a_count, const uint32_t *b, size_t b_count, uint32_t *out, size_t count)
{
    const uint32_t *a_end = a + a_count, *b_end = b + b_count;
    while (count-- > 0)
        *out++ = b == b_end || (a != a_end && *a <= *b) ? *a++ : *b++;
}

static void sort(uint32_t *from, uint32_t *scratch, size_t count)
{
    if (count < 16) {
        for (size_t i = 1; i < count; i++) {
            uint32_t value = from[i];
            size_t at = i;
            for (; at > 0 && from[at - 1] > value; at--)
                from[at] = from[at - 1];
            from[at] = value;
        }
        return;
    }
    size_t half = count / 2;
    sort(from, scratch, half);
    sort(from + half, scratch, count - half);
    memcpy(scratch, from, half * sizeof *from);
    merge(scratch, half, from + half, count - half, from, count);
}

/* How many of the first `count` numbers of the merge of two runs come from the first run. */
static size_t of_first(const uint32_t *a, const uint32_t *b, size_t run, size_t count)
{
    size_t low = count > run ? count - run : 0, high = count < run ? count : run;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (a[middle] <= b[count - middle - 1])
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void *sort_part(void *argument)
{
    size_t part = (size_t)argument, share = NUMBERS / PARTS;
    sort(numbers + part * share, others + part * share, share);
    uint32_t *from = numbers, *to = others;
    for (size_t run = share; run < NUMBERS; run *= 2) {
        pthread_barrier_wait(&barrier);
        size_t begin = part * share / (2 * run) * (2 * run), first = part * share - begin, last = first + share;
        const uint32_t *a = from + begin, *b = a + run;
        size_t skip = of_first(a, b, run, first), end = of_first(a, b, run, last);
        merge(a + skip, end - skip, b + (first - skip), (last - end) - (first - skip), to + begin + first, share);
        uint32_t *sorted = to;
        to = from;
        from = sorted;
    }
    return from;
}

static void parallel_sort(void)
{
    pthread_t threads[PARTS];
    uint32_t state = 1, sum = 0;
    void *sorted = 0;
    for (size_t i = 0; i < NUMBERS; i++) {
        state = state * 1664525 + 1013904223;
        sum += numbers[i] = state;
    }
    must(pthread_barrier_init(&barrier, 0, PARTS) == 0, "no barrier");
    MARK(0x01);
    for (size_t part = 0; part < PARTS; part++)
        must(pthread_create(&threads[part], 0, sort_part, (void *)part) == 0, "no thread");
    for (size_t part = 0; part < PARTS; part++)
        pthread_join(threads[part], &sorted);
    MARK(0x02);
    const uint32_t *result = sorted;
    for (size_t i = 0; i < NUMBERS; i++) {
        must(i == 0 || result[i - 1] <= result[i], "not sorted");
        sum -= result[i];
    }
    must(sum == 0, "other numbers than before");
}

/* Runs `work` in this number of processes at the same time, and waits for all. */
static void processes(void (*work)(void))
{
    fflush(0);
    MARK(0x01);
    for (int i = 0; i < PARTS; i++) {
        pid_t child = fork();
        must(child >= 0, "no process");
        if (child == 0) {
            work();
            _exit(127);
        }
    }
    int failed = 0, status;
    for (int i = 0; i < PARTS; i++)
        failed |= wait(&status) < 0 || status != 0;
    MARK(0x02);
    must(!failed, "a process has failed");
}

static void shell(void)
{
    execl("/bin/sh", "sh", "/tests/bin/work.sh", (char *)0);
}

static void fork_stress(void)
{
    for (int i = 0; i < EXECUTIONS; i++) {
        pid_t child = fork();
        int status;
        if (child == 0) {
            execl("/bin/true", "true", (char *)0);
            _exit(127);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            _exit(1);
    }
    _exit(0);
}

int main(void)
{
    parallel_sort();
    printf("sort of %d numbers by %d threads %d\n", NUMBERS, PARTS, PARTS);
    processes(shell);
    printf("%d shells with a script each %d\n", PARTS, PARTS);
    processes(fork_stress);
    printf("fork stress of %d processes from %d parents %d\n", PARTS * EXECUTIONS, PARTS, PARTS);
    return 0;
}
