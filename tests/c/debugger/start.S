// A root task that uses the kernel debugger as programs do (ABI 15.1): a string, a character, the
// debugger itself with a message, then once more to show that it went on.
    .text
    .globl  _start
_start:
    lea     stack_end(%rip), %rsp
    lea     greeting(%rip), %rax
    movzbl  (%rax), %ecx                // a page that is not mapped would not be printed: touch it
    int3
    cmpb    $1, %al
    mov     $'!', %eax
    int3
    cmpb    $0, %al
    mov     $'\n', %eax
    int3
    cmpb    $0, %al
    int3
    jmp     1f
    mov     $message, %rax
1:  call    marked
    lea     farewell(%rip), %rax
    int3
    cmpb    $1, %al
2:  int3                                // what is typed is echoed, for ever
    cmpb    $0xd, %al
    int3
    cmpb    $0, %al
    jmp     2b

    // Tests name this address, 0x1000800. It moves if the code before it grows.
    .balign 256
marked:
    addq    $3, counter(%rip)
    addq    $4, counter(%rip)
    ret

    .data                               // and this one: 0x1002000
counter:
    .quad   0

    .section .rodata
greeting:
    .asciz  "printed by a program"
message:
    .asciz  "entered by a program"
farewell:
    .asciz  "the program goes on\n"

    .bss
    .balign 16
    .skip   4096
stack_end:
    .section .note.GNU-stack, "", @progbits
