/* Calls of the kernel's objects by messages, and of one thread by another. */
#include "rpc.h"
#include "tap.h"
#include "threads.h"

#include <mach/mig_support.h>
#include <mach_port_user.h>

#define CALLS 200

static mach_port_t self, service, reply;
static struct message request, served;
static _Alignas(16) char stack[16384], child_stack[16384];
static volatile int echoes;

/* Answers each request with its data, each byte one more, and the id 100 more. */
static void echo(void)
{
    mach_msg_return_t result = wait_at(&served, service);
    while (result == MACH_MSG_SUCCESS) {
        unsigned bytes = served.header.msgh_size > 32 ? served.type.msgt_number : 0;
        for (unsigned index = 0; index < bytes; index++)
            served.data[index]++;
        served.header.msgh_id += 100;
        echoes++;
        result = answer_and_wait(&served, service, bytes);
    }
    print("# the echo ends: ", decimal(result), "\n", (char *)0);
    for (;;)
        thread_switch(MACH_PORT_NULL, SWITCH_OPTION_WAIT, 1000000);
}

static int ports_by_messages(void)
{
    mach_port_type_t type;
    mach_port_t port;
    self = mach_task_self();
    SAME(mach_port_allocate(self, MACH_PORT_RIGHT_RECEIVE, &port), KERN_SUCCESS);
    SAME(mach_port_type(self, port, &type), KERN_SUCCESS);
    SAME(type, MACH_PORT_TYPE_RECEIVE);
    SAME(mach_port_insert_right(self, port, port, MACH_MSG_TYPE_MAKE_SEND), KERN_SUCCESS);
    SAME(mach_port_type(self, port, &type), KERN_SUCCESS);
    SAME(type, MACH_PORT_TYPE_RECEIVE | MACH_PORT_TYPE_SEND);
    SAME(mach_port_destroy(self, port), KERN_SUCCESS);
    SAME(mach_port_type(self, port, &type), KERN_INVALID_NAME);
    return 0;
}

static int memory_by_messages(void)
{
    vm_offset_t address = 0;
    SAME(vm_allocate(self, &address, 8192, 1), KERN_SUCCESS);
    ((volatile char *)address)[8191] = 7;
    SAME(vm_protect(self, address, 4096, 0, VM_PROT_READ), KERN_SUCCESS);
    SAME(vm_deallocate(self, address, 8192), KERN_SUCCESS);
    SAME(vm_deallocate(MACH_PORT_DEAD, address, 8192), MACH_SEND_INVALID_DEST);
    return 0;
}

static int calls_within_a_task(void)
{
    SAME(mach_port_allocate(self, MACH_PORT_RIGHT_RECEIVE, &service), KERN_SUCCESS);
    SAME(mach_port_insert_right(self, service, service, MACH_MSG_TYPE_MAKE_SEND), KERN_SUCCESS);
    reply = mach_reply_port();
    HOLDS(start_thread(self, echo, stack + sizeof stack) != MACH_PORT_NULL);
    static const unsigned sizes[] = { 0, 16, 1024, LARGEST };
    for (int number = 0; number < CALLS; number++) {
        unsigned bytes = sizes[number % 4];
        describe(&request, bytes);
        for (unsigned index = 0; index < bytes; index++)
            request.data[index] = (char)(index + number);
        request.header.msgh_id = number;
        SAME(call(&request, service, reply, bytes), MACH_MSG_SUCCESS);
        SAME(request.header.msgh_id, number + 100);
        SAME(request.header.msgh_size, message_size(bytes));
        SAME(request.header.msgh_seqno, number);
        for (unsigned index = 0; index < bytes; index++)
            SAME(request.data[index], (char)(index + number + 1));
    }
    SAME(echoes, CALLS);
    return 0;
}

/* The child's program: calls the service as its parent has it, by the name of its bootstrap
 * port. */
static struct message child_request;
static void child(void)
{
    mig_init((void *)0);
    mach_port_t task = mach_task_self(), port = MACH_PORT_NULL, answer = mach_reply_port();
    mach_msg_return_t result = task_get_special_port(task, 4, &port);
    for (int number = 0; number < CALLS && result == MACH_MSG_SUCCESS; number++) {
        child_request.header.msgh_id = 1000 + number;
        result = call(&child_request, port, answer, 0);
    }
    if (result != MACH_MSG_SUCCESS)
        print("# the child's call: ", decimal(result), "\n", (char *)0);
    syscall_task_terminate(task);
}

static int calls_between_tasks(void)
{
    mach_port_t task;
    int before = echoes;
    SAME(task_set_special_port(self, 4, service), KERN_SUCCESS);
    SAME(task_create(self, 1, &task), KERN_SUCCESS);
    HOLDS(start_thread(task, child, child_stack + sizeof child_stack) != MACH_PORT_NULL);
    for (int waits = 0; echoes < before + CALLS && waits < 500; waits++)
        thread_switch(MACH_PORT_NULL, SWITCH_OPTION_WAIT, 10);
    SAME(echoes, before + CALLS);
    return 0;
}

static int end_of_a_service(void)
{
    /* The receiver is told, and callers find a dead name. */
    SAME(mach_port_mod_refs(self, service, MACH_PORT_RIGHT_RECEIVE, -1), KERN_SUCCESS);
    SAME(call(&request, service, reply, 0), MACH_SEND_INVALID_DEST);
    return 0;
}

static const struct test tests[] = {
    { "NATM0010", "a task's ports are changed by messages to its own port", ports_by_messages },
    { "NATM0011", "a task's memory is changed by messages to its own port", memory_by_messages },
    { "NATM0012", "a thread calls another of its task, with messages of all sizes", calls_within_a_task },
    { "NATM0013", "a child task calls its parent", calls_between_tasks },
    { "NATM0014", "the end of a port ends the wait of its receiver", end_of_a_service },
};

int main(void)
{
    run_tests(tests, sizeof tests / sizeof tests[0]);
    return 0;
}
