/* The AMD64 binding: where virtual registers are, and how system calls are made (ABI 4, 5, 7).
 *
 * A call reaches its stub through the entry address in the kernel interface page. The page is found
 * by the KernelInterface instruction at the first call; its address is kept in one variable of the
 * program, so every space that runs the same program must have the page at the same address. RBP is
 * saved here, and the red zone is left alone; the arguments stand where the interface wants them,
 * every other register is a clobber. */
#ifndef L4_ARCH_H
#define L4_ARCH_H

#include <l4/types.h>

#define L4_NUM_MRS 64
#define L4_NUM_BRS 33

/* KernelInterface. */

L4_INLINE void *L4_KernelInterface(L4_Word_t *ApiVersion, L4_Word_t *ApiFlags, L4_Word_t *KernelId)
{
    void *base;
    L4_Word_t version, flags, id;
    __asm__ volatile(".byte 0xf0, 0x90" : "=a"(base), "=c"(version), "=d"(flags), "=S"(id));
    *ApiVersion = version;
    *ApiFlags = flags;
    *KernelId = id;
    return base;
}

/* A program has one copy, whichever of its files include this header. */
#ifdef __cplusplus
extern "C" {
#endif
extern char *l4_kernel_interface_page;
__attribute__((weak)) char *l4_kernel_interface_page = 0;
#ifdef __cplusplus
}
#endif

L4_INLINE L4_Word_t l4_entry(L4_Word_t offset)
{
    if (!l4_kernel_interface_page) {
        L4_Word_t version, flags, id;
        l4_kernel_interface_page = (char *)L4_KernelInterface(&version, &flags, &id);
    }
    return *(L4_Word_t *)(l4_kernel_interface_page + offset);
}

/* Words of the UTCB, as indexes relative to MR0. */

L4_INLINE volatile L4_Word_t *l4_utcb(void)
{
    L4_Word_t pointer;
    __asm__ volatile("mov %%gs:0, %0" : "=r"(pointer));
    return (volatile L4_Word_t *)pointer;
}

enum {
    l4_utcb_my_global_id = -15,
    l4_utcb_processor_no = -14,
    l4_utcb_user_defined_handle = -13,
    l4_utcb_pager = -12,
    l4_utcb_exception_handler = -11,
    l4_utcb_flags = -10,
    l4_utcb_error_code = -9,
    l4_utcb_xfer_timeouts = -8,
    l4_utcb_intended_receiver = -7,
    l4_utcb_sender = -6,
    l4_utcb_thread_word_1 = -5,
    l4_utcb_thread_word_0 = -4,
    l4_utcb_word_size_mask = -1,
    l4_utcb_br0 = -16
};

L4_INLINE void L4_StoreMR(int i, L4_Word_t *w) { *w = l4_utcb()[i]; }
L4_INLINE void L4_LoadMR(int i, L4_Word_t w) { l4_utcb()[i] = w; }
L4_INLINE void L4_StoreMRs(int i, int k, L4_Word_t *w)
{
    volatile L4_Word_t *mr = l4_utcb() + i;
    while (k-- > 0)
        *w++ = *mr++;
}
L4_INLINE void L4_LoadMRs(int i, int k, const L4_Word_t *w)
{
    volatile L4_Word_t *mr = l4_utcb() + i;
    while (k-- > 0)
        *mr++ = *w++;
}
L4_INLINE void L4_StoreBR(int i, L4_Word_t *w) { *w = l4_utcb()[l4_utcb_br0 - i]; }
L4_INLINE void L4_LoadBR(int i, L4_Word_t w) { l4_utcb()[l4_utcb_br0 - i] = w; }
L4_INLINE void L4_StoreBRs(int i, int k, L4_Word_t *w)
{
    while (k-- > 0)
        L4_StoreBR(i++, w++);
}
L4_INLINE void L4_LoadBRs(int i, int k, const L4_Word_t *w)
{
    while (k-- > 0)
        L4_LoadBR(i++, *w++);
}

/* System calls. */

/* Calls the stub whose address is in `target`, past the red zone and with RBP saved. */
#define L4_CALL_STUB(target)     \
    "lea -128(%%rsp), %%rsp\n\t" \
    "push %%rbp\n\t"             \
    "call *" target "\n\t"       \
    "pop %%rbp\n\t"              \
    "lea 128(%%rsp), %%rsp\n\t"

/* MR0 ..= MR7 between the UTCB, whose pointer is in RDI, and the registers that carry them. */
#define L4_LOAD_MESSAGE       \
    "mov (%%rdi), %%r9\n\t"    \
    "mov 8(%%rdi), %%rax\n\t"  \
    "mov 16(%%rdi), %%rbx\n\t" \
    "mov 24(%%rdi), %%r10\n\t" \
    "mov 32(%%rdi), %%r12\n\t" \
    "mov 40(%%rdi), %%r13\n\t" \
    "mov 48(%%rdi), %%r14\n\t" \
    "mov 56(%%rdi), %%r15\n\t"
