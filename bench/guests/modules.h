/* Debian's kernel has its drivers in modules, which are in the images of benchmarks. */
#ifndef MODULES_H
#define MODULES_H

#include <fcntl.h>
#include <sys/syscall.h>
#include "measure.h"

/* Loads modules, each after those that it needs. */
static void load_modules(const char *const names[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char path[100];
        snprintf(path, sizeof path, "/tests/modules/%s.ko", names[i]);
        int file = (int)must(open(path, O_RDONLY), path);
        /* The other system's drivers are servers, which run. */
        if (syscall(SYS_finit_module, file, "", 0) == -1 && errno != EEXIST && errno != ENOSYS && errno != EPERM)
            must(-1, path);
        close(file);
    }
}

#define VIRTIO_MODULES "virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci"

/* What the plugin counts: `count` times the code. The output says how many operations these are. */
#define REGION(name, count, code)           \
    do {                                    \
        MARK(0x01);                         \
        for (int i = 0; i < (count); i++)   \
            code;                           \
        MARK(0x02);                         \
        printf("%-40s %d\n", name, (count)); \
    } while (0)

#endif
