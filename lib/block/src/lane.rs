//! A lane: one direction of the way between client and driver, a ring of words with one sender and
//! one receiver, neither of which trusts the other.
//!
//! The sender never has more words in a lane than the lane holds, because each word concerns a slot
//! and no slot is in a lane twice. So the receiver does not say how many words it has taken.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use crate::SLOTS;

/// The shared part of a lane. If it is all zero, the lane is empty, and its receiver does not
/// sleep.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Lane {
    /// How many words have been sent, modulo 2^32.
    sent: AtomicU32,
    /// Whether the receiver sleeps, so that the sender must notify it.
    sleeping: AtomicU32,
    words: [AtomicU64; SLOTS],
}

impl Default for Lane {
    fn default() -> Lane {
        let words = core::array::from_fn(|_| AtomicU64::new(0));
        Lane { sent: AtomicU32::new(0), sleeping: AtomicU32::new(0), words }
    }
}

impl Lane {
    fn word(&self, count: u32) -> &AtomicU64 {
        &self.words[count as usize % SLOTS]
    }
}

/// The sender's side of a lane.
#[derive(Debug)]
pub struct Sender<'a> {
    lane: &'a Lane,
    sent: u32,
}

impl<'a> Sender<'a> {
    /// The sender's side of a lane that is empty.
    pub fn new(lane: &'a Lane) -> Sender<'a> {
        Sender { lane, sent: 0 }
    }

    /// Sends a word. At most [`SLOTS`] words may be in the lane. Afterwards the caller must ask
    /// [`must_notify`](Sender::must_notify), once for any number of words.
    pub fn send(&mut self, word: u64) {
        self.lane.word(self.sent).store(word, Ordering::Relaxed);
        self.sent = self.sent.wrapping_add(1);
        // Release: the word, and what its slot holds, come before the count.
        self.lane.sent.store(self.sent, Ordering::Release);
    }

    /// Whether the receiver sleeps and must be notified. It is told so once.
    pub fn must_notify(&self) -> bool {
        // The store of the count comes before this load. The receiver first stores that it sleeps,
        // then loads the count: one sees the other.
        fence(Ordering::SeqCst);
        self.lane.sleeping.load(Ordering::Relaxed) != 0 && self.lane.sleeping.swap(0, Ordering::Relaxed) != 0
    }
}

/// The receiver's side of a lane.
#[derive(Debug)]
pub struct Receiver<'a> {
    lane: &'a Lane,
    taken: u32,
}

/// The sender has sent more words than a lane holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

impl<'a> Receiver<'a> {
    /// The receiver's side of a lane from which nothing has been taken.
    pub fn new(lane: &'a Lane) -> Receiver<'a> {
        Receiver { lane, taken: 0 }
    }

    /// Takes the next word, if there is one.
    ///
    /// # Errors
    /// `Overflow`: the sender has broken the rules.
    pub fn receive(&mut self) -> Result<Option<u64>, Overflow> {
        match self.waiting() {
            0 => Ok(None),
            waiting if waiting as usize > SLOTS => Err(Overflow),
            _ => {
                let word = self.lane.word(self.taken).load(Ordering::Relaxed);
                self.taken = self.taken.wrapping_add(1);
                Ok(Some(word))
            }
        }
    }

    /// Says that the receiver sleeps, and that the sender notifies it of the next word. Returns
    /// whether there is a word already: the receiver must take that one, since there may be no
    /// notification of it.
    pub fn sleep(&self) -> bool {
        self.lane.sleeping.store(1, Ordering::Relaxed);
        // See `must_notify`.
        fence(Ordering::SeqCst);
        self.waiting() != 0
    }

    /// How many words the sender says that it has sent and the receiver has not taken.
    fn waiting(&self) -> u32 {
        // Acquire: see `send`.
        self.lane.sent.load(Ordering::Acquire).wrapping_sub(self.taken)
    }
}
