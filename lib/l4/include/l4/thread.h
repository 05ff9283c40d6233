/* Threads: the own control registers, ids, registers of others, interrupts (manual: threads). */
#ifndef L4_THREAD_H
#define L4_THREAD_H

#include <l4/arch.h>

/* The calling thread's control registers. */

L4_INLINE L4_ThreadId_t L4_MyGlobalId(void) { return l4_thread(l4_utcb()[l4_utcb_my_global_id]); }
L4_INLINE L4_ThreadId_t L4_MyLocalId(void) { return l4_thread((L4_Word_t)l4_utcb()); }
L4_INLINE L4_ThreadId_t L4_Myself(void) { return L4_MyGlobalId(); }
L4_INLINE L4_Word_t L4_ProcessorNo(void) { return l4_utcb()[l4_utcb_processor_no]; }
L4_INLINE L4_Word_t L4_UserDefinedHandle(void) { return l4_utcb()[l4_utcb_user_defined_handle]; }
L4_INLINE void L4_Set_UserDefinedHandle(L4_Word_t NewValue) { l4_utcb()[l4_utcb_user_defined_handle] = NewValue; }
L4_INLINE L4_ThreadId_t L4_Pager(void) { return l4_thread(l4_utcb()[l4_utcb_pager]); }
L4_INLINE void L4_Set_Pager(L4_ThreadId_t NewPager) { l4_utcb()[l4_utcb_pager] = NewPager.raw; }
L4_INLINE L4_ThreadId_t L4_ExceptionHandler(void) { return l4_thread(l4_utcb()[l4_utcb_exception_handler]); }
L4_INLINE void L4_Set_ExceptionHandler(L4_ThreadId_t NewHandler)
{
    l4_utcb()[l4_utcb_exception_handler] = NewHandler.raw;
}
L4_INLINE L4_Word_t L4_ErrorCode(void) { return l4_utcb()[l4_utcb_error_code]; }
L4_INLINE L4_Word_t L4_XferTimeouts(void) { return l4_utcb()[l4_utcb_xfer_timeouts]; }
L4_INLINE void L4_Set_XferTimeouts(L4_Word_t NewValue) { l4_utcb()[l4_utcb_xfer_timeouts] = NewValue; }
L4_INLINE L4_ThreadId_t L4_IntendedReceiver(void) { return l4_thread(l4_utcb()[l4_utcb_intended_receiver]); }
L4_INLINE L4_ThreadId_t L4_ActualSender(void) { return l4_thread(l4_utcb()[l4_utcb_sender]); }
L4_INLINE void L4_Set_VirtualSender(L4_ThreadId_t t) { l4_utcb()[l4_utcb_sender] = t.raw; }
L4_INLINE L4_Word_t L4_WordSizeMask(void) { return l4_utcb()[l4_utcb_word_size_mask]; }
L4_INLINE void L4_Reset_WordSizeMask(void) { l4_utcb()[l4_utcb_word_size_mask] = ~(L4_Word_t)0; }

/* Bytes 0 and 1 of the flags word: preemption flags and coprocessor flags. */
L4_INLINE volatile L4_Word8_t *l4_flag_bytes(void) { return (volatile L4_Word8_t *)(l4_utcb() + l4_utcb_flags); }
L4_INLINE L4_Bool_t l4_change_preempt_flag(L4_Word8_t flag, L4_Word8_t value)
{
    volatile L4_Word8_t *flags = l4_flag_bytes();
    L4_Word8_t old = *flags;
    *flags = (L4_Word8_t)((old & ~flag) | value);
    return (old & flag) != 0;
}
L4_INLINE void L4_Set_CopFlag(L4_Word_t n)
{
    volatile L4_Word8_t *flags = l4_flag_bytes() + 1;
    *flags = (L4_Word8_t)(*flags | 1u << (n & 7));
}
L4_INLINE void L4_Clr_CopFlag(L4_Word_t n)
{
    volatile L4_Word8_t *flags = l4_flag_bytes() + 1;
    *flags = (L4_Word8_t)(*flags & ~(1u << (n & 7)));
}
/* These return the old state of the flag. */
L4_INLINE L4_Bool_t L4_EnablePreemptionFaultException(void) { return l4_change_preempt_flag(0x20, 0x20); }
L4_INLINE L4_Bool_t L4_DisablePreemptionFaultException(void) { return l4_change_preempt_flag(0x20, 0); }
L4_INLINE L4_Bool_t L4_DisablePreemption(void) { return l4_change_preempt_flag(0x40, 0x40); }
L4_INLINE L4_Bool_t L4_EnablePreemption(void) { return l4_change_preempt_flag(0x40, 0); }
L4_INLINE L4_Bool_t L4_PreemptionPending(void) { return l4_change_preempt_flag(0x80, 0); }

