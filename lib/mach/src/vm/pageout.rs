//! Page-out: taking pages that have not been used lately when memory is short, and writing dirty
//! pages back.
//!
//! The scan follows Mach's second chance: active pages move to the inactive queue with their
//! referenced bit cleared; an inactive page that was referenced again is active again, a clean one
//! is freed, a dirty one goes to its pager first. Writing is *laundry*: futures that belong to the
//! memory system. Each task that waits for memory or for a write polls all of them, and so does the
//! page-out daemon. So they go on when one of these tasks is cancelled, and a pager that never
//! answers holds up its own pages only.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::{Future, poll_fn};
use core::ops::Range;
use core::pin::pin;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use core::task::{Context, Poll};

use macadamia_sync::{SpinLock, WaitQueue};

use super::Vm;
use super::object::{Backing, ObjectState, VmObject};
use super::page_index::{Slot, SlotFlags};
use super::pager::{BoxFuture, DataReturn, Pager};
use super::queues::Queue;
use crate::machine::{Frame, Machine, PAGE_SHIFT, PageStatus, Protection};
use crate::{KernError, KernResult};

/// How many pages one query of referenced bits covers.
const BATCH: usize = 32;
/// How many pages one request to a pager writes at most.
const RUN: usize = 16;
/// How many pages are on their way to the default pager at least, before no more are begun.
const SWAPPING: u64 = 128;
/// How long a task that needs memory waits for a pager that is busy writing, in microseconds.
const PATIENCE: u64 = 2_000_000;
/// How many page-outs may fail while it waits, and none succeeds.
const FAILURES: u64 = 64;
/// How much longer it waits for the default pager.
const SWAP_PATIENCE: u64 = 30_000_000;

/// The page-outs under way.
pub(super) struct Laundry {
    futures: SpinLock<Vec<BoxFuture<'static, ()>>>,
    /// Page-outs that have begun and not ended.
    outstanding: AtomicU64,
    /// Page-outs that have ended.
    finished: AtomicU64,
    /// Those of them that have ended without an error.
    written: AtomicU64,
    /// How many pages are on their way to the default pager.
    swapping: AtomicU64,
    /// Requests to pagers that nothing waits for, and that have not ended.
    requests: AtomicU64,
    /// Woken when a write has ended, or a task has stopped polling the futures.
    changed: WaitQueue,
}

impl Laundry {
    pub(super) fn new() -> Self {
        Self {
            futures: SpinLock::new(Vec::new()),
            outstanding: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            written: AtomicU64::new(0),
            swapping: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            changed: WaitQueue::new(),
        }
    }

    fn has_finished(&self, before: u64) -> bool {
        self.finished.load(Ordering::Acquire) != before
    }

    /// Polls every write. If another worker is polling them, does nothing.
    fn poll(&self, context: &mut Context<'_>) {
        let mut futures = core::mem::take(&mut *self.futures.lock());
        futures.retain_mut(|future| future.as_mut().poll(context).is_pending());
        self.futures.lock().append(&mut futures);
    }
}

/// A task that polls the laundry. When it stops, it wakes the others: one of them must continue.
struct Driver<'a>(&'a Laundry);

impl Drop for Driver<'_> {
    fn drop(&mut self) {
        self.0.changed.wake_all();
    }
}

impl<M: Machine> Vm<M> {
    /// Waits until a frame may be free: taken from a page, or from a program that the OOM killer
    /// ([`super::OomKiller`]) has ended. Frames of the reserve count only if `privileged`.
    ///
    /// # Errors
    /// `ResourceShortage`: no page can be taken, and the OOM killer finds no memory.
    pub(super) async fn wait_for_memory(self: &Arc<Self>, privileged: bool) -> KernResult {
        loop {
            match self.wait_for_page(privileged, 0).await {
                Err(KernError::ResourceShortage) if self.made_room().await => {}
                done => return done,
            }
        }
    }

