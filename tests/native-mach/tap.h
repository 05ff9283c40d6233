/* Results as lines of TAP, printed by mach_print. */
#ifndef TAP_H
#define TAP_H

#include <mach.h>

struct test {
    const char *id;
    const char *sentence;
    /* Returns 0, or the number of the line that failed. */
    int (*run)(void);
};

/* Fails the test unless the condition holds. */
#define HOLDS(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            return __LINE__;                                                                                           \
    } while (0)

/* Fails the test unless both values are equal, and shows them. */
#define SAME(left, right)                                                                                              \
    do {                                                                                                               \
        long left_ = (long)(left), right_ = (long)(right);                                                             \
        if (left_ != right_) {                                                                                         \
            differ(__LINE__, left_, right_);                                                                           \
            return __LINE__;                                                                                           \
        }                                                                                                              \
    } while (0)

void differ(int line, long left, long right);

/* Prints the parts as one text; the last one is 0. */
void print(const char *first, ...);

/* The number in decimal, in a buffer that a later call uses again. */
const char *decimal(long number);

/* Runs all tests, and prints the plan and the results. */
void run_tests(const struct test *tests, int count);

#endif
