//! Receive rights in messages, and why no cycle of them comes into being.
//!
//! Suppose that a port's receive right is in a message in the port's own queue, or that each of
//! several ports has the receive right of the next in its queue and the last one has that of the
//! first. No task could ever receive from these ports, and nothing would ever free them. So each
//! port in transit records in whose queue its receive right is (its carrier). A message that would
//! close a cycle counts as sent and is destroyed, as in Mach. One lock of the system covers both
//! the search for a cycle and the change of the carriers, so that two messages cannot close a cycle
//! together.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use super::Ipc;
use super::message::Message;
use super::port::Port;
use crate::machine::Machine;

/// Whether the message, in the queue of `port`, would close a cycle. The caller holds the lock of
/// transit. The search takes one step for each carrier that it finds from `port` upwards.
pub(super) fn is_circular<M: Machine>(port: &Arc<Port<M>>, message: &Message<M>) -> bool {
    // Relaxed: all uses of the marks are under the lock of transit.
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

/// Records that the receive rights in the message are in the queue of `port`, or in no queue. The
/// caller holds the lock of transit.
pub(super) fn set_carrier<M: Machine>(message: &Message<M>, port: Option<&Arc<Port<M>>>) {
    message.for_each_receive_right(|moved| *moved.carrier.lock() = port.cloned());
}

impl<M: Machine> Ipc<M> {
    /// Records that the receive right of the port, which the caller has, is in no queue.
    pub(super) fn leave_carrier(&self, port: &Port<M>) {
        // Only the owner of the right, which calls this, could put it into a queue, so no lock is
        // needed.
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
