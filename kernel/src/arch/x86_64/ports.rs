//! Which I/O ports the executing processor lets the running program use: the permission bitmap of
//! its task state.
//!
//! The bitmap is to ports what a TLB is to memory: it caches, for one space at a time, part of what
//! the mapping database says, 64 ports at a time, filled by the handler of the exception that a
//! forbidden access raises. The bitmap counts only while the space that it was filled for is
//! active, and is never copied. A processor that leaves that space closes the bitmap, with one
//! store; entry code does so only if the space has used ports. If it is closed too often, the next
//! access opens it again.
use core::cell::Cell;
use core::mem::offset_of;

use super::gdt::PORT_WORDS;
use super::{cpu_local, shoot_down};
use crate::memory::PhysAddr;

/// The value that is no space's root table: no space's ports are loaded.
const NO_SPACE: u64 = 0;

/// The space for which the bitmap is filled, by its root table, and which words of it are not all
/// ones.
pub(super) struct Owner {
    root: Cell<u64>,
    first: Cell<usize>,
    last: Cell<usize>,
}

impl Owner {
    /// Where entry code finds the space for which the bitmap is filled.
    pub(super) const ROOT: usize = offset_of!(Self, root);

    pub(super) const fn new() -> Self {
        Self { root: Cell::new(NO_SPACE), first: Cell::new(PORT_WORDS), last: Cell::new(0) }
    }
}

/// The space with this root table becomes the active one.
#[inline]
pub(super) fn activate(root: PhysAddr) {
    let local = cpu_local();
    // SAFETY: the task state is this processor's, and interrupts are off.
    unsafe { (*local.task_state).use_bitmap(local.ports.root.get() == root.value()) };
}

/// Lets the active space, whose root table is at `root`, use the ports that are 1 in `open`, of the
/// 64 from 64 * `word` on, and no others of these.
pub fn load(root: PhysAddr, word: usize, open: u64) {
    let local = cpu_local();
    let owner = &local.ports;
    // SAFETY: the task state is this processor's, and interrupts are off.
    let task = unsafe { &mut *local.task_state };
    if owner.root.replace(root.value()) != root.value() {
        task.close_ports(owner.first.get(), owner.last.get());
        owner.first.set(PORT_WORDS);
        owner.last.set(0);
    }
    task.set_ports(word, open);
    owner.first.set(owner.first.get().min(word));
    owner.last.set(owner.last.get().max(word));
    task.use_bitmap(true);
}

/// The space with this root table has lost ports, or is going away: what any processor knows of its
/// ports is void.
pub fn forget(root: PhysAddr) {
    forget_here(root);
    shoot_down::forget_ports(root);
}

/// Forgets the ports of the space with this root table on the executing processor.
pub(super) fn forget_here(root: PhysAddr) {
    let local = cpu_local();
    if local.ports.root.get() == root.value() {
        local.ports.root.set(NO_SPACE);
        // SAFETY: the task state is this processor's, and interrupts are off.
        unsafe { (*local.task_state).use_bitmap(false) };
    }
}

/// Whether the active space, whose root table is at `root`, can use `port` now.
pub fn is_open(root: PhysAddr, port: u16) -> bool {
    let local = cpu_local();
    // SAFETY: the task state is this processor's, and interrupts are off.
    local.ports.root.get() == root.value() && unsafe { (*local.task_state).lets_use(port) }
}
