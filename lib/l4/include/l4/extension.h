/* The extensions: ownership and confinement, MapControl, thread state, notification (docs:
 * reference, "The extensions"). Names that begin with L4_ here are ours, not the manual's. A
 * function that can fail returns 1, or 0 with the reason in L4_ErrorCode(). */
#ifndef L4_EXTENSION_H
#define L4_EXTENSION_H

#include <l4/arch.h>
#include <l4/types.h>

enum {
    l4_entry_space_options = 0x1f8,
    l4_entry_map_control = 0x200,
    l4_entry_thread_state = 0x208,
    l4_entry_notify = 0x210,
    l4_kip_extensions = 0x218
};

/* Version of the extensions that the kernel has; 0 = none. */
L4_INLINE L4_Word_t L4_ExtensionVersion(void) { return l4_entry(l4_kip_extensions) & 0xffff; }

/* Calls an extension: arguments and further results in RSI, RDX, R8. */
L4_INLINE L4_Word_t l4_extension_call(L4_Word_t entry, L4_Word_t rdi, L4_Word_t *rsi, L4_Word_t *rdx, L4_Word_t *r8)
{
    L4_Word_t result, si = *rsi, dx = *rdx, target = l4_entry(entry);
    register L4_Word_t eight __asm__("r8") = *r8;
    __asm__ volatile(L4_CALL_STUB("%%rcx")
                     : "=a"(result), "+S"(si), "+d"(dx), "+r"(eight), "+c"(target)
                     : "D"(rdi)
                     : "r11", "memory", "cc");
    *rsi = si;
    *rdx = dx;
    *r8 = eight;
    return result;
}

/* SpaceOptions. */

enum {
    L4_SpaceInformation = 0,
    L4_SpaceOwner = 1,
    L4_SpaceQuota = 2,
    L4_SpaceSystemCallMode = 3,
    L4_SpaceEmulationEntry = 4,
    L4_SpaceOpen = 5,
    L4_SpacePhysicalAddresses = 6,
    L4_SpaceInterruptMessage = 7,
    L4_SpaceInterruptTable = 8
};
enum { L4_SystemCallsNone = 0, L4_SystemCallsException = 1, L4_SystemCallsBounce = 2 };

/* `values` holds the option's two arguments, and then its two answers. */
L4_INLINE L4_Word_t L4_SpaceOptions(L4_ThreadId_t space, L4_Word_t option, L4_Word_t values[2])
{
    return l4_extension_call(l4_entry_space_options, space.raw, &option, &values[0], &values[1]);
}
L4_INLINE L4_Word_t L4_SetOwner(L4_ThreadId_t space, L4_ThreadId_t owner)
{
    L4_Word_t values[2] = {owner.raw, 0};
    return L4_SpaceOptions(space, L4_SpaceOwner, values);
}
L4_INLINE L4_Word_t L4_SetSystemCallMode(L4_ThreadId_t space, L4_Word_t mode)
{
    L4_Word_t values[2] = {mode, 0};
    return L4_SpaceOptions(space, L4_SpaceSystemCallMode, values);
}
L4_INLINE L4_Word_t L4_SetEmulationEntry(L4_ThreadId_t space, L4_Word_t entry)
{
    L4_Word_t values[2] = {entry, 0};
    return L4_SpaceOptions(space, L4_SpaceEmulationEntry, values);
}
L4_INLINE L4_Word_t L4_SetOpen(L4_ThreadId_t space, L4_ThreadId_t other, L4_Bool_t open)
{
    L4_Word_t values[2] = {other.raw, open ? 1UL : 0UL};
    return L4_SpaceOptions(space, L4_SpaceOpen, values);
}

/* The number of message-signalled interrupts, which are the last of the interrupts below
 * SystemBase. */
L4_INLINE L4_Word_t L4_MessageInterrupts(void) { return l4_entry(l4_kip_extensions) >> 32 & 0xffff; }

/* The write with which a device raises a message-signalled interrupt: its address and its data. */
typedef struct {
    L4_Word_t address;
    L4_Word_t data;
} L4_InterruptMessage_t;

L4_INLINE L4_Word_t L4_InterruptMessage(L4_ThreadId_t irq, L4_InterruptMessage_t *message)
{
    L4_Word_t values[2] = {L4_ThreadNo(irq), 0};
    L4_Word_t result = L4_SpaceOptions(L4_nilthread, L4_SpaceInterruptMessage, values);
    message->address = values[0];
    message->data = values[1];
    return result;
}

