/* Files on a disk, between marks, which are NOPs except to the emulator's plugin that counts
 * instructions: calls, then whole jobs by Debian's programs. `./mac bench disk` boots it. The
 * output has a line for each region: its name and the number of operations.
 *
 * "Not cached" means that the file system has been mounted again just before. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "modules.h"

enum { KIB = 1 << 10, MIB = 1 << 20, SIZE = 16 };

#define DISK "/dev/vda"
#define ROOT "/mnt"

static char buffer[MIB];

/* Runs a command of the shell, which must succeed. */
static void run(const char *command)
{
    int status = system(command);
    errno = EIO;
    must(WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1, command);
}

static void mount_disk(void)
{
    must(mount(DISK, ROOT, "ext4", 0, 0), "mounting " DISK);
}

static void forget_cached(void)
{
    must(umount(ROOT), "unmounting " ROOT);
    mount_disk();
}

static int open_file(const char *path, int flags)
{
    return (int)must(open(path, flags, 0644), path);
}

static void write_all(int file, size_t length)
{
    must(write(file, buffer, length) == (ssize_t)length ? 0 : -1, "write");
}

static void read_at(int file, size_t length, off_t at)
{
    must(pread(file, buffer, length, at) == (ssize_t)length ? 0 : -1, "pread");
}

/* A small file that is stored and removed. */
static void store_small(void)
{
    int file = open_file(ROOT "/small", O_CREAT | O_EXCL | O_WRONLY);
    write_all(file, 4 * KIB);
    must(fsync(file), "fsync");
    close(file);
    must(unlink(ROOT "/small"), "unlink");
}

/* The create, write and delete of the Mach paper's table 3. */
static void create_and_delete(void)
{
    int file = open_file(ROOT "/short-lived", O_CREAT | O_EXCL | O_WRONLY);
    write_all(file, 100 * KIB);
    close(file);
    must(unlink(ROOT "/short-lived"), "unlink");
}

/* Places in the large file that do not follow each other, each another one. */
static off_t place(int i)
{
    return (off_t)(i * 1117 % (SIZE * MIB / (4 * KIB))) * 4 * KIB;
}

static void calls(void)
{
    int large = open_file(ROOT "/large", O_CREAT | O_RDWR);
    REGION("write 1 MiB", SIZE, write_all(large, MIB));
    must(fsync(large), "fsync");
    must(lseek(large, 0, SEEK_SET), "lseek");
    REGION("write 1 MiB over it, and fsync", SIZE, {
        write_all(large, MIB);
        must(fsync(large), "fsync");
    });
    REGION("read 1 MiB, cached", SIZE, read_at(large, MIB, (off_t)i * MIB));
    REGION("read 4 KiB, cached", 400, read_at(large, 4 * KIB, place(i)));
    REGION("lseek, and read 8 KiB, cached", 400, {
        must(lseek(large, place(i) / 2, SEEK_SET), "lseek");
        must(read(large, buffer, 8 * KIB) == 8 * KIB ? 0 : -1, "read");
    });
    close(large);

    forget_cached();
    large = open_file(ROOT "/large", O_RDONLY);
    REGION("read 1 MiB, one after the other, not cached", SIZE, read_at(large, MIB, (off_t)i * MIB));
    close(large);
    forget_cached();
    large = open_file(ROOT "/large", O_RDONLY);
    REGION("read 4 KiB, here and there, not cached", 200, read_at(large, 4 * KIB, place(i)));
    close(large);

    REGION("create, write 100 KiB, delete", 50, create_and_delete());
    REGION("create, write 4 KiB, fsync, delete", 1000, store_small());
}

static void jobs(void)
{
    run("cd /tmp && tar cf include.tar -C /usr include && mkdir source && cd source && cp -r /usr/include/x86_64-linux-gnu . &&"
        " git init -q && git add . && git -c user.name=a -c user.email=a@b commit -qm all");
    REGION("tar x of /usr/include, and sync", 1, run("tar xf /tmp/include.tar -C " ROOT " && sync"));
    REGION("find, cached", 1, run("find " ROOT "/include -name '*.h' >/dev/null"));
    REGION("grep -r, cached", 1, run("grep -r nothing-has-this " ROOT "/include; test $? = 1"));
    forget_cached();
    REGION("find, not cached", 1, run("find " ROOT "/include -name '*.h' >/dev/null"));
    REGION("grep -r, not cached", 1, run("grep -r nothing-has-this " ROOT "/include; test $? = 1"));
    REGION("rm -r of it, and sync", 1, run("rm -r " ROOT "/include && sync"));
    REGION("git clone, and sync", 1, run("git clone -q --no-hardlinks /tmp/source " ROOT "/clone && sync"));
    run("echo 'create table t (n integer, text);' | sqlite3 " ROOT "/database; i=0; while [ $i -lt 1000 ]; do"
        " echo \"insert into t values ($i, 'text $i');\"; i=$((i + 1)); done >/tmp/inserts");
    REGION("sqlite3: 1000 inserts, each committed", 1, run("sqlite3 " ROOT "/database </tmp/inserts"));
    REGION("make directories, copy, look, read, compile", 1, run("sh /tests/bin/files.sh " ROOT));
}

int main(void)
{
    static const char *const modules[] = {VIRTIO_MODULES, "virtio_blk", "crc32c_generic", "crc16", "mbcache", "jbd2", "ext4"};
    load_modules(modules, sizeof modules / sizeof *modules);
    for (int tries = 0; access(DISK, F_OK) == -1; tries++) {
        must(tries < 1000 ? 0 : -1, DISK);
        usleep(10000);
    }
    for (size_t i = 0; i < sizeof buffer; i++)
        buffer[i] = (char)(i * 7 % 251);
    run("mkfs.ext4 -q -F -b 4096 " DISK);
    mount_disk();
    calls();
    jobs();
    must(umount(ROOT), "unmounting");
    return 0;
}
