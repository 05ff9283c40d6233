#include "tap.h"

#include <stdarg.h>

void print(const char *first, ...)
{
    char text[480];
    unsigned length = 0;
    va_list parts;
    va_start(parts, first);
    for (const char *part = first; part; part = va_arg(parts, const char *))
        while (*part && length < sizeof text - 1)
            text[length++] = *part++;
    va_end(parts);
    text[length] = 0;
    mach_print(text);
}

const char *decimal(long number)
{
    static char buffers[4][24];
    static unsigned next;
    char *at = &buffers[next++ % 4][23];
    unsigned long left = number < 0 ? -(unsigned long)number : (unsigned long)number;
    *at = 0;
    do
        *--at = (char)('0' + left % 10);
    while (left /= 10);
    if (number < 0)
        *--at = '-';
    return at;
}

void differ(int line, long left, long right)
{
    print("# line ", decimal(line), ": ", decimal(left), " is not ", decimal(right), "\n", (char *)0);
}

void run_tests(const struct test *tests, int count)
{
    print("1..", decimal(count), "\n", (char *)0);
    for (int index = 0; index < count; index++) {
        int line = tests[index].run();
        if (line)
            print("# failed in line ", decimal(line), "\n", (char *)0);
        print(line ? "not ok " : "ok ", decimal(index + 1), " - ", tests[index].id, " ", tests[index].sentence, "\n",
              (char *)0);
    }
}
