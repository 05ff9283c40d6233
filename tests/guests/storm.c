/* storm COUNT: that many processes are made, run a program and end, one after the other; then memory must be what it was.
 * "storm" alone is that program: it does nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* As many before anything is compared: caches of either kernel fill. */
enum { WARM_UP = 500 };
/* KiB that may be missing afterwards: 200 bytes for each of 20 000 processes, less than any structure of a process. */
enum { TOLERANCE = 4096 };

static long field(const char *path, const char *name)
{
    char line[256];
    long value = -1;
    FILE *file = fopen(path, "r");
    while (file && value < 0 && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            value = atol(line + strlen(name));
    if (file)
        fclose(file);
    return value;
}

/* KiB that are free for programs, less what the server has got from the system; under Linux there is none. */
static long free_memory(void)
{
    long server = field("/proc/macadamia", "server\tunix\truns\t");
    return field("/proc/meminfo", "MemFree:") - (server > 0 ? server : 0);
}

static int one(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "storm", (char *)0);
        _exit(9);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 0, ended = 0;
    if (count == 0)
        return 0;
    for (int i = 0; i < WARM_UP; i++)
        if (!one())
            return 1;
    long before = free_memory();
    for (int i = 0; i < count; i++)
        ended += one();
    long growth = before - free_memory();
    printf("%d of %d ended as they should\n", ended, count);
    if (before <= 0 || growth > TOLERANCE)
        printf("%ld KiB are missing of %ld\n", growth, before);
    else
        printf("no memory is missing\n");
    return 0;
}
