// Entries from user level and the way back. The registers go to the current thread's TCB, the
// kernel works on its one stack (K2), and nothing is kept on that stack between entries.

.text

// The words of a message that travel in registers, between these and a TCB.
.macro save_words thread
    mov     [\thread + {message} + 0], r9
    mov     [\thread + {message} + 8], rax
    mov     [\thread + {message} + 16], rbx
    mov     [\thread + {message} + 24], r10
    mov     [\thread + {message} + 32], r12
    mov     [\thread + {message} + 40], r13
    mov     [\thread + {message} + 48], r14
    mov     [\thread + {message} + 56], r15
.endm

.macro load_words thread
    mov     r9, [\thread + {message} + 0]
    mov     rax, [\thread + {message} + 8]
    mov     rbx, [\thread + {message} + 16]
    mov     r10, [\thread + {message} + 24]
    mov     r12, [\thread + {message} + 32]
    mov     r13, [\thread + {message} + 40]
    mov     r14, [\thread + {message} + 48]
    mov     r15, [\thread + {message} + 56]
.endm

// SYSCALL: RIP in RCX, RFLAGS in R11, interrupts off, everything else the user's. What fast_path.S
// does not do continues at general_entry, where RSP points to the current thread and the user's
// stack pointer is in the scratch word.
.balign 64
.global system_call_entry
system_call_entry:
    swapgs
    cmp     rcx, gs:[{ipc_return}]
    je      fast_ipc
    mov     gs:[{scratch}], rsp
    cmp     rcx, gs:[{foreign_limit}]       // not in the stub page
    jb      foreign
    movzx   esp, cl
    jmp     [rsp + system_calls]

// The entry where no call takes a fast path.
.balign 64
.global plain_system_call_entry
plain_system_call_entry:
    swapgs
    mov     gs:[{scratch}], rsp
plain_call:
    mov     rsp, gs:[{current}]
general_entry:
    save_words rsp
    btr     r11, 10                         // DF is 0 after a system call (ABI 5)
    mov     [rsp + {rip}], rcx
    mov     [rsp + {rflags}], r11
    mov     [rsp + {rdi}], rdi
    mov     [rsp + {rsi}], rsi
    mov     [rsp + {rbp}], rbp
    mov     [rsp + {rdx}], rdx
    mov     [rsp + {r8}], r8
    mov     rax, gs:[{scratch}]
    mov     [rsp + {rsp}], rax
saved_entry:
    mov     byte ptr [rsp + {entered_by_syscall}], 1
    mov     rdi, rsp
    mov     rsp, gs:[{stack_top}]
    xor     ebp, ebp
    call    system_call_entered

// SYSCALL of code that is not 64-bit. A program can run such code only in an emulator (see
// jump_if_user): for it the call is an invalid instruction.
.balign 16
.global other_call_entry
other_call_entry:
    swapgs
    mov     gs:[{scratch}], rsp
    mov     rsp, gs:[{entry_top}]
    push    {user_data}
    push    qword ptr gs:[{scratch}]
    push    r11
    push    {user_code}
    push    rcx
    push    0
    push    {invalid_opcode}
    swapgs
    jmp     entry_from_user

// Interrupt or exception: vectors.S describes the stack. GS is the user's.
.balign 64
.global entry_from_user
entry_from_user:
    swapgs
    push    rdi
    mov     rdi, gs:[{current}]
    save_words rdi
    mov     [rdi + {rsi}], rsi
    mov     [rdi + {rbp}], rbp
    mov     [rdi + {rcx}], rcx
    mov     [rdi + {rdx}], rdx
    mov     [rdi + {r8}], r8
    mov     [rdi + {r11}], r11
    pop     rax
    mov     [rdi + {rdi}], rax
    pop     rsi                             // vector
    pop     rdx                             // error code
    pop     rax
    mov     [rdi + {rip}], rax
    mov     rax, [rsp + 8]
    mov     [rdi + {rflags}], rax
    mov     rax, [rsp + 16]
    mov     [rdi + {rsp}], rax
    mov     byte ptr [rdi + {entered_by_syscall}], 0
    cld
    test    dword ptr [rip + {features}], {smap}
    jz      2f
    clac                                    // a program may have set AC, which lifts SMAP (K14)
2:
    cmp     esi, {page_fault}
    je      fast_fault
    cmp     esi, {first_interrupt}
    jb      fast_exception
saved_interrupt:
    mov     rsp, gs:[{stack_top}]
    xor     ebp, ebp
    call    interrupt_entered

// Returns to the thread in RDI, whose last entry was a SYSCALL and whose RIP is canonical.
.balign 64
.global resume_by_sysret
resume_by_sysret:
    load_words rdi
    mov     rcx, [rdi + {rip}]
    mov     r11, [rdi + {rflags}]
    mov     rsi, [rdi + {rsi}]
    mov     rbp, [rdi + {rbp}]
    mov     rdx, [rdi + {rdx}]
    mov     r8, [rdi + {r8}]
    mov     rsp, [rdi + {rsp}]
    mov     rdi, [rdi + {rdi}]
    swapgs
    sysretq

// Returns to the thread in RDI with all its registers. Its RIP is canonical.
.balign 64
.global resume_by_iret
resume_by_iret:
    mov     rsp, gs:[{entry_top}]
    push    {user_data}
    push    qword ptr [rdi + {rsp}]
    push    qword ptr [rdi + {rflags}]
    push    {user_code}
    push    qword ptr [rdi + {rip}]
    load_words rdi
    mov     rsi, [rdi + {rsi}]
    mov     rbp, [rdi + {rbp}]
    mov     rcx, [rdi + {rcx}]
    mov     rdx, [rdi + {rdx}]
    mov     r8, [rdi + {r8}]
    mov     r11, [rdi + {r11}]
    mov     rdi, [rdi + {rdi}]
    swapgs
    iretq

// Calls the function in RAX with RDI and RSI, and changes only RAX.
.balign 16
.global call_saving_registers
call_saving_registers:
    push    rbp
    mov     rbp, rsp
    push    rcx
    push    rdx
    push    rsi
    push    rdi
    push    r8
    push    r9
    push    r10
    push    r11
    and     rsp, -16
    call    rax
    lea     rsp, [rbp - 64]
    pop     r11
    pop     r10
    pop     r9
    pop     r8
    pop     rdi
    pop     rsi
    pop     rdx
    pop     rcx
    pop     rbp
    ret

// Where each call goes on, at the lowest byte of its return address. RSP is no stack pointer there
// yet.
.macro system_call offset, label
    .org    system_calls + \offset
    .quad   \label
.endm
.section .rodata.system_calls, "a"
.balign 64
system_calls:
    .quad   plain_call                      // from the end of the user area; Ipc does not come here
    system_call {exchange_offset}, fast_exchange
    system_call {thread_offset}, fast_control
    system_call {clock_offset}, fast_clock
    system_call {switch_offset}, fast_yield
    system_call {schedule_offset}, fast_schedule
    system_call {unmap_offset}, fast_unmap
    system_call {space_offset}, plain_call
    system_call {processor_offset}, plain_call
    system_call {memory_offset}, plain_call
    system_call {options_offset}, plain_call
    system_call {map_offset}, fast_map
    system_call {state_offset}, plain_call
    system_call {notify_offset}, plain_call
    .org    system_calls + 264
.text