    /// Waits until a frame may be free, taking pages if none is. More than `kept` frames must be
    /// free then.
    ///
    /// # Errors
    /// `ResourceShortage`: no page can be taken.
    pub(super) async fn wait_for_page(self: &Arc<Self>, privileged: bool, kept: u32) -> KernResult {
        let is_free = || self.free_count() > kept || privileged && self.queues.lock().reserve_count() > 0;
        let mut deadline = self.machine.now() + PATIENCE;
        let mut written = self.laundry.written.load(Ordering::Relaxed);
        let (mut idle_passes, mut failures) = (0, 0);
        loop {
            // While pagers take pages, others may get the frames first.
            let now_written = self.laundry.written.load(Ordering::Relaxed);
            if now_written != written {
                (written, deadline) = (now_written, self.machine.now() + PATIENCE);
                failures = 0;
            }
            // The count is read before free memory is checked, so a write that ends after the check
            // is noticed.
            let before = self.laundry.finished.load(Ordering::Acquire);
            let wanted = || (kept + 1).saturating_sub(self.free_count()).max(1);
            if is_free() || self.take_pages(wanted(), idle_passes < 2) > 0 && (kept == 0 || is_free()) {
                return Ok(());
            }
            if self.laundry.outstanding.load(Ordering::Relaxed) == 0 {
                // A pass frees no pages that were just used, so one idle pass is no reason to give
                // up.
                idle_passes += 1;
                if idle_passes > 2 {
                    return Err(KernError::ResourceShortage);
                }
                continue;
            }
            let freed = self.memory_freed.wait_until(|| is_free().then_some(()));
            let in_time =
                self.beside_laundry(self.until(deadline, either(freed, self.write_end(before)))).await;
            let ended = self.laundry.finished.load(Ordering::Acquire) - before;
            if self.laundry.written.load(Ordering::Relaxed) == written {
                failures += ended;
            }
            // Page-outs that fail would otherwise keep this loop running.
            if failures > FAILURES {
                return Err(KernError::ResourceShortage);
            }
            if !in_time || self.machine.now() >= deadline {
                let swapping = self.laundry.swapping.load(Ordering::Relaxed) > 0;
                if !swapping || self.machine.now() >= deadline + SWAP_PATIENCE {
                    return Err(KernError::ResourceShortage);
                }
                // Swap space takes what it has room for, or reports an error. If it is slow, that
                // is no reason to end a program.
                self.until(self.machine.now() + PATIENCE, self.write_end(before)).await;
            }
        }
    }

    /// Keeps memory free and polls the laundry, for ever; a server spawns this once. Without it,
    /// pages are taken only when one is needed, and writes go on only while a task waits for one.
    pub async fn page_out_daemon(self: Arc<Self>) {
        let target = self.settings.free_target;
        let keep_free = async {
            loop {
                let low = self.memory_low.wait_until(|| (self.free_count() < target).then_some(()));
                // `changed` is awaited only for its wake-ups: there is one when no other task polls
                // the laundry any more.
                either(low, self.laundry.changed.wait_until(|| None::<()>)).await;
                let before = self.laundry.finished.load(Ordering::Acquire);
                let wanted = || target.saturating_sub(self.free_count());
                // A second pass takes pages that the first has passed over because they were just
                // used.
                if self.take_pages(wanted(), false) == 0 && self.take_pages(wanted(), false) == 0 {
                    // No frame can be freed now: wait until a write ends, or for a while.
                    self.until(self.machine.now() + PATIENCE, self.write_end(before)).await;
                }
            }
        };
        self.beside_laundry(keep_free).await
    }

    /// Waits until more writes have ended than had `before`.
    async fn write_end(&self, before: u64) {
        self.laundry.changed.wait_until(|| self.laundry.has_finished(before).then_some(())).await
    }

    /// Waits until no page is being written to a pager, and no request to a pager is left that
    /// nothing waits for. It is used before a system stops.
    pub async fn finish_writes(&self) {
        let Laundry { outstanding, requests, .. } = &self.laundry;
        let is_none = |count: &AtomicU64| count.load(Ordering::Acquire) == 0;
        let none = || (is_none(outstanding) && is_none(requests)).then_some(());
        self.beside_laundry(self.laundry.changed.wait_until(none)).await
    }

    /// Takes over a request to a pager that nothing waits for any more. Those that poll the writes
    /// poll it, too.
    pub(super) fn go_on(self: &Arc<Self>, request: BoxFuture<'static, KernResult>) {
        let vm = self.clone();
        self.laundry.requests.fetch_add(1, Ordering::Relaxed);
        let rest = Box::pin(async move {
            // An access that needs one of the pages asks again, and then gets the error.
            let _ = request.await;
            vm.laundry.requests.fetch_sub(1, Ordering::Release);
            vm.laundry.changed.wake_all();
        });
        self.laundry.futures.lock().push(rest);
        self.laundry.changed.wake_all();
    }

    pub(super) fn free_count(&self) -> u32 {
        self.queues.lock().free_count(&self.machine)
    }

