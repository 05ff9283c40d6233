/* A C program that calls every function of the X.2 generic programming interface. */
#include <l4/ipc.h>
#include <l4/kdebug.h>
#include <l4/kip.h>
#include <l4/message.h>
#include <l4/misc.h>
#include <l4/schedule.h>
#include <l4/sigma0.h>
#include <l4/space.h>
#include <l4/thread.h>
#include <tap.h>

#define ALL (~0UL)

static void fpages(void)
{
    L4_Fpage_t f = L4_Fpage(0x12345000, 0x1000);
    CHECK(f.raw == 0x123450c0);
    CHECK(L4_Fpage(0x12345000, 0x1001).X.s == 13);
    CHECK(L4_Fpage(0x12345000, 0x1000).raw == L4_FpageLog2(0x12345000, 12).raw);
    CHECK(L4_Address(f) == 0x12345000 && L4_Size(f) == 0x1000 && L4_SizeLog2(f) == 12);
    CHECK(L4_Address(L4_FpageLog2(0x12345000, 16)) == 0x12340000);
    CHECK(L4_IsNilFpage(L4_Nilpage) && !L4_IsNilFpage(f) && L4_Size(L4_Nilpage) == 0);
    CHECK(L4_CompleteAddressSpace.raw == 0x10);
    CHECK(L4_Rights(f) == L4_NoAccess);
    f = L4_FpageAddRights(f, L4_ReadWriteOnly);
    CHECK(L4_Rights(f) == 6);
    L4_FpageAddRightsTo(&f, L4_eXecutable);
    CHECK(L4_Rights(f) == L4_FullyAccessible);
    f = L4_FpageRemoveRights(f, L4_Writable);
    CHECK(L4_Rights(f) == L4_ReadeXecOnly);
    L4_FpageRemoveRightsFrom(&f, L4_eXecutable);
    CHECK(f.X.rwx == L4_Readable);
    L4_Set_Rights(&f, L4_Writable);
    CHECK(L4_Rights(f) == L4_Writable && L4_Address(f) == 0x12345000);
    f.raw = L4_Fpage(0x1000, 0x1000).raw | 7;
    CHECK(L4_WasReferenced(f) && L4_WasWritten(f) && L4_WaseXecuted(f));
    f = L4_IoFpage(0x3f8, 8);
    CHECK(f.raw == L4_IoFpageLog2(0x3f8, 3).raw && L4_IsIoFpage(f));
    CHECK(L4_IoFpagePort(f) == 0x3f8 && L4_IoFpageSize(f) == 8 && L4_IoFpageSizeLog2(f) == 3);
}

static void thread_ids(void)
{
    L4_ThreadId_t t = L4_GlobalId(77, 3);
    CHECK(t.raw == (77UL << 32 | 3) && t.global.X.thread_no == 77 && t.global.X.version == 3);
    CHECK(L4_ThreadNo(t) == 77 && L4_Version(t) == 3);
    CHECK(L4_IsThreadEqual(t, L4_GlobalId(77, 3)) && L4_IsThreadNotEqual(t, L4_GlobalId(77, 4)));
    CHECK(L4_IsNilThread(L4_nilthread) && !L4_IsNilThread(t));
    CHECK(L4_anythread.raw == ALL && L4_anylocalthread.raw == (ALL & ~0x3fUL));
    CHECK(L4_IsGlobalId(t) && !L4_IsLocalId(t) && L4_IsLocalId(L4_MyLocalId()));
}

static void times(void)
{
    L4_Clock_t now, soon;
    CHECK(L4_Never.raw == 0 && L4_ZeroTime.raw == 0x400 && L4_TimePeriod(0).raw == 0x400);
    CHECK(L4_TimePeriod(1000).raw == 1000 && L4_TimePeriod(10000).period.m << L4_TimePeriod(10000).period.e == 10000);
    CHECK(L4_TimePeriod(1 << 20).period.e == 11 && L4_TimePeriod(~0UL).raw == 0);
    CHECK(L4_Timeouts(L4_ZeroTime, L4_TimePeriod(5)) == 0x04000005);
    now = L4_SystemClock();
    soon = L4_ClockAddUsec(now, 1000);
    CHECK(L4_IsClockEarlier(now, soon) && L4_IsClockLater(soon, now));
    CHECK(L4_IsClockEqual(L4_ClockSubUsec(soon, 1000), now) && L4_IsClockNotEqual(now, soon));
    CHECK(L4_TimePoint(soon).point.a == 1);
    L4_Sleep(L4_TimePeriod(2000));
    CHECK(L4_SystemClock().raw - now.raw >= 2000);
}

