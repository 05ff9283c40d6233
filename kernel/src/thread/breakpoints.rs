//! Breakpoints of threads, which the owner of their space sets (K15). A thread with breakpoints has
//! room for its extended registers; the breakpoints are there, too. The switch of these registers
//! loads them, which the fast path in assembly does not do: it is off on all processors as long as
//! there is such a thread.

use core::sync::atomic::{AtomicU32, Ordering};

use super::{Tcb, ThreadRef, lifecycle};
use crate::arch::{self, ExtendedState, ProgramBreakpoints};
use crate::processor;

/// How many threads have breakpoints that are enabled.
static THREADS: AtomicU32 = AtomicU32::new(0);

/// Whether some thread has breakpoints.
pub fn are_set() -> bool {
    THREADS.load(Ordering::Relaxed) != 0
}

/// How many threads have breakpoints.
#[cfg(test)]
pub(crate) fn count() -> usize {
    THREADS.load(Ordering::Relaxed) as usize
}

/// Resets the count after an earlier test's machine.
#[cfg(test)]
pub(crate) fn reset() {
    THREADS.store(0, Ordering::Relaxed);
}

impl Tcb {
    /// The thread's breakpoints, if any are enabled.
    pub fn breakpoints(&self) -> Option<ProgramBreakpoints> {
        self.extended_state.get().map(arch::read_breakpoints).filter(ProgramBreakpoints::are_enabled)
    }
}

/// Sets the breakpoints, which are valid, of the thread with this room. The processor does not hold
/// its registers. Breakpoints of which none is enabled are forgotten.
pub fn set(state: &'static ExtendedState, breakpoints: &ProgramBreakpoints) {
    let (had, has) = (arch::read_breakpoints(state).are_enabled(), breakpoints.are_enabled());
    // The thread's processor switches without the assembly before the thread has breakpoints.
    // Another processor to which the thread goes finds the count when it takes in the thread.
    // The word of the first such thread, on another processor, may not have come here yet.
    if has && !had {
        let first = THREADS.fetch_add(1, Ordering::Relaxed) == 0;
        processor::this().update_fast_path();
        if first {
            processor::alert_others();
        }
    }
    arch::write_breakpoints(state, if has { breakpoints } else { &ProgramBreakpoints::NONE });
    if had && !has && THREADS.fetch_sub(1, Ordering::Relaxed) == 1 {
        processor::this().update_fast_path();
        processor::alert_others();
    }
}

/// Notes why the current thread's last debug exception came, for the owner, if the thread has
/// breakpoints.
pub fn note_status(current: ThreadRef, status: u64) {
    if let (Some(state), Some(breakpoints)) = (current.extended_state.get(), current.breakpoints()) {
        arch::write_breakpoints(state, &ProgramBreakpoints { status, ..breakpoints });
    }
}

/// The thread, which does not run, will execute one instruction as a single step. Its breakpoints
/// are loaded again if it has some: the processor may not be able to do both. After the step the
/// thread has reported its exception, so the processor has held another one since, or none.
#[cold]
pub fn steps(thread: ThreadRef) {
    if thread.breakpoints().is_some() {
        lifecycle::forget_loaded(thread);
    }
}
