//! What each processor has for itself (K5, K6), apart from what only the architecture knows.

use core::cell::Cell;

use crate::scheduler::Scheduler;
use crate::space::Space;
use crate::thread::ThreadRef;

/// One processor's part of the kernel. Only that processor touches it, with interrupts off.
pub struct Processor {
    /// The thread that runs or on whose behalf the kernel works; `None` while idle.
    pub current: Cell<Option<ThreadRef>>,
    /// The space whose page table is loaded; `None` = the kernel's own.
    pub loaded_space: Cell<Option<&'static Space>>,
    /// The thread whose FS base, GS base and extended state the processor holds.
    pub loaded_thread: Cell<Option<ThreadRef>>,
    /// Ready threads, timeslices and timeouts.
    pub scheduler: Scheduler,
}

impl Processor {
    /// An idle processor.
    pub const fn new() -> Self {
        Self {
            current: Cell::new(None),
            loaded_space: Cell::new(None),
            loaded_thread: Cell::new(None),
            scheduler: Scheduler::new(),
        }
    }

    /// Whether `thread` is the one on whose behalf the kernel works.
    #[inline]
    pub fn is_current(&self, thread: ThreadRef) -> bool {
        self.current.get().is_some_and(|current| core::ptr::eq(current, thread))
    }
}

impl Default for Processor {
    fn default() -> Self {
        Self::new()
    }
}

/// The executing processor.
#[inline]
pub fn this() -> &'static Processor {
    &crate::arch::cpu_local().processor
}
