//! What a driver notes of its work in memory that is there after its end: a driver that is started
//! in its place neither loses a byte nor passes one on twice.
//!
//! A note has the number of the next request of a queue, and the position in the client's ring up
//! to which earlier requests have come. It is written after each request. A driver may end between
//! a change of the ring and the note, so the next one compares the two.

use core::sync::atomic::{AtomicU64, Ordering};

/// The notes of a port.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Notes {
    /// Of input that has come from the device.
    pub input: Note,
    /// Of output that the device was given.
    pub output: Note,
}

/// A note in memory.
#[derive(Debug, Default)]
pub struct Note(AtomicU64);

/// What a note says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The number of the next request, modulo 2^16.
    pub number: u16,
    /// The position in the client's ring before it.
    pub position: u32,
}

impl Note {
    /// Writes the note.
    pub fn set(&self, progress: Progress) {
        self.0.store(u64::from(progress.number) << 32 | u64::from(progress.position), Ordering::SeqCst);
    }

    /// Reads the note.
    pub fn get(&self) -> Progress {
        let word = self.0.load(Ordering::SeqCst);
        Progress { number: (word >> 32) as u16, position: word as u32 }
    }
}

impl Progress {
    /// How many of the requests from this one on are in the client's ring already, whose writer is
    /// at `written`; `first` is the length of the first of them. `None`: it is the ring of another
    /// client.
    pub fn delivered(self, written: u32, first: Option<usize>) -> Option<usize> {
        match written.wrapping_sub(self.position) {
            0 => Some(0),
            more => (Some(more as usize) == first).then_some(1),
        }
    }

    /// How many bytes at `read`, where the reader of the client's ring is, the device has already
    /// got, if it was given `given` requests; `length` is the length of the last one.
    pub fn taken(self, read: u32, given: u16, length: usize) -> usize {
        if given == self.number.wrapping_add(1) && read == self.position { length } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let note = Note::default();
        assert_eq!(note.get(), Progress::default());
        let progress = Progress { number: 0xfedc, position: 0x8765_4321 };
        note.set(progress);
        assert_eq!(note.get(), progress);
    }

    #[test]
    fn a_request_whose_bytes_are_in_the_ring_is_not_delivered_again() {
        let progress = Progress { number: 7, position: u32::MAX - 1 };
        assert_eq!(progress.delivered(u32::MAX - 1, Some(5)), Some(0));
        assert_eq!(progress.delivered(3, Some(5)), Some(1));
        assert_eq!((progress.delivered(2, Some(5)), progress.delivered(3, None)), (None, None));
    }

    #[test]
    fn bytes_that_the_device_was_given_are_not_given_again() {
        let progress = Progress { number: u16::MAX, position: 100 };
        assert_eq!(progress.taken(100, 0, 9), 9, "it was given, and the ring was not told");
        assert_eq!(progress.taken(109, 0, 9), 0, "the ring was told");
        assert_eq!(progress.taken(100, u16::MAX, 9), 0, "it was not given");
    }

    /// A driver that ends after any step, and its successors, pass on each byte once.
    #[test]
    fn wherever_a_driver_ends_its_successor_goes_on_there() {
        for length in [1usize, 7] {
            for end in 0..=4 {
                // Input: the bytes go into the ring, then the note is written.
                let (note, mut ring) = (Note::default(), 0u32);
                if end >= 1 {
                    ring += length as u32;
                }
                if end >= 2 {
                    note.set(Progress { number: 1, position: ring });
                }
                let progress = note.get();
                let first = (progress.number == 0).then_some(length);
                let skipped = progress.delivered(ring, first).expect("it is the same client");
                let delivers = usize::from(progress.number == 0) - skipped;
                assert_eq!(ring + (delivers * length) as u32, length as u32);
                // Output: the device gets the bytes, the ring is told, then the note is written.
                let (note, mut given, mut read) = (Note::default(), 0u16, 0u32);
                if end >= 1 {
                    given += 1;
                }
                if end >= 2 {
                    read += length as u32;
                }
                if end >= 3 {
                    note.set(Progress { number: given, position: read });
                }
                read += note.get().taken(read, given, length) as u32;
                assert_eq!(read, u32::from(given) * length as u32);
            }
        }
    }
}
