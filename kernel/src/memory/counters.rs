//! What processors share of accounts: limits, what is used of them, which counts at which other,
//! and how many references there are. Model-checked with loom.
//!
//! What an account uses can count at another account, too: its *upper* account, and further at the
//! upper account of that, and so on. So it shares their limits (K4). That can change at any time.
//! So an account's number of bytes and its upper account are one word: what is added to it is at
//! the upper account already, and code that moves the account moves exactly what is in the word.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The counters of one account. With no references and nothing used it can be freed, by the caller
/// that [claims](Self::claim) it.
#[repr(C)]
#[derive(Debug)]
pub struct Counters {
    /// Bytes that may be used: never more than [`Word::MOST`], so that no sum below it reaches the
    /// upper account's number.
    limit: AtomicU64,
    /// Bytes in use in the lower bits, above them the number of the upper account: see [`Word`].
    used: AtomicU64,
    references: AtomicU32,
}

/// The number of references that marks a free account.
const FREE: u32 = u32::MAX;

/// The number that stands for no upper account: that of the kernel's own, which limits nothing.
pub const NONE: u16 = 0;

/// The maximum number of accounts above one another. An account below the last of them has no
/// memory.
const MOST_ABOVE: u32 = 32;

/// Bytes that an account uses, and the number of its upper account, in one word.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Word(u64);

impl Word {
    const SHIFT: u32 = 48;

    /// The largest number of bytes that the word can hold.
    const MOST: u64 = (1 << Self::SHIFT) - 1;

    fn new(used: u64, upper: u16) -> Self {
        Self(used | u64::from(upper) << Self::SHIFT)
    }

    fn used(self) -> u64 {
        self.0 & Self::MOST
    }

    fn upper(self) -> u16 {
        (self.0 >> Self::SHIFT) as u16
    }
}

impl Counters {
    /// The counters of an account with one reference, for models. (In the kernel they are memory
    /// that is [reset](Self::reset).)
    #[cfg(loom)]
    pub fn new(limit: u64) -> Self {
        let counters =
            Self { limit: AtomicU64::new(0), used: AtomicU64::new(0), references: AtomicU32::new(1) };
        counters.set_limit(limit);
        counters
    }

    /// Makes them those of an account with one reference. Nothing is used: the memory is zero, or
    /// was [claimed](Self::claim). (Another processor may still add to the account that was here
    /// before; it takes that back immediately.)
    pub fn reset(&self, limit: u64) {
        self.set_limit(limit);
        self.references.store(1, Ordering::Relaxed);
    }

    /// Bytes that may be used; all ones: as many as can be counted.
    pub fn limit(&self) -> u64 {
        Some(self.limit.load(Ordering::Relaxed)).filter(|&limit| limit < Word::MOST).unwrap_or(u64::MAX)
    }

    /// Sets the limit. A larger one than can be counted is the largest that can.
    pub fn set_limit(&self, limit: u64) {
        self.limit.store(limit.min(Word::MOST), Ordering::Relaxed);
    }

    #[inline]
    fn word(&self) -> Word {
        Word(self.used.load(Ordering::Relaxed))
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.word().used()
    }

    /// The number of the account at which what is used counts, too.
    pub fn upper(&self) -> u16 {
        self.word().upper()
    }

    /// References, or `None` if the account is free, or about to be.
    pub fn references(&self) -> Option<u32> {
        let references = self.references.load(Ordering::Relaxed);
        (references != FREE && (references != 0 || self.used() != 0)).then_some(references)
    }

    /// Takes `bytes` out of the quota, if they are left, while the upper account is `upper`; else
    /// what it is now, or that nothing is left.
    #[inline]
    fn add(&self, bytes: u64, upper: u16) -> Result<(), Refusal> {
        let mut word = self.word();
        loop {
            if word.upper() != upper {
                return Err(Refusal::Upper(word.upper()));
            }
            // The first condition is constant at compile time in most calls. Both numbers are at
            // most `Word::MOST` then: their sum does not overflow, and a sum within the limit has
            // room.
            if bytes > Word::MOST || word.used() + bytes > self.limit.load(Ordering::Relaxed) {
                return Err(Refusal::Full);
            }
            match self.replace(word, Word(word.0 + bytes)) {
                Ok(()) => return Ok(()),
                Err(now) => word = now,
            }
        }
    }

    #[inline]
    fn replace(&self, word: Word, new: Word) -> Result<(), Word> {
        // Relaxed: only the sums have to be right, in any order.
        self.used
            .compare_exchange_weak(word.0, new.0, Ordering::Relaxed, Ordering::Relaxed)
            .map(drop)
            .map_err(Word)
    }

    /// Puts `bytes` back into the quota. Returns the upper account, where they have to be put back,
    /// too, and whether the account may be unused now: see [`Self::claim`].
    #[inline(always)]
    fn subtract(&self, bytes: u64) -> (u16, bool) {
        // Release and acquire in both read-modify-writes, here and in `release`: of two processors
        // that give back the last byte and the last reference, the one that comes second at either
        // counter sees what the other did at both.
        let before = Word(self.used.fetch_sub(bytes, Ordering::AcqRel));
        debug_assert!(before.used() >= bytes, "more returned than taken");
        (before.upper(), before.0 == bytes && self.references.fetch_add(0, Ordering::AcqRel) == 0)
    }

    /// Adds a reference; the caller has one.
    pub fn retain(&self) {
        self.references.fetch_add(1, Ordering::Relaxed);
    }

