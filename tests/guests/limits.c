/* limits TEST: a program that tries to use up what all share: threads, addresses, the server's
 * memory. How much it gets differs from system to system. The test is that it and all others go
 * on, and that everything comes back. */
#define _GNU_SOURCE
#include "chosen.h"
#include "ended.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

/* Four thousand threads at the same time. */
enum { MANY = 4000 };
static int gate;
static volatile int arrived;

static void *wait_at_gate(void *argument)
{
    __atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&gate, __ATOMIC_SEQ_CST) == 0)
        syscall(SYS_futex, &gate, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
    return argument;
}

static int threads(void)
{
    static pthread_t list[MANY];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 16384);
    int made = 0;
    for (long i = 0; i < MANY; i++) {
        int error = pthread_create(&list[i], &small, wait_at_gate, (void *)i);
        if (error) {
            printf("thread %ld: %s\n", i, strerror(error));
            break;
        }
        made++;
    }
    while (arrived < made)
        usleep(1000);
    __atomic_store_n(&gate, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &gate, FUTEX_WAKE_PRIVATE, MANY, 0, 0, 0);
    long right = 0;
    for (long i = 0; i < made; i++) {
        void *result;
        right += pthread_join(list[i], &result) == 0 && result == (void *)i;
    }
    printf("made %d, arrived %d, right %ld\n", made, arrived, right);
    return 0;
}

/* Addresses at the upper end of a program's part: a page can be had there, or not; nothing else
 * happens. */
static int places(void)
{
    static const uint64_t around[] = {0x7fff80000000, 0x7fff80001000, 0x7fffa0000000, 0x7fffb0000000, 0x7fffc0000000,
                                      0x7fffc0001000, 0x7fffc03ff000, 0x7fffd0000000, 0x7fffe0000000, 0x7ffffffe0000,
                                      0x7ffffffff000, 0x800000000000, 0xffff800000000000, 0xffffffffff600000};
    pid_t own = getpid();
    int wrong = 0;
    for (unsigned i = 0; i < sizeof around / sizeof *around; i++)
        for (int pages = -2; pages <= 2; pages++) {
            char *address = (char *)(around[i] + (uint64_t)(int64_t)pages * 4096);
            /* If memory of the program itself is there (its stack), it stays. */
            char *got = mmap(address, 4096, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
            if (got == MAP_FAILED && errno == EEXIST)
                continue;
            if (got != MAP_FAILED) {
                munmap(got, 4096);
                got = mmap(address, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
                wrong += got != address;
                memset(got, 1, 4096);
                wrong += mprotect(got, 4096, PROT_READ) != 0 || munmap(got, 4096) != 0;
                continue;
            }
            wrong += errno != ENOMEM && errno != EINVAL;
            wrong += mmap(address, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
            wrong += mprotect(address, 4096, PROT_READ | PROT_WRITE) == 0;
            wrong += madvise(address, 4096, MADV_DONTNEED) == 0;
            munmap(address, 4096);
            void *page = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            wrong += mremap(page, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, address) != MAP_FAILED;
            munmap(page, 4096);
        }
    wrong += getpid() != own || syscall(SYS_gettid) != own;
    pid_t child = fork();
    if (child == 0)
        _exit(getppid() == own ? 5 : 1);
    printf("wrong %d, child %d\n", wrong, ended(child));
    return 0;
}

static void become_user(void)
{
    if (setgid(1000) || setuid(1000))
        _exit(1);
}

/* Each of these makes as many objects of a kind as it gets, and keeps them until it is killed. */
static void pipes(void)
{
    static char block[65536];
    int both[2];
    while (pipe2(both, O_NONBLOCK) == 0)
        while (write(both[1], block, sizeof block) > 0)
            ;
}

static void sockets(void)
{
    static char block[65536];
    int both[2];
    while (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, both) == 0)
        while (write(both[1], block, sizeof block) > 0)
            ;
}

/* A chain of sockets, each in a message of the next: only the last one has a descriptor. */
static void chain(void)
{
    int held = -1;
    for (int i = 0; i < 20000; i++) {
        int both[2];
        if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, both))
            break;
        if (held >= 0) {
            char byte = 0, control[CMSG_SPACE(sizeof held)];
            struct iovec data = {&byte, 1};
            struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control,
                                     .msg_controllen = sizeof control};
            struct cmsghdr *header = CMSG_FIRSTHDR(&message);
            header->cmsg_level = SOL_SOCKET;
            header->cmsg_type = SCM_RIGHTS;
            header->cmsg_len = CMSG_LEN(sizeof held);
            memcpy(CMSG_DATA(header), &held, sizeof held);
            int sent = sendmsg(both[1], &message, 0);
            close(held);
            if (sent < 0)
                break;
        }
        close(both[1]);
        held = both[0];
    }
    close(held);
}

