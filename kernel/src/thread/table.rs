//! From thread number to thread: one flat table, so that a lookup is one load (and the comparison of the id).

use core::ptr::{eq, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use x2::ThreadId;

use super::{Tcb, ThreadRef};

/// Valid bits of a thread number (KIP ThreadInfo).
pub const NUMBER_BITS: u32 = 18;
/// Number of thread numbers.
pub const NUMBERS: usize = 1 << NUMBER_BITS;

/// All threads of the system by number.
///
/// Written by ThreadControl on behalf of one privileged thread at a time; read by any processor at any time. TCBs are
/// type-stable, so a reader that races with a deletion finds a TCB whose id no longer matches.
#[repr(C)]
pub struct ThreadTable {
    threads: [AtomicPtr<Tcb>; NUMBERS],
    /// One more than the highest number ever used: bounds every walk.
    end: AtomicU32,
}

/// Who is in the table where no thread is: entry code compares ids without looking for null.
struct Nobody(Tcb);

// SAFETY: it has no id by which anybody could find it, so nothing in it ever changes.
unsafe impl Sync for Nobody {}

static NOBODY: Nobody = Nobody(Tcb::new());

/// The table, at its beginning the pointers, for entry code.
pub static THREADS: ThreadTable = ThreadTable::new();

/// The system's threads.
#[inline]
pub fn threads() -> &'static ThreadTable {
    &THREADS
}

impl ThreadTable {
    /// A table without threads.
    const fn new() -> Self {
        Self { threads: [const { AtomicPtr::new(null_mut()) }; NUMBERS], end: AtomicU32::new(0) }
    }

    /// The thread with this number, whatever its version.
    #[inline]
    pub fn by_number(&self, number: u32) -> Option<ThreadRef> {
        // Acquire: pairs with the release in `set`, so that the TCB's first contents are visible.
        let thread = self.threads.get(number as usize)?.load(Ordering::Acquire);
        // SAFETY: the table holds null or pointers made from references that live for ever.
        unsafe { thread.as_ref() }.filter(|&thread| !eq(thread, &raw const NOBODY.0))
    }

    /// Makes the table one that entry code can look into.
    pub fn init(&self) {
        (0..NUMBERS as u32).for_each(|number| self.set(number, None));
    }

    /// The thread that `id`, a global id, names.
    #[inline]
    pub fn find(&self, id: ThreadId) -> Option<ThreadRef> {
        self.by_number(id.number()).filter(|thread| thread.id() == id)
    }

    /// Makes `thread` the thread with this number, which must be below [`NUMBERS`].
    pub fn set(&self, number: u32, thread: Option<ThreadRef>) {
        let pointer = core::ptr::from_ref(thread.unwrap_or(&NOBODY.0)).cast_mut();
        // Release: see `by_number`.
        self.threads[number as usize].store(pointer, Ordering::Release);
        if thread.is_some() {
            self.end.fetch_max(number + 1, Ordering::Relaxed);
        }
    }

    /// A bound of the numbers in use.
    pub fn end(&self) -> u32 {
        self.end.load(Ordering::Relaxed)
    }

    /// Forgets all threads, of an earlier test's machine.
    #[cfg(test)]
    pub(crate) fn clear(&self) {
        for number in 0..self.end() {
            self.set(number, None);
        }
        self.end.store(0, Ordering::Relaxed);
    }

    /// All threads in order of their numbers. Home processors may be changing them.
    pub fn iter(&self) -> impl Iterator<Item = ThreadRef> + '_ {
        (0..self.end()).filter_map(|number| self.by_number(number))
    }
}
