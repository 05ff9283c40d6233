//! Pagers, which keep the contents of an object's pages that are not in memory (Mach paper 3.1,
//! memory objects).
//!
//! A file system implements [`Pager`] for its files, a message proxy does for an external memory
//! object, and swap space implements [`DefaultPager`]. The calls are futures; one that never
//! completes holds up only the faults and calls that need its pages, and each of them may be
//! cancelled.
//!
//! This table lists Mach's messages between kernel and pager, and what stands for each in this
//! library. A proxy needs it to talk to an external pager:
//!
//! | message | here |
//! |---|---|
//! | `memory_object_init`, `ready`, `set_attributes` | [`VmObject::paged`], [`VmObject::set_size`] |
//! | `data_request` | [`Pager::data_request`] |
//! | `data_supply`, `data_provided` | so many bytes, or by page [`DataRequest::settle`] |
//! | their `lock_value` | [`DataRequest::lock`] |
//! | `data_unavailable`, `data_error` | no bytes; an error; or by page the same |
//! | `data_return`, `data_write` | [`Pager::data_return`] |
//! | `data_initialize` | the same, of the pager that [`DefaultPager::create`] has made (`memory_object_create`) |
//! | `lock_request`, `lock_completed` | [`VmObject::lock_request`], its end |
//! | `data_unlock` | [`Pager::data_unlock`] |
//! | `terminate` | [`Pager::ended`]; then the pager is dropped with the object's last reference |
//! | `destroy`, and the end of a pager's port | all its answers are errors from then on |

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use core::task::Poll;

use macadamia_sync::oneshot::oneshot;

use super::Vm;
use super::object::{ObjectState, PageKind, VmObject};
use super::page_index::{Slot, SlotFlags};
use super::pageout::Write;
use crate::machine::{Frame, Machine, PAGE_SHIFT, PAGE_SIZE, Protection};
use crate::{KernError, KernResult};

/// A boxed future: pagers are of many types, and the cost of an allocation is small compared with
/// that of a page-in.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A run of pages that a pager is to fill.
pub struct DataRequest<'a, M: Machine> {
    /// The machine that holds the frames.
    pub machine: &'a M,
    /// Byte offset of the first page in the memory object.
    pub offset: u64,
    /// The frames, one for each page, for pagers that fill them by a device. Their contents are
    /// undefined.
    pub frames: &'a [Frame],
    /// The access for which the first page is needed.
    pub access: Protection,
    page_in: &'a PageIn<M>,
}

/// What a pager has answered about one page of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageAnswer {
    /// The frame has contents that the pager has not got.
    Changed,
    /// The frame has the contents.
    Filled {
        /// The accesses of programs that the pager prohibits for now; `READ` cannot be.
        prohibited: Protection,
        /// The pager keeps no copy: the page returns to it even if it was not changed.
        precious: bool,
    },
    /// There is no data, and the page reads as zeros.
    Zeros,
    /// The pager has failed. An access that waits for the page fails, if the page is the first of
    /// the run; other pages are requested again when they are needed.
    Failed,
}

/// A run of pages that a pager is to keep.
pub struct DataReturn<'a, M: Machine> {
    /// The machine that holds the frames.
    pub machine: &'a M,
    /// Byte offset of the first page in the memory object.
    pub offset: u64,
    /// The frames, one for each page. If a program writes to a page meanwhile, it is dirty again
    /// and is returned again later.
    pub frames: &'a [Frame],
    /// Whether the pages were changed. If not, the pager has said that they are precious, or it has
    /// asked for all pages.
    pub dirty: bool,
    /// Whether the pages stay in memory (Mach's `kernel_copy`). If not, they are freed after the
    /// write, unless they are used meanwhile.
    pub kept: bool,
    /// The run, from which the pages can be taken.
    pub(super) write: Option<&'a Write<M>>,
}

