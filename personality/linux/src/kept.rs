//! What Linux keeps for each thread, in addition to the core: an interrupted call, what its last
//! attempt has looked up, and the addresses of the words that others wait for at its end.

use crate::decoded::Decoded;
use crate::futex::{Futexes, MemoryWords, RobustList};
use crate::layout::signal::wait_status;
use crate::linux::Linux;
use alloc::boxed::Box;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use mach::Machine;
use unix::clock::Clock;
use unix::process::{ExitStatus, TraceEvent};
use unix::signal::DefaultAction;
use unix::sync::SpinLock;
use unix::thread::Thread;

/// What remains of an interrupted call that is to be continued (restart_syscall).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Continuation {
    /// A sleep until `deadline` on the monotonic clock; what is left is written to `remaining` (0:
    /// nowhere) if it is interrupted again.
    Sleep {
        /// The clock that the program named.
        clock: Clock,
        /// Monotonic time.
        deadline: Duration,
        /// Address of the timespec that gets the remaining time.
        remaining: u64,
    },
    /// A poll.
    Poll {
        /// Address of the array of pollfd structures.
        array: u64,
        /// Entries.
        count: u64,
        /// Monotonic time at which the wait ends, if it does.
        deadline: Option<Duration>,
    },
    /// A futex wait with a timeout.
    Futex {
        /// Address of the futex word.
        address: u64,
        /// Whether other processes may map the futex word.
        shared: bool,
        /// The value that the futex word must have for the wait to begin.
        expected: u32,
        /// The bits of the futex wait (FUTEX_WAIT_BITSET).
        bits: u32,
        /// Monotonic time.
        deadline: Duration,
    },
}

/// Addresses of words in a thread's memory, which its record holds; 0: none. Only the thread itself
/// changes them once it has begun, so no order of accesses matters.
pub(crate) struct Addresses<'a> {
    /// Head of its list of robust futexes.
    pub(crate) robust_list: &'a AtomicU64,
    /// Where to store 0 and wake a futex at its end (set_tid_address).
    pub(crate) clear_child_tid: &'a AtomicU64,
}

impl<'a> Addresses<'a> {
    /// Those of this thread.
    pub(crate) fn of<M: Machine>(thread: &'a Thread<M>) -> Addresses<'a> {
        let [robust_list, clear_child_tid] = thread.front_end_words();
        Addresses { robust_list, clear_child_tid }
    }
}

/// What Linux keeps for a thread.
pub struct Kept<M: Machine> {
    pub(crate) decoded: Decoded<M>,
    continuation: SpinLock<Option<Continuation>>,
}

impl<M: Machine> Default for Kept<M> {
    fn default() -> Self {
        Self { decoded: Decoded::default(), continuation: SpinLock::new(None) }
    }
}

impl<M: Machine> Kept<M> {
    /// Takes what remains of its interrupted call, to continue the call.
    pub(crate) fn take_continuation(&self) -> Option<Continuation> {
        self.continuation.lock().take()
    }

    /// Keeps the state of the thread's interrupted call, to restart it.
    pub(crate) fn set_continuation(&self, continuation: Continuation) {
        *self.continuation.lock() = Some(continuation);
    }
}

impl<M: Machine> Linux<M> {
    /// What a thread does when it leaves its address space, at its end or at exec: robust locks,
    /// and the word that is cleared.
    pub(crate) async fn leave_memory(&self, thread: &Thread<M>) {
        let (words, addresses) = (MemoryWords(thread.memory()), Addresses::of(thread));
        let take = |address: &AtomicU64| address.swap(0, Ordering::Relaxed);
        let robust = take(addresses.robust_list);
        if robust != 0 {
            RobustList { head: robust }.release(&self.futexes, &words, thread.own_numbers().thread).await;
        }
        let clear = take(addresses.clear_child_tid);
        if clear != 0 && thread.memory().copy_out(clear, &0u32.to_le_bytes()).await.is_ok() {
            let _ = self.futexes.wake(&words, clear, true, 1, Futexes::ANY).await;
        }
    }

    /// Lets a thread that is about to end report that to its tracer, if that has asked for it.
    async fn report_exit(&self, thread: &Thread<M>, status: ExitStatus) {
        let (tid, processes) = (thread.tid(), thread.system().processes());
        let message = wait_status(status.event()).into();
        if let Some(stop) = processes.with(|table| table.event_stop(tid, TraceEvent::Exit, message)) {
            processes.stop_for_tracer(tid, stop, None).await;
        }
    }

    /// Ends a thread: releases its locks first.
    pub(crate) async fn exit(&self, thread: &Thread<M>, status: ExitStatus) {
        if let ExitStatus::Killed(signal) = status
            && signal.default_action() == DefaultAction::Core
        {
            Box::pin(self.dump(thread)).await;
        }
        if thread.is_observed() {
            self.report_exit(thread, status).await;
        }
        let leaving = async {
            thread.unless_memory_is_expected(self.leave_memory(thread)).await;
            self.futexes.owner_ended(crate::futex::holder(thread.own_numbers())).await;
        };
        thread.exit(status, leaving).await;
    }
}
