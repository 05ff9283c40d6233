/* C Threads: threads of one task, with mutexes and conditions. Each C thread has a kernel thread;
 * one whose function has returned is used again for the next. Only `main`, in the first 64 KiB of
 * its stack, and C threads may call these functions, after `cthread_init`. */
#ifndef CTHREADS_H
#define CTHREADS_H

#include <mach.h>

typedef void *any_t;
typedef any_t (*cthread_fn_t)(any_t);
typedef struct cthread *cthread_t;

#define CTHREAD_NULL ((cthread_t)0)

/* Threads that wait, in the order of their arrival. */
struct cthread_queue {
    cthread_t first, last;
};

typedef struct mutex {
    int spin;
    int held;
    struct cthread_queue waiting;
} *mutex_t;

typedef struct condition {
    int spin;
    struct cthread_queue waiting;
} *condition_t;

#define MUTEX_INITIALIZER                                                                                              \
    {                                                                                                                  \
        0, 0, { CTHREAD_NULL, CTHREAD_NULL }                                                                           \
    }
#define CONDITION_INITIALIZER                                                                                          \
    {                                                                                                                  \
        0, { CTHREAD_NULL, CTHREAD_NULL }                                                                              \
    }

/* Makes the caller, which runs `main`, a C thread. Returns the error of the kernel. */
kern_return_t cthread_init(void);

/* Starts a thread that calls `function` with `argument`. CTHREAD_NULL: there is no memory. */
cthread_t cthread_fork(cthread_fn_t function, any_t argument);

/* Waits until a thread ends, and returns its result. A thread is joined once. */
any_t cthread_join(cthread_t thread);

/* Says that a thread will not be joined. */
void cthread_detach(cthread_t thread);

/* Ends the calling thread with a result. In `main` it ends the task. */
void cthread_exit(any_t result) __attribute__((noreturn));

/* Lets other threads run. */
void cthread_yield(void);

cthread_t cthread_self(void);

/* A word that the program keeps with a thread, and a name for people. */
void cthread_set_data(cthread_t thread, any_t data);
any_t cthread_data(cthread_t thread);
void cthread_set_name(cthread_t thread, const char *name);
const char *cthread_name(cthread_t thread);

/* A mutex goes to the threads that wait for it in the order of their arrival: from hand to hand. */
void mutex_init(mutex_t mutex);
void mutex_lock(mutex_t mutex);
boolean_t mutex_try_lock(mutex_t mutex);
void mutex_unlock(mutex_t mutex);

/* The caller of `condition_wait` holds the mutex, and holds it again afterwards. */
void condition_init(condition_t condition);
void condition_wait(condition_t condition, mutex_t mutex);
void condition_signal(condition_t condition);
void condition_broadcast(condition_t condition);

#endif
