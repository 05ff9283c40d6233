// Foreign system calls (K9), page faults and exceptions that become messages to a waiting handler,
// by the rules and macros of fast_path.S.

// A foreign system call (K9). RSP points to the current thread, the user's stack pointer is in the
// scratch word.
foreign:
    mov     rsp, gs:[{current}]
    mov     rsp, [rsp + {space}]
    cmp     dword ptr [rsp + {system_call_mode}], {bounce}
    jne     2f
    // The space answers its system calls itself: the thread continues there as if it had called the
    // entry.
    mov     rsp, [rsp + {emulation_entry}]
    mov     gs:[{scratch2}], rsp
    btr     r11, 10
    mov     rsp, gs:[{entry_top}]
    push    {user_data}
    push    qword ptr gs:[{scratch}]
    push    r11
    push    {user_code}
    push    qword ptr gs:[{scratch2}]
    swapgs
    iretq
2:  cmp     dword ptr [rsp + {system_call_mode}], {exception}
    mov     rsp, gs:[{current}]
    jne     general_entry
    // All registers are saved, as the handler that answers may want to see them.
    save_words rsp
    btr     r11, 10
    mov     [rsp + {rip}], rcx
    mov     [rsp + {rcx}], rcx
    mov     [rsp + {rflags}], r11
    mov     [rsp + {r11}], r11
    mov     [rsp + {rdi}], rdi
    mov     [rsp + {rsi}], rsi
    mov     [rsp + {rbp}], rbp
    mov     [rsp + {rdx}], rdx
    mov     [rsp + {r8}], r8
    mov     rcx, gs:[{scratch}]
    mov     [rsp + {rsp}], rcx
    // The message: RAX, RDI, RSI, RDX, R10, R8, R9.
    mov     r15, r9
    mov     r14, r8
    mov     r13, r10
    mov     r12, rdx
    mov     r10, rsi
    mov     rbx, rdi
    mov     rdi, rsp
    lea     r8, [rip + saved_entry]
fast_call:
    movabs  r9, {system_call_tag}
    mov     rsi, [rdi + {exception_handler}]
    mov     rdx, rsi
    not     rdx

// Sends the kernel's message in the current thread's name, whose registers are saved, to RSI. RDX
// is what the thread offers then, R8 where it goes on if this does not do, with RSP as
// general_entry has it.
fast_report:
    mov     rbp, [rdi + {space}]
    cmp     byte ptr [rbp + {keeps_handlers}], 0
    je      fast_report_fails
fast_report_to:
    find_receiver rsi, fast_report_fails
    mov     rsi, [rdi + {id}]
    cmp     [rcx + {offer}], rsi
    je      2f
    cmp     qword ptr [rcx + {offer}], -1
    jne     fast_report_fails
2:  check_receiver fast_report_fails
    cmp     qword ptr [rdi + {senders}], 0
    jne     fast_report_fails
    check_selectors fast_report_fails
    mov     rbp, [rcx + {space}]
    cmp     rbp, [rdi + {space}]
    je      fast_report_in_space
    mov     r11, [rbp + {entry_root}]
    test    r11, r11
    js      fast_report_to_ports
    mov     rbp, [rdi + {extended_state}]
    or      rbp, [rcx + {extended_state}]
    jz      fast_enter
    cmp     dword ptr [rip + {components}], 0
    jne     fast_extended
fast_report_fails:
    mov     rsp, rdi
    jmp     r8
fast_report_to_ports:
    bt      r11, {ports_bit}
    jnc     fast_report_fails
    cmp     dword ptr [rip + {components}], 0
    jne     fast_to_ports
    jmp     fast_report_fails
fast_report_in_space:
    cmp     dword ptr [rip + {components}], 0
    jne     fast_same_space
    jmp     fast_report_fails

// An exception of the current thread, RDI, whose registers are saved; RSI is the vector, RDX the
// error code. Some have a meaning of their own, or may have one.
fast_exception:
    cmp     qword ptr gs:[{foreign_limit}], 0
    je      saved_interrupt
    cmp     esi, {invalid_opcode}
    je      fast_forward
    cmp     esi, {breakpoint}
    je      fast_breakpoint
    mov     eax, {always_reported}
    bt      eax, esi
    jnc     saved_interrupt
fast_raised:
    mov     [rdi + {fault}], rsi
    mov     [rdi + {fault} + 8], rdx
    mov     rbp, [rdi + {space}]
    cmp     byte ptr [rbp + {keeps_handlers}], 0
    je      exception_without_owner
    mov     rsi, [rdi + {exception_handler}]
