//! The state of a port, and its end.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::Waker;

use macadamia_sync::{SpinLock, WaitQueue};

use super::account::{Account, Charge};
use super::held::Held;
use super::kernel::KernelSide;
use super::message::Message;
use super::notify::{self, Notification};
use super::right::{OutOfMemory, ReceiveRight, SendOnceRight};
use super::set::PortSet;
use super::{Ipc, MsgErrorKind, Name};
use crate::machine::Machine;

/// Where a port's receive right is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// The receive right is in the name space with this number, under this name.
    Space(u64, Name),
    /// The receive right is in a message, or on its way between a name space and a message.
    Transit,
    /// There is no receive right: the port is dead.
    Dead,
}

/// A task's request for a dead-name notification, with the name that the task has for the port.
pub(super) struct DeadNameRequest<M: Machine> {
    pub(super) name: Name,
    pub(super) notify: SendOnceRight<M>,
}

/// The membership of a port in a port set.
pub(super) struct Membership<M: Machine> {
    pub(super) set: Arc<PortSet<M>>,
    pub(super) index: u32,
}

/// The part of a port that its lock protects.
pub(super) struct PortState<M: Machine> {
    pub(super) holder: Holder,
    /// How often the receive right has left a holder. A waiting receiver compares it with the
    /// version that it began with, to see whether its task still has the receive right.
    pub(super) version: u32,
    pub(super) send_rights: u64,
    pub(super) send_once_rights: u64,
    pub(super) make_send_count: u32,
    pub(super) sequence: u32,
    pub(super) payload: Option<u64>,

    pub(super) queue: VecDeque<Box<Message<M>>>,
    pub(super) queue_limit: u32,
    /// Tickets of the senders that wait for room, in the order of their arrival. A sender that is
    /// no longer in this list while the port lives has been given a place in the queue, which it
    /// uses or passes on.
    pub(super) blocked: VecDeque<(u64, Waker)>,
    pub(super) next_ticket: u64,
    /// How many places in the queue were given to senders that have not used them yet.
    pub(super) granted: u32,

    /// A receiver that waits outside of any task, while the port is in no set.
    pub(super) held: Held<M>,
    pub(super) membership: Option<Membership<M>>,
    /// How many messages at the front of the queue came before the port joined its set. In the
    /// order of the set's messages all of them have the stamp `joined`.
    pub(super) before_joining: usize,
    pub(super) joined: u64,

    pub(super) no_senders: Option<SendOnceRight<M>>,
    pub(super) port_destroyed: Option<SendOnceRight<M>>,
    pub(super) requests: Vec<Option<DeadNameRequest<M>>>,
    /// Indices of `requests` that are free.
    pub(super) free_requests: Vec<u32>,
}

impl<M: Machine> PortState<M> {
    pub(super) fn is_dead(&self) -> bool {
        self.holder == Holder::Dead
    }

    /// Whether a thread of the task `space` that receives from `name` gets what comes next to this
    /// port: it receives from the port itself, finds no message, and no other thread is held there.
    pub(super) fn is_next_receiver(&self, space: u64, name: Name) -> bool {
        self.holder == Holder::Space(space, name)
            && self.membership.is_none()
            && self.queue.is_empty()
            && self.blocked.is_empty()
            && self.held.is_none()
    }
}

/// A port: a queue of messages, with counts of the rights to it and the requests on it.
pub(super) struct Port<M: Machine> {
    pub(super) ipc: Arc<Ipc<M>>,
    pub(super) id: u64,
    /// The account of the task that made the port. It pays for the port and for its send-once
    /// rights.
    pub(super) account: Arc<Account<M>>,
    dead: AtomicBool,
    pub(super) state: SpinLock<PortState<M>>,
    /// Waiting receivers while the port is in no set. Receivers of a member wait at the set.
    pub(super) receivers: WaitQueue,
    /// The port in whose queue the receive right of this port is. Changed under the lock of
    /// transit.
    pub(super) carrier: SpinLock<Option<Arc<Port<M>>>>,
    /// A mark that the search for cycles sets and clears under the lock of transit.
    pub(super) marked: AtomicBool,
    /// What a kernel port has instead of receivers; `None` for all other ports.
    pub(super) kernel: Option<Box<KernelSide<M>>>,
    _charge: Charge<M>,
}

