//! What each processor has for itself (K5, K6), apart from what only the architecture knows.

use core::cell::Cell;
use core::ptr::{eq, from_ref, null};

use crate::arch;
use crate::config::{self, FastPath};
use crate::scheduler::Scheduler;
use crate::space::Space;
use crate::thread::ThreadRef;

/// One processor's part of the kernel. Only that processor touches it, with interrupts off.
pub struct Processor {
    /// The thread that runs or on whose behalf the kernel works; `None` while idle.
    pub current: Cell<Option<ThreadRef>>,
    /// The space whose page table is loaded; `None` = the kernel's own. While a program runs it is the current thread's.
    pub loaded_space: Cell<Option<&'static Space>>,
    /// The thread whose FS base, GS base and extended state the processor holds. While a program runs it is the current one.
    pub loaded_thread: Cell<Option<ThreadRef>>,
    /// Whether system calls may take the fast path. Off by boot option, while events are traced that it would miss, and
    /// while a thread has a finite total quantum, which it would not meter.
    pub fast_path: Cell<bool>,
    fast_path_wanted: Cell<bool>,
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
            fast_path: Cell::new(false),
            fast_path_wanted: Cell::new(false),
            scheduler: Scheduler::new(),
        }
    }

    /// Allows the fast path, as far as the boot options do, or forbids it.
    pub fn allow_fast_path(&self, allowed: bool) {
        self.fast_path_wanted.set(allowed);
        self.update_fast_path();
    }

    /// Something has changed that the fast path depends on.
    pub fn update_fast_path(&self) {
        let allowed = self.fast_path_wanted.get() && !self.scheduler.has_finite_quanta();
        let allowed = if allowed { config::get().fast_path } else { FastPath::Off };
        self.fast_path.set(allowed >= FastPath::Portable);
        arch::allow_fast_entry(allowed == FastPath::Assembly);
    }

    /// The kernel was entered from the current thread's program, which the fast path in assembly may have switched to.
    #[inline]
    pub fn entered_from(&self, current: ThreadRef) {
        self.loaded_thread.set(Some(current));
        self.loaded_space.set(current.space.get());
    }

    /// Whether the processor holds the registers of `thread`, and its space.
    #[inline]
    pub fn has_loaded(&self, thread: ThreadRef) -> bool {
        let space = |space: Option<&'static Space>| space.map_or(null(), from_ref);
        self.loaded_thread.get().is_some_and(|loaded| eq(loaded, thread))
            && eq(space(self.loaded_space.get()), space(thread.space.get()))
    }

    /// Whether `thread` is the one on whose behalf the kernel works.
    #[inline]
    pub fn is_current(&self, thread: ThreadRef) -> bool {
        self.current.get().is_some_and(|current| eq(current, thread))
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
