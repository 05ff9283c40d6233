/* A program that is linked to the kernel's own place: it must never be loaded. */
    .text
    .globl _start
_start:
    ud2

    .section .note.GNU-stack, "", @progbits
