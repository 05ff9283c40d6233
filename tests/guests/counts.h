/* What a system has in use, for tests that nothing grows: memory and threads. Where the system
 * tells (/proc/macadamia), also each server's memory, kernel memory, threads and address spaces. */
#ifndef COUNTS_H
#define COUNTS_H

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

enum { FIGURES = 64, LINE = 4096, LOOKS = 20, LOOK_MICROSECONDS = 20000 };

struct counts {
    long free, threads;
    int figures;
    long figure[FIGURES];
    char name[FIGURES][32];
};

static int count(struct counts *counts)
{
    struct sysinfo system;
    if (sysinfo(&system))
        return -1;
    counts->free = (long)(system.freeram * system.mem_unit >> 10);
    counts->threads = system.procs;
    counts->figures = 0;
    FILE *about = fopen("/proc/macadamia", "r");
    char line[LINE];
    while (about && fgets(line, sizeof line, about)) {
        char *name = strtok(line, "\t\n");
        int is_server = name && strcmp(name, "server") == 0;
        if (!is_server && (!name || strcmp(name, "heap") != 0))
            continue;
        if (is_server)
            name = strtok(0, "\t\n");
        char *word;
        for (int column = 1; (word = strtok(0, "\t\n")) && counts->figures < FIGURES; column++) {
            char *end;
            long value = strtol(word, &end, 10);
            if (end == word)
                continue;
            counts->figure[counts->figures] = value;
            snprintf(counts->name[counts->figures++], sizeof *counts->name, "%s %d", name, column);
        }
    }
    if (about)
        fclose(about);
    return 0;
}

/* Runs on each processor in turn. A processor frees what processes that have ended still hold
 * before it runs a program. */
static void visit_all(void)
{
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all))
        return;
    for (int processor = 0; processor < CPU_SETSIZE; processor++)
        if (CPU_ISSET(processor, &all)) {
            CPU_ZERO(&one);
            CPU_SET(processor, &one);
            sched_setaffinity(0, sizeof one, &one);
            sched_yield();
        }
    sched_setaffinity(0, sizeof all, &all);
}

/* The counts when all that have ended are gone. With several processors a parent hears of the
 * end of its child before another processor has given back the child's address space and the
 * kernel's memory for it: the least of several readings is taken. */
static int count_at_rest(struct counts *least)
{
    visit_all();
    if (count(least))
        return -1;
    for (int look = 1; look < LOOKS; look++) {
        static struct counts now;
        usleep(LOOK_MICROSECONDS);
        if (count(&now) || now.figures != least->figures)
            return -1;
        least->free = now.free > least->free ? now.free : least->free;
        least->threads = now.threads < least->threads ? now.threads : least->threads;
        for (int i = 0; i < now.figures; i++)
            if (now.figure[i] < least->figure[i])
                least->figure[i] = now.figure[i];
    }
    return 0;
}

/* Prints what has grown by more than `tolerance`; returns whether anything has. */
static inline int servers_have_grown(const struct counts *before, const struct counts *after, long tolerance)
{
    int grown = before->figures != after->figures;
    for (int i = 0; i < before->figures && i < after->figures; i++)
        if (after->figure[i] > before->figure[i] + tolerance) {
            printf("%s has grown from %ld to %ld\n", before->name[i], before->figure[i], after->figure[i]);
            grown = 1;
        }
    return grown;
}

static inline void print_counts(const struct counts *before, const struct counts *after)
{
    for (int i = 0; i < before->figures && i < after->figures; i++)
        printf("%s: %ld %ld\n", before->name[i], before->figure[i], after->figure[i]);
}

#endif
