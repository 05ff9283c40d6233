// Multiboot 1 entry: a stack, then the loader; it leaves by `enter`.
    .section .header, "a"
    .balign 4
    .long   0x1badb002, 0, -0x1badb002

    .text
    .globl  _start
_start:
    cli
    cld
    mov     $stack_end, %esp
    push    %ebx
    push    %eax
    call    load
1:  hlt
    jmp     1b

// enter(entry): flushes the caches and jumps to the kernel with its entry address in EAX and
// nothing useful elsewhere.
    .globl  enter
enter:
    mov     4(%esp), %eax
    mov     $0xdeadbeef, %ebx
    mov     %ebx, %ecx
    mov     %ebx, %edx
    mov     %ebx, %esi
    mov     %ebx, %edi
    mov     %ebx, %ebp
    wbinvd
    jmp     *%eax

    .bss
    .balign 16
    .skip   16384
stack_end:
    .section .note.GNU-stack, "", @progbits