    /// Runs a future, and polls the writes (the laundry) whenever it is polled.
    pub(super) async fn beside_laundry<T>(&self, future: impl Future<Output = T>) -> T {
        let _driver = Driver(&self.laundry);
        let mut future = pin!(future);
        poll_fn(|context| {
            let outcome = future.as_mut().poll(context);
            // The writes are polled after the future, which may have begun some. A write that ends
            // here wakes it.
            if outcome.is_pending() {
                self.laundry.poll(context);
            }
            outcome
        })
        .await
    }

    /// Runs a future until it ends or a time has come. Returns false if it has not ended.
    pub(super) async fn until(&self, deadline: u64, future: impl Future) -> bool {
        let mut future = pin!(future);
        let mut late = pin!(self.machine.sleep_until(deadline));
        poll_fn(|context| {
            if future.as_mut().poll(context).is_ready() {
                return Poll::Ready(true);
            }
            late.as_mut().poll(context).map(|()| false)
        })
        .await
    }

    /// Frees up to `wanted` pages that are clean and not in use, and begins to write dirty ones.
    /// Returns how many were freed. With `in_need` active pages are looked at if no page is
    /// inactive.
    fn take_pages(self: &Arc<Self>, wanted: u32, in_need: bool) -> u32 {
        let mut taken = 0;
        let has_room = self.default_pager.lock().as_ref().is_some_and(|pager| pager.has_room());
        let (active, inactive) = {
            let mut queues = self.queues.lock();
            // Not all of them: there may be room for few.
            queues.try_stranded(if has_room { SWAPPING as u32 } else { 0 });
            queues.counts()
        };
        // Every page is tried once. A page that was just used is not taken, since it is better to
        // wait for those that are being written.
        let mut rounds = (active + inactive) as usize / BATCH + 1;
        // As many pages as are wanted, and no more, are on their way to the default pager: each
        // takes memory of the server, and may be used again before its turn.
        let most_swapping = u64::from(wanted).max(SWAPPING);
        let swapping = || self.laundry.swapping.load(Ordering::Relaxed);
        while taken < wanted && rounds > 0 && swapping() < most_swapping {
            rounds -= 1;
            self.age_pages();
            let (mut frames, mut status) = ([Frame(0); BATCH], [PageStatus::empty(); BATCH]);
            let (count, is_active) = {
                let mut queues = self.queues.lock();
                match queues.oldest(Queue::Inactive, &mut frames) {
                    0 if in_need => {
                        let count = queues.oldest(Queue::Active, &mut frames);
                        frames[..count].iter().for_each(|&frame| queues.move_to(frame, Queue::Active));
                        (count, true)
                    }
                    count => (count, false),
                }
            };
            if count == 0 {
                break;
            }
            self.machine.frames_status(&frames[..count], &mut status[..count]);
            for (&frame, &status) in frames[..count].iter().zip(&status) {
                if taken < wanted && self.take_page(frame, status, is_active) {
                    taken += 1;
                }
            }
        }
        taken
    }

    /// Moves pages to the inactive queue until two thirds of the pages in use are inactive, or
    /// stranded. When most of memory has nowhere to go, the pages that programs need to run at all
    /// stay active so: if they were taken, too, programs would do nothing but fetch them again.
    fn age_pages(&self) {
        loop {
            let (mut frames, mut status) = ([Frame(0); BATCH], [PageStatus::empty(); BATCH]);
            let count = {
                let mut queues = self.queues.lock();
                let ((active, inactive), (stranded, _)) = (queues.counts(), queues.kept_counts());
                if inactive + stranded >= 2 * active {
                    return;
                }
                let count = queues.oldest(Queue::Active, &mut frames);
                frames[..count].iter().for_each(|&frame| queues.move_to(frame, Queue::Inactive));
                count
            };
            // The referenced bits are cleared, so that they show whether a page is used from now
            // on.
            self.machine.frames_status(&frames[..count], &mut status[..count]);
        }
    }

