/* The kernel debugger (ABI 15): an INT3 whose following instruction says what to do. */
#ifndef L4_KDEBUG_H
#define L4_KDEBUG_H

#include <l4/types.h>

/* Enters the debugger, which prints the string. */
#define L4_KDB_Enter(string)                                             \
    __asm__ volatile("int3\n\tjmp 1f\n\tmovq $2f, %%rax\n"               \
                     "1:\n\t.pushsection .rodata\n2:\t.asciz \"" string "\"\n\t.popsection" ::: "rax")

L4_INLINE void L4_KDB_PrintChar(char c)
{
    __asm__ volatile("int3\n\tcmpb $0, %%al" : : "a"((L4_Word_t)(L4_Word8_t)c) : "cc");
}
L4_INLINE void L4_KDB_PrintString(const char *s)
{
    __asm__ volatile("int3\n\tcmpb $1, %%al" : : "a"(s) : "cc", "memory");
}
L4_INLINE void L4_KDB_ToggleBreakin(void)
{
    L4_Word_t unused = 0;
    __asm__ volatile("int3\n\tcmpb $3, %%al" : "+a"(unused) : : "cc");
}
/* The next character, -1 if there is none. */
L4_INLINE int L4_KDB_ReadChar(void)
{
    L4_Word_t c = 0;
    __asm__ volatile("int3\n\tcmpb $8, %%al" : "+a"(c) : : "cc");
    return (int)c;
}
/* The next character; waits for it. */
L4_INLINE int L4_KDB_ReadChar_Blocked(void)
{
    L4_Word_t c = 0;
    __asm__ volatile("int3\n\tcmpb $13, %%al" : "+a"(c) : : "cc");
    return (int)c;
}

#endif
