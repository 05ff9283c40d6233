#!/bin/sh
# PACKAGE0066 ltrace: shows a program's calls of libraries and of the system; gcc's address and leak sanitizers, which stop all threads with ptrace, find what is lost
cat >leak.c <<'END'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile int waits = 1;
static char *kept;

static void *thread(void *own)
{
    while (waits)
        ;
    return own;
}

int main(int count, char **arguments)
{
    pthread_t other;
    char *lost = malloc(77);
    kept = malloc(100);
    strcpy(kept, "kept");
    printf("%s %zu\n", kept, strlen(strcpy(lost, "lost")));
    memset(&lost, 0, sizeof lost);
    /* What only another thread knows is not lost. */
    if (count > 1)
        pthread_create(&other, NULL, thread, malloc(55));
    else
        free(kept);
    if (count > 2)
        kept[100] = 'x';
    return 0;
}
END
shown() { grep -e leak -e Leak -e overflow -e 'in main' -e '^kept' -e 'located' | sed -E 's/0x[0-9a-f]+/ADDRESS/g; s/==[0-9]+==/==N==/'; }
for kind in address leak; do
    gcc -g -fsanitize=$kind -o $kind leak.c
    ./$kind 2>&1 | shown
    ./$kind thread 2>&1 | shown
done
./address thread over 2>&1 | shown
gcc -o plain leak.c
ltrace -e malloc+strcpy+free+printf ./plain 2>&1 | sed -E 's/0x[0-9a-f]+/ADDRESS/g' | tr -s ' '
ltrace -S -e exit_group@SYS ./plain 2>&1 | grep -c 'SYS_exit_group\|exited (status 0)'
