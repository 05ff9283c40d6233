// The 256 interrupt vectors. Each pushes a zero where the processor pushes no error code, then its
// number:
//
//   [rsp] vector   +8 error code   +16 RIP   +24 CS   +32 RFLAGS   +40 RSP   +48 SS
//
// From user mode the frame is handed, with GS still the user's and nothing else changed, to
// `entry_from_user`, which owns everything that concerns threads. From kernel mode an interrupt is
// only noted. For exceptions there (page fault, general protection and invalid opcode on a stack
// for faults), and for what must not trust GS (non-maskable interrupt, machine check, double fault,
// each on a stack of its own), the registers are saved here and kernel_mode_exception is called; if
// it returns, so does the interrupted code.

.text

// Jumps if the frame is of user mode. That is what its CS says, except in virtual-8086 mode, where
// CS is no selector. 64-bit processors do not have that mode, but QEMU's translator lets the IRET
// of any program switch to it.
.macro jump_if_user target
    test    byte ptr [rsp + 24], 3
    jnz     \target
    test    byte ptr [rsp + 34], 2          // RFLAGS.VM
    jnz     \target
.endm

.balign 16
.global interrupt_vectors
interrupt_vectors:
.set n, 0
.rept 256
    .balign 16
    .if (n == 8) || (n >= 10 && n <= 14) || (n == 17) || (n == 21) || (n == 29) || (n == 30)
    .else
    push    0
    .endif
    push    n
    .if (n == 2) || (n == 8) || (n == 18)
    jmp     from_kernel
    .elseif n == 1
    jmp     debug_exception
    .elseif (n == 6) || (n == 13) || (n == 14)
    jmp     fault
    .else
    jmp     from_anywhere
    .endif
    .set n, n + 1
.endr

.balign 16
from_anywhere:
    jump_if_user entry_from_user
    cmp     dword ptr [rsp], {first_interrupt}
    jb      from_kernel
    // The kernel opens interrupts only where it waits for one, or looks for one: afterwards it
    // finds the vector, and interrupts are off.
    push    rax
    mov     eax, [rsp + 8]
    mov     gs:[{idle_vector}], eax
    pop     rax
    and     dword ptr [rsp + 32], ~{interrupt_flag}
    add     rsp, 16
    iretq

// In entry code RSP may be the user's, a thread control block, or no address at all. So a fault
// arrives at the top of the kernel stack, where frames from user mode do, which are taken away
// before anything else is pushed; from kernel mode it moves to a stack for faults, or if one is
// reported there already, below that.
fault:
    jump_if_user entry_from_user
    push    rax
    mov     rax, [rsp + 48]             // RSP
    sub     rax, rsp
    cmp     rax, {frame_room}
    pop     rax
    jb      from_kernel                 // there is no such stack yet: it has arrived where RSP was
    push    rax
    push    rcx
    lea     rax, [rsp + {fault_stack}]
    mov     rcx, [rsp + 56]             // RSP
    xor     rcx, rax
    shr     rcx, {stack_bits}
    cmovz   rax, [rsp + 56]
    mov     rcx, rsp
    mov     rsp, rax
    and     rsp, -16
    push    qword ptr [rcx + 64]        // SS
    push    qword ptr [rcx + 56]        // RSP
    push    qword ptr [rcx + 48]        // RFLAGS
    push    qword ptr [rcx + 40]        // CS
    push    qword ptr [rcx + 32]        // RIP
    push    qword ptr [rcx + 24]        // error code
    push    qword ptr [rcx + 16]        // vector
    mov     rax, [rcx + 8]
    mov     rcx, [rcx]
from_kernel:
    push    rax
    push    rcx
    push    rdx
    push    rbx
    push    rbp
    push    rsi
    push    rdi
    push    r8
    push    r9
    push    r10
    push    r11
    push    r12
    push    r13
    push    r14
    push    r15
    cld
    test    dword ptr [rip + {features}], {smap}
    jz      2f
    // An entry that does not wait for the kernel may find the user's AC.
    clac
2:
    mov     rdi, rsp
    mov     rbx, rsp
    and     rsp, -16
    call    kernel_mode_exception
    mov     rsp, rbx
    pop     r15
    pop     r14
    pop     r13
    pop     r12
    pop     r11
    pop     r10
    pop     r9
    pop     r8
    pop     rdi
    pop     rsi
    pop     rbp
    pop     rbx
    pop     rdx
    pop     rcx
    pop     rax
    add     rsp, 16
    iretq

// A debug exception arrives on its interrupt stack, because it may hit the first instruction of an
// entry. Taken in user mode it is an ordinary exception of the thread: the frame moves to the stack
// that other exceptions arrive on.
debug_exception:
    jump_if_user 3f
    jmp     from_kernel
3:  swapgs
    push    rax
    push    rcx
    mov     rcx, rsp
    mov     rax, gs:[{task_state}]
    mov     rsp, [rax + {entry_stack}]
    push    qword ptr [rcx + 64]        // SS
    push    qword ptr [rcx + 56]        // RSP
    push    qword ptr [rcx + 48]        // RFLAGS
    push    qword ptr [rcx + 40]        // CS
    push    qword ptr [rcx + 32]        // RIP
    push    qword ptr [rcx + 24]        // error code
    push    qword ptr [rcx + 16]        // vector
    mov     rax, [rcx + 8]
    mov     rcx, [rcx]
    swapgs
    jmp     entry_from_user
