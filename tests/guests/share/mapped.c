/* Maps a file, shared, and changes it in addition to reads and writes. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void) {
    char buffer[16] = "";
    int file = open("mapped", O_RDWR | O_CREAT, 0644);
    if (ftruncate(file, 10000) != 0) return 1;
    char *memory = mmap(0, 10000, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) return 2;
    memcpy(memory + 5000, "by the mapping", 14);
    pread(file, buffer, 14, 5000);
    puts(buffer);
    pwrite(file, "by a call", 9, 9000);
    printf("%.9s\n", memory + 9000);
    printf("msync %d\n", msync(memory, 10000, MS_SYNC));
    /* What is not synchronised is written when the program has ended. */
    memcpy(memory, "at the end", 10);
    char *copy = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    copy[0] = 'A';
    printf("%.10s, privately %.10s\n", memory, copy);
    return 0;
}
