/* What the compiler calls by itself. */
#include <mach/memory.h>

void *memcpy(void *to, const void *from, unsigned long size)
{
    void *start = to;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
    return start;
}

void *memmove(void *to, const void *from, unsigned long size)
{
    if ((unsigned long)to - (unsigned long)from >= size)
        return memcpy(to, from, size);
    /* The target begins in the source: the last byte goes first. */
    char *target = (char *)to + size;
    const char *source = (const char *)from + size;
    while (size--)
        *(volatile char *)--target = *--source;
    return to;
}

void *memset(void *to, int byte, unsigned long size)
{
    void *start = to;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(byte) : "memory");
    return start;
}

int memcmp(const void *left, const void *right, unsigned long size)
{
    const volatile unsigned char *one = left, *other = right;
    for (; size; size--, one++, other++)
        if (*one != *other)
            return *one - *other;
    return 0;
}
