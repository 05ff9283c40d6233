//! The table of threads by number: one flat table, so that a look-up is one load (and the
//! comparison of the id).

use core::ptr::{eq, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use x2::ThreadId;

use super::{Found, Tcb, ThreadRef};
use crate::arch;

/// Valid bits of a thread number (KIP ThreadInfo).
pub const NUMBER_BITS: u32 = 18;
/// How many thread numbers there are.
pub const NUMBERS: usize = 1 << NUMBER_BITS;

/// Numbers, or words of bits for them, that a word of bits stands for.
const BITS: usize = 64;
const WORDS: usize = NUMBERS / BITS;

/// All threads of the system by number.
///
/// Written by ThreadControl on behalf of one privileged thread at a time; read by any processor at
/// any time. TCBs are type-stable, so a reader that races with a deletion finds a TCB whose id no
/// longer matches.
#[repr(C)]
pub struct ThreadTable {
    threads: [AtomicPtr<Tcb>; NUMBERS],
    /// A bit for each number that is in use, so that a walk costs what there is, and not what could
    /// be.
    used: [AtomicU64; WORDS],
    /// A bit for each word of these that has some.
    words: [AtomicU64; WORDS / BITS],
}

/// The entry for a number without a thread: entry code compares ids without looking for null.
struct NoThread(Tcb);

// SAFETY: it has no id by which it could be found, so nothing in it ever changes.
unsafe impl Sync for NoThread {}

static NO_THREAD: NoThread = NoThread(Tcb::new());

/// The table, at its beginning the pointers, for entry code.
pub static THREADS: ThreadTable = ThreadTable::new();

/// The system's threads.
#[inline]
pub fn threads() -> &'static ThreadTable {
    &THREADS
}

impl ThreadTable {
    /// A table without threads.
    const fn new() -> Self {
        Self {
            threads: [const { AtomicPtr::new(null_mut()) }; NUMBERS],
            used: [const { AtomicU64::new(0) }; WORDS],
            words: [const { AtomicU64::new(0) }; WORDS / BITS],
        }
    }

    /// The thread with this number, whatever its version, wherever it is.
    #[inline]
    pub fn by_number(&self, number: u32) -> Option<Found> {
        // Acquire: pairs with the release in `set`, so that the TCB's first contents are visible.
        let thread = self.threads.get(number as usize)?.load(Ordering::Acquire);
        // SAFETY: the table holds null or pointers made from references that live for ever.
        unsafe { thread.as_ref() }.filter(|&thread| !eq(thread, &raw const NO_THREAD.0)).map(Found::new)
    }

    /// Makes the table one that entry code can look into.
    pub fn init(&self) {
        (0..NUMBERS as u32).for_each(|number| self.set(number, None));
    }

    /// The thread that `id`, a global id, names.
    #[inline]
    pub fn find(&self, id: ThreadId) -> Option<Found> {
        if !id.has_version() {
            return None;
        }
        // `NO_THREAD` has no id, so it is not found. Acquire: as in `by_number`.
        let thread = self.threads.get(id.number() as usize)?.load(Ordering::Acquire);
        // SAFETY: as in `by_number`.
        let thread = unsafe { thread.as_ref() }?;
        if thread.found_id() == id { Some(Found::new(thread)) } else { None }
    }

    /// Makes `thread` the thread with this number, which must be below [`NUMBERS`].
    #[inline(always)]
    pub fn set(&self, number: u32, thread: Option<ThreadRef>) {
        let pointer = core::ptr::from_ref(thread.unwrap_or(&NO_THREAD.0)).cast_mut();
        // Release: see `by_number`.
        self.threads[number as usize].store(pointer, Ordering::Release);
        // Relaxed, and in two steps: a walk at the same time may or may not see the thread, as
        // before. `set` itself is never called twice at the same time.
        let (word, bit) = (number as usize / BITS, 1 << (number as usize % BITS));
        let used = self.used[word].load(Ordering::Relaxed);
        let now = if thread.is_some() { used | bit } else { used & !bit };
        self.used[word].store(now, Ordering::Relaxed);
        if used == 0 || now == 0 {
            let words = (&raw const self.words[word / BITS]).expose_provenance();
            let note = if now != 0 { note_bits } else { note_no_bits };
            arch::call_seldom(note, words as u64, 1 << (word % BITS));
        }
    }

