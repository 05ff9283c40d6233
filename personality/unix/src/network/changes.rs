//! What is told of changes of interfaces, addresses, routes and neighbours.

use super::Network;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use inet::{Change, Internet};

/// What is told of changes of interfaces, addresses, routes and neighbours.
pub trait ChangeListener: Send + Sync {
    /// Called for each change, in their order. The network is locked: the listener only notes what
    /// it was told, and must not use the network.
    fn changed(&self, change: &Change);

    /// Called after some changes, when the network is not locked any more: the listener wakes the
    /// tasks that wait for it.
    fn wake(&self);
}

impl Network {
    /// Tells `listener` of all changes from now on, as long as it exists.
    pub fn add_change_listener(&self, listener: Weak<dyn ChangeListener>) {
        let mut listeners = self.listeners.lock();
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(listener);
        drop(listeners);
        self.with(|stack| stack.note_changes(true));
    }

    /// Tells the listeners what has changed. Returns those that have to be woken; they must not be
    /// dropped while the network is locked.
    pub(super) fn tell_changes(&self, stack: &mut Internet) -> Vec<Arc<dyn ChangeListener>> {
        let Some(first) = stack.next_change() else { return Vec::new() };
        let listeners: Vec<_> = self.listeners.lock().iter().filter_map(Weak::upgrade).collect();
        let mut next = Some(first);
        while let Some(change) = next {
            for listener in &listeners {
                listener.changed(&change);
            }
            next = stack.next_change();
        }
        if listeners.is_empty() {
            stack.note_changes(false);
        }
        listeners
    }
}
