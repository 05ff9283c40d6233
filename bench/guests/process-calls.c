/* Costs of system calls about processes, memory, time and signals that calls.c and lmbench.c do
 * not make. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "measure.h"

enum { COUNT = 300, PAGE = 4096, PAGES = 16, FUTEX_WAIT_PRIVATE = 128, FUTEX_WAKE_PRIVATE = 129 };

static char buffer[256];

static void identity(void)
{
    struct utsname names;
    struct rlimit limit;
    struct rusage usage;
    struct tms times_now;
    struct sysinfo system;
    gid_t groups[16];
    cpu_set_t processors;
    CALL("gettid", COUNT, syscall(SYS_gettid));
    REFUSED("a call that does not exist", COUNT, ENOSYS, syscall(1000));
    CALL("dup, close, getpid, getuid, umask, as UnixBench mixes them", COUNT,
         (close(dup(0)), syscall(SYS_getpid), getuid(), umask(022)));
    CALL("getuid", COUNT, syscall(SYS_getuid));
    CALL("getpgid", COUNT, getpgid(0));
    CALL("getgroups", COUNT, getgroups(16, groups));
    CALL("setresuid to the same", COUNT, syscall(SYS_setresuid, -1, -1, -1));
    CALL("umask", COUNT, umask(022));
    CALL("uname", COUNT, uname(&names));
    CALL("sysinfo", COUNT, sysinfo(&system));
    CALL("getrlimit", COUNT, getrlimit(RLIMIT_NOFILE, &limit));
    CALL("getrusage", COUNT, getrusage(RUSAGE_SELF, &usage));
    CALL("times", COUNT, times(&times_now));
    CALL("prctl PR_GET_NAME", COUNT, prctl(PR_GET_NAME, buffer));
    CALL("getrandom 16 bytes", COUNT, getrandom(buffer, 16, 0));
    CALL("getpriority", COUNT, getpriority(PRIO_PROCESS, 0));
    CALL("sched_getaffinity", COUNT, syscall(SYS_sched_getaffinity, 0, sizeof processors, &processors));
    REFUSED("wait4 without a child", COUNT, ECHILD, wait4(-1, 0, WNOHANG, 0));
}

static void time_calls(void)
{
    struct timespec present, resolution, none = {0, 0};
    struct timeval day;
    struct itimerval later = {.it_value = {1000, 0}}, never = {{0, 0}, {0, 0}};
    CALL("clock_gettime, as a call", COUNT, syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &present));
    CALL("clock_gettime, as the C library does", COUNT, clock_gettime(CLOCK_MONOTONIC, &present));
    CALL("gettimeofday, as the C library does", COUNT, gettimeofday(&day, 0));
    CALL("time, as the C library does", COUNT, time(0));
    CALL("clock_getres, as the C library does", COUNT, clock_getres(CLOCK_MONOTONIC, &resolution));
    CALL("getcpu, as the C library does", COUNT, sched_getcpu());
    CALL("clock_gettime, of the process", COUNT, syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &present));
    /* Linux adds 50 microseconds to each sleep unless this switches it off; idle time counts as
     * instructions. A system that adds nothing may refuse this call. */
    prctl(PR_SET_TIMERSLACK, 1);
    CALL("nanosleep of nothing, without slack", COUNT, nanosleep(&none, 0));
    CALL("sched_yield, alone", COUNT, sched_yield());
    CALL("setitimer, set and stopped", COUNT,
         (setitimer(ITIMER_REAL, &later, 0) | setitimer(ITIMER_REAL, &never, 0)));
    timer_t timer;
    must(timer_create(CLOCK_MONOTONIC, &(struct sigevent){.sigev_notify = SIGEV_NONE}, &timer), "timer_create");
    CALL("timer_settime", COUNT, timer_settime(timer, 0, &(struct itimerspec){.it_value = {1000, 0}}, 0));
    timer_delete(timer);
}

