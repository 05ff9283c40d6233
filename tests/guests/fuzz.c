/* fuzz SEED CALLS WORKERS: WORKERS processes make random system calls, CALLS of them altogether,
 * with arguments that are nearly right. A thread of each changes the memory meanwhile; it ends
 * and is made again. On Macadamia some of the calls are those of the kernel's own interface. The
 * supervisor judges: a process of another user must go on, the number of calls must be reached,
 * and in the end the servers must have what they had. */
#define _GNU_SOURCE
#include "counts.h"
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WORKERS = 8,
    FIRST_USER = 2000,
    /* Calls in the life of a worker. */
    LIFE = 2000,
    /* Microseconds between looks at the workers; the number of looks without a call after which
     * a worker is ended; the number of looks until its first call. */
    LOOK = 10000,
    PATIENCE = 20,
    START_PATIENCE = 3000,
    ROUNDS = 8,
    /* Growth of memory in KiB that is allowed between the middle and the end of the calls. */
    TOLERANCE = 16,
};

static struct {
    /* Calls made altogether. */
    long calls;
    long native;
    /* How many calls were made, and have succeeded, by call number. */
    long made[CALL_NUMBERS], succeeded[CALL_NUMBERS];
    /* Calls made by the present worker of each slot. */
    long progress[WORKERS];
    pid_t worker[WORKERS];
} *shared;

static struct random_state own;

static int is_macadamia(void)
{
    return access("/proc/macadamia", F_OK) == 0;
}

/* --- The worker */

static void *change_memory(void *unused)
{
    (void)unused;
    struct random_state state = {own.word ^ 0x5bd1e995};
    for (;;) {
        for (int i = 0; i < 64; i++)
            scribble(&state);
        if (random_word(&state) % 4 == 0)
            change_mapping(&state);
        raw_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    }
    return 0;
}

static void open_everything(void)
{
    /* The attacker keeps no descriptor of the supervisor or the watchdog. */
    for (int descriptor = 0; descriptor < 64; descriptor++)
        close(descriptor);
    for (int descriptor = 0; descriptor < 3; descriptor++)
        open("/dev/null", O_RDWR);
    int pair[2];
    open("a", O_RDWR | O_CREAT, 0666);
    open(".", O_RDONLY | O_DIRECTORY);
    open("/dev/zero", O_RDWR);
    open("/proc/self/maps", O_RDONLY);
    pipe2(pair, O_NONBLOCK);
    pipe(pair);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair);
    socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    epoll_create1(0);
    eventfd(3, EFD_NONBLOCK);
    timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    sigset_t signals;
    sigfillset(&signals);
    signalfd(-1, &signals, SFD_NONBLOCK);
    inotify_init1(IN_NONBLOCK);
    memfd_create("fuzz", 0);
    open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK);
}

static void limit(int resource, rlim_t value)
{
    struct rlimit both = {value, value};
    setrlimit(resource, &both);
}

static void make_calls(int slot, struct random_state *state, long calls)
{
    for (long i = 0; i < calls; i++) {
        struct call call;
        choose_call(state, &call);
        __atomic_add_fetch(&shared->calls, 1, __ATOMIC_RELAXED);
        __atomic_add_fetch(&shared->progress[slot], 1, __ATOMIC_RELAXED);
        if (call.number < 0) {
            __atomic_add_fetch(&shared->native, 1, __ATOMIC_RELAXED);
            native_call(state);
            continue;
        }
        __atomic_add_fetch(&shared->made[call.number], 1, __ATOMIC_RELAXED);
        long *a = call.arguments;
        long result = raw_call(call.number, a[0], a[1], a[2], a[3], a[4], a[5]);
        if (result >= 0 || result < -4095)
            __atomic_add_fetch(&shared->succeeded[call.number], 1, __ATOMIC_RELAXED);
        /* A child of fork goes its own way, for a shorter time. */
        if (call.forks && result == 0) {
            state->word ^= (uint64_t)raw_call(SYS_getpid, 0, 0, 0, 0, 0, 0) * 0x9e3779b97f4a7c15u;
            calls = i + (calls - i) / 8;
        }
    }
    raw_call(SYS_exit_group, 0, 0, 0, 0, 0, 0);
}

static int worker_slot;

/* The start of a thread that a random clone has made on a stack of the arena. */
static void cloned(void)
{
    struct random_state state = {(uint64_t)raw_call(SYS_gettid, 0, 0, 0, 0, 0, 0) * 0x9e3779b97f4a7c15u};
    make_calls(worker_slot, &state, 64);
}

static void work(int slot, uint64_t seed)
{
    char name[32];
    snprintf(name, sizeof name, "worker%d", slot);
    unsigned user = FIRST_USER + (unsigned)slot;
    mkdir(name, 0777);
    limit(RLIMIT_NPROC, 12);
    limit(RLIMIT_FSIZE, 1 << 20);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_AS, 256 << 20);
    if (chdir(name) || chown(".", user, user) || setgid(user) || setuid(user))
        _exit(1);
    setsid();
    own.word = seed;
    worker_slot = slot;
    open_everything();
    prepare(shared->worker, WORKERS, is_macadamia() && !getenv("NO_NATIVE"), cloned);
    pthread_t thread;
    pthread_create(&thread, 0, change_memory, 0);
    make_calls(slot, &own, LIFE);
}

/* The watchdog: files, a process, a pipe; answers each request with its square. */