impl<M: Machine> DataRequest<'_, M> {
    /// How many bytes are requested.
    pub fn length(&self) -> usize {
        self.frames.len() << PAGE_SHIFT
    }

    /// Prohibits accesses of programs to the pages of this run until the pager
    /// [allows](Pager::data_unlock) them: the `lock_value` of Mach's `memory_object_data_supply`.
    /// `READ` cannot be prohibited, since the pages are requested in order to be read.
    pub fn lock(&self, prohibited: Protection) {
        // Relaxed: the value is read after the answer, by the task that polls for the answer.
        self.page_in.prohibited.store((prohibited - Protection::READ).bits(), Ordering::Relaxed);
    }

    /// Ends the request for some pages of the run, before the others: each is given by its number
    /// in the run. For pagers that [answer in parts](Pager::answers_in_parts). A page for which
    /// there was an answer before is passed over, and its frame belongs to the object.
    pub fn settle(&self, answers: impl Iterator<Item = (usize, PageAnswer)>) {
        self.page_in.settle(answers);
    }

    /// Fills in bytes at offset `at` of the run. Bytes beyond the end of the run are ignored.
    pub fn write(&self, mut at: usize, mut bytes: &[u8]) {
        while !bytes.is_empty() && at < self.length() {
            let offset = at % PAGE_SIZE as usize;
            let (now, rest) = bytes.split_at(bytes.len().min(PAGE_SIZE as usize - offset));
            self.machine.write_frame(self.frames[at >> PAGE_SHIFT], offset, now);
            at += now.len();
            bytes = rest;
        }
    }
}

impl<'a, M: Machine> DataReturn<'a, M> {
    /// Pages that an object had at its end.
    pub(crate) fn of_left_pages(machine: &'a M, offset: u64, frames: &'a [Frame], dirty: bool) -> Self {
        Self { machine, offset, frames, dirty, kept: false, write: None }
    }

    /// Takes pages over from the start of the run: they leave their object, and are anonymous
    /// memory from then on, from page 0 of the object that `keep` gets together with the number of
    /// pages. `keep` is called in the step in which they leave, under the object's lock. The pages
    /// end before one that was changed meanwhile; that page and those after it are returned again
    /// later.
    ///
    /// # Errors
    /// `ResourceShortage`: memory is short. `NotSupported`: the pages stay in memory.
    pub(crate) fn take(&self, keep: impl FnOnce(Arc<VmObject<M>>, u64)) -> KernResult {
        self.write.filter(|_| !self.kept).ok_or(KernError::NotSupported)?.take(keep)
    }

    /// How many bytes are to be written.
    pub fn length(&self) -> usize {
        self.frames.len() << PAGE_SHIFT
    }

    /// Reads bytes at offset `at` of the run. Returns how many were read: fewer than asked for at
    /// its end.
    pub fn read(&self, at: usize, buffer: &mut [u8]) -> usize {
        let mut done = 0;
        while done < buffer.len() && at + done < self.length() {
            let offset = (at + done) % PAGE_SIZE as usize;
            let count = (buffer.len() - done).min(PAGE_SIZE as usize - offset);
            let frame = self.frames[(at + done) >> PAGE_SHIFT];
            self.machine.read_frame(frame, offset, &mut buffer[done..done + count]);
            done += count;
        }
        done
    }
}

/// A page that an object had at its end and the pager has not got.
#[derive(Clone, Copy, Debug)]
pub struct LeftPage {
    /// Its byte offset.
    pub offset: u64,
    /// Its frame.
    pub frame: Frame,
    /// Whether it was changed. If not, it is precious.
    pub dirty: bool,
}

/// Provides and keeps the pages of an object. Offsets are bytes in the memory object, multiples of
/// the page size.
pub trait Pager<M: Machine>: Send + Sync {
    /// Fills pages. Returns how many bytes from the start of the run were filled. The rest of the
    /// page in which they end is cleared; further pages of the run are requested again when they
    /// are needed. `Ok(0)`: there is no data for the first page, which reads as zeros. The future
    /// may be dropped at any await, unless the pager [fills by device](Self::fills_by_device).
    fn data_request<'a>(&'a self, request: DataRequest<'a, M>) -> BoxFuture<'a, KernResult<usize>>;

    /// Keeps the contents of pages. After its end without an error the frames may be reused. The
    /// future is not dropped before its end unless the whole memory system is.
    fn data_return<'a>(&'a self, data: DataReturn<'a, M>) -> BoxFuture<'a, KernResult>;

    /// Whether a device may write into the frames of a request until the request has ended. Then
    /// the future of [`data_request`](Self::data_request) is not dropped before its end either, if
    /// the memory system has a [spawner](super::Vm::set_spawner).
    fn fills_by_device(&self) -> bool {
        false
    }

