/* Asking sigma0 for memory (manual: protocols). */
#ifndef L4_SIGMA0_H
#define L4_SIGMA0_H

#include <l4/ipc.h>
#include <l4/kip.h>

/* Asks for `f`, to be mapped into `RcvWindow`; a nil `s0` means sigma0. Nilpage if refused. Changes
 * the acceptor. */
L4_INLINE L4_Fpage_t L4_Sigma0_GetPage_RcvWindow(L4_ThreadId_t s0, L4_Fpage_t f, L4_Fpage_t RcvWindow)
{
    L4_Msg_t msg;
    L4_MapItem_t item;
    L4_MsgTag_t tag;
    if (L4_IsNilThread(s0))
        s0 = L4_GlobalId(L4_ThreadIdUserBase(L4_GetKernelInterface()), 1);
    L4_MsgClear(&msg);
    L4_Set_MsgLabel(&msg, (L4_Word_t)-6 << 4);
    L4_MsgAppendWord(&msg, f.raw);
    L4_MsgAppendWord(&msg, 0);
    L4_Accept(L4_MapGrantItems(RcvWindow));
    L4_MsgLoad(&msg);
    tag = L4_Call(s0);
    if (L4_IpcFailed(tag) || L4_TypedWords(tag) != 2)
        return L4_Nilpage;
    L4_MsgStore(tag, &msg);
    (void)L4_MsgGetMapItem(&msg, 0, &item);
    return L4_MapItemSndFpage(item);
}
L4_INLINE L4_Fpage_t L4_Sigma0_GetPage(L4_ThreadId_t s0, L4_Fpage_t f)
{
    return L4_Sigma0_GetPage_RcvWindow(s0, f, L4_CompleteAddressSpace);
}
/* Asks for any conventional memory of 2^s bytes. */
L4_INLINE L4_Fpage_t L4_Sigma0_GetAny(L4_ThreadId_t s0, L4_Word_t s, L4_Fpage_t RcvWindow)
{
    return L4_Sigma0_GetPage_RcvWindow(s0, L4_FpageLog2(~(L4_Word_t)0, (int)s), RcvWindow);
}

#ifdef __cplusplus
static inline L4_Fpage_t L4_Sigma0_GetPage(L4_ThreadId_t s0, L4_Fpage_t f, L4_Fpage_t RcvWindow)
{
    return L4_Sigma0_GetPage_RcvWindow(s0, f, RcvWindow);
}
#endif

#endif
