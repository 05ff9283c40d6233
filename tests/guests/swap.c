/* swap TEST ARGS: memory that is larger than the machine's, in swap space.
 *
 *     swap fill MIB       touches so much memory, and finds all of it as it was left, twice
 *     swap forked MIB     the same, with children that change and verify their copies meanwhile
 *     swap shared MIB     shared memory of several processes, anonymous, of System V and of files
 *     swap freed MIB      memory that is given back and unmapped leaves swap space
 *     swap calls DEV DIR  what swapon and swapoff refuse
 *     swap hungry         allocates until it is killed
 *     swap hold MIB FILE  touches so much memory, makes FILE, waits until FILE is gone, verifies
 *
 * Prints what does not depend on how much memory there is. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/swap.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, MIB = 1 << 20 };

static size_t pages;

static uint64_t *page(char *memory, size_t number)
{
    return (uint64_t *)(memory + number * PAGE);
}

static char *map(size_t size, int flags)
{
    char *memory = mmap(0, size, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return memory;
}

/* Marks each page at both ends. */
static void fill(char *memory, uint64_t seed)
{
    for (size_t number = 0; number < pages; number++) {
        page(memory, number)[0] = number * 31 + seed;
        page(memory, number)[PAGE / 8 - 1] = ~(number * 17 + seed);
    }
}

/* Counts the pages that are not as they were left. */
static size_t wrong(char *memory, uint64_t seed)
{
    size_t count = 0;
    for (size_t number = 0; number < pages; number++)
        count += page(memory, number)[0] != number * 31 + seed
            || page(memory, number)[PAGE / 8 - 1] != ~(number * 17 + seed);
    return count;
}

static void report(const char *what, size_t count)
{
    printf("%s %s", count ? "WRONG" : "ok", what);
    if (count)
        printf(": %zu pages", count);
    putchar('\n');
    fflush(stdout);
}

static uint64_t swap_used(void)
{
    struct sysinfo information;
    sysinfo(&information);
    return (information.totalswap - information.freeswap) * information.mem_unit;
}

/* The number in a line of a file in /proc. */
static long number_of(const char *path, const char *name)
{
    char line[256];
    long found = -1;
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name)))
            found = atol(line + strlen(name) + strspn(line + strlen(name), ": \t"));
    if (file)
        fclose(file);
    return found;
}

static void test_fill(void)
{
    char *memory = map(pages * PAGE, MAP_PRIVATE);
    fill(memory, 1);
    printf("%s pages are in swap space\n", swap_used() > 0 ? "ok" : "WRONG no");
    printf("%s VmSwap says so\n", number_of("/proc/self/status", "VmSwap") > 0 ? "ok" : "WRONG no");
    printf("%s pswpout counts them\n", number_of("/proc/vmstat", "pswpout") > 0 ? "ok" : "WRONG no");
    report("all pages are as they were left", wrong(memory, 1));
    printf("%s pswpin counts them\n", number_of("/proc/vmstat", "pswpin") > 0 ? "ok" : "WRONG no");
    fill(memory, 2);
    report("all pages are as they were left again", wrong(memory, 2));
    unsigned char resident[256];
    size_t out = 0;
    for (size_t at = 0; at + 256 <= pages; at += 256) {
        mincore(memory + at * PAGE, 256 * PAGE, resident);
        for (int index = 0; index < 256; index++)
            out += !(resident[index] & 1);
    }
    printf("%s mincore shows pages that are not in memory\n", out > 0 ? "ok" : "WRONG no");
}

static void test_forked(void)
{
    char *memory = map(pages * PAGE, MAP_PRIVATE);
    fill(memory, 3);
    int status, failed = 0;
    for (int child = 0; child < 3; child++) {
        if (fork()) {
            /* One at a time: the pages of their own are few then. */
            failed += wait(&status) < 0 || status != 0;
            continue;
        }
        size_t count = 0;
        /* Every sixteenth page becomes the child's own. */
        for (size_t number = child; number < pages; number += 16)
            page(memory, number)[1] = child + 100;
        for (size_t number = 0; number < pages; number++)
            count += page(memory, number)[1] != (number % 16 == (size_t)child ? child + 100u : 0);
        _exit(count + wrong(memory, 3) != 0);
    }
    printf("%s children have copies of their own\n", failed ? "WRONG" : "ok");
    report("the parent's pages are as they were left", wrong(memory, 3));
}

