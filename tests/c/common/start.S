/* Entry of a program in C: a stack, every page of the program touched (its other threads have no
 * pager that would answer), then main. Weak: a program can have an entry of its own. */
        .section .text.entry, "ax", @progbits
        .weak   _start
        .weak   main
_start: lea     stack_top(%rip), %rsp
        xor     %ebp, %ebp
        cld
        lea     __program_start(%rip), %rax
        lea     __program_end(%rip), %rcx
1:      movb    (%rax), %dl
        add     $4096, %rax
        cmp     %rcx, %rax
        jb      1b
        call    main
        ud2

        .bss
        .balign 16
        .skip   65536
stack_top:

        .section .note.GNU-stack, "", @progbits