/* MapControl. */

typedef struct {
    L4_Word_t target;  /* fpage: base, size of one page, rights */
    L4_Word_t control; /* operation, what to clear, number of pages */
    L4_Word_t source;
    L4_Word_t answer;
} __attribute__((aligned(32))) L4_MapControlItem_t;

enum { L4_MapControlQuery = 0, L4_MapControlMap = 1, L4_MapControlProtect = 2, L4_MapControlUnmap = 3 };
enum { L4_ClearReferenced = 1 << 2, L4_ClearDirty = 1 << 3 };
enum { L4_PageMapped = 1 << 3, L4_PageReferenced = 1 << 4, L4_PageDirty = 1 << 5 };

L4_INLINE L4_MapControlItem_t L4_MapControlItem(L4_Word_t operation, L4_Fpage_t target, L4_Word_t count, L4_Word_t source)
{
    L4_MapControlItem_t item = {target.raw, operation | count << 16, source, 0};
    return item;
}
/* Carries out `number` (1 to 512) items; `done` says how many, whether or not all were. */
L4_INLINE L4_Word_t L4_MapControl(L4_ThreadId_t space, L4_MapControlItem_t *items, L4_Word_t number, L4_Word_t *done)
{
    L4_Word_t address = (L4_Word_t)items;
    *done = 0;
    return l4_extension_call(l4_entry_map_control, space.raw, &address, &number, done);
}

/* Carries out one item, in registers, and sets its answer. */
L4_INLINE L4_Word_t L4_MapControlOne(L4_ThreadId_t space, L4_MapControlItem_t *item)
{
    L4_Word_t target = item->target, control = 1UL << 63 | item->control;
    item->answer = item->source;
    return l4_extension_call(l4_entry_map_control, space.raw, &target, &control, &item->answer);
}

/* ThreadState. The message registers carry the integer registers: MR1 to MR18 as in an exception
 * message, MR19 FS base, MR20 GS base; MR21 the exception handler and MR22 the pager to set; MR23
 * to MR26 the addresses of the breakpoints, MR27 which are enabled and how, as in DR7; MR28 (only
 * read) why the last debug exception came, as in DR6. */

enum {
    L4_ReadRegisters = 1 << 0,
    L4_WriteRegisters = 1 << 1,
    L4_ReadExtendedState = 1 << 2,
    L4_WriteExtendedState = 1 << 3,
    L4_Recall = 1 << 4,
    L4_SetExceptionHandlerOf = 1 << 5,
    L4_SetPagerOf = 1 << 6,
    L4_ReadBreakpoints = 1 << 7,
    L4_WriteBreakpoints = 1 << 8
};
enum { L4_RecalledException = 256 };

/* `size`: in the buffer's size, out how much was read; `state`: what the thread does. */
L4_INLINE L4_Word_t L4_ThreadState(L4_ThreadId_t thread, L4_Word_t control, void *buffer, L4_Word_t *size,
                                   L4_Word_t *state)
{
    L4_Word_t address = (L4_Word_t)buffer;
    *state = control;
    return l4_extension_call(l4_entry_thread_state, thread.raw, state, &address, size);
}
L4_INLINE L4_Word_t L4_RecallThread(L4_ThreadId_t thread)
{
    L4_Word_t size = 0, state;
    return L4_ThreadState(thread, L4_Recall, 0, &size, &state);
}
L4_INLINE L4_Word_t L4_SetHandlers(L4_ThreadId_t thread, L4_ThreadId_t exception_handler, L4_ThreadId_t pager)
{
    L4_Word_t size = 0, state;
    L4_LoadMR(21, exception_handler.raw);
    L4_LoadMR(22, pager.raw);
    return L4_ThreadState(thread, L4_SetExceptionHandlerOf | L4_SetPagerOf, 0, &size, &state);
}

/* Notify. */

/* BR0 with this bit lets an open receive end with a notification: label 0xffffffffff70, MR1 = the
 * bits. */
enum { L4_AcceptNotifications = 1 << 2 };
#define L4_NotificationLabel 0xffffffffff70UL

L4_INLINE L4_Word_t L4_Notify(L4_ThreadId_t thread, L4_Word_t bits)
{
    L4_Word_t rdx = 0, r8 = 0;
    return l4_extension_call(l4_entry_notify, thread.raw, &bits, &rdx, &r8);
}

#endif
