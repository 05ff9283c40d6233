// A root task that drives the first serial port itself, as old X.2 programs do (ABI 15.3): needs
// the boot option `legacy-io`.
    .text
    .globl  _start
_start:
    lea     text(%rip), %rsi
next:
    mov     $0x3fd, %edx
1:  in      %dx, %al
    test    $0x20, %al
    jz      1b
    lodsb
    test    %al, %al
    jz      stop
    mov     $0x3f8, %edx
    out     %al, %dx
    jmp     next
stop:
    jmp     stop

    .section .rodata
text:
    .asciz  "written through the ports by a program\r\n"
    .section .note.GNU-stack, "", @progbits