static void kernel_interface(void)
{
    L4_Word_t version, flags, id, year, month, day, i, user = 0;
    void *page = L4_KernelInterface(&version, &flags, &id);
    L4_KernelInterfacePage_t *kip = (L4_KernelInterfacePage_t *)page;
    CHECK(L4_GetKernelInterface() == page && kip->magic == L4_MAGIC);
    CHECK(L4_ApiVersion() == version && L4_ApiFlags() == flags && L4_KernelId() == id);
    CHECK(kip->ApiVersion.x.version == L4_APIVERSION_X2 && kip->ApiFlags.x.ww == L4_APIFLAG_64BIT);
    L4_KernelGenDate(page, &year, &month, &day);
    CHECK(year >= 2000 && month >= 1 && month <= 12 && day >= 1 && day <= 31);
    CHECK(L4_KernelVersion(page) != ALL && L4_KernelSupplier(page) != 0);
    CHECK(L4_KernelVersionString(page)[0] != 0);
    CHECK(L4_Feature(page, 0) == 0 && !L4_HasFeature("ctrlxfer"));
    CHECK(L4_NumProcessors(page) >= 1);
    CHECK((L4_PageSizeMask(page) & 0x201000) == 0x201000 && (L4_PageRights(page) & 6) == 6);
    CHECK(L4_ThreadIdBits(page) == 18);
    CHECK(L4_ThreadIdUserBase(page) == L4_ThreadIdSystemBase(page) + 32);
    CHECK(L4_ReadPrecision(page) != 0 && L4_SchedulePrecision(page) != 0);
    CHECK(L4_UtcbAreaSizeLog2(page) == 12 && L4_UtcbAreaSize(page) == 4096);
    CHECK(L4_UtcbAlignmentLog2(page) == 10 && L4_UtcbSize(page) == 1024);
    CHECK(L4_KipAreaSizeLog2(page) == 12 && L4_KipAreaSize(page) == 4096);
    CHECK(L4_BootInfo(page) == kip->BootInfo);
    CHECK(L4_NumMemoryDescriptors(page) > 0);
    for (i = 0; i < L4_NumMemoryDescriptors(page); i++) {
        L4_MemoryDesc_t *m = L4_MemoryDesc(page, i);
        CHECK(L4_MemoryDescLow(m) < L4_MemoryDescHigh(m));
        if (L4_IsMemoryDescVirtual(m)) {
            user++;
            CHECK(L4_MemoryDescType(m) == L4_ConventionalMemoryType);
        }
    }
    CHECK(user == 1 && L4_MemoryDesc(page, i) == 0);
    CHECK(L4_ProcDescInternalFreq(L4_ProcDesc(page, 0)) > 0);
    CHECK(L4_ProcDescExternalFreq(L4_ProcDesc(page, 0)) + 1 > 0);
    CHECK(L4_ProcDesc(page, L4_NumProcessors(page)) == 0);
}

