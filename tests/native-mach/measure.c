/* What traps and messages cost a native Mach program, in instructions of everything together, where
 * the time-stamp counter counts them. A cost is to be read by its fit: that of one more round. */
#include "rpc.h"
#include "tap.h"
#include "threads.h"

#include "unused_requests.h"

#include <mach/mig_support.h>
#include <mach_port_user.h>

static const int rounds[] = { 32, 64, 128 };
/* How many rounds the profile has. */
#define MARKED 128
static const unsigned sizes[] = { 0, 1016, 4088 };
static const char *const within[] = { "rpc-within-a-task-32", "rpc-within-a-task-1024", "rpc-within-a-task-4096" };
static const char *const between[] = { "rpc-between-tasks-32", "rpc-between-tasks-1024", "rpc-between-tasks-4096" };

#define MEGABYTE (1ul << 20)
#define PORT_BOOTSTRAP 4

static mach_port_t self, service, reply, own;
static struct message message, served;
static struct {
    mach_msg_header_t header;
    mach_msg_type_t type;
    vm_offset_t address;
} large;
static vm_offset_t region;
static _Alignas(16) char stack[16384], child_stack[16384];
static volatile int finished;
static int failures;

static inline unsigned long now(void)
{
    unsigned low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (unsigned long)high << 32 | low;
}

static void expect(kern_return_t result)
{
    failures += result != KERN_SUCCESS;
}

/* A mark for the lab's counters (docs/src/measuring.md): a region begins (1) or ends (2). */
#define MARK(kind) __asm__ volatile(".byte 0x0f, 0x1f, 0x80; .long 0x4d4c0000 + (" #kind " << 8)" ::: "memory")

/* Measures an operation in each number of rounds, then marks some for a profile. The
 * first round of each is not measured. */
static void measure(const char *name, void (*operation)(unsigned), unsigned argument)
{
    for (unsigned index = 0; index < sizeof rounds / sizeof rounds[0]; index++) {
        operation(argument);
        unsigned long start = now();
        for (int round = 0; round < rounds[index]; round++)
            operation(argument);
        unsigned long cost = now() - start;
        print("{\"test\":\"", name, "\",\"parameter\":", decimal(rounds[index]),
              ",\"counter\":\"instructions\",\"value\":", decimal((long)cost), "}\n", (char *)0);
    }
    MARK(1);
    for (int round = 0; round < MARKED; round++)
        operation(argument);
    MARK(2);
    print("{\"region\":\"", name, "\",\"operations\":", decimal(MARKED), "}\n", (char *)0);
}

/* Answers each request with as many bytes as it has. */
static void serve(void)
{
    mach_msg_return_t result = wait_at(&served, service);
    while (result == MACH_MSG_SUCCESS) {
        if (served.header.msgh_id == -1)
            finished = 1;
        unsigned bytes = served.header.msgh_size > 32 ? served.type.msgt_number : 0;
        result = answer_and_wait(&served, service, bytes);
    }
    for (;;)
        thread_switch(MACH_PORT_NULL, SWITCH_OPTION_WAIT, 1000000);
}

static void call_service(unsigned bytes)
{
    if (bytes)
        describe(&message, bytes);
    expect(call(&message, service, reply, bytes));
}

static void child(void)
{
    mig_init((void *)0);
    self = mach_task_self();
    reply = mach_reply_port();
    expect(task_get_special_port(self, PORT_BOOTSTRAP, &service));
    for (unsigned index = 0; index < 3; index++)
        measure(between[index], call_service, sizes[index]);
    message.header.msgh_id = -1;
    call_service(0);
    syscall_task_terminate(self);
}

static void invalid_trap(unsigned unused)
{
    (void)unused;
    long result = -31;
    __asm__ volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
}

static void task_self_trap(unsigned unused)
{
    (void)unused;
    mach_task_self();
}