    /// Takes one page if its object is not locked and it need not be written. Returns true if the
    /// page is free now. One that is still active, and was used since page-out last looked, is left
    /// the next time, too: no program runs between the passes in which memory is needed.
    fn take_page(self: &Arc<Self>, frame: Frame, status: PageStatus, is_active: bool) -> bool {
        let (owner, index) = self.queues.lock().owner(frame);
        // An object that is going away frees its pages itself.
        let Some(object) = owner.upgrade() else { return false };
        let Some(mut state) = object.state.try_lock() else { return false };
        let Some(slot) = state.pages.get(index).filter(|slot| slot.is_resident() && slot.frame == frame)
        else {
            return false;
        };
        let in_use = slot.wired > 0
            || slot.has(SlotFlags::BUSY | SlotFlags::CLEANING)
            || status.contains(PageStatus::REFERENCED);
        if in_use || slot.has(SlotFlags::REFERENCED) {
            let was_used = is_active && status.contains(PageStatus::REFERENCED);
            if let Some(slot) = state.pages.get_mut(index) {
                slot.flags.set(SlotFlags::REFERENCED, was_used);
            }
            if slot.wired == 0 {
                self.queues.lock().move_to(frame, Queue::Active);
            }
            return false;
        }
        if !slot.has(SlotFlags::DIRTY | SlotFlags::PRECIOUS) {
            self.free_clean_page(&mut state, index, slot);
            return true;
        }
        // The page goes to the end of the queue. One that has nowhere to go is not looked at again:
        // such pages may be most of memory.
        let queue = match self.pager_for(&object, &mut state) {
            Some(pager) => {
                self.write_run(&object, &mut state, pager, index..u64::MAX, Purpose::Take);
                Queue::Inactive
            }
            None => Queue::Stranded,
        };
        self.queues.lock().move_to(frame, queue);
        false
    }

    /// Frees a page that its pager has, too.
    fn free_clean_page(&self, state: &mut ObjectState<M>, index: u64, slot: Slot) {
        if slot.has(SlotFlags::MAPPED) {
            self.machine.frames_protect(&[slot.frame], Protection::NONE);
        }
        if state.is_internal() {
            if let Some(slot) = state.pages.get_mut(index) {
                *slot = Slot::paged_out();
                self.count_paged_out(1);
            }
        } else {
            state.pages.remove(&self.machine, index);
        }
        self.free_frame(slot.frame, false);
    }

    /// The object's pager; made by the default pager if the object has none. Returned with the byte
    /// offset of page 0 there.
    fn pager_for(
        &self,
        object: &Arc<VmObject<M>>,
        state: &mut ObjectState<M>,
    ) -> Option<(Arc<dyn Pager<M>>, u64)> {
        if state.is_internal() {
            let default_pager = self.default_pager.lock().clone()?;
            if !default_pager.has_room() {
                return None;
            }
            if matches!(state.backing, Backing::Anonymous) {
                state.backing = Backing::Swap(default_pager.create(object).ok()?, 0);
            }
        }
        state.pager()
    }

    /// Begins to write the pages at the start of `range` that the pager must get; its first page
    /// must be dirty or precious.
    /// Returns how many pages are written.
    pub(super) fn write_run(
        self: &Arc<Self>,
        object: &Arc<VmObject<M>>,
        state: &mut ObjectState<M>,
        (pager, pager_offset): (Arc<dyn Pager<M>>, u64),
        range: Range<u64>,
        purpose: Purpose,
    ) -> u64 {
        let index = range.start;
        // The frames of pages from whose mappings rights are removed.
        let (mut revoked, mut revoked_count) = ([Frame(0); RUN], 0);
        let (lost, state_meanwhile, rights) = match purpose {
            Purpose::Flush => (SlotFlags::MAPPED, SlotFlags::BUSY | SlotFlags::CLEANING, Protection::NONE),
            _ => (SlotFlags::WRITABLE, SlotFlags::CLEANING, Protection::ALL - Protection::WRITE),
        };
        // A page that is to be freed is first given to a delayed copy. The caller has done that for
        // the first page only.
        let most = if purpose == Purpose::Flush && state.copy.is_some() { 1 } else { RUN };
        let mut frames = Vec::new();
        if frames.try_reserve_exact(RUN).is_err() {
            return 0;
        }
        // Pages that were changed, and pages that were not, are not in one run.
        let dirty = state.pages.get(index).is_some_and(|slot| slot.has(SlotFlags::DIRTY));
        let what = if dirty { SlotFlags::DIRTY } else { SlotFlags::PRECIOUS };
        let fits = |slot: Slot| {
            let concerned = slot.is_resident()
                && slot.has(what)
                && dirty == slot.has(SlotFlags::DIRTY)
                && !slot.has(SlotFlags::BUSY | SlotFlags::CLEANING);
            concerned && (purpose == Purpose::Clean || slot.wired == 0)
        };
        let mut count =
            range.clone().take(most).take_while(|&at| state.pages.get(at).is_some_and(fits)).count();
        let swaps = match &state.backing {
            Backing::Swap(swap, at) => {
                count = swap.reserve(at + (index << PAGE_SHIFT), count);
                true
            }
            _ => false,
        };
        if count == 0 {
            return 0;
        }
        for at in range.take(count) {
            let Some(slot) = state.pages.get_mut(at) else { break };
            if slot.has(lost) {
                revoked[revoked_count] = slot.frame;
                revoked_count += 1;
            }
            slot.flags.remove(SlotFlags::DIRTY | SlotFlags::PRECIOUS | SlotFlags::WRITABLE | lost);
            slot.flags.insert(state_meanwhile);
            frames.push(slot.frame);
        }
        // From here on a store faults: the fault makes the page dirty again, or waits for the end
        // of the write.
        if revoked_count > 0 {
            self.machine.frames_protect(&revoked[..revoked_count], rights);
        }
        state.paging += 1;
        self.laundry.outstanding.fetch_add(1, Ordering::Relaxed);
        let count = frames.len() as u64;
        if swaps {
            self.laundry.swapping.fetch_add(count, Ordering::Relaxed);
        }
        let taken = AtomicUsize::new(NOT_TAKEN);
        let (vm, object) = (self.clone(), object.clone());
        let write = Write { vm, object, first: index, frames, purpose, dirty, swaps, taken };
        let offset = pager_offset + (index << PAGE_SHIFT);
        let future: BoxFuture<'static, ()> = Box::pin(async move {
            let kept = write.purpose == Purpose::Clean;
            let (machine, frames) = (&write.vm.machine, &write.frames);
            let data = DataReturn { machine, offset, frames, dirty: write.dirty, kept, write: Some(&write) };
            let result = pager.data_return(data).await;
            write.end(result);
        });
        self.laundry.futures.lock().push(future);
        count
    }
}