static void messages(void)
{
    L4_Msg_t msg, copy;
    L4_Word_t words[3] = { 1, 2, 3 }, got[8], pair[2];
    L4_MapItem_t m = L4_MapItem(L4_Fpage(0x4000, 0x1000), 0x7fff3000), m2;
    L4_GrantItem_t g = L4_GrantItem(L4_Fpage(0x8000, 0x1000), 0x1000), g2;
    L4_MsgTag_t tag;

    CHECK(L4_IsMapItem(m) && m.raw[0] == 0x7fff3008 && L4_MapItemSndFpage(m).raw == 0x40c0);
    CHECK(L4_MapItemSndBase(m) == 0x7fff3000);
    CHECK(L4_IsGrantItem(g) && g.raw[0] == 0x100a && L4_GrantItemSndFpage(g).raw == 0x80c0);
    CHECK(L4_GrantItemSndBase(g) == 0x1000);

    L4_MsgClear(&msg);
    L4_Set_MsgLabel(&msg, 0x123456789abcUL);
    L4_MsgAppendWord(&msg, 11);
    L4_MsgAppendMapItem(&msg, m);
    L4_MsgAppendWord(&msg, 12);
    L4_MsgAppendGrantItem(&msg, g);
    CHECK(L4_MsgLabel(&msg) == 0x123456789abcUL);
    tag = L4_MsgMsgTag(&msg);
    CHECK(L4_UntypedWords(tag) == 2 && L4_TypedWords(tag) == 4 && L4_Label(tag) == 0x123456789abcUL);
    CHECK(L4_MsgWord(&msg, 0) == 11 && L4_MsgWord(&msg, 1) == 12);
    L4_MsgGetWord(&msg, 1, got);
    CHECK(got[0] == 12);
    CHECK(L4_MsgGetMapItem(&msg, 0, &m2) == 2 && m2.raw[0] == m.raw[0] && m2.raw[1] == m.raw[1]);
    CHECK(L4_MsgGetGrantItem(&msg, 2, &g2) == 2 && g2.raw[0] == g.raw[0]);
    L4_MsgPutWord(&msg, 0, 99);
    L4_MsgPutMapItem(&msg, 2, m);
    L4_MsgPutGrantItem(&msg, 0, g);
    CHECK(msg.msg[1] == 99 && msg.msg[3] == g.raw[0] && msg.msg[5] == m.raw[0]);

    pair[0] = m.raw[0];
    pair[1] = m.raw[1];
    L4_MsgPut(&msg, 5, 3, words, 2, pair);
    CHECK(msg.tag.X.u == 3 && msg.tag.X.t == 2 && msg.tag.X.label == 5);
    L4_MsgGet(&msg, got, pair);
    CHECK(got[0] == 1 && got[2] == 3 && pair[1] == m.raw[1]);
    L4_MsgLoad(&msg);
    CHECK(L4_IsMsgTagEqual(L4_MsgTag(), msg.tag));
    L4_MsgStore(L4_MsgTag(), &copy);
    CHECK(copy.tag.raw == msg.tag.raw && copy.msg[3] == 3 && copy.msg[5] == m.raw[1]);

    tag = L4_Niltag;
    CHECK(L4_IsMsgTagNotEqual(tag, msg.tag));
    tag = L4_MsgTagAddLabel(tag, 7);
    CHECK(L4_Label(tag) == 7);
    L4_MsgTagAddLabelTo(&tag, 8);
    CHECK(L4_Label(tag) == 8);
    L4_Set_Label(&tag, 9);
    CHECK(tag.raw == 9 << 16);
    L4_Set_MsgMsgTag(&msg, tag);
    CHECK(msg.raw[0] == tag.raw);
    L4_Set_MsgTag(tag);
    L4_StoreMR(0, got);
    CHECK(got[0] == tag.raw);
    L4_LoadMR(63, 0x63);
    L4_LoadMRs(60, 3, words);
    L4_StoreMRs(60, 4, got);
    CHECK(got[0] == 1 && got[2] == 3 && got[3] == 0x63);
    L4_Set_Propagation(&tag);
    CHECK(L4_IpcPropagated(tag) && !L4_IpcRedirected(tag) && !L4_IpcXcpu(tag) && L4_IpcSucceeded(tag));
    tag.raw = 0x8000;
    CHECK(L4_IpcFailed(tag));
}

