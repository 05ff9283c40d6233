//! What consoles show, in memory that is there after the server's end: a server that is started in
//! its place shows it again.
//!
//! Each console has two places. A new description is written to the one that does not hold, and
//! then holds: a server may end at any moment.
#![allow(unsafe_code, reason = "the memory is root's, not a Rust object")]

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The size in bytes of a description at most.
const ROOM: usize = (64 << 10) - 8;

/// A description of a console.
#[repr(C)]
struct Place {
    /// The position in the client's output up to which it has everything, and, above, its length.
    about: AtomicU64,
    bytes: [AtomicU8; ROOM],
}

#[repr(C)]
struct Console {
    places: [Place; 2],
}

/// The most consoles.
const MOST: usize = 7;

/// The structure of the memory.
#[repr(C)]
struct Area {
    consoles: [Console; MOST],
    /// For each console which place holds: 1 or 2; 0: none.
    holds: [AtomicU64; MOST],
}

/// The size in bytes of the memory.
pub const SIZE: u64 = 1 << 20;
const _: () = assert!(size_of::<Area>() <= SIZE as usize);

/// The descriptions of consoles.
pub struct Saved(&'static Area);

impl Saved {
    /// The descriptions in the memory at `address`, a multiple of 4096.
    ///
    /// # Safety
    /// [`SIZE`] bytes there must stay mapped as long as the program runs, and be used by nothing
    /// else. Every content is valid.
    pub unsafe fn at(address: u64) -> Saved {
        // SAFETY: the caller promises that the memory is mapped and used by nothing else; all
        // fields are atomic.
        Saved(unsafe { &*(address as *const Area) })
    }

    /// Saves the description of the console of this index, which has all output up to `position`.
    /// One that is too long is not saved: the console would be blank.
    pub fn save(&self, console: usize, position: u32, description: &[u8]) {
        let Some((console, holds)) = self.0.consoles.get(console).zip(self.0.holds.get(console)) else {
            return;
        };
        let description = if description.len() <= ROOM { description } else { &[] };
        let next = if holds.load(Ordering::Relaxed) == 1 { 2 } else { 1 };
        let place = &console.places[next - 1];
        for (place, &byte) in place.bytes.iter().zip(description) {
            place.store(byte, Ordering::Relaxed);
        }
        let about = (description.len() as u64) << 32 | u64::from(position);
        place.about.store(about, Ordering::Relaxed);
        holds.store(next as u64, Ordering::Release);
    }

    /// The description of the console of this index, and its position, if an earlier server has
    /// saved one.
    pub fn load(&self, console: usize) -> Option<(u32, Vec<u8>)> {
        let holds = self.0.holds.get(console)?.load(Ordering::Acquire);
        let index = usize::try_from(holds).ok()?.checked_sub(1)?;
        let place = self.0.consoles.get(console)?.places.get(index)?;
        let about = place.about.load(Ordering::Relaxed);
        let bytes = place.bytes.iter().take((about >> 32) as usize);
        Some((about as u32, bytes.map(|byte| byte.load(Ordering::Relaxed)).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blank() -> u64 {
        let memory = vec![0u64; SIZE as usize / 8 + 512].leak();
        (memory.as_ptr() as u64).next_multiple_of(4096)
    }

    #[test]
    fn the_next_server_finds_what_was_saved_last() {
        let address = blank();
        // SAFETY: the memory is leaked, and the two values are used one after the other.
        let (saved, next) = unsafe { (Saved::at(address), Saved::at(address)) };
        assert_eq!((saved.load(0), saved.load(MOST)), (None, None));
        for (position, text) in [(3, &b"one"[..]), (8, b"the other"), (u32::MAX, b"third")] {
            saved.save(5, position, text);
            assert_eq!(next.load(5), Some((position, text.to_vec())));
        }
        assert_eq!(next.load(4), None);
        saved.save(5, 9, &[0; ROOM + 1]);
        assert_eq!(next.load(5), Some((9, Vec::new())), "too long");
        saved.save(MOST, 0, b"there is none");
    }

    #[test]
    fn an_end_while_one_is_saved_leaves_the_one_before() {
        // SAFETY: the memory is leaked.
        let saved = unsafe { Saved::at(blank()) };
        saved.save(0, 1, b"whole");
        let other = &saved.0.consoles[0].places[1];
        other.about.store(7, Ordering::Relaxed);
        other.bytes[0].store(b'x', Ordering::Relaxed);
        assert_eq!(saved.load(0), Some((1, b"whole".to_vec())));
    }
}
