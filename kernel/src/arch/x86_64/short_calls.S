// System calls other than Ipc that need no preemption point: the shortest by themselves, others by
// a function that changes few registers. The user's stack pointer is in the scratch word; what does
// not qualify goes on in entry.S, with RSP pointing to the current thread.

// Saves the registers that a function may change (RAX only if it is named), so that the call can
// still take the general path.
.macro save_for_function rax
    mov     [rsp + {message} + 0], r9
    .ifnb \rax
    mov     [rsp + {message} + 8], \rax
    .endif
    mov     [rsp + {message} + 24], r10
    btr     r11, 10
    mov     [rsp + {rip}], rcx
    mov     [rsp + {rflags}], r11
    mov     [rsp + {rdi}], rdi
    mov     [rsp + {rsi}], rsi
    mov     [rsp + {rdx}], rdx
    mov     [rsp + {r8}], r8
.endm

// Returns with RAX, and the registers that were saved.
.macro return_result
    mov     r8, [rsp + {r8}]
    mov     r9, [rsp + {message} + 0]
    mov     r10, [rsp + {message} + 24]
    mov     rcx, [rsp + {rip}]
    mov     r11, [rsp + {rflags}]
    mov     rdi, [rsp + {rdi}]
    mov     rsi, [rsp + {rsi}]
    mov     rdx, [rsp + {rdx}]
    mov     rsp, gs:[{scratch}]
    swapgs
    sysretq
.endm

// SystemClock.
fast_clock:
    mov     gs:[{scratch2}], rdx
    rdtsc
    shl     rdx, 32
    or      rax, rdx
    mul     qword ptr [rip + {clock_scale}]
    shrd    rax, rdx, {clock_shift}
    mov     rdx, gs:[{scratch2}]
    btr     r11, 10
    mov     rsp, gs:[{scratch}]
    swapgs
    sysretq

// ThreadSwitch(nilthread) of a thread on its own timeslice, where no other of its priority is
// ready: it gets a new timeslice (X.2 rule 3.24). The timer stays set for the end of the old
// timeslice, which is earlier.
fast_yield:
    mov     rsp, gs:[{current}]
    test    rdi, rdi
    jnz     general_entry
    mov     [rsp + {message} + 8], rax
    mov     [rsp + {rdx}], rdx
    movzx   eax, byte ptr [rsp + {where}]
    cmp     al, gs:[{running_priority}]     // not on the claim of one that donated its time
    jne     2f
    xor     eax, 0xff
    cmp     eax, gs:[{highest_ready}]
    jle     2f
    cmp     rsp, gs:[{slice_owner}]
    jne     2f
    cmp     qword ptr gs:[{delayed}], 0
    jne     2f
    rdtsc
    shl     rdx, 32
    or      rax, rdx
    mul     qword ptr [rip + {clock_scale}]
    shrd    rax, rdx, {clock_shift}
    mov     rdx, [rsp + {timeslice}]
    mov     [rsp + {timeslice_left}], rdx
    add     rax, rdx
    sbb     rdx, rdx
    // A sum beyond the end of time is never, like the sum with an infinite timeslice.
    or      rax, rdx
    mov     gs:[{slice_end}], rax
    mov     rax, [rsp + {message} + 8]
    mov     rdx, [rsp + {rdx}]
    btr     r11, 10
    mov     rsp, gs:[{scratch}]
    swapgs
    sysretq
2:  mov     rax, [rsp + {message} + 8]
    mov     rdx, [rsp + {rdx}]
    jmp     general_entry

// ExchangeRegisters that changes nothing: a function finds the thread, and says what it is doing.
fast_exchange:
    mov     rsp, gs:[{current}]
    test    rsi, {exchanged}
    jnz     general_entry
    save_for_function rax
    mov     rcx, gs:[{scratch}]
    mov     [rsp + {rsp}], rcx
    mov     rdi, rsp
    mov     rsi, rax
    mov     rsp, gs:[{stack_top}]
    call    find_readable
    mov     rsp, gs:[{current}]
    test    rax, rax
    jz      not_short
    // The other form of the thread's id.
    mov     rcx, [rax + {id}]
    test    byte ptr [rsp + {message} + 8], 0x3f
    cmovnz  rcx, [rax + {local_id}]
    mov     rsi, rdx
    mov     rdi, [rax + {utcb}]
    mov     r10, [rdi + {handle}]
    mov     rdi, [rdi + {utcb_pager}]
    mov     rdx, [rax + {rsp}]
    mov     r8, [rax + {rip}]
    mov     r9, [rax + {rflags}]
    mov     rax, rcx
    mov     rcx, [rsp + {rip}]
    mov     r11, [rsp + {rflags}]
    mov     rsp, [rsp + {rsp}]
    swapgs
    sysretq