static void share(const char *what, char *memory)
{
    fill(memory, 4);
    if (fork() == 0) {
        size_t count = wrong(memory, 4);
        fill(memory, 5);
        _exit(count != 0);
    }
    int status;
    wait(&status);
    printf("%s another process finds what is in %s\n", status ? "WRONG" : "ok", what);
    report("and changes it for both", wrong(memory, 5));
}

static void test_shared(void)
{
    char *memory = map(pages * PAGE, MAP_SHARED);
    share("shared anonymous memory", memory);
    munmap(memory, pages * PAGE);
    int id = shmget(IPC_PRIVATE, pages * PAGE, 0600);
    memory = shmat(id, 0, 0);
    shmctl(id, IPC_RMID, 0);
    share("a segment of System V", memory);
    shmdt(memory);
    int file = memfd_create("swap", 0);
    ftruncate(file, pages * PAGE);
    memory = mmap(0, pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    share("a file in memory", memory);
    munmap(memory, pages * PAGE);
    size_t count = 0;
    uint64_t words[PAGE / 8];
    for (size_t number = 0; number < pages; number++) {
        pread(file, words, PAGE, number * PAGE);
        count += words[0] != number * 31 + 5;
    }
    report("read finds what was written through a mapping", count);
}

static void test_freed(void)
{
    char *memory = map(pages * PAGE, MAP_PRIVATE);
    fill(memory, 8);
    uint64_t full = swap_used();
    madvise(memory, pages / 2 * PAGE, MADV_DONTNEED);
    munmap(memory + pages / 2 * PAGE, (pages - pages / 2) * PAGE);
    printf("%s swap space is free again\n", swap_used() < full - pages * PAGE / 8 ? "ok" : "WRONG no");
    size_t count = 0;
    for (size_t number = 0; number < pages / 2; number++)
        count += page(memory, number)[0] != 0;
    report("memory that was given back reads as zeros", count);
}

static void refused(const char *what, int failed)
{
    printf("%s: %s\n", what, failed ? strerrorname_np(errno) : "done");
}

static void test_calls(const char *device, const char *directory)
{
    char path[256];
    refused("unknown flags", swapon(device, 0x80000));
    refused("a bad address", swapon((char *)8, 0));
    refused("an empty path", swapon("", 0));
    refused("no such file", swapon("/none", 0));
    refused("a directory", swapon("/", 0));
    refused("a character device", swapon("/dev/null", 0));
    refused("a file in memory", swapon("/dev/shm/swap-test", 0));
    refused("an area twice", swapon(device, 0));
    refused("swapoff of no area", swapoff("/dev/null"));
    refused("swapoff of a directory", swapoff("/"));
    refused("swapoff of nothing", swapoff("/none"));
    snprintf(path, sizeof path, "%s/swapfile", directory);
    int file = open(path, O_RDWR);
    char byte = 0;
    refused("writing to an area that is a file", file < 0 || pwrite(file, &byte, 1, 8192) < 0);
    if (file >= 0)
        close(file);
    refused("truncating it", truncate(path, 0));
    refused("removing it", unlink(path));
    refused("renaming it", rename(path, "/mnt/other"));
    if (fork() == 0) {
        setuid(1000);
        refused("swapon without rights", swapon(device, 0));
        refused("swapoff without rights", swapoff(device));
        refused("flags come first", swapon(device, 0x80000));
        fflush(stdout);
        _exit(0);
    }
    wait(0);
}

static void hungry(void)
{
    for (;;) {
        char *memory = mmap(0, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            raise(SIGKILL);
        for (size_t at = 0; at < MIB; at += PAGE)
            memory[at] = 1;
    }
}

static void hold(const char *path)
{
    char *memory = map(pages * PAGE, MAP_PRIVATE);
    fill(memory, 9);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    while (!access(path, F_OK))
        usleep(10000);
    report("what was held is as it was left", wrong(memory, 9));
}

int main(int count, char **arguments)
{
    setvbuf(stdout, 0, _IOLBF, 0);
    const char *test = count > 1 ? arguments[1] : "";
    if (count > 2)
        pages = (size_t)atol(arguments[2]) * (MIB / PAGE);
    if (!strcmp(test, "fill"))
        test_fill();
    else if (!strcmp(test, "forked"))
        test_forked();
    else if (!strcmp(test, "shared"))
        test_shared();
    else if (!strcmp(test, "freed"))
        test_freed();
    else if (!strcmp(test, "calls") && count > 3)
        test_calls(arguments[2], arguments[3]);
    else if (!strcmp(test, "hungry"))
        hungry();
    else if (!strcmp(test, "hold") && count > 3)
        hold(arguments[3]);
    else
        return 2;
    return 0;
}
