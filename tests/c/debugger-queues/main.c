/* A root task that enters the kernel debugger while two of its threads are ready and one waits for
 * a long time; then again and again, each time after a wait that fails and an Unmap of another
 * page. */
#include <l4/ipc.h>
#include <l4/kdebug.h>
#include <l4/schedule.h>
#include <l4/space.h>
#include <l4/thread.h>

#define READY_PRIORITY 50
#define WAITING_PRIORITY 200

static char stacks[3][4096] __attribute__((aligned(16)));

static void compute(void)
{
    for (;;)
        ;
}

static void wait_long(void) { L4_Sleep(L4_TimePeriod(550 * 1000000UL)); }

/* Starts this program's thread `number`, from 1 on. */
static L4_ThreadId_t start(int number, void (*code)(void), L4_Word_t priority)
{
    L4_ThreadId_t me = L4_Myself(), thread = L4_GlobalId(L4_ThreadNo(me) + number, 1);
    L4_Word_t utcb = L4_MyLocalId().raw - 512 + 1024 * number;
    L4_ThreadControl(thread, me, me, me, (void *)utcb);
    L4_Set_Priority(thread, priority);
    L4_Start_SpIp(thread, (L4_Word_t)stacks[number - 1] + sizeof(stacks[0]) - 8, (L4_Word_t)code);
    return thread;
}

int main(void)
{
    L4_Word_t page;
    L4_ThreadId_t waiting = start(3, wait_long, WAITING_PRIORITY);
    while (L4_Set_Priority(waiting, WAITING_PRIORITY) != L4_SCHEDRESULT_WAITING)
        L4_Sleep(L4_TimePeriod(1000));
    start(1, compute, READY_PRIORITY);
    start(2, compute, READY_PRIORITY);
    L4_KDB_Enter("threads wait");
    for (page = 0x7000000;; page += 0x1000) {
        L4_Receive_Timeout(L4_Myself(), L4_ZeroTime);
        L4_UnmapFpage(L4_FpageLog2(page, 12));
        L4_KDB_Enter("once more");
    }
}
