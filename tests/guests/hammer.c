/* hammer PROCESSES CALLS: each process makes random system calls with hostile arguments, as a
 * user without rights, in a directory of its own. It does not matter how these processes end;
 * the test is that the parent and the system go on. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t state;

static uint64_t random_word(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static char *page, *read_only, *edge;

static long argument(void)
{
    switch (random_word() % 20) {
    case 0: return 0;
    case 1: return -1;
    case 2: return (long)(random_word() % 10);
    case 3: return (long)(random_word() % 4096);
    case 4: return (long)page;
    case 5: return (long)(page + random_word() % 4096);
    case 6: return (long)(edge - random_word() % 64);
    case 7: return (long)read_only;
    case 8: return 0x7fffffffe000;
    case 9: return (long)0x8000000000000000;
    case 10: return (long)0xffff800000000000;
    case 11: return (long)0xffffffff80000000;
    case 12: return 0x7ffffffff000 - (long)(random_word() % 64);
    case 13: return (long)random_word();
    case 14: return (long)(random_word() & 0xffffffff);
    case 15: return 1L << (random_word() % 64);
    case 16: return (long)&argument;
    case 17: return AT_FDCWD;
    case 18: return -(long)(random_word() % 4096);
    default: return (long)(random_word() % 64);
    }
}

/* Calls that would make the test itself end, stop or wait for ever, or reach other processes. */
static int excluded(long number)
{
    static const short list[] = {
        SYS_rt_sigreturn, SYS_pause, SYS_fork, SYS_vfork, SYS_clone, SYS_clone3, SYS_kill, SYS_tkill, SYS_tgkill,
        SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_rt_sigsuspend, SYS_rt_sigtimedwait, SYS_exit, SYS_exit_group,
        SYS_reboot, SYS_vhangup, SYS_setsid, SYS_ptrace, SYS_alarm, SYS_setitimer, SYS_setrlimit, SYS_prlimit64,
        SYS_pidfd_send_signal, SYS_setpgid, SYS_sched_setscheduler, SYS_sched_setattr, SYS_sched_setparam, SYS_nanosleep,
        SYS_clock_nanosleep, SYS_seccomp, SYS_timer_create, SYS_timer_settime, SYS_wait4, SYS_waitid,
    };
    for (unsigned i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i] == number)
            return 1;
    return 0;
}

static void hammer(int seed, int calls)
{
    state = 0x9e3779b97f4a7c15u * (uint64_t)(seed + 1);
    struct rlimit processes = {20, 20}, size = {1 << 20, 1 << 20}, time = {20, 20}, core = {0, 0};
    setrlimit(RLIMIT_NPROC, &processes);
    setrlimit(RLIMIT_FSIZE, &size);
    setrlimit(RLIMIT_CPU, &time);
    setrlimit(RLIMIT_CORE, &core);
    char name[32];
    snprintf(name, sizeof name, "hammer%d", seed);
    if (mkdir(name, 0777) || chdir(name) || chown(".", 1000, 1000) || setgid(1000) || setuid(1000))
        _exit(1);
    /* The attacker has neither the test's standard descriptors nor a terminal. */
    for (int descriptor = 0; descriptor < 3; descriptor++)
        dup2(open("/dev/null", O_RDWR), descriptor);
    page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page + 4096, 4096);
    edge = page + 4096;
    read_only = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < calls; i++) {
        if (i % 64 == 0) {
            /* A blocking call is interrupted sooner or later. */
            alarm(1);
        }
        if (i % 16 == 0)
            for (int n = 0; n < 4096; n++)
                page[n] = (char)random_word();
        long number = (long)(random_word() % 462);
        if (random_word() % 50 == 0)
            number = (long)random_word();
        if (!excluded(number))
            syscall(number, argument(), argument(), argument(), argument(), argument(), argument());
    }
    _exit(0);
}

static void ignore(int signal)
{
    (void)signal;
}

int main(int argc, char **argv)
{
    int processes = argc > 2 ? atoi(argv[1]) : 1, calls = argc > 2 ? atoi(argv[2]) : 1000;
    int ended = 0;
    for (int i = 0; i < processes; i++) {
        pid_t child = fork();
        if (child < 0) {
            perror("fork");
            return 1;
        }
        if (child == 0) {
            struct sigaction action = {.sa_handler = ignore};
            sigaction(SIGALRM, &action, 0);
            hammer(i, calls);
        }
        /* The process may have stopped itself, blocked all signals or wait for ever: it has some
         * seconds. */
        int status, patience = 1000;
        while (waitpid(child, &status, WNOHANG) == 0) {
            if (patience-- <= 0)
                kill(child, SIGKILL);
            usleep(10000);
        }
        ended += WIFEXITED(status) || WIFSIGNALED(status);
    }
    printf("%d of %d ended\n", ended, processes);
    return 0;
}
