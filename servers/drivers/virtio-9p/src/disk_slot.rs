//! The last slot of an area, in which the server of a channel asks its client for the disk. The
//! server puts a request there and makes the state 1, the client makes it 2 when it has answered.
//! The first words are what is asked, an offset, a length and the status of the answer; data come
//! after them.

use crate::area::{Area, MESSAGE, REPLY, REQUEST, SLOTS, Words, get, put as put_bytes};
use core::sync::atomic::Ordering;

/// The number of the slot. Those before it are for the client's requests.
pub const NUMBER: usize = SLOTS - 1;
/// The most bytes of data that one request moves.
pub const DATA: usize = 64 << 10;
/// The words before the data.
const HEADER: usize = 8;
const _: () = assert!(HEADER * 8 + DATA <= MESSAGE);

/// What the server asks. Offsets and lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the range is described above")]
pub enum Ask {
    /// Read a range of the disk.
    Read { offset: u64, length: usize },
    /// Write a range of the disk.
    Write { offset: u64, length: usize },
    /// Bring what was written to stable storage.
    Flush,
    /// Say how many bytes the disk has, and whether it is read-only.
    Describe,
}

impl Ask {
    fn words(self) -> [u64; 3] {
        match self {
            Ask::Read { offset, length } => [1, offset, length as u64],
            Ask::Write { offset, length } => [2, offset, length as u64],
            Ask::Flush => [3, 0, 0],
            Ask::Describe => [4, 0, 0],
        }
    }

    fn from_words([kind, offset, length]: [u64; 3]) -> Option<Ask> {
        let length = usize::try_from(length).ok().filter(|&length| length <= DATA)?;
        Some(match kind {
            1 => Ask::Read { offset, length },
            2 => Ask::Write { offset, length },
            3 => Ask::Flush,
            4 => Ask::Describe,
            _ => return None,
        })
    }
}

fn words(area: &Area) -> &'static Words {
    area.slot(NUMBER).words
}

/// The server: puts a request into the slot, with the data of a write, in parts of whole words.
/// Notifying the client is the caller's.
pub fn put(area: &Area, ask: Ask, data: &[&[u8]]) {
    let words = words(area);
    for (word, value) in words.iter().zip(ask.words()) {
        word.store(value, Ordering::Relaxed);
    }
    let mut at = HEADER;
    for part in data {
        put_bytes(part, &words[at..]);
        at += part.len() / 8;
    }
    area.slot(NUMBER).pass(REQUEST, 0);
}

/// The server: whether the client has answered.
pub fn is_answered(area: &Area) -> bool {
    area.slot(NUMBER).state() == REPLY
}

/// The server: takes the answer: data that were read, and two words. `None`: the client could not
/// do it.
pub fn take(area: &Area, ask: Ask, data: &mut [u8]) -> Option<(u64, u64)> {
    let words = words(area);
    let word = |index: usize| words[index].load(Ordering::Relaxed);
    if word(3) != 0 {
        return None;
    }
    if let Ask::Read { .. } = ask {
        get(&words[HEADER..], data);
    }
    Some((word(4), word(5)))
}

/// The client: what the server asks, if it does. `Err`: that cannot be asked.
pub fn asked(area: &Area) -> Option<Result<Ask, ()>> {
    let slot = area.slot(NUMBER);
    let word = |index: usize| slot.words[index].load(Ordering::Relaxed);
    (slot.state() == REQUEST).then(|| Ask::from_words([word(0), word(1), word(2)]).ok_or(()))
}

/// The client: the data of a write.
pub fn data(area: &Area, data: &mut [u8]) {
    get(&words(area)[HEADER..], data);
}

/// The client: answers, with data that were read and two words, or that it could not be done.
pub fn answer(area: &Area, done: Option<(u64, u64)>, data: &[u8]) {
    let words = words(area);
    let (first, second) = done.unwrap_or_default();
    for (index, value) in [(3, u64::from(done.is_none())), (4, first), (5, second)] {
        words[index].store(value, Ordering::Relaxed);
    }
    put_bytes(data, &words[HEADER..]);
    area.slot(NUMBER).pass(REPLY, 0);
}
