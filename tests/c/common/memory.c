/* The functions that the compiler may call on its own in freestanding programs. */
#include <stddef.h>

void *memcpy(void *to, const void *from, size_t size)
{
    unsigned char *t = to;
    const unsigned char *f = from;
    while (size--)
        *t++ = *f++;
    return to;
}

void *memset(void *to, int value, size_t size)
{
    unsigned char *t = to;
    while (size--)
        *t++ = (unsigned char)value;
    return to;
}

void *memmove(void *to, const void *from, size_t size)
{
    unsigned char *t = to;
    const unsigned char *f = from;
    if (t < f)
        return memcpy(to, from, size);
    while (size--)
        t[size] = f[size];
    return to;
}

int memcmp(const void *left, const void *right, size_t size)
{
    const unsigned char *l = left, *r = right;
    for (; size--; l++, r++)
        if (*l != *r)
            return *l - *r;
    return 0;
}
