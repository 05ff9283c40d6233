//! Access to a task's memory without waiting, for what the server does while it serves a trap
//! without the thread's task: reads, writes, and copies from one task to another.

use super::VmMap;
use crate::machine::{Frame, Machine, PAGE_SIZE, Protection};

/// How many bytes are copied at a time if the frames of source and target cannot be used together.
const PIECE: usize = 512;

impl<M: Machine> VmMap<M> {
    /// Reads a task's memory as [`copyin`](Self::copyin) does. Returns false if that is not
    /// possible, or not without waiting; a part may have been read then.
    #[inline]
    pub fn try_copyin(&self, address: u64, buffer: &mut [u8]) -> bool {
        each_part(address, buffer.len(), |at, offset, done, count| {
            let part = &mut buffer[done..done + count];
            let read = |frame| self.vm.machine().read_frame(frame, offset, part);
            self.try_with_frame(at, Protection::READ, read).is_some_and(|read| read.is_ok())
        })
    }

    /// Writes a task's memory as [`copyout`](Self::copyout) does. Returns false if that is not
    /// possible, or not without waiting; a part may have been written then.
    #[inline]
    pub fn try_copyout(&self, address: u64, bytes: &[u8]) -> bool {
        each_part(address, bytes.len(), |at, offset, done, count| {
            let part = &bytes[done..done + count];
            let write = |frame| self.vm.machine().write_frame(frame, offset, part);
            self.try_with_frame(at, Protection::WRITE, write).is_some_and(|written| written.is_ok())
        })
    }

    /// Copies bytes from `source` in this task's memory to `target` in that of `to`, which may be
    /// the same task. Returns false if that is not possible, or not without waiting; a part may
    /// have been copied then.
    pub fn try_copy(&self, source: u64, to: &Self, target: u64, length: usize) -> bool {
        each_part(source, length, |from, from_offset, done, count| {
            each_part(target.wrapping_add(done as u64), count, |into, into_offset, done, count| {
                let (from, from_offset) = (from + done as u64, from_offset + done);
                let copy = |source: Frame, target: Frame| {
                    let (source, target) = ((source, from_offset), (target, into_offset));
                    self.vm.machine().copy_between(source, target, count);
                };
                self.with_frames(from, to, into, copy) || self.copy_pieces(from, to, into, count)
            })
        })
    }

    /// Lends the frames of the pages at `from` in this map and at `into` in `to` to `with`, for a
    /// read and a write. Returns false, and does nothing, if the target's page has to be found
    /// first, or the source's page is not in memory.
    #[inline]
    fn with_frames(&self, from: u64, to: &Self, into: u64, with: impl Fn(Frame, Frame)) -> bool {
        if core::ptr::eq(self, to) {
            return self.with_both_frames(from, into, with).is_some();
        }
        // No lock of the target is waited for while those of the source are held.
        let lend = |source: Frame| {
            let translation = to.translation.try_lock()?;
            let hint = translation.hints.find(into, Protection::WRITE)?;
            let object = hint.object.upgrade()?;
            let mut state = object.state.try_lock()?;
            with(source, state.ready_frame(hint.index(into), Protection::WRITE)?);
            Some(())
        };
        matches!(self.try_with_frame(from, Protection::READ, lend), Some(Ok(Some(()))))
    }

    /// Lends the frames of two pages of one entry to `with`.
    fn with_both_frames(&self, from: u64, into: u64, with: impl Fn(Frame, Frame)) -> Option<()> {
        let translation = self.translation.lock();
        let hint = translation.hints.find(into, Protection::WRITE)?;
        if !hint.contains(from) || !hint.protection.contains(Protection::READ) {
            return None;
        }
        let object = hint.object.upgrade()?;
        let mut state = object.state.lock();
        let source = state.ready_frame(hint.index(from), Protection::READ)?;
        with(source, state.ready_frame(hint.index(into), Protection::WRITE)?);
        Some(())
    }

    /// Copies bytes by way of the server's stack.
    #[cold]
    fn copy_pieces(&self, from: u64, to: &Self, into: u64, length: usize) -> bool {
        let mut piece = [0; PIECE];
        (0..length).step_by(PIECE).all(|done| {
            let piece = &mut piece[..PIECE.min(length - done)];
            self.try_copyin(from + done as u64, piece) && to.try_copyout(into + done as u64, piece)
        })
    }
}

/// Calls `with` for the part of each page in a range, until it returns false: the address, the
/// offset in the page, the bytes before, and the bytes of the part. Returns whether all parts were
/// used; a range beyond the last address is not.
#[inline]
fn each_part(address: u64, length: usize, mut with: impl FnMut(u64, usize, usize, usize) -> bool) -> bool {
    let offset = (address % PAGE_SIZE) as usize;
    if length.wrapping_sub(1) < PAGE_SIZE as usize - offset {
        return with(address, offset, 0, length);
    }
    let mut done = 0;
    while done < length {
        let Some(at) = address.checked_add(done as u64) else { return false };
        let offset = (at % PAGE_SIZE) as usize;
        let count = (length - done).min(PAGE_SIZE as usize - offset);
        if !with(at, offset, done, count) {
            return false;
        }
        done += count;
    }
    true
}
