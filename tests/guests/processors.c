/* Several processors: threads and processes that run at the same time, and calls of one about
 * others while these run elsewhere. With one processor they run in turns; the output is the
 * same. */
#define _GNU_SOURCE
#include "chosen.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 8, PAGE = 4096 };

/* Processors that the program may use, at most MOST. */
static int processors[MOST], count;

static void must(int holds, const char *what)
{
    if (!holds) {
        printf("not so: %s\n", what);
        exit(1);
    }
}

static void find_processors(void)
{
    cpu_set_t set;
    must(sched_getaffinity(0, sizeof set, &set) == 0, "sched_getaffinity");
    for (int i = 0; i < CPU_SETSIZE && count < MOST; i++)
        if (CPU_ISSET(i, &set))
            processors[count++] = i;
}

static int pin(pid_t thread, int index)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processors[index % count], &set);
    return sched_setaffinity(thread, sizeof set, &set);
}

static void spin(int rounds)
{
    for (volatile int i = 0; i < rounds; i++)
        ;
}

static pthread_t start(void *(*run)(void *), long argument)
{
    pthread_t thread;
    must(pthread_create(&thread, 0, run, (void *)argument) == 0, "pthread_create");
    return thread;
}

static int status_of(pid_t child)
{
    int status = 0;
    must(waitpid(child, &status, 0) == child, "waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* --- Where threads run */

static atomic_int seen, told, done;

static void *look_around(void *argument)
{
    (void)argument;
    told = (int)syscall(SYS_gettid);
    while (!done)
        atomic_fetch_or(&seen, 1 << sched_getcpu());
    return 0;
}

static int affinity(void)
{
    cpu_set_t set;
    must(sysconf(_SC_NPROCESSORS_ONLN) >= count, "all processors are counted");
    for (int i = 0; i < count; i++) {
        unsigned here = 99;
        must(pin(0, i) == 0, "sched_setaffinity");
        must(sched_getcpu() == processors[i], "sched_getcpu after a move");
        must(syscall(SYS_getcpu, &here, 0, 0) == 0 && (int)here == processors[i], "getcpu after a move");
        must(sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1, "the mask is kept");
        pid_t child = fork();
        if (child == 0)
            _exit(sched_getaffinity(0, sizeof set, &set) || CPU_COUNT(&set) != 1 || sched_getcpu() != processors[i]);
        must(status_of(child) == 0, "a child inherits the mask");
        child = fork();
        if (child == 0)
            execl("/proc/self/exe", "processors", "is-pinned", (char *)0);
        must(status_of(child) == 0, "a program inherits the mask");
    }
    CPU_ZERO(&set);
    must(sched_setaffinity(0, sizeof set, &set) == -1 && errno == EINVAL, "no processor at all");
    CPU_SET(1000, &set);
    must(sched_setaffinity(0, sizeof set, &set) == -1 && errno == EINVAL, "no processor that exists");
    must(sched_setaffinity(1 << 21, sizeof set, &set) == -1 && errno == ESRCH, "no thread");
    /* A thread that never enters the kernel is moved all the same. */
    pthread_t thread = start(look_around, 0);
    while (!told)
        sched_yield();
    for (int round = 0; round < 4 * count; round++) {
        must(pin(told, round) == 0, "sched_setaffinity of another");
        seen = 0;
        while (!(seen & 1 << processors[round % count]))
            sched_yield();
        seen = 0;
        spin(100000);
        must((seen & ~(1 << processors[round % count])) == 0, "it stays");
    }
    done = 1;
    pthread_join(thread, 0);
    puts("affinity is kept");
    return 0;
}

static int is_pinned(void)
{
    return count != 1 || sched_getcpu() != processors[0];
}

/* Threads without an affinity are spread over all processors. */
static int spread(void)
{
    pthread_t threads[MOST];
    int all = 0;
    for (int i = 0; i < count; i++) {
        all |= 1 << processors[i];
        threads[i] = start(look_around, i);
    }
    while (seen != all)
        usleep(1000);
    done = 1;
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], 0);
    puts("every processor is used");
    return 0;
}

/* --- What each processor has done */

enum { USER, NICE, SYSTEM, IDLE, COLUMNS };

