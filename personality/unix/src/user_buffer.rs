//! The user memory of a transfer, as one request sees it.

use crate::{AttemptError, BoxFuture, Error, Result};
use alloc::vec::Vec;
use mach::machine::Frame;

/// Why bytes could not be copied to or from user memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyError {
    /// The memory exists but is not resident, or its map is locked: call [`UserBuffer::resolve`]
    /// and try again.
    NotResident,
    /// No memory is mapped at the address, or it forbids this access.
    Fault,
}

/// A part of a transfer's memory that lies in one page, lent for the duration of a call.
#[derive(Debug)]
pub enum Part<'a> {
    /// The part is in a frame of the machine that the programs run on.
    Frame {
        /// The frame with the part.
        frame: Frame,
        /// Offset in the frame of the part's first byte.
        offset: usize,
        /// How many bytes the part has.
        length: usize,
    },
    /// The part is memory of the server.
    Bytes(&'a mut [u8]),
}

impl Part<'_> {
    /// How many bytes the part has; at least one.
    pub fn length(&self) -> usize {
        match self {
            Part::Frame { length, .. } => *length,
            Part::Bytes(bytes) => bytes.len(),
        }
    }

    /// `length` bytes of the part, from byte `start` on.
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
/// Copies never block, so that an object can copy under its own lock and stay consistent; missing
/// pages are brought in by [`UserBuffer::resolve`] outside of the lock. The trait serves both
/// directions of transfers, but each buffer is used for one.
pub trait UserBuffer: Send {
    /// How many bytes are still to be transferred.
    fn remaining(&self) -> usize;

    /// How many bytes were transferred; the program gets this count if the operation is cut short.
    fn transferred(&self) -> usize;

    /// Copies from `bytes` to user memory and advances. Copies less than `bytes.len()` only if the
    /// buffer ends or the next byte cannot be copied now; fails if that is the first byte. If there
    /// is nothing to copy, the result is `Ok(0)`.
    fn copy_out(&mut self, bytes: &[u8]) -> Result<usize, CopyError>;

    /// Copies from user memory to `bytes` and advances, by the rules of [`UserBuffer::copy_out`].
    fn copy_in(&mut self, bytes: &mut [u8]) -> Result<usize, CopyError>;

    /// Calls `work` with the next bytes that lie in one page, `length` of them at most, to write
    /// them if `write`, else to read them. `work` returns how many it has used, and the buffer
    /// advances by that number. So bytes are copied from page to page without a buffer in between.
    /// If nothing is left, or `length` is 0, the result is `Ok(0)` and `work` is not called.
    ///
    /// `work` runs under locks of that memory: it must be short, and may access other memory only
    /// without waiting for a lock
    /// ([`VmObject::try_with_frame`](mach::vm::VmObject::try_with_frame)).
    fn with_part(
        &mut self,
        length: usize,
        write: bool,
        work: &mut dyn FnMut(Part<'_>) -> usize,
    ) -> Result<usize, CopyError>;

    /// Advances by `count` bytes, at most [`UserBuffer::remaining`], without using them (a write to
    /// /dev/null).
    fn skip(&mut self, count: usize);

    /// Goes back by `count` bytes, at most [`UserBuffer::transferred`], for an object that copied
    /// bytes and could not keep them.
    fn retreat(&mut self, count: usize);

    /// Makes the next bytes resident for writing (`write`, a copy out) or for reading: 4096 bytes,
    /// or as many as there are. `EFAULT` if the first of them cannot be made resident. They may be
    /// paged out again before the next copy, so the caller repeats both.
    fn resolve(&mut self, write: bool) -> BoxFuture<'_, Result<()>>;
}

/// Makes the next `count` bytes resident, as [`UserBuffer::resolve`] does with 4096, for a message
/// that is copied as a whole or not. `EFAULT` if any of them cannot be made resident.
pub async fn resolve_message(buffer: &mut dyn UserBuffer, count: usize, write: bool) -> Result<()> {
    const STEP: usize = 4096;
    let start = buffer.transferred();
    let mut result = Ok(());
    while result.is_ok() && buffer.transferred() - start < count && buffer.remaining() > 0 {
        result = buffer.resolve(write).await;
        let rest = count - (buffer.transferred() - start);
        buffer.skip(STEP.min(rest).min(buffer.remaining()));
    }
    buffer.retreat(buffer.transferred() - start);
    result
}

/// Copies all of `bytes` to the user, or none. `EINVAL` if they do not fit.
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

/// Copies exactly `bytes.len()` bytes from the user, or none. `EINVAL` if the buffer has fewer.
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

/// A transfer's buffer in server memory: it collects bytes that are copied out, or supplies bytes
/// that are copied in.
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

    /// A buffer that supplies the bytes that were copied to this one.
    pub fn into_supply(mut self) -> Bytes {
        self.bytes.truncate(self.position);
        self.position = 0;
        self
    }

    /// The bytes that were not transferred.
    pub fn left(&self) -> &[u8] {
        &self.bytes[self.position..]
    }

    /// The bytes that were transferred.
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
