/* How a child has ended: its status, or 128 and its signal. */
#include <errno.h>
#include <sys/wait.h>

static int ended(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
