//! The OOM killer: it chooses the process that is ended when memory has run out. That is the
//! process with most memory, weighted as its users want it, whichever process needs a page. Threads
//! that need memory wait until the memory of the chosen process has been freed. Each of them waits
//! as a future, so that no worker blocks, and a thread that has to end stops waiting.

use super::{Resources, System};
use crate::BoxFuture;
use crate::memory::{Memory, PAGE};
use crate::personality::Task;
use crate::process::{ADJUSTMENT_UNIT, ExactPid, Pid};
use crate::sync::SpinLock;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::{Future, poll_fn};
use core::task::Poll;
use mach::Machine;
use mach::vm::{MapEnd, OomKiller};

/// How long the end of a process is waited for before another is chosen, in microseconds. A process
/// that takes longer is kept from ending by something other than memory.
const PATIENCE: u64 = 20_000_000;

/// An address space that is about to be destroyed.
struct Ending<M: Machine> {
    memory: u64,
    end: MapEnd<M>,
    /// Until when threads wait for the end of the address space, in the time of the machine
    /// (microseconds).
    deadline: u64,
}

/// The address spaces of ending processes for which threads that need memory wait.
pub(super) struct Endings<M: Machine> {
    endings: SpinLock<Vec<Ending<M>>>,
    /// Locked while a thread chooses a process, so that only one thread chooses at a time.
    choosing: macadamia_sync::Mutex<()>,
}

impl<M: Machine> Endings<M> {
    pub(super) fn new() -> Endings<M> {
        Endings { endings: SpinLock::new(Vec::new()), choosing: macadamia_sync::Mutex::new(()) }
    }
}

/// An address space and the processes that use it; they are ended together.
struct Holder<M: Machine> {
    memory: Arc<Task<M>>,
    processes: Vec<Pid>,
    /// Whether all processes of the address space are ending already.
    is_ending: bool,
    /// Whether init is one of the processes, or one that must not be ended.
    is_exempt: bool,
    adjustment: i16,
}

/// The badness of a process with `pages` in memory and swap space, of `total`: its size in pages,
/// changed by `adjustment` thousandths of all memory.
fn badness(pages: u64, adjustment: i16, total: u64) -> i64 {
    let [pages, total] = [pages, total].map(|count| i64::try_from(count).unwrap_or(i64::MAX));
    pages.saturating_add(i64::from(adjustment).saturating_mul(total) / ADJUSTMENT_UNIT)
}

impl<M: Machine> OomKiller for System<M> {
    fn make_room(&self) -> BoxFuture<'_, bool> {
        alloc::boxed::Box::pin(self.find_memory())
    }
}

impl<M: Machine> System<M> {
    /// How many pages programs and files can have in all.
    fn all_pages(&self) -> u64 {
        self.memory_use().total()
    }

    /// The score of a process for the OOM killer: the higher it is, the sooner the OOM killer
    /// chooses the process. It is 0 for a process that is never chosen, and 666 for one without
    /// memory and adjustment. `ESRCH`.
    pub async fn memory_score(&self, process: ExactPid) -> crate::Result<u64> {
        let adjustment = self
            .processes()
            .with(|table| table.exact_process(process).map(|process| process.memory_adjustment))?;
        let (total, memory) =
            (self.all_pages().max(1), self.thread_of_exact(process).map(|thread| thread.memory().clone()));
        if process.pid() == Pid::INIT || i64::from(adjustment) == -ADJUSTMENT_UNIT {
            return Ok(0);
        }
        let Some(memory) = memory else { return Ok(0) };
        let badness = badness(size(&memory).await, adjustment, total);
        let share = badness.saturating_mul(ADJUSTMENT_UNIT) / i64::try_from(total).unwrap_or(i64::MAX);
        Ok(u64::try_from((ADJUSTMENT_UNIT + share) * 2 / 3).unwrap_or(0))
    }

    /// Records that this address space is about to be destroyed, unless other processes use it:
    /// from now on threads that need memory wait for that. Returns its end and until when they
    /// wait.
    pub(super) fn expect_end(&self, memory: &Memory<M>) -> (MapEnd<M>, u64) {
        let (end, deadline) = (memory.map().end(), self.vm().machine().now() + PATIENCE);
        let mut endings = self.platform.endings.endings.lock();
        endings.retain(|ending| !ending.end.has_come() && ending.memory != memory.map_id());
        endings.push(Ending { memory: memory.map_id(), end: end.clone(), deadline });
        (end, deadline)
    }

    /// Waits until a process has ended whose memory is expected to be freed, or until a page is
    /// free. If no process is ending, one is chosen and ended. False if there is none to choose.
    async fn find_memory(&self) -> bool {
        let (end, deadline) = {
            let _choosing = self.platform.endings.choosing.lock().await;
            // The holders have references that keep the memory of processes, so they are dropped
            // before this function waits for that memory.
            let holders = self.holders();
            match self.expected_end(&holders) {
                Some(expected) => expected,
                None => {
                    let chosen = self.choose(&holders).await;
                    if self.vm().has_free_page() {
                        return true;
                    }
                    let Some((holder, pages)) = chosen else { return false };
                    self.log_choice(holder, pages);
                    self.end_holder(holder)
                }
            }
        };
        self.vm().free_or_end(&end, deadline).await;
        true
    }

