#!/bin/sh
# GUEST0105 tcc compiles and runs programs: in memory, to a file, from several sources, with a shared library
export LC_ALL=C
cat >primes.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <math.h>
int main(int argc, char **argv)
{
    int limit = argc > 1 ? atoi(argv[1]) : 100, count = 0;
    char *composite = calloc(limit + 1, 1);
    for (int i = 2; i <= limit; i++)
        if (!composite[i]) {
            count++;
            for (long j = (long)i * i; j <= limit; j += i)
                composite[j] = 1;
        }
    double root = 2;
    for (int i = 0; i < 10; i++)
        root = (root + 2 / root) / 2;
    printf("%d primes up to %d, %.12f, %s\n", count, limit, root, strerror(ENOENT));
    free(composite);
    return count % 256;
}
END
tcc -run primes.c 1000; echo "status $?"
tcc -Wall -o primes primes.c && ./primes 100000; echo "status $?"
cat >part.c <<'END'
int twice(int x) { return 2 * x; }
END
cat >whole.c <<'END'
#include <stdio.h>
extern int twice(int);
int main(void) { printf("%d\n", twice(21)); return 0; }
END
tcc -c part.c && tcc -c whole.c && tcc -o whole part.o whole.o && ./whole
tcc -shared -o libpart.so part.c && tcc -o dynamic whole.c -L. -lpart && LD_LIBRARY_PATH=. ./dynamic
./dynamic 2>&1 | sed 's/.*: error while/error while/'
tcc -static -o static whole.c part.c 2>/dev/null && ./static
echo 'int main(void) { return undeclared; }' | tcc -o wrong - 2>&1; echo "status $?"
echo 'int main(void) { int *p = 0; return *p; }' >crash.c; tcc -o crash crash.c && (./crash; echo "status $?") 2>/dev/null
echo 'int main(void) { volatile int z = 0; return 1 / z; }' >divide.c; tcc -o divide divide.c && (./divide; echo "status $?") 2>/dev/null
