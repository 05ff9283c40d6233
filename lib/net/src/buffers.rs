//! The client's memory for frames. The device may write into it at any time, so every access is
//! atomic, and nothing in it is looked at in place.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};

use crate::{BUFFER, BUFFERS};
use alloc::vec::Vec;

/// The size of a word in bytes.
const WORD: usize = 8;
/// How many words a buffer has.
const WORDS: usize = BUFFER / WORD;
/// How many words the memory of all buffers has.
pub const ALL_WORDS: usize = 2 * BUFFERS * WORDS;

/// The memory of all buffers: first those for received frames, then those for frames to send.
#[derive(Clone, Copy, Debug)]
pub struct Buffers<'a>(&'a [AtomicU64]);

impl<'a> Buffers<'a> {
    /// Uses this memory. `None`: it does not have [`ALL_WORDS`] words.
    pub fn new(words: &'a [AtomicU64]) -> Option<Buffers<'a>> {
        (words.len() == ALL_WORDS).then_some(Buffers(words))
    }

    fn words(&self, number: usize) -> &'a [AtomicU64] {
        &self.0[number * WORDS..][..WORDS]
    }

    /// Appends the bytes `from..to` of a buffer for received frames to `bytes`.
    pub(crate) fn read(&self, buffer: usize, from: usize, to: usize, bytes: &mut Vec<u8>) {
        let words = self.words(buffer);
        let start = bytes.len();
        bytes.resize(start + to.saturating_sub(from), 0);
        let first = before_word(from, bytes.len() - start);
        let (begin, rest) = bytes[start..].split_at_mut(first);
        let mut word = from / WORD;
        if first > 0 {
            begin.copy_from_slice(&words[word].load(Ordering::Relaxed).to_le_bytes()[from % WORD..][..first]);
            word += 1;
        }
        // Whole words apart: a copy whose length is not known costs ten times as much as its word.
        let (whole, end) = rest.as_chunks_mut::<WORD>();
        for (chunk, word) in whole.iter_mut().zip(&words[word..]) {
            *chunk = word.load(Ordering::Relaxed).to_le_bytes();
        }
        if !end.is_empty() {
            let last = words[word + whole.len()].load(Ordering::Relaxed).to_le_bytes();
            end.copy_from_slice(&last[..end.len()]);
        }
    }

    /// Writes bytes into a buffer for frames to send, from `at` on. They must fit.
    pub(crate) fn write(&self, buffer: usize, at: usize, bytes: &[u8]) {
        let words = self.words(BUFFERS + buffer);
        let change = |word: usize, begin: usize, part: &[u8]| {
            let mut value = words[word].load(Ordering::Relaxed).to_le_bytes();
            value[begin..begin + part.len()].copy_from_slice(part);
            words[word].store(u64::from_le_bytes(value), Ordering::Relaxed);
        };
        let first = before_word(at, bytes.len());
        let (begin, rest) = bytes.split_at(first);
        let mut word = at / WORD;
        if first > 0 {
            change(word, at % WORD, begin);
            word += 1;
        }
        let (whole, end) = rest.as_chunks::<WORD>();
        for (chunk, word) in whole.iter().zip(&words[word..]) {
            word.store(u64::from_le_bytes(*chunk), Ordering::Relaxed);
        }
        if !end.is_empty() {
            change(word + whole.len(), 0, end);
        }
    }
}

/// How many of `count` bytes from `at` on come before the first whole word.
fn before_word(at: usize, count: usize) -> usize {
    (at.next_multiple_of(WORD) - at).min(count)
}

/// The buffers in memory of this program.
///
/// # Safety
/// At `address`, a multiple of 8, there must be [`crate::POOL`] bytes of memory that stay mapped,
/// and that the program uses only as buffers. Every content is valid, and all accesses are atomic,
/// so the device may write there at any time.
#[cfg(not(loom))]
#[allow(unsafe_code, reason = "the memory is root's, not a Rust object")]
pub unsafe fn at(address: u64) -> Buffers<'static> {
    // SAFETY: the caller of this function promises that the memory is mapped there.
    Buffers(unsafe { core::slice::from_raw_parts(address as *const AtomicU64, ALL_WORDS) })
}
