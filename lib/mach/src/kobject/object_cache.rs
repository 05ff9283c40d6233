//! Memory objects that stay when nothing maps them, because their pagers allow it.
//!
//! What an object keeps in memory is an ordinary part of page-out's queues, so only the number of
//! objects is bounded: for each task that has mapped them first, and pays for them, and for all.

use alloc::sync::Arc;
use alloc::vec::Vec;

use macadamia_sync::SpinLock;

use crate::ipc::Space;
use crate::machine::Machine;
use crate::vm::VmObject;

/// How many objects are kept for one task.
pub(super) const MOST_OF_TASK: usize = 32;
/// How many objects are kept in all.
pub(super) const MOST: usize = 256;

/// An object that stays.
pub(super) struct Kept<M: Machine> {
    /// The number of its pager's port.
    number: u64,
    payer: Arc<Space<M>>,
    object: Arc<VmObject<M>>,
}

/// The objects that stay, those that were mapped last at the end.
pub(super) struct ObjectCache<M: Machine> {
    kept: SpinLock<Vec<Kept<M>>>,
}

impl<M: Machine> ObjectCache<M> {
    pub(super) fn new() -> Self {
        Self { kept: SpinLock::new(Vec::new()) }
    }

    /// Keeps an object. Returns one that is not kept any more, to be dropped when no lock is held.
    /// Without memory for the list it is the object itself.
    pub(super) fn keep(
        &self,
        number: u64,
        payer: &Arc<Space<M>>,
        object: Arc<VmObject<M>>,
    ) -> Option<Kept<M>> {
        let new = Kept { number, payer: payer.clone(), object };
        let mut kept = self.kept.lock();
        if kept.iter().any(|kept| kept.number == number) {
            return None;
        }
        if kept.try_reserve(1).is_err() {
            return Some(new);
        }
        let of = |payer: &Arc<Space<M>>| kept.iter().filter(|kept| Arc::ptr_eq(&kept.payer, payer)).count();
        let victim = if of(payer) >= MOST_OF_TASK {
            Some(payer.clone())
        } else if kept.len() >= MOST {
            // The task with the most objects loses one.
            kept.iter().map(|kept| &kept.payer).max_by_key(|payer| of(payer)).cloned()
        } else {
            None
        };
        let oldest = victim.and_then(|victim| kept.iter().position(|kept| Arc::ptr_eq(&kept.payer, &victim)));
        let gone = oldest.map(|oldest| kept.remove(oldest));
        kept.push(new);
        gone
    }

    /// An object has been mapped again.
    pub(super) fn used(&self, number: u64) {
        let mut kept = self.kept.lock();
        if let Some(place) = kept.iter().position(|kept| kept.number == number) {
            kept[place..].rotate_left(1);
        }
    }

    /// Ends the keeping of an object, and returns it.
    pub(super) fn forget(&self, number: u64) -> Option<Kept<M>> {
        let mut kept = self.kept.lock();
        let place = kept.iter().position(|kept| kept.number == number)?;
        Some(kept.remove(place))
    }

    /// How many objects stay only because they are kept.
    pub(super) fn unused(&self) -> usize {
        self.kept.lock().iter().filter(|kept| Arc::strong_count(&kept.object) == 1).count()
    }
}
