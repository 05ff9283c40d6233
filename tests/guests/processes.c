/* processes TEST: many processes, and the resources that they run out of. The output does not
 * depend on their order. */
#define _GNU_SOURCE
#include "chosen.h"
#include "ended.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t got[65], nested, depth;

static void count(int signal)
{
    got[signal]++;
    if (depth++ > 0)
        nested = 1;
    depth--;
}

static void install(int signal, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigfillset(&action.sa_mask);
    sigaction(signal, &action, 0);
}

/* Eight children send signals while timers run and the parent computes with floating point, which
 * must stay right. */
static int signals(void)
{
    install(SIGUSR1, count);
    install(SIGALRM, count);
    for (int i = SIGRTMIN; i < SIGRTMIN + 8; i++)
        install(i, count);
    struct itimerval often = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &often, 0);
    pid_t parent = getpid(), children[8];
    for (int i = 0; i < 8; i++)
        if ((children[i] = fork()) == 0) {
            for (int n = 0; n < 500; n++) {
                union sigval value = {.sival_int = n};
                while (sigqueue(parent, SIGRTMIN + i, value) != 0)
                    usleep(100);
                kill(parent, SIGUSR1);
            }
            _exit(0);
        }
    double sum = 0;
    for (int round = 0; round < 200; round++) {
        double x = 0;
        for (int i = 1; i <= 10000; i++)
            x += 1.0 / i;
        sum += x;
    }
    int failed = 0, queued = 0;
    for (int i = 0; i < 8; i++)
        failed += ended(children[i]) != 0;
    struct itimerval never = {0};
    setitimer(ITIMER_REAL, &never, 0);
    for (int i = SIGRTMIN; i < SIGRTMIN + 8; i++)
        queued += got[i];
    printf("queued %d, some %d, timer %d, nested %d, failed %d, sum %.6f\n", queued, got[SIGUSR1] > 0,
           got[SIGALRM] > 0, nested, failed, sum);
    /* A blocked signal waits; a default one ends the process; stop and continue. */
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, 0);
    int before = got[SIGUSR1];
    raise(SIGUSR1);
    printf("blocked %d", got[SIGUSR1] == before);
    sigprocmask(SIG_UNBLOCK, &set, 0);
    printf(", then %d\n", got[SIGUSR1] == before + 1);
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    kill(child, SIGSTOP);
    int status;
    waitpid(child, &status, WUNTRACED);
    printf("stopped %d", WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    kill(child, SIGCONT);
    waitpid(child, &status, WCONTINUED);
    printf(", continued %d", WIFCONTINUED(status));
    kill(child, SIGHUP);
    printf(", ended %d\n", ended(child));
    return 0;
}

/* Five hundred processes at the same time, each with its own content of memory and of a pipe. */
static int forks(void)
{
    int gate[2], answers[2];
    if (pipe(gate) || pipe(answers))
        return 1;
    char *memory = malloc(65536);
    memset(memory, 'x', 65536);
    static pid_t children[500];
    for (int i = 0; i < 500; i++) {
        children[i] = fork();
        if (children[i] < 0) {
            printf("fork %d: %s\n", i, strerror(errno));
            return 1;
        }
        if (children[i] == 0) {
            close(gate[1]);
            memset(memory, i & 127, 65536);
            char byte;
            if (read(gate[0], &byte, 1) != 0)
                _exit(1);
            long sum = 0;
            for (int n = 0; n < 65536; n++)
                sum += memory[n];
            if (write(answers[1], &sum, sizeof sum) != sizeof sum)
                _exit(1);
            _exit(i & 127);
        }
    }
    close(gate[1]);
    long total = 0, sum;
    for (int i = 0; i < 500; i++)
        if (read(answers[0], &sum, sizeof sum) == sizeof sum)
            total += sum;
    int right = 0;
    for (int i = 0; i < 500; i++)
        right += ended(children[i]) == (i & 127);
    printf("sum %ld, statuses %d, memory %d\n", total, right, memory[0] == 'x' && memory[65535] == 'x');
    return 0;
}

