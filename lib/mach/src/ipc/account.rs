//! What a task's ports, names and messages may take of the server's memory.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::Ipc;
use crate::machine::Machine;

/// Bytes that one task has in use for IPC, and how many it may use.
pub(crate) struct Account<M: Machine> {
    ipc: Arc<Ipc<M>>,
    used: AtomicUsize,
    limit: usize,
}

impl<M: Machine> Account<M> {
    pub(super) fn new(ipc: &Arc<Ipc<M>>, limit: usize) -> Arc<Self> {
        Arc::new(Self { ipc: ipc.clone(), used: AtomicUsize::new(0), limit })
    }

    /// Takes `bytes` for a structure that is about to be made; false at the limit of the account or
    /// of the machine.
    pub(super) fn take(&self, bytes: usize) -> bool {
        // Relaxed: only the sum matters, it orders nothing.
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        let fits = before.checked_add(bytes).is_some_and(|sum| sum <= self.limit);
        if fits && self.ipc.machine().reserve_memory(bytes) {
            return true;
        }
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        false
    }

    /// Gives back what [`take`](Self::take) granted.
    pub(super) fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        self.ipc.machine().unreserve_memory(bytes);
    }

    /// Takes `bytes`, to be given back when the charge is dropped.
    pub(super) fn charge(self: &Arc<Self>, bytes: usize) -> Option<Charge<M>> {
        self.take(bytes).then(|| Charge { account: self.clone(), bytes })
    }

    /// Bytes in use.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// Memory of an account that is in use until this is dropped.
pub(super) struct Charge<M: Machine> {
    account: Arc<Account<M>>,
    bytes: usize,
}

impl<M: Machine> Charge<M> {
    /// Takes more bytes of the same account.
    pub(super) fn extend(&mut self, bytes: usize) -> bool {
        let granted = self.account.take(bytes);
        if granted {
            self.bytes += bytes;
        }
        granted
    }
}

impl<M: Machine> Drop for Charge<M> {
    fn drop(&mut self) {
        self.account.give(self.bytes);
    }
}
