//! What Linux keeps for each thread, in addition to the core: an interrupted call, what its last
//! attempt has looked up, and the addresses of the words that others wait for at its end.

use crate::decoded::Decoded;
use crate::futex::{Futexes, MemoryWords, RobustList};
use crate::linux::Linux;
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use mach::Machine;
use unix::clock::Clock;
use unix::process::{ExitStatus, Pid};
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

/// Addresses of words in a thread's memory; 0: none. Only the thread itself changes them, so no
/// order of accesses matters.
#[derive(Default)]
pub(crate) struct Addresses {
    /// Head of its list of robust futexes.
    robust_list: AtomicU64,
    /// Where to store 0 and wake a futex at its end (set_tid_address).
    clear_child_tid: AtomicU64,
}

/// The addresses of all threads that have begun or are about to, by their numbers.
#[derive(Clone, Default)]
pub(crate) struct Threads(Arc<SpinLock<BTreeMap<Pid, Arc<Addresses>>>>);

impl Threads {
    /// A thread that has not begun will have this `clear_child_tid`.
    pub(crate) fn announce(&self, tid: Pid, clear_child_tid: u64) {
        let addresses =
            Addresses { clear_child_tid: AtomicU64::new(clear_child_tid), ..Addresses::default() };
        let _old = self.0.lock().insert(tid, Arc::new(addresses));
    }

    /// The head of a thread's list of robust futexes.
    pub(crate) fn robust_list(&self, tid: Pid) -> u64 {
        self.0.lock().get(&tid).map_or(0, |addresses| addresses.robust_list.load(Ordering::Relaxed))
    }
}

/// What Linux keeps for a thread.
pub struct Kept<M: Machine> {
    tid: Pid,
    pub(crate) decoded: Decoded<M>,
    continuation: SpinLock<Option<Continuation>>,
    addresses: Arc<Addresses>,
    threads: Threads,
}

impl<M: Machine> Kept<M> {
    /// For a thread that begins its program. If that is its process's second program, the old
    /// thread of this number is not known any more.
    pub(crate) fn new(threads: &Threads, thread: &Thread<M>) -> Kept<M> {
        let tid = thread.tid();
        let addresses = {
            let mut all = threads.0.lock();
            let addresses = all.entry(tid).or_default();
            // What only the map holds was announced.
            if Arc::strong_count(addresses) > 1 {
                *addresses = Arc::default();
            }
            addresses.clone()
        };
        Kept {
            tid,
            decoded: Decoded::default(),
            continuation: SpinLock::new(None),
            addresses,
            threads: threads.clone(),
        }
    }

    /// Takes what remains of its interrupted call, to continue the call.
    pub(crate) fn take_continuation(&self) -> Option<Continuation> {
        self.continuation.lock().take()
    }

    /// Keeps the state of the thread's interrupted call, to restart it.
    pub(crate) fn set_continuation(&self, continuation: Continuation) {
        *self.continuation.lock() = Some(continuation);
    }

    /// Sets the head of its list of robust futexes.
    pub(crate) fn set_robust_list(&self, head: u64) {
        self.addresses.robust_list.store(head, Ordering::Relaxed);
    }

    /// Sets the word that is cleared at its end.
    pub(crate) fn set_clear_child_tid(&self, address: u64) {
        self.addresses.clear_child_tid.store(address, Ordering::Relaxed);
    }
}

impl<M: Machine> Drop for Kept<M> {
    fn drop(&mut self) {
        let mut all = self.threads.0.lock();
        // A thread of a later program may have the number.
        if let Entry::Occupied(found) = all.entry(self.tid)
            && Arc::ptr_eq(found.get(), &self.addresses)
        {
            found.remove();
        }
    }
}

impl<M: Machine> Linux<M> {
    /// What a thread does when it leaves its address space, at its end or at exec: robust locks,
    /// and the word that is cleared.
    pub(crate) async fn leave_memory(&self, thread: &Thread<M>, kept: &Kept<M>) {
        let words = MemoryWords(thread.memory());
        let take = |address: &AtomicU64| address.swap(0, Ordering::Relaxed);
        let robust = take(&kept.addresses.robust_list);
        if robust != 0 {
            RobustList { head: robust }.release(&self.futexes, &words, thread.tid().number()).await;
        }
        let clear = take(&kept.addresses.clear_child_tid);
        if clear != 0 && thread.memory().copy_out(clear, &0u32.to_le_bytes()).await.is_ok() {
            let _ = self.futexes.wake(&words, clear, true, 1, Futexes::ANY).await;
        }
    }

    /// Ends a thread: releases its locks first.
    pub(crate) async fn exit(&self, thread: &Thread<M>, kept: &Kept<M>, status: ExitStatus) {
        let leaving = async {
            thread.unless_memory_is_expected(self.leave_memory(thread, kept)).await;
            self.futexes.owner_ended(thread.tid().number()).await;
        };
        thread.exit(status, leaving).await;
    }
}