/* A process of a user with a limit of 60 processes forks as fast as it can: it gets EAGAIN, and all
 * other users' processes go on. */
static int bomb(void)
{
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {60, 60};
        setrlimit(RLIMIT_NPROC, &limit);
        if (setgid(1000) || setuid(1000))
            _exit(1);
        setpgid(0, 0);
        for (int i = 0; i < 2000; i++) {
            pid_t pid = fork();
            if (pid < 0 && errno != EAGAIN)
                _exit(2);
            if (pid == 0)
                for (;;)
                    if (fork() < 0)
                        usleep(1000);
            if (pid < 0)
                _exit(0);
        }
        _exit(3);
    }
    int status = ended(child);
    pid_t other = fork();
    if (other == 0)
        _exit(5);
    printf("refused %d, others %d", status == 0, ended(other));
    fflush(stdout);
    /* Kills with the user's own identity: everything that this user may signal ends. */
    pid_t killer = fork();
    if (killer == 0) {
        if (setgid(1000) || setuid(1000))
            _exit(1);
        for (int i = 0; i < 20; i++) {
            kill(-1, SIGKILL);
            usleep(20000);
        }
        _exit(0);
    }
    printf(", killer %d", ended(killer));
    fflush(stdout);
    pid_t last = fork();
    if (last == 0) {
        if (setgid(1000) || setuid(1000))
            _exit(1);
        /* With room for one more process this one can fork once all others are gone, however long
         * they take to end. */
        struct rlimit limit = {2, 2};
        setrlimit(RLIMIT_NPROC, &limit);
        for (;;) {
            pid_t more = fork();
            if (more == 0)
                _exit(0);
            if (more > 0)
                _exit(ended(more) == 0 ? 7 : 8);
            usleep(20000);
        }
    }
    printf(", nothing left %d\n", ended(last));
    return 0;
}

static int descriptors(void)
{
    struct rlimit limit = {100, 100};
    setrlimit(RLIMIT_NOFILE, &limit);
    int opened = 0, descriptor;
    while ((descriptor = open("/dev/null", O_RDONLY)) >= 0)
        opened++;
    printf("opened %d, then %s", opened, strerror(errno));
    int both[2];
    printf(", pipe %s", pipe(both) ? strerror(errno) : "made");
    printf(", dup2 beyond %s", dup2(0, 100) < 0 ? strerror(errno) : "made");
    close(50);
    printf(", again %d\n", dup(0));
    return 0;
}

/* A process that takes all memory is killed or refused; its parent goes on. */
static int memory(void)
{
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {64 << 20, 64 << 20};
        setrlimit(RLIMIT_AS, &limit);
        size_t taken = 0;
        while (mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
            taken++;
        _exit(errno == ENOMEM && taken > 40 && taken < 64 ? 4 : 1);
    }
    printf("limited %d", ended(child));
    fflush(stdout);
    child = fork();
    if (child == 0) {
        /* If the system kills a process because memory is short, it shall be this one. A system
         * without an OOM killer has no such file, and then nothing is lost. */
        int file = open("/proc/self/oom_score_adj", O_WRONLY);
        ssize_t unimportant = write(file, "1000", 4);
        (void)unimportant;
        for (;;) {
            char *more = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (more == MAP_FAILED)
                raise(SIGKILL);
            memset(more, 1, 1 << 20);
        }
    }
    printf(", taker ended %d", ended(child));
    fflush(stdout);
    child = fork();
    if (child == 0) {
        char *some = malloc(10 << 20);
        _exit(some && memset(some, 1, 10 << 20) == some ? 6 : 1);
    }
    printf(", memory is back %d\n", ended(child));
    return 0;
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {{"signals", signals}, {"forks", forks}, {"bomb", bomb}, {"descriptors", descriptors}, {"memory", memory}};
    setvbuf(stdout, 0, _IOFBF, 4096);
    return RUN_CHOSEN(tests);
}
