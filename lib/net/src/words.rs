//! The words in lanes, each about one buffer.

use crate::{BUFFER, BUFFERS};

/// Whether the frame goes on in the buffer of the next word.
const MORE: u64 = 1 << 63;

/// What a word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// The number of the buffer, below [`BUFFERS`].
    pub(crate) buffer: usize,
    /// How many bytes of the buffer are used.
    pub(crate) length: usize,
    /// Whether the frame goes on in the buffer of the next word.
    pub(crate) more: bool,
}

impl Word {
    pub(crate) fn raw(self) -> u64 {
        self.buffer as u64 | (self.length as u64) << 32 | if self.more { MORE } else { 0 }
    }

    /// What a word of the other side says. `None`: it says nothing that is possible.
    pub(crate) fn read(raw: u64) -> Option<Word> {
        let (buffer, length) = (raw as u32 as usize, (raw >> 32 & 0x7fff_ffff) as usize);
        let is_possible = buffer < BUFFERS && length <= BUFFER;
        is_possible.then_some(Word { buffer, length, more: raw & MORE != 0 })
    }
}

/// A set of buffers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Set([bool; BUFFERS]);

impl Set {
    pub(crate) const EMPTY: Set = Set([false; BUFFERS]);

    /// Adds a buffer. Returns false if the set had it.
    pub(crate) fn insert(&mut self, buffer: usize) -> bool {
        !core::mem::replace(&mut self.0[buffer], true)
    }

    /// Removes a buffer. Returns false if the set did not have it.
    pub(crate) fn remove(&mut self, buffer: usize) -> bool {
        core::mem::replace(&mut self.0[buffer], false)
    }
}