2:  lea     r8, [rip + general_exception]
    mov     r9d, {end_report}
    mov     rax, [rdi + {rip}]              // the first word; the following are in their registers
    movabs  rdx, {exception_offer}
    or      rdx, rsi
    jmp     fast_report_to
// The handler is the one that the program has set. An undefined instruction may be the
// KernelInterface call.
exception_without_owner:
    cmp     qword ptr [rbp + {restriction}], 0
    jne     general_exception
    cmp     esi, {invalid_opcode}
    jne     3f
    mov     rsp, gs:[{stack_top}]
    call    asks_for_kernel_interface
    mov     rdi, gs:[{current}]
    mov     r10, [rdi + {message} + 24]
    test    al, al
    jnz     general_exception
3:  mov     rsi, [rdi + {utcb}]
    mov     rsi, [rsi + {utcb_exception_handler}]
    jmp     2b
// A breakpoint is the debugger's in some programs, none of which is owned without privileges.
fast_breakpoint:
    mov     rbp, [rdi + {space}]
    cmp     byte ptr [rbp + {privileged}], 0
    jne     saved_interrupt
    cmp     byte ptr [rbp + {keeps_handlers}], 0
    jne     fast_raised
    jmp     saved_interrupt
general_exception:
    mov     rsi, [rdi + {fault}]
    mov     rdx, [rdi + {fault} + 8]
    jmp     saved_interrupt

// The rest of an exception's message, of which R9 and RBP say too much: the thread RDI tells RCX.
// Up to the seventh word it is in its registers.
.macro tell_word number, from
    mov     rbp, [rdi + \from]
    mov     [r11 + {message_register_8} + (\number - 8) * 8], rbp
.endm
fast_end_report:
    mov     r11, [rcx + {utcb}]
    mov     r9, [rip + {exception_tag}]
    tell_word 8, {message}+8
    tell_word 9, {rcx}
    tell_word 10, {rdx}
    tell_word 11, {rsi}
    tell_word 12, {rdi}
    tell_word 13, {rbp}
    tell_word 14, {r8}
    tell_word 15, {message}
    tell_word 16, {r11}
    tell_word 17, {rsp}
    tell_word 18, {rflags}
    tell_word 19, {fault}
    movzx   ebp, r9w
    cmp     ebp, {exception_words}
    je      fast_clear_none
    tell_word 20, {fault}+8
    movzx   ebp, r9w
    jmp     fast_clear_none

// The answer to an exception: RCX goes on with the registers that the message of RDI says. GS is
// the user's.
.macro take_word number, register
    mov     \register, [rdi + {message_register_8} + (\number - 8) * 8]
.endm
fast_end_exception:
    swapgs
    mov     rdi, [rdi + {utcb}]
    mov     rsp, gs:[{entry_top}]
    push    {user_data}
    take_word 17, rcx
    push    rcx
    take_word 18, rcx
    and     ecx, {program_flags}
    or      ecx, {fixed_flags}
    push    rcx
    push    {user_code}
    push    rax
    take_word 8, rax
    take_word 9, rcx
    take_word 10, rdx
    take_word 11, rsi
    take_word 13, rbp
    take_word 14, r8
    take_word 15, r9
    take_word 16, r11
    take_word 12, rdi
    swapgs
    iretq

// An invalid opcode of the current thread, RDI, whose registers are saved: perhaps an emulation
// library hands a foreign system call on (K9), whose registers are those that it has, with the
// return address in RCX and the flags in R11.
fast_forward:
    mov     rcx, [rdi + {space}]
    cmp     dword ptr [rcx + {system_call_mode}], {bounce}
    jne     fast_raised
    mov     rax, [rcx + {emulation_entry}]
    add     rax, {forward}
    cmp     rax, [rdi + {rip}]
    jne     fast_raised
    mov     rcx, [rdi + {rcx}]
    cmp     rcx, gs:[{foreign_limit}]
    jae     fast_raised                     // no address that SYSRET may go to
    mov     gs:[{scratch}], rax
    mov     r11, [rdi + {r11}]
    and     r11d, {forwarded_flags}
    or      r11d, {fixed_flags}
    mov     [rdi + {rip}], rcx
    mov     [rdi + {rflags}], r11
    mov     [rdi + {r11}], r11
    mov     byte ptr [rdi + {entered_by_syscall}], 1
    mov     rax, [rdi + {message} + 8]
    mov     r15, r9
    mov     r14, r8
    mov     r13, r10
    mov     r12, [rdi + {rdx}]
    mov     r10, [rdi + {rsi}]
    mov     rbx, [rdi + {rdi}]
    lea     r8, [rip + general_forward]
    jmp     fast_call
