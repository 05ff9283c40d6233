/* generations COUNT SECONDS: COUNT children, one after the other, each after SECONDS of sleep:
 * fork, exec of this program, its end, wait. Then as much must be in use as after the first few:
 * memory and threads, and where the system tells (/proc/macadamia) each server's memory, kernel
 * memory, threads and address spaces. */
#define _GNU_SOURCE
#include "counts.h"

#include <sys/wait.h>
#include <time.h>

enum { ROUNDS = 100 };

/* An object that is made once and kept may be made late, by any of the children. An object that
 * leaks is lost again and again, so it shows in every try. */
enum { TRIES = 2 };

/* Growth that is tolerated, in KiB. In use: less than a byte for each of 20 000 children makes.
 * In free memory, which other things of a system use, too: less than a hundred bytes for each
 * makes. */
enum { TOLERANCE = 16, FREE_TOLERANCE = 2048 };

static int has_grown(const struct counts *before, const struct counts *after, int i)
{
    return after->figure[i] > before->figure[i] + TOLERANCE;
}

/* Whether as much memory is in use as before. */
static int is_back(const struct counts *before, const struct counts *after)
{
    for (int i = 0; i < before->figures && i < after->figures; i++)
        if (has_grown(before, after, i))
            return 0;
    return before->figures == after->figures && after->threads <= before->threads + 1 &&
           after->free + FREE_TOLERANCE >= before->free;
}

/* Runs one child, which ends with this status. */
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

/* Runs the children from number `first` up to but not including `end`; returns how many did not
 * end as they should. */
static int generations(const char *program, int first, int end, int seconds)
{
    int wrong = 0;
    for (int i = first; i < end; i++) {
        sleep_for(seconds);
        wrong += !generation(program, i % 100);
    }
    return wrong;
}

/* Reads the counts until they are as before. The emulator's host may be so busy that a processor
 * stands still for long. A leak does not come back, however long it takes. */
static int count_until_back(const struct counts *before, struct counts *after)
{
    for (int round = 0; round < ROUNDS; round++) {
        if (count_at_rest(after))
            return -1;
        if (is_back(before, after))
            break;
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2)
        return atoi(argv[1]);
    if (argc != 3)
        return 2;
    int wanted = atoi(argv[1]), seconds = atoi(argv[2]), first = wanted / 10;
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    static struct counts before, after;
    int wrong = generations(argv[0], 0, first, seconds);
    for (int try = 0; try < TRIES; try++) {
        if (count_at_rest(&before))
            return 1;
        wrong += generations(argv[0], first, wanted, seconds);
        if (try == 0)
            clock_gettime(CLOCK_MONOTONIC, &end);
        if (count_until_back(&before, &after))
            return 1;
        if (is_back(&before, &after))
            break;
    }
    printf("%d of %d ended as they should\n", wanted - wrong, wanted);
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
    return wrong > 0;
}
