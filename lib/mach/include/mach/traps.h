/* The traps. Those that name a task do what they say for the caller's own task; for any other the
 * result is MACH_SEND_INTERRUPTED, and a message does it. */
#ifndef MACH_TRAPS_H
#define MACH_TRAPS_H

#include <mach/message.h>

mach_msg_return_t mach_msg_trap(mach_msg_header_t *message, mach_msg_option_t option, mach_msg_size_t send_size,
                                mach_msg_size_t receive_size, mach_port_t receive_name, mach_msg_timeout_t timeout,
                                mach_port_t notify);
mach_port_t mach_reply_port(void);
mach_port_t mach_thread_self(void);
mach_port_t mach_task_self(void);
mach_port_t mach_host_self(void);
kern_return_t mach_print(const char *text);
kern_return_t evc_wait(natural_t event);
boolean_t swtch_pri(int priority);
boolean_t swtch(void);
kern_return_t thread_switch(mach_port_t thread, int option, mach_msg_timeout_t milliseconds);
kern_return_t syscall_vm_map(mach_port_t task, vm_offset_t *address, vm_size_t size, vm_offset_t mask,
                             boolean_t anywhere, mach_port_t object, vm_offset_t offset, boolean_t copy,
                             vm_prot_t protection, vm_prot_t maximum, vm_inherit_t inheritance);
kern_return_t syscall_vm_allocate(mach_port_t task, vm_offset_t *address, vm_size_t size, boolean_t anywhere);
kern_return_t syscall_vm_deallocate(mach_port_t task, vm_offset_t address, vm_size_t size);
kern_return_t syscall_task_create(mach_port_t parent, boolean_t inherit, mach_port_t *child);
kern_return_t syscall_task_terminate(mach_port_t task);
kern_return_t syscall_task_suspend(mach_port_t task);
kern_return_t syscall_task_set_special_port(mach_port_t task, int which, mach_port_t port);
kern_return_t syscall_mach_port_allocate(mach_port_t task, mach_port_right_t right, mach_port_t *name);
kern_return_t syscall_mach_port_deallocate(mach_port_t task, mach_port_t name);
kern_return_t syscall_mach_port_insert_right(mach_port_t task, mach_port_t name, mach_port_t right, int disposition);
kern_return_t syscall_mach_port_allocate_name(mach_port_t task, mach_port_right_t right, mach_port_t name);
kern_return_t syscall_thread_depress_abort(mach_port_t thread);
kern_return_t syscall_thread_set_self_state(int flavor, const natural_t *state, natural_t count);

#endif