    /// Drops a reference. Returns whether the account may be unused now: see [`Self::claim`].
    pub fn release(&self) -> bool {
        self.references.fetch_sub(1, Ordering::AcqRel) == 1 && self.used.fetch_add(0, Ordering::AcqRel) == 0
    }

    /// Whether the account is unused, and this caller is the one that frees it. Only one caller at
    /// a time may ask.
    pub fn claim(&self) -> bool {
        self.word() == Word::new(0, NONE)
            && self.references.compare_exchange(0, FREE, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// Why bytes were not added to an account.
enum Refusal {
    /// The bytes would exceed the limit.
    Full,
    /// The upper account has changed to this one.
    Upper(u16),
}

/// All accounts.
pub trait Table {
    /// The counters of the account with this number, which exists or has existed.
    fn counters(&self, number: u16) -> &Counters;

    /// The account may be unused: the caller that can [claim](Counters::claim) it frees it.
    fn reclaim(&self, number: u16);

    /// Takes `bytes` out of the account's quota and those above: all or nothing.
    #[inline(always)]
    fn charge(&self, number: u16, bytes: u64) -> bool {
        match self.charge_alone(number, bytes) {
            Ok(charged) => charged,
            Err(upper) => self.charge_both(number, upper, bytes, 0),
        }
    }

    /// [`Self::charge`] if there is no account above. Otherwise returns the account above, and
    /// nothing has changed.
    #[inline(always)]
    fn charge_alone(&self, number: u16, bytes: u64) -> Result<bool, u16> {
        match self.counters(number).add(bytes, NONE) {
            Ok(()) => Ok(true),
            Err(Refusal::Full) => Ok(false),
            Err(Refusal::Upper(upper)) => Err(upper),
        }
    }

    /// Takes `bytes` out of the quota of account `number` and of those above it. `upper` is its
    /// upper account; the account itself lies `above` levels above the one that is charged.
    #[inline(never)]
    fn charge_both(&self, number: u16, upper: u16, bytes: u64, above: u32) -> bool {
        let mut upper = upper;
        loop {
            if upper != NONE && (above == MOST_ABOVE || !self.charge_above(upper, bytes, above + 1)) {
                return false;
            }
            let added = self.counters(number).add(bytes, upper);
            if added.is_err() && upper != NONE {
                self.credit(upper, bytes);
            }
            match added {
                Ok(()) => return true,
                Err(Refusal::Full) => return false,
                Err(Refusal::Upper(now)) => upper = now,
            }
        }
    }

    /// [`Self::charge`], `above` levels above the account in question.
    fn charge_above(&self, number: u16, bytes: u64, above: u32) -> bool {
        match self.counters(number).add(bytes, NONE) {
            Ok(()) => true,
            Err(Refusal::Full) => false,
            Err(Refusal::Upper(upper)) => self.charge_both(number, upper, bytes, above),
        }
    }

    /// Puts `bytes` back into the account's quota and those above.
    #[inline(always)]
    fn credit(&self, number: u16, bytes: u64) {
        let (upper, unused) = self.credit_alone(number, bytes);
        if unused {
            self.reclaim(number);
        }
        if upper != NONE {
            self.credit_above(upper, bytes);
        }
    }

    /// The beginning of [`Self::credit`]. What is still to be done: credit of this account above,
    /// if it is one, and whether the account may be unused.
    #[inline(always)]
    fn credit_alone(&self, number: u16, bytes: u64) -> (u16, bool) {
        self.counters(number).subtract(bytes)
    }

    /// [`Self::credit`] for an account above the one in question.
    #[inline(never)]
    fn credit_above(&self, number: u16, bytes: u64) {
        let mut number = number;
        while number != NONE {
            let (upper, unused) = self.counters(number).subtract(bytes);
            if unused {
                self.reclaim(number);
            }
            number = upper;
        }
    }

    /// Changes the upper account: what the account uses counts at `upper` from now on, and no more
    /// at its present upper account. Either may be [`NONE`]. `prepaid` bytes were taken out of
    /// `upper` for it before, and `kept` bytes stay taken out of the present one; the difference
    /// from what is used is put back or taken. Returns `false`, and changes nothing, if not so much
    /// is left; that does not happen if `upper` is [`NONE`] and nothing is kept. There is one such
    /// call at a time for an account.
    ///
    /// For a moment both accounts may have taken what only one keeps: a charge just then can fail
    /// where less is left than that.
    fn relink(&self, number: u16, upper: u16, prepaid: u64, kept: u64) -> bool {
        let counters = self.counters(number);
        loop {
            let word = counters.word();
            let present = word.upper();
            if present == upper {
                return true;
            }
            let (at_new, at_present) =
                (word.used().saturating_sub(prepaid), kept.saturating_sub(word.used()));
            if upper != NONE && !self.charge(upper, at_new) {
                return false;
            }
            let give_back = |number: u16, bytes: u64| {
                if number != NONE {
                    self.credit(number, bytes);
                }
            };
            if present != NONE && !self.charge(present, at_present) {
                give_back(upper, at_new);
                return false;
            }
            if counters.replace(word, Word::new(word.used(), upper)).is_ok() {
                give_back(upper, prepaid.saturating_sub(word.used()));
                give_back(present, word.used().saturating_sub(kept));
                return true;
            }
            give_back(upper, at_new);
            give_back(present, at_present);
        }
    }
}
