// The fast path of IPC in assembly (K10): a message of untyped words from the current thread to one
// that waits for it, and the current thread's wait. Up to seven words stay in registers. The
// message is an Ipc's, or the kernel's about a foreign system call (K9), a page fault or an
// exception; or it is the answer to one of these.
//
// docs/src/ipc-fast-path.md says what each check is for. Until POINT OF NO RETURN nothing has
// changed that counts; what does not qualify goes on in entry.S as if it had not been here. RDI
// points to the current thread, RCX to the receiver. RBP and R11 are scratch (an Ipc destroys RBP,
// ABI 5). RSP is no stack here: first it is the user's, then the receiver's priority.
//
//   R9 MR0, RAX MR1, RBX MR2, R10 MR3, R12-R15 MR4-MR7; RSI to, RDX from, R8 timeouts

// Goes to `other` unless DS, ES, FS and GS are null, as the receiver must not find the sender's
// selectors. `timeout`, if it is given, is a 16-bit timeout that has to be 0, too.
.macro check_selectors other, timeout
    mov     ebp, ds
    mov     r11d, es
    or      ebp, r11d
    mov     r11d, fs
    or      ebp, r11d
    mov     r11d, gs
    or      ebp, r11d
    .ifnb \timeout
    or      bp, \timeout
    .endif
    jnz     \other
.endm

// Finds the thread with the id in `id`: in RCX, or goes to `other` if there is none.
.macro find_receiver id, other
    mov     rcx, \id
    shr     rcx, 32
    and     ecx, {last_number}              // another number is another id
    mov     rcx, [{threads} + rcx * 8]
    cmp     [rcx + {id}], \id
    jne     \other
.endm

// Goes to `other` unless the receiver is located here, is known to be named, and no thread of a
// higher priority is ready: all three are in one word. If the receiver is located here, then
// everything that this processor reads of it, before or afterwards, stays so. The priority, as TCBs
// keep it, goes to ESP.
.macro check_receiver other
    .if {several}
    mov     esp, [rcx + {where}]
    xor     esp, gs:[{named_here}]
    .else
    // With one processor nothing has to be compared, and the mark can be set here.
    mov     byte ptr [rcx + {where} + 1], {named} >> 8
    movzx   esp, byte ptr [rcx + {where}]
    .endif
    cmp     esp, gs:[{farthest}]
    ja      \other
.endm

// The same checks as check_receiver, for a receiver that need not be known to be named.
.macro check_unnamed_receiver other
    .if {several}
    mov     esp, [rcx + {where}]
    or      esp, {named}
    xor     esp, gs:[{named_here}]
    .else
    movzx   esp, byte ptr [rcx + {where}]
    .endif
    cmp     esp, gs:[{farthest}]
    ja      \other
.endm

// The registers of x87, SSE and AVX from the current thread's to the receiver's, of which at least
// one has some. RBP and R11 changed.
.macro switch_extended_registers
    mov     gs:[{scratch2}], rax
    mov     r11, rdx
    mov     eax, [rip + {components}]
    xor     edx, edx
    mov     rbp, [rdi + {extended_state}]
    test    rbp, rbp
    jz      5f
    xsave64 [rbp]
    mov     rbp, [rcx + {extended_state}]
    test    rbp, rbp
    jnz     6f
    lea     rbp, [rip + {initial_state}]
    xrstor64 [rbp]
    mov     rbp, cr0
    or      rbp, {task_switched}
    mov     cr0, rbp
    jmp     7f
5:  clts
    mov     rbp, [rcx + {extended_state}]
6:  xrstor64 [rbp]
7:  mov     rdx, r11
    mov     rax, gs:[{scratch2}]
.endm

fast_ipc:
    mov     rdi, gs:[{current}]
    test    r9d, 0xffc0                     // typed items, or flags
    jnz     fast_item
    btr     r11, 10                         // DF is 0 after a system call (ABI 5)
    mov     [rdi + {rip}], rcx
    mov     [rdi + {rflags}], r11
    mov     [rdi + {rsp}], rsp
    find_receiver rsi, fast_local
    // The current thread waits for its partner, or for any sender.
    cmp     rdx, rsi
    jne     fast_open_wait
    // The receiver takes this message. RSI is the sender's id from here on: the receiver has the
    // other.
    mov     rsi, [rdi + {id}]
    cmp     [rcx + {offer}], rsi
    jne     fast_other_offer
