//! The memory that the driver and its client share.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The size in bytes of the memory that root shares for an area.
pub const SIZE: u64 = 1 << 20;
/// How many messages can be outstanding.
pub const SLOTS: usize = 7;
/// The largest message in bytes.
pub const MESSAGE: usize = 128 << 10;
/// The smallest message in bytes: its header.
pub const LEAST: usize = 7;

/// The client's: it may put a request into the slot.
pub const FREE: u32 = 0;
/// The driver's: it has a request.
pub const REQUEST: u32 = 1;
/// The client's: it has the reply.
pub const REPLY: u32 = 2;
/// The client's: the request's length is none of a message's.
pub const REFUSED: u32 = 3;

/// Memory by words. It can be read and written at any time by the other side or by a device.
pub type Words = [AtomicU64];

/// State and length of a slot.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Head {
    state: AtomicU32,
    length: AtomicU32,
}

/// A slot of the area.
#[derive(Clone, Copy, Debug)]
pub struct Slot<'a> {
    head: &'a Head,
    /// The message.
    pub words: &'a Words,
}

impl Slot<'_> {
    /// The state of the slot; what the other side wrote before it set the state is visible then.
    pub fn state(&self) -> u32 {
        self.head.state.load(Ordering::Acquire)
    }

    /// The length of the message, as the other side says; at most [`MESSAGE`].
    pub fn length(&self) -> usize {
        (self.head.length.load(Ordering::Relaxed) as usize).min(MESSAGE)
    }

    /// Gives the slot, with a message of this length, to the other side.
    pub fn pass(&self, state: u32, length: usize) {
        self.head.length.store(length as u32, Ordering::Relaxed);
        self.head.state.store(state, Ordering::Release);
    }
}

/// The shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    heads: &'static [Head],
    words: &'static Words,
}

/// The offset of the first slot.
const FIRST: usize = 4096;
const _: () = assert!(FIRST + SLOTS * MESSAGE <= SIZE as usize && SLOTS * size_of::<Head>() <= FIRST);

impl Area {
    /// The area in memory that root shares between client and driver.
    ///
    /// # Safety
    /// At `address`, a multiple of 4096, there must be [`SIZE`] bytes of memory that stay mapped as
    /// long as this value exists, and that programs use only as an area. All fields are atomic, and
    /// every content is valid, so the other side need not be trusted.
    #[allow(unsafe_code, reason = "the memory is root's, not a Rust object")]
    pub unsafe fn at(address: u64) -> Area {
        // SAFETY: the caller of this function promises that the area is mapped there; the two parts
        // do not overlap.
        unsafe {
            let heads = core::slice::from_raw_parts(address as *const Head, SLOTS);
            let first = (address + FIRST as u64) as *const AtomicU64;
            Area { heads, words: core::slice::from_raw_parts(first, SLOTS * MESSAGE / 8) }
        }
    }

    /// The slot with this number, below [`SLOTS`].
    pub fn slot(&self, number: usize) -> Slot<'static> {
        let words = &self.words[number * (MESSAGE / 8)..][..MESSAGE / 8];
        Slot { head: &self.heads[number], words }
    }
}

/// Copies the first `length` bytes, in whole words.
pub fn copy(from: &Words, to: &Words, length: usize) {
    for (from, to) in from.iter().zip(to).take(length.div_ceil(8)) {
        to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// Writes bytes to the start of `to`, as far as they fit.
pub fn put(bytes: &[u8], to: &Words) {
    let (whole, rest) = bytes.as_chunks::<8>();
    // Eight words at a time: half of what a word costs is the loop.
    let ((eights, _), (to_eights, _)) = (whole.as_chunks::<8>(), to.as_chunks::<8>());
    let store = |chunk: &[u8; 8], word: &AtomicU64| word.store(u64::from_le_bytes(*chunk), Ordering::Relaxed);
    for (chunks, words) in eights.iter().zip(to_eights) {
        chunks.iter().zip(words).for_each(|(chunk, word)| store(chunk, word));
    }
    let done = eights.len().min(to_eights.len()) * 8;
    whole[done..].iter().zip(&to[done..]).for_each(|(chunk, word)| store(chunk, word));
    if let Some(word) = to.get(whole.len()).filter(|_| !rest.is_empty()) {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        word.store(u64::from_le_bytes(last), Ordering::Relaxed);
    }
}

/// Reads bytes from the start of `from`, as far as it has them.
pub fn get(from: &Words, bytes: &mut [u8]) {
    // Whole words apart: a copy whose length is not known costs ten times as much as its word.
    let (whole, rest) = bytes.as_chunks_mut::<8>();
    let words = whole.len();
    let (from_eights, _) = from.as_chunks::<8>();
    let load = |chunk: &mut [u8; 8], word: &AtomicU64| *chunk = word.load(Ordering::Relaxed).to_le_bytes();
    for (chunks, words) in whole.as_chunks_mut::<8>().0.iter_mut().zip(from_eights) {
        chunks.iter_mut().zip(words).for_each(|(chunk, word)| load(chunk, word));
    }
    let done = (words / 8).min(from_eights.len()) * 8;
    whole[done..].iter_mut().zip(&from[done..]).for_each(|(chunk, word)| load(chunk, word));
    if let Some(word) = from.get(words) {
        rest.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes()[..rest.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_any_number_pass_through_words() {
        let [first, second] = [0; 2].map(|_| [const { AtomicU64::new(u64::MAX) }; 20]);
        for length in 0..=160 {
            let bytes: Vec<u8> = (1..=length as u8).collect();
            put(&bytes, &first);
            copy(&first, &second, length);
            let mut back = vec![0; length];
            get(&second, &mut back);
            assert_eq!(back, bytes);
        }
        put(&[1; 240], &first);
        let mut more = [7; 240];
        get(&first, &mut more);
        assert_eq!((&more[..160], &more[160..]), (&[1; 160][..], &[7; 80][..]));
    }
}