    /// Whether the pager answers for each page of a request by itself
    /// ([`DataRequest::settle`]), in parts and in any order. Then what its
    /// [`data_request`](Self::data_request) returns says only whether the first page failed, and
    /// the request goes on when the access that began it has got its page or has been given up: it
    /// must come to an end by itself.
    fn answers_in_parts(&self) -> bool {
        false
    }

    /// How many pages a request may be for now at most. 0: the pager has more requests than it
    /// should have; one page may be requested, as long as an access waits for it.
    fn most_pages(&self) -> u64 {
        u64::MAX
    }

    /// What the pages of the object are, for statistics.
    fn kind(&self) -> PageKind {
        PageKind::File
    }

    /// The object has ended, and with it the contents of pages that the pager has not got: that
    /// were changed after it got them last, or that are precious. `left` yields each; a pager for
    /// which they are not lost keeps them now. It must not block.
    fn ended(&self, _machine: &M, _left: &mut dyn Iterator<Item = LeftPage>) {}

    /// Asks the pager to allow an access to a page that it has prohibited
    /// ([`VmObject::lock_request`]). On an error the access fails with `MemoryError`. Each fault
    /// that needs the access asks separately. The future may be dropped at any await. It is not
    /// called for pagers that prohibit nothing.
    fn data_unlock<'a>(&'a self, _offset: u64, _access: Protection) -> BoxFuture<'a, KernResult> {
        Box::pin(core::future::ready(Ok(())))
    }
}

/// Keeps pages that have no pager of their own: swap space.
pub trait DefaultPager<M: Machine>: Send + Sync {
    /// Whether there may be room for a page. If not, page-out does not begin to write any.
    fn has_room(&self) -> bool {
        true
    }

    /// Makes a pager for `object`, whose pages are to be paged out for the first time. Offsets in
    /// it are offsets in the object, until it is [moved](SwapPager::moved). The object is locked.
    /// The pager is dropped with the object.
    fn create(&self, object: &Arc<VmObject<M>>) -> KernResult<Arc<dyn SwapPager<M>>>;
}

/// The pager of one anonymous object, made by the [default pager](DefaultPager).
///
/// It has the contents of pages that are paged out, and of those that were paged in and have not
/// been changed since. The functions here are called under the lock of the object: they must not
/// block, and not use the object.
pub trait SwapPager<M: Machine>: Pager<M> + Any {
    /// Sets space aside for up to `pages` pages from byte `offset` on, which are to be
    /// [returned](Pager::data_return). Returns for how many from the first on; 0: there is no room.
    /// What the pager has of these pages is not needed any more.
    fn reserve(&self, offset: u64, pages: usize) -> usize {
        let _ = offset;
        pages
    }

    /// The page at byte `offset` is not needed any more, or its return has failed. It is not being
    /// read or returned.
    fn forget(&self, offset: u64) {
        let _ = offset;
    }

    /// The pager is that of `object` from now on, whose first page is at byte `offset` of it.
    fn moved(&self, object: Weak<VmObject<M>>, offset: u64) {
        let _ = (object, offset);
    }

    /// Takes a page over that another pager of the same default pager has at `from_offset`, as the
    /// page at byte `offset`. Returns false, and does nothing, if it cannot.
    fn take_over(&self, from: &dyn SwapPager<M>, from_offset: u64, offset: u64) -> bool {
        let _ = (from, from_offset, offset);
        false
    }
}

/// A page-in in progress: it owns the busy pages of the run. If it is dropped before its end, the
/// object is as it was, and the tasks that wait for the pages wake and ask for them again.
pub(crate) struct PageIn<M: Machine> {
    vm: Arc<Vm<M>>,
    object: Arc<VmObject<M>>,
    pager: Arc<dyn Pager<M>>,
    /// Byte offset of page 0 of the object in the pager's memory object.
    pager_offset: u64,
    first: u64,
    /// The frames to be filled; empty when the page-in has ended.
    frames: Vec<Frame>,
    /// Whether a page that was not filled counts as paged out again.
    was_paged_out: bool,
    /// The access for which the first page is needed.
    access: Protection,
    /// The accesses that the pager forbids for the pages.
    prohibited: AtomicU8,
    /// Which pages have been settled, by their numbers in the run. Only pagers that answer in parts
    /// settle any.
    settled: AtomicU32,
    /// For the access that waits for the first page: what became of it.
    first_page: Option<Arc<AtomicU8>>,
    /// Whether the request goes on when nothing waits for the first page.
    goes_on: bool,
}

