/* killed: processes end, whatever they do and whatever state their threads are in. On
 * Macadamia's kernel it also makes states that no system call of Linux leads to: halted, in an
 * IPC, out of a system call that goes on. On another kernel the attempt faults, and the rest of
 * the test is the same. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

typedef uint64_t word;

enum { IPC = 0x1c0, EXCHANGE_REGISTERS = 0x1d8 };
enum { STOP = 0x301, RESUME = 0x300, ABORT = 0x206 };

static word *const kip = (word *)0x7fff80000000;
static __thread sigjmp_buf back;
/* Words by which the threads of a process tell each other, and the process tells the test, how
 * far they are. */
static volatile word partner;
static volatile int arrived;
static int ready[2];
static const char *self;
static volatile word nowhere = 8;

static word *utcb(void)
{
    word *mr;
    __asm__ volatile("movq %%gs:0, %0" : "=r"(mr));
    return mr;
}

static word own(void) { return utcb()[-15]; }

/* Every call has its arguments in these registers, whichever it is. */
static void call(int entry, word rdi, word rsi, word rdx, word r8_, word r9_, word rax)
{
    register word r8 __asm__("r8") = r8_, r9 __asm__("r9") = r9_;
    __asm__ volatile("push %%rbp; push %%rbx; sub $128, %%rsp; call *%%rcx; add $128, %%rsp; pop %%rbx; pop %%rbp"
                     : "+D"(rdi), "+S"(rsi), "+d"(rdx), "+r"(r8), "+r"(r9), "+a"(rax)
                     : "c"(kip[entry / 8])
                     : "r10", "r11", "r12", "r13", "r14", "r15", "memory");
}

static void exchange(word thread, word control) { call(EXCHANGE_REGISTERS, 0, control, 0, 0, 0, thread); }

static void fault(int signal)
{
    (void)signal;
    siglongjmp(back, 1);
}

/* Calls `what`, which may fail with a signal. */
static void attempt(void (*what)(void))
{
    if (sigsetjmp(back, 1) == 0)
        what();
}

static void tell(void)
{
    if (write(ready[1], "", 1) != 1)
        _exit(3);
}

static void stay(void)
{
    for (;;)
        pause();
}

static void halt_self(void) { exchange(own(), STOP); }
static void halt_partner(void) { exchange(partner, STOP); }
static void abort_partner(void) { exchange(partner, ABORT); }
static void say_who(void) { partner = own(); }
static void wait_for_no_thread(void) { call(IPC, (word)utcb(), 0, own(), 0, 0, 0); }
static void send_to_partner(void) { call(IPC, (word)utcb(), partner, 0, 0, 0, 0); }

/* Makes threads that have not been started, or have ended, and are kept for the next that is
 * created. */
static void resume_others(void)
{
    for (word number = 0; number < 4096; number++)
        for (word version = 1; version <= 3; version++)
            if ((number << 32 | version) != own())
                exchange(number << 32 | version, RESUME | ABORT);
}

static void *halts(void *unused)
{
    arrived = 1;
    attempt(halt_self);
    stay();
    return unused;
}

static void *is_in_ipc(void *unused)
{
    attempt(say_who);
    arrived = 1;
    attempt(wait_for_no_thread);
    stay();
    return unused;
}

static void *reads(void *unused)
{
    int ends[2];
    char byte;
    attempt(say_who);
    if (pipe(ends) != 0)
        _exit(4);
    arrived = 1;
    for (;;)
        if (read(ends[0], &byte, 1) == 0)
            return unused;
}

static void *computes(void *unused)
{
    attempt(say_who);
    for (arrived = 1;;)
        __asm__ volatile("");
    return unused;
}

static void *ends(void *unused) { return unused; }

static void beside(void *(*other)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, 0, other, 0) != 0)
        _exit(5);
    while (!arrived)
        sched_yield();
    for (int i = 0; i < 100; i++)
        sched_yield();
}

