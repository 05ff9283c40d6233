/* watched ptrace: a tracer uses the debug registers of its tracee.
 * watched run: does what a debugger watches. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ONE = 0, TWO = 1, FOUR = 3, EIGHT = 2 };
enum { EXECUTE = 0, WRITE = 1, PORT = 2, ACCESS = 3 };
#define ENABLE(number, condition, size) (1UL << 2 * (number) | ((condition) | (size) << 2) * (1UL << (16 + 4 * (number))))
#define OFFSET(number) (offsetof(struct user, u_debugreg) + 8 * (number))

volatile long counter __attribute__((aligned(8)));
volatile long other __attribute__((aligned(8)));

__attribute__((noinline)) void tick(void)
{
    other = other + 1;
}

static void *count(void *argument)
{
    counter = 100;
    return argument;
}

static void run(void)
{
    for (int round = 0; round < 3; round++) {
        counter = counter + 1;
        tick();
    }
    printf("counter %ld, other %ld\n", counter, other);
}

static void traced(void)
{
    int pipes[2];
    long seven = 7;
    pthread_t thread;
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    counter = 5;
    raise(SIGSTOP);
    (void)counter;
    counter = 6;
    raise(SIGSTOP);
    tick();
    tick();
    raise(SIGSTOP);
    /* The system writes to memory that is watched. */
    pipe(pipes);
    write(pipes[1], &seven, 8);
    read(pipes[0], (void *)&counter, 8);
    raise(SIGSTOP);
    if (fork() == 0) {
        counter = 8;
        _exit(counter == 8 ? 0 : 1);
    }
    wait(NULL);
    pthread_create(&thread, NULL, count, NULL);
    pthread_join(thread, NULL);
    raise(SIGSTOP);
    execl("/proc/self/exe", "watched", "run", NULL);
}

static pid_t tracee;

static void show(const char *what)
{
    int status;
    siginfo_t info = { 0 };
    struct user_regs_struct registers;
    pid_t found = waitpid(tracee, &status, __WALL);
    if (found < 0 || !WIFSTOPPED(status)) {
        printf("%s: ended, status %x\n", what, status);
        return;
    }
    ptrace(PTRACE_GETREGS, tracee, 0, &registers);
    ptrace(PTRACE_GETSIGINFO, tracee, 0, &info);
    errno = 0;
    long dr6 = ptrace(PTRACE_PEEKUSER, tracee, OFFSET(6), 0);
    long value = ptrace(PTRACE_PEEKDATA, tracee, &counter, 0);
    int is_trap = WSTOPSIG(status) == SIGTRAP;
    printf("%s: %s, counter %ld", what, strsignal(WSTOPSIG(status)), value);
    if (is_trap) {
        printf(", code %d, at the address %d, status %lx, at tick %d, resumes %d", info.si_code,
               info.si_addr == (void *)registers.rip, dr6, registers.rip == (unsigned long)tick,
               (registers.eflags & 1 << 16) != 0);
    }
    printf("\n");
}

static void set(int number, unsigned long value)
{
    if (ptrace(PTRACE_POKEUSER, tracee, OFFSET(number), value) < 0)
        printf("  register %d: %s\n", number, strerror(errno));
}

static void registers(void)
{
    printf("  registers");
    for (int number = 0; number < 8; number++) {
        unsigned long value = ptrace(PTRACE_PEEKUSER, tracee, OFFSET(number), 0);
        if (value == (unsigned long)&counter)
            printf(" counter");
        else if (value == (unsigned long)tick)
            printf(" tick");
        else
            printf(" %lx", value);
    }
    printf("\n");
}

static void go(const char *what)
{
    ptrace(PTRACE_CONT, tracee, 0, 0);
    show(what);
}

static void trace(void)
{
    int status;
    tracee = fork();
    if (tracee == 0) {
        traced();
        _exit(1);
    }
    show("start");
    registers();
    printf("what is wrong\n");
    set(4, 0);
    set(5, 1);
    errno = 0;
    printf("  an address between two: %ld %s\n", ptrace(PTRACE_PEEKUSER, tracee, OFFSET(0) + 1, 0),
           strerror(errno));
    set(0, (unsigned long)&counter + 4);
    set(7, ENABLE(0, WRITE, EIGHT));
    set(0, (unsigned long)&counter);
    set(7, ENABLE(0, PORT, ONE));
    set(7, ENABLE(0, EXECUTE, TWO));
    set(7, ENABLE(0, WRITE, EIGHT) | ENABLE(1, PORT, ONE));
    registers();

    printf("writes\n");
    set(7, ENABLE(0, WRITE, EIGHT));
    registers();
    go("a write");
    set(6, 0);
    printf("  status %lx\n", ptrace(PTRACE_PEEKUSER, tracee, OFFSET(6), 0));
    go("the end");
    printf("accesses\n");
    set(7, ENABLE(0, ACCESS, EIGHT) | 1 << 8);
    go("a read");
    go("a write");
    go("the end");
    printf("execution\n");
    set(7, ENABLE(0, ACCESS, EIGHT) | ENABLE(2, EXECUTE, ONE));
    set(2, (unsigned long)tick);
    registers();
    go("tick");
    go("again");
    ptrace(PTRACE_SINGLESTEP, tracee, 0, 0);
    show("a step");
    set(7, ENABLE(0, WRITE, EIGHT));
    go("the end");
    printf("the system's own accesses\n");
    go("the end");
    printf("children and threads\n");
    go("one child");
    go("the end");
    registers();
    printf("a new program\n");
    go("executed");
    registers();
    fflush(stdout);
    ptrace(PTRACE_CONT, tracee, 0, 0);
    while (waitpid(tracee, &status, __WALL) == tracee && !WIFEXITED(status))
        ptrace(PTRACE_CONT, tracee, 0, 0);
}

int main(int count, char **arguments)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count > 1 && strcmp(arguments[1], "ptrace") == 0)
        trace();
    else
        run();
    return 0;
}
