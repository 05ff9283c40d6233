/* A program of several tests runs the one that its first argument names. */
#include <stdio.h>
#include <string.h>

struct test {
    const char *name;
    int (*run)(void);
};

static int run_chosen(const struct test *tests, unsigned count, int argc, char **argv)
{
    for (unsigned i = 0; argc > 1 && i < count; i++)
        if (strcmp(argv[1], tests[i].name) == 0)
            return tests[i].run();
    fprintf(stderr, "no such test\n");
    return 2;
}

#define RUN_CHOSEN(tests) run_chosen(tests, sizeof tests / sizeof *tests, argc, argv)