// Schedule that changes nothing.
fast_schedule:
    mov     rsp, gs:[{current}]
    mov     rax, rdx
    and     rax, rsi
    and     rax, r8
    and     rax, r9
    inc     rax
    jnz     general_entry
    btr     r11, 10
    mov     rsi, rdi
    mov     rdi, rsp
    mov     rsp, gs:[{stack_top}]
    push    r11
    push    rsi
    call    read_schedule
    pop     rdi
    pop     r11
    xor     r10d, r10d
    movabs  rcx, {schedule_return}
    mov     rsi, -1
    mov     r8, rsi
    mov     r9, rsi
    test    rax, rax
    jz      2f
    mov     rsp, gs:[{scratch}]
    swapgs
    sysretq
2:  mov     rdx, rsi
    mov     rsp, gs:[{current}]
    jmp     general_entry

// ThreadControl that makes a thread, or deletes one that concerns no other thread. It saves the
// registers that a function may change, so that a call that does not qualify can take the general
// path. RAX is no argument of ThreadControl: there it holds `not_done`.
fast_control:
    mov     rsp, gs:[{current}]
    save_for_function
    mov     r10, [rsp + {space}]
    cmp     byte ptr [r10 + {privileged}], 0
    je      4f                              // a caller without privilege is refused
    mov     rcx, rsp
    mov     rsp, gs:[{stack_top}]
    test    r8, r8
    jz      3f
    call    create_thread
2:  mov     rsp, gs:[{current}]
    cmp     eax, {not_done}
    je      5f
    return_result
3:  mov     rsi, rcx
    call    delete_thread
    jmp     2b
4:  mov     eax, {not_done}
5:  mov     [rsp + {message} + 8], rax
    jmp     not_short

// MapControl with one item, in registers. It saves the registers that a function may change, so
// that a call that does not qualify can take the general path.
fast_map:
    mov     rsp, gs:[{current}]
    test    rdx, rdx
    jns     general_entry
    save_for_function
    mov     rcx, r8
    mov     r8, rdi
    mov     rdi, rsp
    mov     rsp, gs:[{stack_top}]
    call    short_map_control
    mov     rsp, gs:[{current}]
    test    eax, eax
    jz      2f
    and     eax, 1
    mov     [rsp + {r8}], rdx
    return_result
2:  mov     [rsp + {message} + 8], rax
// The other registers are saved: the call goes on like any other.
not_short:
    mov     rax, gs:[{scratch}]
    mov     [rsp + {rsp}], rax
    mov     [rsp + {message} + 16], rbx
    mov     [rsp + {message} + 32], r12
    mov     [rsp + {message} + 40], r13
    mov     [rsp + {message} + 48], r14
    mov     [rsp + {message} + 56], r15
    mov     [rsp + {rbp}], rbp
    jmp     saved_entry

// Unmap of one fpage. What a function may change is saved, so that everything else goes on as
// usual.
fast_unmap:
    mov     rsp, gs:[{current}]
    test    rdx, {more_than_a_page}
    jnz     general_entry
    save_for_function rax
    mov     rdi, rsp
    mov     rsi, r9
    mov     rsp, gs:[{stack_top}]
    test    edx, {flush}
    jnz     3f
    call    short_unmap
4:  mov     rsp, gs:[{current}]
    mov     r9, rax
    inc     rax
    jz      not_short
    mov     rax, [rsp + {message} + 8]
    mov     r10, [rsp + {message} + 24]
    mov     rcx, [rsp + {rip}]
    mov     r11, [rsp + {rflags}]
    mov     rdi, [rsp + {local_id}]
    mov     rsi, [rsp + {rsi}]
    mov     rdx, [rsp + {rdx}]
    mov     r8, [rsp + {r8}]
    mov     rsp, gs:[{scratch}]
    swapgs
    sysretq
3:  call    short_flush
    jmp     4b