/* The line of a processor in /proc/stat, or of all together (-1). */
static void read_line(int processor, long columns[COLUMNS])
{
    char line[200], name[20], rest[200];
    snprintf(name, sizeof name, processor < 0 ? "cpu" : "cpu%d", processor);
    FILE *file = fopen("/proc/stat", "r");
    must(file != 0, "/proc/stat");
    int found = 0;
    while (!found && fgets(line, sizeof line, file)) {
        char word[20];
        found = sscanf(line, "%19s %199[^\n]", word, rest) == 2 && strcmp(word, name) == 0;
    }
    fclose(file);
    must(found, "every processor has a line");
    must(sscanf(rest, "%ld %ld %ld %ld", &columns[USER], &columns[NICE], &columns[SYSTEM], &columns[IDLE]) == COLUMNS,
         "its columns");
}

static int last_processor(void)
{
    char text[1000];
    FILE *file = fopen("/proc/self/stat", "r");
    must(file != 0 && fgets(text, sizeof text, file) != 0, "/proc/self/stat");
    fclose(file);
    char *at = strrchr(text, ')');
    for (int field = 2; field < 39; field++)
        at = strchr(at + 1, ' ');
    return atoi(at);
}

static int times(void)
{
    for (int i = 0; i < count; i++) {
        long before[MOST][COLUMNS], after[MOST][COLUMNS], others = 0;
        for (int j = 0; j < count; j++)
            read_line(processors[j], before[j]);
        pid_t child = fork();
        if (child == 0) {
            struct timespec used = { 0, 0 };
            must(pin(0, i) == 0, "sched_setaffinity");
            while (used.tv_sec == 0 && used.tv_nsec < 400000000) {
                spin(100000);
                clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
            }
            _exit(last_processor() != processors[i]);
        }
        must(status_of(child) == 0, "/proc/self/stat says where it runs");
        for (int j = 0; j < count; j++) {
            read_line(processors[j], after[j]);
            others += j == i ? 0 : after[j][USER] - before[j][USER];
        }
        must(after[i][USER] - before[i][USER] >= 25, "whoever computes is seen at its processor");
        must(others < 15, "and at no other");
    }
    long before[COLUMNS], after[COLUMNS];
    for (int i = 0; i < count; i++) {
        read_line(processors[i], before);
        usleep(300000);
        read_line(processors[i], after);
        must(after[IDLE] - before[IDLE] >= 15, "a processor with nothing to do is idle");
    }
    puts("each processor's time is told apart");
    return 0;
}

/* --- Memory that is shared */

struct shared {
    pthread_mutex_t mutex;
    long counter;
    atomic_long atomic;
    atomic_int turn;
};

static struct shared *share(void)
{
    struct shared *shared = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(shared != MAP_FAILED, "mmap");
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->mutex, &attributes);
    return shared;
}

static int shared_memory(void)
{
    struct shared *shared = share();
    pid_t children[2 * MOST];
    for (int i = 0; i < 2 * count; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            for (int round = 0; round < 500; round++) {
                pthread_mutex_lock(&shared->mutex);
                shared->counter++;
                pthread_mutex_unlock(&shared->mutex);
                shared->atomic++;
            }
            _exit(0);
        }
    }
    for (int i = 0; i < 2 * count; i++)
        must(status_of(children[i]) == 0, "a child ends");
    must(shared->counter == 1000L * count && shared->atomic == 1000L * count, "no count is lost");
    puts("nothing is lost between processes");
    return 0;
}

static void sleep_until_turn(atomic_int *turn, int mine)
{
    for (int now; (now = *turn) % 2 != mine;)
        syscall(SYS_futex, turn, FUTEX_WAIT, now, 0, 0, 0);
}

static int turns(void)
{
    struct shared *shared = share();
    enum { ROUNDS = 320 };
    pid_t child = fork();
    for (int round = 0; round < ROUNDS; round++) {
        /* The two threads meet on all pairs of processors. */
        if (round % 20 == 0)
            must(pin(0, child ? round / 20 : round / 20 / count + 1) == 0, "sched_setaffinity");
        sleep_until_turn(&shared->turn, child != 0);
        shared->turn++;
        syscall(SYS_futex, &shared->turn, FUTEX_WAKE, 1, 0, 0, 0);
    }
    if (child == 0)
        _exit(0);
    must(status_of(child) == 0 && shared->turn == 2 * ROUNDS, "all turns");
    int there[2], back[2];
    must(pipe(there) == 0 && pipe(back) == 0, "pipe");
    child = fork();
    char byte = 0;
    if (child == 0) {
        pin(0, 1);
        while (read(there[0], &byte, 1) == 1 && byte < 100)
            byte++, write(back[1], &byte, 1);
        _exit(byte);
    }
    pin(0, 0);
    while (byte < 100)
        must(write(there[1], &byte, 1) == 1 && read(back[0], &byte, 1) == 1, "a byte there and back");
    write(there[1], &byte, 1);
    must(status_of(child) == 100, "the last byte");
    puts("turns are taken");
    return 0;
}

