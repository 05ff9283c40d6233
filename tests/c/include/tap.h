/* Tests in C and C++: each is a function with a stable id and a sentence, reported in TAP through
 * the kernel debugger. A failed check is reported with its place and ends its test's chance to
 * pass; the test goes on. */
#ifndef TAP_H
#define TAP_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const char *id;
    const char *sentence;
    void (*run)(void);
} tap_test_t;

/* Runs the tests, then sleeps. */
void tap_run(const tap_test_t *tests, int count) __attribute__((noreturn));

/* Records a failed check. */
void tap_failed(const char *file, int line, const char *what);

#define CHECK(condition)                              \
    do {                                              \
        if (!(condition))                             \
            tap_failed(__FILE__, __LINE__, #condition); \
    } while (0)

#define TAP_RUN(tests) tap_run(tests, (int)(sizeof(tests) / sizeof((tests)[0])))

#ifdef __cplusplus
}
#endif

#endif