static void strings(void)
{
    static char a[64], b[64], c[64];
    union {
        L4_StringItem_t item;
        L4_Word_t words[8];
    } s, t, u;
    L4_MsgBuffer_t buffer;
    L4_Msg_t msg;
    L4_Word_t br[8];
    L4_CacheAllocationHint_t hint = { 2 };

    s.item = L4_StringItem(64, a);
    CHECK(L4_IsStringItem(&s.item) && !L4_CompoundString(&s.item) && L4_Substrings(&s.item) == 1);
    CHECK(L4_Substring(&s.item, 1) == a && s.item.X.string_length == 64 && s.item.X.str.string_ptr == a);
    L4_AddSubstringAddressTo(&s.item, b);
    CHECK(L4_Substrings(&s.item) == 2 && L4_Substring(&s.item, 2) == b);
    t.item = L4_StringItem(32, c);
    L4_AddSubstringTo(&s.item, &t.item);
    CHECK(L4_CompoundString(&s.item) && s.words[3] == 32 << 10 && s.words[4] == (L4_Word_t)c);

    t.item = L4_AddCacheAllocationHint(t.item, hint);
    CHECK(L4_IsCacheAllocationHintEqual(L4_CacheAllocationHint(t.item), hint));
    CHECK(L4_IsCacheAllocationHintNotEqual(hint, L4_UseDefaultCacheAllocation));
    t.item = L4_StringItem(32, c);
    L4_AddCacheAllocationHintTo(&t.item, hint);
    CHECK(t.words[0] == (32 << 10 | 2));

    L4_MsgClear(&msg);
    L4_MsgAppendSimpleStringItem(&msg, L4_StringItem(16, b));
    L4_MsgAppendStringItem(&msg, &s.item);
    CHECK(L4_TypedWords(msg.tag) == 7 && msg.msg[2] == (L4_Word_t)b && msg.msg[7] == (L4_Word_t)c);
    CHECK(L4_MsgGetStringItem(&msg, 2, &u.item) == 5 && u.words[4] == (L4_Word_t)c);
    L4_MsgPutStringItem(&msg, 0, &s.item);
    CHECK(msg.msg[1] == s.words[0]);
    L4_MsgPutSimpleStringItem(&msg, 0, L4_StringItem(8, c));
    CHECK(msg.msg[1] == 8 << 10);

    L4_MsgBufferClear(&buffer);
    L4_MsgBufferAppendSimpleRcvString(&buffer, L4_StringItem(64, a));
    L4_MsgBufferAppendRcvString(&buffer, &s.item);
    L4_AcceptStrings(L4_StringItemsAcceptor, &buffer);
    L4_StoreBRs(0, 8, br);
    CHECK(br[0] == 1 && br[1] == (64 << 10 | 1) && br[2] == (L4_Word_t)a);
    CHECK(br[3] == s.words[0] && br[7] == (L4_Word_t)c);
    L4_LoadBR(1, 0x77);
    L4_StoreBR(1, br);
    CHECK(br[0] == 0x77);
    L4_LoadBRs(1, 2, s.words);
    L4_StoreBR(2, br);
    CHECK(br[0] == s.words[1]);
    L4_Accept(L4_UntypedWordsAcceptor);
}

static void acceptors(void)
{
    L4_Acceptor_t a = L4_MapGrantItems(L4_Fpage(0x40000000, 0x100000)), both;
    CHECK(L4_HasMapGrantItems(a) && !L4_HasStringItems(a) && L4_RcvWindow(a).raw == 0x40000140);
    both = L4_AddAcceptor(a, L4_StringItemsAcceptor);
    CHECK(L4_HasStringItems(both) && L4_HasMapGrantItems(both) && both.X.s == 1);
    CHECK(L4_AddAcceptorTo(L4_StringItemsAcceptor, a).raw == both.raw);
    CHECK(L4_RemoveAcceptor(both, a).raw == L4_StringItemsAcceptor.raw);
    CHECK(L4_RemoveAcceptorFrom(both, L4_StringItemsAcceptor).raw == a.raw);
    L4_Accept(both);
    CHECK(L4_Accepted().raw == both.raw);
    L4_Accept(L4_UntypedWordsAcceptor);
}

static void control_registers(void)
{
    CHECK(L4_IsThreadEqual(L4_Myself(), L4_MyGlobalId()) && L4_MyLocalId().raw != 0);
    CHECK(L4_ProcessorNo() == 0);
    L4_Set_UserDefinedHandle(0x1234);
    CHECK(L4_UserDefinedHandle() == 0x1234 && L4_UserDefinedHandleOf(L4_Myself()) == 0x1234);
    L4_Set_UserDefinedHandleOf(L4_Myself(), 0x5678);
    CHECK(L4_UserDefinedHandle() == 0x5678);
    CHECK(L4_ThreadNo(L4_Pager()) == L4_ThreadIdUserBase(L4_GetKernelInterface()));
    L4_Set_Pager(L4_Pager());
    L4_Set_PagerOf(L4_Myself(), L4_Pager());
    CHECK(L4_IsThreadEqual(L4_PagerOf(L4_MyLocalId()), L4_Pager()));
    L4_Set_ExceptionHandler(L4_nilthread);
    CHECK(L4_IsNilThread(L4_ExceptionHandler()));
    L4_Set_XferTimeouts(L4_Timeouts(L4_ZeroTime, L4_Never));
    CHECK(L4_XferTimeouts() == 0x04000000);
    L4_Set_XferTimeouts(0);
    L4_Set_VirtualSender(L4_GlobalId(5, 1));
    CHECK(L4_ActualSender().raw == L4_GlobalId(5, 1).raw);
    CHECK(L4_IntendedReceiver().raw + 1 > 0);
    L4_Set_CopFlag(1);
    L4_Clr_CopFlag(1);
    volatile L4_Word8_t *flags = l4_flag_bytes();
    CHECK(!L4_EnablePreemptionFaultException() && *flags == 0x20 && L4_EnablePreemptionFaultException());
    CHECK(L4_DisablePreemptionFaultException() && *flags == 0 && !L4_DisablePreemptionFaultException());
    CHECK(!L4_DisablePreemption() && *flags == 0x40 && L4_DisablePreemption());
    CHECK(L4_EnablePreemption() && *flags == 0 && !L4_EnablePreemption());
    *flags = 0x80; /* as the kernel says that a preemption is delayed */
    CHECK(L4_PreemptionPending() && *flags == 0 && !L4_PreemptionPending());
    L4_Reset_WordSizeMask();
    CHECK(L4_WordSizeMask() == ALL);
    CHECK(L4_IsThreadEqual(L4_LocalIdOf(L4_Myself()), L4_MyLocalId()));
    CHECK(L4_IsThreadEqual(L4_GlobalIdOf(L4_MyLocalId()), L4_Myself()));
    CHECK(L4_SameThreads(L4_Myself(), L4_MyLocalId()) && !L4_SameThreads(L4_Myself(), L4_Pager()));
    CHECK(L4_ThreadControl(L4_Myself(), L4_nilthread, L4_nilthread, L4_nilthread, (void *)ALL) == 0);
    CHECK(L4_ErrorCode() == L4_ErrInvalidThread);
    CHECK(L4_ErrorCode_String(L4_ErrNoMem)[0] == 'o');
}

