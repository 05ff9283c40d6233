//! What each processor has for itself (K5, K6), apart from what only the architecture knows.

use core::cell::Cell;
use core::ptr::{eq, from_ref, null};

use handover::{Attention, Idle, Node, RequestQueue, Requests};

use crate::arch;
use crate::config::{self, FastPath};
use crate::scheduler::{Scheduler, quantum};
use crate::space::Space;
use crate::sync::delay::{self, Point};
use crate::sync::{ActiveRoot, Requested, SharedFlag};
use crate::thread::{Followers, ThreadRef, breakpoints};

/// One processor's part of the kernel. Only that processor touches it, with interrupts off, except
/// for the public part.
pub struct Processor {
    /// The part that other processors read.
    pub public: Public,
    /// The thread that runs or on whose behalf the kernel works; `None` while idle.
    pub current: Cell<Option<ThreadRef>>,
    /// The space whose page table is loaded; `None` = the kernel's own. While a program runs it is
    /// the current thread's.
    pub loaded_space: Cell<Option<&'static Space>>,
    /// The thread whose FS base, GS base and extended state the processor holds. While a program
    /// runs it is the current one.
    pub loaded_thread: Cell<Option<ThreadRef>>,
    /// Whether system calls may take the fast path. Off by boot option, while events are traced
    /// that it would miss, and while a thread has a finite total quantum, whose use it would not
    /// count. While a thread has breakpoints, only the portable one is allowed.
    pub fast_path: Cell<bool>,
    /// The fast paths that are allowed now.
    allowed: Cell<FastPath>,
    /// Ready threads, timeslices and timeouts.
    pub scheduler: Scheduler,
    /// Interrupts and threads that have come, and are not handled yet.
    pub arriving: Arriving,
    /// Threads that are still to go after a thread that has moved. As with arriving threads, there
    /// are none while the processor is at user level.
    pub followers: Followers,
}

impl Processor {
    /// A processor that has no threads.
    pub const fn new() -> Self {
        Self {
            public: Public::new(),
            current: Cell::new(None),
            loaded_space: Cell::new(None),
            loaded_thread: Cell::new(None),
            fast_path: Cell::new(false),
            allowed: Cell::new(FastPath::Off),
            scheduler: Scheduler::new(),
            arriving: Arriving::new(),
            followers: Followers::new(),
        }
    }

    /// Something has changed that the fast path depends on, or the processor begins to run threads.
    pub fn update_fast_path(&self) {
        let allowed = !FAST_PATH_FORBIDDEN.get() && !quantum::are_finite();
        let allowed = if allowed { config::get().fast_path } else { FastPath::Off };
        // The assembly does not switch breakpoints.
        let allowed = if breakpoints::are_set() { allowed.min(FastPath::Portable) } else { allowed };
        if self.allowed.replace(allowed) != allowed {
            self.fast_path.set(allowed >= FastPath::Portable);
            arch::allow_fast_entry(allowed == FastPath::Assembly);
        }
    }

    /// The kernel was entered from the current thread's program, which the fast path in assembly
    /// may have switched to.
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

static FAST_PATH_FORBIDDEN: SharedFlag = SharedFlag::new(false);

/// Allows the fast path on all processors, as far as the boot options do, or forbids it.
pub fn allow_fast_path(allowed: bool) {
    FAST_PATH_FORBIDDEN.set(!allowed);
    this().update_fast_path();
    alert_others();
}

/// What a processor has taken out of its request queues and not served yet, because it gives way to
/// an interrupt. It is empty at user level, and while the processor is idle.
pub struct Arriving {
    /// Threads that are still under way, as if they lay in the request queue. Threads that have
    /// arrived stand in the ready queue's ring.
    pub threads: Cell<Requests>,
    /// Interrupts.
    pub interrupts: Cell<Requests>,
    /// The thread that was running when the requests came.
    pub interrupted: Cell<Option<ThreadRef>>,
}

impl Arriving {
    const fn new() -> Self {
        Self {
            threads: Cell::new(Requests::new()),
            interrupts: Cell::new(Requests::new()),
            interrupted: Cell::new(None),
        }
    }
}

/// The part of a processor that other processors use or read.
pub struct Public {
    /// Threads that are being moved to this processor (K6).
    pub threads: RequestQueue,
    /// Interrupts that are being moved to this processor.
    pub interrupts: RequestQueue,
    /// Whether the processor looks at its request queues by itself.
    pub attention: Attention,
    /// Whether the processor is idle, so that another may act in its place.
    pub idle: Idle,
    /// The root of the page table that is loaded. By it, a processor that changes a space's pages
    /// finds the processors whose TLBs may hold them.
    pub active_root: ActiveRoot,
    /// Whether another processor has left a request to forget something, and waits.
    pub requested: Requested,
    /// Whether the processor serves cross-processor requests: it has got as far as running threads.
    pub runs: SharedFlag,
}

impl Public {
    const fn new() -> Self {
        Self {
            threads: RequestQueue::new(),
            interrupts: RequestQueue::new(),
            attention: Attention::new(),
            idle: Idle::new(),
            active_root: ActiveRoot::new(),
            requested: Requested::new(),
            runs: SharedFlag::new(false),
        }
    }

    /// Whether anything has come.
    #[inline]
    pub fn has_requests(&self) -> bool {
        self.threads.has_requests() || self.interrupts.has_requests()
    }
}

/// Posts to a processor: `queue` is one of its own. Interrupts the processor if it would not look
/// there by itself.
pub fn post(number: u16, queue: impl Fn(&'static Public) -> &'static RequestQueue, nodes: &[&'static Node]) {
    delay::at(Point::Post);
    let public = arch::processor(u32::from(number));
    if queue(public).post(nodes) && public.attention.is_needed() {
        arch::request_attention(u32::from(number));
    }
}

/// Interrupts all other processors: each looks at what has changed before it goes on at user level.
pub fn alert_others() {
    let here = arch::cpu_number();
    (0..arch::cpu_count()).filter(|&number| number != here).for_each(arch::request_attention);
}

/// The executing processor.
#[inline]
pub fn this() -> &'static Processor {
    &crate::arch::cpu_local().processor
}