/// Waits until the first of two futures is ready.
async fn either(one: impl Future, other: impl Future) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|context| {
        let ready = one.as_mut().poll(context).is_ready() || other.as_mut().poll(context).is_ready();
        if ready { Poll::Ready(()) } else { Poll::Pending }
    })
    .await
}

/// The purpose of writing pages to their pager.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The pager gets the pages; they stay in memory, and may be used meanwhile.
    Clean,
    /// The pages are freed after the write, unless they are used meanwhile.
    Take,
    /// The pages are freed after the write. A fault on one of them waits for the write, and then
    /// asks the pager.
    Flush,
}

/// A run of pages that is being written.
pub(super) struct Write<M: Machine> {
    vm: Arc<Vm<M>>,
    object: Arc<VmObject<M>>,
    first: u64,
    frames: Vec<Frame>,
    purpose: Purpose,
    /// Whether the pages were changed; if not, they are precious.
    dirty: bool,
    /// Whether the default pager gets the pages.
    swaps: bool,
    /// How many pages the pager has taken over; `NOT_TAKEN` if it takes none.
    taken: AtomicUsize,
}

/// The number of pages taken over if the pager only reads pages.
const NOT_TAKEN: usize = usize::MAX;

impl<M: Machine> Write<M> {
    /// Moves pages from the start of the run to an object of their own, up to the first page that
    /// was changed meanwhile or must stay. `keep` gets the object and how many there are, if there
    /// are any, under the lock of the object that they leave.
    pub(super) fn take(&self, keep: impl FnOnce(Arc<VmObject<M>>, u64)) -> KernResult {
        let (vm, machine) = (&self.vm, &self.vm.machine);
        let new = VmObject::anonymous(vm)?;
        let (mut revoked, mut revoked_count) = ([Frame(0); RUN], 0);
        let mut taken = 0;
        let mut state = self.object.state.lock();
        {
            // Nothing else refers to the new object, so the order of the locks does not matter.
            let mut new_state = new.state.lock();
            for &frame in &self.frames {
                let index = self.first + taken as u64;
                let stays = SlotFlags::DIRTY | SlotFlags::PRECIOUS;
                let Some(slot) = state.pages.get(index).filter(|slot| slot.wired == 0 && !slot.has(stays))
                else {
                    break;
                };
                let moved = Slot::new(frame, SlotFlags::DIRTY);
                if new_state.pages.insert(machine, taken as u64, moved).is_err() {
                    break;
                }
                if slot.has(SlotFlags::MAPPED) {
                    revoked[revoked_count] = frame;
                    revoked_count += 1;
                }
                state.pages.remove(machine, index);
                vm.queues.lock().give(frame, Arc::downgrade(&new), new.kind(), taken as u64);
                taken += 1;
            }
        }
        if revoked_count > 0 {
            machine.frames_protect(&revoked[..revoked_count], Protection::NONE);
        }
        // Relaxed: it is read when the pager's future has ended.
        self.taken.store(taken, Ordering::Relaxed);
        if taken > 0 {
            keep(new, taken as u64);
        }
        Ok(())
    }

