//! User memory as one request sees it.

use crate::{AttemptError, BoxFuture, Error, Result};
use alloc::vec::Vec;
use mach::machine::Frame;

/// Why bytes could not be copied to or from user memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyError {
    /// The memory exists but is not resident, or its map is busy: [`UserBuffer::resolve`] and try
    /// again.
    NotResident,
    /// There is no such memory, or it forbids this access.
    Fault,
}

/// A part of a transfer's memory that lies in one page, lent for a moment.
#[derive(Debug)]
pub enum Part<'a> {
    /// It is in a frame of the machine that the programs run on.
    Frame {
        /// The frame.
        frame: Frame,
        /// Where in it the part begins.
        offset: usize,
        /// Its bytes.
        length: usize,
    },
    /// It is the server's.
    Bytes(&'a mut [u8]),
}

impl Part<'_> {
    /// Its bytes; at least one.
    pub fn length(&self) -> usize {
        match self {
            Part::Frame { length, .. } => *length,
            Part::Bytes(bytes) => bytes.len(),
        }
    }

    /// `length` bytes of it, from byte `start` on.
    pub(crate) fn piece(&mut self, start: usize, length: usize) -> Part<'_> {
        debug_assert!(start + length <= self.length(), "a piece of the part");
        match self {
            Part::Frame { frame, offset, .. } => {
                Part::Frame { frame: *frame, offset: *offset + start, length }
            }
            Part::Bytes(bytes) => Part::Bytes(&mut bytes[start..][..length]),
        }
    }
}

/// The user memory of one transfer: a cursor over a list of ranges (an iovec), consumed from front
/// to back.
///
/// Copies are immediate and never wait, so that an object can copy inside its own lock and stay
/// consistent; what is missing is brought in by [`UserBuffer::resolve`] outside. The same trait
/// serves both directions; a buffer is used for one.
pub trait UserBuffer: Send {
    /// Bytes still to transfer.
    fn remaining(&self) -> usize;

    /// Bytes transferred so far: what the program is told if the operation is cut short.
    fn transferred(&self) -> usize;

    /// Copies from `bytes` to user memory and moves on. Copies less than `bytes.len()` only where
    /// the buffer ends or the next byte cannot be copied now; fails if that is the first byte. With
    /// nothing to copy: `Ok(0)`.
    fn copy_out(&mut self, bytes: &[u8]) -> Result<usize, CopyError>;

    /// Copies from user memory to `bytes` and moves on; rules as for [`UserBuffer::copy_out`].
    fn copy_in(&mut self, bytes: &mut [u8]) -> Result<usize, CopyError>;

    /// Lends the next bytes that lie together in one page, `length` of them at most, to `work`: to
    /// write them if `write`, else to read them. `work` says how many it has used from the front
    /// on, and the buffer moves on by so many. So bytes go from page to page without a buffer
    /// between. With nothing left, or a `length` of 0: `Ok(0)`, without `work`.
    ///
    /// `work` runs under locks of the memory that it is lent: it is short, and reaches other memory
    /// only by what never waits for a lock
    /// ([`VmObject::try_with_frame`](mach::vm::VmObject::try_with_frame)).
    fn with_part(
        &mut self,
        length: usize,
        write: bool,
        work: &mut dyn FnMut(Part<'_>) -> usize,
    ) -> Result<usize, CopyError>;

    /// Moves on by `count` bytes, at most [`UserBuffer::remaining`], without using them (a write to
    /// /dev/null).
    fn skip(&mut self, count: usize);

    /// Moves back by `count` bytes, at most [`UserBuffer::transferred`]: an object that copied in
    /// and could not keep the bytes.
    fn retreat(&mut self, count: usize);

    /// Makes the next bytes resident for `write` (a copy out) or reading: 4096 of them as far as
    /// there are so many. `EFAULT` if the first of them cannot be. They may be gone again by the
    /// next copy: the caller repeats.
    fn resolve(&mut self, write: bool) -> BoxFuture<'_, Result<()>>;
}

/// Copies all of `bytes` out, or nothing. `EINVAL` if they do not fit.
pub fn copy_out_all(to: &mut dyn UserBuffer, bytes: &[u8]) -> Result<(), AttemptError> {
    if to.remaining() < bytes.len() {
        return Err(Error::EINVAL.into());
    }
    let mut done = 0;
    while done < bytes.len() {
        match to.copy_out(&bytes[done..]) {
            Ok(copied) if copied > 0 => done += copied,
            stopped => {
                to.retreat(done);
                return Err(stopped.err().unwrap_or(CopyError::Fault).into());
            }
        }
    }
    Ok(())
}

/// Copies exactly `bytes.len()` bytes in, or nothing. `EINVAL` if there are not so many.
pub fn copy_in_all(from: &mut dyn UserBuffer, bytes: &mut [u8]) -> Result<(), AttemptError> {
    if from.remaining() < bytes.len() {
        return Err(Error::EINVAL.into());
    }
    let mut done = 0;
    while done < bytes.len() {
        match from.copy_in(&mut bytes[done..]) {
            Ok(copied) if copied > 0 => done += copied,
            stopped => {
                from.retreat(done);
                return Err(stopped.err().unwrap_or(CopyError::Fault).into());
            }
        }
    }
    Ok(())
}

/// Server memory as a transfer's buffer: collects what is copied out, or supplies what is copied
/// in.
#[derive(Debug, Default)]
pub struct Bytes {
    bytes: Vec<u8>,
    position: usize,
}

impl Bytes {
    /// A buffer of `length` zero bytes to be filled.
    pub fn empty(length: usize) -> Bytes {
        Bytes { bytes: alloc::vec![0; length], position: 0 }
    }

    /// A buffer that supplies `bytes`.
    pub fn of(bytes: &[u8]) -> Bytes {
        Bytes { bytes: bytes.to_vec(), position: 0 }
    }

    /// A buffer that supplies what was filled of this one.
    pub fn into_supply(mut self) -> Bytes {
        self.bytes.truncate(self.position);
        self.position = 0;
        self
    }

    /// What was not transferred.
    pub fn left(&self) -> &[u8] {
        &self.bytes[self.position..]
    }

    /// What was transferred.
    pub fn done(&self) -> &[u8] {
        &self.bytes[..self.position]
    }
}

impl UserBuffer for Bytes {
    fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    fn transferred(&self) -> usize {
        self.position
    }

    fn copy_out(&mut self, bytes: &[u8]) -> Result<usize, CopyError> {
        let count = bytes.len().min(self.remaining());
        self.bytes[self.position..][..count].copy_from_slice(&bytes[..count]);
        self.position += count;
        Ok(count)
    }

    fn copy_in(&mut self, bytes: &mut [u8]) -> Result<usize, CopyError> {
        let count = bytes.len().min(self.remaining());
        bytes[..count].copy_from_slice(&self.bytes[self.position..][..count]);
        self.position += count;
        Ok(count)
    }

    fn with_part(
        &mut self,
        length: usize,
        _write: bool,
        work: &mut dyn FnMut(Part<'_>) -> usize,
    ) -> Result<usize, CopyError> {
        let count = length.min(self.remaining());
        if count == 0 {
            return Ok(0);
        }
        let used = work(Part::Bytes(&mut self.bytes[self.position..][..count]));
        self.position += used;
        Ok(used)
    }

    fn skip(&mut self, count: usize) {
        self.position += count;
    }

    fn retreat(&mut self, count: usize) {
        self.position -= count;
    }

    fn resolve(&mut self, _write: bool) -> BoxFuture<'_, Result<()>> {
        alloc::boxed::Box::pin(core::future::ready(Ok(())))
    }
}