L4_INLINE const char *L4_ErrorCode_String(L4_Word_t err)
{
    switch (err) {
    case L4_ErrOk: return "no error";
    case L4_ErrNoPrivilege: return "no privilege";
    case L4_ErrInvalidThread: return "invalid thread";
    case L4_ErrInvalidSpace: return "invalid space";
    case L4_ErrInvalidScheduler: return "invalid scheduler";
    case L4_ErrInvalidParam: return "invalid parameter";
    case L4_ErrUtcbArea: return "invalid UTCB area";
    case L4_ErrKipArea: return "invalid KIP area";
    case L4_ErrNoMem: return "out of memory";
    default: return "unknown error";
    }
}

/* Registers of other threads. */

typedef struct {
    L4_Word_t raw;
} L4_ThreadState_t;

L4_INLINE L4_Bool_t L4_ThreadWasHalted(L4_ThreadState_t s) { return (s.raw & 1) != 0; }
L4_INLINE L4_Bool_t L4_ThreadWasReceiving(L4_ThreadState_t s) { return (s.raw & 2) != 0; }
L4_INLINE L4_Bool_t L4_ThreadWasSending(L4_ThreadState_t s) { return (s.raw & 4) != 0; }
L4_INLINE L4_Bool_t L4_ThreadWasIpcing(L4_ThreadState_t s) { return (s.raw & 6) != 0; }

/* Control bits of ExchangeRegisters. */
enum {
    l4_exchange_halt = 1 << 0,
    l4_exchange_receive = 1 << 1,
    l4_exchange_send = 1 << 2,
    l4_exchange_sp = 1 << 3,
    l4_exchange_ip = 1 << 4,
    l4_exchange_flags = 1 << 5,
    l4_exchange_handle = 1 << 6,
    l4_exchange_pager = 1 << 7,
    l4_exchange_halt_valid = 1 << 8,
    l4_exchange_deliver = 1 << 9
};

/* The results of ExchangeRegisters. */
typedef struct {
    L4_ThreadId_t id;
    L4_ThreadState_t state;
    L4_Word_t sp, ip, flags, handle;
    L4_ThreadId_t pager;
} l4_exchanged_t;

L4_INLINE l4_exchanged_t l4_exchange(L4_ThreadId_t t, L4_Word_t control, L4_Word_t sp, L4_Word_t ip, L4_Word_t flags,
                                     L4_Word_t handle, L4_ThreadId_t pager)
{
    l4_exchanged_t old;
    old.id = L4_ExchangeRegisters(t, control, sp, ip, flags, handle, pager, &old.state.raw, &old.sp, &old.ip,
                                  &old.flags, &old.handle, &old.pager);
    return old;
}
L4_INLINE l4_exchanged_t l4_exchange_control(L4_ThreadId_t t, L4_Word_t control)
{
    return l4_exchange(t, control, 0, 0, 0, 0, L4_nilthread);
}

L4_INLINE L4_ThreadId_t L4_GlobalIdOf(L4_ThreadId_t t)
{
    return L4_IsLocalId(t) ? l4_exchange_control(t, 0).id : t;
}
L4_INLINE L4_ThreadId_t L4_LocalIdOf(L4_ThreadId_t t)
{
    return L4_IsGlobalId(t) ? l4_exchange_control(t, 0).id : t;
}
L4_INLINE L4_Bool_t L4_SameThreads(L4_ThreadId_t l, L4_ThreadId_t r)
{
    return L4_GlobalIdOf(l).raw == L4_GlobalIdOf(r).raw;
}
L4_INLINE L4_Word_t L4_UserDefinedHandleOf(L4_ThreadId_t t)
{
    return l4_exchange_control(t, l4_exchange_deliver).handle;
}
L4_INLINE void L4_Set_UserDefinedHandleOf(L4_ThreadId_t t, L4_Word_t handle)
{
    (void)l4_exchange(t, l4_exchange_handle, 0, 0, 0, handle, L4_nilthread);
}
L4_INLINE L4_ThreadId_t L4_PagerOf(L4_ThreadId_t t) { return l4_exchange_control(t, l4_exchange_deliver).pager; }
L4_INLINE void L4_Set_PagerOf(L4_ThreadId_t t, L4_ThreadId_t p)
{
    (void)l4_exchange(t, l4_exchange_pager, 0, 0, 0, 0, p);
}

