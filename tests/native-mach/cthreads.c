/* C Threads: their results, mutexes and conditions. */
#include "tap.h"

#include <cthreads.h>

#define THREADS 4
#define ROUNDS 200

static struct mutex mutex = MUTEX_INITIALIZER;
static struct condition filled = CONDITION_INITIALIZER, emptied = CONDITION_INITIALIZER;
static long counter, slots, sum;
static volatile int started;

static any_t square(any_t number)
{
    return (any_t)((long)number * (long)number);
}

static int a_thread_has_a_result(void)
{
    SAME(cthread_init(), KERN_SUCCESS);
    cthread_t threads[THREADS];
    for (long index = 0; index < THREADS; index++)
        HOLDS((threads[index] = cthread_fork(square, (any_t)(index + 3))) != CTHREAD_NULL);
    for (long index = 0; index < THREADS; index++)
        SAME(cthread_join(threads[index]), (index + 3) * (index + 3));
    return 0;
}

static any_t count(any_t unused)
{
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        mutex_lock(&mutex);
        long before = counter;
        if (round % 16 == 0)
            cthread_yield();
        counter = before + 1;
        mutex_unlock(&mutex);
    }
    return 0;
}

static int a_mutex_has_one_holder(void)
{
    cthread_t threads[THREADS];
    for (int index = 0; index < THREADS; index++)
        HOLDS((threads[index] = cthread_fork(count, 0)) != CTHREAD_NULL);
    for (int index = 0; index < THREADS; index++)
        cthread_join(threads[index]);
    SAME(counter, THREADS * ROUNDS);
    HOLDS(mutex_try_lock(&mutex));
    HOLDS(!mutex_try_lock(&mutex));
    mutex_unlock(&mutex);
    return 0;
}

static any_t consume(any_t rounds)
{
    for (long round = 0; round < (long)rounds; round++) {
        mutex_lock(&mutex);
        while (!slots)
            condition_wait(&filled, &mutex);
        sum += slots;
        slots = 0;
        condition_signal(&emptied);
        mutex_unlock(&mutex);
    }
    return 0;
}

static int conditions_wake_the_right_threads(void)
{
    cthread_t consumer = cthread_fork(consume, (any_t)(long)ROUNDS);
    HOLDS(consumer != CTHREAD_NULL);
    long expected = 0;
    for (long round = 1; round <= ROUNDS; round++) {
        mutex_lock(&mutex);
        while (slots)
            condition_wait(&emptied, &mutex);
        slots = round;
        expected += round;
        condition_signal(&filled);
        mutex_unlock(&mutex);
    }
    cthread_join(consumer);
    SAME(sum, expected);
    return 0;
}

static any_t wait_for_all(any_t unused)
{
    (void)unused;
    mutex_lock(&mutex);
    started++;
    condition_wait(&filled, &mutex);
    started--;
    mutex_unlock(&mutex);
    return 0;
}

static void leave(long depth)
{
    if (depth > 0)
        leave(depth - 1);
    else if (depth == 0)
        cthread_exit(cthread_data(cthread_self()));
    print("# a thread has not ended\n", (char *)0);
}

static any_t leave_from_below(any_t result)
{
    cthread_set_data(cthread_self(), result);
    leave(20);
    return 0;
}

static int threads_end_anywhere_and_are_used_again(void)
{
    for (long round = 1; round <= 10; round++) {
        cthread_t thread = cthread_fork(leave_from_below, (any_t)round);
        HOLDS(thread != CTHREAD_NULL);
        SAME(cthread_join(thread), round);
    }
    for (int index = 0; index < THREADS; index++)
        cthread_detach(cthread_fork(wait_for_all, 0));
    for (int waits = 0; started < THREADS && waits < 5000; waits++)
        thread_switch(MACH_PORT_NULL, SWITCH_OPTION_WAIT, 1);
    mutex_lock(&mutex);
    SAME(started, THREADS);
    condition_broadcast(&filled);
    mutex_unlock(&mutex);
    for (int waits = 0; started > 0 && waits < 5000; waits++)
        thread_switch(MACH_PORT_NULL, SWITCH_OPTION_WAIT, 1);
    SAME(started, 0);
    return 0;
}

static const struct test tests[] = {
    { "NATM0040", "a C thread's result goes to the thread that joins it", a_thread_has_a_result },
    { "NATM0041", "a mutex has one holder", a_mutex_has_one_holder },
    { "NATM0042", "conditions pass values between threads", conditions_wake_the_right_threads },
    { "NATM0043", "a thread ends from any depth, and its kernel thread is used again",
      threads_end_anywhere_and_are_used_again },
};

int main(void)
{
    run_tests(tests, sizeof tests / sizeof tests[0]);
    return 0;
}
