//! The capacity of pipes, as far as it is charged to users (pipe(7)).

use super::{DEFAULT_CAPACITY, SMALL_CAPACITY};
use crate::account::{Account, Charge, Kept, Setting};
use crate::vfs::PAGE_SIZE;
use crate::{Error, Identity, Privilege, Result};
use alloc::sync::Arc;

/// The capacity of one pipe, charged to the user that made the pipe: as pages of pipes, and as the
/// server's memory.
pub(super) struct Room {
    pages: Charge,
    memory: Charge,
}

/// The limits of all pipes of a user together, as they apply to a caller.
struct Limits {
    soft: u64,
    hard: u64,
}

impl Limits {
    fn of(account: &Account, identity: &Identity) -> Limits {
        let is_free = identity.has(Privilege::Resource) || identity.has(Privilege::Administrator);
        let limit = |setting| match account.settings().get(setting) {
            pages if pages > 0 && !is_free => pages,
            _ => u64::MAX,
        };
        Limits { soft: limit(Setting::PipePagesSoft), hard: limit(Setting::PipePagesHard) }
    }
}

fn pages(bytes: usize) -> u64 {
    (bytes / PAGE_SIZE) as u64
}

impl Room {
    /// The capacity of a new pipe. A user above the soft limit gets [`SMALL_CAPACITY`], a user
    /// above the hard limit gets `None`.
    pub(super) fn new(account: &Arc<Account>, identity: &Identity) -> Option<Room> {
        let limits = Limits::of(account, identity);
        let largest = match identity.has(Privilege::Resource) {
            true => u64::MAX,
            false => account.settings().get(Setting::PipeSize) / PAGE_SIZE as u64,
        };
        let usual = pages(DEFAULT_CAPACITY).min(largest);
        let few = account.amount(Kept::PipePages).saturating_add(usual) <= limits.soft;
        let capacity = if few { usual } else { pages(SMALL_CAPACITY) };
        let pages = account.charge(Kept::PipePages, capacity, |sum| sum <= limits.hard)?;
        let memory = account.charge_memory(capacity * PAGE_SIZE as u64)?;
        Some(Room { pages, memory })
    }

    /// The capacity of the pipe in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.pages.amount() as usize * PAGE_SIZE
    }

    /// Changes the capacity, in bytes; a smaller one is always possible. `EPERM` for more than a
    /// limit that applies to the caller allows, `ENOMEM` for more than the user may have of the
    /// server's memory.
    pub(super) fn resize(&mut self, bytes: usize, identity: &Identity) -> Result<()> {
        let account = self.pages.account().clone();
        let largest = account.settings().get(Setting::PipeSize);
        if bytes > self.bytes() && bytes as u64 > largest && !identity.has(Privilege::Resource) {
            return Err(Error::EPERM);
        }
        let limits = Limits::of(&account, identity);
        let before = self.pages.amount();
        if !self.pages.change(pages(bytes), |sum| sum <= limits.soft.min(limits.hard)) {
            return Err(Error::EPERM);
        }
        if !self.memory.change_memory(bytes as u64) {
            self.pages.change(before, |_| true);
            return Err(Error::ENOMEM);
        }
        Ok(())
    }
}