    fn end(self, result: KernResult) {
        let vm = &self.vm;
        let mut status = [PageStatus::empty(); RUN];
        let (gone, unwritten) = match self.taken.load(Ordering::Relaxed) {
            NOT_TAKEN => (0, result.is_err()),
            taken => (taken, true),
        };
        vm.machine.frames_status(&self.frames[gone..], &mut status[gone..self.frames.len()]);
        {
            let mut state = self.object.state.lock();
            state.paging -= 1;
            state.write_errors += u32::from(result.is_err());
            for (number, status) in status[..self.frames.len()].iter().enumerate().skip(gone) {
                let index = self.first + number as u64;
                let Some(slot) = state.pages.get_mut(index) else { continue };
                slot.flags.remove(SlotFlags::CLEANING | SlotFlags::BUSY);
                if unwritten {
                    slot.flags.insert(if self.dirty { SlotFlags::DIRTY } else { SlotFlags::PRECIOUS });
                }
                let slot = *slot;
                if self.swaps && slot.has(SlotFlags::DIRTY) {
                    // What the pager has got is not the page any more, or it has not got it.
                    state.forget_swapped(index);
                }
                let used = match self.purpose {
                    Purpose::Clean => true,
                    Purpose::Take => slot.wired > 0 || status.contains(PageStatus::REFERENCED),
                    Purpose::Flush => slot.wired > 0,
                };
                if !used && !slot.has(SlotFlags::DIRTY | SlotFlags::PRECIOUS) {
                    vm.free_clean_page(&mut state, index, slot);
                }
            }
        }
        self.object.changed.wake_all();
        if self.swaps {
            vm.laundry.swapping.fetch_sub(self.frames.len() as u64, Ordering::Relaxed);
        }
        if result.is_ok() {
            vm.laundry.written.fetch_add(1, Ordering::Relaxed);
        }
        vm.laundry.outstanding.fetch_sub(1, Ordering::Release);
        // Release: a task that reads the new count also sees the pages' new state.
        vm.laundry.finished.fetch_add(1, Ordering::Release);
        vm.laundry.changed.wake_all();
    }
}

impl<M: Machine> VmObject<M> {
    /// Writes the dirty pages of a byte range to the object's pager and waits until they are there:
    /// a file's sync. Pages that are written meanwhile may be dirty again. An object must be
    /// cleaned before its last reference is dropped, or changes of it are lost.
    ///
    /// # Errors
    /// `MemoryError`: the pager reported an error; the pages stay dirty.
    pub async fn clean(self: &Arc<Self>, start: u64, end: u64) -> KernResult {
        let vm = self.vm();
        let (first, last) = (start >> PAGE_SHIFT, end.div_ceil(1 << PAGE_SHIFT));
        let errors = self.state.lock().write_errors;
        let mut next = first;
        loop {
            // The count is read before the pages are checked, so a write that ends after the check
            // is noticed.
            let before = vm.laundry.finished.load(Ordering::Acquire);
            let begun = {
                let mut state = self.state.lock();
                // The contents of an anonymous object are nowhere else.
                let Backing::Pager(pager) = &state.backing else { return Ok(()) };
                let pager = (pager.clone(), 0);
                if state.write_errors != errors {
                    return Err(KernError::MemoryError);
                }
                let dirty = |slot: &Slot| {
                    slot.has(SlotFlags::DIRTY) && !slot.has(SlotFlags::BUSY | SlotFlags::CLEANING)
                };
                // The writing of each page is begun only once: otherwise a program that keeps
                // writing could keep this loop running.
                let found = state.pages.range(next, last).find(|(_, slot)| dirty(slot));
                match found {
                    Some((index, _)) => {
                        vm.write_run(self, &mut state, pager, index..u64::MAX, Purpose::Clean);
                        next = index + 1;
                        true
                    }
                    None if state.pages.range(first, last).any(|(_, slot)| slot.has(SlotFlags::CLEANING)) => {
                        next = last;
                        false
                    }
                    None => return Ok(()),
                }
            };
            if !begun {
                vm.beside_laundry(vm.write_end(before)).await;
            }
        }
    }
}
