//! Reads and writes of a file in a Mach object: copies between the file's pages and those of a
//! buffer.
//!
//! Bytes are copied from page to page, one page at a time, as long as that does not block. If it
//! would block, or if both pages are of one object (a file that is written from a mapping of
//! itself), the bytes of one page are copied through a buffer instead, and the next page is tried
//! directly again. Both kinds of copies stop at the same byte for the same reason.

use super::PAGE;
use super::file_memory::{ObjectMemory, object_error};
use crate::sync::poll_once;
use crate::{AttemptError, Error, Part, Result, UserBuffer};
use mach::Machine;
use mach::machine::{Frame, Protection};

/// The most bytes that one call moves before it lets other tasks run.
const MOST: usize = 16 * PAGE as usize;

/// Why a page could not be written without blocking.
enum Stopped {
    /// The object has to grow to this size, in bytes, first.
    Small(u64),
    /// Another operation has the page locked.
    Busy,
    Failed(Error),
}

/// How many of `length` bytes at `offset` lie in the page of `offset`.
fn within_page(offset: u64, length: usize) -> usize {
    length.min((PAGE - offset % PAGE) as usize)
}

/// The result of a transfer whose next step failed: the count of bytes before that step, or its
/// error if there were none.
fn ended(done: usize, error: AttemptError) -> Result<usize, AttemptError> {
    if done > 0 { Ok(done) } else { Err(error) }
}

impl<M: Machine> ObjectMemory<M> {
    fn machine(&self) -> &M {
        self.object.vm().machine()
    }

    /// Reads as far as that does not block. `None` if nothing was read; the caller then goes on
    /// with [`ObjectMemory::read_through_buffer`].
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

    /// Fills a part of a buffer from the file's pages at `at`; returns how many bytes were copied,
    /// up to the end of the object. A part that does not begin at the offset in its page at which
    /// its page of the file does is filled from two pages.
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

    /// Copies from a frame of the file to a part of the caller's buffer.
    fn fill(&self, frame: Frame, within: usize, part: Part<'_>) {
        match part {
            Part::Frame { frame: to, offset, length } => {
                self.machine().copy_between((frame, within), (to, offset), length);
            }
            Part::Bytes(bytes) => self.machine().read_frame(frame, within, bytes),
        }
    }

    /// Reads bytes of one page, and waits until the page is there.
    pub(super) async fn read_through_buffer(
        &self,
        offset: u64,
        length: usize,
        to: &mut dyn UserBuffer,
    ) -> Result<usize, AttemptError> {
        let mut page = [0; PAGE as usize];
        let bytes = &mut page[..within_page(offset, length.min(to.remaining()))];
        // If the object has no page here, the bytes are zeros. No page is made: a program could use
        // up all memory by reading a file that takes none.
        let page = offset / PAGE;
        if self.size() > offset && self.next_page(page) == Some(page) {
            self.object.read(offset, bytes).await.map_err(object_error)?;
        }
        Ok(to.copy_out(bytes)?)
    }

    /// Writes as far as that does not block. `None` if nothing was written; the caller then goes on
    /// with [`ObjectMemory::write_through_buffer`].
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

    /// Writes up to `length` bytes at `at`, which come from one page of the buffer.
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
                // The object grows here, where the buffer's page is not locked.
                Some(Stopped::Small(size)) => match poll_once(self.grow(size)) {
                    Some(grown) => grown?,
                    None => return Ok(0),
                },
            }
        }
    }

    /// Writes a part of a buffer to the file's pages at `at`; returns how many bytes were written,
    /// or why none were.
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

    /// Writes a part of a buffer to one page of the file, completely or not at all.
    fn write_within_page(&self, at: u64, part: Part<'_>) -> Result<(), Stopped> {
        let length = part.length();
        let end = at + length as u64;
        self.charge(at / PAGE).map_err(Stopped::Failed)?;
        if self.size() < end {
            let within = (at % PAGE) as usize;
            let written = self.extend(at..end, |frame| self.take(frame, within, part));
            return written.ok_or(Stopped::Small(end));
        }
        if length as u64 == PAGE && at.is_multiple_of(PAGE) {
            let written = self.object.try_overwrite(at, |frame| self.take(frame, 0, part));
            return written.ok_or(Stopped::Busy);
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

    /// Copies from a part of the caller's buffer to a frame of the file.
    fn take(&self, frame: Frame, within: usize, part: Part<'_>) {
        match part {
            Part::Frame { frame: from, offset, length } => {
                self.machine().copy_between((from, offset), (frame, within), length);
            }
            Part::Bytes(bytes) => self.machine().write_frame(frame, within, bytes),
        }
    }

    /// Writes bytes of one page, and waits until the page is there. The buffer advances when they
    /// are written, so that a future that is dropped before has advanced it by exactly what was
    /// written.
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
            // A page that is overwritten as a whole is not read before.
            let whole = copied as u64 == PAGE && self.write_within_page(offset, Part::Bytes(bytes)).is_ok();
            if !whole {
                self.store(offset, &bytes[..copied]).await?;
            }
            from.skip(copied);
        }
        Ok(copied)
    }
}
