/* A C program that calls every function of the extensions. */
#include <l4/extension.h>
#include <l4/ipc.h>
#include <l4/kip.h>
#include <l4/message.h>
#include <l4/misc.h>
#include <l4/schedule.h>
#include <l4/space.h>
#include <l4/thread.h>
#include <tap.h>

static char page[4096] __attribute__((aligned(4096)));
static L4_ThreadId_t child;

/* A space of its own, owned by this program, with one active thread that waits for its start. */
static void make_child(void)
{
    L4_Word_t old;
    L4_ThreadId_t me = L4_Myself();
    child = L4_GlobalId(L4_ThreadNo(me) + 20, 1);
    CHECK(L4_ThreadControl(child, child, me, L4_nilthread, (void *)~0UL));
    CHECK(L4_SpaceControl(child, 0, L4_FpageLog2((L4_Word_t)L4_GetKernelInterface(), 12),
                          L4_FpageLog2(0x7fff80010000, 12), L4_anythread, &old));
    CHECK(L4_SetOwner(child, me));
    CHECK(L4_ThreadControl(child, child, me, me, (void *)0x7fff80010000));
}

static void announced(void) { CHECK(L4_ExtensionVersion() == 1); }

static void space_options(void)
{
    L4_Word_t values[2] = {0, 0};
    CHECK(L4_SpaceOptions(child, L4_SpaceInformation, values) && values[0] > 0);
    CHECK(L4_SetSystemCallMode(child, L4_SystemCallsBounce));
    CHECK(L4_SetSystemCallMode(child, L4_SystemCallsException));
    CHECK(!L4_SetSystemCallMode(child, 3) && L4_ErrorCode() == 5);
    CHECK(L4_SetEmulationEntry(child, 0x400000) && !L4_SetEmulationEntry(child, ~0UL));
    CHECK(!L4_SetOwner(child, child) && L4_ErrorCode() == 3);
    CHECK(L4_SetOpen(child, L4_Myself(), 1) && L4_SetOpen(child, L4_Myself(), 0));
}

static void interrupt_messages(void)
{
    L4_Word_t number = L4_ThreadIdSystemBase(L4_GetKernelInterface()) - L4_MessageInterrupts();
    L4_InterruptMessage_t message;
    CHECK(L4_MessageInterrupts() > 0);
    CHECK(L4_InterruptMessage(L4_GlobalId(number, 1), &message));
    CHECK((message.address & ~0xff000UL) == 0xfee00000 && message.data >= 32 && message.data < 255);
    CHECK(!L4_InterruptMessage(L4_GlobalId(number - 1, 1), &message) && L4_ErrorCode() == 5);
}

static void map_control(void)
{
    L4_Word_t done;
    L4_Fpage_t target = L4_FpageAddRights(L4_FpageLog2(0x400000, 12), L4_ReadWriteOnly);
    L4_MapControlItem_t items[2];
    page[0] = 1;
    items[0] = L4_MapControlItem(L4_MapControlMap, target, 1, (L4_Word_t)page);
    items[1] = L4_MapControlItem(L4_MapControlQuery, target, 1, 0);
    CHECK(L4_MapControl(child, items, 2, &done) && done == 2);
    CHECK(items[0].answer == 1UL << 32);
    CHECK((items[1].answer & (L4_PageMapped | L4_PageReferenced | L4_PageDirty)) == L4_PageMapped);
    items[0] = L4_MapControlItem(L4_MapControlProtect | L4_ClearReferenced | L4_ClearDirty,
                                 L4_FpageAddRights(L4_FpageLog2(0x400000, 12), L4_Readable), 1, 0);
    items[1] = L4_MapControlItem(L4_MapControlUnmap, target, 1, 0);
    CHECK(L4_MapControl(child, items, 2, &done));
    CHECK((items[1].answer & 7) == L4_Readable);
    items[0].target = 0;
    CHECK(!L4_MapControl(child, items, 2, &done) && done == 0 && L4_ErrorCode() == 5);
    CHECK(!L4_MapControlOne(child, &items[0]) && L4_ErrorCode() == 5);
    items[0] = L4_MapControlItem(L4_MapControlMap, target, 1, (L4_Word_t)page);
    CHECK(L4_MapControlOne(child, &items[0]) && items[0].answer == 1UL << 32);
    CHECK(L4_MapControlOne(child, &items[1]) && (items[1].answer & 7) == L4_ReadWriteOnly);
}

static void thread_state(void)
{
    static unsigned char image[1024] __attribute__((aligned(64)));
    L4_Word_t state, size = 0, rip;
    CHECK(L4_ThreadState(child, L4_ReadRegisters, 0, &size, &state) && (state & 15) == 6);
    L4_StoreMR(1, &rip);
    CHECK(rip == 0);
    L4_LoadMR(1, 0x400000);
    CHECK(L4_ThreadState(child, L4_WriteRegisters, 0, &size, &state));
    size = sizeof(image);
    CHECK(L4_ThreadState(child, L4_ReadExtendedState, image, &size, &state) && size >= 576);
    CHECK(image[0] == 0x7f && image[1] == 0x03);
    CHECK(L4_ThreadState(child, L4_WriteExtendedState, image, &size, &state));
    CHECK(L4_RecallThread(child) && L4_SetHandlers(child, L4_Myself(), L4_Myself()));
    CHECK(!L4_RecallThread(L4_Myself()) && L4_ErrorCode() == 1);
}

static void notify(void)
{
    L4_ThreadId_t from;
    L4_MsgTag_t tag;
    L4_Word_t bits;
    CHECK(L4_Notify(L4_Myself(), 5));
    L4_LoadBR(0, L4_AcceptNotifications);
    tag = L4_Wait_Timeout(L4_ZeroTime, &from);
    L4_LoadBR(0, 0);
    L4_StoreMR(1, &bits);
    CHECK(L4_IpcSucceeded(tag) && L4_Label(tag) == L4_NotificationLabel && bits == 5 && L4_IsNilThread(from));
    CHECK(!L4_Notify(L4_GlobalId(L4_ThreadNo(L4_Myself()) + 99, 1), 1) && L4_ErrorCode() == 2);
}

static void clean_up(void) { CHECK(L4_ThreadControl(child, L4_nilthread, L4_nilthread, L4_nilthread, (void *)~0UL)); }

static const tap_test_t tests[] = {
    {"XTC0001", "the extensions are announced", announced},
    {"XTC0002", "a space can be made and owned", make_child},
    {"XTC0003", "SpaceOptions", space_options},
    {"XTC0004", "MapControl", map_control},
    {"XTC0005", "ThreadState", thread_state},
    {"XTC0006", "Notify", notify},
    {"XTC0008", "message-signalled interrupts", interrupt_messages},
    {"XTC0007", "the space can be deleted", clean_up},
};

int main(void) { TAP_RUN(tests); }
