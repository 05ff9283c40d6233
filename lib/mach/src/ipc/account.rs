//! The memory of the server that a task's names, ports and messages use.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::Ipc;
use crate::machine::Machine;

/// The bytes that one task uses for names, ports and messages, and its limit.
pub(crate) struct Account<M: Machine> {
    ipc: Arc<Ipc<M>>,
    used: AtomicUsize,
    limit: usize,
}

impl<M: Machine> Account<M> {
    pub(super) fn new(ipc: &Arc<Ipc<M>>, limit: usize) -> Arc<Self> {
        Arc::new(Self { ipc: ipc.clone(), used: AtomicUsize::new(0), limit })
    }

    /// Takes `bytes` from the account and from the machine, for a structure that the caller is
    /// about to make. Returns false, and takes nothing, if one of them has no more.
    pub(super) fn take(&self, bytes: usize) -> bool {
        // Relaxed: the sum alone matters, and it orders nothing.
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        let fits = before.checked_add(bytes).is_some_and(|sum| sum <= self.limit);
        if fits && self.ipc.machine().reserve_memory(bytes) {
            return true;
        }
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        false
    }

    /// Gives back `bytes` that [`take`](Self::take) has taken from the account and from the
    /// machine.
    pub(super) fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        self.ipc.machine().unreserve_memory(bytes);
    }

    /// Takes `bytes`, which go back when the charge is dropped. `None`: there are no more.
    pub(super) fn charge(self: &Arc<Self>, bytes: usize) -> Option<Charge<M>> {
        self.take(bytes).then(|| Charge { account: self.clone(), bytes })
    }

    /// How many bytes are in use.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// Bytes of an account that are in use until this value is dropped.
pub(crate) struct Charge<M: Machine> {
    account: Arc<Account<M>>,
    bytes: usize,
}

impl<M: Machine> Charge<M> {
    /// Adds `bytes` of the same account to the charge. Returns false if there are no more.
    pub(crate) fn extend(&mut self, bytes: usize) -> bool {
        let granted = self.account.take(bytes);
        if granted {
            self.bytes += bytes;
        }
        granted
    }

    /// Gives back all bytes of the charge but `bytes`.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let unused = self.bytes.saturating_sub(bytes);
        self.bytes -= unused;
        self.account.give(unused);
    }
}

impl<M: Machine> Drop for Charge<M> {
    fn drop(&mut self) {
        self.account.give(self.bytes);
    }
}
