#!/bin/sh
# PACKAGE0034 gcc: compiles, optimises, links a shared library and shows mistakes
cat >main.c <<'END'
#include <math.h>
#include <stdio.h>
#include <pthread.h>
int twice(int);
static void *run(void *p) { *(int *)p = twice(21); return 0; }
int main(void) { int n; pthread_t t; pthread_create(&t, 0, run, &n); pthread_join(t, 0); printf("%d %.3f\n", n, sqrt(2)); return 3; }
END
echo 'int twice(int n) { return 2 * n; }' >twice.c
gcc -O2 -Wall -shared -fPIC -o libtwice.so twice.c && gcc -O2 -Wall -o main main.c -L. -ltwice -lm -Wl,-rpath,. && ./main
echo "status $?"
gcc -O2 -static -flto -o static main.c twice.c -lm && ./static
gcc -g -fsanitize=undefined -o checked -x c - <<'END' && ./checked
#include <stdio.h>
int main(int argc, char **argv) { int n = 2147483647; n += argc; printf("%d\n", n); return 0; }
END
echo 'int main(void) { return x; }' | gcc -x c - 2>&1 | head -2
nm -D libtwice.so | grep twice
objdump -d --no-show-raw-insn libtwice.so | grep -A2 '<twice>:' | sed 's/^ *[0-9a-f]*[: ]*//'
ar rcD libt.a /dev/null && ar t libt.a
