//! Reading and writing a file in a Mach object: its pages to and from a buffer's.
//!
//! Bytes go from page to page, a page at a time, as long as nothing has to be waited for. Where
//! something has, and where page and buffer are of the same object (a file that is written from a
//! mapping of itself), the bytes of one page go through a buffer on the way, and then it goes on as
//! before. Both ways stop at the same byte for the same reason.

use super::PAGE;
use super::file_memory::{ObjectMemory, object_error};
use super::user::poll_once;
use crate::{AttemptError, Error, Part, Result, UserBuffer};
use mach::Machine;
use mach::machine::{Frame, Protection};

/// Bytes that one call moves at most, before others have their turn.
const MOST: usize = 16 * PAGE as usize;

/// Why no byte of a page was written.
enum Stopped {
    /// The object has to grow to this size first.
    Small(u64),
    /// The page is locked by another operation, which has to be waited for.
    Busy,
    Failed(Error),
}

/// Bytes from `offset` to the end of its page, `length` at most.
fn within_page(offset: u64, length: usize) -> usize {
    length.min((PAGE - offset % PAGE) as usize)
}

/// What a step that moves nothing ends with: the count of those before it, or its error.
fn ended(done: usize, error: AttemptError) -> Result<usize, AttemptError> {
    if done > 0 { Ok(done) } else { Err(error) }
}

impl<M: Machine> ObjectMemory<M> {
    fn machine(&self) -> &M {
        self.object.vm().machine()
    }

    /// Reads what needs no waiting; `None`: nothing was read, [`ObjectMemory::read_through_buffer`]
    /// goes on.
    pub(super) fn read_pages(
        &self,
        offset: u64,
        length: usize,
        to: &mut dyn UserBuffer,
    ) -> Option<Result<usize, AttemptError>> {
        let length = length.min(MOST);
        let mut done = 0;
        while done < length {
            let at = offset + done as u64;
            match to.with_part(length - done, true, &mut |part| self.read_part(at, part)) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) => return Some(ended(done, error.into())),
            }
        }
        (done > 0).then_some(Ok(done))
    }

    /// Fills a part from the file's pages at `at`; how much of it, as far as the object goes. A
    /// part is looked up once: where it does not begin as its page of the file does, it is filled
    /// from two.
    fn read_part(&self, at: u64, mut part: Part<'_>) -> usize {
        let (length, mut done) = (part.length(), 0);
        while done < length {
            let at = at + done as u64;
            let wanted = within_page(at, length - done);
            let filled = self.object.try_with_frame(at, Protection::READ, |frame, rest| {
                let count = wanted.min(usize::try_from(rest).unwrap_or(usize::MAX));
                self.fill(frame, (at % PAGE) as usize, part.piece(done, count));
                count
            });
            done += filled.unwrap_or(0);
            if filled != Some(wanted) {
                break;
            }
        }
        done
    }

    /// Copies from a frame of the file to the caller's buffer.
    fn fill(&self, frame: Frame, within: usize, part: Part<'_>) {
        match part {
            Part::Frame { frame: to, offset, length } => {
                self.machine().copy_between((frame, within), (to, offset), length);
            }
            Part::Bytes(bytes) => self.machine().read_frame(frame, within, bytes),
        }
    }

    /// Reads bytes of one page, waiting for it.
    pub(super) async fn read_through_buffer(
        &self,
        offset: u64,
        length: usize,
        to: &mut dyn UserBuffer,
    ) -> Result<usize, AttemptError> {
        let mut page = [0; PAGE as usize];
        let bytes = &mut page[..within_page(offset, length.min(to.remaining()))];
        // What the object has no page for is zeros, and gets none: a program could take all memory
        // by reading a file that takes none.
        let page = offset / PAGE;
        if self.size() > offset && self.next_page(page) == Some(page) {
            self.object.read(offset, bytes).await.map_err(object_error)?;
        }
        Ok(to.copy_out(bytes)?)
    }

    /// Writes what needs no waiting; `None`: nothing was written,
    /// [`ObjectMemory::write_through_buffer`] goes on.
    pub(super) fn write_pages(
        &self,
        offset: u64,
        length: usize,
        from: &mut dyn UserBuffer,
    ) -> Option<Result<usize, AttemptError>> {
        let length = length.min(MOST);
        let mut done = 0;
        while done < length {
            let at = offset + done as u64;
            match self.write_parts(at, length - done, from) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) => return Some(ended(done, error)),
            }
        }
        (done > 0).then_some(Ok(done))
    }

    /// Writes at most `length` bytes at `at`, which lie in one page of the buffer.
    fn write_parts(&self, at: u64, length: usize, from: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        loop {
            let mut stopped = None;
            let written = from.with_part(length, false, &mut |part| {
                self.write_part(at, part).unwrap_or_else(|why| {
                    stopped = Some(why);
                    0
                })
            })?;
            match stopped {
                None => return Ok(written),
                Some(Stopped::Busy) => return Ok(0),
                Some(Stopped::Failed(error)) => return Err(error.into()),
                // Outside the locks of the buffer's page.
                Some(Stopped::Small(size)) => match poll_once(self.grow(size)) {
                    Some(grown) => grown?,
                    None => return Ok(0),
                },
            }
        }
    }

    /// Writes a part to the file's pages at `at`; how much of it, or why nothing.
    fn write_part(&self, at: u64, mut part: Part<'_>) -> Result<usize, Stopped> {
        let (length, mut done) = (part.length(), 0);
        while done < length {
            let at = at + done as u64;
            let count = within_page(at, length - done);
            match self.write_within_page(at, part.piece(done, count)) {
                Ok(()) => done += count,
                Err(why) if done == 0 => return Err(why),
                Err(_) => break,
            }
        }
        Ok(done)
    }

    /// Writes a part to one page of the file, all of it or nothing.
    fn write_within_page(&self, at: u64, part: Part<'_>) -> Result<(), Stopped> {
        let length = part.length();
        let end = at + length as u64;
        self.charge(at / PAGE).map_err(Stopped::Failed)?;
        if self.size() < end {
            return Err(Stopped::Small(end));
        }
        let written = self.object.try_with_frame(at, Protection::WRITE, |frame, rest| {
            let fits = rest >= length as u64;
            if fits {
                self.take(frame, (at % PAGE) as usize, part);
            }
            fits
        });
        if written == Some(true) { Ok(()) } else { Err(Stopped::Busy) }
    }

    /// Copies from the caller's buffer into a frame of the file.
    fn take(&self, frame: Frame, within: usize, part: Part<'_>) {
        match part {
            Part::Frame { frame: from, offset, length } => {
                self.machine().copy_between((from, offset), (frame, within), length);
            }
            Part::Bytes(bytes) => self.machine().write_frame(frame, within, bytes),
        }
    }

    /// Writes bytes of one page, waiting for it. The buffer moves on when they are written, so that
    /// a future that is dropped before has moved it by exactly what stands in the file.
    pub(super) async fn write_through_buffer(
        &self,
        offset: u64,
        length: usize,
        from: &mut dyn UserBuffer,
    ) -> Result<usize, AttemptError> {
        let mut page = [0; PAGE as usize];
        let bytes = &mut page[..within_page(offset, length.min(from.remaining()))];
        let copied = from.copy_in(bytes)?;
        from.retreat(copied);
        if copied > 0 {
            self.store(offset, &bytes[..copied]).await?;
            from.skip(copied);
        }
        Ok(copied)
    }
}