general_forward:
    mov     rax, gs:[{scratch}]
    mov     [rdi + {rip}], rax
    mov     byte ptr [rdi + {entered_by_syscall}], 0
    mov     esi, {invalid_opcode}
    xor     edx, edx
    jmp     saved_interrupt

// A page fault of the current thread, RDI, whose registers are saved; RDX is the error code.
fast_fault:
    cmp     qword ptr gs:[{foreign_limit}], 0
    je      saved_interrupt
    mov     gs:[{scratch}], rdx
    mov     rax, cr2
    mov     ecx, {write}
    test    dl, 1 << 1
    jnz     2f
    mov     ecx, {read}
    test    dl, 1 << 4
    jz      2f
    mov     ecx, {execute}
2:  mov     [rdi + {fault}], rax
    mov     [rdi + {fault} + 8], rcx
    shl     ecx, 16
    movabs  r9, {page_fault_tag}
    or      r9, rcx
    mov     rbx, [rdi + {rip}]
    lea     r8, [rip + general_fault]
    mov     rsi, [rdi + {pager}]
    mov     rbp, [rdi + {space}]
    cmp     byte ptr [rbp + {keeps_handlers}], 0
    je      fault_without_owner
2:  mov     rdx, rsi
    bts     rdx, 63
    jmp     fast_report_to
// A fault goes to the pager that the program names in its UTCB. The general path is taken if the
// space has an owner or a redirector, or is that of sigma0, whose faults the kernel handles.
fault_without_owner:
    mov     rsi, [rdi + {utcb}]
    mov     rsi, [rsi + {utcb_pager}]
    cmp     qword ptr [rbp + {restriction}], 0
    jne     general_fault
    mov     r11d, [rip + {sigma0}]
    cmp     [rbp + {memory}], r11d
    jne     2b
general_fault:
    mov     esi, {page_fault}
    mov     rdx, gs:[{scratch}]
    jmp     saved_interrupt

// A message with typed items or flags: perhaps the answer to a page fault, one map item and nothing
// else. RDI points to the current thread, everything else is as at system_call_entry. Every
// condition is checked first, as in fast_path.S; then a function maps the page, if that needs no
// preemption point.
fast_item:
    cmp     r9w, {map_item}
    jne     not_fast_yet
    // not_fast_local takes the tag from here.
    mov     gs:[{scratch}], r9
    btr     r11, 10
    mov     [rdi + {rip}], rcx
    mov     [rdi + {rflags}], r11
    mov     [rdi + {rsp}], rsp
    find_receiver rsi, not_fast_local
    mov     rbp, [rcx + {offer}]
    btr     rbp, 63
    jnc     not_fast_local
    cmp     rbp, [rdi + {id}]
    jne     not_fast_local
    cmp     rdx, rsi
    je      2f
    cmp     rdx, -1
    jne     not_fast_local
    mov     rbp, [rdi + {pending_interrupts}]
    or      rbp, [rdi + {notification}]
    jnz     not_fast_local
    check_unnamed_receiver not_fast_local
    jmp     3f
2:  check_receiver not_fast_local
3:  check_selectors not_fast_local, r8w
    mov     r11, [rdi + {space}]
    mov     rbp, [rcx + {space}]
    cmp     rbp, r11
    je      not_fast_local
    cmp     qword ptr [r11 + {restriction}], 0
    jne     not_fast_local
    cmp     qword ptr [rdi + {senders}], 0
    jne     not_fast_local
    cmp     qword ptr [rbp + {entry_root}], 0
    jl      not_fast_local
    cmp     dword ptr [rip + {components}], 0
    je      not_fast_local
    mov     ebp, esp
    mov     rsp, gs:[{stack_top}]
    push    r10
    push    r9
    push    r8
    push    rdi
    push    rsi
    push    rax
    push    rdx
    push    rcx
    mov     rsi, rcx
    mov     rdx, rax
    mov     rcx, rbx
    call    answer_fault
    test    al, al
    pop     rcx
    pop     rdx
    jz      4f
    // POINT OF NO RETURN.
    mov     esp, ebp
    mov     rdi, gs:[{current}]
    mov     r9d, {end_fault}
    jmp     fast_goes_on
4:  pop     rax
    pop     rsi
    pop     rdi
    pop     r8
    pop     r9
    pop     r10
    jmp     not_fast_local
