/* generations COUNT SECONDS: so many children, one after the other, each after so many seconds of sleep: fork, exec of this
 * program, its end, wait. Then what there is must be what there was after the first few: memory, threads, and, where the
 * system tells (/proc/macadamia), what each server has, of memory, of the kernel's memory, of threads and address spaces. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FIGURES = 64, LINE = 4096, LOOKS = 20, LOOK_MICROSECONDS = 20000, ROUNDS = 100 };

/* What may be more than before without being growth, in KiB: less than what a byte for each of 20 000 makes, and, for free
 * memory, which other things of a system use, too, a hundred. */
enum { TOLERANCE = 16, FREE_TOLERANCE = 2048 };

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

/* Runs on each processor in turn: what a processor owes to those that have ended it has done before it runs a program. */
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

/* What there is once those that have ended are gone. With several processors a parent hears of the end of its child before another
 * processor has given back the child's address space and what the kernel had for that: of some looks, the least. */
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

static int has_grown(const struct counts *before, const struct counts *after, int i)
{
    return after->figure[i] > before->figure[i] + TOLERANCE;
}

/* Whether there is as much as before. */
static int is_back(const struct counts *before, const struct counts *after)
{
    for (int i = 0; i < before->figures && i < after->figures; i++)
        if (has_grown(before, after, i))
            return 0;
    return before->figures == after->figures && after->threads <= before->threads + 1 &&
           after->free + FREE_TOLERANCE >= before->free;
}

/* One child, which ends with this status. */
static int generation(const char *program, int status)
{
    char text[16];
    snprintf(text, sizeof text, "%d", status);
    pid_t child = fork();
    if (child == 0) {
        execl(program, program, text, (char *)0);
        _exit(127);
    }
    int ended;
    return child > 0 && waitpid(child, &ended, 0) == child && WIFEXITED(ended) && WEXITSTATUS(ended) == status;
}

static void sleep_for(int seconds)
{
    struct timespec left = {seconds, 0};
    while (seconds > 0 && nanosleep(&left, &left))
        ;
}

int main(int argc, char **argv)
{
    if (argc == 2)
        return atoi(argv[1]);
    if (argc != 3)
        return 2;
    int wanted = atoi(argv[1]), seconds = atoi(argv[2]), right = 0;
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    static struct counts before, after;
    /* What is made once and kept is made by the first ones. */
    int first = wanted / 10;
    for (int i = 0; i < wanted; i++) {
        if (i == first && count_at_rest(&before))
            return 1;
        sleep_for(seconds);
        right += generation(argv[0], i % 100);
    }
    /* The emulator's host may be so busy that a processor stands still for long. What has been lost does not come back, however
     * long it takes. */
    for (int round = 0; round < ROUNDS; round++) {
        if (count_at_rest(&after))
            return 1;
        if (is_back(&before, &after))
            break;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%d of %d ended as they should\n", right, wanted);
    if (seconds > 0)
        printf("%ld hours\n", (long)(end.tv_sec - begin.tv_sec) / 3600);
    printf("memory is back %d, threads are back %d\n", after.free + FREE_TOLERANCE >= before.free,
           after.threads <= before.threads + 1);
    int grown = before.figures != after.figures;
    for (int i = 0; i < before.figures && i < after.figures; i++)
        if (has_grown(&before, &after, i)) {
            printf("%s has grown from %ld to %ld\n", before.name[i], before.figure[i], after.figure[i]);
            grown = 1;
        }
    printf("servers are as they were %d\n", !grown);
    if (getenv("VERBOSE"))
        for (int i = 0; i < before.figures && i < after.figures; i++)
            printf("%s: %ld %ld\n", before.name[i], before.figure[i], after.figure[i]);
    return right != wanted;
}
