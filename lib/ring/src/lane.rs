//! A lane: one direction of the way between a client and its driver, a ring of words in shared
//! memory with one sender and one receiver, neither of which trusts the other.
//!
//! The sender never has more words in a lane than the lane holds: each word concerns one of so many
//! things, and none of them is in a lane twice. So the receiver does not say how many words it has
//! taken.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// The shared part of a lane of `SLOTS` words, a power of two. If it is all zero, the lane is
/// empty, and its receiver does not sleep.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Lane<const SLOTS: usize> {
    /// How many words have been sent, modulo 2^32.
    sent: AtomicU32,
    /// Whether the receiver sleeps, so that the sender must notify it.
    sleeping: AtomicU32,
    words: [AtomicU64; SLOTS],
}

impl<const SLOTS: usize> Default for Lane<SLOTS> {
    fn default() -> Self {
        let words = core::array::from_fn(|_| AtomicU64::new(0));
        Lane { sent: AtomicU32::new(0), sleeping: AtomicU32::new(0), words }
    }
}

impl<const SLOTS: usize> Lane<SLOTS> {
    const MASK: usize = {
        assert!(SLOTS.is_power_of_two() && SLOTS < 1 << 31);
        SLOTS - 1
    };

    fn word(&self, count: u32) -> &AtomicU64 {
        &self.words[count as usize & Self::MASK]
    }

    /// Makes the lane empty, for a new sender and a new receiver. The earlier ones must have ended.
    pub fn clear(&self) {
        self.sent.store(0, Ordering::Relaxed);
        self.sleeping.store(0, Ordering::Relaxed);
    }
}

/// The sender's side of a lane.
#[derive(Debug)]
pub struct Sender<'a, const SLOTS: usize> {
    lane: &'a Lane<SLOTS>,
    sent: u32,
    /// How many of them were sent when [`must_notify`](Sender::must_notify) was asked last.
    asked: u32,
}

impl<'a, const SLOTS: usize> Sender<'a, SLOTS> {
    /// The sender's side of a lane that is empty.
    pub fn new(lane: &'a Lane<SLOTS>) -> Self {
        Sender { lane, sent: 0, asked: 0 }
    }

    /// Sends a word. At most `SLOTS` words may be in the lane. Afterwards the caller must ask
    /// [`must_notify`](Sender::must_notify), once for any number of words.
    pub fn send(&mut self, word: u64) {
        self.lane.word(self.sent).store(word, Ordering::Relaxed);
        self.sent = self.sent.wrapping_add(1);
        // Release: the word, and what its slot holds, come before the count.
        self.lane.sent.store(self.sent, Ordering::Release);
    }

    /// Whether the receiver sleeps and must be notified of words that were sent since this was
    /// asked last. Without such words it is not: two sides that both sleep would wake each other
    /// for ever.
    pub fn must_notify(&mut self) -> bool {
        if core::mem::replace(&mut self.asked, self.sent) == self.sent {
            return false;
        }
        // The store of the count comes before this load. The receiver first stores that it sleeps,
        // then loads the count: one sees the other.
        fence(Ordering::SeqCst);
        self.lane.sleeping.load(Ordering::Relaxed) != 0 && self.lane.sleeping.swap(0, Ordering::Relaxed) != 0
    }
}

/// The receiver's side of a lane.
#[derive(Debug)]
pub struct Receiver<'a, const SLOTS: usize> {
    lane: &'a Lane<SLOTS>,
    taken: u32,
}

/// The sender has sent more words than a lane holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

impl<'a, const SLOTS: usize> Receiver<'a, SLOTS> {
    /// The receiver's side of a lane from which nothing has been taken.
    pub fn new(lane: &'a Lane<SLOTS>) -> Self {
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

#[cfg(all(test, loom))]
mod models {
    //! The two sides of a lane on two processors, explored by loom: every interleaving.

    use super::*;
    use loom::sync::{Arc, Notify};
    use loom::thread;

    /// Loom explores all interleavings, which are too many with more words.
    const SLOTS: usize = 2;

    #[test]
    fn loom_a_receiver_that_sleeps_is_notified_of_each_word() {
        loom::model(|| {
            let shared = Arc::new((Lane::<SLOTS>::default(), Notify::new()));
            let other = shared.clone();
            let receiver = thread::spawn(move || {
                let mut receiver = Receiver::new(&other.0);
                let mut got = 0;
                while got < SLOTS as u64 {
                    match receiver.receive().unwrap() {
                        Some(word) => {
                            got += 1;
                            assert_eq!(word, got);
                        }
                        None if receiver.sleep() => {}
                        // Loom fails if the notification never comes.
                        None => other.1.wait(),
                    }
                }
            });
            let mut sender = Sender::new(&shared.0);
            for word in 1..=SLOTS as u64 {
                sender.send(word);
                if sender.must_notify() {
                    shared.1.notify();
                }
            }
            receiver.join().unwrap();
        });
    }
}
