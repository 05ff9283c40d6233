/* System calls as the binary interface describes them (ABI 4, 5): entry addresses are words of the
 * kernel interface page, arguments are in fixed registers, RBP is the caller's to save, everything
 * that is not a result is lost. */
        .section .text.entry, "ax", @progbits
        .global _start
_start: lea     stack_top(%rip), %rsp
        push    %rax            /* what a loader may have left; means nothing here */
        push    %rbx
        xor     %ebp, %ebp
        call    standalone_main
        ud2

        .text

/* unsigned long kernel_interface(unsigned long words[3]): the page; words = API version, API flags,
 * kernel id. */
        .global kernel_interface
kernel_interface:
        .byte   0xf0, 0x90
        mov     %rcx, (%rdi)
        mov     %rdx, 8(%rdi)
        mov     %rsi, 16(%rdi)
        ret

/* Saves what the C calling convention preserves, runs the body, restores it. */
        .macro  enter_call
        push    %rbp
        push    %rbx
        push    %r12
        push    %r13
        push    %r14
        push    %r15
        .endm
        .macro  leave_call
        pop     %r15
        pop     %r14
        pop     %r13
        pop     %r12
        pop     %rbx
        pop     %rbp
        ret
        .endm
        .macro  load_message            /* from the UTCB in RDI */
        mov     (%rdi), %r9
        mov     8(%rdi), %rax
        mov     16(%rdi), %rbx
        mov     24(%rdi), %r10
        mov     32(%rdi), %r12
        mov     40(%rdi), %r13
        mov     48(%rdi), %r14
        mov     56(%rdi), %r15
        .endm
        .macro  store_message
        mov     %r9, (%rdi)
        mov     %rax, 8(%rdi)
        mov     %rbx, 16(%rdi)
        mov     %r10, 24(%rdi)
        mov     %r12, 32(%rdi)
        mov     %r13, 40(%rdi)
        mov     %r14, 48(%rdi)
        mov     %r15, 56(%rdi)
        .endm

/* unsigned long ipc(unsigned long entry, to, from, timeouts): the sender; the message is in the
 * UTCB. */
        .global ipc
ipc:    enter_call
        mov     %rcx, %r8               /* timeouts; RSI = to and RDX = from are in place */
        mov     %rdi, %rcx
        mov     %gs:0, %rdi
        load_message
        call    *%rcx
        store_message                   /* RDI is the UTCB again */
        mov     %rsi, %rax
        leave_call

/* void unmap(unsigned long entry, control) */
        .global unmap
unmap:  enter_call
        mov     %rdi, %rcx
        mov     %rsi, %rdx
        mov     %gs:0, %rdi
        load_message
        call    *%rcx
        store_message
        leave_call

/* unsigned long thread_control(unsigned long entry, dest, space, scheduler, pager, utcb) */
        .global thread_control
thread_control:
        enter_call
        mov     %rdi, %rax
        mov     %rsi, %rdi              /* dest */
        mov     %r8, %rsi               /* pager */
        mov     %rdx, %r8               /* space */
        mov     %rcx, %rdx              /* scheduler; R9 = utcb is in place */
        call    *%rax
        leave_call

/* unsigned long exchange_registers(unsigned long entry, dest, control, sp, ip): the other form of
 * the id. */
        .global exchange_registers
exchange_registers:
        enter_call
        mov     %rdi, %r11
        mov     %rsi, %rax              /* dest */
        mov     %rdx, %rsi              /* control */
        mov     %rcx, %rdx              /* sp; R8 = ip is in place */
        xor     %r9d, %r9d
        xor     %r10d, %r10d
        xor     %edi, %edi
        call    *%r11
        leave_call

/* unsigned long simple_call(unsigned long entry): a call without arguments. */
        .global simple_call
simple_call:
        enter_call
        mov     %rdi, %rax
        xor     %edi, %edi
        call    *%rax
        leave_call

        .bss
        .balign 16
        .skip   16384
stack_top:

        .section .note.GNU-stack, "", @progbits
