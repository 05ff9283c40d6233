/* C Threads. A thread that must wait receives from a port of its own, and the thread that lets it
 * go on sends the port an empty message. So no wake-up is lost, whatever comes first. */
#include <cthreads.h>
#include <mach_port_user.h>
#include <mach_user.h>

/* The size and the alignment of a thread's stack, at whose beginning its record is. */
#define STACK 0x10000ul
#define MAGIC 0x6374687265616421ul

struct cthread {
    unsigned long magic;
    /* The port at which the thread waits. */
    mach_port_t port;
    /* The next thread of the queue that the thread is in. */
    cthread_t next;
    cthread_fn_t function;
    any_t argument, result, data;
    const char *name;
    /* What follows is used under `lock`. */
    int ended, detached;
    cthread_t joiner;
};

static struct cthread main_thread;
/* Guards the ends of threads, and those that can be used again. */
static struct mutex lock = MUTEX_INITIALIZER;
static struct cthread_queue unused;

static void spin_lock(int *spin)
{
    while (__atomic_exchange_n(spin, 1, __ATOMIC_ACQUIRE))
        cthread_yield();
}

static void spin_unlock(int *spin)
{
    __atomic_store_n(spin, 0, __ATOMIC_RELEASE);
}

static void put(struct cthread_queue *queue, cthread_t thread)
{
    thread->next = CTHREAD_NULL;
    if (queue->first)
        queue->last->next = thread;
    else
        queue->first = thread;
    queue->last = thread;
}

static cthread_t take(struct cthread_queue *queue)
{
    cthread_t thread = queue->first;
    if (thread)
        queue->first = thread->next;
    return thread;
}

static void wait_here(cthread_t self)
{
    mach_msg_header_t message;
    while (mach_msg(&message, MACH_RCV_MSG, 0, sizeof message, self->port, MACH_MSG_TIMEOUT_NONE, MACH_PORT_NULL) !=
           MACH_MSG_SUCCESS)
        cthread_yield();
}

static void let_go(cthread_t thread)
{
    mach_msg_header_t message = { .msgh_bits = MACH_MSGH_BITS(MACH_MSG_TYPE_MAKE_SEND, 0),
                                  .msgh_size = sizeof message,
                                  .msgh_remote_port = thread->port };
    mach_msg(&message, MACH_SEND_MSG, sizeof message, 0, MACH_PORT_NULL, MACH_MSG_TIMEOUT_NONE, MACH_PORT_NULL);
}

cthread_t cthread_self(void)
{
    /* The stack of `main` has no record at its beginning, and is mapped as a whole. */
    cthread_t thread = (cthread_t)((unsigned long)__builtin_frame_address(0) & ~(STACK - 1));
    return thread->magic == MAGIC ? thread : &main_thread;
}

kern_return_t cthread_init(void)
{
    main_thread.name = "main";
    main_thread.detached = 1;
    return mach_port_allocate(mach_task_self(), MACH_PORT_RIGHT_RECEIVE, &main_thread.port);
}

/* Ends the work of the calling thread, and waits for the next. */
static void end_and_wait(cthread_t self, any_t result)
{
    mutex_lock(&lock);
    self->result = result;
    self->ended = 1;
    cthread_t joiner = self->joiner;
    if (self->detached)
        put(&unused, self);
    mutex_unlock(&lock);
    if (joiner)
        let_go(joiner);
    wait_here(self);
}

/* What a kernel thread does: the functions that its C thread is given, one after the other. */
static void __attribute__((noreturn)) work(void)
{
    cthread_t self = cthread_self();
    for (;;)
        end_and_wait(self, self->function(self->argument));
}

void cthread_exit(any_t result)
{
    cthread_t self = cthread_self();
    if (self == &main_thread)
        syscall_task_terminate(mach_task_self());
    end_and_wait(self, result);
    /* The stack of the function that has ended is given up. */
    unsigned long top = (unsigned long)self + STACK - 16;
    __asm__ volatile("mov %0, %%rsp\n\txor %%ebp, %%ebp\n\tpush $0\n\tjmp *%1" : : "c"(top), "a"(work) : "memory");
    __builtin_unreachable();
}

