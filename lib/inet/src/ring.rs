//! The bytes of a stream that wait: a ring in one block of memory, which grows by doubling.

use alloc::vec::Vec;

/// A ring. The first [`Ring::len`] bytes from its start are its content; bytes after these can be
/// written ahead of their time, and become content by [`Ring::extend`].
#[derive(Default)]
pub(crate) struct Ring {
    /// Its length is a power of two, or zero.
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

const SMALLEST: usize = 2048;

impl Ring {
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Bytes that are allocated.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// What [`Ring::reserve`] has to allocate in addition for content of `size` bytes.
    pub(crate) fn growth(&self, size: usize) -> usize {
        if size <= self.bytes.len() { 0 } else { size.next_power_of_two().max(SMALLEST) - self.bytes.len() }
    }

    /// Makes room for `size` bytes of content.
    pub(crate) fn reserve(&mut self, size: usize) {
        if size <= self.bytes.len() {
            return;
        }
        let size = size.next_power_of_two().max(SMALLEST);
        let mut bytes = Vec::with_capacity(size);
        bytes.extend_from_slice(&self.bytes[self.start..]);
        bytes.extend_from_slice(&self.bytes[..self.start]);
        bytes.resize(size, 0);
        self.bytes = bytes;
        self.start = 0;
    }

    /// Gives the memory back if there is no content, and nothing was written ahead.
    pub(crate) fn release(&mut self) -> usize {
        debug_assert!(self.length == 0);
        self.start = 0;
        core::mem::take(&mut self.bytes).len()
    }

    /// Writes bytes at `offset` from the start of the content, where there is room.
    pub(crate) fn write(&mut self, offset: usize, data: &[u8]) {
        debug_assert!(offset + data.len() <= self.bytes.len());
        if data.is_empty() {
            return;
        }
        let mask = self.bytes.len() - 1;
        let at = (self.start + offset) & mask;
        let first = data.len().min(self.bytes.len() - at);
        self.bytes[at..at + first].copy_from_slice(&data[..first]);
        self.bytes[..data.len() - first].copy_from_slice(&data[first..]);
    }

    /// The next `count` bytes, which have been written, are content.
    pub(crate) fn extend(&mut self, count: usize) {
        debug_assert!(self.length + count <= self.bytes.len());
        self.length += count;
    }

    /// The content from `offset`, at most `count` bytes, in two pieces.
    pub(crate) fn pieces(&self, offset: usize, count: usize) -> (&[u8], &[u8]) {
        if offset >= self.length {
            return (&[], &[]);
        }
        let count = count.min(self.length - offset);
        let at = (self.start + offset) & (self.bytes.len() - 1);
        let first = count.min(self.bytes.len() - at);
        (&self.bytes[at..at + first], &self.bytes[..count - first])
    }

    /// Copies the content from `offset` and answers how much there was.
    pub(crate) fn copy(&self, offset: usize, buffer: &mut [u8]) -> usize {
        let (first, second) = self.pieces(offset, buffer.len());
        buffer[..first.len()].copy_from_slice(first);
        buffer[first.len()..first.len() + second.len()].copy_from_slice(second);
        first.len() + second.len()
    }

    /// Drops bytes from the start of the content.
    pub(crate) fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.length);
        if count > 0 {
            self.start = (self.start + count) & (self.bytes.len() - 1);
            self.length -= count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn a_ring_is_a_queue(steps in proptest::collection::vec((0usize..3000, any::<bool>(), any::<u8>()), 0..60)) {
            let mut ring = Ring::default();
            let mut model = VecDeque::new();
            for (count, push, byte) in steps {
                if push {
                    let data: Vec<u8> = (0..count).map(|at| byte.wrapping_add(at as u8)).collect();
                    prop_assert!(ring.capacity() + ring.growth(ring.len() + count) >= ring.len() + count);
                    ring.reserve(ring.len() + count);
                    // The second half is written before the first.
                    let length = ring.len();
                    ring.write(length + count / 2, &data[count / 2..]);
                    ring.write(length, &data[..count / 2]);
                    ring.extend(count);
                    model.extend(data);
                } else {
                    let count = count.min(ring.len());
                    ring.consume(count);
                    model.drain(..count);
                }
                let mut content = vec![0; ring.len() + 1];
                let length = ring.len();
                prop_assert_eq!(ring.copy(0, &mut content), length);
                prop_assert_eq!(&content[..length], &*model.make_contiguous());
            }
        }
    }
}
