//! How a running thread loses the processor to another: immediately, later, silently, or with a
//! message to its exception handler (X.2 rules 4.1 to 4.14). The program says what it wants in its
//! preemption flags, which are read when it happens.

use core::ptr::eq;

use x2::{protocol::exception, utcb::preempt_flags as flags};

use super::Scheduler;
use super::timeouts::{Microseconds, NEVER};
use crate::arch;
use crate::thread::{Continuation, ThreadRef, flag, pending};

/// What becomes of a running thread when one of higher priority is ready.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It runs on: the preemption is delayed, or it has an exception to raise first.
    GoesOn,
    /// It waits.
    Loses,
}

impl Scheduler {
    /// Decides about `thread`, which runs, when a thread with priority `by` is ready: by an event
    /// that has nothing to do with what it did (`asynchronous`), or by its own sending.
    #[cold]
    pub(super) fn preempt(&self, thread: ThreadRef, by: u8, asynchronous: bool) -> Verdict {
        let now = arch::clock();
        let sensitive = by <= thread.sensitive_priority.get();
        if self.delayed.get().is_some_and(|delayed| eq(delayed, thread)) {
            if sensitive && now < self.delay_end.get() {
                return Verdict::GoesOn;
            }
            let wanted = thread.preempt_flags();
            self.end_delay();
            if sensitive {
                thread.clear_preempt_flags(flags::DELAY);
                if wanted & (flags::SIGNAL | flags::DELAY) == flags::SIGNAL | flags::DELAY {
                    return raise(thread);
                }
            }
            return signal(thread, wanted, now, true);
        }
        let wanted = thread.preempt_flags();
        if wanted & flags::DELAY != 0 && sensitive {
            let longest = Microseconds::from(thread.maximum_delay.get());
            if longest > 0 {
                thread.add_preempt_flags(flags::PENDING);
                self.delayed.set(Some(thread));
                self.delay_end.set(now.saturating_add(longest).min(self.slice_end.get()));
                self.update_special();
                return Verdict::GoesOn;
            }
            if wanted & flags::SIGNAL != 0 {
                thread.clear_preempt_flags(flags::DELAY | flags::PENDING);
                return raise(thread);
            }
            return Verdict::Loses;
        }
        signal(thread, wanted, now, asynchronous)
    }

    /// Whether the running thread's delay is over at `now`, and another thread waits for that.
    pub(super) fn delay_is_over(&self, now: Microseconds) -> bool {
        if self.delayed.get().is_none() || now < self.delay_end.get() {
            return false;
        }
        let wanted =
            self.ready.highest_priority().is_some_and(|highest| highest > self.running_priority.get());
        if !wanted {
            self.end_delay();
        }
        wanted
    }

    /// The delay of a preemption, if there is one, ends: the thread has lost the processor, or
    /// loses it now.
    pub(super) fn end_delay(&self) {
        if let Some(thread) = self.delayed.take() {
            thread.clear_preempt_flags(flags::PENDING);
            self.delay_end.set(NEVER);
            self.update_special();
        }
    }

    /// `loser`'s timeslice has ended and another thread runs: what it asked to be told.
    #[cold]
    pub(super) fn timeslice_lost(&self, loser: ThreadRef) {
        signal(loser, loser.preempt_flags(), arch::clock(), true);
    }
}

/// A preemption fault, if the thread wants one: told when it runs again, with the present time (X.2
/// rule 4.12).
fn signal(thread: ThreadRef, wanted: u8, now: Microseconds, asynchronous: bool) -> Verdict {
    if asynchronous && wanted & flags::SIGNAL != 0 && thread.continuation() == Continuation::ReturnToUser {
        thread.preempted_at.set(now);
        thread.set_pending(pending::PREEMPTED, true);
    }
    Verdict::Loses
}

/// A preemption exception, sent before anything else happens (X.2 rule 4.10).
fn raise(thread: ThreadRef) -> Verdict {
    if thread.continuation() != Continuation::ReturnToUser || thread.has(flag::HALTED) {
        return Verdict::Loses;
    }
    thread.fault[0].set(exception::PREEMPTION_NUMBER);
    thread.fault[1].set(0);
    thread.set_continuation(Continuation::RaiseException);
    Verdict::GoesOn
}
