//! The structures in which calls return information: words of 32 bits, where a time takes four and
//! a number of 64 bits two.

use alloc::vec::Vec;

use message::{Array, Status};

use super::call::Answer;
use super::error::INVALID_ARGUMENT;

/// The most words of a structure.
const MOST: usize = 1024;

/// A structure that is being written.
pub(super) struct Words(Vec<u32>);

impl Words {
    pub(super) fn new() -> Self {
        // Room for the largest structure of a fixed size.
        Self(Vec::with_capacity(64))
    }

    /// Adds a number of 32 bits. Words beyond the room of every structure are lost.
    pub(super) fn word(&mut self, word: u32) -> &mut Self {
        if self.0.len() < MOST {
            self.0.push(word);
        }
        self
    }

    /// Adds a number of 64 bits.
    pub(super) fn long(&mut self, long: u64) -> &mut Self {
        self.word(long as u32).word((long >> 32) as u32)
    }

    /// Adds a time in seconds and microseconds.
    pub(super) fn time(&mut self, microseconds: u64) -> &mut Self {
        self.long(microseconds / 1_000_000).word((microseconds % 1_000_000) as u32).word(0)
    }

    /// Adds a time in seconds and nanoseconds.
    pub(super) fn time64(&mut self, microseconds: u64) -> &mut Self {
        self.long(microseconds / 1_000_000).long(microseconds % 1_000_000 * 1000)
    }

    /// Ends the structure, of which the caller has room for `room` words and must want `least`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`: the caller has less room than `least`.
    pub(super) fn answer(&mut self, room: usize, least: usize) -> Answer<Array<u32, MOST>> {
        if room < least {
            return Err(INVALID_ARGUMENT);
        }
        let mut words = core::mem::take(&mut self.0);
        words.truncate(room);
        Array::of(words).ok_or(Status::ARRAY_TOO_LARGE)
    }
}
