/* A program that does everything wrong. It gets errors, and the system goes on. */
#include "rpc.h"
#include "tap.h"

#include <mach_port_user.h>

static mach_port_t self;
static struct message message;

static mach_msg_return_t send_raw(unsigned bits, mach_port_t remote, mach_port_t local, mach_msg_size_t size)
{
    message.header.msgh_bits = bits;
    message.header.msgh_remote_port = remote;
    message.header.msgh_local_port = local;
    return mach_msg_trap(&message.header, MACH_SEND_MSG | MACH_SEND_TIMEOUT, size, 0, MACH_PORT_NULL, 0,
                         MACH_PORT_NULL);
}

static int wrong_messages(void)
{
    mach_port_t port;
    self = mach_task_self();
    SAME(syscall_mach_port_allocate(self, MACH_PORT_RIGHT_RECEIVE, &port), KERN_SUCCESS);
    SAME(send_raw(MACH_MSG_TYPE_MAKE_SEND, 12345, 0, 32), MACH_SEND_INVALID_DEST);
    SAME(send_raw(MACH_MSG_TYPE_COPY_SEND, port, 0, 32), MACH_SEND_INVALID_DEST);
    SAME(send_raw(99, port, 0, 32), MACH_SEND_INVALID_HEADER);
    SAME(send_raw(MACH_MSG_TYPE_MAKE_SEND, port, 0, 24), MACH_SEND_MSG_TOO_SMALL);
    SAME(send_raw(MACH_MSG_TYPE_MAKE_SEND, port, 0, 33), MACH_SEND_MSG_TOO_SMALL);
    SAME(send_raw(MACH_MSGH_BITS(MACH_MSG_TYPE_MAKE_SEND, MACH_MSG_TYPE_MAKE_SEND), port, 12345, 32),
         MACH_SEND_INVALID_REPLY);
    message.type = (mach_msg_type_t){ .msgt_name = MACH_MSG_TYPE_COPY_SEND, .msgt_size = 8, .msgt_inline = 1,
                                      .msgt_number = 1 };
    SAME(send_raw(MACH_MSGH_BITS_COMPLEX | MACH_MSG_TYPE_MAKE_SEND, port, 0, 48), MACH_SEND_INVALID_TYPE);
    message.type.msgt_size = 64;
    message.type.msgt_number = 0x10000000;
    SAME(send_raw(MACH_MSGH_BITS_COMPLEX | MACH_MSG_TYPE_MAKE_SEND, port, 0, 48), MACH_SEND_MSG_TOO_SMALL);
    message.type = (mach_msg_type_t){ .msgt_name = MACH_MSG_TYPE_BYTE, .msgt_size = 8, .msgt_number = 1 << 20 };
    *(unsigned long *)message.data = 0x10;
    SAME(send_raw(MACH_MSGH_BITS_COMPLEX | MACH_MSG_TYPE_MAKE_SEND, port, 0, 48), MACH_SEND_INVALID_MEMORY);
    SAME(mach_msg_trap((void *)0x10, MACH_SEND_MSG, 32, 0, 0, 0, 0), MACH_SEND_INVALID_DATA);
    SAME(mach_msg_trap((void *)-16, MACH_SEND_MSG, 32, 0, 0, 0, 0), MACH_SEND_INVALID_DATA);
    SAME(mach_msg_trap(&message.header, MACH_RCV_MSG, 0, 64, 12345, 0, 0), MACH_RCV_INVALID_NAME);
    SAME(mach_msg_trap(&message.header, MACH_RCV_MSG, 0, 64, self, 0, 0), MACH_RCV_INVALID_NAME);
    return 0;
}

static int full_queues(void)
{
    mach_port_t port;
    int sent = 0;
    SAME(syscall_mach_port_allocate(self, MACH_PORT_RIGHT_RECEIVE, &port), KERN_SUCCESS);
    while (sent < 1000 && send_raw(MACH_MSG_TYPE_MAKE_SEND, port, 0, 4096) == MACH_MSG_SUCCESS)
        sent++;
    SAME(sent, 5);
    SAME(send_raw(MACH_MSG_TYPE_MAKE_SEND, port, 0, 32), MACH_SEND_TIMED_OUT);
    SAME(mach_port_destroy(self, port), KERN_SUCCESS);
    return 0;
}

/* Ports up to the quota, then as many again after they were given up. */
static int too_many_ports(void)
{
    int counts[2];
    for (int round = 0; round < 2; round++) {
        mach_port_t first = MACH_PORT_NULL, port;
        kern_return_t result;
        counts[round] = 0;
        while ((result = syscall_mach_port_allocate(self, MACH_PORT_RIGHT_RECEIVE, &port)) == KERN_SUCCESS) {
            if (first == MACH_PORT_NULL)
                first = port;
            counts[round]++;
        }
        HOLDS(result == KERN_NO_SPACE || result == KERN_RESOURCE_SHORTAGE);
        HOLDS(counts[round] > 1000);
        for (int given = 0; given < counts[round]; given++, first++)
            mach_port_mod_refs(self, first, MACH_PORT_RIGHT_RECEIVE, -1);
    }
    return 0;
}

static int too_much_memory(void)
{
    vm_offset_t address = 0;
    HOLDS(syscall_vm_allocate(self, &address, ~0ul - 4096, 1) != KERN_SUCCESS);
    HOLDS(syscall_vm_allocate(self, &address, 1ul << 62, 1) != KERN_SUCCESS);
    address = 0x7ffffffff000;
    HOLDS(syscall_vm_allocate(self, &address, 1 << 20, 0) != KERN_SUCCESS);
    SAME(syscall_vm_allocate(self, (vm_offset_t *)0x10, 4096, 1), KERN_INVALID_ADDRESS);
    return 0;
}

static const struct test tests[] = {
    { "NATM0020", "each wrong message has its error", wrong_messages },
    { "NATM0021", "a full queue holds its limit of messages", full_queues },
    { "NATM0022", "ports are made up to the task's quota, and again after they were given up", too_many_ports },
    { "NATM0023", "memory that cannot be is refused", too_much_memory },
};

int main(void)
{
    run_tests(tests, sizeof tests / sizeof tests[0]);
    /* An unknown trap ends the task, and nothing else. */
    __asm__ volatile("syscall" : : "a"(-1000L) : "rcx", "r11", "memory");
    return 0;
}
