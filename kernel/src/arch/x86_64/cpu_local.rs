//! Per-processor data, reached through GS while the kernel runs (K5).
//!
//! GS base points to this processor's [`CpuLocal`] from the SWAPGS of an entry to the SWAPGS of the
//! exit. Non-maskable interrupts, machine checks and double faults may come between and must not
//! use it.
use core::arch::asm;
use core::cell::Cell;
use core::mem::offset_of;

use super::gdt::{DescriptorTable, INTERRUPT_STACKS, InterruptStack, TaskState};
use super::instructions::{msr, write_msr};
use super::{ports, stacks};
use crate::memory::PhysAddr;
use crate::processor::{Processor, Public};
use crate::sync::Walks;
use crate::thread::Tcb;

/// What one processor has for itself. The first fields are known to entry code by their offsets.
///
/// Only its processor touches it, with interrupts off; hence cells and not atomics.
#[repr(C)]
pub struct CpuLocal {
    /// The address of this structure, so that one GS-relative load yields a plain reference.
    self_address: *const CpuLocal,
    /// Top of this processor's one kernel stack (K2).
    pub stack_top: u64,
    /// Room for entry code to keep one register (the user's stack pointer on SYSCALL).
    pub scratch: Cell<u64>,
    /// A scratch word for entry code, for another register.
    pub scratch2: Cell<u64>,
    /// The address to which SYSCALL returns if the call is an Ipc.
    pub ipc_return: Cell<u64>,
    /// A SYSCALL that returns to an address below is a foreign one that may take the fast path; 0:
    /// nothing may.
    pub foreign_limit: Cell<u64>,
    /// This processor's task state.
    pub task_state: *mut TaskState,
    /// The processor's number: 0 for the one that booted.
    pub number: u32,
    /// [`Tcb::named_at`] this processor.
    pub named_here: u32,
    /// Top of the room for the processor's frames between user and kernel mode.
    pub entry_top: u64,
    /// Counts the processor's walks through page tables in software.
    pub(super) walks: Walks,
    /// The part of the processor's data that does not depend on the architecture.
    pub processor: Processor,
    /// The vector of the interrupt that ended the last [`super::wait_for_interrupt`]; 0 = none.
    pub(super) idle_vector: Cell<u32>,
    /// The space whose ports the task state's bitmap opens.
    pub(super) ports: ports::Owner,
    /// Whether the debug registers hold breakpoints of the kernel debugger, and not the program's.
    pub(super) debugger_stops: Cell<bool>,
}

const _: () = assert!(offset_of!(CpuLocal, self_address) == 0);

/// Room for the processor's frames above the kernel stack, in whole cache lines: those of entries
/// from user mode and of faults, and what entry code pushes before it has another place for it.
pub(super) const ENTRY_ROOM: u64 = 128;

/// The stack for reports of faults in kernel mode. Its pointer is not in the interrupt stack table.
const FAULT_STACK: u32 = InterruptStack::Fault as u32;

/// Where, relative to this structure, the processor's task state says where its permission bitmap
/// is.
pub(super) const BITMAP_OFFSET: usize =
    offset_of!(ProcessorArea, task) - offset_of!(ProcessorArea, local) + TaskState::BITMAP_OFFSET;

/// Everything a processor needs to be able to take an interrupt.
#[repr(C, align(4096))]
struct ProcessorArea {
    local: CpuLocal,
    descriptors: DescriptorTable,
    task: TaskState,
}

/// The executing processor's data.
#[inline]
pub fn cpu_local() -> &'static CpuLocal {
    let address: *const CpuLocal;
    // SAFETY: kernel code runs with GS base at this processor's CpuLocal, whose first word is its
    // own address; it is never moved or freed. The reference is not Sync, so it stays on this
    // processor (the kernel is not preemptible).
    unsafe {
        asm!("mov {}, gs:[0]", out(reg) address, options(pure, readonly, nostack, preserves_flags));
        &*address
    }
}

/// The part of processor `number`'s data that others read. The processor exists.
#[inline]
pub fn processor(number: u32) -> &'static Public {
    let area: *mut ProcessorArea = stacks::area(number);
    // SAFETY: `prepare` wrote the area, which is never freed; this part is atomics.
    unsafe { &(*area).local.processor.public }
}

/// The counter of walks of processor `number`, which exists.
pub(super) fn walks_of(number: u32) -> &'static Walks {
    let area: *mut ProcessorArea = stacks::area(number);
    // SAFETY: as above.
    unsafe { &(*area).local.walks }
}

/// Makes the stacks, segments, task state and local data of a processor, on pages of `page`, which
/// are zeroed and never freed. Returns the top of its kernel stack.
///
/// # Safety
/// Called once per processor, on the final page tables, with `number` unused so far.
pub(super) unsafe fn prepare(number: u32, mut page: impl FnMut() -> PhysAddr) -> u64 {
    let entry_top = stacks::map(number, 0, &mut page);
    let stack_top = entry_top - ENTRY_ROOM;
    let area: *mut ProcessorArea = stacks::map_area(number, &mut page);
    // SAFETY: freshly mapped, aligned memory for one ProcessorArea, to which there is no other
    // reference.
    let area = unsafe {
        area.write(ProcessorArea {
            local: CpuLocal {
                self_address: &raw const (*area).local,
                stack_top,
                scratch: Cell::new(0),
                scratch2: Cell::new(0),
                ipc_return: Cell::new(0),
                foreign_limit: Cell::new(0),
                task_state: &raw mut (*area).task,
                number,
                named_here: Tcb::named_at(number),
                entry_top,
                walks: Walks::new(),
                processor: Processor::new(),
                idle_vector: Cell::new(0),
                debugger_stops: Cell::new(false),
                ports: ports::Owner::new(),
            },
            descriptors: DescriptorTable::new(),
            task: TaskState::new(),
        });
        &mut *area
    };
    area.task.set_entry_stack(entry_top);
    // A fault from kernel mode is saved in the same place, which holds nothing then that is needed
    // again.
    area.task.set_interrupt_stack(InterruptStack::Fault, entry_top);
    stacks::set_owner(stacks::map(number, FAULT_STACK, &mut page), &raw const area.local);
    for (index, which) in [
        InterruptStack::NonMaskable,
        InterruptStack::MachineCheck,
        InterruptStack::Debug,
        InterruptStack::DoubleFault,
    ]
    .into_iter()
    .enumerate()
    {
        let top = stacks::map(number, 1 + index as u32, &mut page);
        stacks::set_owner(top, &raw const area.local);
        area.task.set_interrupt_stack(which, top);
    }
    stacks::set_owner(entry_top, &raw const area.local);
    const { assert!(1 + INTERRUPT_STACKS < stacks::PER_PROCESSOR as usize) };
    stack_top
}

/// Makes what was [`prepare`]d the executing processor's.
///
/// # Safety
/// Called once per processor, on the final page tables, with the number that it was prepared with.
pub(super) unsafe fn load(number: u32) {
    let area: *mut ProcessorArea = stacks::area(number);
    // SAFETY: `prepare` wrote the area, which is never freed and from here on this processor's;
    // this is the one load of these tables.
    unsafe {
        (*area).descriptors.load(&raw const (*area).task);
        write_msr(msr::GS_BASE, &raw const (*area).local as u64);
        write_msr(msr::KERNEL_GS_BASE, 0);
    }
}