/* A second thread answers messages with their word plus one; the label says how it receives the
 * next. */

static char stack[16384] __attribute__((aligned(16)));
static L4_ThreadId_t master, partner;

/* Buffers: the string that is sent, the partner's, and the one for what comes back. */
#define LENGTH 6000
static char text[LENGTH], echoed[LENGTH], back[LENGTH];

/* The partner receives a string from `from` and sends it back in two pieces. */
static void echo_string(L4_ThreadId_t from)
{
    L4_MsgBuffer_t buffer;
    L4_Msg_t msg;
    union {
        L4_StringItem_t item;
        L4_Word_t words[4];
    } s;
    L4_MsgBufferClear(&buffer);
    L4_MsgBufferAppendSimpleRcvString(&buffer, L4_StringItem(LENGTH, echoed));
    L4_AcceptStrings(L4_StringItemsAcceptor, &buffer);
    L4_Reply(from);
    if (L4_IpcFailed(L4_Receive(from)))
        return;
    L4_Accept(L4_UntypedWordsAcceptor);
    s.item = L4_StringItem(LENGTH / 2, echoed);
    L4_AddSubstringAddressTo(&s.item, echoed + LENGTH / 2);
    L4_MsgClear(&msg);
    L4_MsgAppendStringItem(&msg, &s.item);
    L4_MsgLoad(&msg);
    L4_Send(from);
}

static void partner_code(void)
{
    L4_ThreadId_t from = master;
    L4_Msg_t msg;
    L4_MsgTag_t tag = L4_Wait(&from);
    for (;;) {
        L4_MsgStore(tag, &msg);
        L4_MsgPutWord(&msg, 0, L4_MsgWord(&msg, 0) + 1);
        L4_MsgLoad(&msg);
        switch (L4_Label(tag)) {
        case 0: tag = L4_ReplyWait(from, &from); break;
        case 1: tag = L4_ReplyWait_Timeout(from, L4_Never, &from); break;
        case 2: tag = L4_LreplyWait(L4_LocalIdOf(from), &from); break;
        case 3:
            L4_Reply(from);
            tag = L4_Wait_Timeout(L4_Never, &from);
            break;
        case 4:
            L4_Reply(from);
            tag = L4_Receive(from);
            break;
        case 5:
            L4_Reply(from);
            tag = L4_Receive_Timeout(from, L4_Never);
            break;
        case 6:
            echo_string(from);
            tag = L4_Wait(&from);
            break;
        default:
            L4_Send_Timeout(from, L4_Never);
            L4_Send(from);
            tag = L4_Wait(&from);
        }
    }
}