    /// The end of an address space whose processes are ending already, and until when threads wait
    /// for it.
    fn expected_end(&self, holders: &BTreeMap<u64, Holder<M>>) -> Option<(MapEnd<M>, u64)> {
        // A process that has ended may have shared its memory with others that still use it. Such
        // memory is not about to be freed.
        let is_ending = |memory| holders.get(&memory).is_none_or(|holder: &Holder<M>| holder.is_ending);
        let given_up: Vec<u64> = {
            let mut endings = self.platform.endings.endings.lock();
            endings.retain(|ending| !ending.end.has_come());
            let now = self.vm().machine().now();
            let ending = endings.iter().filter(|ending| is_ending(ending.memory));
            if let Some(expected) = ending.clone().find(|ending| ending.deadline > now) {
                return Some((expected.end.clone(), expected.deadline));
            }
            ending.map(|ending| ending.memory).collect()
        };
        let mut holders = holders.values().filter(|holder| !given_up.contains(&holder.memory.map_id()));
        holders.find(|holder| holder.is_ending).map(|holder| self.end_holder(holder))
    }

    /// The process that is to be ended, and how many pages it has in memory.
    async fn choose<'a>(&self, holders: &'a BTreeMap<u64, Holder<M>>) -> Option<(&'a Holder<M>, u64)> {
        let total = self.all_pages();
        let mut chosen: Option<(i64, &Holder<M>, u64)> = None;
        for holder in holders.values().filter(|holder| !holder.is_exempt && !holder.is_ending) {
            let pages = size(&holder.memory).await;
            let badness = badness(pages, holder.adjustment, total);
            // If several are equal, choose the youngest process, because the least work is lost
            // with it.
            if chosen.is_none_or(|(most, ..)| badness >= most) {
                chosen = Some((badness, holder, pages));
            }
        }
        chosen.map(|(_, holder, pages)| (holder, pages))
    }

    fn log_choice(&self, holder: &Holder<M>, pages: u64) {
        for &pid in &holder.processes {
            let name =
                self.processes().with(|table| table.process(pid).map(|process| process.name().to_vec()));
            let name = String::from_utf8_lossy(&name.unwrap_or_default()).into_owned();
            self.host().log(format_args!(
                "out of memory: killed process {pid} ({name}), {} KiB",
                pages * PAGE / 1024
            ));
        }
    }

    /// Ends the processes of an address space, if they are not ending already. From now on they do
    /// not wait for memory. Returns the end of the address space, and until when threads wait for
    /// it.
    fn end_holder(&self, holder: &Holder<M>) -> (MapEnd<M>, u64) {
        let expected = self.expect_end(&holder.memory);
        self.processes().with(|table| holder.processes.iter().for_each(|pid| table.end_for_memory(*pid)));
        expected
    }

    /// All address spaces of processes, by their numbers.
    fn holders(&self) -> BTreeMap<u64, Holder<M>> {
        let mut holders = BTreeMap::new();
        for pid in self.process_ids() {
            let Some(thread) = self.thread_of_process(pid) else { continue };
            let state = self.processes().with(|table| {
                table.process(pid).map(|process| (process.is_ending(), process.memory_adjustment))
            });
            let Ok((is_ending, adjustment)) = state else { continue };
            let memory = thread.memory().clone();
            let holder = holders.entry(memory.map_id()).or_insert_with(|| Holder {
                memory,
                processes: Vec::new(),
                is_ending: true,
                is_exempt: false,
                adjustment,
            });
            holder.processes.push(pid);
            holder.is_ending &= is_ending;
            holder.is_exempt |= pid == Pid::INIT || i64::from(adjustment) == -ADJUSTMENT_UNIT;
            holder.adjustment = holder.adjustment.max(adjustment);
        }
        holders
    }
}

/// How many pages of an address space are in memory or in swap space.
async fn size<M: Machine>(memory: &Memory<M>) -> u64 {
    let (low, high) = memory.map().bounds();
    memory.map().resident_pages(low, high).await + memory.map().paged_out_pages(low, high).await
}

impl<M: Machine> Resources<M> {
    /// Completes if there is no free page and the OOM killer has chosen the thread's process: the
    /// thread then must not wait for memory. It is polled together with, and after, a future that
    /// may wait for memory. It registers no waker for free pages itself: the other future is woken
    /// when one is free.
    async fn memory_is_expected(&self) {
        let system = &self.system;
        system.processes().gives_memory(self.tid()).await;
        poll_fn(|_| if system.vm().has_free_page() { Poll::Pending } else { Poll::Ready(()) }).await;
    }

    /// Does `work`, which may wait for memory, but drops it when the OOM killer has chosen this
    /// thread's process.
    pub async fn unless_memory_is_expected(&self, work: impl Future<Output = ()>) {
        let _ = crate::process::race(work, self.memory_is_expected()).await;
    }
}
