/* Threads: creation, join, mutexes, condition variables, thread-local storage, barriers,
 * cancellation, many threads at the same time, signals to one thread, futexes by hand. Prints what
 * does not depend on their order. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* musl comes without the kernel's headers. */
enum { FUTEX_WAIT = 0, FUTEX_WAKE = 1, FUTEX_WAIT_PRIVATE = 128, FUTEX_WAKE_PRIVATE = 129 };

static void must(int error, const char *what)
{
    if (error) {
        printf("%s: %s\n", what, strerror(error));
        exit(1);
    }
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static long counter, turn;
static atomic_long atomic_counter;
static __thread int local = 5;

static void *count(void *argument)
{
    local += (int)(intptr_t)argument;
    for (int i = 0; i < 20000; i++) {
        pthread_mutex_lock(&mutex);
        counter++;
        pthread_mutex_unlock(&mutex);
        atomic_counter++;
    }
    return (void *)(intptr_t)local;
}

static void *take_turns(void *argument)
{
    long me = (intptr_t)argument;
    for (int i = 0; i < 200; i++) {
        pthread_mutex_lock(&mutex);
        while (turn % 4 != me)
            pthread_cond_wait(&condition, &mutex);
        turn++;
        pthread_cond_broadcast(&condition);
        pthread_mutex_unlock(&mutex);
    }
    return 0;
}

static pthread_barrier_t barrier;
static atomic_int serial;

static void *meet(void *argument)
{
    (void)argument;
    for (int i = 0; i < 50; i++)
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
            serial++;
    return 0;
}

static int word;

static long futex(int *address, int operation, int value, const struct timespec *timeout)
{
    return syscall(SYS_futex, address, operation, value, timeout, 0, 0);
}

static void *wait_for_word(void *argument)
{
    (void)argument;
    while (__atomic_load_n(&word, __ATOMIC_SEQ_CST) == 0)
        futex(&word, FUTEX_WAIT_PRIVATE, 0, 0);
    return 0;
}

static atomic_int cleaned, signalled;
static sem_t semaphore;

static void clean(void *argument)
{
    (void)argument;
    cleaned++;
}

static void *be_cancelled(void *argument)
{
    (void)argument;
    pthread_cleanup_push(clean, 0);
    sem_post(&semaphore);
    for (;;)
        pause();
    pthread_cleanup_pop(0);
    return 0;
}

static pthread_t target;

static void handler(int signal)
{
    (void)signal;
    signalled += pthread_equal(pthread_self(), target) ? 1 : 1000;
}

static void *be_signalled(void *argument)
{
    (void)argument;
    target = pthread_self();
    sem_post(&semaphore);
    while (signalled < 1)
        usleep(1000);
    return 0;
}

static void *nothing(void *argument)
{
    return argument;
}

int main(void)
{
    pthread_t threads[64];
    long sum = 0;
    for (long i = 0; i < 8; i++)
        must(pthread_create(&threads[i], 0, count, (void *)i), "pthread_create");
    for (int i = 0; i < 8; i++) {
        void *result;
        must(pthread_join(threads[i], &result), "pthread_join");
        sum += (intptr_t)result;
    }
    printf("mutex %ld, atomic %ld, thread-local %ld, own %d\n", counter, (long)atomic_counter, sum, local);

    for (long i = 0; i < 4; i++)
        must(pthread_create(&threads[i], 0, take_turns, (void *)i), "pthread_create");
    for (int i = 0; i < 4; i++)
        must(pthread_join(threads[i], 0), "pthread_join");
    printf("turns %ld\n", turn);

    must(pthread_barrier_init(&barrier, 0, 6), "pthread_barrier_init");
    for (int i = 0; i < 6; i++)
        must(pthread_create(&threads[i], 0, meet, 0), "pthread_create");
    for (int i = 0; i < 6; i++)
        must(pthread_join(threads[i], 0), "pthread_join");
    printf("barrier %d\n", serial);

    for (int i = 0; i < 16; i++)
        must(pthread_create(&threads[i], 0, wait_for_word, 0), "pthread_create");
    usleep(20000);
    __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
    futex(&word, FUTEX_WAKE_PRIVATE, 1000, 0);
    for (int i = 0; i < 16; i++)
        must(pthread_join(threads[i], 0), "pthread_join");
    struct timespec soon = {0, 10000000};
    long result = futex(&word, FUTEX_WAIT_PRIVATE, 1, &soon);
    printf("futex %ld %s", result, strerror(errno));
    result = futex(&word, FUTEX_WAIT_PRIVATE, 7, 0);
    printf(", %ld %s", result, strerror(errno));
    result = futex((int *)1, FUTEX_WAIT_PRIVATE, 7, 0);
    printf(", %ld %s", result, strerror(errno));
    result = futex((int *)4096, FUTEX_WAIT, 7, 0);
    printf(", %ld %s\n", result, strerror(errno));

    sem_init(&semaphore, 0, 0);
    must(pthread_create(&threads[0], 0, be_cancelled, 0), "pthread_create");
    sem_wait(&semaphore);
    must(pthread_cancel(threads[0]), "pthread_cancel");
    void *ended;
    must(pthread_join(threads[0], &ended), "pthread_join");
    printf("cancelled %d, cleaned %d\n", ended == PTHREAD_CANCELED, cleaned);

    signal(SIGUSR1, handler);
    must(pthread_create(&threads[0], 0, be_signalled, 0), "pthread_create");
    sem_wait(&semaphore);
    must(pthread_kill(threads[0], SIGUSR1), "pthread_kill");
    must(pthread_join(threads[0], 0), "pthread_join");
    printf("signalled %d\n", signalled);

    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    int created = 0;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 64; i++)
            created += pthread_create(&threads[i], &small, nothing, 0) == 0;
        for (int i = 0; i < 64; i++)
            must(pthread_join(threads[i], 0), "pthread_join");
    }
    printf("created %d\n", created);

    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        must(pthread_create(&threads[0], 0, nothing, 0), "pthread_create in a child");
        must(pthread_join(threads[0], 0), "pthread_join in a child");
        for (int i = 0; i < 4; i++)
            must(pthread_create(&threads[i], 0, wait_for_word, 0), "pthread_create in a child");
        _exit(9);
    }
    int status;
    waitpid(child, &status, 0);
    printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    /* Ends the process while other threads are still there. */
    word = 0;
    for (int i = 0; i < 4; i++)
        must(pthread_create(&threads[i], 0, wait_for_word, 0), "pthread_create");
    return 0;
}
