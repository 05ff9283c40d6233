//! Tests on the host, with a simulated driver and device.

mod frames;
mod hostile;

use crate::area::Area;
use crate::buffers::{ALL_WORDS, Buffers};
use crate::driver::{Driver, Frame, Pages};
use crate::head::HEAD;
use crate::{BUFFER, BUFFERS};
use core::sync::atomic::{AtomicU64, Ordering};
use proptest::prelude::*;

/// Where the device has the client's memory for frames.
const BASE: u64 = 0x10_0000;

/// The client's memory for frames.
struct Memory(Vec<AtomicU64>);

impl Memory {
    fn new() -> Memory {
        Memory((0..ALL_WORDS).map(|_| AtomicU64::new(0)).collect())
    }

    fn buffers(&self) -> Buffers<'_> {
        Buffers::new(&self.0).unwrap()
    }

    /// Where the device's address is in the memory.
    fn offset(address: u64) -> usize {
        // The pages are in the reverse order for the device, from `BASE` on.
        let (page, rest) = ((address - BASE) / 4096, (address - BASE) % 4096);
        (PAGES - 1 - page as usize) * 4096 + rest as usize
    }

    fn byte(&self, address: u64) -> u8 {
        let at = Memory::offset(address);
        self.0[at / 8].load(Ordering::Relaxed).to_le_bytes()[at % 8]
    }

    fn set(&self, address: u64, byte: u8) {
        let at = Memory::offset(address);
        let mut word = self.0[at / 8].load(Ordering::Relaxed).to_le_bytes();
        word[at % 8] = byte;
        self.0[at / 8].store(u64::from_le_bytes(word), Ordering::Relaxed);
    }

    /// What the device reads of a frame: its head, and its bytes.
    fn read(&self, frame: &Frame) -> (Vec<u8>, Vec<u8>) {
        let addresses = frame.pieces.iter().flat_map(|piece| {
            assert!(piece.length <= BUFFER);
            piece.address..piece.address + piece.length as u64
        });
        let mut bytes: Vec<u8> = addresses.map(|address| self.byte(address)).collect();
        let rest = bytes.split_off(HEAD);
        (bytes, rest)
    }
}

/// How many pages the memory has.
const PAGES: usize = 2 * BUFFERS * BUFFER / 4096;

/// The pages of the memory, no two of which are contiguous for the device.
fn pages() -> Pages {
    let address = |offset: u64| BASE + (PAGES as u64 - 1 - offset / 4096) * 4096;
    Pages::find(|offset| Ok::<_, ()>((address(offset), 4096))).unwrap().unwrap()
}

/// A driver, and the empty buffers that its device has.
struct Device<'a> {
    driver: Driver<'a>,
    empty: Vec<(usize, u64)>,
}

impl<'a> Device<'a> {
    fn new(area: &'a Area) -> Device<'a> {
        Device { driver: Driver::new(area, pages()), empty: Vec::new() }
    }

    /// The device receives a frame. Returns false, and receives nothing, if it has too few buffers.
    fn receive(&mut self, memory: &Memory, frame: &[u8]) -> bool {
        let taken = core::iter::from_fn(|| self.driver.take_empty());
        self.empty.extend(taken.map(|(buffer, piece)| (buffer, piece.address)));
        let mut bytes = vec![0; HEAD];
        let pieces = (HEAD + frame.len()).div_ceil(BUFFER);
        bytes[10..12].copy_from_slice(&(pieces as u16).to_le_bytes());
        bytes.extend_from_slice(frame);
        if pieces > self.empty.len() {
            return false;
        }
        for part in bytes.chunks(BUFFER) {
            let (buffer, address) = self.empty.remove(0);
            (address..).zip(part).for_each(|(address, &byte)| memory.set(address, byte));
            self.driver.filled(buffer, part.len());
        }
        true
    }
}

/// A frame of so many bytes, which differ from those of other frames.
fn frame(number: u8, length: usize) -> Vec<u8> {
    (0..length).map(|index| number.wrapping_mul(31).wrapping_add((index / 3) as u8)).collect()
}

proptest! {
    #[test]
    fn buffers_hold_what_was_written_at_any_place(
        writes in proptest::collection::vec((0..BUFFER, proptest::collection::vec(any::<u8>(), 0..40)), 1..20),
        reads in proptest::collection::vec((0..=BUFFER, 0..=BUFFER), 1..20),
    ) {
        let words: Vec<AtomicU64> = (0..ALL_WORDS).map(|_| AtomicU64::new(0)).collect();
        let buffers = Buffers::new(&words).unwrap();
        let mut model = vec![0; BUFFER];
        for (at, bytes) in writes {
            let bytes = &bytes[..bytes.len().min(BUFFER - at)];
            buffers.write(1, at, bytes);
            model[at..at + bytes.len()].copy_from_slice(bytes);
        }
        // The device fills the buffers from which frames are read.
        let sent = BUFFERS + 1;
        let per_buffer = BUFFER / 8;
        for word in 0..per_buffer {
            let value = words[sent * per_buffer + word].load(Ordering::Relaxed);
            words[per_buffer + word].store(value, Ordering::Relaxed);
        }
        for (from, to) in reads {
            let mut bytes = vec![7, 8];
            buffers.read(1, from, to, &mut bytes);
            let expected = model.get(from..to).unwrap_or_default();
            prop_assert_eq!(&bytes[2..], expected);
            prop_assert_eq!(&bytes[..2], &[7, 8]);
        }
    }
}