/* Makes a thread with a stack and a port, which does not run yet. */
static cthread_t make(mach_port_t *kernel_thread)
{
    mach_port_t task = mach_task_self();
    vm_offset_t address = 0;
    if (vm_map(task, &address, STACK, STACK - 1, 1, MACH_PORT_NULL, 0, 0, VM_PROT_READ | VM_PROT_WRITE,
               VM_PROT_READ | VM_PROT_WRITE, VM_INHERIT_COPY) != KERN_SUCCESS)
        return CTHREAD_NULL;
    cthread_t thread = (cthread_t)address;
    thread->magic = MAGIC;
    if (mach_port_allocate(task, MACH_PORT_RIGHT_RECEIVE, &thread->port) == KERN_SUCCESS) {
        /* The registers in the order of the flavour 1: the stack pointer, which is there twice, RIP
         * and the flags. */
        unsigned long registers[21] = { [16] = (unsigned long)work, [18] = 0x202 };
        registers[11] = registers[19] = address + STACK - 16 - 8;
        if (thread_create(task, kernel_thread) == KERN_SUCCESS) {
            if (thread_set_state(*kernel_thread, 1, (natural_t *)registers, sizeof registers / (sizeof(natural_t))) ==
                KERN_SUCCESS)
                return thread;
            thread_terminate(*kernel_thread);
        }
        mach_port_destroy(task, thread->port);
    }
    vm_deallocate(task, address, STACK);
    return CTHREAD_NULL;
}

cthread_t cthread_fork(cthread_fn_t function, any_t argument)
{
    mach_port_t kernel_thread = MACH_PORT_NULL;
    mutex_lock(&lock);
    cthread_t thread = take(&unused);
    mutex_unlock(&lock);
    int is_used_again = thread != CTHREAD_NULL;
    if (!is_used_again)
        thread = make(&kernel_thread);
    if (!thread)
        return CTHREAD_NULL;
    thread->function = function;
    thread->argument = argument;
    thread->result = thread->data = 0;
    thread->name = 0;
    thread->ended = thread->detached = 0;
    thread->joiner = CTHREAD_NULL;
    if (is_used_again)
        let_go(thread);
    else
        thread_resume(kernel_thread);
    return thread;
}

any_t cthread_join(cthread_t thread)
{
    cthread_t self = cthread_self();
    mutex_lock(&lock);
    int ended = thread->ended;
    if (!ended)
        thread->joiner = self;
    mutex_unlock(&lock);
    if (!ended)
        wait_here(self);
    any_t result = thread->result;
    mutex_lock(&lock);
    put(&unused, thread);
    mutex_unlock(&lock);
    return result;
}

void cthread_detach(cthread_t thread)
{
    mutex_lock(&lock);
    thread->detached = 1;
    if (thread->ended)
        put(&unused, thread);
    mutex_unlock(&lock);
}

void cthread_yield(void)
{
    thread_switch(MACH_PORT_NULL, SWITCH_OPTION_NONE, 0);
}

void cthread_set_data(cthread_t thread, any_t data)
{
    thread->data = data;
}

any_t cthread_data(cthread_t thread)
{
    return thread->data;
}

void cthread_set_name(cthread_t thread, const char *name)
{
    thread->name = name;
}

const char *cthread_name(cthread_t thread)
{
    return thread->name ? thread->name : "?";
}

void mutex_init(mutex_t mutex)
{
    *mutex = (struct mutex)MUTEX_INITIALIZER;
}

boolean_t mutex_try_lock(mutex_t mutex)
{
    spin_lock(&mutex->spin);
    int was_held = mutex->held;
    mutex->held = 1;
    spin_unlock(&mutex->spin);
    return !was_held;
}

void mutex_lock(mutex_t mutex)
{
    spin_lock(&mutex->spin);
    int was_held = mutex->held;
    mutex->held = 1;
    cthread_t self = cthread_self();
    if (was_held)
        put(&mutex->waiting, self);
    spin_unlock(&mutex->spin);
    if (was_held)
        wait_here(self);
}

void mutex_unlock(mutex_t mutex)
{
    spin_lock(&mutex->spin);
    /* The mutex stays held if it goes to another thread. */
    cthread_t next = take(&mutex->waiting);
    mutex->held = next != CTHREAD_NULL;
    spin_unlock(&mutex->spin);
    if (next)
        let_go(next);
}

void condition_init(condition_t condition)
{
    *condition = (struct condition)CONDITION_INITIALIZER;
}

void condition_wait(condition_t condition, mutex_t mutex)
{
    cthread_t self = cthread_self();
    spin_lock(&condition->spin);
    put(&condition->waiting, self);
    spin_unlock(&condition->spin);
    mutex_unlock(mutex);
    wait_here(self);
    mutex_lock(mutex);
}

void condition_signal(condition_t condition)
{
    spin_lock(&condition->spin);
    cthread_t next = take(&condition->waiting);
    spin_unlock(&condition->spin);
    if (next)
        let_go(next);
}

void condition_broadcast(condition_t condition)
{
    spin_lock(&condition->spin);
    struct cthread_queue waiting = condition->waiting;
    condition->waiting.first = CTHREAD_NULL;
    spin_unlock(&condition->spin);
    for (cthread_t next = take(&waiting); next; next = take(&waiting))
        let_go(next);
}
