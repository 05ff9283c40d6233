//! Futexes that know their owner (FUTEX_LOCK_PI, FUTEX_UNLOCK_PI and the like).
//!
//! The word holds the owner's thread id and two flags; programs lock and unlock it themselves while
//! no thread waits for it. All operations here are serialised by one asynchronous lock. If threads
//! wait for a word, its owner is the one that is recorded here, whatever the word says. Waiters are
//! served in the order of arrival, since all threads have the same priority.

use super::{Futexes, Key, Words};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use unix::process::OwnNumbers;
use unix::{Error, Result};

/// The bits of a futex word that hold the owner's thread id.
pub(crate) const LOCK_TID: u32 = 0x3fff_ffff;
/// The bit of a futex word that says that its last owner ended without unlocking it.
pub(crate) const LOCK_OWNER_DIED: u32 = 0x4000_0000;
/// The bit of a futex word that says that a thread waits, so that unlocking needs a system call.
pub(crate) const LOCK_WAITERS: u32 = 0x8000_0000;

/// The futex words with priority inheritance that threads wait for.
#[derive(Default)]
pub(super) struct Inheriting {
    locks: BTreeMap<Key, Lock>,
    tickets: u64,
}

#[derive(Default)]
struct Lock {
    owner: u64,
    /// Whether the owner got the lock because the previous owner ended.
    owner_died: bool,
    /// Ticket and thread of each waiter, in the order of arrival.
    waiters: Vec<(u64, u64)>,
}

/// How threads are told apart: by the number of their namespace of processes, which is 0 for the
/// first one, and in the lower half their number there.
pub(crate) fn holder(numbers: OwnNumbers) -> u64 {
    numbers.namespace << 32 | u64::from(numbers.thread)
}

/// What stands for a thread in the word of a futex.
fn in_word(thread: u64) -> u32 {
    thread as u32 & LOCK_TID
}

/// The futex at which a waiter waits until it gets the lock. It is in no memory object, so no
/// program can reach it.
fn ticket_key(ticket: u64) -> Key {
    Key::Shared { object: u64::MAX, offset: ticket }
}

/// The place of a waiter in the order of arrival. The waiter gives the place up when this is
/// dropped.
struct Ticket<'a> {
    futexes: &'a Futexes,
    key: Key,
    number: u64,
    thread: u64,
}

impl Futexes {
    /// Locks a futex for thread `thread` (FUTEX_LOCK_PI), waiting until it owns the lock.
    /// `owner_lives` tells whether a thread exists. `EDEADLK` if the thread owns the lock already,
    /// `ESRCH` if the owner does not exist, `EINVAL`, `EFAULT`. There is no time limit: the caller
    /// polls the future together with a timer, and calls [`Futexes::give_up_lock`] if the timer is
    /// first.
    pub(crate) async fn lock(
        &self,
        words: &impl Words,
        address: u64,
        shared: bool,
        thread: u64,
        owner_lives: impl Fn(u32) -> bool,
    ) -> Result<()> {
        let key = lock_key(words, address, shared).await?;
        let ticket = {
            let mut inheriting = self.inheriting.lock().await;
            match self.try_take(words, address, key, thread, &inheriting).await? {
                None => return Ok(()),
                Some(owner) => {
                    let known = inheriting.locks.get(&key).map(|lock| lock.owner);
                    if known.is_none() && !owner_lives(in_word(owner)) {
                        return Err(Error::ESRCH);
                    }
                    inheriting.tickets += 1;
                    let number = inheriting.tickets;
                    let lock = inheriting.locks.entry(key).or_default();
                    lock.owner = known.unwrap_or(owner);
                    lock.waiters.push((number, thread));
                    Ticket { futexes: self, key, number, thread }
                }
            }
        };
        ticket.wait(words, address).await
    }

    /// Locks a futex without waiting (FUTEX_TRYLOCK_PI). `EAGAIN` if another thread owns it, other
    /// errors as of [`Futexes::lock`].
    pub(crate) async fn try_lock(
        &self,
        words: &impl Words,
        address: u64,
        shared: bool,
        thread: u64,
    ) -> Result<()> {
        let key = lock_key(words, address, shared).await?;
        let inheriting = self.inheriting.lock().await;
        match self.try_take(words, address, key, thread, &inheriting).await? {
            None => Ok(()),
            Some(_) => Err(Error::EAGAIN),
        }
    }

    /// Takes the lock if it is free (`None`). Otherwise sets [`LOCK_WAITERS`] in the word and
    /// returns the owner.
    async fn try_take(
        &self,
        words: &impl Words,
        address: u64,
        key: Key,
        thread: u64,
        inheriting: &Inheriting,
    ) -> Result<Option<u64>> {
        let mut word = words.load(address).await?;
        loop {
            let owner = match (inheriting.locks.get(&key), word & LOCK_TID) {
                (Some(lock), _) => lock.owner,
                (None, 0) => 0,
                // A word is that of threads of one namespace.
                (None, number) => thread & !u64::from(u32::MAX) | u64::from(number),
            };
            if owner == thread {
                return Err(Error::EDEADLK);
            }
            let new =
                if owner == 0 { in_word(thread) | (word & LOCK_OWNER_DIED) } else { word | LOCK_WAITERS };
            match words.exchange(address, word, new).await? {
                Ok(_) if owner == 0 => return Ok(None),
                Ok(_) => return Ok(Some(owner)),
                Err(seen) => word = seen,
            }
        }
    }

