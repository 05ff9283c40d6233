/* An ordinary Linux program: standard output, an argument, the environment, heap memory,
 * thread-local storage. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static __thread int local = 41;

int main(int argc, char **argv)
{
    char *heap = malloc(100000);
    if (!heap)
        return 2;
    memset(heap, 'x', 99999);
    heap[99999] = 0;
    local++;
    errno = 0;
    ssize_t none = readlink("/nothing", heap, 10);
    printf("hello, %s: %d arguments, heap %zu, local %d, home %s, readlink %zd %s\n", argv[1], argc, strlen(heap),
           local, getenv("HOME"), none, strerror(errno));
    free(heap);
    return 7;
}