static void message_to_oneself(unsigned unused)
{
    (void)unused;
    message.header.msgh_bits = MACH_MSGH_BITS(MACH_MSG_TYPE_MAKE_SEND, 0);
    message.header.msgh_remote_port = own;
    message.header.msgh_local_port = MACH_PORT_NULL;
    expect(mach_msg_trap(&message.header, MACH_SEND_MSG | MACH_RCV_MSG, 32, sizeof message, own, 0, MACH_PORT_NULL));
}

static void port_allocate_and_destroy(unsigned unused)
{
    (void)unused;
    mach_port_t port;
    expect(syscall_mach_port_allocate(self, MACH_PORT_RIGHT_RECEIVE, &port));
    expect(mach_port_destroy(self, port));
}

static void memory_by_traps(unsigned unused)
{
    (void)unused;
    vm_offset_t address = 0;
    expect(syscall_vm_allocate(self, &address, 4096, 1));
    expect(syscall_vm_deallocate(self, address, 4096));
}

static void port_type_by_message(unsigned unused)
{
    (void)unused;
    mach_port_type_t type;
    expect(mach_port_type(self, own, &type));
}

static void task_info_by_message(unsigned unused)
{
    (void)unused;
    integer_t info[64];
    mach_msg_type_number_t count = 64;
    expect(task_info(self, 1, info, &count));
}

static void megabyte_out_of_line(unsigned unused)
{
    (void)unused;
    large.header.msgh_bits = MACH_MSGH_BITS(MACH_MSG_TYPE_MAKE_SEND, 0) | MACH_MSGH_BITS_COMPLEX;
    large.header.msgh_remote_port = own;
    large.header.msgh_local_port = MACH_PORT_NULL;
    large.type = (mach_msg_type_t){ .msgt_name = MACH_MSG_TYPE_BYTE, .msgt_size = 8, .msgt_number = MEGABYTE };
    large.address = region;
    expect(mach_msg_trap(&large.header, MACH_SEND_MSG | MACH_RCV_MSG, sizeof large, sizeof large, own, 0,
                         MACH_PORT_NULL));
    expect(syscall_vm_deallocate(self, large.address, MEGABYTE));
}

static void switch_to_none(unsigned unused)
{
    (void)unused;
    expect(thread_switch(MACH_PORT_NULL, SWITCH_OPTION_NONE, 0));
}

/* A pager, whose pages are all the same. One of its objects is asked for page by page. */

#define PAGE 4096ul
#define CLUSTER 32
/* As many pages as are touched by a measurement, and more. */
#define TOUCHED 512

boolean_t memory_object_server(mach_msg_header_t *request, mach_msg_header_t *reply);

static mach_port_t objects, single, clustered;
static _Alignas(4096) char contents[CLUSTER * PAGE];
static _Alignas(16) char pager_stack[16384];
static vm_offset_t paged, touched;

kern_return_t memory_object_init(memory_object_t memory, memory_object_control_t control, memory_object_name_t name,
                                 vm_size_t page_size)
{
    (void)name;
    if (memory == clustered)
        expect(memory_object_set_cluster_size(control, CLUSTER * page_size));
    return memory_object_ready(control, FALSE, MEMORY_OBJECT_COPY_DELAY);
}

kern_return_t memory_object_data_request(memory_object_t memory, memory_object_control_t control, vm_offset_t offset,
                                         vm_size_t length, vm_prot_t access)
{
    (void)memory, (void)access;
    return memory_object_data_supply(control, offset, (pointer_t)contents, (mach_msg_type_number_t)length, FALSE,
                                     VM_PROT_NONE, FALSE, MACH_PORT_NULL);
}

kern_return_t memory_object_data_return(memory_object_t memory, memory_object_control_t control, vm_offset_t offset,
                                        pointer_t data, mach_msg_type_number_t size, boolean_t dirty,
                                        boolean_t kernel_copy)
{
    (void)memory, (void)control, (void)offset, (void)dirty, (void)kernel_copy;
    return vm_deallocate(self, data, size);
}

kern_return_t memory_object_terminate(memory_object_t memory, memory_object_control_t control,
                                      memory_object_name_t name)
{
    (void)memory;
    mach_port_destroy(self, control);
    return mach_port_destroy(self, name);
}

