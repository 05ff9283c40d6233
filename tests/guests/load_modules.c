/* load-modules FILE..: loads modules of Debian's kernel, each after those that it needs. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    for (int i = 1; i < count; i++) {
        int file = open(arguments[i], O_RDONLY);
        if (file < 0 || (syscall(SYS_finit_module, file, "", 0) != 0 && errno != EEXIST))
            err(1, "%s", arguments[i]);
        close(file);
    }
    return 0;
}