static void start_partner(void)
{
    L4_Word_t utcb = L4_MyLocalId().raw - 512 + 1024, old;
    L4_ThreadId_t pager;
    master = L4_Myself();
    partner = L4_GlobalId(L4_ThreadNo(master) + 1, 1);
    CHECK(L4_ThreadControl(partner, master, master, master, (void *)utcb) == 1);
    L4_Start_SpIp(partner, (L4_Word_t)stack + sizeof(stack) - 8, (L4_Word_t)partner_code);
    CHECK(L4_IsLocalId(L4_ExchangeRegisters(partner, 0, 0, 0, 0, 0, L4_nilthread, &old, &old, &old, &old, &old, &pager)));
    CHECK(L4_IsThreadEqual(pager, master));
}

static L4_MsgTag_t load_word(L4_Word_t label, L4_Word_t word)
{
    L4_Msg_t msg;
    L4_MsgClear(&msg);
    L4_Set_MsgLabel(&msg, label);
    L4_MsgAppendWord(&msg, word);
    L4_MsgLoad(&msg);
    return msg.tag;
}

static L4_Word_t first_word(void)
{
    L4_Word_t word;
    L4_StoreMR(1, &word);
    return word;
}

static void ipc(void)
{
    L4_Word_t label;
    L4_ThreadId_t from;
    start_partner();
    for (label = 0; label < 6; label++) {
        load_word(label, label * 10);
        CHECK(L4_IpcSucceeded(L4_Call(partner)) && first_word() == label * 10 + 1);
        load_word(0, 7);
        CHECK(L4_IpcSucceeded(L4_Call_Timeouts(partner, L4_Never, L4_Never)) && first_word() == 8);
    }
    load_word(0, 50);
    CHECK(L4_IpcSucceeded(L4_Lcall(L4_LocalIdOf(partner))) && first_word() == 51);
    load_word(0, 60);
    CHECK(L4_IpcSucceeded(L4_Ipc(partner, L4_anythread, L4_Timeouts(L4_Never, L4_Never), &from)));
    CHECK(first_word() == 61 && L4_IsThreadEqual(from, L4_LocalIdOf(partner)));
    load_word(0, 70);
    CHECK(L4_IpcSucceeded(L4_Lipc(partner, L4_anylocalthread, L4_Timeouts(L4_Never, L4_Never), &from)));
    CHECK(first_word() == 71);
    load_word(9, 80);
    CHECK(L4_IpcSucceeded(L4_Call(partner)) && first_word() == 81);
    CHECK(L4_IpcSucceeded(L4_Receive(partner)));
    CHECK(L4_IpcFailed(L4_Receive_Timeout(partner, L4_ZeroTime)) && L4_ErrorCode() == 3);
    load_word(0, 1);
    CHECK(L4_IpcFailed(L4_Send_Timeout(L4_GlobalId(9999, 1), L4_Never)) && L4_ErrorCode() == 4);
}

static void strings_by_ipc(void)
{
    L4_MsgBuffer_t buffer;
    L4_StringItem_t item;
    L4_Msg_t msg;
    L4_MsgTag_t tag;
    int i, same = 0;
    for (i = 0; i < LENGTH; i++)
        text[i] = (char)(i * 7 + 3);
    load_word(6, 1);
    CHECK(L4_IpcSucceeded(L4_Call(partner)));
    L4_MsgClear(&msg);
    L4_MsgAppendSimpleStringItem(&msg, L4_StringItem(LENGTH, text));
    L4_MsgLoad(&msg);
    L4_MsgBufferClear(&buffer);
    L4_MsgBufferAppendSimpleRcvString(&buffer, L4_StringItem(LENGTH, back));
    L4_AcceptStrings(L4_StringItemsAcceptor, &buffer);
    tag = L4_Call(partner);
    CHECK(L4_IpcSucceeded(tag) && L4_UntypedWords(tag) == 0 && L4_TypedWords(tag) == 3);
    for (i = 0; i < LENGTH; i++)
        same += back[i] == text[i];
    CHECK(same == LENGTH);
    /* The partner does not take this string. */
    L4_Accept(L4_UntypedWordsAcceptor);
    item = L4_StringItem(10, text);
    L4_MsgClear(&msg);
    L4_MsgAppendSimpleStringItem(&msg, item);
    L4_MsgLoad(&msg);
    CHECK(L4_IpcFailed(L4_Send(partner)) && L4_ErrorCode() == 8);
    /* The partner has got an error too, and waits again. */
    load_word(0, 1);
    CHECK(L4_IpcSucceeded(L4_Call(partner)) && first_word() == 2);
}