static void files(void)
{
    char name[64];
    for (int i = 0; i < 4000; i++) {
        snprintf(name, sizeof name, "f%d.%d", getpid(), i);
        int file = open(name, O_CREAT | O_WRONLY, 0600);
        if (file < 0 || close(file))
            break;
    }
}

static void directories(void)
{
    for (int i = 0; i < 10000; i++)
        if (mkdir("d", 0700) || chdir("d"))
            break;
}

static void attributes(void)
{
    static char value[4096];
    char name[64];
    int file = open("attributes", O_CREAT | O_RDWR, 0600);
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "user.%d", i);
        if (fsetxattr(file, name, value, sizeof value, 0))
            break;
    }
}

static void locks(void)
{
    int file = open("locks", O_CREAT | O_RDWR, 0600);
    for (off_t i = 0; i < 20000; i++) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 2 * i, .l_len = 1};
        if (fcntl(file, F_SETLK, &lock))
            break;
    }
}

static void regions(void)
{
    char *all = mmap(0, 1L << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED)
        return;
    for (long i = 0; i < 1L << 18; i += 2)
        if (mprotect(all + i * 4096, 4096, PROT_READ))
            break;
}

static void descriptors(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    while (dup(0) >= 0)
        ;
    fcntl(0, F_DUPFD, (int)limit.rlim_max - 1);
}

static void watches(void)
{
    int first = epoll_create1(0);
    for (int i = 0; i < 1000; i++) {
        int other = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, 0);
        struct epoll_event event = {.events = EPOLLIN};
        struct itimerspec often = {{0, 1}, {0, 1}};
        if (other < 0 || timer < 0)
            break;
        timerfd_settime(timer, 0, &often, 0);
        epoll_ctl(other, EPOLL_CTL_ADD, timer, &event);
        epoll_ctl(first, EPOLL_CTL_ADD, other, &event);
        epoll_ctl(other, EPOLL_CTL_ADD, first, &event);
        epoll_wait(first, &event, 1, 0);
    }
    int notify = inotify_init1(0);
    char name[32];
    for (int i = 0; i < 4000; i++) {
        snprintf(name, sizeof name, "w%d", i);
        if (mkdir(name, 0700) || inotify_add_watch(notify, name, IN_ALL_EVENTS) < 0)
            break;
    }
}

/* Timers that are always due, and signals that are never taken. */
static void timers(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, 0);
    for (int i = 0; i < 2000; i++) {
        timer_t timer;
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + i % 8};
        if (timer_create(CLOCK_MONOTONIC, &event, &timer))
            break;
        struct itimerspec often = {{0, 1}, {0, 1}};
        timer_settime(timer, 0, &often, 0);
    }
    struct itimerval often = {{0, 1}, {0, 1}};
    setitimer(ITIMER_REAL, &often, 0);
    union sigval value = {0};
    while (sigqueue(getpid(), SIGRTMIN + 9, value) == 0)
        ;
}

/* Requests that take long. */
static void long_requests(void)
{
    int file = open("sparse", O_CREAT | O_RDWR, 0600), zero = open("/dev/zero", O_RDWR), null = open("/dev/null", O_WRONLY);
    if (ftruncate(file, 1L << 40) == 0)
        fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1, 1L << 39);
    char *memory = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct iovec pieces[1024];
    for (int i = 0; i < 1024; i++)
        pieces[i] = (struct iovec){memory, 1 << 20};
    for (;;) {
        off_t start = 0;
        if (readv(zero, pieces, 1024) < 0)
            break;
        syscall(SYS_sendfile, null, file, &start, 1L << 31);
        syscall(SYS_getrandom, memory, 1 << 20, 0);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
    int processes;
} users[] = {{"pipes", pipes, 8},           {"sockets", sockets, 2},         {"chain", chain, 1},
             {"files", files, 2},           {"directories", directories, 1}, {"attributes", attributes, 1},
             {"locks", locks, 2},           {"regions", regions, 4},         {"descriptors", descriptors, 8},
             {"watches", watches, 2},       {"timers", timers, 2},           {"long", long_requests, 2}};

