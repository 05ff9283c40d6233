//! The kernel's view of a UTCB: memory that the user writes at any time, so every access is one
//! relaxed atomic word that is read once and then checked, and no word is trusted for identity,
//! rights or safety (K3, X.2 rule 13.2).

use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

use x2::{ThreadId, utcb};

use crate::arch;

/// A UTCB block. Words are indexed relative to MR0, with the names of [`x2::utcb`].
#[repr(C, align(1024))]
pub struct Utcb {
    words: [AtomicU64; utcb::SIZE as usize / 8],
}

const _: () = assert!(size_of::<Utcb>() as u64 == utcb::SIZE);

impl Utcb {
    /// A zeroed UTCB.
    pub const fn new() -> Self {
        Self { words: [const { AtomicU64::new(0) }; utcb::SIZE as usize / 8] }
    }

    /// Reads a word.
    #[inline]
    pub fn read(&self, word: isize) -> u64 {
        // Relaxed: the user's other threads write concurrently; each word stands for itself.
        self.words[utcb::word_index(word)].load(Ordering::Relaxed)
    }

    /// Reads a word that holds a thread id.
    pub fn read_id(&self, word: isize) -> ThreadId {
        ThreadId::from_raw(self.read(word))
    }

    /// Writes a word.
    #[inline]
    pub fn write(&self, word: isize, value: u64) {
        self.words[utcb::word_index(word)].store(value, Ordering::Relaxed);
    }

    /// Copies the message registers `range` of `source`, another block.
    #[inline]
    pub fn copy_message_registers(&self, source: &Utcb, range: Range<usize>) {
        let first = utcb::word_index(utcb::message_register(range.start));
        self.copy(source, first..first + range.len());
    }

    /// Copies all words of `source`, another block.
    pub fn copy_all(&self, source: &Utcb) {
        self.copy(source, 0..self.words.len());
    }

    #[inline]
    fn copy(&self, source: &Utcb, range: Range<usize>) {
        let (to, from) = (&self.words[range.clone()], &source.words[range]);
        // SAFETY: all of it is atomics, which may be read and written at any time, each by itself;
        // blocks do not overlap.
        unsafe { arch::copy_words(to.as_ptr().cast_mut().cast(), from.as_ptr().cast(), to.len()) };
    }

    /// Zeroes the block, which is no thread's.
    pub fn clear(&self) {
        // SAFETY: all of it is atomics, which may be written at any time; what programs read
        // meanwhile is theirs to bear.
        unsafe { arch::clear_words(self.words.as_ptr().cast_mut().cast(), self.words.len()) };
    }
}

impl Default for Utcb {
    fn default() -> Self {
        Self::new()
    }
}