fast_partner:
    check_receiver not_fast
fast_waits:
    check_selectors fast_timed, r8w         // and no receive timeout
fast_goes_on:
    mov     r11, [rdi + {space}]
    mov     rbp, [rcx + {space}]
    cmp     rbp, r11
    je      fast_same_space
    cmp     qword ptr [r11 + {restriction}], 0
    jne     fast_restricted
    // Three words that must have their usual values: extended registers, senders that wait for the
    // current thread, and what forbids to enter the receiver's space. The usual value is 0, or the
    // root table, and is the only one without a sign, so one test covers all.
fast_reaches:
    mov     r11, [rdi + {extended_state}]
    or      r11, [rcx + {extended_state}]
    or      r11, [rdi + {senders}]
    or      r11, [rbp + {entry_root}]
    js      fast_unusual
    // POINT OF NO RETURN.
fast_enter:
    .if {several}
    mov     gs:[{active_root}], r11         // before CR3: shoot-downs look at it
    .endif
    mov     cr3, r11
fast_switch:
    mov     [rdi + {offer}], rdx
    rdfsbase r8
    mov     [rdi + {fs_base}], r8
    // The receiver runs.
    mov     qword ptr [rcx + {offer}], 0
    mov     gs:[{current}], rcx
    mov     gs:[{running_priority}], spl
    cmp     [rcx + {fs_base}], r8           // it finds its own in R8
    jne     fast_fs_base
fast_bases:
    swapgs
    mov     rdx, [rcx + {gs_base}]
    wrgsbase rdx
    // Message registers after the last one of the message are 0. RBP is the number of words, which
    // the receiver has in the tag.
    movzx   ebp, r9w
    jmp     [fast_end + rbp * 8]
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
    mov     r11, [rcx + {rflags}]
    mov     rdi, [rcx + {local_id}]
    mov     rsp, [rcx + {rsp}]
    mov     rcx, [rcx + {rip}]
    sysretq

// The words from MR8 on go from UTCB to UTCB.
fast_copy:
    mov     r11, rcx
    mov     rsp, rsi
    lea     ecx, [rbp - 7]
    mov     rsi, [rdi + {utcb}]
    mov     rdi, [r11 + {utcb}]
    add     rsi, {message_register_8}
    add     rdi, {message_register_8}
    rep movsq
    mov     rcx, r11
    mov     rsi, rsp
    jmp     fast_clear_none

// The partner's id is not the global id of a thread: perhaps it is a local id, the same for both
// phases.
fast_local:
    test    esi, 0x3f
    jnz     not_fast_local
    mov     r11, [rdi + {space}]
    mov     ecx, esi
    shr     ecx, {utcb_bits}
    and     ecx, {last_local_id}
    mov     rcx, [r11 + {local_ids} + rcx * 8]
    test    rcx, rcx
    jz      not_fast_local
    cmp     [rcx + {local_id}], rsi
    jne     not_fast_local
    cmp     [rcx + {space}], r11
    jne     not_fast_local
    mov     rbp, [rcx + {offer}]
    cmp     rbp, [rdi + {id}]
    je      2f
    cmp     rbp, -1
    jne     not_fast_local
2:  cmp     rdx, rsi
    jne     not_fast_local
    check_receiver not_fast_local
    check_selectors not_fast_local, r8w
    mov     rdx, [rcx + {id}]
    mov     rbp, [rdi + {extended_state}]
    or      rbp, [rcx + {extended_state}]
    or      rbp, [rdi + {senders}]
    mov     rsi, [rdi + {local_id}]
    jns     fast_switch
    mov     rsi, [rcx + {local_id}]
    mov     rdx, rsi
    jmp     not_fast_local

// The receiver does not wait for a message of this sender alone, but perhaps for one of any sender,
// or for an answer. R9 gets the receiver's way to go on then.
fast_other_offer:
    mov     rbp, [rcx + {offer}]
    cmp     rbp, -1
    je      3f
    mov     r11, rbp
    not     r11
    cmp     r11, rsi
    jne     2f
    lea     rbp, [r9 - 1]                   // label 0, one word or more: a result
    cmp     rbp, 62
    ja      not_fast
    mov     gs:[{scratch}], r9
    mov     r9d, {end_call}
    jmp     3f
