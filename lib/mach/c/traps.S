/* The traps: a negative number in RAX, and the arguments as C passes them, except that SYSCALL uses
 * RCX. Arguments beyond the sixth stay on the stack above the return address. */

.macro trap name number
    .globl \name
    .type \name, @function
\name:
    mov $-\number, %rax
    mov %rcx, %r10
    syscall
    ret
    .size \name, . - \name
.endm

    .text
    trap mach_msg_trap 25
    trap mach_reply_port 26
    trap mach_thread_self 27
    trap mach_task_self 28
    trap mach_host_self 29
    trap mach_print 30
    trap evc_wait 17
    trap swtch_pri 59
    trap swtch 60
    trap thread_switch 61
    trap syscall_vm_map 64
    trap syscall_vm_allocate 65
    trap syscall_vm_deallocate 66
    trap syscall_task_create 68
    trap syscall_task_terminate 69
    trap syscall_task_suspend 70
    trap syscall_task_set_special_port 71
    trap syscall_mach_port_allocate 72
    trap syscall_mach_port_deallocate 73
    trap syscall_mach_port_insert_right 74
    trap syscall_mach_port_allocate_name 75
    trap syscall_thread_depress_abort 76
    trap syscall_thread_set_self_state 77

    .section .note.GNU-stack, "", @progbits
