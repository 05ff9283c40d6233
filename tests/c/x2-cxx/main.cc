/* A C++ program that calls every function and operator that the interface has for C++ only. */
#include <l4/ipc.h>
#include <l4/kip.h>
#include <l4/message.h>
#include <l4/misc.h>
#include <l4/schedule.h>
#include <l4/sigma0.h>
#include <l4/space.h>
#include <l4/thread.h>
#include <tap.h>

static void values()
{
    L4_Fpage_t f = L4_Fpage(0x4000, 0x1000) + L4_FullyAccessible - L4_Writable;
    CHECK(L4_Rights(f) == L4_ReadeXecOnly);
    f += L4_Writable;
    f -= L4_eXecutable;
    CHECK(L4_Rights(f) == L4_ReadWriteOnly);
    CHECK(L4_GlobalId(5, 1) == L4_GlobalId(5, 1) && L4_GlobalId(5, 1) != L4_GlobalId(5, 2));
    L4_Clock_t now = L4_SystemClock(), later = now + 5;
    CHECK(later > now && now < later && now <= now && later >= now && now != later);
    CHECK(later - 5 == now && later - (L4_Word64_t)5 == now && now + (L4_Word64_t)5 == later);
    CHECK((now + now).raw == 2 * now.raw && (later - now).raw == 5);
}

static void kernel_interface()
{
    void *page = L4_KernelInterface();
    L4_MemoryDesc_t *m = L4_MemoryDesc(page, 0);
    CHECK(L4_Low(m) < L4_High(m) && L4_Type(m) == L4_MemoryDescType(m) && L4_IsVirtual(m) == m->x.v);
    CHECK(L4_InternalFreq(L4_ProcDesc(page, 0)) != 0);
    CHECK(L4_ExternalFreq(L4_ProcDesc(page, 0)) == L4_ProcDescExternalFreq(L4_ProcDesc(page, 0)));
}

static void messages()
{
    L4_Msg_t msg;
    L4_Word_t word = 0, words[2] = { 1, 2 }, got[2];
    L4_MapItem_t m = L4_MapItem(L4_Fpage(0x4000, 0x1000), 0x8000);
    L4_GrantItem_t g = L4_GrantItem(L4_Fpage(0x4000, 0x1000), 0x8000);
    CHECK(L4_MapItem(m) && L4_GrantItem(g));
    CHECK(L4_SndFpage(m).raw == 0x40c0 && L4_SndBase(m) == 0x8000);
    CHECK(L4_SndFpage(g).raw == 0x40c0 && L4_SndBase(g) == 0x8000);
    L4_Clear(&msg);
    L4_Set_Label(&msg, 9);
    L4_Append(&msg, (L4_Word_t)3);
    L4_Append(&msg, 4);
    L4_Append(&msg, m);
    L4_Append(&msg, g);
    L4_Append(&msg, L4_StringItem(5, words));
    CHECK(L4_Label(&msg) == 9 && L4_Get(&msg, 1) == 4 && L4_TypedWords(L4_MsgTag(&msg)) == 6);
    L4_Get(&msg, 0, &word);
    CHECK(word == 3 && L4_Get(&msg, 0, &m) == 2 && L4_Get(&msg, 2, &g) == 2 && L4_MapItem(m) && L4_GrantItem(g));
    L4_Put(&msg, (L4_Word_t)0, (L4_Word_t)7);
    L4_Put(&msg, 2, m);
    L4_Put(&msg, 0, g);
    CHECK(L4_Get(&msg, 0) == 7 && msg.raw[3] == g.raw[0] && msg.raw[5] == m.raw[0]);
    L4_Put(&msg, 6, 2, words, 0, (void *)0);
    L4_Get(&msg, got, (void *)0);
    CHECK(got[1] == 2 && L4_Label(&msg) == 6);
    L4_Load(&msg);
    L4_Clear(&msg);
    L4_Store(L4_MsgTag(), &msg);
    CHECK(msg.raw[2] == 2);
    L4_MsgTag_t tag = L4_Niltag + 5;
    tag += 6;
    CHECK(tag == L4_MsgTagAddLabel(L4_Niltag, 6) && tag != L4_Niltag);
    L4_Set_MsgTag(&msg, tag);
    CHECK(L4_MsgTag(&msg) == tag);
}

