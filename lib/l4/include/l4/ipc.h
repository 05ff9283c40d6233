/* Sending and receiving (manual: IPC). The message is in the message registers: see
 * <l4/message.h>. */
#ifndef L4_IPC_H
#define L4_IPC_H

#include <l4/message.h>
#include <l4/thread.h>

L4_INLINE L4_MsgTag_t L4_Ipc(L4_ThreadId_t to, L4_ThreadId_t FromSpecifier, L4_Word_t Timeouts, L4_ThreadId_t *from)
{
    L4_Word_t sender;
    L4_MsgTag_t tag = l4_tag(l4_ipc_through(l4_entry(l4_entry_ipc), to.raw, FromSpecifier.raw, Timeouts, &sender));
    if (FromSpecifier.raw != 0)
        from->raw = sender;
    return tag;
}
L4_INLINE L4_MsgTag_t L4_Lipc(L4_ThreadId_t to, L4_ThreadId_t FromSpecifier, L4_Word_t Timeouts, L4_ThreadId_t *from)
{
    L4_Word_t sender;
    L4_MsgTag_t tag = l4_tag(l4_ipc_through(l4_entry(l4_entry_lipc), to.raw, FromSpecifier.raw, Timeouts, &sender));
    if (FromSpecifier.raw != 0)
        from->raw = sender;
    return tag;
}

L4_INLINE L4_Bool_t L4_IpcSucceeded(L4_MsgTag_t t) { return (t.raw & 0x8000) == 0; }
L4_INLINE L4_Bool_t L4_IpcFailed(L4_MsgTag_t t) { return (t.raw & 0x8000) != 0; }
L4_INLINE L4_Bool_t L4_IpcXcpu(L4_MsgTag_t t) { return (t.raw & 0x4000) != 0; }
L4_INLINE L4_Bool_t L4_IpcRedirected(L4_MsgTag_t t) { return (t.raw & 0x2000) != 0; }
L4_INLINE L4_Bool_t L4_IpcPropagated(L4_MsgTag_t t) { return (t.raw & 0x1000) != 0; }
L4_INLINE void L4_Set_Propagation(L4_MsgTag_t *t) { t->raw = (t->raw & ~(L4_Word_t)0xf000) | 0x1000; }

L4_INLINE L4_Word_t L4_Timeouts(L4_Time_t SndTimeout, L4_Time_t RcvTimeout)
{
    return (L4_Word_t)SndTimeout.raw << 16 | RcvTimeout.raw;
}

L4_INLINE L4_MsgTag_t L4_Call_Timeouts(L4_ThreadId_t to, L4_Time_t SndTimeout, L4_Time_t RcvTimeout)
{
    L4_ThreadId_t from;
    return L4_Ipc(to, to, L4_Timeouts(SndTimeout, RcvTimeout), &from);
}
L4_INLINE L4_MsgTag_t L4_Call(L4_ThreadId_t to) { return L4_Call_Timeouts(to, L4_Never, L4_Never); }
L4_INLINE L4_MsgTag_t L4_Send_Timeout(L4_ThreadId_t to, L4_Time_t SndTimeout)
{
    L4_ThreadId_t from;
    return L4_Ipc(to, L4_nilthread, L4_Timeouts(SndTimeout, L4_Never), &from);
}
L4_INLINE L4_MsgTag_t L4_Send(L4_ThreadId_t to) { return L4_Send_Timeout(to, L4_Never); }
L4_INLINE L4_MsgTag_t L4_Reply(L4_ThreadId_t to) { return L4_Send_Timeout(to, L4_ZeroTime); }
L4_INLINE L4_MsgTag_t L4_Receive_Timeout(L4_ThreadId_t from, L4_Time_t RcvTimeout)
{
    L4_ThreadId_t sender;
    return L4_Ipc(L4_nilthread, from, L4_Timeouts(L4_Never, RcvTimeout), &sender);
}
L4_INLINE L4_MsgTag_t L4_Receive(L4_ThreadId_t from) { return L4_Receive_Timeout(from, L4_Never); }
L4_INLINE L4_MsgTag_t L4_Wait_Timeout(L4_Time_t RcvTimeout, L4_ThreadId_t *from)
{
    return L4_Ipc(L4_nilthread, L4_anythread, L4_Timeouts(L4_Never, RcvTimeout), from);
}
L4_INLINE L4_MsgTag_t L4_Wait(L4_ThreadId_t *from) { return L4_Wait_Timeout(L4_Never, from); }
L4_INLINE L4_MsgTag_t L4_ReplyWait_Timeout(L4_ThreadId_t to, L4_Time_t RcvTimeout, L4_ThreadId_t *from)
{
    return L4_Ipc(to, L4_anythread, L4_Timeouts(L4_ZeroTime, RcvTimeout), from);
}
L4_INLINE L4_MsgTag_t L4_ReplyWait(L4_ThreadId_t to, L4_ThreadId_t *from)
{
    return L4_ReplyWait_Timeout(to, L4_Never, from);
}
L4_INLINE L4_MsgTag_t L4_Lcall(L4_ThreadId_t to)
{
    L4_ThreadId_t from;
    return L4_Lipc(to, to, L4_Timeouts(L4_Never, L4_Never), &from);
}
L4_INLINE L4_MsgTag_t L4_LreplyWait(L4_ThreadId_t to, L4_ThreadId_t *from)
{
    return L4_Lipc(to, L4_anylocalthread, L4_Timeouts(L4_ZeroTime, L4_Never), from);
}
/* Sleeps: waits for a message from the own id, which no thread sends from. */
L4_INLINE void L4_Sleep(L4_Time_t t) { (void)L4_Receive_Timeout(L4_MyGlobalId(), t); }

#ifdef __cplusplus
static inline L4_MsgTag_t L4_Call(L4_ThreadId_t to, L4_Time_t snd, L4_Time_t rcv)
{
    return L4_Call_Timeouts(to, snd, rcv);
}
static inline L4_MsgTag_t L4_Send(L4_ThreadId_t to, L4_Time_t snd) { return L4_Send_Timeout(to, snd); }
static inline L4_MsgTag_t L4_Receive(L4_ThreadId_t from, L4_Time_t rcv) { return L4_Receive_Timeout(from, rcv); }
static inline L4_MsgTag_t L4_Wait(L4_Time_t rcv, L4_ThreadId_t *from) { return L4_Wait_Timeout(rcv, from); }
static inline L4_MsgTag_t L4_ReplyWait(L4_ThreadId_t to, L4_Time_t rcv, L4_ThreadId_t *from)
{
    return L4_ReplyWait_Timeout(to, rcv, from);
}
#endif

#endif