kern_return_t memory_object_lock_completed(memory_object_t memory, memory_object_control_t control,
                                           vm_offset_t offset, vm_size_t length)
{
    (void)memory, (void)control, (void)offset, (void)length;
    return KERN_FAILURE;
}

kern_return_t memory_object_supply_completed(memory_object_t memory, memory_object_control_t control,
                                             vm_offset_t offset, vm_size_t length, kern_return_t result,
                                             vm_offset_t error_offset)
{
    (void)memory, (void)control, (void)offset, (void)length, (void)result, (void)error_offset;
    return KERN_FAILURE;
}

static void serve_objects(void)
{
    mach_msg_server(memory_object_server, 4096, objects);
    for (;;)
        thread_switch(MACH_PORT_NULL, SWITCH_OPTION_WAIT, 1000000);
}

static void touch_next_page(unsigned unused)
{
    (void)unused;
    (void)*(const volatile char *)(paged + touched++ % TOUCHED * PAGE);
}

/* Measures the first touch of a page of an object of the pager's. */
static void measure_pager(const char *name, mach_port_t object)
{
    paged = touched = 0;
    expect(mach_port_insert_right(self, object, object, MACH_MSG_TYPE_MAKE_SEND));
    expect(mach_port_move_member(self, object, objects));
    expect(vm_map(self, &paged, TOUCHED * PAGE, 0, TRUE, object, 0, FALSE, VM_PROT_READ, VM_PROT_READ,
                  VM_INHERIT_NONE));
    measure(name, touch_next_page, 0);
    expect(vm_deallocate(self, paged, TOUCHED * PAGE));
}

int main(void)
{
    mach_port_t task;
    print("1..1\n", (char *)0);
    self = mach_task_self();
    expect(syscall_mach_port_allocate(self, MACH_PORT_RIGHT_RECEIVE, &own));
    expect(syscall_vm_allocate(self, &region, MEGABYTE, 1));
    for (unsigned long at = 0; at < MEGABYTE; at += 4096)
        *(volatile char *)(region + at) = 1;
    measure("trap", invalid_trap, 0);
    measure("mach-task-self", task_self_trap, 0);
    measure("thread-switch", switch_to_none, 0);
    measure("message-to-oneself", message_to_oneself, 0);
    measure("port-allocate-and-destroy", port_allocate_and_destroy, 0);
    measure("memory-by-traps", memory_by_traps, 0);
    measure("mach-port-type", port_type_by_message, 0);
    measure("task-info", task_info_by_message, 0);
    measure("megabyte-out-of-line", megabyte_out_of_line, 0);

    expect(mach_port_allocate(self, MACH_PORT_RIGHT_PORT_SET, &objects));
    expect(mach_port_allocate(self, MACH_PORT_RIGHT_RECEIVE, &single));
    expect(mach_port_allocate(self, MACH_PORT_RIGHT_RECEIVE, &clustered));
    failures += start_thread(self, serve_objects, pager_stack + sizeof pager_stack) == MACH_PORT_NULL;
    measure_pager("fault-by-pager", single);
    measure_pager("fault-by-pager-in-clusters", clustered);

    expect(mach_port_allocate(self, MACH_PORT_RIGHT_RECEIVE, &service));
    expect(mach_port_insert_right(self, service, service, MACH_MSG_TYPE_MAKE_SEND));
    reply = mach_reply_port();
    failures += start_thread(self, serve, stack + sizeof stack) == MACH_PORT_NULL;
    for (unsigned index = 0; index < 3; index++)
        measure(within[index], call_service, sizes[index]);
    expect(task_set_special_port(self, PORT_BOOTSTRAP, service));
    expect(task_create(self, 1, &task));
    failures += start_thread(task, child, child_stack + sizeof child_stack) == MACH_PORT_NULL;
    while (!finished)
        thread_switch(MACH_PORT_NULL, SWITCH_OPTION_WAIT, 10);
    print(failures ? "not ok" : "ok", " 1 - BNAT0001 every call succeeded\n", (char *)0);
    return 0;
}
