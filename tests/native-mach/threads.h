/* Threads of the program's own task. */
#ifndef THREADS_H
#define THREADS_H

#include <mach.h>
#include <mach_user.h>

/* Starts a thread that calls `entry`, which must not return, on a stack of a page's end. Returns
 * the thread's name, or MACH_PORT_NULL. */
static inline mach_port_t start_thread(mach_port_t task, void (*entry)(void), char *stack_end)
{
    /* The registers in the order of the flavour 1: r8 to r15, rdi, rsi, rbp, rsp, rbx, rdx, rcx,
     * rax, rip, cs, rflags, rsp, ss. */
    unsigned long registers[21] = { [16] = (unsigned long)entry };
    mach_port_t thread;
    natural_t flags = 0x202;
    registers[18] = flags;
    /* As after a call, the stack pointer is 8 below a multiple of 16. */
    registers[19] = registers[11] = ((unsigned long)stack_end & ~15ul) - 8;
    if (thread_create(task, &thread) != KERN_SUCCESS)
        return MACH_PORT_NULL;
    if (thread_set_state(thread, 1, (natural_t *)registers, sizeof registers / (sizeof(natural_t))) != KERN_SUCCESS ||
        thread_resume(thread) != KERN_SUCCESS)
        return MACH_PORT_NULL;
    return thread;
}

#endif