/* --- Signals to threads that run */

static atomic_int handled;

static void handle(int signal)
{
    (void)signal;
    handled++;
}

static atomic_int runs;

struct result {
    double x;
    uint64_t y;
};

/* Always the same result for the same seed. The compiler must not know that, or it would compute
 * the results that are compared only once. */
__attribute__((noipa)) static struct result work(uintptr_t seed)
{
    struct result result = {1, seed + 1};
    for (int i = 0; i < 1000; i++) {
        result.x = result.x * 1.5 + 0.25;
        result.x = result.x > 1e6 ? result.x * 1e-6 : result.x;
        result.y = result.y * 6364136223846793005u + 1442695040888963407u;
    }
    return result;
}

/* Computes until it is told to end: the number of wrong results. */
static void *compute(void *argument)
{
    long wrong = 0;
    runs++;
    while (!done) {
        struct result one = work((uintptr_t)argument), other = work((uintptr_t)argument);
        wrong += one.x != other.x || one.y != other.y;
    }
    return (void *)wrong;
}

static void end_computing(pthread_t *threads, int number)
{
    done = 1;
    for (int i = 0; i < number; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        must(wrong == 0, "what a thread computes does not depend on who disturbs it");
    }
}

static int signals(void)
{
    pthread_t threads[MOST + 1];
    int number = count + 1;
    struct sigaction action = { .sa_handler = handle };
    sigaction(SIGUSR1, &action, 0);
    sigaction(SIGALRM, &action, 0);
    for (int i = 0; i < number; i++)
        threads[i] = start(compute, i);
    while (runs < number)
        sched_yield();
    for (int round = 1; round <= 16; round++)
        for (int i = 0; i < number; i++) {
            int before = handled;
            must(pthread_kill(threads[i], SIGUSR1) == 0, "pthread_kill");
            while (handled == before)
                sched_yield();
        }
    must(handled == 16 * number, "each signal is handled once");
    struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, never = { { 0, 0 }, { 0, 0 } };
    handled = 0;
    setitimer(ITIMER_REAL, &often, 0);
    while (handled < 10)
        usleep(1000);
    setitimer(ITIMER_REAL, &never, 0);
    end_computing(threads, number);
    puts("signals reach threads that run");
    return 0;
}

/* --- Mappings that change while others use them */

static struct own_page {
    volatile long first, padding[500], second;
} pages[MOST] __attribute__((aligned(PAGE)));

/* Writes to its page, and finds there what it has written. */
static void *write_page(void *argument)
{
    struct own_page *page = &pages[(long)argument];
    long value = 0;
    runs++;
    while (!done) {
        if (page->first != value || page->second != value)
            return (void *)1;
        value++;
        page->first = value;
        page->second = value;
    }
    return 0;
}

static int fork_while_others_write(void)
{
    pthread_t threads[MOST];
    for (int i = 0; i < count; i++)
        threads[i] = start(write_page, i);
    while (runs < count)
        sched_yield();
    for (int round = 0; round < 12; round++) {
        pid_t child = fork();
        if (child == 0) {
            int wrong = 0;
            for (int i = 0; i < count; i++) {
                long ahead = pages[i].first - pages[i].second;
                wrong |= ahead != 0 && ahead != 1;
                pages[i].first = pages[i].second = -1;
            }
            _exit(wrong);
        }
        must(status_of(child) == 0, "a child sees each page at one moment");
    }
    end_computing(threads, count);
    puts("copies are made while others write");
    return 0;
}

static volatile long *target;
static __thread sigjmp_buf out;
static atomic_long faults;

static void jump_out(int signal)
{
    (void)signal;
    faults++;
    siglongjmp(out, 1);
}

static void *write_always(void *argument)
{
    runs++;
    while (!done)
        if (sigsetjmp(out, 1) == 0)
            for (long i = 0; !done; i++)
                target[(long)argument * 8] = i;
    return 0;
}

