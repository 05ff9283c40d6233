//! Interrupt descriptor table: all 256 vectors, one table for every processor.
use core::arch::{asm, global_asm};
use core::mem::{offset_of, size_of};

use super::cpu_local::{self, CpuLocal};
use super::features;
use super::gdt::{InterruptStack, KERNEL_CODE, TaskState};
use super::stacks;
use crate::boot_cell::BootCell;

global_asm!(
    include_str!("vectors.S"),
    task_state = const offset_of!(CpuLocal, task_state),
    entry_stack = const TaskState::ENTRY_STACK_OFFSET,
    idle_vector = const offset_of!(CpuLocal, idle_vector),
    first_interrupt = const FIRST_INTERRUPT,
    frame_room = const cpu_local::ENTRY_ROOM,
    fault_stack = const InterruptStack::Fault as u64 * stacks::SLOT,
    stack_bits = const stacks::SIZE.trailing_zeros(),
    interrupt_flag = const INTERRUPT_FLAG,
    features = sym features::PRESENT,
    smap = const features::Features::SMAP.bits(),
);

unsafe extern "C" {
    /// 256 entry points of 16 bytes each.
    static interrupt_vectors: [[u8; 16]; 256];
}

/// The breakpoint vector: the only one that user programs may raise with `int` (kernel debugger
/// interface, ABI 15).
const BREAKPOINT: usize = 3;

/// The first interrupt vector; those below belong to exceptions.
pub(super) const FIRST_INTERRUPT: u64 = 32;
/// RFLAGS: interrupts are open.
const INTERRUPT_FLAG: u64 = 1 << 9;

#[derive(Clone, Copy)]
#[repr(C)]
struct Gate {
    low: u64,
    high: u64,
}

#[repr(C, align(4096))]
struct Table([Gate; 256]);

static TABLE: BootCell<Table> = BootCell::new(Table([Gate { low: 0, high: 0 }; 256]));

impl Gate {
    /// An interrupt gate (interrupts off on entry).
    fn new(address: u64, stack: Option<InterruptStack>, user: bool) -> Self {
        let stack = stack.map_or(0, |stack| stack as u64);
        let privilege = if user { 3 } else { 0 };
        Self {
            low: address & 0xffff
                | u64::from(KERNEL_CODE) << 16
                | stack << 32
                | (0x8e | privilege << 5) << 40
                | (address >> 16 & 0xffff) << 48,
            high: address >> 32,
        }
    }
}

/// Whether code at `address` is the first instruction of the entry for debug exceptions.
pub(super) fn is_debug_entry(address: u64) -> bool {
    // SAFETY: as in `init`: only the address is taken.
    address == unsafe { &raw const interrupt_vectors[1] } as u64
}

/// Fills the table. Called once, by the first processor, before [`load`].
pub(super) fn init() {
    // SAFETY: only this function writes the table, and it runs once, alone.
    let table = unsafe { &mut TABLE.get_mut().0 };
    for (vector, gate) in table.iter_mut().enumerate() {
        // SAFETY: only the address of the entry point is taken.
        let address = unsafe { &raw const interrupt_vectors[vector] } as u64;
        let stack = match vector {
            1 => Some(InterruptStack::Debug),
            2 => Some(InterruptStack::NonMaskable),
            8 => Some(InterruptStack::DoubleFault),
            18 => Some(InterruptStack::MachineCheck),
            _ => None,
        };
        *gate = Gate::new(address, stack, vector == BREAKPOINT);
    }
}

/// From now on faults in kernel mode are reported wherever RSP points. Called once, by the first
/// processor, when its task state is loaded; others load theirs before the table.
pub(super) fn use_fault_stack() {
    // SAFETY: it runs once, alone; until the next fault no processor reads these entries.
    let table = unsafe { &mut TABLE.get_mut().0 };
    for vector in [6, 13, 14] {
        // SAFETY: as in `init`: only the address is taken.
        let address = unsafe { &raw const interrupt_vectors[vector] } as u64;
        table[vector] = Gate::new(address, Some(InterruptStack::Fault), false);
    }
}

/// Makes the table that of the executing processor.
///
/// # Safety
/// [`init`] has run, and the processor's task state with its interrupt stacks is loaded or will be
/// before the first interrupt that uses one.
pub(super) unsafe fn load() {
    #[repr(C, packed)]
    struct Pointer {
        limit: u16,
        base: u64,
    }
    let pointer = Pointer { limit: size_of::<Table>() as u16 - 1, base: &raw const *TABLE.get() as u64 };
    // SAFETY: the table is static and filled.
    unsafe { asm!("lidt [{}]", in(reg) &pointer, options(readonly, nostack, preserves_flags)) }
}
