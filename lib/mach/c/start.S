/* The entry of a program: the stack pointer is at the number of arguments. */
    .text
    .globl _start
    .type _start, @function
_start:
    xor %ebp, %ebp
    mov (%rsp), %edi
    lea 8(%rsp), %rsi
    and $-16, %rsp
    call main
    call mach_task_self
    mov %eax, %edi
    call syscall_task_terminate
    ud2
    .size _start, . - _start

    .section .note.GNU-stack, "", @progbits
