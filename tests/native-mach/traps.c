/* The traps, and messages that a task sends itself. */
#include "tap.h"

struct message {
    mach_msg_header_t header;
    mach_msg_type_t type;
    char data[256];
};

static struct message message;
static mach_port_t self;
static int argument_count;
static char **arguments;

static int starts_with_arguments(void)
{
    SAME(argument_count, 4);
    SAME(arguments[0][0], 'm');
    SAME(arguments[1][0], '1');
    SAME(arguments[2][0], '2');
    SAME(arguments[3][0], 'x');
    SAME((long)arguments[4], 0);
    SAME((long)arguments[5], 0);
    return 0;
}

static int identities(void)
{
    self = mach_task_self();
    HOLDS(self != MACH_PORT_NULL && self != MACH_PORT_DEAD);
    SAME(mach_task_self(), self);
    mach_port_t thread = mach_thread_self(), host = mach_host_self();
    HOLDS(thread != self && host != self && thread != host);
    SAME(mach_thread_self(), thread);
    SAME(syscall_mach_port_deallocate(self, thread), KERN_SUCCESS);
    SAME(syscall_mach_port_deallocate(self, thread), KERN_SUCCESS);
    SAME(syscall_mach_port_deallocate(self, thread), KERN_INVALID_NAME);
    return 0;
}

static int message_to_oneself(void)
{
    mach_port_t port;
    SAME(syscall_mach_port_allocate(self, MACH_PORT_RIGHT_RECEIVE, &port), KERN_SUCCESS);
    message.header.msgh_bits = MACH_MSGH_BITS(MACH_MSG_TYPE_MAKE_SEND, 0);
    message.header.msgh_remote_port.name = port;
    message.header.msgh_local_port.name = MACH_PORT_NULL;
    message.header.msgh_id = 77;
    message.type = (mach_msg_type_t){ .msgt_name = MACH_MSG_TYPE_BYTE, .msgt_size = 8, .msgt_inline = 1,
                                      .msgt_number = 16 };
    for (int index = 0; index < 16; index++)
        message.data[index] = (char)(index * 3);
    SAME(mach_msg_trap(&message.header, MACH_SEND_MSG, 56, 0, MACH_PORT_NULL, 0, MACH_PORT_NULL), MACH_MSG_SUCCESS);
    memset(&message, 0, sizeof message);
    SAME(mach_msg_trap(&message.header, MACH_RCV_MSG, 0, sizeof message, port, 0, MACH_PORT_NULL), MACH_MSG_SUCCESS);
    SAME(message.header.msgh_id, 77);
    SAME(message.header.msgh_size, 56);
    SAME(message.header.msgh_local_port.name, port);
    SAME(message.type.msgt_number, 16);
    for (int index = 0; index < 16; index++)
        SAME(message.data[index], index * 3);
    SAME(mach_msg_trap(&message.header, MACH_RCV_MSG | MACH_RCV_TIMEOUT, 0, sizeof message, port, 10, MACH_PORT_NULL),
         MACH_RCV_TIMED_OUT);
    return 0;
}

static const struct test tests[] = {
    { "NATM0001", "a program finds its name, its rights and its arguments on the stack", starts_with_arguments },
    { "NATM0002", "a task, a thread and the host have ports", identities },
    { "NATM0003", "a task sends itself a message and receives it", message_to_oneself },
};

int main(int count, char **words)
{
    argument_count = count;
    arguments = words;
    run_tests(tests, sizeof tests / sizeof tests[0]);
    return 0;
}