static void memory_calls(void)
{
    char *memory = mmap(0, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int page = 0; page < PAGES; page++)
        memory[page * PAGE] = 1;
    CALL("mprotect a page, and back", COUNT,
         (mprotect(memory, PAGE, PROT_READ) | mprotect(memory, PAGE, PROT_READ | PROT_WRITE)));
    CALL("mprotect 16 pages, and back", COUNT,
         (mprotect(memory, PAGES * PAGE, PROT_READ) | mprotect(memory, PAGES * PAGE, PROT_READ | PROT_WRITE)));
    CALL("madvise MADV_DONTNEED of a page, and its fault", COUNT,
         (memory[0] = 1, madvise(memory, PAGE, MADV_DONTNEED)));
    CALL("madvise MADV_WILLNEED", COUNT, madvise(memory, PAGE, MADV_WILLNEED));
    CALL("mincore", COUNT, mincore(memory, PAGE, (unsigned char *)buffer));
    CALL("msync of a page", COUNT, msync(memory, PAGE, MS_SYNC));
    CALL("mlock and munlock a page", COUNT, (mlock(memory, PAGE) | munlock(memory, PAGE)));
    CALL("mremap, larger and smaller", COUNT, ({
             char *larger = mremap(memory, PAGES * PAGE, 2 * PAGES * PAGE, MREMAP_MAYMOVE);
             if (larger != MAP_FAILED)
                 memory = larger;
             (long)(larger == MAP_FAILED ? larger : mremap(memory, 2 * PAGES * PAGE, PAGES * PAGE, 0));
         }));
    munmap(memory, PAGES * PAGE);
    long end = syscall(SYS_brk, 0);
    CALL("brk, a page more and less", COUNT, (syscall(SYS_brk, end + PAGE) == end ? -1 : syscall(SYS_brk, end)));
    CALL("shm_open, mmap, munmap, shm_unlink", 100, ({
             int shared = shm_open("/shared", O_RDWR | O_CREAT, 0600);
             int result = ftruncate(shared, PAGE);
             void *mapped = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
             *(volatile char *)mapped = 1;
             munmap(mapped, PAGE);
             close(shared);
             result | shm_unlink("/shared");
         }));
    int segment = shmget(IPC_PRIVATE, PAGE, 0600);
    CALL("shmat and shmdt", COUNT, ({
             void *attached = shmat(segment, 0, 0);
             (long)attached == -1 ? -1 : shmdt(attached);
         }));
    shmctl(segment, IPC_RMID, 0);
}

static void signals(void)
{
    sigset_t set, before;
    stack_t stack;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CALL("sigprocmask", COUNT, sigprocmask(SIG_BLOCK, &set, &before));
    CALL("sigpending", COUNT, sigpending(&before));
    CALL("sigtimedwait of a signal that is pending", COUNT,
         (kill(getpid(), SIGUSR1) == -1 ? -1 : sigtimedwait(&set, 0, &(struct timespec){0, 0})));
    sigprocmask(SIG_UNBLOCK, &set, 0);
    signal(SIGUSR1, SIG_IGN);
    CALL("kill of itself, ignored", COUNT, kill(getpid(), SIGUSR1));
    signal(SIGUSR1, SIG_DFL);
    CALL("sigaltstack, asked", COUNT, sigaltstack(0, &stack));
}

static void *nothing(void *argument)
{
    return argument;
}

static int turn;

/* Waits for its turn, and gives it back, as two threads do that contend for a lock. */
static void *partner(void *argument)
{
    for (;;) {
        while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) == 0)
            syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
        if (turn == 2)
            return argument;
        __atomic_store_n(&turn, 0, __ATOMIC_RELEASE);
        syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
    }
}

static void hand_over(void)
{
    __atomic_store_n(&turn, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
    while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) == 1)
        syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, 1, 0, 0, 0);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int whose;

/* Waits until it is the turn of `own`, and gives the turn to `next`. */
static void take_turn(int own, int next)
{
    pthread_mutex_lock(&lock);
    while (whose != own && whose != 2)
        pthread_cond_wait(&changed, &lock);
    if (whose != 2)
        whose = next;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void *takes_turns(void *argument)
{
    while (whose != 2)
        take_turn(1, 0);
    return argument;
}

static void conditions(void)
{
    pthread_t thread;
    whose = 0;
    must(pthread_create(&thread, 0, takes_turns, 0) == 0 ? 0 : -1, "pthread_create");
    MEASURE("condition variable: to another thread and back", 200, (take_turn(0, 1)));
    pthread_mutex_lock(&lock);
    whose = 2;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, 0);
}

static void threads(void)
{
    static int word;
    pthread_t thread;
    CALL("futex: wake where nothing waits", COUNT, syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0));
    REFUSED("futex: wait for what has changed", COUNT, EAGAIN,
            syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, 0, 0, 0));
    must(pthread_create(&thread, 0, partner, 0) == 0 ? 0 : -1, "pthread_create");
    MEASURE("futex: to another thread and back", 200, hand_over());
    __atomic_store_n(&turn, 2, __ATOMIC_RELEASE);
    syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
    pthread_join(thread, 0);
    conditions();
    CALL("pthread_create and pthread_join", 100,
         (pthread_create(&thread, 0, nothing, 0) | pthread_join(thread, 0)) == 0 ? 0 : -1);
}

int main(void)
{
    identity();
    time_calls();
    memory_calls();
    signals();
    threads();
    return 0;
}
