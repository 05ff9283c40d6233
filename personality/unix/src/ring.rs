//! A byte queue of limited capacity.

use crate::{AttemptError, CopyError, Error, Result, UserBuffer};
use alloc::vec::Vec;

/// A queue of bytes. Its storage grows with its contents, up to a capacity that may be changed.
pub(crate) struct Ring {
    storage: Vec<u8>,
    start: usize,
    length: usize,
    capacity: usize,
}

/// The size in bytes of the first storage that is allocated.
const SMALLEST: usize = 1024;

impl Ring {
    pub(crate) const fn new(capacity: usize) -> Ring {
        Ring { storage: Vec::new(), start: 0, length: 0, capacity }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many more bytes the queue can take.
    pub(crate) fn space(&self) -> usize {
        self.capacity.saturating_sub(self.length)
    }

    /// Sets the capacity in bytes, and frees storage above it. `EBUSY` if the contents are longer,
    /// `ENOMEM`.
    pub(crate) fn set_capacity(&mut self, capacity: usize) -> Result<()> {
        if self.length > capacity {
            return Err(Error::EBUSY);
        }
        if self.storage.len() > capacity {
            self.move_to(capacity)?;
        }
        self.capacity = capacity;
        Ok(())
    }

    pub(crate) fn clear(&mut self) {
        self.start = 0;
        self.length = 0;
    }

    /// Makes storage for `more` bytes, which must fit the capacity.
    fn reserve(&mut self, more: usize) -> Result<()> {
        let needed = self.length + more;
        if needed <= self.storage.len() {
            return Ok(());
        }
        self.move_to(needed.max(2 * self.storage.len()).max(SMALLEST).min(self.capacity.max(needed)))
    }

    /// Moves the contents to new storage of `size` bytes, in which they must fit.
    fn move_to(&mut self, size: usize) -> Result<()> {
        let mut storage = Vec::new();
        storage.try_reserve_exact(size).map_err(|_| Error::ENOMEM)?;
        let (front, back) = self.contents();
        storage.extend_from_slice(front);
        storage.extend_from_slice(back);
        storage.resize(size, 0);
        self.storage = storage;
        self.start = 0;
        Ok(())
    }

    /// The contents, in the two pieces in which they are stored.
    pub(crate) fn contents(&self) -> (&[u8], &[u8]) {
        let first = self.length.min(self.storage.len() - self.start);
        (&self.storage[self.start..][..first], &self.storage[..self.length - first])
    }

    /// The free storage after the contents: at most `count` bytes, and none beyond the place where
    /// the storage wraps around.
    fn free_piece(&mut self, count: usize) -> &mut [u8] {
        let size = self.storage.len();
        let end = self.start + self.length;
        let (from, room) = if end < size { (end, size - end) } else { (end - size, size - self.length) };
        &mut self.storage[from..][..room.min(count)]
    }

    /// Adds as many of `bytes` as fit; returns how many.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<usize> {
        let count = bytes.len().min(self.space());
        self.reserve(count)?;
        let mut done = 0;
        while done < count {
            let piece = self.free_piece(count - done);
            piece.copy_from_slice(&bytes[done..][..piece.len()]);
            let copied = piece.len();
            done += copied;
            self.length += copied;
        }
        Ok(count)
    }

    /// Puts bytes that were taken out back to the front, even beyond the capacity. Without memory,
    /// the bytes are lost.
    pub(crate) fn push_front(&mut self, bytes: &[u8]) {
        if self.reserve(bytes.len()).is_err() {
            return;
        }
        let size = self.storage.len();
        for byte in bytes.iter().rev() {
            self.start = if self.start == 0 { size - 1 } else { self.start - 1 };
            self.storage[self.start] = *byte;
        }
        self.length += bytes.len();
    }

    /// Copies up to `count` bytes, which must fit, from a user buffer into the queue. The count is
    /// smaller only if the buffer's memory ends.
    pub(crate) fn fill(&mut self, count: usize, from: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        let count = count.min(from.remaining());
        self.reserve(count)?;
        let mut done = 0;
        while done < count {
            let piece = self.free_piece(count - done);
            match from.copy_in(piece) {
                Ok(0) => break,
                Ok(copied) => {
                    done += copied;
                    self.length += copied;
                }
                Err(_) if done > 0 => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(done)
    }

    /// Copies exactly `count` bytes, which must fit, from a user buffer into the queue, or none.
    pub(crate) fn fill_exactly(
        &mut self,
        count: usize,
        from: &mut dyn UserBuffer,
    ) -> Result<(), AttemptError> {
        self.reserve(count)?;
        let mut done = 0;
        while done < count {
            let piece = self.free_piece(count - done);
            match from.copy_in(piece) {
                Ok(copied) if copied > 0 => {
                    done += copied;
                    self.length += copied;
                }
                stopped => {
                    self.length -= done;
                    from.retreat(done);
                    return Err(stopped.err().unwrap_or(CopyError::Fault).into());
                }
            }
        }
        Ok(())
    }

    /// Copies up to `count` bytes to a user buffer and removes them.
    pub(crate) fn drain(&mut self, count: usize, to: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        let count = count.min(to.remaining()).min(self.length);
        let mut done = 0;
        while done < count {
            let (front, _) = self.contents();
            let piece = &front[..front.len().min(count - done)];
            match to.copy_out(piece) {
                Ok(0) => break,
                Ok(copied) => {
                    done += copied;
                    self.consume(copied);
                }
                Err(_) if done > 0 => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(done)
    }

    /// Removes `count` bytes, which must be there, from the front.
    pub(crate) fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.length);
        self.length -= count;
        self.start += count;
        if self.start >= self.storage.len() {
            self.start -= self.storage.len();
        }
        if self.length == 0 {
            self.start = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bytes;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn a_smaller_capacity_frees_storage() {
        let mut ring = Ring::new(8192);
        assert_eq!(ring.push(&[1; 8000]), Ok(8000));
        ring.drain(7000, &mut Bytes::empty(7000)).unwrap();
        assert_eq!(ring.push(b"end"), Ok(3));
        assert_eq!(ring.set_capacity(1000), Err(Error::EBUSY));
        assert_eq!(ring.set_capacity(2000), Ok(()));
        assert!(ring.storage.len() <= 2000);
        assert_eq!((ring.len(), ring.contents().0.ends_with(b"\x01end")), (1003, true));
    }

    proptest! {
        #[test]
        fn a_ring_is_a_queue(
            capacity in 1usize..3000,
            steps in proptest::collection::vec((any::<bool>(), 0usize..1500), 1..60)
        ) {
            let mut ring = Ring::new(capacity);
            let mut model = VecDeque::new();
            let mut next = 0u8;
            for (write, count) in steps {
                if write {
                    let bytes: Vec<u8> = (0..count).map(|_| { next = next.wrapping_add(7); next }).collect();
                    let fits = ring.space().min(count);
                    prop_assert_eq!(ring.fill(ring.space(), &mut Bytes::of(&bytes)), Ok(fits));
                    model.extend(&bytes[..fits]);
                } else {
                    let mut to = Bytes::empty(count);
                    let got = ring.drain(usize::MAX, &mut to).unwrap();
                    let expected: Vec<u8> = model.drain(..got).collect();
                    prop_assert_eq!(to.done(), &expected[..]);
                    prop_assert!(got == count || ring.is_empty());
                }
                prop_assert_eq!(ring.len(), model.len());
                let (front, back) = ring.contents();
                prop_assert!(front.iter().chain(back).eq(model.iter()));
            }
        }
    }
}
