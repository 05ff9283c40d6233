// The way of another processor from real mode to the kernel. The first part is copied to a page
// below 1 MiB, whose number is the vector of the start-up message; the rest runs in the image.
// Several processors may execute it at the same time. They share everything here and write nothing
// but their own element of candidate_states.

.set VIRTUAL, 0xffffffff80000000

// Offsets in the copied part, where its code finds the words that the first processor fills in.
.set TABLE, 8
.set TABLE_POINTER, 40
.set ENTRY_32, 48
.set ENTRY_64, 56
.set DISPLACEMENT, 64

.section .rodata.trampoline, "a"
.balign 16
.global trampoline_start
trampoline_start:
.code16
    jmp     trampoline_code
.org trampoline_start + TABLE
    .quad   0
    .quad   0x00cf9b000000ffff          // 0x08: 32-bit code
    .quad   0x00cf93000000ffff          // 0x10: data
    .quad   0x00af9b000000ffff          // 0x18: 64-bit code
.org trampoline_start + TABLE_POINTER
    .short  31
    .long   TABLE                       // + the page
.org trampoline_start + ENTRY_32
    .long   processor_start32 - VIRTUAL // + the displacement
    .long   0x08
.org trampoline_start + ENTRY_64
    .long   processor_start64 - VIRTUAL // + the displacement
    .long   0x18
.org trampoline_start + DISPLACEMENT
    .long   0                           // + the displacement
trampoline_code:
    cli
    cld
    mov     ax, cs
    mov     ds, ax
    lgdtd   [TABLE_POINTER]
    mov     ebp, dword ptr [DISPLACEMENT]
    mov     eax, cr0
    or      al, 1
    mov     cr0, eax
    .byte   0x66, 0xff, 0x2e            // far jump to 32-bit code through the pointer at ENTRY_32
    .short  ENTRY_32
.global trampoline_end
trampoline_end:

.section .boot.text, "ax"
.code32
// EBP = displacement of the image. The page of the copy is found through processor_trampoline.
processor_start32:
    mov     ax, 0x10
    mov     ds, ax
    mov     es, ax
    mov     ss, ax
    lea     edx, [ebp + boot_tables - VIRTUAL]
    mov     cr3, edx
    mov     eax, cr4
    or      eax, 1 << 5                 // PAE
    mov     cr4, eax
    mov     eax, 0x80000001
    cpuid
    mov     edi, edx                    // EDI bit 20: no-execute is there
    mov     ecx, 0xc0000080             // EFER: LME, and NXE where there is NX
    rdmsr
    or      eax, 1 << 8
    bt      edi, 20
    jnc     1f
    or      eax, 1 << 11
1:  wrmsr
    mov     eax, 0x80010033             // PG WP NE ET MP PE; caches on
    mov     cr0, eax
    mov     ebx, [ebp + processor_trampoline - VIRTUAL]
    jmp     fword ptr [ebx + ENTRY_64]

.code64
processor_start64:
    mov     rax, offset processor_start_high
    jmp     rax
processor_start_high:
    xor     eax, eax
    mov     ss, ax
    mov     ds, ax
    mov     es, ax
    mov     fs, ax
    mov     gs, ax
    // The number of this candidate: its local APIC id is in CPUID leaf 1, and its place is where
    // the table of ids has that.
    mov     eax, 1
    cpuid
    shr     ebx, 24
    mov     ecx, [rip + candidate_count]
    lea     rdx, [rip + candidate_ids]
2:  dec     ecx
    js      4f
    cmp     [rdx + rcx * 4], ebx
    jne     2b
    // A processor goes on only if the first one waits for it: the state 1 (waited for) becomes 2
    // (came).
    lea     rdx, [rip + candidate_states]
    mov     eax, 1
    mov     ebx, 2
    lock cmpxchg [rdx + rcx * 4], ebx
    jne     4f
    // When all have come, or were given up, each is told its number.
    lea     rdx, [rip + candidate_numbers]
3:  pause
    mov     edi, [rdx + rcx * 4]
    test    edi, edi
    jz      3b
    lea     rdx, [rip + processor_stacks]
    mov     rsp, [rdx + rdi * 8]
    mov     rax, [rip + processor_root]
    mov     cr3, rax
    xor     ebp, ebp
    mov     rax, offset processor_entry
    call    rax
    ud2
4:  cli
    hlt
    jmp     4b
.text
