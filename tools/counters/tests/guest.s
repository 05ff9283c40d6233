# A Multiboot 1 guest of a few counted instructions: 32-bit code at 1 MiB, no paging.
        .code32
        .section .text
        .globl _start
        .align 4
        .long 0x1badb002, 0, -0x1badb002

        .macro mark kind, region
        .byte 0x0f, 0x1f, 0x80
        .long 0x4d4c0000 + (\kind << 8) + \region
        .endm

_start:
        movl $0x8000, %esp
        # Region 1: a loop of 10 rounds, 4 instructions each, and 1 before it.
        mark 1, 1
        movl $10, %ecx
1:      lock incl 0x200000
        movl 0x200100, %eax
        decl %ecx
        jnz 1b
        # What does not count.
        mark 3, 1
        lock incl 0x200000
        inb $0x80, %al
        mark 4, 1
        mark 2, 1
        # Region 2: 4 KiB moved in bulk, a serialising instruction, a port.
        mark 1, 2
        movl $0x210000, %esi
        movl $0x220000, %edi
        movl $1024, %ecx
        cld
        rep movsl
        movl %cr3, %eax
        movl %eax, %cr3
        inb $0x80, %al
        mark 2, 2
        # Leave QEMU by isa-debug-exit: status 1.
        xorl %eax, %eax
        outb %al, $0xf4
2:      hlt
        jmp 2b