    /// The first number in use from `number` on.
    fn used_from(&self, number: u32) -> Option<u32> {
        let number = number as usize;
        let word = number / BITS;
        let rest = self.used.get(word)?.load(Ordering::Relaxed) >> (number % BITS);
        if rest != 0 {
            return Some((number + rest.trailing_zeros() as usize) as u32);
        }
        let mut from = word + 1;
        while let Some(words) = self.words.get(from / BITS) {
            let rest = words.load(Ordering::Relaxed) >> (from % BITS);
            if rest != 0 {
                let word = from + rest.trailing_zeros() as usize;
                let used = self.used[word].load(Ordering::Relaxed);
                if used != 0 {
                    return Some((word * BITS) as u32 + used.trailing_zeros());
                }
                // The last thread of this word has just been deleted.
                from = word + 1;
            } else {
                from = (from / BITS + 1) * BITS;
            }
        }
        None
    }

    /// Forgets all threads, of an earlier test's machine.
    #[cfg(test)]
    pub(crate) fn clear(&self) {
        while let Some(number) = self.used_from(0) {
            self.set(number, None);
        }
    }

    /// All threads, in a test: it runs all processors in turn.
    #[cfg(test)]
    pub(crate) fn all(&self) -> impl Iterator<Item = ThreadRef> + '_ {
        self.iter().map(Found::anywhere)
    }

    /// All threads in order of their numbers. Home processors may be changing them.
    pub fn iter(&self) -> impl Iterator<Item = Found> + '_ {
        self.iter_from(0).map(|(_, thread)| thread)
    }

    /// The threads from `number` on, with their numbers.
    pub fn iter_from(&self, number: u32) -> impl Iterator<Item = (u32, Found)> + '_ {
        let mut next = number;
        core::iter::from_fn(move || {
            loop {
                let number = self.used_from(next)?;
                next = number + 1;
                if let Some(thread) = self.by_number(number) {
                    return Some((number, thread));
                }
            }
        })
    }
}

/// Sets `bit` in the summary word at address `words`: the word of used numbers that the bit stands
/// for is not 0.
#[cold]
extern "C" fn note_bits(words: u64, bit: u64) {
    note(words, |before| before | bit);
}

/// Clears `bit` in the summary word at address `words`: the word of used numbers that the bit
/// stands for is 0.
#[cold]
extern "C" fn note_no_bits(words: u64, bit: u64) {
    note(words, |before| before & !bit);
}

fn note(words: u64, change: impl FnOnce(u64) -> u64) {
    // SAFETY: [`ThreadTable::set`] has a reference to it.
    let words = unsafe { &*core::ptr::with_exposed_provenance::<AtomicU64>(words as usize) };
    words.store(change(words.load(Ordering::Relaxed)), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::boxed::Box;
    use std::vec::Vec;

    #[test]
    fn a_walk_finds_what_is_there_wherever_it_is() {
        // The table is made on the heap, as it is too large for a stack.
        // SAFETY: all zero is a table without threads.
        let table: Box<ThreadTable> = unsafe { Box::new_zeroed().assume_init() };
        let thread: ThreadRef = Box::leak(Box::new(Tcb::new()));
        let numbers = [0, 1, 63, 64, 65, 4095, 4096, 70_000, NUMBERS as u32 - 1];
        let found = |from| table.iter_from(from).map(|(number, _)| number).collect::<Vec<_>>();
        assert_eq!(found(0), []);
        numbers.iter().for_each(|&number| table.set(number, Some(thread)));
        for from in numbers.iter().flat_map(|&number| [number.saturating_sub(1), number, number + 1]) {
            assert_eq!(found(from), numbers.iter().copied().filter(|&it| it >= from).collect::<Vec<_>>());
        }
        for (index, &number) in numbers.iter().enumerate() {
            table.set(number, None);
            assert_eq!(found(0), numbers[index + 1..]);
        }
    }
}
