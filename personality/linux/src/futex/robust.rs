//! Robust lists, by which the locks of a thread that ends are released (get_robust_list(2)).

use super::inheriting::{LOCK_OWNER_DIED, LOCK_TID, LOCK_WAITERS};
use super::{Futexes, Words};
use unix::Result;

/// A thread's list of the locks that it holds, which is in the program's memory. Its head has a
/// pointer to the first entry, the offset from an entry to its futex word, and a pointer to the
/// entry whose lock is just being taken or released. The lowest bit of a pointer marks a lock with
/// priority inheritance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RobustList {
    /// Address of the head of the list.
    pub(crate) head: u64,
}

impl RobustList {
    /// The most entries that are looked at; a list may be circular or damaged.
    const LIMIT: usize = 2048;

    /// Marks every lock on the list that `thread` holds as ownerless, and wakes a waiter of each.
    /// The thread must not execute any more. If the list cannot be read, the rest of it is ignored.
    pub(crate) async fn release(self, futexes: &Futexes, words: &impl Words, thread: u32) {
        // A damaged list harms only the program itself, so errors are ignored.
        let _ = self.walk(futexes, words, thread).await;
    }

    async fn walk(self, futexes: &Futexes, words: &impl Words, thread: u32) -> Result<()> {
        let mut entry = words.load_u64(self.head).await?;
        let offset = words.load_u64(self.head.wrapping_add(8)).await?;
        let pending = words.load_u64(self.head.wrapping_add(16)).await?;
        for _ in 0..RobustList::LIMIT {
            let address = entry & !1;
            if address == self.head {
                break;
            }
            // Read the pointer to the next entry first: the woken thread may free this entry.
            let next = words.load_u64(address).await;
            if entry != pending {
                release_one(futexes, words, address.wrapping_add(offset), entry & 1 != 0, thread).await?;
            }
            entry = next?;
        }
        if pending & !1 != 0 {
            let address = (pending & !1).wrapping_add(offset);
            let word = if address.is_multiple_of(4) { words.load(address).await? } else { return Ok(()) };
            if word & LOCK_TID == 0 && pending & 1 == 0 {
                // The thread had unlocked the futex, but had not woken a waiter yet.
                wake_one(futexes, words, address).await?;
            }
            release_one(futexes, words, address, pending & 1 != 0, thread).await?;
        }
        Ok(())
    }
}

async fn release_one(
    futexes: &Futexes,
    words: &impl Words,
    address: u64,
    inheriting: bool,
    thread: u32,
) -> Result<()> {
    if !address.is_multiple_of(4) {
        return Err(unix::Error::EINVAL);
    }
    let mut word = words.load(address).await?;
    while word & LOCK_TID == thread {
        let new = word & LOCK_WAITERS | LOCK_OWNER_DIED;
        match words.exchange(address, word, new).await? {
            // Waiters of a lock with inheritance are served by [`Futexes::owner_ended`].
            Ok(_) if word & LOCK_WAITERS != 0 && !inheriting => {
                return wake_one(futexes, words, address).await;
            }
            Ok(_) => break,
            Err(seen) => word = seen,
        }
    }
    Ok(())
}

/// Wakes one waiter, whether it waits for the word as shared or as private.
async fn wake_one(futexes: &Futexes, words: &impl Words, address: u64) -> Result<()> {
    let shared = words.key(address, true).await?;
    let private = words.key(address, false).await?;
    if futexes.wake_key(shared, 1, Futexes::ANY) == 0 && private != shared {
        futexes.wake_key(private, 1, Futexes::ANY);
    }
    Ok(())
}