    /// Unlocks a futex of thread `thread` (FUTEX_UNLOCK_PI): the first waiter gets the lock.
    /// `EPERM` if the thread does not own the lock, `EINVAL`, `EFAULT`.
    pub(crate) async fn unlock(
        &self,
        words: &impl Words,
        address: u64,
        shared: bool,
        thread: u64,
    ) -> Result<()> {
        let key = lock_key(words, address, shared).await?;
        let mut inheriting = self.inheriting.lock().await;
        let mut word = words.load(address).await?;
        if word & LOCK_TID != in_word(thread) {
            return Err(Error::EPERM);
        }
        let next = inheriting.locks.get(&key).and_then(|lock| lock.waiters.first().copied());
        loop {
            let more = inheriting.locks.get(&key).is_some_and(|lock| lock.waiters.len() > 1);
            let new = next.map_or(0, |(_, tid)| in_word(tid)) | if more { LOCK_WAITERS } else { 0 };
            match words.exchange(address, word, new).await? {
                Ok(_) => break,
                Err(seen) if seen & LOCK_TID != in_word(thread) => return Err(Error::EINVAL),
                Err(seen) => word = seen,
            }
        }
        self.hand_over(&mut inheriting, key, false);
        Ok(())
    }

    /// Makes the first waiter the owner of the lock, and wakes it.
    fn hand_over(&self, inheriting: &mut Inheriting, key: Key, owner_died: bool) {
        let Some(lock) = inheriting.locks.get_mut(&key) else { return };
        if lock.waiters.is_empty() {
            inheriting.locks.remove(&key);
            return;
        }
        let (ticket, thread) = lock.waiters.remove(0);
        lock.owner = thread;
        lock.owner_died = owner_died;
        self.wake_key(ticket_key(ticket), 1, Futexes::ANY);
    }

    /// Ends the waits of thread `thread` for locks, because its request was dropped: its tickets
    /// are removed, and a lock that it has just got goes to the next waiter.
    pub(crate) async fn give_up_lock(&self, thread: u64) {
        let mut inheriting = self.inheriting.lock().await;
        for lock in inheriting.locks.values_mut() {
            lock.waiters.retain(|(_, waiter)| *waiter != thread);
        }
        inheriting.locks.retain(|_, lock| !lock.waiters.is_empty() || lock.owner_died);
    }

    /// To be called when thread `thread` has ended: locks that it owned and other threads wait for
    /// go to the first waiter, which finds them marked ([`LOCK_OWNER_DIED`]).
    pub(crate) async fn owner_ended(&self, thread: u64) {
        self.give_up_lock(thread).await;
        let mut inheriting = self.inheriting.lock().await;
        let owned: Vec<Key> =
            inheriting.locks.iter().filter(|(_, lock)| lock.owner == thread).map(|(key, _)| *key).collect();
        for key in owned {
            self.hand_over(&mut inheriting, key, true);
        }
    }
}

impl Ticket<'_> {
    /// Waits until the waiter owns the lock; if the former owner has ended, writes the futex word
    /// in its place.
    async fn wait(&self, words: &impl Words, address: u64) -> Result<()> {
        let place = self.futexes.join(ticket_key(self.number), Futexes::ANY);
        let called = {
            let inheriting = self.futexes.inheriting.lock().await;
            inheriting
                .locks
                .get(&self.key)
                .is_none_or(|lock| lock.waiters.iter().all(|(n, _)| *n != self.number))
        };
        if !called {
            place.woken().await;
        }
        let mut inheriting = self.futexes.inheriting.lock().await;
        let Some(lock) = inheriting.locks.get_mut(&self.key) else { return Ok(()) };
        if lock.owner_died {
            let waiters = if lock.waiters.is_empty() { 0 } else { LOCK_WAITERS };
            let mut word = words.load(address).await?;
            let new = in_word(self.thread) | LOCK_OWNER_DIED | waiters;
            while let Err(seen) = words.exchange(address, word, new).await? {
                word = seen;
            }
            lock.owner_died = false;
        }
        if lock.waiters.is_empty() {
            inheriting.locks.remove(&self.key);
        }
        Ok(())
    }
}

async fn lock_key(words: &impl Words, address: u64, shared: bool) -> Result<Key> {
    if !address.is_multiple_of(4) {
        return Err(Error::EINVAL);
    }
    let key = words.key(address, shared).await?;
    // The word is written, unchanged, before the locks here are locked, so that its page is
    // resident then. A thread that waits for memory therefore does not keep another one from
    // ending.
    let word = words.load(address).await?;
    let _ = words.exchange(address, word, word).await?;
    Ok(key)
}
