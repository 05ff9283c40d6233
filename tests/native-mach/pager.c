/* A pager: one thread has the pages of a memory object, which the program and its child map. */
#include "tap.h"
#include "threads.h"

#include <mach_port_user.h>
#include "unused_requests.h"

#define PAGE 4096ul
#define PAGES 4

boolean_t memory_object_server(mach_msg_header_t *request, mach_msg_header_t *reply);

static mach_port_t self, object, control;
static _Alignas(4096) char store[PAGES][PAGE];
static _Alignas(16) char stack[16384], child_stack[16384];
static volatile int begun, requests, returns, completions, terminations, supplies;
static volatile kern_return_t supply_result;
static volatile vm_offset_t supply_error;
static volatile vm_size_t requested;
static vm_offset_t mapped;
/* How many bytes are requested at a time, and whether the object stays; set before it is mapped. */
static vm_size_t cluster;
static boolean_t stays;

/* The pager's side: what the kernel asks for. */

kern_return_t memory_object_init(memory_object_t memory, memory_object_control_t memory_control,
                                 memory_object_name_t name, vm_size_t page_size)
{
    (void)memory, (void)name;
    control = memory_control;
    if (page_size != PAGE || (cluster && memory_object_set_cluster_size(control, cluster) != KERN_SUCCESS))
        return KERN_FAILURE;
    kern_return_t result = memory_object_ready(memory_control, stays, MEMORY_OBJECT_COPY_DELAY);
    begun++;
    return result;
}

kern_return_t memory_object_data_request(memory_object_t memory, memory_object_control_t memory_control,
                                         vm_offset_t offset, vm_size_t length, vm_prot_t access)
{
    (void)memory, (void)access;
    requests++;
    requested = length;
    if (offset >= sizeof store)
        return memory_object_data_error(memory_control, offset, length, KERN_FAILURE);
    if (offset == 3 * PAGE && !returns)
        return memory_object_data_unavailable(memory_control, offset, length);
    return memory_object_data_supply(memory_control, offset, (pointer_t)store[offset / PAGE],
                                     (mach_msg_type_number_t)length, FALSE, VM_PROT_NONE, FALSE, MACH_PORT_NULL);
}

kern_return_t memory_object_data_return(memory_object_t memory, memory_object_control_t memory_control,
                                        vm_offset_t offset, pointer_t data, mach_msg_type_number_t size,
                                        boolean_t dirty, boolean_t kernel_copy)
{
    (void)memory, (void)memory_control, (void)dirty, (void)kernel_copy;
    if (offset < sizeof store && size <= sizeof store - offset)
        memcpy((char *)store + offset, (const void *)data, size);
    returns++;
    return vm_deallocate(self, data, size);
}

kern_return_t memory_object_terminate(memory_object_t memory, memory_object_control_t memory_control,
                                      memory_object_name_t name)
{
    (void)memory;
    mach_port_destroy(self, memory_control);
    mach_port_destroy(self, name);
    terminations++;
    return KERN_SUCCESS;
}

kern_return_t memory_object_lock_completed(memory_object_t memory, memory_object_control_t memory_control,
                                           vm_offset_t offset, vm_size_t length)
{
    (void)memory, (void)memory_control, (void)offset, (void)length;
    completions++;
    return KERN_SUCCESS;
}

kern_return_t memory_object_supply_completed(memory_object_t memory, memory_object_control_t memory_control,
                                             vm_offset_t offset, vm_size_t length, kern_return_t result,
                                             vm_offset_t error_offset)
{
    (void)memory, (void)memory_control, (void)offset, (void)length;
    supply_result = result;
    supply_error = error_offset;
    supplies++;
    return KERN_SUCCESS;
}

static void serve(void)
{
    mach_msg_return_t result = mach_msg_server(memory_object_server, 4096, object);
    print("# the pager ends: ", decimal(result), "\n", (char *)0);
    for (;;)
        thread_switch(MACH_PORT_NULL, SWITCH_OPTION_WAIT, 1000000);
}

/* The users' side. */