static void points_by_ipc(void)
{
    L4_Clock_t before = L4_SystemClock();
    L4_Time_t soon = L4_TimePoint(L4_ClockAddUsec(before, 4000));
    L4_ThreadId_t from;
    CHECK(L4_IpcFailed(L4_Receive_Timeout(partner, soon)) && L4_ErrorCode() == 3);
    CHECK(L4_SystemClock().raw - before.raw >= 4000 - 16);
    /* The point in time has passed. */
    CHECK(L4_IpcFailed(L4_Wait_Timeout(soon, &from)) && L4_ErrorCode() == 3);
    load_word(0, 30);
    soon = L4_TimePoint(L4_ClockAddUsec(L4_SystemClock(), 20000000));
    CHECK(L4_IpcSucceeded(L4_Call_Timeouts(partner, soon, soon)) && first_word() == 31);
}

static void other_threads(void)
{
    L4_Word_t sp = 0, ip = 0, flags = 0;
    L4_ThreadState_t state;
    L4_Yield();
    L4_ThreadSwitch(partner);
    state = L4_Stop(partner);
    CHECK(L4_ThreadWasReceiving(state) && L4_ThreadWasIpcing(state));
    CHECK(!L4_ThreadWasSending(state) && !L4_ThreadWasHalted(state));
    state = L4_Stop_SpIpFlags(partner, &sp, &ip, &flags);
    CHECK(L4_ThreadWasHalted(state) && sp > (L4_Word_t)stack && sp < (L4_Word_t)stack + sizeof(stack) && ip != 0);
    CHECK(L4_ThreadWasHalted(L4_AbortSend_and_stop(partner)));
    state = L4_AbortSend_and_stop_SpIpFlags(partner, &sp, &ip, &flags);
    CHECK(L4_ThreadWasReceiving(state));
    state = L4_AbortReceive_and_stop(partner);
    CHECK(L4_ThreadWasReceiving(state));
    state = L4_AbortReceive_and_stop_SpIpFlags(partner, &sp, &ip, &flags);
    CHECK(!L4_ThreadWasReceiving(state));
    (void)L4_AbortIpc_and_stop(partner);
    (void)L4_AbortIpc_and_stop_SpIpFlags(partner, &sp, &ip, &flags);
    L4_Start_SpIpFlags(partner, (L4_Word_t)stack + sizeof(stack) - 8, (L4_Word_t)partner_code, 0);
    load_word(0, 1);
    CHECK(L4_IpcSucceeded(L4_Call(partner)) && first_word() == 2);
    (void)L4_Stop(partner);
    L4_Start(partner);
    L4_Start_SpIp(partner, (L4_Word_t)stack + sizeof(stack) - 8, (L4_Word_t)partner_code);
    load_word(0, 5);
    CHECK(L4_IpcSucceeded(L4_Call(partner)) && first_word() == 6);
}

static void scheduling(void)
{
    L4_Time_t slice, quantum;
    L4_Word_t old;
    CHECK(L4_Set_Priority(partner, 99) == L4_SCHEDRESULT_WAITING);
    CHECK(L4_Set_Timeslice(partner, L4_TimePeriod(5000), L4_Never) == L4_SCHEDRESULT_WAITING);
    CHECK(L4_Timeslice(partner, &slice, &quantum) == L4_SCHEDRESULT_WAITING);
    CHECK(quantum.raw == L4_Never.raw && slice.raw != 0);
    CHECK(L4_Set_ProcessorNo(partner, 0) == L4_SCHEDRESULT_WAITING);
    CHECK(L4_Set_PreemptionDelay(partner, 99, 0) == L4_SCHEDRESULT_WAITING);
    CHECK(L4_Schedule(partner, ALL, ALL, ALL, ALL, &old) == L4_SCHEDRESULT_WAITING);
    CHECK(L4_Schedule(partner, ALL, 99, ALL, ALL, &old) == L4_SCHEDRESULT_ERROR);
    CHECK(L4_ErrorCode() == L4_ErrInvalidParam);
    CHECK(L4_AssociateInterrupt(L4_GlobalId(3, 1), partner) == 1);
    CHECK(L4_DeassociateInterrupt(L4_GlobalId(3, 1)) == 1);
    CHECK(L4_ThreadControl(partner, L4_nilthread, L4_nilthread, L4_nilthread, (void *)ALL) == 1);
}