static int beat(unsigned request)
{
    FILE *file = fopen("watchdog", "w+");
    unsigned written = 0;
    if (!file || fprintf(file, "%u", request) < 0 || fflush(file))
        return 0;
    rewind(file);
    if (fscanf(file, "%u", &written) != 1 || fclose(file) || written != request)
        return 0;
    pid_t child = fork();
    if (child == 0)
        _exit((int)(request % 100));
    int status;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)
        && WEXITSTATUS(status) == (int)(request % 100);
}

static int to_watchdog, from_watchdog;

static pid_t start_watchdog(void)
{
    int requests[2], answers[2];
    if (pipe(requests) || pipe(answers))
        return -1;
    pid_t child = fork();
    if (child == 0) {
        close(requests[1]);
        unsigned request;
        while (read(requests[0], &request, sizeof request) == sizeof request) {
            unsigned answer = beat(request) ? request * request : 0;
            if (write(answers[1], &answer, sizeof answer) != sizeof answer)
                break;
        }
        _exit(0);
    }
    close(requests[0]);
    close(answers[1]);
    to_watchdog = requests[1];
    from_watchdog = answers[0];
    return child;
}

static int watchdog_goes_on(unsigned request)
{
    unsigned answer = 0;
    return write(to_watchdog, &request, sizeof request) == sizeof request
        && read(from_watchdog, &answer, sizeof answer) == sizeof answer && answer == request * request;
}

/* The supervisor. */

/* Ends all processes of a worker, whatever program they run by now: no other process has their
 * user id. */
static void end_all(int slot)
{
    pid_t child = fork();
    if (child == 0) {
        unsigned user = FIRST_USER + (unsigned)slot;
        if (setgid(user) == 0 && setuid(user) == 0)
            kill(-1, SIGKILL);
        _exit(0);
    }
    if (child > 0)
        waitpid(child, 0, 0);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status, (void)type, (void)walk;
    return remove(path);
}

static int right, wrong;
static long deaths, killed;

/* Runs workers until this number of calls has been made, and ends them. */
static void run(uint64_t seed, long calls, int workers)
{
    struct random_state state = {seed};
    long last[WORKERS] = {0}, wanted = shared->calls + calls;
    int quiet[WORKERS] = {0};
    memset(shared->worker, 0, sizeof shared->worker);
    while (shared->calls < wanted) {
        for (int slot = 0; slot < workers; slot++) {
            pid_t worker = shared->worker[slot];
            if (worker > 0 && waitpid(worker, 0, WNOHANG) == 0) {
                long progress = __atomic_load_n(&shared->progress[slot], __ATOMIC_RELAXED);
                quiet[slot] = progress == last[slot] ? quiet[slot] + 1 : 0;
                last[slot] = progress;
                int too_quiet = quiet[slot] > (progress == 0 ? START_PATIENCE : PATIENCE);
                if (!too_quiet && random_word(&state) % 256 != 0)
                    continue;
                kill(worker, SIGKILL);
                waitpid(worker, 0, 0);
                killed++;
            }
            deaths += worker > 0;
            if (worker > 0 && deaths % 4 == 0)
                *(watchdog_goes_on((unsigned)deaths) ? &right : &wrong) += 1;
            end_all(slot);
            shared->progress[slot] = last[slot] = quiet[slot] = 0;
            uint64_t life = random_word(&state);
            worker = fork();
            if (worker == 0)
                work(slot, life);
            shared->worker[slot] = worker;
        }
        usleep(LOOK);
    }
    for (int slot = 0; slot < workers; slot++) {
        kill(shared->worker[slot], SIGKILL);
        waitpid(shared->worker[slot], 0, 0);
        end_all(slot);
        char name[32];
        snprintf(name, sizeof name, "worker%d", slot);
        nftw(name, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
}

/* Makes the system's log as long as it may be, so that what workers log later is no growth. */
static void fill_log(void)
{
    int log = open("/dev/kmsg", O_WRONLY);
    for (int line = 0; line < 1500; line++)
        dprintf(log, "fuzz: one of so many lines that the log is as long as it may be");
    close(log);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    uint64_t seed = strtoull(argv[1], 0, 0) * 0x9e3779b97f4a7c15u + 1;
    long calls = atol(argv[2]);
    int workers = atoi(argv[3]) < WORKERS ? atoi(argv[3]) : WORKERS;
    shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || start_watchdog() < 0)
        return 1;
    if (is_macadamia())
        fill_log();
    /* Objects that are made once and kept are made by the first half. */
    static struct counts before, after;
    int looked = 0;
    for (int round = 0; round < ROUNDS; round++) {
        run(seed + (uint64_t)round, calls / ROUNDS, workers);
        looked |= count_at_rest(round < ROUNDS / 2 ? &before : &after);
        if (getenv("VERBOSE")) {
            printf("round %d: %ld calls\n", round, shared->calls);
            print_counts(round < ROUNDS / 2 ? &before : &after, &after);
        }
    }
    printf("calls made %d, watchdog went on %d\n", shared->calls >= calls, right > 0 && wrong == 0);
    printf("servers are as they were %d\n", looked == 0 && !servers_have_grown(&before, &after, TOLERANCE));
    long reached = 0, succeeded = 0;
    for (int number = 0; number < CALL_NUMBERS; number++) {
        reached += shared->made[number] != 0;
        succeeded += shared->succeeded[number] != 0;
    }
    if (getenv("VERBOSE")) {
        printf("seed %s: %ld calls, %ld of the kernel's own; %ld system calls, of which %ld succeeded; %ld deaths, %ld killed, "
               "%d heartbeats\n", argv[1], shared->calls, shared->native, reached, succeeded, deaths, killed, right);
        for (int number = 0; number < CALL_NUMBERS; number++)
            if (shared->made[number] && !shared->succeeded[number])
                printf("call %d never succeeded\n", number);
    }
    return 0;
}
