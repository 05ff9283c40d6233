// The fast path of Ipc in assembly (K10): a message of at most seven untyped words, in registers, from the current thread
// to one that waits for it, and the current thread's wait. The message stays in the processor's registers.
//
// docs/src/ipc-fast-path.md says what each check is for. Until POINT OF NO RETURN nothing has changed that counts; a call
// that does not qualify goes to general_entry with the registers as the user left them. RSP is no stack here: it points to
// the current thread, RCX to the receiver. RDI and R11 are scratch.
//
//   R9 MR0, RAX MR1, RBX MR2, R10 MR3, R12-R15 MR4-MR7; RSI to, RDX from, R8 timeouts

fast_ipc:
    test    r9d, 0xfff8                     // more than seven words, typed items, or flags
    jnz     general_entry
    test    r8w, r8w                        // a receive timeout
    jnz     general_entry
    btr     r11, 10                         // DF is 0 after a system call (ABI 5)
    mov     [rsp + {rip}], rcx
    mov     [rsp + {rflags}], r11
    // The receiver, by its global id.
    mov     rcx, rsi
    shr     rcx, 32
    cmp     ecx, {thread_numbers}
    jae     not_fast
    mov     rcx, [{threads} + rcx * 8]
    test    rcx, rcx
    jz      not_fast
    cmp     [rcx + {id}], rsi
    jne     not_fast
    // It takes this message.
    mov     rdi, [rcx + {offer}]
    cmp     rdi, [rsp + {id}]
    je      1f
    cmp     rdi, -1
    jne     not_fast
1:  // It may run now.
    movzx   edi, byte ptr [rcx + {priority}]
    cmp     edi, gs:[{highest_ready}]
    jl      not_fast
    // The current thread finds nothing to receive.
    cmp     rdx, rsi
    jne     fast_open_wait
    cmp     qword ptr [rsp + {senders}], 0
    jne     not_fast
    or      byte ptr [rcx + {flags}], {named}
2:  // No registers of x87, SSE and AVX to switch.
    mov     rdi, [rsp + {extended_state}]
    or      rdi, [rcx + {extended_state}]
    jnz     not_fast
    // No selectors: the receiver is not to find the sender's.
    mov     edi, ds
    mov     r11d, es
    or      edi, r11d
    mov     r11d, fs
    or      edi, r11d
    mov     r11d, gs
    or      edi, r11d
    jnz     not_fast
    // Spaces: confinement, and what forbids to enter the receiver's.
    mov     r11, [rsp + {space}]
    mov     rdi, [rcx + {space}]
    cmp     rdi, r11
    je      fast_same_space
    mov     r11, [r11 + {restriction}]
    test    r11, r11
    jnz     fast_restricted
3:  mov     r11, [rdi + {entry_root}]
    test    r11, r11
    jz      not_fast
    // POINT OF NO RETURN.
    mov     cr3, r11
    mov     gs:[{loaded_space}], rdi
    cmp     qword ptr gs:[{port_owner}], 0
    jne     fast_ports
7:
    mov     rsi, [rsp + {id}]
4:  // The current thread waits for RDX.
    mov     [rsp + {partner}], rdx
    mov     [rsp + {offer}], rdx
    mov     word ptr [rsp + {continuation}], {receive_user}
    mov     byte ptr [rsp + {entered_by_syscall}], 1
    mov     rdi, gs:[{scratch}]
    mov     [rsp + {rsp}], rdi
    rdfsbase rdi
    mov     [rsp + {fs_base}], rdi
    // The receiver runs.
    mov     byte ptr [rcx + {continuation}], {return_to_user}
    mov     qword ptr [rcx + {offer}], 0
    mov     gs:[{current}], rcx
    mov     gs:[{loaded_thread}], rcx
    movzx   r11d, byte ptr [rcx + {priority}]
    mov     gs:[{running_priority}], r11b
    mov     r11, [rcx + {fs_base}]
    cmp     r11, rdi
    jne     fast_fs_base
5:  swapgs
    mov     r11, [rcx + {gs_base}]
    wrgsbase r11
    // Message registers behind the message are 0.
    movzx   edi, r9w
    jmp     [fast_clear + rdi * 8]
fast_clear_1:
    xor     eax, eax
fast_clear_2:
    xor     ebx, ebx
fast_clear_3:
    xor     r10d, r10d
fast_clear_4:
    xor     r12d, r12d
fast_clear_5:
    xor     r13d, r13d
fast_clear_6:
    xor     r14d, r14d
fast_clear_7:
    xor     r15d, r15d
fast_clear_none:
    xor     edx, edx
    xor     r8d, r8d
    xor     ebp, ebp
    mov     r11, [rcx + {rflags}]
    mov     rdi, [rcx + {local_id}]
    mov     rsp, [rcx + {rsp}]
    mov     rcx, [rcx + {rip}]
    sysretq

fast_same_space:
    mov     rsi, [rsp + {local_id}]         // within a space threads see each other's local ids
    jmp     4b

fast_open_wait:
    cmp     rdx, -1
    jne     not_fast
    mov     rdi, [rsp + {senders}]
    or      rdi, [rsp + {pending_interrupts}]
    or      rdi, [rsp + {notification}]
    jz      2b
not_fast:
    mov     rcx, [rsp + {rip}]
    mov     r11, [rsp + {rflags}]
    mov     rdi, [rsp + {local_id}]         // what it was by ABI 5
    jmp     general_entry

fast_restricted:
    cmp     r11, rdi                        // a confined program reaches its owner
    je      3b
    jmp     not_fast

// The bitmap of I/O ports counts only in the space, with the root in R11, that it was filled for.
fast_ports:
    mov     edi, {no_bitmap}
    cmp     r11, gs:[{port_owner}]
    mov     r11d, {bitmap}
    cmove   edi, r11d
    mov     r11, gs:[{task_state}]
    mov     [r11 + {bitmap_offset}], di
    jmp     7b

fast_fs_base:
    wrfsbase r11
    jmp     5b

// A foreign system call in a space that answers them itself (K9): it continues there as if it had called the entry.
not_ipc:
    cmp     rcx, gs:[{foreign_limit}]       // not in the stub page
    jae     general_entry
    mov     rsp, [rsp + {space}]
    cmp     dword ptr [rsp + {system_call_mode}], {bounce}
    mov     rsp, [rsp + {emulation_entry}]
    jne     6f
    mov     gs:[{scratch2}], rsp
    btr     r11, 10
    mov     rsp, gs:[{stack_top}]
    push    {user_data}
    push    qword ptr gs:[{scratch}]
    push    r11
    push    {user_code}
    push    qword ptr gs:[{scratch2}]
    swapgs
    iretq
6:  mov     rsp, gs:[{current}]
    jmp     general_entry

.section .rodata
.balign 64
fast_clear:
    .quad fast_clear_1, fast_clear_2, fast_clear_3, fast_clear_4
    .quad fast_clear_5, fast_clear_6, fast_clear_7, fast_clear_none
.text
