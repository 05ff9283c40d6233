/* Bytes in memory, as the C library has them. */
#ifndef MACH_MEMORY_H
#define MACH_MEMORY_H

void *memcpy(void *to, const void *from, unsigned long size);
void *memmove(void *to, const void *from, unsigned long size);
void *memset(void *to, int byte, unsigned long size);
int memcmp(const void *left, const void *right, unsigned long size);

#endif
