//! The requests of a memory object that its pager has not answered, and the answers.
//!
//! Each page of a request is answered by itself. The answer comes in the task of the pager, which
//! writes the frame of the page under the lock of the memory object's state, as long as the request
//! is open; the request owns the frame until its own task has settled the page.

use alloc::vec::Vec;

use super::PortPersonality;
use super::memory_object::MemoryObject;
use crate::machine::{Frame, Machine, PAGE_SHIFT, PAGE_SIZE};
use crate::vm::{DataRequest, PageAnswer};
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

/// A run of pages that the pager was asked for.
struct Request {
    number: u64,
    offset: u64,
    pages: Vec<Page>,
}

/// The requests of a memory object.
#[derive(Default)]
pub(super) struct Requests {
    all: Vec<Request>,
    next_number: u64,
    /// How many pages all requests have.
    pages: usize,
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
        matches!(page, Page::Open(_)).then_some(page)
    }

    /// The byte offsets of the pages in a range of bytes for which there are requests without
    /// answers.
    pub(super) fn open_in(&self, offset: u64, size: u64) -> Vec<u64> {
        let pages = self.all.iter().flat_map(|request| {
            let offsets = (request.offset..).step_by(PAGE_SIZE as usize);
            offsets.zip(&request.pages).filter(|(_, page)| matches!(page, Page::Open(_)))
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
    pub(super) fn new(object: &'a MemoryObject<M, P>, request: &DataRequest<'_, M>) -> KernResult<Self> {
        let mut pages = Vec::new();
        pages.try_reserve_exact(request.frames.len()).map_err(|_| KernError::ResourceShortage)?;
        pages.extend(request.frames.iter().map(|&frame| Page::Open(frame)));
        let count = pages.len();
        let number = {
            let requests = &mut object.state.lock().requests;
            requests.all.try_reserve(1).map_err(|_| KernError::ResourceShortage)?;
            let number = requests.next_number;
            requests.next_number += 1;
            requests.pages += count;
            requests.all.push(Request { number, offset: request.offset, pages });
            number
        };
        object.count_requested(count, true);
        Ok(Self { object, number })
    }
}

impl<M: Machine, P: PortPersonality<M>> Drop for Open<'_, M, P> {
    fn drop(&mut self) {
        let ended = {
            let requests = &mut self.object.state.lock().requests;
            let place = requests.all.iter().position(|request| request.number == self.number);
            place.map(|place| {
                let ended = requests.all.swap_remove(place);
                requests.pages -= ended.pages.len();
                ended
            })
        };
        self.object.count_requested(ended.map_or(0, |request| request.pages.len()), false);
    }
}