#define L4_STORE_MESSAGE       \
    "mov %%r9, (%%rdi)\n\t"    \
    "mov %%rax, 8(%%rdi)\n\t"  \
    "mov %%rbx, 16(%%rdi)\n\t" \
    "mov %%r10, 24(%%rdi)\n\t" \
    "mov %%r12, 32(%%rdi)\n\t" \
    "mov %%r13, 40(%%rdi)\n\t" \
    "mov %%r14, 48(%%rdi)\n\t" \
    "mov %%r15, 56(%%rdi)\n\t"

/* Offsets of the entry addresses in the kernel interface page. */
enum {
    l4_entry_space_control = 0x1a0,
    l4_entry_thread_control = 0x1a8,
    l4_entry_processor_control = 0x1b0,
    l4_entry_memory_control = 0x1b8,
    l4_entry_ipc = 0x1c0,
    l4_entry_lipc = 0x1c8,
    l4_entry_unmap = 0x1d0,
    l4_entry_exchange_registers = 0x1d8,
    l4_entry_system_clock = 0x1e0,
    l4_entry_thread_switch = 0x1e8,
    l4_entry_schedule = 0x1f0
};

L4_INLINE L4_Word_t l4_ipc_through(L4_Word_t entry, L4_Word_t to, L4_Word_t from_specifier, L4_Word_t timeouts,
                                   L4_Word_t *from)
{
    register L4_Word_t r8 __asm__("r8") = timeouts;
    volatile L4_Word_t *utcb = l4_utcb();
    __asm__ volatile(L4_LOAD_MESSAGE L4_CALL_STUB("%%rcx") L4_STORE_MESSAGE
                     : "+c"(entry), "+S"(to), "+d"(from_specifier), "+r"(r8), "+D"(utcb)
                     :
                     : "rax", "rbx", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc");
    *from = to;
    return *utcb;
}

/* The same with MR0 ..= MR7 in the caller's variables, which need not be in memory; those in the
 * UTCB are left alone. Returns the sender. */
L4_INLINE L4_Word_t l4_ipc_registers(L4_Word_t to, L4_Word_t from_specifier, L4_Word_t timeouts, L4_Word_t mr[8])
{
    L4_Word_t entry = l4_entry(l4_entry_ipc), mr1 = mr[1], mr2 = mr[2];
    volatile L4_Word_t *utcb = l4_utcb();
    register L4_Word_t r8 __asm__("r8") = timeouts;
    register L4_Word_t mr0 __asm__("r9") = mr[0];
    register L4_Word_t mr3 __asm__("r10") = mr[3];
    register L4_Word_t mr4 __asm__("r12") = mr[4];
    register L4_Word_t mr5 __asm__("r13") = mr[5];
    register L4_Word_t mr6 __asm__("r14") = mr[6];
    register L4_Word_t mr7 __asm__("r15") = mr[7];
    __asm__ volatile(L4_CALL_STUB("%%rcx")
                     : "+c"(entry), "+S"(to), "+d"(from_specifier), "+D"(utcb), "+r"(r8), "+r"(mr0), "+a"(mr1),
                       "+b"(mr2), "+r"(mr3), "+r"(mr4), "+r"(mr5), "+r"(mr6), "+r"(mr7)
                     :
                     : "r11", "memory", "cc");
    mr[0] = mr0;
    mr[1] = mr1;
    mr[2] = mr2;
    mr[3] = mr3;
    mr[4] = mr4;
    mr[5] = mr5;
    mr[6] = mr6;
    mr[7] = mr7;
    return to;
}

L4_INLINE void L4_Unmap(L4_Word_t control)
{
    L4_Word_t entry = l4_entry(l4_entry_unmap);
    volatile L4_Word_t *utcb = l4_utcb();
    __asm__ volatile(L4_LOAD_MESSAGE L4_CALL_STUB("%%rcx") L4_STORE_MESSAGE
                     : "+c"(entry), "+d"(control), "+D"(utcb)
                     :
                     : "rax", "rbx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc");
}

L4_INLINE L4_ThreadId_t L4_ExchangeRegisters(L4_ThreadId_t dest, L4_Word_t control, L4_Word_t sp, L4_Word_t ip,
                                             L4_Word_t flags, L4_Word_t UserDefHandle, L4_ThreadId_t pager,
                                             L4_Word_t *old_control, L4_Word_t *old_sp, L4_Word_t *old_ip,
                                             L4_Word_t *old_flags, L4_Word_t *old_UserDefHandle,
                                             L4_ThreadId_t *old_pager)
{
    L4_Word_t entry = l4_entry(l4_entry_exchange_registers);
    register L4_Word_t r8 __asm__("r8") = ip;
    register L4_Word_t r9 __asm__("r9") = flags;
    register L4_Word_t r10 __asm__("r10") = UserDefHandle;
    __asm__ volatile(L4_CALL_STUB("%%rcx")
                     : "+c"(entry), "+a"(dest.raw), "+S"(control), "+d"(sp), "+r"(r8), "+r"(r9), "+r"(r10),
                       "+D"(pager.raw)
                     :
                     : "rbx", "r11", "r12", "r13", "r14", "r15", "memory", "cc");
    *old_control = control;
    *old_sp = sp;
    *old_ip = r8;
    *old_flags = r9;
    *old_UserDefHandle = r10;
    *old_pager = pager;
    return dest;
}

/* The calls with arguments in RDI, RSI, RDX, R8, R9 and results in RAX and RDX. */
L4_INLINE L4_Word_t l4_control_call(L4_Word_t entry, L4_Word_t rdi, L4_Word_t rsi, L4_Word_t *rdx, L4_Word_t r8_value,
                                    L4_Word_t r9_value)
{
    L4_Word_t result, second = *rdx;
    register L4_Word_t r8 __asm__("r8") = r8_value;
    register L4_Word_t r9 __asm__("r9") = r9_value;
    __asm__ volatile(L4_CALL_STUB("%%rcx")
                     : "+c"(entry), "=a"(result), "+D"(rdi), "+S"(rsi), "+d"(second), "+r"(r8), "+r"(r9)
                     :
                     : "rbx", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc");
    *rdx = second;
    return result;
}

L4_INLINE L4_Word_t L4_ThreadControl(L4_ThreadId_t dest, L4_ThreadId_t SpaceSpecifier, L4_ThreadId_t Scheduler,
                                     L4_ThreadId_t Pager, void *UtcbLocation)
{
    L4_Word_t scheduler = Scheduler.raw;
    return l4_control_call(l4_entry(l4_entry_thread_control), dest.raw, Pager.raw, &scheduler, SpaceSpecifier.raw,
                           (L4_Word_t)UtcbLocation);
}

L4_INLINE L4_Word_t L4_SpaceControl(L4_ThreadId_t SpaceSpecifier, L4_Word_t control,
                                    L4_Fpage_t KernelInterfacePageArea, L4_Fpage_t UtcbArea,
                                    L4_ThreadId_t Redirector, L4_Word_t *old_Control)
{
    L4_Word_t second = KernelInterfacePageArea.raw;
    L4_Word_t result = l4_control_call(l4_entry(l4_entry_space_control), SpaceSpecifier.raw, control, &second,
                                       UtcbArea.raw, Redirector.raw);
    *old_Control = second;
    return result;
}

L4_INLINE L4_Word_t L4_Schedule(L4_ThreadId_t dest, L4_Word_t TimeControl, L4_Word_t ProcessorControl,
                                L4_Word_t PrioControl, L4_Word_t PreemptionControl, L4_Word_t *old_TimeControl)
{
    L4_Word_t second = TimeControl;
    L4_Word_t result = l4_control_call(l4_entry(l4_entry_schedule), dest.raw, PrioControl, &second, ProcessorControl,
                                       PreemptionControl);
    *old_TimeControl = second;
    return result;
}

L4_INLINE void L4_ThreadSwitch(L4_ThreadId_t dest)
{
    L4_Word_t unused = 0;
    (void)l4_control_call(l4_entry(l4_entry_thread_switch), dest.raw, 0, &unused, 0, 0);
}

L4_INLINE L4_Clock_t L4_SystemClock(void)
{
    L4_Word_t unused = 0;
    return l4_clock(l4_control_call(l4_entry(l4_entry_system_clock), 0, 0, &unused, 0, 0));
}

L4_INLINE L4_Word_t L4_ProcessorControl(L4_Word_t ProcessorNo, L4_Word_t InternalFrequency,
                                        L4_Word_t ExternalFrequency, L4_Word_t voltage)
{
    L4_Word_t external = ExternalFrequency;
    return l4_control_call(l4_entry(l4_entry_processor_control), ProcessorNo, InternalFrequency, &external, voltage,
                           0);
}

/* MR2 is the only argument without a register on the way in, and the entry address has none at
 * all. So the entry address is pushed, and popped by returning to it, which leaves the stub with
 * the return address that a call would have pushed. */
L4_INLINE L4_Word_t L4_MemoryControl(L4_Word_t control, const L4_Word_t *attributes)
{
    L4_Word_t entry = l4_entry(l4_entry_memory_control);
    volatile L4_Word_t *utcb = l4_utcb();
    L4_Word_t attribute0 = attributes[0], attribute1 = attributes[1];
    register L4_Word_t r8 __asm__("r8") = attributes[2];
    register L4_Word_t r11 __asm__("r11") = attributes[3];
    register L4_Word_t r9 __asm__("r9") = entry;
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
                     "push %%rbp\n\t"
                     "lea 1f(%%rip), %%rbp\n\t"
                     "push %%rbp\n\t"
                     "push %%r9\n\t" L4_LOAD_MESSAGE "ret\n"
                     "1:\n\t"
                     "pop %%rbp\n\t"
                     "lea 128(%%rsp), %%rsp\n\t"
                     "mov %%rcx, (%%rdi)\n\t"
                     "mov %%rax, 8(%%rdi)\n\t"
                     : "+d"(control), "+c"(attribute0), "+S"(attribute1), "+r"(r8), "+r"(r11), "+r"(r9), "+D"(utcb)
                     :
                     : "rax", "rbx", "r10", "r12", "r13", "r14", "r15", "memory", "cc");
    return control;
}

#endif
