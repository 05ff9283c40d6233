/* The transfer of data from a process that writes without end, in instructions. */
#ifndef STREAM_H
#define STREAM_H

#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include "measure.h"

/* Measures the transfer of a buffer's bytes from the second of two ends to the first one. The
 * writer, which is another process, writes pieces of this size from `from`; they arrive in `to`.
 * Both ends are closed afterwards. */
static inline void measure_stream(const char *name, int ends[2], char *to, const char *from, size_t size)
{
    pid_t child = (pid_t)must(fork(), "fork");
    if (child == 0) {
        close(ends[0]);
        while (write(ends[1], from, size) > 0)
            ;
        _exit(0);
    }
    close(ends[1]);
    MEASURE(name, 40, for (long left = (long)size, got; left > 0; left -= got)
                          got = must(read(ends[0], to, (size_t)left) ?: -1, name));
    close(ends[0]);
    kill(child, SIGKILL);
    waitpid(child, 0, 0);
}

#endif