2:  btr     rbp, 63
    jnc     4f
    cmp     rbp, rsi
    jne     5f
    mov     gs:[{scratch}], r9
    mov     r9d, {end_fault}
3:  cmp     rdx, -1
    jne     fast_partner
    jmp     fast_waits                      // an open wait, whose receiver has been checked
    // The receiver waits until some time, for this sender or for any. The timeout is not stopped:
    // it ends without consequence.
4:  btr     rbp, 62
    jnc     not_fast
    test    rbp, rbp
    jz      3b
    cmp     rbp, rsi
    je      3b
    jmp     not_fast
    // It waits for the answer to an exception: all registers, with an address that IRETQ may go to.
5:  btr     rbp, {exception_bit}
    jnc     not_fast
    cmp     rbp, rsi
    jne     not_fast
    movzx   ebp, r9w
    cmp     ebp, {reply_words}
    jb      not_fast
    mov     rbp, rax
    shr     rbp, {user_bits}
    jnz     not_fast
    mov     gs:[{scratch}], r9
    mov     r9d, {end_exception}
    jmp     3b

// The thread made a foreign system call, whose result is in RAX.
fast_end_call:
    mov     r9, [rcx + {message} + 0]
    mov     rbx, [rcx + {message} + 16]
    mov     r10, [rcx + {message} + 24]
    mov     r12, [rcx + {message} + 32]
    mov     r13, [rcx + {message} + 40]
    mov     r14, [rcx + {message} + 48]
    mov     r15, [rcx + {message} + 56]
    mov     rsi, [rcx + {rsi}]
    mov     rbp, [rcx + {rbp}]
    mov     rdx, [rcx + {rdx}]
    mov     r8, [rcx + {r8}]
    mov     r11, [rcx + {rflags}]
    mov     rdi, [rcx + {rdi}]
    mov     rsp, [rcx + {rsp}]
    mov     rcx, [rcx + {rip}]
    sysretq

// The thread repeats its access to memory.
fast_end_fault:
    swapgs
    mov     rdi, rcx
    jmp     resume_by_iret

fast_open_wait:
    cmp     rdx, -1
    jne     not_fast_local
    mov     rbp, [rdi + {pending_interrupts}]
    or      rbp, [rdi + {notification}]
    jnz     not_fast_local
    // This is done before RSI changes: the receiver's id can be read again only if the receiver is
    // here.
    check_unnamed_receiver not_fast_local
    mov     rsi, [rdi + {id}]
    cmp     [rcx + {offer}], rsi
    je      fast_waits
    jmp     fast_other_offer
not_fast:
    // The current thread named its partner in RDX, too, or waits for any thread. So the receiver is
    // here, and still has its id.
    mov     rsi, rdx
    cmp     rdx, -1
    cmove   rsi, [rcx + {id}]
not_fast_local:
    movzx   ebp, r9w
    cmp     ebp, {end_call}
    cmovae  r9, gs:[{scratch}]              // it is an answer, whose tag was put aside
    // Does what general_entry does, except that RIP, flags and RSP are saved already.
    save_words rdi
    mov     [rdi + {rsi}], rsi
    mov     [rdi + {rdx}], rdx
    mov     [rdi + {r8}], r8
    xor     ebp, ebp
    mov     [rdi + {rbp}], rbp
    mov     rax, [rdi + {local_id}]         // what RDI was by ABI 5
    mov     [rdi + {rdi}], rax
    mov     rsp, rdi
    jmp     saved_entry
not_fast_yet:
    mov     gs:[{scratch}], rsp
    mov     rsp, rdi
    mov     rdi, [rsp + {local_id}]         // what it was by ABI 5
    xor     ebp, ebp
    jmp     general_entry

fast_same_space:
    mov     rbp, [rdi + {extended_state}]
    or      rbp, [rcx + {extended_state}]
    or      rbp, [rdi + {senders}]
    js      3f
2:  mov     rsi, [rdi + {local_id}]         // within a space threads see each other's local ids
    jmp     fast_switch