/// The pages of a run are numbered by the bits of a word.
pub(crate) const LONGEST_RUN: u64 = 32;

/// The states of the first page of a run that is answered in parts.
const WAITED_FOR: u8 = 0;
const READY: u8 = 1;
const FAILED: u8 = 2;

/// The part of a page-in that goes on without the access that has begun it.
struct Rest<M: Machine> {
    vm: Arc<Vm<M>>,
    request: Option<BoxFuture<'static, KernResult>>,
    goes_on: bool,
}

impl<M: Machine> Drop for Rest<M> {
    fn drop(&mut self) {
        if let Some(request) = self.request.take().filter(|_| self.goes_on) {
            self.vm.go_on(request);
        }
    }
}

impl<M: Machine> PageIn<M> {
    /// Takes over pages `first..` of `object`, whose slots hold `frames` and are busy.
    pub(crate) fn new(
        vm: Arc<Vm<M>>,
        object: Arc<VmObject<M>>,
        (pager, pager_offset): (Arc<dyn Pager<M>>, u64),
        first: u64,
        frames: Vec<Frame>,
        (was_paged_out, access): (bool, Protection),
        goes_on: bool,
    ) -> Self {
        let first_page = pager.answers_in_parts().then(|| Arc::new(AtomicU8::new(WAITED_FOR)));
        let (prohibited, settled) = (AtomicU8::new(0), AtomicU32::new(0));
        Self {
            vm,
            object,
            pager,
            pager_offset,
            first,
            frames,
            was_paged_out,
            access,
            prohibited,
            settled,
            first_page,
            goes_on,
        }
    }

    /// Carries out the request, in a task of its own if the frames must not be freed before its
    /// end.
    pub(crate) async fn run(self) -> KernResult {
        if let Some(first_page) = self.first_page.clone() {
            return self.run_in_parts(&first_page).await;
        }
        let spawner = self.vm.spawner.lock().clone().filter(|_| self.pager.fills_by_device());
        let Some(spawn) = spawner else { return self.request().await };
        let (sender, mut receiver) = oneshot();
        let task = Box::pin(async move {
            // The receiver may have been dropped: the faulting thread has ended.
            let _ = sender.send(self.request().await);
        });
        if !spawn(task) {
            return Err(KernError::ResourceShortage);
        }
        receiver.receive().await.unwrap_or(Err(KernError::ResourceShortage))
    }

    /// Carries out the request until the first page is there. The memory system waits for the rest,
    /// so that the pager is not asked for these pages again meanwhile.
    async fn run_in_parts(self, first_page: &AtomicU8) -> KernResult {
        let mut rest = Rest { vm: self.vm.clone(), goes_on: self.goes_on, request: None };
        let request = rest.request.insert(Box::pin(self.request()));
        let result = poll_fn(|context| {
            let ended = request.as_mut().poll(context);
            // Relaxed: the state of the page itself is under the object's lock.
            match first_page.load(Ordering::Relaxed) {
                READY => Poll::Ready((Ok(()), ended.is_ready())),
                FAILED => Poll::Ready((Err(KernError::MemoryError), ended.is_ready())),
                _ => ended.map(|result| (result, true)),
            }
        });
        let (result, ended) = result.await;
        if ended {
            rest.request = None;
        }
        result
    }

    async fn request(mut self) -> KernResult {
        let offset = self.pager_offset + (self.first << PAGE_SHIFT);
        let (machine, frames) = (self.vm.machine(), &self.frames);
        let request = DataRequest { machine, offset, frames, access: self.access, page_in: &self };
        match self.pager.data_request(request).await {
            Ok(_) if self.first_page.is_some() => Ok(()),
            Ok(bytes) => {
                self.finish(bytes);
                Ok(())
            }
            Err(_) => Err(KernError::MemoryError),
        }
    }