/* Makes, this number of times, calls that any program may need. All must succeed. */
static int calls_are_served(int times)
{
    int ends[2];
    char byte = 1;
    for (int i = 0; i < times; i++) {
        char *room = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (room == MAP_FAILED || pipe(ends) || write(ends[1], &byte, 1) != 1 || read(ends[0], &byte, 1) != 1)
            return 1;
        memset(room, 1, 1 << 20);
        pid_t child = fork();
        if (child == 0) {
            execl("/bin/true", "true", (char *)0);
            _exit(9);
        }
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child || status)
            return 2;
        munmap(room, 1 << 20);
        close(ends[0]);
        close(ends[1]);
    }
    return 0;
}

static int all_calls_are_served(void)
{
    return calls_are_served(20);
}

static int some_calls_are_served(void)
{
    return calls_are_served(2);
}

static int as_user(int user, int (*work)(void))
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (setgid(user) || setuid(user))
            _exit(99);
        _exit(work());
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Runs one of these after the other. Meanwhile another user's programs work as ever, and
 * afterwards the superuser's. */
static int exhaust(void)
{
    for (unsigned i = 0; i < sizeof users / sizeof *users; i++) {
        pid_t children[16];
        int done[2];
        if (mkdir(users[i].name, 0777) || chmod(users[i].name, 0777) || pipe(done))
            return 1;
        for (int n = 0; n < users[i].processes; n++)
            if ((children[n] = fork()) == 0) {
                close(done[0]);
                fcntl(done[1], F_SETFD, FD_CLOEXEC);
                struct rlimit core = {0, 0};
                setrlimit(RLIMIT_CORE, &core);
                if (chdir(users[i].name))
                    _exit(1);
                become_user();
                users[i].run();
                if (write(done[1], "", 1) != 1)
                    _exit(1);
                for (;;)
                    pause();
            }
        close(done[1]);
        /* Some users have what they want after a while, others are refused or killed: they have
         * some seconds. The last never end. */
        time_t start = time(0), most = users[i].run == long_requests ? 1 : 4;
        fcntl(done[0], F_SETFL, O_NONBLOCK);
        for (int n = 0; n < users[i].processes && time(0) - start <= most;) {
            char byte;
            ssize_t got = read(done[0], &byte, 1);
            if (got == 0)
                break;
            if (got == 1)
                n++;
            usleep(10000);
        }
        int while_full = as_user(1001, some_calls_are_served);
        for (int n = 0; n < users[i].processes; n++)
            kill(children[n], SIGKILL);
        for (int n = 0; n < users[i].processes; n++)
            ended(children[n]);
        close(done[0]);
        char command[64];
        snprintf(command, sizeof command, "rm -rf %s", users[i].name);
        int removed = system(command);
        int both[2];
        int after = pipe(both) == 0 && write(both[1], "x", 1) == 1;
        close(both[0]);
        close(both[1]);
        printf("%s: meanwhile %s, removed %d, afterwards %d\n", users[i].name,
               while_full == 0 ? "served" : "refused", removed == 0, after);
        fflush(stdout);
    }
    return 0;
}

/* The processor time of a process that computes is counted, and limited. */
static int processor_time(void)
{
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {1, 2};
        setrlimit(RLIMIT_CPU, &limit);
        struct rusage usage;
        do
            getrusage(RUSAGE_SELF, &usage);
        while (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec < 100);
        _exit(1);
    }
    int status = ended(child);
    struct rusage children;
    getrusage(RUSAGE_CHILDREN, &children);
    double used = children.ru_utime.tv_sec + children.ru_stime.tv_sec +
                  (children.ru_utime.tv_usec + children.ru_stime.tv_usec) / 1e6;
    printf("ended %d, used %d\n", status == 128 + SIGXCPU, used > 0.9 && used < 4);
    pid_t other = fork();
    if (other == 0) {
        struct timespec own;
        do
            clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
        while (own.tv_sec == 0 && own.tv_nsec < 200000000);
        signal(SIGPROF, SIG_DFL);
        struct itimerval soon = {{0, 0}, {0, 100000}};
        setitimer(ITIMER_PROF, &soon, 0);
        for (;;)
            ;
    }
    printf("profiling %d\n", ended(other) == 128 + SIGPROF);
    return 0;
}