3:  cmp     qword ptr [rdi + {senders}], 0
    jne     not_fast
    cmp     dword ptr [rip + {components}], 0
    je      not_fast                        // no XSAVE
    switch_extended_registers
    jmp     2b

// Some condition of the fast path does not hold: the code here finds which one, and whether it
// matters.
fast_unusual:
    cmp     qword ptr [rdi + {senders}], 0
    jne     not_fast
    mov     r11, [rbp + {entry_root}]
    test    r11, r11
    js      fast_no_entry
fast_extended:
    cmp     dword ptr [rip + {components}], 0
    je      not_fast                        // no XSAVE
    switch_extended_registers
    mov     rbp, [rcx + {space}]
    mov     r11, [rbp + {entry_root}]
    jmp     fast_enter

// There is a receive timeout, or there are selectors. Every other condition is checked here, as
// nothing may be in the way later, when the offer says (in a word of RDX) that the wait ends at
// some time.
fast_timed:
    test    r8w, r8w
    jz      not_fast
    check_selectors not_fast
    cmp     qword ptr [rdi + {senders}], 0
    jne     not_fast
    cmp     dword ptr [rip + {components}], 0
    je      not_fast
    mov     r11, [rdi + {space}]
    mov     rbp, [rcx + {space}]
    cmp     rbp, r11
    je      2f
    cmp     qword ptr [r11 + {restriction}], 0
    jne     not_fast
    cmp     qword ptr [rbp + {entry_root}], 0
    jl      not_fast
2:  mov     ebp, esp
    mov     rsp, gs:[{stack_top}]
    push    rax
    push    rcx
    push    rdx
    push    rsi
    push    rdi
    push    r8
    push    r9
    push    r10
    movzx   esi, r8w
    call    begin_receive_timeout
    mov     r11d, eax
    pop     r10
    pop     r9
    pop     r8
    pop     rdi
    pop     rsi
    pop     rdx
    pop     rcx
    pop     rax
    mov     esp, ebp
    test    r11b, r11b
    jz      not_fast
    cmp     rdx, -1
    jne     3f
    xor     edx, edx
3:  bts     rdx, 62
    jmp     fast_goes_on

fast_restricted:
    cmp     [r11 + {restriction}], rbp      // a confined program reaches its owner
    je      fast_reaches
    cmp     [r11 + {restriction}], r11
    je      fast_from_ports
    cmp     [rbp + {restriction}], r11      // and spaces that its own space owns
    je      fast_reaches
    jmp     not_fast

// A program that uses I/O ports, in space R11, would leave it: its permission bitmap counts no
// more. Either no space or the owner decides.
fast_from_ports:
    bt      qword ptr [r11 + {entry_root}], {ports_bit}
    jnc     not_fast
    cmp     qword ptr [r11 + {owner}], 0
    je      2f
    cmp     [r11 + {owner}], rbp
    jne     not_fast
2:  mov     word ptr gs:[{bitmap_offset}], {no_bitmap}
    jmp     fast_reaches

// The receiver's space, RBP, cannot be entered, or uses I/O ports: the permission bitmap counts if
// it is that space's.
fast_no_entry:
    bt      r11, {ports_bit}
    jnc     not_fast
fast_to_ports:
    mov     r11, [rdi + {extended_state}]
    or      r11, [rcx + {extended_state}]
    jz      2f
    cmp     dword ptr [rip + {components}], 0
    je      not_fast                        // no XSAVE
    switch_extended_registers
    mov     rbp, [rcx + {space}]
2:  mov     r11, [rbp + {entry_root}]
    shl     r11, {root_bits}
    shr     r11, {root_bits}
    cmp     r11, gs:[{ports_root}]
    jne     fast_enter
    mov     word ptr gs:[{bitmap_offset}], {bitmap}
    jmp     fast_enter

fast_fs_base:
    mov     r8, [rcx + {fs_base}]
    wrfsbase r8
    jmp     fast_bases

.section .rodata
.balign 64
fast_end:
    .quad fast_clear_1, fast_clear_2, fast_clear_3, fast_clear_4
    .quad fast_clear_5, fast_clear_6, fast_clear_7, fast_clear_none
    .rept {end_call} - 8
    .quad fast_copy
    .endr
    .quad fast_end_call, fast_end_fault, fast_end_exception, fast_end_report
.text