#define L4_START_CONTROL (l4_exchange_halt_valid | l4_exchange_send | l4_exchange_receive)
L4_INLINE void L4_Start(L4_ThreadId_t t) { (void)l4_exchange_control(t, L4_START_CONTROL); }
L4_INLINE void L4_Start_SpIp(L4_ThreadId_t t, L4_Word_t sp, L4_Word_t ip)
{
    (void)l4_exchange(t, L4_START_CONTROL | l4_exchange_sp | l4_exchange_ip, sp, ip, 0, 0, L4_nilthread);
}
L4_INLINE void L4_Start_SpIpFlags(L4_ThreadId_t t, L4_Word_t sp, L4_Word_t ip, L4_Word_t flags)
{
    L4_Word_t control = L4_START_CONTROL | l4_exchange_sp | l4_exchange_ip | l4_exchange_flags;
    (void)l4_exchange(t, control, sp, ip, flags, 0, L4_nilthread);
}

/* Halts a thread after what `abort` says, and tells where it was. */
L4_INLINE L4_ThreadState_t l4_stop(L4_ThreadId_t t, L4_Word_t abort, L4_Word_t *sp, L4_Word_t *ip, L4_Word_t *flags)
{
    L4_Word_t control = l4_exchange_halt | l4_exchange_halt_valid | l4_exchange_deliver | abort;
    l4_exchanged_t old = l4_exchange_control(t, control);
    *sp = old.sp;
    *ip = old.ip;
    *flags = old.flags;
    return old.state;
}
/* The four ways to stop: each with and without the old SP, IP and FLAGS; in C++ both have one
 * name. */
#define L4_DEFINE_STOP(name, abort)                                                                          \
    L4_INLINE L4_ThreadState_t name##_SpIpFlags(L4_ThreadId_t t, L4_Word_t *sp, L4_Word_t *ip, L4_Word_t *flags) \
    {                                                                                                        \
        return l4_stop(t, abort, sp, ip, flags);                                                             \
    }                                                                                                        \
    L4_INLINE L4_ThreadState_t name(L4_ThreadId_t t)                                                         \
    {                                                                                                        \
        L4_Word_t sp, ip, flags;                                                                             \
        return l4_stop(t, abort, &sp, &ip, &flags);                                                          \
    }
L4_DEFINE_STOP(L4_Stop, 0)
L4_DEFINE_STOP(L4_AbortReceive_and_stop, l4_exchange_receive)
L4_DEFINE_STOP(L4_AbortSend_and_stop, l4_exchange_send)
L4_DEFINE_STOP(L4_AbortIpc_and_stop, l4_exchange_send | l4_exchange_receive)
#undef L4_DEFINE_STOP

/* Interrupts. */

L4_INLINE L4_Word_t L4_AssociateInterrupt(L4_ThreadId_t InterruptThread, L4_ThreadId_t HandlerThread)
{
    return L4_ThreadControl(InterruptThread, InterruptThread, L4_nilthread, HandlerThread, (void *)~(L4_Word_t)0);
}
L4_INLINE L4_Word_t L4_DeassociateInterrupt(L4_ThreadId_t InterruptThread)
{
    return L4_AssociateInterrupt(InterruptThread, InterruptThread);
}

#ifdef __cplusplus
static inline L4_ThreadId_t L4_GlobalId(L4_ThreadId_t t) { return L4_GlobalIdOf(t); }
static inline L4_ThreadId_t L4_LocalId(L4_ThreadId_t t) { return L4_LocalIdOf(t); }
static inline L4_Word_t L4_UserDefinedHandle(L4_ThreadId_t t) { return L4_UserDefinedHandleOf(t); }
static inline void L4_Set_UserDefinedHandle(L4_ThreadId_t t, L4_Word_t h) { L4_Set_UserDefinedHandleOf(t, h); }
static inline L4_ThreadId_t L4_Pager(L4_ThreadId_t t) { return L4_PagerOf(t); }
static inline void L4_Set_Pager(L4_ThreadId_t t, L4_ThreadId_t p) { L4_Set_PagerOf(t, p); }
static inline void L4_Start(L4_ThreadId_t t, L4_Word_t sp, L4_Word_t ip) { L4_Start_SpIp(t, sp, ip); }
static inline void L4_Start(L4_ThreadId_t t, L4_Word_t sp, L4_Word_t ip, L4_Word_t flags)
{
    L4_Start_SpIpFlags(t, sp, ip, flags);
}
#define L4_DEFINE_STOP(name)                                                                           \
    static inline L4_ThreadState_t name(L4_ThreadId_t t, L4_Word_t *sp, L4_Word_t *ip, L4_Word_t *flags) \
    {                                                                                                  \
        return name##_SpIpFlags(t, sp, ip, flags);                                                     \
    }
L4_DEFINE_STOP(L4_Stop)
L4_DEFINE_STOP(L4_AbortReceive_and_stop)
L4_DEFINE_STOP(L4_AbortSend_and_stop)
L4_DEFINE_STOP(L4_AbortIpc_and_stop)
#undef L4_DEFINE_STOP
#endif

#endif
