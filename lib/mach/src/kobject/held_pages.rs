//! Pages that a pager is to get and that could not be sent, because it has died, receives nothing,
//! or its messages have no memory. They are anonymous memory, and go to the default pager like
//! other anonymous memory (Mach's double paging). A fault finds them here.
//!
//! A page is held, or in its object, or with the pager, so it is held at most once.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::PortPersonality;
use super::memory_object::MemoryObject;
use crate::ipc::Item;
use crate::machine::{Machine, PAGE_SHIFT};
use crate::vm::{DataRequest, MapCopy, PageAnswer, VmObject};
use crate::{KernError, KernResult};

/// A run of pages for a pager.
pub(super) struct Run<M: Machine> {
    /// The byte offset in the memory object.
    offset: u64,
    /// The anonymous object that has the pages, and the number of the first page there.
    pages: Arc<VmObject<M>>,
    first: u64,
    count: u64,
    /// Whether they were changed; if not, they are precious.
    dirty: bool,
    /// The run is in a message that is being sent. Until it has been, a fault finds the pages here,
    /// so that no request reaches the pager before them.
    leaving: bool,
}

impl<M: Machine> Run<M> {
    /// The run of the first pages of an anonymous object.
    pub(super) fn new(offset: u64, pages: Arc<VmObject<M>>, count: u64, dirty: bool) -> Self {
        Self { offset, pages, first: 0, count, dirty, leaving: false }
    }

    fn size(&self) -> u64 {
        self.count << PAGE_SHIFT
    }

    /// Whether the run has pages from byte `start` to before byte `end`.
    fn overlaps(&self, start: u64, end: u64) -> bool {
        self.offset < end && start < self.offset + self.size()
    }

    /// The number in the run of the page at a byte offset.
    fn place(&self, offset: u64) -> Option<u64> {
        offset.checked_sub(self.offset).map(|at| at >> PAGE_SHIFT).filter(|place| *place < self.count)
    }

    /// The part of the run from page `from` to before page `to`, if there is any.
    fn part(&self, from: u64, to: u64) -> Option<Self> {
        (from < to).then(|| Self {
            offset: self.offset + (from << PAGE_SHIFT),
            pages: self.pages.clone(),
            first: self.first + from,
            count: to - from,
            ..*self
        })
    }
}

/// The pages that a memory object holds.
pub(super) struct Held<M: Machine>(Vec<Run<M>>);

impl<M: Machine> Held<M> {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Makes room for two runs.
    ///
    /// # Errors
    /// `ResourceShortage`: memory is short.
    pub(super) fn reserve(&mut self) -> KernResult {
        self.0.try_reserve(2).map_err(|_| KernError::ResourceShortage)
    }

    pub(super) fn push(&mut self, run: Run<M>) {
        self.0.push(run);
    }

    /// A copy of a run that has pages in a range of bytes, which is leaving from now on. A run
    /// stays while an older one with the same page is leaving, so that the pager gets the newer one
    /// last.
    fn begin_to_leave(&mut self, offset: u64, size: u64) -> Option<Run<M>> {
        let end = offset.saturating_add(size);
        let may_leave = |run: &Run<M>| {
            let other = |other: &Run<M>| other.leaving && other.overlaps(run.offset, run.offset + run.size());
            !run.leaving && run.overlaps(offset, end) && !self.0.iter().any(other)
        };
        let place = self.0.iter().position(may_leave)?;
        let run = self.0.get_mut(place)?;
        run.leaving = true;
        run.part(0, run.count)
    }

    /// A run that was leaving is with the pager, or stays after all.
    fn end_leaving(&mut self, left: &Run<M>, is_sent: bool) {
        let is_it = |run: &Run<M>| Arc::ptr_eq(&run.pages, &left.pages) && run.offset == left.offset;
        if is_sent {
            self.0.retain(|run| !is_it(run));
        } else if let Some(run) = self.0.iter_mut().find(|run| is_it(run)) {
            run.leaving = false;
        }
    }

    /// The object that has the page at a byte offset, and the page's number in it. The page in a
    /// run that is leaving may be older than the one in a run that stays.
    fn page(&self, offset: u64) -> Option<(Arc<VmObject<M>>, u64)> {
        let found = |leaving: bool| {
            let mut runs = self.0.iter().filter(|run| run.leaving == leaving);
            runs.find_map(|run| Some((run.pages.clone(), run.first + run.place(offset)?)))
        };
        found(false).or_else(|| found(true))
    }

    /// Whether the page at a byte offset is held.
    pub(super) fn has(&self, offset: u64) -> bool {
        self.page(offset).is_some()
    }

    /// The page at a byte offset is not held any more. Returns false if the run that has it is
    /// leaving, or has left, with the page.
    fn withdraw(&mut self, offset: u64) -> KernResult<bool> {
        self.reserve()?;
        let found = self.0.iter().position(|run| !run.leaving && run.place(offset).is_some());
        let Some(index) = found else { return Ok(false) };
        let run = self.0.swap_remove(index);
        if let Some(place) = run.place(offset) {
            let rest = [run.part(0, place), run.part(place + 1, run.count)];
            self.0.extend(rest.into_iter().flatten());
        }
        Ok(true)
    }
}

impl<M: Machine, P: PortPersonality<M>> MemoryObject<M, P> {
    /// Whether so many messages wait for the pager that it gets no more.
    pub(super) fn is_full(&self) -> bool {
        self.kernel.upgrade().is_some_and(|kernel| self.pager.queued() >= kernel.pager_queue())
    }

    /// Sends the pager the pages of a range of bytes that are held, unless too many messages wait
    /// for it already. With `asked` the pager has asked for them, and gets them even so. What
    /// cannot be sent stays here.
    pub(super) async fn send_held(&self, offset: u64, size: u64, asked: bool) {
        while !self.pager.is_dead() && (asked || !self.is_full()) {
            let run = self.state.lock().held.begin_to_leave(offset, size);
            let Some(run) = run else { return };
            let sent = self.send_run(&run).await;
            self.state.lock().held.end_leaving(&run, sent.is_ok());
            if sent.is_err() {
                return;
            }
        }
    }

    async fn send_run(&self, run: &Run<M>) -> KernResult {
        let item = Item::Pages(MapCopy::of_pages(&run.pages, run.first, run.count)?, 0);
        self.return_data(run.offset, item, run.size(), (run.dirty, false)).await
    }

    /// Answers a request for pages of which the first is held. Returns `None` if it was; otherwise
    /// how many pages there are before the first that is held.
    ///
    /// # Errors
    /// `MemoryError`: the default pager cannot read the page. `ResourceShortage`: memory is short.
    pub(super) async fn answer_held(&self, request: &DataRequest<'_, M>) -> KernResult<Option<usize>> {
        let offset = |number: usize| request.offset + ((number as u64) << PAGE_SHIFT);
        let held = |number: usize| self.state.lock().held.page(offset(number));
        let length = request.frames.len();
        if self.state.lock().held.is_empty() {
            return Ok(Some(length));
        }
        if held(0).is_none() {
            return Ok((1..length).find(|&number| held(number).is_some()).or(Some(length)));
        }
        for (number, &frame) in request.frames.iter().enumerate() {
            let Some((pages, page)) = held(number) else { break };
            pages.with_page(page << PAGE_SHIFT, |machine, from| machine.copy_frame(from, frame)).await?;
            if self.state.lock().held.withdraw(offset(number))? {
                // A page on its way to the default pager stays until the run goes.
                pages.discard_pages(page, page + 1, true);
            }
            request.settle(core::iter::once((number, PageAnswer::Changed)));
        }
        Ok(None)
    }
}