static int mappings(void)
{
    pthread_t threads[MOST];
    struct sigaction action = { .sa_handler = jump_out };
    sigaction(SIGSEGV, &action, 0);
    target = mmap(0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < count; i++)
        threads[i] = start(write_always, i);
    while (runs < count)
        sched_yield();
    for (int round = 0; round < 30; round++) {
        long before[MOST];
        must(mprotect((void *)target, PAGE, PROT_READ) == 0, "mprotect");
        for (int i = 0; i < count; i++)
            before[i] = target[i * 8];
        spin(2000);
        for (int i = 0; i < count; i++)
            must(target[i * 8] == before[i], "nobody writes to what is read-only");
        must(munmap((void *)target, PAGE) == 0, "munmap");
        /* Frames of pages that the threads had before may be among these now. */
        long *fresh = mmap(0, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int i = 0; i < 4; i++)
            fresh[i * 512 + 511] = 1;
        spin(2000);
        for (int i = 0; i < 4 * 512; i++)
            must(fresh[i] == (i % 512 == 511), "nobody writes to what is not mapped");
        munmap(fresh, 4 * PAGE);
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
        must(mmap((void *)target, PAGE, PROT_READ | PROT_WRITE, flags, -1, 0) == target, "mmap");
        long now = target[0];
        for (int i = 0; i < 1000 && target[0] == now; i++)
            sched_yield();
    }
    done = 1;
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], 0);
    must(faults > 0, "somebody noticed");
    puts("changes hold at once for all");
    return 0;
}

/* --- Barriers that one thread makes for all */

static volatile int flags[2], sees[2];
static atomic_int round_of, arrived;
static volatile int nonsense;

static void *run_ahead(void *argument)
{
    (void)argument;
    for (int round = 1; round <= 2000; round++) {
        while (round_of < round)
            if (count == 1)
                sched_yield();
        flags[0] = 1;
        /* Only the compiler is kept from reading first. */
        atomic_signal_fence(memory_order_seq_cst);
        sees[0] = flags[1];
        arrived = round;
    }
    return 0;
}

static int barrier(int command, int flags)
{
    return syscall(SYS_membarrier, command, flags, 0) < 0 ? -errno : 0;
}

static int barriers(void)
{
    must((syscall(SYS_membarrier, 0, 0, 0) & 127) == 127, "all kinds are there");
    must(barrier(8, 0) == -EPERM && barrier(32, 0) == -EPERM, "a process registers first");
    must(barrier(3, 0) == -EINVAL && barrier(1, 1) == -EINVAL, "no such kind");
    must(barrier(16, 0) == 0 && barrier(32, 0) == -EPERM, "each kind is registered for by itself");
    must(barrier(64, 0) == 0 && barrier(4, 0) == 0, "registration");
    must(barrier(1, 0) == 0 && barrier(2, 0) == 0 && barrier(32, 0) == 0, "barriers");
    pthread_t other = start(run_ahead, 0);
    if (count > 1)
        pin(0, 1);
    for (int round = 1; round <= 2000; round++) {
        flags[0] = flags[1] = 0;
        round_of = round;
        flags[1] = 1;
        must(barrier(8, 0) == 0, "membarrier");
        sees[1] = flags[0];
        while (arrived < round)
            if (count == 1)
                sched_yield();
        nonsense += !sees[0] && !sees[1];
    }
    pthread_join(other, 0);
    must(nonsense == 0, "one thread has seen the other");
    pid_t child = fork();
    if (child == 0) {
        must(barrier(8, 0) == 0, "fork keeps the registration");
        execl("/proc/self/exe", "processors", "unregistered", (char *)0);
    }
    must(status_of(child) == 7, "exec ends the registration");
    puts("one thread makes barriers for all");
    return 0;
}

static int unregistered(void)
{
    return barrier(8, 0) == -EPERM ? 7 : 1;
}

/* --- Ends */

static void *do_exec(void *argument)
{
    (void)argument;
    execl("/proc/self/exe", "processors", "seven", (char *)0);
    return 0;
}

static int seven(void)
{
    return 7;
}

static int ends(void)
{
    for (int round = 0; round < 8; round++) {
        pid_t child = fork();
        if (child == 0) {
            for (int i = 0; i < count + 1; i++)
                start(compute, i);
            while (runs < count + 1)
                sched_yield();
            if (round % 4 == 0)
                do_exec(0);
            if (round % 4 == 1)
                start(do_exec, 0);
            if (round % 4 == 2)
                _exit(7);
            for (;;)
                pause();
        }
        if (round % 4 == 3) {
            usleep(20000);
            kill(child, SIGKILL);
        }
        must(status_of(child) == (round % 4 == 3 ? 1000 + SIGKILL : 7), "the end of a process whose threads run");
    }
    puts("processes end whatever their threads do");
    return 0;
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        { "affinity", affinity },
        { "is-pinned", is_pinned },
        { "spread", spread },
        { "times", times },
        { "shared", shared_memory },
        { "turns", turns },
        { "signals", signals },
        { "fork", fork_while_others_write },
        { "mappings", mappings },
        { "barriers", barriers },
        { "unregistered", unregistered },
        { "ends", ends },
        { "seven", seven },
    };
    find_processors();
    return RUN_CHOSEN(tests);
}