impl<M: Machine> Port<M> {
    /// Bytes that a port's account is charged for the port itself.
    pub(super) const BYTES: usize = size_of::<Self>() + 2 * size_of::<usize>();

    /// Makes a port and returns its receive right.
    ///
    /// # Errors
    /// The account or the machine has no memory for a port.
    pub(super) fn create(
        ipc: &Arc<Ipc<M>>,
        account: &Arc<Account<M>>,
    ) -> Result<ReceiveRight<M>, OutOfMemory> {
        Self::make(ipc, account, None)
    }

    /// Makes a kernel port and returns its receive right.
    ///
    /// # Errors
    /// The account or the machine has no memory for a port.
    pub(super) fn create_kernel(
        ipc: &Arc<Ipc<M>>,
        account: &Arc<Account<M>>,
        kernel: Box<KernelSide<M>>,
    ) -> Result<ReceiveRight<M>, OutOfMemory> {
        Self::make(ipc, account, Some(kernel))
    }

    fn make(
        ipc: &Arc<Ipc<M>>,
        account: &Arc<Account<M>>,
        kernel: Option<Box<KernelSide<M>>>,
    ) -> Result<ReceiveRight<M>, OutOfMemory> {
        let side = if kernel.is_some() { size_of::<KernelSide<M>>() } else { 0 };
        let charge = account.charge(Self::BYTES + side).ok_or(OutOfMemory)?;
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
            held: None,
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
            kernel,
            _charge: charge,
        })))
    }

    /// Whether the port has died. After `false`, the port may die at any time, unless the caller
    /// holds the port's lock or that of the space that has the receive right.
    pub(super) fn is_dead(&self) -> bool {
        // Acquire: a caller that sees the port dead also sees all that its end did before.
        self.dead.load(Ordering::Acquire)
    }

    /// The name of the receive right, if the space with the number `space` has it.
    pub(super) fn name_in(&self, space: u64) -> Option<Name> {
        match self.state.lock().holder {
            Holder::Space(holder, name) if holder == space => Some(name),
            _ => None,
        }
    }

    /// Takes the receive right from its holder: the port leaves its set, and its waiting receivers
    /// are woken. The messages in its queue stay. No lock may be held.
    pub(super) fn leave_holder(&self, next: Holder) {
        self.change_holder(next);
        self.wake_all_receivers(MsgErrorKind::ReceivePortDied);
    }

    /// Wakes all receivers that wait at the port, because it has left their task or joined a set:
    /// their waits end with an error, that of a receiver that waits with `error`. No lock may be
    /// held.
    pub(super) fn wake_all_receivers(&self, error: MsgErrorKind) {
        self.end_held(error);
        self.receivers.wake_all();
    }

    /// Does what [`leave_holder`](Self::leave_holder) does, except that the caller must wake the
    /// port's receivers after it has released its locks.
    pub(super) fn change_holder(&self, next: Holder) {
        let mut state = self.state.lock();
        state.holder = next;
        state.version = state.version.wrapping_add(1);
        (state.make_send_count, state.sequence, state.payload) = (0, 0, None);
        let membership = state.membership.take();
        state.leave_set(membership);
    }

    /// Ends a port whose receive right is gone. Rights of tasks to the port become dead names.
    pub(super) fn kill(self: &Arc<Self>) {
        let (queue, blocked, requests, no_senders);
        {
            let mut state = self.state.lock();
            debug_assert!(!state.is_dead());
            state.holder = Holder::Dead;
            // Release: pairs with the load in `is_dead`.
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
        self.wake_all_receivers(MsgErrorKind::ReceivePortDied);
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
