/* kernel-memory: how much of the kernel's memory a process of a small static program takes, by
 * forks and execs of this program. A system without /proc/macadamia has no such number. */
#define _GNU_SOURCE
#include "counts.h"

#include <signal.h>
#include <sys/wait.h>

enum { PROCESSES = 64 };

/* The most bytes that a process may take (docs/src/unix.md, "What a process costs the kernel"). */
enum { BOUND = 52 * 1024 };

/* KiB of the kernel's memory that all servers have; 0 if the system has no such number. */
static long kernel_memory(void)
{
    static struct counts now;
    if (count_at_rest(&now))
        exit(1);
    long sum = 0;
    for (int i = 0; i < now.figures; i++)
        if (strstr(now.name[i], " 4"))
            sum += now.figure[i];
    return sum;
}

int main(int argc, char **argv)
{
    if (argc == 3) {
        char byte = 1;
        int ready = atoi(argv[1]);
        if (write(ready, &byte, 1) != 1)
            return 1;
        for (;;)
            pause();
    }
    int ready[2], arrived = 0;
    pid_t children[PROCESSES];
    char text[16], byte;
    if (pipe(ready))
        return 1;
    snprintf(text, sizeof text, "%d", ready[1]);
    long before = kernel_memory();
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            execl(argv[0], argv[0], text, "wait", (char *)0);
            _exit(127);
        }
        arrived += children[i] > 0 && read(ready[0], &byte, 1) == 1;
    }
    long after = kernel_memory(), each = (after - before) * 1024 / PROCESSES;
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        kill(children[i], SIGKILL);
        waitpid(children[i], &status, 0);
    }
    printf("%d of %d wait\n", arrived, PROCESSES);
    if (each > BOUND || (before && each <= 0) || getenv("VERBOSE"))
        printf("each takes %ld bytes of the kernel's memory\n", each);
    return 0;
}
