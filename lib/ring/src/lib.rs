//! A ring of bytes in shared memory: one writer, one reader, neither of which trusts the other.
//!
//! Each side counts its own bytes privately and only publishes the count. A count of the other side
//! is used only if it is possible. An impossible count is treated as "nothing to read" or "no
//! room".
//!
//! [`lane`] is a ring of words that never fills, for a client and a driver.
#![cfg_attr(not(any(test, loom)), no_std)]
#![forbid(unsafe_code)]

pub mod lane;

use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// The shared part of a ring. If it is all zero, the ring is empty. `SIZE` is a power of two.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Ring<const SIZE: usize> {
    /// How many bytes have been written, modulo 2^32.
    written: AtomicU32,
    /// How many bytes have been read, modulo 2^32.
    read: AtomicU32,
    /// Whether the writer waits for room.
    waiting: AtomicU32,
    bytes: [AtomicU8; SIZE],
}

impl<const SIZE: usize> Ring<SIZE> {
    const MASK: u32 = {
        assert!(SIZE.is_power_of_two() && SIZE < 1 << 31);
        SIZE as u32 - 1
    };

    fn byte(&self, count: u32) -> &AtomicU8 {
        &self.bytes[(count & Self::MASK) as usize]
    }
}

impl<const SIZE: usize> Default for Ring<SIZE> {
    fn default() -> Self {
        let zero = || AtomicU32::new(0);
        Ring { written: zero(), read: zero(), waiting: zero(), bytes: [const { AtomicU8::new(0) }; SIZE] }
    }
}

/// The writer's side of a ring.
#[derive(Debug)]
pub struct Writer<'a, const SIZE: usize> {
    ring: &'a Ring<SIZE>,
    written: u32,
}

impl<'a, const SIZE: usize> Writer<'a, SIZE> {
    /// The writer's side of a ring. It goes on where an earlier writer has ended; a ring that is
    /// all zero has had none.
    pub fn new(ring: &'a Ring<SIZE>) -> Self {
        Writer { ring, written: ring.written.load(Ordering::SeqCst) }
    }

    /// How many bytes have been written, modulo 2^32.
    pub fn written(&self) -> u32 {
        self.written
    }

    /// The number of bytes that can be written now.
    pub fn room(&self) -> usize {
        let read = self.ring.read.load(Ordering::SeqCst);
        SIZE.saturating_sub(self.written.wrapping_sub(read) as usize)
    }

    /// Writes as many of `bytes` as there is room for. Returns how many.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.room());
        for &byte in &bytes[..count] {
            self.ring.byte(self.written).store(byte, Ordering::Relaxed);
            self.written = self.written.wrapping_add(1);
        }
        self.ring.written.store(self.written, Ordering::SeqCst);
        count
    }

    /// Whether the reader has read all bytes.
    pub fn is_drained(&self) -> bool {
        self.room() == SIZE
    }

    /// Asks the reader to notify the writer when it has read something. The caller must check for
    /// room once more afterwards.
    pub fn wait_for_reader(&self) {
        self.ring.waiting.store(1, Ordering::SeqCst);
    }
}

/// The reader's side of a ring.
#[derive(Debug)]
pub struct Reader<'a, const SIZE: usize> {
    ring: &'a Ring<SIZE>,
    read: u32,
}

impl<'a, const SIZE: usize> Reader<'a, SIZE> {
    /// The reader's side of a ring. It goes on where an earlier reader has ended; from a ring that
    /// is all zero nothing has been read.
    pub fn new(ring: &'a Ring<SIZE>) -> Self {
        Reader { ring, read: ring.read.load(Ordering::SeqCst) }
    }

    /// The number of bytes that can be read now.
    pub fn available(&self) -> usize {
        let there = self.ring.written.load(Ordering::SeqCst).wrapping_sub(self.read) as usize;
        if there <= SIZE { there } else { 0 }
    }

    /// Reads up to `most` bytes, and passes each to `take`. Returns how many were read.
    pub fn read_each(&mut self, most: usize, take: impl FnMut(u8)) -> usize {
        let count = self.read_ahead(most, take);
        self.publish();
        count
    }

    /// Reads as [`read_each`](Self::read_each) does, but the bytes stay in the ring until the
    /// reader says that it has read them ([`publish`](Self::publish)). A reader that ends before is
    /// followed by one that reads them again.
    pub fn read_ahead(&mut self, most: usize, mut take: impl FnMut(u8)) -> usize {
        let count = most.min(self.available());
        for _ in 0..count {
            take(self.ring.byte(self.read).load(Ordering::Relaxed));
            self.read = self.read.wrapping_add(1);
        }
        count
    }

    /// Makes the room of all bytes that were read free for the writer.
    pub fn publish(&self) {
        self.ring.read.store(self.read, Ordering::SeqCst);
    }

    /// Reads as many bytes as there are and `buffer` can hold. Returns how many.
    pub fn read(&mut self, buffer: &mut [u8]) -> usize {
        let mut places = buffer.iter_mut();
        self.read_each(places.len(), |byte| {
            if let Some(place) = places.next() {
                *place = byte;
            }
        })
    }

    /// Copies as many bytes as there are and `buffer` can hold, which stay in the ring. Returns how
    /// many.
    pub fn peek(&self, buffer: &mut [u8]) -> usize {
        let count = buffer.len().min(self.available());
        for (at, place) in (0u32..).zip(&mut buffer[..count]) {
            *place = self.ring.byte(self.read.wrapping_add(at)).load(Ordering::Relaxed);
        }
        count
    }

