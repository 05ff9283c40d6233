//! The interface of the OOM killer. When no page can be taken, a program has to end, so that its
//! memory is freed. The system above chooses it, by the OOM killer that it gives the memory system
//! ([`OomKiller`]), and waits for the end of an address space by [`MapEnd`].

use alloc::sync::{Arc, Weak};

use super::Vm;
use super::pager::BoxFuture;
use crate::machine::Machine;

/// The OOM killer: finds memory when no page can be taken.
pub trait OomKiller: Send + Sync {
    /// Makes a program give up memory, and completes with true when the caller should look for free
    /// memory again; false: no program gives up memory. Many callers may wait at a time, and each
    /// may be cancelled. A program that is chosen may itself be waiting for memory here before it
    /// can end: the implementation has to end that wait.
    fn make_room(&self) -> BoxFuture<'_, bool>;
}

/// Exists until its map has freed its memory.
pub(super) struct EndMark<M: Machine> {
    vm: Arc<Vm<M>>,
}

impl<M: Machine> EndMark<M> {
    pub(super) fn new(vm: &Arc<Vm<M>>) -> Arc<Self> {
        Arc::new(Self { vm: vm.clone() })
    }

    pub(super) fn end(self: &Arc<Self>) -> MapEnd<M> {
        MapEnd(Arc::downgrade(self))
    }
}

impl<M: Machine> Drop for EndMark<M> {
    fn drop(&mut self) {
        // Tasks that wait for the end of the map must be woken even if it had no memory to free.
        self.vm.memory_freed.wake_all();
    }
}

/// Tells whether an address space has ended and freed its memory. It does not keep the address
/// space alive.
pub struct MapEnd<M: Machine>(Weak<EndMark<M>>);

impl<M: Machine> Clone for MapEnd<M> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<M: Machine> MapEnd<M> {
    pub(super) fn past() -> Self {
        Self(Weak::new())
    }

    /// Whether the address space has ended and freed its memory.
    pub fn has_come(&self) -> bool {
        self.0.strong_count() == 0
    }
}

impl<M: Machine> Vm<M> {
    /// Sets the OOM killer, which finds memory when no page can be taken. Without one, or after it
    /// has been dropped, a request for memory then fails with `ResourceShortage`.
    pub fn set_oom_killer(&self, killer: Weak<dyn OomKiller>) {
        *self.oom_killer.lock() = Some(killer);
    }

    /// Whether there is a free page that is not in the reserve.
    pub fn has_free_page(&self) -> bool {
        self.free_count() > 0
    }

    /// Waits until memory is free, the address space of `end` has ended, or the machine's clock
    /// reaches `deadline`.
    pub async fn free_or_end(&self, end: &MapEnd<M>, deadline: u64) {
        let changed =
            self.memory_freed.wait_until(|| (self.free_count() > 0 || end.has_come()).then_some(()));
        self.until(deadline, changed).await;
    }

    /// Asks the OOM killer for memory. Returns true if the caller should look for free memory
    /// again.
    pub(super) async fn made_room(&self) -> bool {
        let killer = self.oom_killer.lock().as_ref().and_then(Weak::upgrade);
        match killer {
            Some(killer) => killer.make_room().await,
            None => false,
        }
    }
}
