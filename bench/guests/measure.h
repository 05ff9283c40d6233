/* Measures in instructions: under -icount shift=0 the time-stamp counter counts them. Each
 * figure is the mean of a number of operations, after three that are not counted. The output has
 * a line for each: a name, spaces, the number. */
#ifndef MEASURE_H
#define MEASURE_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static inline uint64_t now(void)
{
    uint32_t low, high;
    __asm__ volatile("lfence; rdtsc" : "=a"(low), "=d"(high)::"memory");
    return (uint64_t)high << 32 | low;
}

/* Whether only those calls are made whose costs are attributed to functions (./mac bench guests
 * --profile). Then a plugin counts, between marks that are NOPs to everything else, and the
 * output says how often each call was made. */
__attribute__((unused)) static int profiled;

#define MARK(which) __asm__ volatile(".byte 0x0f, 0x1f, 0x80, 0x00, " #which ", 0x4c, 0x4d" ::: "memory")

/* `parts`: how many operations the code consists of. */
#define MEASURE_EACH(name, count, parts, code)                        \
    do {                                                              \
        for (int i_ = 0; i_ < 3; i_++) {                              \
            code;                                                     \
        }                                                             \
        if (profiled)                                                 \
            MARK(0x01);                                               \
        uint64_t start_ = now();                                      \
        for (int i_ = 0; i_ < (count); i_++) {                        \
            code;                                                     \
        }                                                             \
        uint64_t took_ = now() - start_;                              \
        if (profiled) {                                               \
            MARK(0x02);                                               \
            printf("%-30s %10d\n", name, (count));                    \
        } else {                                                      \
            printf("%-30s %10.0f\n", name, (double)took_ / (count) / (parts)); \
        }                                                             \
    } while (0)
#define MEASURE(name, count, code) MEASURE_EACH(name, count, 1, code)

/* A call that must succeed each time. One that the system does not have is left out; one that fails
 * later ends the program. */
#define CALL(name, count, call)                                       \
    do {                                                              \
        long failed_ = 0;                                             \
        if ((long)(call) != -1)                                       \
            MEASURE(name, count, failed_ += (long)(call) == -1);      \
        if (failed_)                                                  \
            must(-1, name);                                           \
    } while (0)

/* A call that must fail with this error each time. */
#define REFUSED(name, count, error, call)                             \
    do {                                                              \
        long other_ = 0;                                              \
        if ((long)(call) == -1 && errno == (error))                   \
            MEASURE(name, count, other_ += (long)(call) != -1);       \
        if (other_)                                                   \
            must(-1, name);                                           \
    } while (0)

/* Ends the program with a message if a resource that the measurement needs is missing. */
static inline long must(long result, const char *what)
{
    if (result == -1) {
        printf("%s has failed: %m\n", what);
        fflush(stdout);
        _exit(1);
    }
    return result;
}

#endif
