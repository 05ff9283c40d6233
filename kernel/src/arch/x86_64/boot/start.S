// Entry from the boot loader: 32-bit protected mode, flat segments, no paging, interrupts off.
//
//   EAX = 0x2badb002  Multiboot 1, EBX = its information structure
//   EAX = 0x36d76289  Multiboot 2, EBX = its information structure
//   anything else     Pistachio's kickstart: everything is in the kernel interface page (ABI 1.6)
//
// Leaves in 64-bit mode on a boot stack, in the image's linked virtual addresses, with the low 4
// GiB mapped one to one and at the direct map, and calls boot_entry(magic, information,
// displacement).
//
// EBP holds the displacement: how far from its link address the image was loaded (Multiboot 2 may
// relocate it, in steps of 2 MiB; the others never do). Nothing here may use an absolute address
// without adding it.

.set VIRTUAL, 0xffffffff80000000

.section .boot.header, "a"
.balign 8
multiboot_header:
    .long 0x1badb002
    .long 0x00010003                    // modules on page boundaries, memory map, addresses below
    .long -(0x1badb002 + 0x00010003)
    .long multiboot_header - VIRTUAL
    .long image_start - VIRTUAL
    .long load_end - VIRTUAL
    .long boot_memory_end - VIRTUAL
    .long start - VIRTUAL

// Multiboot 2: as above, in tags. The image may be put anywhere below 4 GiB on a 2 MiB boundary,
// preferably high, for firmware that occupies the link address (UEFI often does).
.balign 8
multiboot2_header:
    .long 0xe85250d6, 0, multiboot2_end - multiboot2_header
    .long -(0xe85250d6 + multiboot2_end - multiboot2_header)
    .short 2, 0                         // addresses
    .long 24
    .long multiboot2_header - VIRTUAL
    .long image_start - VIRTUAL
    .long load_end - VIRTUAL
    .long boot_memory_end - VIRTUAL
    .short 3, 0                         // entry
    .long 12
    .long start - VIRTUAL
    .long 0
    .short 6, 0                         // modules on page boundaries
    .long 8
    .short 10, 0                        // relocatable: addresses, alignment, preference 2 = high
    .long 24
    .long 0x800000, 0xffffffff, 0x200000, 2
    .short 5, 1                         // a screen, if there is one: width, height, bits
    .long 20
    .long 1024, 768, 32
    .balign 8
    .short 0, 0
    .long 8
multiboot2_end:

.section .boot.text, "ax"
.code32
.global start
start:
    cli
    cld
    mov     esi, eax                    // ESI = magic, EBX = information: kept until boot_entry
    xor     ebp, ebp
    cmp     esi, 0x36d76289
    jne     3f
    lea     edx, [ebx + 8]              // Multiboot 2: tag 21 says where the image is
1:  mov     eax, [edx]
    test    eax, eax
    jz      3f
    cmp     eax, 21
    je      2f
    mov     ecx, [edx + 4]
    add     ecx, 7
    and     ecx, -8
    add     edx, ecx
    jmp     1b
2:  mov     ebp, [edx + 8]
    sub     ebp, offset image_start - VIRTUAL
3:
    rdtsc
    mov     [ebp + boot_entry_time - VIRTUAL], eax
    mov     [ebp + boot_entry_time - VIRTUAL + 4], edx
    // Memory that the image does not contain is zero: every loader's protocol says so (Multiboot 1
    // and 2: the addresses in the headers; kickstart: ABI 1.3). Clearing 2 MiB of thread table
    // again would be most of the time until the first line.
    lea     esp, [ebp + boot_stack_end - VIRTUAL]

    // Is there long mode? A processor without CPUID cannot toggle EFLAGS.ID.
    pushfd
    pop     eax
    mov     ecx, eax
    xor     eax, 1 << 21
    push    eax
    popfd
    pushfd
    pop     eax
    cmp     eax, ecx
    je      no_long_mode
    push    ebx
    mov     eax, 0x80000000
    cpuid
    cmp     eax, 0x80000001
    jb      no_long_mode
    mov     eax, 0x80000001
    cpuid
    pop     ebx
    test    edx, 1 << 29
    jz      no_long_mode
    mov     edi, edx                    // EDI bit 20: no-execute is there

    // Tables: PML4 0 and 256 -> low 4 GiB in 2 MiB pages; PML4 511 -> the image's 2 MiB pages at
    // its link address.
    lea     edx, [ebp + boot_tables - VIRTUAL]
    lea     eax, [edx + 0x1003]
    mov     [edx], eax
    mov     [edx + 256 * 8], eax
    add     eax, 0x1000
    mov     [edx + 511 * 8], eax
    add     eax, 0x1000
    mov     [edx + 0x2000 + 510 * 8], eax
    add     eax, 0x1000
    mov     [edx + 0x1000], eax
    add     eax, 0x1000
    mov     [edx + 0x1008], eax
    add     eax, 0x1000
    mov     [edx + 0x1010], eax
    add     eax, 0x1000
    mov     [edx + 0x1018], eax
    lea     eax, [ebp + (image_start - VIRTUAL) + 0x83]
    mov     ecx, 4
1:  mov     [edx + 0x3000 + ecx * 8], eax
    add     eax, 0x200000
    inc     ecx
    cmp     ecx, 7
    jb      1b
    mov     eax, 0x83
    xor     ecx, ecx
2:  mov     [edx + 0x4000 + ecx * 8], eax
    add     eax, 0x200000
    inc     ecx
    cmp     ecx, 2048
    jb      2b

    mov     cr3, edx
    mov     eax, cr4
    or      eax, 1 << 5                 // PAE
    mov     cr4, eax
    mov     ecx, 0xc0000080             // EFER: LME, and NXE where there is NX
    rdmsr
    or      eax, 1 << 8
    bt      edi, 20
    jnc     3f
    or      eax, 1 << 11
3:  wrmsr
    mov     eax, 0x80010033             // PG WP NE ET MP PE; caches on
    mov     cr0, eax

    lea     eax, [ebp + boot_gdt - VIRTUAL]
    push    eax
    sub     esp, 2
    mov     word ptr [esp], 15
    lgdt    [esp]
    push    8
    lea     eax, [ebp + start64 - VIRTUAL]
    push    eax
    retf

// Prints this on the first serial port, by polling, and stops.
no_long_mode:
    lea     esi, [ebp + no_long_mode_text - VIRTUAL]
    mov     dx, 0x3f8
1:  lodsb
    test    al, al
    jz      2f
    out     dx, al
    out     0xe9, al
    jmp     1b
2:  hlt
    jmp     2b
no_long_mode_text:
    .asciz  "Macadamia needs a 64-bit x86 processor; this one has no long mode. Stopped.\r\n"

.balign 8
boot_gdt:
    .quad   0
    .quad   0x00af9b000000ffff          // 0x08: 64-bit code, ring 0

.code64
start64:
    xor     eax, eax
    mov     ss, ax
    mov     ds, ax
    mov     es, ax
    mov     fs, ax
    mov     gs, ax
    mov     rsp, offset boot_stack_end
    mov     edi, esi
    mov     esi, ebx
    mov     edx, ebp
    xor     ebp, ebp                    // ends the chain of frame pointers
    mov     rax, offset boot_entry
    call    rax
    ud2

.section .data.boot, "aw"
.balign 8
.global boot_entry_time
boot_entry_time:                        // time-stamp counter at entry
    .quad   0

.section .bss.boot, "aw", @nobits
.balign 4096
.global boot_tables
boot_tables:
    .skip   8 * 4096
boot_stack:
    .skip   16 * 4096
boot_stack_end:
.text
