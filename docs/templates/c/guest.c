/* A client of the greeter, in C: asks twice, prints the answers, and switches the machine off. The
 * stubs in greeting.h and root.h are those that mig writes for greeting.defs and for
 * interfaces/root.defs of the tree. */
#include "greeting.h"
#include "root.h"

/* Where root maps the kernel interface page in each server. */
#define KERNEL_INTERFACE ((char *)0x7fff80000000)

/* The entry: the kernel starts the program without a stack. */
__asm__(".section .text.entry, \"ax\", @progbits\n"
        ".global _start\n"
        "_start: lea stack + 16384(%rip), %rsp\n"
        "        xor %ebp, %ebp\n"
        "        cld\n"
        "        call main\n"
        "        ud2\n"
        ".text\n");
char stack[16384] __attribute__((aligned(16)));

/* Prints a text. A server's pager is a thread of root's. */
static void print(const char *text)
{
    L4_Word_t length = 0;
    while (text[length])
        length++;
    root_print(L4_Pager(), (const uint8_t *)text, length);
}

int main(void)
{
    l4_kernel_interface_page = KERNEL_INTERFACE;
    L4_ThreadId_t greeter;
    /* 1: wait until the greeter is there. */
    if (root_name_lookup(L4_Pager(), 1, (const uint8_t *)"greeter", 7, &greeter.raw) != 0) {
        print("guest in C: there is no greeter\n");
    } else {
        uint64_t count, sum;
        for (uint64_t number = 20; number <= 22; number += 2)
            if (greeting_greet(greeter, number, &count, &sum) == 0 && sum == 42)
                print("guest in C: the sum is 42\n");
    }
    root_system_end(L4_Pager(), 0, 0);
    for (;;)
        ;
}