static void strings()
{
    static char a[16], b[16];
    union {
        L4_StringItem_t item;
        L4_Word_t words[8];
    } s, t;
    L4_Msg_t msg;
    L4_MsgBuffer_t buffer;
    L4_CacheAllocationHint_t hint = { 4 };
    s.item = L4_StringItem(16, a);
    CHECK(L4_StringItem(&s.item));
    s.item += (void *)b;
    t.item = L4_StringItem(16, b) + hint;
    s.item += t.item;
    CHECK(s.words[0] == (16 << 10 | 1 << 9 | 1 << 4) && s.words[3] == (16 << 10 | 4));
    CHECK(L4_CacheAllocationHint(t.item) == hint && hint != L4_UseDefaultCacheAllocation);
    t.item = L4_StringItem(16, b);
    t.item += hint;
    CHECK(t.words[0] == (16 << 10 | 4));
    L4_Clear(&msg);
    L4_Append(&msg, &s.item);
    L4_Put(&msg, 0, &s.item);
    CHECK(L4_Get(&msg, 0, &t.item) == 5 && t.words[4] == (L4_Word_t)b);
    L4_Put(&msg, 0, L4_StringItem(4, a));
    CHECK(msg.raw[1] == 4 << 10);
    L4_Clear(&buffer);
    L4_Append(&buffer, L4_StringItem(16, a));
    L4_Append(&buffer, &s.item);
    L4_Acceptor_t acceptor = L4_MapGrantItems(L4_Fpage(0x100000, 0x10000)) + L4_StringItemsAcceptor;
    CHECK(L4_StringItems(acceptor) && L4_MapGrantItems(acceptor));
    L4_Accept(acceptor, &buffer);
    CHECK(L4_Accepted().raw == acceptor.raw);
    acceptor -= L4_StringItemsAcceptor;
    CHECK(!L4_StringItems(acceptor));
    acceptor += L4_StringItemsAcceptor;
    CHECK((acceptor - L4_StringItemsAcceptor).raw == L4_MapGrantItems(L4_Fpage(0x100000, 0x10000)).raw);
    L4_Accept(L4_UntypedWordsAcceptor);
}

static char stack[16384] __attribute__((aligned(16)));
static L4_ThreadId_t partner;

/* Answers every message with itself, waiting with a timeout. */
static void partner_code()
{
    L4_ThreadId_t from;
    L4_MsgTag_t tag = L4_Wait(L4_Never, &from);
    for (;;) {
        L4_Msg_t msg;
        L4_Store(tag, &msg);
        L4_Load(&msg);
        tag = L4_ReplyWait(from, L4_Never, &from);
    }
}

static void threads()
{
    L4_ThreadId_t me = L4_Myself();
    L4_Word_t sp, ip, flags, top = (L4_Word_t)stack + sizeof(stack) - 8;
    partner = L4_GlobalId(L4_ThreadNo(me) + 1, 1);
    CHECK(L4_ThreadControl(partner, me, me, me, (void *)(L4_MyLocalId().raw + 512)) == 1);
    L4_Start(partner, top, (L4_Word_t)partner_code);
    CHECK(L4_GlobalId(L4_LocalId(partner)) == partner && L4_LocalId(me) == L4_MyLocalId());
    L4_Set_UserDefinedHandle(partner, 12);
    CHECK(L4_UserDefinedHandle(partner) == 12);
    L4_Set_Pager(partner, me);
    CHECK(L4_Pager(partner) == me);
    (void)L4_Stop(partner, &sp, &ip, &flags);
    (void)L4_AbortReceive_and_stop(partner, &sp, &ip, &flags);
    (void)L4_AbortSend_and_stop(partner, &sp, &ip, &flags);
    CHECK(L4_ThreadWasHalted(L4_AbortIpc_and_stop(partner, &sp, &ip, &flags)));
    L4_Start(partner, top, (L4_Word_t)partner_code, 0);
}

static void ipc()
{
    L4_Msg_t msg;
    L4_Clear(&msg);
    L4_Append(&msg, 77);
    L4_Load(&msg);
    CHECK(L4_IpcSucceeded(L4_Call(partner, L4_Never, L4_Never)));
    L4_Store(L4_MsgTag(), &msg);
    CHECK(L4_Get(&msg, 0) == 77);
    L4_Load(&msg);
    CHECK(L4_IpcSucceeded(L4_Send(partner, L4_Never)));
    CHECK(L4_IpcFailed(L4_Receive(partner, L4_ZeroTime)) || L4_Get(&msg, 0) == 77);
}

static void memory()
{
    L4_Fpage_t f = L4_Sigma0_GetAny(L4_nilthread, 12, L4_CompleteAddressSpace), list[1];
    CHECK(!L4_IsNilFpage(f));
    list[0] = f;
    L4_Unmap(1, list);
    CHECK(L4_Address(L4_Unmap(f)) == L4_Address(f));
    L4_Flush(1, list);
    CHECK(L4_Sigma0_GetPage(L4_nilthread, f, f).raw == f.raw);
    L4_Accept(L4_UntypedWordsAcceptor);
}

static const tap_test_t tests[] = {
    { "CXX0001", "operators of fpages, ids and clocks", values },
    { "CXX0002", "the kernel interface page", kernel_interface },
    { "CXX0003", "messages and items", messages },
    { "CXX0004", "strings, buffers, acceptors", strings },
    { "CXX0005", "threads", threads },
    { "CXX0006", "IPC", ipc },
    { "CXX0007", "memory", memory },
};

int main() { TAP_RUN(tests); }
