/* A root task that drives the first serial port itself, and shows what it finds in place of the
 * kernel debugger: INT3 is an exception, and what is typed is the program's. Needs the boot options
 * `legacy-io` and `kdb=off`. */
#include <l4/ipc.h>
#include <l4/kdebug.h>
#include <l4/message.h>
#include <l4/thread.h>

#define DATA 0x3f8
#define LINE_STATUS 0x3fd
#define RECEIVED 0x01
#define MAY_SEND 0x20

#define EXCEPTION_TAG 0xffffffffffb00013UL
#define EXCEPTION_NUMBER 19
#define BREAKPOINT 3

static char stack[4096] __attribute__((aligned(16)));
static L4_ThreadId_t master;

static unsigned char in(unsigned short port)
{
    unsigned char value;
    __asm__ volatile("inb %1, %0" : "=a"(value) : "d"(port));
    return value;
}

static void out(unsigned short port, unsigned char value) { __asm__ volatile("outb %0, %1" : : "a"(value), "d"(port)); }

static void print(const char *text)
{
    for (; *text; text++) {
        while (!(in(LINE_STATUS) & MAY_SEND))
            ;
        out(DATA, *text);
    }
}

static void use_debugger(void)
{
    L4_Set_ExceptionHandler(master);
    L4_KDB_Enter("entered by a program");
    for (;;)
        ;
}

int main(void)
{
    L4_Word_t utcb = L4_MyLocalId().raw - 512 + 1024, number;
    L4_ThreadId_t from, thread;
    L4_MsgTag_t tag;
    master = L4_Myself();
    thread = L4_GlobalId(L4_ThreadNo(master) + 1, 1);
    L4_ThreadControl(thread, master, master, master, (void *)utcb);
    L4_Start_SpIp(thread, (L4_Word_t)stack + sizeof(stack) - 8, (L4_Word_t)use_debugger);
    tag = L4_Wait(&from);
    L4_StoreMR(EXCEPTION_NUMBER, &number);
    if (tag.raw == EXCEPTION_TAG && number == BREAKPOINT)
        print("INT3 is an exception\r\n");
    for (;;) {
        while (!(in(LINE_STATUS) & RECEIVED))
            ;
        print(in(DATA) == 0x1b ? "Escape was typed\r\n" : "another key was typed\r\n");
    }
}