static int wait_for(volatile int *count, int least)
{
    for (int waits = 0; *count < least && waits < 500; waits++)
        thread_switch(MACH_PORT_NULL, SWITCH_OPTION_WAIT, 10);
    return *count >= least;
}

static int pages_come_from_the_pager(void)
{
    self = mach_task_self();
    for (unsigned page = 0; page < PAGES; page++)
        memset(store[page], 'a' + (int)page, PAGE);
    SAME(mach_port_allocate(self, MACH_PORT_RIGHT_RECEIVE, &object), KERN_SUCCESS);
    SAME(mach_port_insert_right(self, object, object, MACH_MSG_TYPE_MAKE_SEND), KERN_SUCCESS);
    HOLDS(start_thread(self, serve, stack + sizeof stack) != MACH_PORT_NULL);
    SAME(vm_map(self, &mapped, (PAGES + 1) * PAGE, 0, TRUE, object, 0, FALSE, VM_PROT_READ | VM_PROT_WRITE,
                VM_PROT_READ | VM_PROT_WRITE, VM_INHERIT_SHARE),
         KERN_SUCCESS);
    const volatile char *memory = (const volatile char *)mapped;
    for (unsigned page = 0; page < PAGES - 1; page++) {
        SAME(memory[page * PAGE], 'a' + (int)page);
        SAME(memory[page * PAGE + PAGE - 1], 'a' + (int)page);
    }
    SAME(memory[3 * PAGE], 0);
    SAME(requests, PAGES);
    return 0;
}

static void child(void)
{
    *(volatile char *)(mapped + PAGE) = 'X';
    syscall_task_terminate(mach_task_self());
}

static int a_child_shares_them(void)
{
    mach_port_t task;
    SAME(task_create(self, 1, &task), KERN_SUCCESS);
    HOLDS(start_thread(task, child, child_stack + sizeof child_stack) != MACH_PORT_NULL);
    const volatile char *byte = (const volatile char *)(mapped + PAGE);
    for (int waits = 0; *byte != 'X' && waits < 500; waits++)
        thread_switch(MACH_PORT_NULL, SWITCH_OPTION_WAIT, 10);
    SAME(*byte, 'X');
    SAME(requests, PAGES);
    return 0;
}

static int changed_pages_return(void)
{
    mach_port_t done = mach_reply_port();
    SAME(memory_object_lock_request(control, 0, PAGES * PAGE, MEMORY_OBJECT_RETURN_DIRTY, TRUE, VM_PROT_NO_CHANGE,
                                    object),
         KERN_SUCCESS);
    HOLDS(wait_for(&completions, 1));
    SAME(returns, 1);
    SAME(store[1][0], 'X');
    SAME(store[1][1], 'b');
    /* The pages have left memory, so the pager is asked again. */
    SAME(((const volatile char *)mapped)[PAGE], 'X');
    SAME(((const volatile char *)mapped)[3 * PAGE], 'd');
    SAME(requests, PAGES + 2);
    return mach_port_destroy(self, done);
}

static int a_copy_is_private(void)
{
    vm_offset_t copy = 0;
    SAME(vm_map(self, &copy, PAGES * PAGE, 0, TRUE, object, 0, TRUE, VM_PROT_READ | VM_PROT_WRITE,
                VM_PROT_READ | VM_PROT_WRITE, VM_INHERIT_COPY),
         KERN_SUCCESS);
    ((volatile char *)copy)[2 * PAGE] = 'Y';
    SAME(((const volatile char *)mapped)[2 * PAGE], 'c');
    ((volatile char *)mapped)[0] = 'Z';
    SAME(((const volatile char *)copy)[0], 'a');
    SAME(vm_deallocate(self, copy, PAGES * PAGE), KERN_SUCCESS);
    return 0;
}

