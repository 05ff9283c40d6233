//! What is left when no page can be taken: whoever holds memory has to give it up. Who that is, the
//! system above decides; it says so by [`Relief`], and waits for the end of an address space by
//! [`MapEnd`].

use alloc::sync::{Arc, Weak};

use super::Vm;
use super::pager::BoxFuture;
use crate::machine::Machine;

/// Who finds memory when no page can be taken.
pub trait Relief: Send + Sync {
    /// Has somebody give up memory, and completes when it is worth another look whether there is
    /// some; false: nobody gives up any. Many may wait at a time, and each may be dropped. What
    /// must happen for the memory to come may itself wait for memory here: that has to be ended by
    /// who decides.
    fn relieve(&self) -> BoxFuture<'_, bool>;
}

/// Lives until its map has given back what it held.
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
        // There may have been nothing to give back. Who is woken looks at the mark, which has no
        // references left.
        self.vm.memory_freed.wake_all();
    }
}

/// The end of an address space: that all it held has been given back. Does not keep it.
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

    /// Whether it has come.
    pub fn has_come(&self) -> bool {
        self.0.strong_count() == 0
    }
}

impl<M: Machine> Vm<M> {
    /// Says who finds memory when no page can be taken. Without one, and once it is gone, who needs
    /// memory then gets `ResourceShortage`.
    pub fn set_relief(&self, relief: Weak<dyn Relief>) {
        *self.relief.lock() = Some(relief);
    }

    /// Whether there is a free page for who has no privilege: the reserve does not count.
    pub fn has_free_page(&self) -> bool {
        self.free_count() > 0
    }

    /// Waits until memory is free or this end has come, or until a time of the machine.
    pub async fn free_or_end(&self, end: &MapEnd<M>, deadline: u64) {
        let changed =
            self.memory_freed.wait_until(|| (self.free_count() > 0 || end.has_come()).then_some(()));
        self.until(deadline, changed).await;
    }

    /// Whether somebody gives up memory, and it is worth another look.
    pub(super) async fn is_relieved(&self) -> bool {
        let relief = self.relief.lock().as_ref().and_then(Weak::upgrade);
        match relief {
            Some(relief) => relief.relieve().await,
            None => false,
        }
    }
}
