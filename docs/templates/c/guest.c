/* A client of the greeter, in C: asks twice, prints the answers, and switches the machine off. */
#include <l4/ipc.h>
#include <l4/kip.h>
#include <l4/message.h>
#include <l4/thread.h>

/* Where root maps the kernel interface page in each server. */
#define KERNEL_INTERFACE ((char *)0x7fff80000000)

/* Requests to root: interfaces/root.defs. */
enum { PRINT = 4000, NAME_LOOKUP = 4014, SYSTEM_END = 4018 };
/* The request to the greeter. */
enum { GREET = 1 };

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

/* Sends words, and after them a text, if there is one: its length in bytes, then its bytes, eight
 * in a word. */
static L4_Word_t call(L4_ThreadId_t to, L4_Word_t label, const L4_Word_t *words, int count, const char *text,
                      L4_Msg_t *answer)
{
    L4_Msg_t request;
    L4_MsgClear(&request);
    L4_Set_MsgLabel(&request, label);
    for (int i = 0; i < count; i++)
        L4_MsgAppendWord(&request, words[i]);
    if (text) {
        L4_Word_t length = 0;
        while (text[length])
            length++;
        L4_MsgAppendWord(&request, length);
        for (L4_Word_t at = 0; at < length; at += 8) {
            L4_Word_t word = 0;
            for (L4_Word_t byte = 0; byte < 8 && at + byte < length; byte++)
                word |= (L4_Word_t)(unsigned char)text[at + byte] << (8 * byte);
            L4_MsgAppendWord(&request, word);
        }
    }
    L4_MsgLoad(&request);
    L4_MsgTag_t tag = L4_Call(to);
    if (L4_IpcFailed(tag))
        return -1UL;
    L4_MsgStore(tag, answer);
    return L4_MsgWord(answer, 0);
}

static void print(const char *text)
{
    L4_Msg_t answer;
    call(L4_Pager(), PRINT, 0, 0, text, &answer);
}

int main(void)
{
    l4_kernel_interface_page = KERNEL_INTERFACE;
    L4_Msg_t answer;
    /* A server's pager is a thread of root's. 1: wait until the greeter is there. */
    if (call(L4_Pager(), NAME_LOOKUP, (L4_Word_t[]){1}, 1, "greeter", &answer) != 0) {
        print("guest in C: there is no greeter\n");
    } else {
        L4_ThreadId_t greeter = {.raw = L4_MsgWord(&answer, 1)};
        for (L4_Word_t number = 20; number <= 22; number += 2)
            if (call(greeter, GREET, &number, 1, 0, &answer) == 0 && L4_MsgWord(&answer, 2) == 42)
                print("guest in C: the sum is 42\n");
    }
    call(L4_Pager(), SYSTEM_END, (L4_Word_t[]){0, 0}, 2, 0, &answer);
    for (;;)
        ;
}
