//! What a driver notes of its work in memory that is there after its end: a driver that is started
//! in its place neither loses a byte nor passes one on twice.
//!
//! A note has the number of the next request of a queue, and the position in the client's ring up
//! to which earlier requests have come. The two queues of a port differ in what comes first:
//!
//! - Input is put into the ring, then the note is written. The next driver sees from the ring
//!   whether a note is missing.
//! - Output stays in the ring until the device has it. Then the note is written, and the ring is
//!   told. The next driver tells the ring again.
//!
//! A driver may end at any moment, also while it takes over from another one. So it leaves the
//! queue of input as it was until it has passed on what is there, and has its own queue at another
//! place.

use core::sync::atomic::{AtomicU64, Ordering};

/// The notes of a port.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Notes {
    /// Of input that has come from the device.
    pub input: Note,
    /// Of output that the device has got.
    pub output: Note,
    /// Which of two places the queue of input has.
    place: AtomicU64,
}

impl Notes {
    /// Which of two places, 0 or 1, the queue of input has to which the note belongs.
    pub fn place(&self) -> usize {
        (self.place.load(Ordering::SeqCst) & 1) as usize
    }

    /// From now on the queue of input has this place. The next thing that is done is to write the
    /// note of it; until then no request may be given to the device.
    pub fn set_place(&self, place: usize) {
        self.place.store(place as u64, Ordering::SeqCst);
    }
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

    /// The progress after requests of these lengths.
    pub fn after(self, lengths: impl Iterator<Item = u32>) -> Progress {
        lengths.fold(self, |Progress { number, position }, length| Progress {
            number: number.wrapping_add(1),
            position: position.wrapping_add(length),
        })
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
    fn progress_is_that_of_all_requests_before() {
        let progress = Progress { number: u16::MAX, position: u32::MAX };
        assert_eq!(progress.after([5, 2].into_iter()), Progress { number: 1, position: 6 });
        assert_eq!(progress.after([].into_iter()), progress);
    }

    #[test]
    fn the_queue_of_input_has_one_of_two_places() {
        let notes = Notes::default();
        assert_eq!(notes.place(), 0);
        notes.set_place(1);
        assert_eq!(notes.place(), 1);
    }
}
