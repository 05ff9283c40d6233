/* The reporting half of <tap.h>. */
#include <l4/ipc.h>
#include <l4/kdebug.h>
#include <tap.h>

static int failed;

static void print(const char *string)
{
    for (; *string; string++)
        L4_KDB_PrintChar(*string);
}

static void print_number(int number)
{
    if (number >= 10)
        print_number(number / 10);
    L4_KDB_PrintChar((char)('0' + number % 10));
}

void tap_failed(const char *file, int line, const char *what)
{
    failed = 1;
    print("# ");
    print(file);
    print(":");
    print_number(line);
    print(": not so: ");
    print(what);
    print("\r\n");
}

void tap_run(const tap_test_t *tests, int count)
{
    int i;
    print("1..");
    print_number(count);
    print("\r\n");
    for (i = 0; i < count; i++) {
        failed = 0;
        tests[i].run();
        print(failed ? "not ok " : "ok ");
        print_number(i + 1);
        print(" - ");
        print(tests[i].id);
        print(" ");
        print(tests[i].sentence);
        print("\r\n");
    }
    for (;;)
        L4_Sleep(L4_Never);
}
