/* The shared object that the system gives every program (AT_SYSINFO_EHDR): the C library finds it,
 * reads the clocks by it without a system call, and gets the same times as by the calls. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 20000, SECOND = 1000000000 };

static int64_t nanoseconds(struct timespec time)
{
    return (int64_t)time.tv_sec * SECOND + time.tv_nsec;
}

static int64_t by_library(clockid_t clock)
{
    struct timespec time = {-1, -1};
    return clock_gettime(clock, &time) == 0 ? nanoseconds(time) : -1;
}

static int64_t by_call(clockid_t clock)
{
    struct timespec time = {-1, -1};
    return syscall(SYS_clock_gettime, clock, &time) == 0 ? nanoseconds(time) : -1;
}

static int64_t day_by_library(void)
{
    struct timeval time;
    return gettimeofday(&time, 0) == 0 ? (int64_t)time.tv_sec * SECOND + time.tv_usec * 1000 : -1;
}

static void show(const char *what, int right)
{
    printf("  %s: %s\n", what, right ? "yes" : "no");
}

/* Whether a clock never goes back, whichever way it is read. */
static int goes_on(clockid_t clock)
{
    int64_t last = 0;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t now = i & 1 ? by_call(clock) : by_library(clock);
        if (now < last) {
            printf("  clock %d: %lld after %lld by the %s\n", clock, (long long)now, (long long)last,
                   i & 1 ? "call" : "library");
            return 0;
        }
        last = now;
    }
    return last > 0;
}

/* The function of the object with this name, as C libraries look for it. */
static void *function(const char *wanted)
{
    const Elf64_Ehdr *header = (const void *)getauxval(AT_SYSINFO_EHDR);
    if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG))
        return 0;
    const char *base = (const char *)header;
    const Elf64_Phdr *segment = (const void *)(base + header->e_phoff);
    const Elf64_Dyn *dynamic = 0;
    int64_t bias = 0;
    for (int i = 0; i < header->e_phnum; i++) {
        if (segment[i].p_type == PT_LOAD)
            bias = (int64_t)(intptr_t)base + (int64_t)segment[i].p_offset - (int64_t)segment[i].p_vaddr;
        if (segment[i].p_type == PT_DYNAMIC)
            dynamic = (const void *)(base + segment[i].p_offset);
    }
    const Elf64_Sym *symbols = 0;
    const char *strings = 0;
    const uint32_t *hash = 0;
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        void *at = (void *)(intptr_t)((int64_t)dynamic->d_un.d_ptr + bias);
        if (dynamic->d_tag == DT_SYMTAB)
            symbols = at;
        if (dynamic->d_tag == DT_STRTAB)
            strings = at;
        if (dynamic->d_tag == DT_HASH)
            hash = at;
    }
    if (!symbols || !strings || !hash)
        return 0;
    for (uint32_t i = 0; i < hash[1]; i++)
        if (strcmp(strings + symbols[i].st_name, wanted) == 0)
            return (void *)(intptr_t)((int64_t)symbols[i].st_value + bias);
    return 0;
}

/* Whether /proc/self/maps has this name in a line whose range begins with `address`, if that is
 * not 0. */
static int is_in_maps(const char *name, unsigned long address)
{
    char line[512];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (strstr(line, name) && (!address || strtoul(line, 0, 16) == address))
            found = 1;
    if (maps)
        fclose(maps);
    return found;
}

/* Whether a write to `address` ends a process by SIGSEGV. */
static int is_protected(char *address)
{
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        *(volatile char *)address = 1;
        _exit(0);
    }
    int status;
    return waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

int main(void)
{
    static const clockid_t CLOCKS[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME};
    static const char *const NAMES[] = {"clock_gettime", "gettimeofday", "time", "clock_getres", "getcpu"};
    char name[40];
    for (unsigned i = 0; i < sizeof CLOCKS / sizeof *CLOCKS; i++) {
        snprintf(name, sizeof name, "clock %d goes on", CLOCKS[i]);
        show(name, goes_on(CLOCKS[i]));
    }
    int64_t before = by_call(CLOCK_REALTIME), day = day_by_library(), after = by_call(CLOCK_REALTIME);
    show("gettimeofday agrees", before / 1000 <= day / 1000 && day <= after);
    before = by_call(CLOCK_REALTIME) / SECOND, day = time(0), after = by_call(CLOCK_REALTIME) / SECOND;
    show("time agrees", before - 1 <= day && day <= after);
    struct timespec resolution;
    show("clock_getres", clock_getres(CLOCK_MONOTONIC, &resolution) == 0 && nanoseconds(resolution) == 1);
    show("a clock that does not exist is refused", clock_gettime(77, &resolution) == -1 && errno == EINVAL);
    show("the process's clock", by_library(CLOCK_PROCESS_CPUTIME_ID) >= 0);
    show("getcpu", sched_getcpu() >= 0);
    for (unsigned i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        snprintf(name, sizeof name, "__vdso_%s", NAMES[i]);
        show(name, function(name) != 0);
    }
    int64_t start = by_call(CLOCK_MONOTONIC);
    for (int i = 0; i < ROUNDS; i++)
        by_call(CLOCK_MONOTONIC);
    int64_t calls = by_call(CLOCK_MONOTONIC) - start;
    start = by_call(CLOCK_MONOTONIC);
    for (int i = 0; i < ROUNDS; i++)
        by_library(CLOCK_MONOTONIC);
    int64_t library = by_call(CLOCK_MONOTONIC) - start;
    show("the library makes no calls", 2 * library < calls);
    unsigned long object = getauxval(AT_SYSINFO_EHDR);
    show("[vdso] in maps", is_in_maps("[vdso]", object));
    show("[vvar] in maps", is_in_maps("[vvar]", 0));
    show("the object cannot be written", is_protected((char *)object));
    return 0;
}