/* Makes and ends processes, threads, memory and files, for ever. */
static void busy(unsigned seed)
{
    static char block[4096];
    for (;;) {
        seed = seed * 1103515245 + 12345;
        pthread_t thread;
        int both[2];
        pid_t child;
        char *memory;
        switch (seed >> 16 & 7) {
        case 0:
        case 1:
            memory = mmap(0, 256 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (memory != MAP_FAILED)
                memset(memory, 1, 256 << 10);
            if (seed >> 20 & 1)
                munmap(memory, 256 << 10);
            break;
        case 2:
        case 3:
            child = fork();
            if (child == 0) {
                memset(block, 2, sizeof block);
                _exit(0);
            }
            if (child > 0)
                waitpid(child, 0, 0);
            break;
        case 4:
            if (posix_spawn(&child, "/usr/bin/true", 0, 0, (char *[]){"true", 0}, (char *[]){0}) == 0)
                waitpid(child, 0, 0);
            break;
        case 5:
            if (pthread_create(&thread, 0, wait_at_gate, 0) == 0)
                pthread_detach(thread);
            break;
        default:
            if (pipe2(both, O_NONBLOCK) == 0 && write(both[1], block, sizeof block) > 0 && seed >> 20 & 1) {
                close(both[0]);
                close(both[1]);
            }
        }
    }
}

/* All memory of processes is freed when they are killed, whatever they do. */
static int leaks(void)
{
    enum { ROUNDS = 4, EACH = 40 };
    unsigned long free_memory[ROUNDS];
    unsigned threads[ROUNDS];
    unsigned seed = 1;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < EACH; i++) {
            seed = seed * 1103515245 + 12345;
            pid_t child = fork();
            if (child == 0) {
                setpgid(0, 0);
                busy(seed);
            }
            setpgid(child, child);
            usleep(seed >> 8 & 0x7fff);
            kill(-child, SIGKILL);
            while (waitpid(-1, 0, 0) > 0)
                ;
        }
        struct sysinfo system;
        sysinfo(&system);
        free_memory[round] = system.freeram;
        threads[round] = system.procs;
    }
    int last = open("/dev/null", O_RDONLY);
    printf("memory is back %d, threads are back %d, descriptors are back %d\n",
           free_memory[ROUNDS - 1] + (2 << 20) >= free_memory[1], threads[ROUNDS - 1] <= threads[0] + 1, last == 3);
    return 0;
}

/* An owner without privileges makes this number of empty files; the test shows what others can
 * still do. */
enum { FILES = 100000 };

static long memory_row(const char *name)
{
    char line[128];
    long value = -1;
    FILE *file = fopen("/proc/meminfo", "r");
    while (value < 0 && file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            value = atol(line + strlen(name));
    if (file)
        fclose(file);
    return value;
}

static int make_files(void)
{
    char name[16];
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "%d", i);
        int file = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);
        if (file < 0) {
            printf("file %d: %s\n", i, strerror(errno));
            fflush(stdout);
            return 1;
        }
        close(file);
    }
    return 0;
}

static int remove_files(void)
{
    char name[16];
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "%d", i);
        if (unlink(name))
            return 1;
    }
    return 0;
}

static int many_files(void)
{
    if (mkdir("/tmp/many", 0777) || chmod("/tmp/many", 0777) || chdir("/tmp/many"))
        return 1;
    long total = memory_row("MemTotal:");
    printf("made: %d\n", as_user(1000, make_files));
    printf("others go on: %d\n", as_user(1001, all_calls_are_served));
    printf("all memory is what it was: %d\n", total > 0 && memory_row("MemTotal:") == total);
    printf("free memory is less: %d\n", memory_row("MemFree:") < total);
    printf("removed: %d\n", as_user(1000, remove_files));
    return chdir("/") || rmdir("/tmp/many");
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {{"threads", threads}, {"places", places}, {"exhaust", exhaust},
                                        {"time", processor_time}, {"leaks", leaks}, {"files", many_files}};
    return RUN_CHOSEN(tests);
}