static int an_error_of_the_pager_is_the_users(void)
{
    pointer_t data = 0;
    mach_msg_type_number_t count = 0;
    /* The page beyond the store cannot be had. */
    kern_return_t result = vm_read(self, mapped + PAGES * PAGE, PAGE, &data, &count);
    if (result == KERN_SUCCESS) {
        /* The copy is made without the page, which is missed when it is used. */
        SAME(vm_write(self, (vm_offset_t)store[0] + 8, data, count), KERN_MEMORY_ERROR);
        SAME(vm_deallocate(self, data, count), KERN_SUCCESS);
    } else {
        SAME(result, KERN_MEMORY_ERROR);
    }
    return 0;
}

static int the_last_mapping_ends_the_object(void)
{
    SAME(vm_deallocate(self, mapped, (PAGES + 1) * PAGE), KERN_SUCCESS);
    HOLDS(wait_for(&terminations, 1));
    /* What was changed last has returned before. */
    SAME(store[0][0], 'Z');
    return 0;
}

/* Maps the pages of the store. */
static kern_return_t map_store(void)
{
    mapped = 0;
    return vm_map(self, &mapped, PAGES * PAGE, 0, TRUE, object, 0, FALSE, VM_PROT_READ | VM_PROT_WRITE,
                  VM_PROT_READ | VM_PROT_WRITE, VM_INHERIT_SHARE);
}

static int a_cluster_is_one_request(void)
{
    int before = begun;
    cluster = PAGES * PAGE;
    requests = 0;
    stays = TRUE;
    SAME(map_store(), KERN_SUCCESS);
    /* An access before that is for one page. */
    HOLDS(wait_for(&begun, before + 1));
    for (unsigned page = 0; page < PAGES; page++)
        SAME(((const volatile char *)mapped)[page * PAGE], store[page][0]);
    SAME(requests, 1);
    SAME(requested, PAGES * PAGE);
    return 0;
}

static int what_is_there_is_not_supplied_again(void)
{
    ((volatile char *)mapped)[PAGE] = 'W';
    SAME(memory_object_data_supply(control, 0, (pointer_t)store, sizeof store, FALSE, VM_PROT_NONE, FALSE, object),
         KERN_SUCCESS);
    HOLDS(wait_for(&supplies, 1));
    /* KERN_MEMORY_PRESENT */
    SAME(supply_result, 23);
    SAME(supply_error, 0);
    SAME(((const volatile char *)mapped)[PAGE], 'W');
    return 0;
}

static int an_object_that_may_stays(void)
{
    int before = terminations;
    SAME(vm_deallocate(self, mapped, PAGES * PAGE), KERN_SUCCESS);
    SAME(map_store(), KERN_SUCCESS);
    SAME(((const volatile char *)mapped)[PAGE], 'W');
    SAME(requests, 1);
    SAME(terminations, before);
    SAME(vm_deallocate(self, mapped, PAGES * PAGE), KERN_SUCCESS);
    /* The pager changes its mind, and gets what was changed. */
    SAME(memory_object_change_attributes(control, FALSE, MEMORY_OBJECT_COPY_DELAY, MACH_PORT_NULL), KERN_SUCCESS);
    HOLDS(wait_for(&terminations, before + 1));
    SAME(store[1][0], 'W');
    return 0;
}

static const struct test tests[] = {
    { "NATM0030", "memory of a pager's port is what the pager supplies", pages_come_from_the_pager },
    { "NATM0031", "a child task shares it", a_child_shares_them },
    { "NATM0032", "pages that were changed return to the pager at its request", changed_pages_return },
    { "NATM0033", "a private copy shows the object as it was", a_copy_is_private },
    { "NATM0034", "what the pager cannot supply is an error of its user", an_error_of_the_pager_is_the_users },
    { "NATM0035", "the last mapping ends the object", the_last_mapping_ends_the_object },
    { "NATM0036", "a request is for as many pages as the pager has asked for", a_cluster_is_one_request },
    { "NATM0037", "a page that is in memory is not replaced by the pager", what_is_there_is_not_supplied_again },
    { "NATM0038", "an object stays when nothing maps it, as long as its pager allows it", an_object_that_may_stays },
};

int main(void)
{
    run_tests(tests, sizeof tests / sizeof tests[0]);
    return 0;
}
