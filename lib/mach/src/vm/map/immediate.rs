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
        if is_in_one_page(address, buffer.len()) {
            return self.read_page(address, buffer);
        }
        each_part(address, buffer.len(), |at, _, done, count| {
            self.read_page(at, &mut buffer[done..done + count])
        })
    }

    /// Reads bytes that lie in one page.
    #[inline(never)]
    fn read_page(&self, address: u64, buffer: &mut [u8]) -> bool {
        let offset = (address % PAGE_SIZE) as usize;
        self.use_page(address, Protection::READ, |frame| {
            self.vm.machine().read_frame(frame, offset, buffer);
        })
    }

    /// Lends the frame of a page to `with`. Returns false if that is not possible, or not without
    /// waiting.
    #[inline(always)]
    fn use_page(&self, address: u64, access: Protection, mut with: impl FnMut(Frame)) -> bool {
        self.ready_path(address, access, &mut with).is_some()
            || self.try_other_page(address, access, with).is_some_and(|used| used.is_ok())
    }

    /// Writes a task's memory as [`copyout`](Self::copyout) does. Returns false if that is not
    /// possible, or not without waiting; a part may have been written then.
    #[inline]
    pub fn try_copyout(&self, address: u64, bytes: &[u8]) -> bool {
        if is_in_one_page(address, bytes.len()) {
            return self.write_page(address, bytes);
        }
        each_part(address, bytes.len(), |at, _, done, count| self.write_page(at, &bytes[done..done + count]))
    }

    /// Writes bytes that lie in one page.
    #[inline(never)]
    fn write_page(&self, address: u64, bytes: &[u8]) -> bool {
        let offset = (address % PAGE_SIZE) as usize;
        self.use_page(address, Protection::WRITE, |frame| {
            self.vm.machine().write_frame(frame, offset, bytes);
        })
    }

    /// Copies bytes from `source` in this task's memory to `target` in that of `to`, which may be
    /// the same task. Returns false if that is not possible, or not without waiting; a part may
    /// have been copied then.
    pub fn try_copy(&self, source: u64, to: &Self, target: u64, length: usize) -> bool {
        let in_page = |address: u64| (address % PAGE_SIZE) as usize;
        let mut done = 0;
        while done < length {
            let next = |address: u64| address.checked_add(done as u64);
            let (Some(from), Some(into)) = (next(source), next(target)) else { return false };
            let (from_offset, into_offset) = (in_page(from), in_page(into));
            let count = (length - done).min(PAGE_SIZE as usize - from_offset.max(into_offset));
            let copy = |source: Frame, target: Frame| {
                let (source, target) = ((source, from_offset), (target, into_offset));
                self.vm.machine().copy_between(source, target, count);
            };
            if !self.with_frames(from, to, into, copy) && !self.copy_pieces(from, to, into, count) {
                return false;
            }
            done += count;
        }
        true
    }

    /// Lends the frames of the pages at `from` in this map and at `into` in `to` to `with`, for a
    /// read and a write. Returns false, and does nothing, if the target's page has to be found
    /// first, or the source's page is not in memory.
    #[inline(always)]
    fn with_frames(&self, from: u64, to: &Self, into: u64, with: impl Fn(Frame, Frame)) -> bool {
        if core::ptr::eq(self, to) {
            return self.with_both_frames(from, into, with).is_some();
        }
        // No lock of the target is waited for while those of the source are held.
        let mut lend = |source: Frame| {
            let translation = to.translation.try_lock()?;
            let hint = translation.hints.find(into, Protection::WRITE)?;
            let object = hint.object.upgrade()?;
            let mut state = object.state.try_lock()?;
            with(source, state.ready_frame(hint.index(into), Protection::WRITE)?);
            Some(())
        };
        match self.ready_path(from, Protection::READ, &mut lend) {
            Some(lent) => lent.is_some(),
            None => matches!(self.try_other_page(from, Protection::READ, lend), Some(Ok(Some(())))),
        }
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

/// Whether a range of at least one byte lies in one page.
#[inline(always)]
fn is_in_one_page(address: u64, length: usize) -> bool {
    length.wrapping_sub(1) < PAGE_SIZE as usize - (address % PAGE_SIZE) as usize
}

/// Calls `with` for the part of each page in a range, until it returns false: the address, the
/// offset in the page, the bytes before, and the bytes of the part. Returns whether all parts were
/// used; a range beyond the last address is not.
#[inline]
fn each_part(address: u64, length: usize, mut with: impl FnMut(u64, usize, usize, usize) -> bool) -> bool {
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
