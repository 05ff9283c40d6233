//! The requests of a memory object that its pager has not answered, and the answers.
//!
//! Each page of a request is answered by itself. The answer comes in the task of the pager, which
//! writes the frame of the page under the lock of the memory object's state, as long as the request
//! is open; the request owns the frame until its own task has settled the page.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::PortPersonality;
use super::memory_object::MemoryObject;
use crate::machine::{Frame, Machine, PAGE_SHIFT, PAGE_SIZE};
use crate::vm::PageAnswer;
use crate::{KernError, KernResult};

/// A page of a request.
enum Page {
    /// There is no answer yet. The frame gets the contents.
    Open(Frame),
    /// There is an answer, of which the request's task does not know yet.
    Answered(PageAnswer),
    /// The page is the object's again, or is not requested any more.
    Settled,
}

impl Page {
    fn is_open(&self) -> bool {
        matches!(self, Self::Open(_))
    }
}

/// A run of pages that the pager was asked for.
struct Request {
    number: u64,
    offset: u64,
    pages: Vec<Page>,
    /// How many of them the pager has been asked for, from the first on.
    sent: usize,
}

/// For how many pages the answers are remembered that the pager owes.
const MOST_OWED: usize = 4096;

/// The requests of a memory object.
#[derive(Default)]
pub(super) struct Requests {
    all: Vec<Request>,
    next_number: u64,
    /// How many pages all requests have.
    pages: usize,
    /// How many answers the pager owes for pages, by their byte offsets, that are not waited for
    /// any more. When such an answer comes, the page may have been there, been changed, and be on
    /// its way back to the pager, so it is too old.
    owed: BTreeMap<u64, u32>,
    /// There was no room to remember more of them.
    owes_more: bool,
}

impl Requests {
    /// How many pages all requests have, whether they are answered or not.
    pub(super) fn pages(&self) -> usize {
        self.pages
    }

    /// The page at a byte offset, if there is a request for it without an answer.
    fn open_page(&mut self, offset: u64) -> Option<&mut Page> {
        let page = self.all.iter_mut().find_map(|request| {
            let place = offset.checked_sub(request.offset)? >> PAGE_SHIFT;
            request.pages.get_mut(usize::try_from(place).ok()?)
        })?;
        page.is_open().then_some(page)
    }

    /// The byte offsets of the pages in a range of bytes for which there are requests without
    /// answers.
    pub(super) fn open_in(&self, offset: u64, size: u64) -> Vec<u64> {
        let pages = self.all.iter().flat_map(|request| {
            let offsets = (request.offset..).step_by(PAGE_SIZE as usize);
            offsets.zip(&request.pages).filter(|(_, page)| page.is_open())
        });
        pages.map(|(at, _)| at).filter(|at| at.wrapping_sub(offset) < size).collect()
    }

    /// Answers for the page at a byte offset. `write` fills its frame, or says that it cannot.
    /// Returns false if there is no such request without an answer, and what `write` says.
    pub(super) fn answer(
        &mut self,
        offset: u64,
        answer: PageAnswer,
        write: impl FnOnce(Frame) -> bool,
    ) -> bool {
        let Some(page) = self.open_page(offset) else { return false };
        let Page::Open(frame) = *page else { return false };
        let written = write(frame);
        if written {
            *page = Page::Answered(answer);
        }
        written
    }

    /// The pager has answered for a page at a byte offset for which no request is open. Returns
    /// whether it owed the answer.
    pub(super) fn take_owed(&mut self, offset: u64) -> bool {
        let Some(count) = self.owed.get_mut(&offset) else { return self.owes_more };
        *count -= 1;
        if *count == 0 {
            self.owed.remove(&offset);
        }
        true
    }

    /// Ends a request. What the pager has not answered, it owes.
    fn end(&mut self, number: u64) -> usize {
        let Some(place) = self.all.iter().position(|request| request.number == number) else { return 0 };
        let ended = self.all.swap_remove(place);
        self.pages -= ended.pages.len();
        for (place, _) in ended.pages[..ended.sent].iter().enumerate().filter(|(_, page)| page.is_open()) {
            let offset = ended.offset + ((place as u64) << PAGE_SHIFT);
            if self.owed.len() < MOST_OWED {
                *self.owed.entry(offset).or_insert(0) += 1;
            } else {
                self.owes_more = true;
            }
        }
        ended.pages.len()
    }

    /// The next run of pages of a request from page `from` on that have no answer: the numbers of
    /// its first page and of the page after its last. The pager is asked for them.
    pub(super) fn next_to_send<M: Machine, P: PortPersonality<M>>(
        &mut self,
        open: &Open<'_, M, P>,
        from: usize,
    ) -> Option<(usize, usize)> {
        let request = self.all.iter_mut().find(|request| request.number == open.number)?;
        let all = request.pages.len();
        let first = (from..all).find(|place| request.pages[*place].is_open())?;
        let end = (first..all).find(|place| !request.pages[*place].is_open()).unwrap_or(all);
        request.sent = end;
        Some((first, end))
    }

    /// Takes the answers to a request of which its task does not know yet, each with the number of
    /// its page, and returns how many pages have no answer. `None`: there are no answers.
    pub(super) fn take_answers<M: Machine, P: PortPersonality<M>>(
        &mut self,
        open: &Open<'_, M, P>,
        answers: &mut Vec<(usize, PageAnswer)>,
    ) -> Option<usize> {
        let request = self.all.iter_mut().find(|request| request.number == open.number)?;
        let mut left = 0;
        for (number, page) in request.pages.iter_mut().enumerate() {
            match *page {
                Page::Open(_) => left += 1,
                Page::Answered(answer) => {
                    *page = Page::Settled;
                    answers.push((number, answer));
                }
                Page::Settled => {}
            }
        }
        (!answers.is_empty()).then_some(left)
    }
}

/// A request while its task waits for the answers. When it is dropped, nothing writes to its frames
/// any more.
pub(super) struct Open<'a, M: Machine, P: PortPersonality<M>> {
    object: &'a MemoryObject<M, P>,
    number: u64,
}

impl<'a, M: Machine, P: PortPersonality<M>> Open<'a, M, P> {
    /// Begins to wait for the pages of a request.
    ///
    /// # Errors
    /// `ResourceShortage`: memory is short.
    pub(super) fn new(object: &'a MemoryObject<M, P>, offset: u64, frames: &[Frame]) -> KernResult<Self> {
        let mut pages = Vec::new();
        pages.try_reserve_exact(frames.len()).map_err(|_| KernError::ResourceShortage)?;
        pages.extend(frames.iter().map(|&frame| Page::Open(frame)));
        let count = pages.len();
        let number = {
            let requests = &mut object.state.lock().requests;
            requests.all.try_reserve(1).map_err(|_| KernError::ResourceShortage)?;
            let number = requests.next_number;
            requests.next_number += 1;
            requests.pages += count;
            requests.all.push(Request { number, offset, pages, sent: 0 });
            number
        };
        object.count_requested(count, true);
        Ok(Self { object, number })
    }
}

impl<M: Machine, P: PortPersonality<M>> Drop for Open<'_, M, P> {
    fn drop(&mut self) {
        let pages = self.object.state.lock().requests.end(self.number);
        self.object.count_requested(pages, false);
    }
}
