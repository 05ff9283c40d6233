/* Scheduling and time (manual: scheduling). */
#ifndef L4_SCHEDULE_H
#define L4_SCHEDULE_H

#include <l4/arch.h>

/* Results of Schedule. */
#define L4_SCHEDRESULT_ERROR 0
#define L4_SCHEDRESULT_DEAD 1
#define L4_SCHEDRESULT_INACTIVE 2
#define L4_SCHEDRESULT_RUNNING 3
#define L4_SCHEDRESULT_PENDING_SEND 4
#define L4_SCHEDRESULT_SENDING 5
#define L4_SCHEDRESULT_WAITING 6
#define L4_SCHEDRESULT_RECEIVING 7

L4_INLINE L4_Time_t L4_TimePoint(L4_Clock_t at) { return l4_time_point(L4_SystemClock(), at); }
L4_INLINE void L4_Yield(void) { L4_ThreadSwitch(L4_nilthread); }

#define L4_UNCHANGED (~(L4_Word_t)0)

L4_INLINE L4_Word_t L4_Set_Priority(L4_ThreadId_t tid, L4_Word_t prio)
{
    L4_Word_t old;
    return L4_Schedule(tid, L4_UNCHANGED, L4_UNCHANGED, prio & 0xff, L4_UNCHANGED, &old);
}
L4_INLINE L4_Word_t L4_Set_ProcessorNo(L4_ThreadId_t tid, L4_Word_t cpu_no)
{
    L4_Word_t old;
    return L4_Schedule(tid, L4_UNCHANGED, cpu_no & 0xffff, L4_UNCHANGED, L4_UNCHANGED, &old);
}
L4_INLINE L4_Word_t L4_Timeslice(L4_ThreadId_t tid, L4_Time_t *timeslice, L4_Time_t *totalquantum)
{
    L4_Word_t time = 0;
    L4_Word_t result = L4_Schedule(tid, L4_UNCHANGED, L4_UNCHANGED, L4_UNCHANGED, L4_UNCHANGED, &time);
    *timeslice = l4_time(time >> 16 & 0xffff);
    *totalquantum = l4_time(time & 0xffff);
    return result;
}
L4_INLINE L4_Word_t L4_Set_Timeslice(L4_ThreadId_t tid, L4_Time_t timeslice, L4_Time_t totalquantum)
{
    L4_Word_t old, time = (L4_Word_t)timeslice.raw << 16 | totalquantum.raw;
    return L4_Schedule(tid, time, L4_UNCHANGED, L4_UNCHANGED, L4_UNCHANGED, &old);
}
L4_INLINE L4_Word_t L4_Set_PreemptionDelay(L4_ThreadId_t tid, L4_Word_t sensitivePrio, L4_Word_t maxDelay)
{
    L4_Word_t old, control = (sensitivePrio & 0xff) << 16 | (maxDelay & 0xffff);
    return L4_Schedule(tid, L4_UNCHANGED, L4_UNCHANGED, L4_UNCHANGED, control, &old);
}

#endif