static void memory(void)
{
    L4_Word_t old = 0, attributes[4] = { 0, 0, 0, 0 };
    L4_Fpage_t f = L4_Sigma0_GetAny(L4_nilthread, 12, L4_CompleteAddressSpace), list[2];
    volatile L4_Word_t *word = (volatile L4_Word_t *)L4_Address(f);
    L4_ThreadId_t space;
    CHECK(!L4_IsNilFpage(f) && L4_SizeLog2(f) == 12);
    *word = 5;
    f = L4_GetStatus(f);
    CHECK(L4_WasWritten(f) && L4_WasReferenced(f));
    f = L4_GetStatus(f);
    CHECK(!L4_WasWritten(f) && *word == 5);
    L4_Set_Rights(&f, L4_FullyAccessible);
    CHECK(L4_Address(L4_UnmapFpage(f)) == L4_Address(f) && *word == 5);
    list[0] = list[1] = f;
    L4_UnmapFpages(2, list);
    CHECK(*word == 5);
    L4_LoadMR(0, f.raw);
    L4_Unmap(0);
    CHECK(*word == 5);
    (void)L4_Flush(f);
    CHECK(L4_Sigma0_GetPage(L4_Pager(), f).raw == f.raw && *word == 5);
    list[0] = f;
    L4_FlushFpages(1, list);
    CHECK(L4_Sigma0_GetPage_RcvWindow(L4_Pager(), f, L4_CompleteAddressSpace).raw == f.raw && *word == 5);
    L4_Accept(L4_UntypedWordsAcceptor);

    space = L4_GlobalId(L4_ThreadNo(L4_Myself()) + 2, 1);
    CHECK(L4_ThreadControl(space, space, L4_Myself(), L4_nilthread, (void *)ALL) == 1);
    CHECK(L4_SpaceControl(space, 0, L4_FpageLog2(0x10000000, 12), L4_FpageLog2(0x20000000, 12), L4_anythread, &old) == 1);
    CHECK(old == 0);
    CHECK(L4_ThreadControl(space, L4_nilthread, L4_nilthread, L4_nilthread, (void *)ALL) == 1);

    CHECK(L4_Set_PageAttribute(f, L4_DefaultMemory) == 1 || L4_ErrorCode() == L4_ErrInvalidParam);
    CHECK(L4_Set_PagesAttributes(1, list, attributes) == 1 || L4_ErrorCode() == L4_ErrInvalidParam);
    L4_LoadMR(0, L4_Nilpage.raw);
    CHECK(L4_MemoryControl(0, attributes) == 1 || L4_ErrorCode() == L4_ErrInvalidParam);
    CHECK(L4_ProcessorControl(0, 0, 0, 0) == 1 || L4_ErrorCode() == L4_ErrInvalidParam);
}

static void debugger(void)
{
    volatile int interactive = 0;
    L4_KDB_PrintString("# printed by PrintString\r\n");
    L4_KDB_PrintChar('#');
    L4_KDB_PrintChar('\n');
    CHECK(L4_KDB_ReadChar() == -1);
    if (interactive) {
        L4_KDB_ToggleBreakin();
        CHECK(L4_KDB_ReadChar_Blocked() >= 0);
        L4_KDB_Enter("entered by a program");
    }
}

static const tap_test_t tests[] = {
    { "CAPI0001", "fpages", fpages }, // Rules: 8.1
    { "CAPI0002", "thread ids", thread_ids }, // Rules: 13.4
    { "CAPI0003", "clock, periods and points", times }, // Rules: 1.1, 1.5, 2.1
    { "CAPI0004", "the kernel interface page", kernel_interface },
    { "CAPI0005", "message tags, message objects, map and grant items", messages },
    { "CAPI0006", "string items and receive buffers", strings }, // Rules: ABI 8
    { "CAPI0007", "acceptors", acceptors },
    { "CAPI0008", "control registers of the own thread", control_registers }, // Rules: 4.3, 13.1
    { "CAPI0009", "every form of IPC with another thread", ipc }, // Rules: 7.20
    { "CAPI0010", "starting, stopping and reading another thread", other_threads }, // Rules: 5.24, 5.27
    { "CAPI0014", "strings go to another thread and back", strings_by_ipc }, // Rules: 7.29
    { "CAPI0015", "points as timeouts", points_by_ipc }, // Rules: 1.6, 1.9a
    { "CAPI0011", "scheduling and interrupts", scheduling },
    { "CAPI0012", "memory from sigma0, unmapping, spaces, attributes", memory },
    { "CAPI0013", "console of the kernel debugger", debugger }, // Rules: ABI 15.1
};

int main(void) { TAP_RUN(tests); }