    /// Takes up to `count` bytes out of the ring without looking at them.
    pub fn skip(&mut self, count: usize) {
        self.read_each(count, |_| {});
    }

    /// How many bytes have been read, modulo 2^32.
    pub fn position(&self) -> u32 {
        self.read
    }

    /// Returns whether the writer was waiting to be notified, and clears that mark.
    pub fn take_waiting(&self) -> bool {
        self.ring.waiting.swap(0, Ordering::SeqCst) != 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn a_full_ring_takes_no_more_and_an_empty_one_has_nothing() {
        let ring = Ring::<8>::default();
        let (mut writer, mut reader) = (Writer::new(&ring), Reader::new(&ring));
        assert_eq!((writer.write(b"0123456789"), writer.write(b"x"), writer.room()), (8, 0, 0));
        let mut buffer = [0; 16];
        assert_eq!((reader.read(&mut buffer), &buffer[..8]), (8, &b"01234567"[..]));
        assert!(writer.is_drained() && reader.read(&mut buffer) == 0);
    }

    #[test]
    fn a_waiting_writer_is_notified_once() {
        let ring = Ring::<8>::default();
        let (writer, reader) = (Writer::new(&ring), Reader::new(&ring));
        assert!(!reader.take_waiting());
        writer.wait_for_reader();
        assert!(reader.take_waiting() && !reader.take_waiting());
    }

    #[test]
    fn what_was_read_and_not_published_is_read_again_by_the_next_reader() {
        let ring = Ring::<8>::default();
        let (mut writer, mut reader) = (Writer::new(&ring), Reader::new(&ring));
        writer.write(b"abcdef");
        let mut seen = Vec::new();
        assert_eq!(reader.read_ahead(4, |byte| seen.push(byte)), 4);
        assert_eq!((reader.position(), reader.available(), writer.room()), (4, 2, 2));
        let mut next = Reader::new(&ring);
        assert_eq!((next.position(), next.available()), (0, 6));
        next.skip(4);
        assert_eq!((next.position(), writer.room()), (4, 6));
        reader.read_ahead(1, |byte| seen.push(byte));
        reader.publish();
        assert_eq!((seen.as_slice(), writer.room()), (&b"abcde"[..], 7));
    }

    #[test]
    fn impossible_counts_are_ignored() {
        let ring = Ring::<8>::default();
        let (mut writer, mut reader) = (Writer::new(&ring), Reader::new(&ring));
        ring.written.store(9, Ordering::SeqCst);
        assert_eq!((reader.available(), reader.read(&mut [0; 4])), (0, 0));
        ring.written.store(u32::MAX, Ordering::SeqCst);
        assert_eq!(reader.available(), 0);
        ring.read.store(5, Ordering::SeqCst);
        assert_eq!((writer.room(), writer.write(b"a")), (0, 0));
    }

    #[test]
    fn bytes_pass_between_threads_in_order() {
        static RING: Ring<64> = Ring {
            written: AtomicU32::new(0),
            read: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            bytes: [const { AtomicU8::new(0) }; 64],
        };
        let sent: Vec<u8> = (0..20_000u32).map(|number| (number * 7 + number / 251) as u8).collect();
        let bytes = sent.clone();
        let writer = std::thread::spawn(move || {
            let mut writer = Writer::new(&RING);
            let mut left = &bytes[..];
            while !left.is_empty() {
                left = &left[writer.write(left)..];
                std::thread::yield_now();
            }
        });
        let mut reader = Reader::new(&RING);
        let mut got = Vec::new();
        while got.len() < sent.len() {
            reader.read_each(50, |byte| got.push(byte));
        }
        writer.join().unwrap();
        assert_eq!(got, sent);
    }

    proptest! {
        #[test]
        fn behaves_as_a_queue(steps in proptest::collection::vec((0u8..4, 0usize..12), 1..300), from in any::<u32>()) {
            let ring = Ring::<8>::default();
            // The counts are as after this number of bytes.
            ring.written.store(from, Ordering::SeqCst);
            ring.read.store(from, Ordering::SeqCst);
            let (mut writer, mut reader) = (Writer::new(&ring), Reader::new(&ring));
            let mut model = VecDeque::new();
            let mut next = 0u8;
            for (step, count) in steps {
                // Either end may be that of a program which is started in place of another.
                match step {
                    2 => writer = Writer::new(&ring),
                    3 => reader = Reader::new(&ring),
                    _ => {}
                }
                if step % 2 == 0 {
                    let bytes: Vec<u8> = (0..count).map(|index| next.wrapping_add(index as u8)).collect();
                    let written = writer.write(&bytes);
                    prop_assert_eq!(written, count.min(8 - model.len()));
                    model.extend(&bytes[..written]);
                    next = next.wrapping_add(written as u8);
                } else {
                    let (mut seen, mut buffer) = (vec![0; count], vec![0; count]);
                    let there = reader.peek(&mut seen);
                    let read = reader.read(&mut buffer);
                    prop_assert_eq!((there, seen), (read, buffer.clone()));
                    prop_assert_eq!(read, count.min(model.len()));
                    prop_assert!(buffer[..read].iter().all(|&byte| model.pop_front() == Some(byte)));
                }
                prop_assert_eq!((writer.room(), reader.available()), (8 - model.len(), model.len()));
            }
        }
    }
}