    /// Makes the first `bytes` bytes valid, and at least the first page.
    fn finish(&mut self, bytes: usize) {
        let page_size = PAGE_SIZE as usize;
        let machine = self.vm.machine();
        let filled = bytes.div_ceil(page_size).clamp(1, self.frames.len());
        if bytes < filled * page_size {
            let frame = self.frames[filled - 1];
            match bytes % page_size {
                0 => machine.zero_frame(frame),
                used => {
                    const ZEROS: [u8; PAGE_SIZE as usize] = [0; PAGE_SIZE as usize];
                    machine.write_frame(frame, used, &ZEROS[used..]);
                }
            }
        }
        self.end(filled);
    }

    /// Ends the request for some pages.
    fn settle(&self, answers: impl Iterator<Item = (usize, PageAnswer)>) {
        let machine = self.vm.machine();
        {
            let mut state = self.object.state.lock();
            for (number, answer) in answers {
                let Some(&frame) = self.frames.get(number) else { continue };
                // Relaxed: the mask is used under the object's lock, and by the owner at the end.
                if self.settled.fetch_or(1 << number, Ordering::Relaxed) & 1 << number != 0 {
                    continue;
                }
                let index = self.first + number as u64;
                let (prohibited, kept) = match answer {
                    PageAnswer::Changed => (Protection::NONE, SlotFlags::DIRTY),
                    PageAnswer::Filled { prohibited, precious: true } => (prohibited, SlotFlags::PRECIOUS),
                    PageAnswer::Filled { prohibited, .. } => (prohibited, SlotFlags::empty()),
                    PageAnswer::Zeros => {
                        machine.zero_frame(frame);
                        (Protection::NONE, SlotFlags::empty())
                    }
                    PageAnswer::Failed => {
                        self.give_up(&mut state, index, frame);
                        self.first_page_is(number, FAILED);
                        continue;
                    }
                };
                if let Some(slot) = state.pages.get_mut(index) {
                    slot.flags.remove(SlotFlags::BUSY);
                    slot.flags.insert(SlotFlags::REFERENCED | kept);
                    slot.prohibit(prohibited - Protection::READ);
                }
                self.first_page_is(number, READY);
            }
        }
        self.object.changed.wake_all();
    }

    /// Notes what became of the first page, if this is the first.
    fn first_page_is(&self, number: usize, now: u8) {
        if let Some(first_page) = self.first_page.as_ref().filter(|_| number == 0) {
            // Relaxed: the access that reads it then takes the object's lock.
            first_page.store(now, Ordering::Relaxed);
        }
    }

    /// Removes a page that was not filled: it is as before the request.
    fn give_up(&self, state: &mut ObjectState<M>, index: u64, frame: Frame) {
        if self.was_paged_out {
            if let Some(slot) = state.pages.get_mut(index) {
                *slot = Slot::paged_out();
                self.vm.count_paged_out(1);
            }
        } else {
            state.pages.remove(self.vm.machine(), index);
        }
        self.vm.free_frame(frame, false);
    }

    /// Ends the request: the first `filled` pages become valid, the others are as they were before
    /// it. Pages that were settled before are passed over.
    fn end(&mut self, filled: usize) {
        let frames = core::mem::take(&mut self.frames);
        let prohibited = Protection::from_bits_truncate(*self.prohibited.get_mut());
        let settled = *self.settled.get_mut();
        {
            let mut state = self.object.state.lock();
            for (number, &frame) in frames.iter().enumerate() {
                let index = self.first + number as u64;
                if settled & 1 << number != 0 {
                    continue;
                }
                if number < filled {
                    if let Some(slot) = state.pages.get_mut(index) {
                        slot.flags.remove(SlotFlags::BUSY);
                        slot.flags.insert(SlotFlags::REFERENCED);
                        slot.prohibit(prohibited);
                    }
                    continue;
                }
                self.give_up(&mut state, index, frame);
            }
            state.paging -= 1;
            let filled = filled.max(settled.trailing_ones() as usize);
            state.last_page_in.ended(self.first, frames.len() as u64, filled as u64);
        }
        self.object.changed.wake_all();
    }
}

impl<M: Machine> Drop for PageIn<M> {
    fn drop(&mut self) {
        if !self.frames.is_empty() {
            self.end(0);
        }
    }
}
