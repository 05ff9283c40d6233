//! Ports.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::Waker;

use macadamia_sync::{SpinLock, WaitQueue};

use super::account::{Account, Charge};
use super::message::Message;
use super::notify::{self, Notification};
use super::right::{OutOfMemory, ReceiveRight, SendOnceRight};
use super::set::PortSet;
use super::{Ipc, Name};
use crate::machine::Machine;

/// Where a port's receive right is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// In the name space with this number, under this name.
    Space(u64, Name),
    /// In a message, or between a name space and a message.
    Transit,
    /// Nowhere: the port is dead.
    Dead,
}

/// A request to be told, under a name, that the port has died.
pub(super) struct DeadNameRequest<M: Machine> {
    pub(super) name: Name,
    pub(super) notify: SendOnceRight<M>,
}

/// A port's place in a set.
pub(super) struct Membership<M: Machine> {
    pub(super) set: Arc<PortSet<M>>,
    pub(super) index: u32,
}

/// What a port's lock protects.
pub(super) struct PortState<M: Machine> {
    pub(super) holder: Holder,
    /// How often the receive right has left a holder. A receiver that waits sees by it that the
    /// port is no longer its own.
    pub(super) version: u32,
    pub(super) send_rights: u64,
    pub(super) send_once_rights: u64,
    pub(super) make_send_count: u32,
    pub(super) sequence: u32,
    pub(super) payload: Option<u64>,

    pub(super) queue: VecDeque<Box<Message<M>>>,
    pub(super) queue_limit: u32,
    /// Senders that wait for room, the first first. One that is no longer here while the port lives
    /// has been given a place, and will take it or pass it on.
    pub(super) blocked: VecDeque<(u64, Waker)>,
    pub(super) next_ticket: u64,
    /// Places in the queue that senders have been given and not taken yet.
    pub(super) granted: u32,

    pub(super) membership: Option<Membership<M>>,
    /// How many of the queue's messages came before the port joined its set, and the place of that
    /// in the order of the set's messages.
    pub(super) before_joining: usize,
    pub(super) joined: u64,

    pub(super) no_senders: Option<SendOnceRight<M>>,
    pub(super) port_destroyed: Option<SendOnceRight<M>>,
    pub(super) requests: Vec<Option<DeadNameRequest<M>>>,
    /// Places among the requests that are free.
    pub(super) free_requests: Vec<u32>,
}

impl<M: Machine> PortState<M> {
    pub(super) fn is_dead(&self) -> bool {
        self.holder == Holder::Dead
    }
}

/// A port.
pub(super) struct Port<M: Machine> {
    pub(super) ipc: Arc<Ipc<M>>,
    pub(super) id: u64,
    /// Pays for the port and for its send-once rights: the task that has made it.
    pub(super) account: Arc<Account<M>>,
    dead: AtomicBool,
    pub(super) state: SpinLock<PortState<M>>,
    /// Receivers of a port that is in no set.
    pub(super) receivers: WaitQueue,
    /// The port in whose queue the receive right is. Changed and read under the lock of transit.
    pub(super) carrier: SpinLock<Option<Arc<Port<M>>>>,
    /// A mark for the look for cycles. Under the lock of transit.
    pub(super) marked: AtomicBool,
    _charge: Charge<M>,
}

impl<M: Machine> Port<M> {
    /// Bytes that are charged for a port.
    pub(super) const BYTES: usize = size_of::<Self>() + 2 * size_of::<usize>();

    /// A new port; the right to it.
    ///
    /// # Errors
    /// No memory.
    pub(super) fn create(
        ipc: &Arc<Ipc<M>>,
        account: &Arc<Account<M>>,
    ) -> Result<ReceiveRight<M>, OutOfMemory> {
        let charge = account.charge(Self::BYTES).ok_or(OutOfMemory)?;
        ipc.ports.fetch_add(1, Ordering::Relaxed);
        let state = PortState {
            holder: Holder::Transit,
            version: 0,
            send_rights: 0,
            send_once_rights: 0,
            make_send_count: 0,
            sequence: 0,
            payload: None,
            queue: VecDeque::new(),
            queue_limit: ipc.limits.queue,
            blocked: VecDeque::new(),
            next_ticket: 0,
            granted: 0,
            membership: None,
            before_joining: 0,
            joined: 0,
            no_senders: None,
            port_destroyed: None,
            requests: Vec::new(),
            free_requests: Vec::new(),
        };
        Ok(ReceiveRight::of_new(Arc::new(Self {
            ipc: ipc.clone(),
            id: ipc.new_id(),
            account: account.clone(),
            dead: AtomicBool::new(false),
            state: SpinLock::new(state),
            receivers: WaitQueue::new(),
            carrier: SpinLock::new(None),
            marked: AtomicBool::new(false),
            _charge: charge,
        })))
    }

    /// Whether the port has died. A port that has not may die at any time, unless its lock or that
    /// of the space that has the receive right is held.
    pub(super) fn is_dead(&self) -> bool {
        // Acquire: what the port's end did before it died is visible.
        self.dead.load(Ordering::Acquire)
    }

    /// The name that the receive right has in a space.
    pub(super) fn name_in(&self, space: u64) -> Option<Name> {
        match self.state.lock().holder {
            Holder::Space(holder, name) if holder == space => Some(name),
            _ => None,
        }
    }

    /// Takes the receive right from its holder: the port leaves its set, and receivers that wait
    /// for it are told. The messages in its queue stay.
    pub(super) fn leave_holder(&self, next: Holder) {
        self.change_holder(next);
        self.receivers.wake_all();
    }

    /// [`leave_holder`](Self::leave_holder), but the caller wakes the receivers.
    pub(super) fn change_holder(&self, next: Holder) {
        let mut state = self.state.lock();
        state.holder = next;
        state.version = state.version.wrapping_add(1);
        (state.make_send_count, state.sequence, state.payload) = (0, 0, None);
        let membership = state.membership.take();
        state.leave_set(membership);
    }

    /// Ends a port whose receive right is gone. Tasks with rights to it find dead names.
    pub(super) fn kill(self: &Arc<Self>) {
        let (queue, blocked, requests, no_senders);
        {
            let mut state = self.state.lock();
            debug_assert!(!state.is_dead());
            state.holder = Holder::Dead;
            // Release: see `is_dead`.
            self.dead.store(true, Ordering::Release);
            let membership = state.membership.take();
            state.leave_set(membership);
            queue = core::mem::take(&mut state.queue);
            blocked = core::mem::take(&mut state.blocked);
            requests = core::mem::take(&mut state.requests);
            no_senders = state.no_senders.take();
            state.granted = 0;
        }
        self.ipc.leave_carrier(self);
        self.receivers.wake_all();
        blocked.into_iter().for_each(|(_, waker)| waker.wake());
        for request in requests.into_iter().flatten() {
            notify::send(request.notify, Notification::DeadName(request.name));
        }
        drop(no_senders);
        self.ipc.discard(queue);
    }
}

impl<M: Machine> Drop for Port<M> {
    fn drop(&mut self) {
        self.ipc.ports.fetch_sub(1, Ordering::Relaxed);
    }
}
