/* A name server in one thread, and two tasks that find each other by it: the child gives a port a
 * name, and its parent looks the name up and sends the port a message. */
#include <cthreads.h>
#include <mach.h>
#include <mach/mig_support.h>
#include <mach_port_user.h>
#include <mach_user.h>
#include <names_server.h>
#include <names_user.h>

#define MOST 16
#define BOOTSTRAP 4

boolean_t names_server(mach_msg_header_t *request, mach_msg_header_t *reply);

static struct entry {
    port_name_t name;
    mach_port_t port;
} entries[MOST];
static int count;
static mach_port_t service;

static int is_equal(const char *one, const char *other)
{
    while (*one && *one == *other)
        one++, other++;
    return *one == *other;
}

static struct entry *find(const char *name)
{
    for (struct entry *entry = entries; entry < entries + count; entry++)
        if (is_equal(entry->name, name))
            return entry;
    return 0;
}

kern_return_t serve_names_check_in(mach_port_t server, const_port_name_t name, mach_port_t port)
{
    (void)server;
    if (find(name))
        return KERN_NAME_EXISTS;
    if (count == MOST)
        return KERN_RESOURCE_SHORTAGE;
    memcpy(entries[count].name, name, NAME_BYTES);
    entries[count++].port = port;
    return KERN_SUCCESS;
}

kern_return_t serve_names_look_up(mach_port_t server, const_port_name_t name, mach_port_t *port)
{
    (void)server;
    struct entry *entry = find(name);
    *port = entry ? entry->port : MACH_PORT_NULL;
    return entry ? KERN_SUCCESS : KERN_INVALID_NAME;
}

static any_t serve(any_t unused)
{
    (void)unused;
    return (any_t)(long)mach_msg_server(names_server, 4096, service);
}

/* The child's program. Its memory is a copy of its parent's, its names for ports are its own:
 * those that stubs have kept for replies are the parent's. */
static void child(void)
{
    mig_init(0);
    mach_port_t task = mach_task_self(), names, port;
    mach_msg_header_t message;
    if (task_get_special_port(task, BOOTSTRAP, &names) == KERN_SUCCESS &&
        mach_port_allocate(task, MACH_PORT_RIGHT_RECEIVE, &port) == KERN_SUCCESS &&
        mach_port_insert_right(task, port, port, MACH_MSG_TYPE_MAKE_SEND) == KERN_SUCCESS &&
        names_check_in(names, "greetings", port) == KERN_SUCCESS &&
        mach_msg(&message, MACH_RCV_MSG, 0, sizeof message, port, MACH_MSG_TIMEOUT_NONE, MACH_PORT_NULL) == 0)
        mach_print(message.msgh_id == 42 ? "the child was greeted\n" : "the child got another message\n");
    syscall_task_terminate(task);
}

static kern_return_t start_child(void)
{
    static _Alignas(16) char stack[16384];
    unsigned long registers[21] = { [16] = (unsigned long)child, [18] = 0x202 };
    mach_port_t task, thread;
    registers[11] = registers[19] = (unsigned long)(stack + sizeof stack) - 8;
    kern_return_t result = task_create(mach_task_self(), TRUE, &task);
    if (result == KERN_SUCCESS)
        result = thread_create(task, &thread);
    if (result == KERN_SUCCESS)
        result = thread_set_state(thread, 1, (thread_state_t)registers, 42);
    return result == KERN_SUCCESS ? thread_resume(thread) : result;
}

int main(void)
{
    mach_port_t self = mach_task_self(), port;
    if (cthread_init() != KERN_SUCCESS ||
        mach_port_allocate(self, MACH_PORT_RIGHT_RECEIVE, &service) != KERN_SUCCESS ||
        mach_port_insert_right(self, service, service, MACH_MSG_TYPE_MAKE_SEND) != KERN_SUCCESS ||
        task_set_special_port(self, BOOTSTRAP, service) != KERN_SUCCESS ||
        cthread_fork(serve, 0) == CTHREAD_NULL || start_child() != KERN_SUCCESS) {
        mach_print("there are no resources\n");
        return 1;
    }
    while (names_look_up(service, "greetings", &port) != KERN_SUCCESS)
        thread_switch(MACH_PORT_NULL, SWITCH_OPTION_WAIT, 1);
    mach_msg_header_t message = { .msgh_bits = MACH_MSGH_BITS(MACH_MSG_TYPE_COPY_SEND, 0),
                                  .msgh_size = sizeof message,
                                  .msgh_remote_port = port,
                                  .msgh_id = 42 };
    return mach_msg(&message, MACH_SEND_MSG, sizeof message, 0, MACH_PORT_NULL, MACH_MSG_TIMEOUT_NONE, MACH_PORT_NULL);
}
