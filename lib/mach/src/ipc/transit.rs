//! Receive rights in messages, and how a cycle of them is avoided.
//!
//! A port whose receive right is in a message in its own queue, or in that of a port whose receive
//! right is in its queue, and so on, could never be received from, and nothing would ever free it.
//! So a port in transit knows in whose queue it is (its carrier). A message that would close a
//! cycle counts as sent and is destroyed, as in Mach. One lock for the system makes the look and
//! the step one: two messages that would close a cycle together come one after the other.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use super::Ipc;
use super::message::Message;
use super::port::Port;
use crate::machine::Machine;

/// Whether a message would be in a cycle in the queue of `port`. The lock of transit is held. Takes
/// as many steps as receive rights are one in another's queue above the port.
pub(super) fn is_circular<M: Machine>(port: &Arc<Port<M>>, message: &Message<M>) -> bool {
    // Relaxed: the lock of transit orders all uses of the marks.
    message.for_each_receive_right(|moved| moved.marked.store(true, Ordering::Relaxed));
    let mut at = Some(port.clone());
    let mut found = false;
    while let Some(port) = at {
        if port.marked.load(Ordering::Relaxed) {
            found = true;
            break;
        }
        at = port.carrier.lock().clone();
    }
    message.for_each_receive_right(|moved| moved.marked.store(false, Ordering::Relaxed));
    found
}

/// Notes that the message's receive rights are in the queue of `port` now, or in none. The lock of
/// transit is held.
pub(super) fn set_carrier<M: Machine>(message: &Message<M>, port: Option<&Arc<Port<M>>>) {
    message.for_each_receive_right(|moved| *moved.carrier.lock() = port.cloned());
}

impl<M: Machine> Ipc<M> {
    /// Notes that the port, whose receive right the caller has, is in no queue.
    pub(super) fn leave_carrier(&self, port: &Port<M>) {
        // Only the owner of the right puts it into a queue, so this look needs no lock.
        if port.carrier.lock().is_none() {
            return;
        }
        let carrier = {
            let _transit = self.transit.lock();
            port.carrier.lock().take()
        };
        drop(carrier);
    }
}
