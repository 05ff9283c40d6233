/* power-cuts DIRECTORY DISK STEPS SEED: changes files in DIRECTORY, each change brought to stable
 * storage by fsync, and before each one writes to DISK, at a place that no file system uses, which
 * files there are and what is changed next. So whatever a power cut leaves of the disk says what
 * must be there. A test on the host makes the cuts from a record of the disk's writes.
 *
 * Each block of 512 bytes of a file says which file, version and block it is. */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FILES = 24, BLOCK = 512, LONGEST = 188 * BLOCK, PAGE = 4096, PLACE = 44 << 20 };

enum change { REWRITE, OVERWRITE, MAP, APPEND, CUT, REPLACE, DELETE, CHANGES };
static const char *const names[CHANGES] = { "rewrite", "overwrite", "map", "append", "cut", "replace", "delete" };

struct file {
    int there;
    unsigned version, size;
};

static struct file files[FILES];
static char content[LONGEST];
static uint64_t seed;
static int directory, disk;

static unsigned below(unsigned bound)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % bound;
}

/* What a file of this name and version has, in blocks, up to its longest size. */
static void fill(const char *name, unsigned version)
{
    for (unsigned block = 0; block * BLOCK < sizeof content; block++) {
        char stamp[64];
        int length = snprintf(stamp, sizeof stamp, "%s %u %u\n", name, version, block);
        for (int at = 0; at < BLOCK; at++)
            content[block * BLOCK + at] = stamp[at % length];
    }
}

static void write_all(int fd, unsigned from, unsigned to)
{
    while (from < to) {
        unsigned length = 1 + below(3 * PAGE);
        if (length > to - from)
            length = to - from;
        ssize_t written = pwrite(fd, content + from, length, from);
        if (written <= 0)
            err(1, "pwrite");
        from += written;
    }
}

static void synchronize(int fd)
{
    if (fsync(fd) != 0)
        err(1, "fsync");
}

/* Writes what is there, and what comes next, to the disk. */
static void tell(unsigned step, enum change change, unsigned number, struct file next)
{
    static char page[PAGE] __attribute__((aligned(PAGE)));
    memset(page, 0, sizeof page);
    char *at = page;
    at += sprintf(at, "step %u\n", step);
    for (unsigned file = 0; file < FILES; file++)
        if (files[file].there)
            at += sprintf(at, "file f%u %u %u\n", file, files[file].version, files[file].size);
    at += sprintf(at, "next %s f%u %u %u\n", names[change], number, next.version, next.size);
    sprintf(at, "end %u\n", step);
    if (pwrite(disk, page, PAGE, PLACE + step % 2 * PAGE) != PAGE)
        err(1, "the disk");
    synchronize(disk);
}

static void carry_out(enum change change, const char *name, struct file old, struct file next)
{
    char other[16];
    snprintf(other, sizeof other, "%s.new", name);
    fill(name, next.version);
    if (change == DELETE) {
        if (unlinkat(directory, name, 0) != 0)
            err(1, "unlink");
        synchronize(directory);
        return;
    }
    int flags = O_RDWR | O_CREAT | (change == REWRITE ? O_TRUNC : 0);
    int fd = openat(directory, change == REPLACE ? other : name, flags, 0644);
    if (fd < 0)
        err(1, "%s", name);
    if (change == CUT) {
        if (ftruncate(fd, next.size) != 0)
            err(1, "ftruncate");
    } else if (change == MAP) {
        char *mapped = mmap(NULL, next.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (mapped == MAP_FAILED)
            err(1, "mmap");
        memcpy(mapped, content, next.size);
        if (msync(mapped, next.size, MS_SYNC) != 0 || munmap(mapped, next.size) != 0)
            err(1, "msync");
    } else {
        write_all(fd, change == APPEND ? old.size : 0, next.size);
    }
    synchronize(fd);
    close(fd);
    if (change == REPLACE && renameat(directory, other, directory, name) != 0)
        err(1, "rename");
    synchronize(directory);
}

int main(int count, char **arguments)
{
    if (count != 5)
        errx(2, "power-cuts DIRECTORY DISK STEPS SEED");
    unsigned steps = atoi(arguments[3]);
    seed = atoi(arguments[4]);
    directory = open(arguments[1], O_RDONLY | O_DIRECTORY);
    disk = open(arguments[2], O_RDWR);
    int noise = openat(directory, "noise", O_RDWR | O_CREAT, 0644);
    if (directory < 0 || disk < 0 || noise < 0)
        err(1, "opening");
    for (unsigned step = 0; step < steps; step++) {
        unsigned number = below(FILES), version = step + 1;
        struct file old = files[number], next = { 1, version, 1 + below(LONGEST) };
        enum change change = old.there ? below(CHANGES) : below(2) ? REWRITE : REPLACE;
        if (change == OVERWRITE || change == MAP)
            next.size = old.size;
        if (change == APPEND || change == CUT)
            next.version = old.version;
        if (change == APPEND)
            next.size = old.size + below(LONGEST - old.size + 1);
        if (change == CUT)
            next.size = 1 + below(old.size);
        if (change == DELETE)
            next = (struct file){ 0 };
        tell(step, change, number, next);
        /* What is never synchronized may be lost, but may not have another file's bytes. */
        fill("noise", 1);
        write_all(noise, 0, 1 + below(LONGEST));
        char name[8];
        snprintf(name, sizeof name, "f%u", number);
        carry_out(change, name, old, next);
        files[number] = next;
    }
    tell(steps, DELETE, FILES, (struct file){ 0 });
    printf("%u steps\n", steps);
    return 0;
}