/* Activities of a process, which is then killed, or ends by itself. */
static void halted(void) { tell(), attempt(halt_self), stay(); }
static void in_ipc(void) { tell(), attempt(wait_for_no_thread), stay(); }
static void thread_halted(void) { beside(computes), attempt(halt_partner), tell(), stay(); }
static void halted_in_ipc(void) { beside(is_in_ipc), attempt(halt_partner), tell(), stay(); }
static void halted_in_call(void) { beside(reads), attempt(halt_partner), tell(), stay(); }
static void sending(void) { beside(computes), tell(), attempt(send_to_partner), stay(); }
static void out_of_call(void)
{
    beside(reads);
    for (int i = 0; i < 100; i++)
        attempt(abort_partner);
    tell(), stay();
}
static void executes(void) { beside(halts), execl(self, self, "nothing", (char *)0); }
static void executes_in_ipc(void) { beside(is_in_ipc), attempt(halt_partner), execl(self, self, "nothing", (char *)0); }
static void exits(void) { beside(halts), exit(7); }
static void exits_out_of_call(void) { beside(reads), attempt(abort_partner), exit(8); }
static void starts_others(void)
{
    pthread_t thread;
    if (pthread_create(&thread, 0, ends, 0) != 0 || pthread_join(thread, 0) != 0)
        _exit(5);
    attempt(resume_others), exit(9);
}
static void computing(void)
{
    tell();
    for (;;)
        __asm__ volatile("");
}
static void stopped(void) { tell(), raise(SIGSTOP), stay(); }
static void traced(void) { ptrace(PTRACE_TRACEME, 0, 0, 0), tell(), raise(SIGSTOP), stay(); }
static void masked(void)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, 0);
    tell(), stay();
}
static void again(int signal) { (void)signal; }
static void faulting(void)
{
    signal(SIGSEGV, again);
    tell();
    *(volatile char *)nowhere = 1;
}
static void executing(void)
{
    /* The next program of the process goes on with it. */
    char number[16];
    snprintf(number, sizeof number, "%d", ready[1]);
    execl(self, self, "executing", number, (char *)0);
}
static void creating(void)
{
    tell();
    for (;;) {
        pthread_t thread;
        if (pthread_create(&thread, 0, ends, 0) == 0)
            pthread_join(thread, 0);
    }
}
static void waiting_for_vfork(void)
{
    if (vfork() == 0) {
        tell();
        stay();
    }
    stay();
}

static const struct state {
    const char *name;
    void (*run)(void);
    int ends_itself;
} states[] = {
    {"computing", computing, 0},
    {"stopped", stopped, 0},
    {"traced", traced, 0},
    {"with all signals blocked", masked, 0},
    {"faulting", faulting, 0},
    {"executing", executing, 0},
    {"creating threads", creating, 0},
    {"waiting for vfork", waiting_for_vfork, 0},
    {"halted", halted, 0},
    {"in an IPC", in_ipc, 0},
    {"sending", sending, 0},
    {"a thread halted", thread_halted, 0},
    {"a thread halted in an IPC", halted_in_ipc, 0},
    {"a thread halted in a system call", halted_in_call, 0},
    {"a thread out of its system call", out_of_call, 0},
    {"exec beside a halted thread", executes, 1},
    {"exec beside one halted in an IPC", executes_in_ipc, 1},
    {"exit beside a halted thread", exits, 1},
    {"exit beside one out of its system call", exits_out_of_call, 1},
    {"threads started that are none", starts_others, 1},
};

/* How a child has ended: its status, or 128 and its signal. */
static int ended(pid_t child)
{
    int status = 0;
    /* A traced child is reported as stopped before it ends. */
    do
        if (waitpid(child, &status, 0) < 0 && errno != EINTR)
            return -1;
    while (!WIFEXITED(status) && !WIFSIGNALED(status));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void try(const struct state *state)
{
    char byte;
    if (pipe(ready) != 0)
        exit(2);
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        struct sigaction action = {.sa_handler = fault, .sa_flags = SA_NODEFER};
        sigaction(SIGSEGV, &action, 0);
        sigaction(SIGBUS, &action, 0);
        state->run();
        _exit(6);
    }
    if (!state->ends_itself) {
        if (read(ready[0], &byte, 1) != 1)
            exit(2);
        for (int i = 0; i < 100; i++)
            sched_yield();
        kill(child, SIGKILL);
        /* The processes that the child has started are in its group, or were. */
        kill(-child, SIGKILL);
    }
    int status = ended(child);
    printf("%s: %d%s\n", state->name, status, kill(child, 0) == 0 ? ", and still there" : "");
    fflush(stdout);
    close(ready[0]);
    close(ready[1]);
}

int main(int argc, char **argv)
{
    self = argv[0];
    if (argc == 2)
        return 0;
    if (argc == 3) {
        ready[1] = atoi(argv[2]);
        tell();
        executing();
    }
    for (unsigned i = 0; i < sizeof states / sizeof *states; i++)
        try(&states[i]);
    return 0;
}
