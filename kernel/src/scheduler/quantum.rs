//! Total quanta (X.2 rules 3.18 to 3.23): the time that a thread may use at all. The thread that
//! runs uses it up, also while it runs on the timeslice of another. Only threads with a finite
//! quantum cost anything.

use core::ptr::eq;
use core::sync::atomic::{AtomicU32, Ordering};

use super::Scheduler;
use super::timeouts::{Microseconds, NEVER};
use crate::thread::{Tcb, ThreadRef, pending};
use crate::{arch, processor};

/// How many threads have a finite total quantum.
static FINITE_QUANTA: AtomicU32 = AtomicU32::new(0);

/// Whether the total quantum of some thread is finite, so that its time must be counted.
pub fn are_finite() -> bool {
    FINITE_QUANTA.load(Ordering::Relaxed) != 0
}

/// Resets the count after an earlier test's machine.
#[cfg(test)]
pub(crate) fn reset() {
    FINITE_QUANTA.store(0, Ordering::Relaxed);
}

impl Scheduler {
    /// `thread` (`None`: the processor idles) runs from now on.
    #[inline]
    pub fn meter(&self, thread: Option<ThreadRef>) {
        if thread.map_or(self.metered.get().is_some(), |thread| self.meters(thread)) {
            self.meter_another(thread);
        }
    }

    /// Whether something is to be metered when `thread` runs, or was until then.
    #[inline]
    pub fn meters(&self, thread: ThreadRef) -> bool {
        self.metered.get().is_some() || thread.quantum_left.get() != NEVER
    }

    #[cold]
    fn meter_another(&self, thread: Option<ThreadRef>) {
        let before = self.metered.get();
        if before.is_some_and(|before| thread.is_some_and(|thread| eq(before, thread))) {
            return;
        }
        let now = arch::clock();
        before.inspect(|before| self.use_quantum(before, now));
        let finite = |thread: &ThreadRef| !matches!(thread.quantum_left.get(), 0 | NEVER);
        self.metered.set(thread.filter(finite));
        self.metered_since.set(now);
        self.update_special();
    }

    /// Subtracts the time until `now` from the running thread's total quantum.
    fn use_quantum(&self, thread: ThreadRef, now: Microseconds) {
        let used = now.saturating_sub(self.metered_since.get());
        let left = thread.quantum_left.get().saturating_sub(used);
        thread.quantum_left.set(left);
        if left == 0 {
            thread.quantum_over_at.set(now);
            thread.set_pending(pending::OUT_OF_QUANTUM, true);
        }
    }

    /// When the metered thread's quantum is used up.
    pub(super) fn quantum_end(&self) -> Microseconds {
        self.metered
            .get()
            .map_or(NEVER, |thread| self.metered_since.get().saturating_add(thread.quantum_left.get()))
    }

    /// If the metered thread's quantum is used up at `now`, it stops before it returns to user
    /// level.
    pub(super) fn end_quantum(&self, now: Microseconds) {
        if let Some(thread) = self.metered.get()
            && now >= self.quantum_end()
        {
            self.use_quantum(thread, now);
            self.metered.set(None);
        }
    }

    /// The rest of `thread`'s total quantum; `NEVER` = infinite.
    pub fn quantum_left(&self, thread: &Tcb) -> Microseconds {
        if self.metered.get().is_some_and(|metered| eq(metered, thread)) {
            return self.quantum_end().saturating_sub(arch::clock());
        }
        thread.quantum_left.get()
    }

    /// `thread`'s total quantum is `quantum` from now on.
    pub(super) fn count_quantum(&self, thread: ThreadRef, quantum: Microseconds) {
        let before = thread.quantum_left.replace(quantum) != NEVER;
        let after = quantum != NEVER;
        if before != after {
            // Relaxed: the processors are told.
            let change = if after { 1 } else { u32::MAX };
            let count = FINITE_QUANTA.fetch_add(change, Ordering::Relaxed);
            if count == u32::from(!after) {
                processor::this().update_fast_path();
                processor::alert_others();
            }
        }
    }

    /// The metered thread runs no more: books what it has used.
    pub(super) fn stop_meter(&self) {
        if let Some(thread) = self.metered.take() {
            self.use_quantum(thread, arch::clock());
            self.update_special();
        }
    }

    /// Gives `thread` a new total quantum, more than 0, in place of the rest of the old one.
    pub fn set_quantum(&self, thread: ThreadRef, quantum: Microseconds) {
        if self.metered.get().is_some_and(|metered| eq(metered, thread)) {
            // The thread's metering begins again when it goes on.
            self.metered.set(None);
            self.update_special();
        }
        self.count_quantum(thread, quantum);
        thread.set_pending(pending::OUT_OF_QUANTUM | pending::STOPPED, false);
    }
}
