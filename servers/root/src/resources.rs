//! The resources that servers compete for: memory, thread numbers, spaces, interrupt lines.

use crate::frames::Frames;
use crate::functions::{Bridge, Function};
use crate::iommu::Iommu;
use crate::machine::Machine;
use crate::pools::Pools;
use crate::server::{id, name};
use crate::shares::Shares;
use crate::spaces::Spaces;
use crate::thread_numbers::{ServerIndex, ThreadName, ThreadNumbers};
use alloc::vec::Vec;
use x2::ThreadId;
use x2::boot_info::Screen;

/// The free resources of the machine, which root gives to servers.
pub(crate) struct Resources<M> {
    pub(crate) machine: M,
    pub(crate) frames: Frames,
    pub(crate) numbers: ThreadNumbers,
    pub(crate) spaces: Spaces,
    pub(crate) shares: Shares,
    pub(crate) pools: Pools,
    /// The interrupt lines that are attached, each with the thread that gets its messages.
    pub(crate) lines: Vec<(u32, ThreadName)>,
    /// The machine's screen, if it has one.
    pub(crate) screen: Option<Screen>,
    /// The PCI functions of the machine; empty if no server is configured to have one.
    pub(crate) functions: Vec<Function>,
    /// The PCI bridges of the machine, as far as functions are known.
    pub(crate) bridges: Vec<Bridge>,
    /// The units between functions and memory.
    pub(crate) iommu: Iommu,
}

impl<M: Machine> Resources<M> {
    /// Whether `thread` lives in the own space of server `index`, not in a space that the server
    /// owns.
    pub(crate) fn is_own(&self, index: ServerIndex, thread: ThreadId) -> bool {
        thread.is_global() && self.numbers.is_own(index, name(thread))
    }

    /// Ends a thread. The kernel also ends what depends on it: its interrupts and, if it is the
    /// last of its space, the space.
    pub(crate) fn end_thread(&mut self, thread: ThreadName) {
        self.machine.delete_thread(id(thread)).expect("deletion of a thread never fails");
        self.forget_thread(thread);
    }

    /// Frees the number of a thread that has been deleted.
    pub(crate) fn forget_thread(&mut self, thread: ThreadName) {
        self.numbers.free(thread);
        self.lines.retain(|&(_, handler)| handler != thread);
        self.forget_messages(thread);
    }
}
