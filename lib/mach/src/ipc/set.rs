//! Port sets, through which a receiver gets the messages of several ports.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem::take;

use macadamia_sync::{SpinLock, WaitQueue};

use super::account::{Account, Charge};
use super::held::Held;
use super::port::{Holder, Membership, Port, PortState};
use super::ready::Ready;
use super::right::OutOfMemory;
use super::{Ipc, MsgErrorKind, Name};
use crate::machine::Machine;
use crate::{KernError, KernResult};

/// The part of a port set that its lock protects.
pub(super) struct SetState<M: Machine> {
    pub(super) alive: bool,
    /// The member ports. Members with messages are ready, ordered by the stamps of their first
    /// messages.
    pub(super) members: Ready<Arc<Port<M>>>,
    /// The stamp of the next message that comes to a member, which is its place in the set's order.
    next_stamp: u64,
    /// The name of the set in its task.
    pub(super) name: Name,
    /// A receiver that waits outside of any task.
    pub(super) held: Held<M>,
    charge: Charge<M>,
}

/// A port set, whose receivers get the messages of all its members.
pub(super) struct PortSet<M: Machine> {
    pub(super) state: SpinLock<SetState<M>>,
    pub(super) receivers: WaitQueue,
}

impl<M: Machine> SetState<M> {
    pub(super) fn stamp(&mut self) -> u64 {
        self.next_stamp += 1;
        self.next_stamp
    }
}

impl<M: Machine> PortSet<M> {
    const BYTES: usize = size_of::<Self>() + 2 * size_of::<usize>();

    pub(super) fn new(account: &Arc<Account<M>>) -> Result<Arc<Self>, OutOfMemory> {
        let charge = account.charge(Self::BYTES).ok_or(OutOfMemory)?;
        let state = SetState {
            alive: true,
            members: Ready::default(),
            next_stamp: 0,
            name: Name::NULL,
            held: None,
            charge,
        };
        Ok(Arc::new(Self { state: SpinLock::new(state), receivers: WaitQueue::new() }))
    }

    /// Ends the set: its members leave it, and its waiting receivers are woken. No lock may be
    /// held.
    pub(super) fn kill(self: &Arc<Self>) {
        let (members, held) = {
            let mut state = self.state.lock();
            state.alive = false;
            (take(&mut state.members), state.held.take())
        };
        if let Some((held, _)) = held {
            held.end(MsgErrorKind::ReceivePortDied as u32);
        }
        for port in members.members() {
            let mut state = port.state.lock();
            // Since the members were listed, the port may have left this set and joined another.
            if state.membership.as_ref().is_some_and(|of| Arc::ptr_eq(&of.set, self)) {
                state.membership = None;
            }
        }
        self.receivers.wake_all();
    }
}

impl<M: Machine> PortSet<M> {
    /// Wakes all receivers that wait at the set, because messages have come. No lock may be held.
    fn wake_all_receivers(&self) {
        let held = self.state.lock().held.take();
        if let Some((held, _)) = held {
            held.surrender();
        }
        self.receivers.wake_all();
    }
}

impl<M: Machine> PortState<M> {
    /// Leaves the set of `membership`, which the caller has taken out of the port's state.
    pub(super) fn leave_set(&mut self, membership: Option<Membership<M>>) {
        if let Some(Membership { set, index }) = membership {
            let left = set.state.lock().members.remove(index);
            drop(left);
        }
    }

    /// Joins a set. If the port has messages, the caller must wake the set's receivers afterwards.
    ///
    /// # Errors
    /// `ResourceShortage`: no memory for a member. `InvalidName`: the set has ended.
    fn join(&mut self, port: &Arc<Port<M>>, set: &Arc<PortSet<M>>) -> KernResult {
        let mut state = set.state.lock();
        if !state.alive {
            return Err(KernError::InvalidName);
        }
        if state.members.is_full() && !state.charge.extend(Ready::<Arc<Port<M>>>::SLOT_BYTES) {
            return Err(KernError::ResourceShortage);
        }
        let index = state.members.add(port.clone()).map_err(|_| KernError::ResourceShortage)?;
        self.before_joining = self.queue.len();
        self.joined = state.stamp();
        state.members.set(index, (!self.queue.is_empty()).then_some(self.joined));
        self.membership = Some(Membership { set: set.clone(), index });
        Ok(())
    }

    /// The stamp by which the port's first message is ordered in the set; `None` without a message.
    pub(super) fn first_stamp(&self) -> Option<u64> {
        let first = self.queue.front()?;
        Some(if self.before_joining > 0 { self.joined } else { first.stamp })
    }
}

impl<M: Machine> Ipc<M> {
    /// Moves a port from its set, if it is in one, to the set `set` or to none. Senders and
    /// receivers see the move as one step. Returns whether the port was in a set before.
    ///
    /// # Errors
    /// `InvalidRight`: the space does not have the receive right. `ResourceShortage`,
    /// `InvalidName`: see [`PortState::join`]; the port stays in its old set.
    pub(super) fn move_member(
        &self,
        port: &Arc<Port<M>>,
        set: Option<&Arc<PortSet<M>>>,
        space: u64,
    ) -> KernResult<bool> {
        let mut state = port.state.lock();
        if !matches!(state.holder, Holder::Space(holder, _) if holder == space) {
            return Err(KernError::InvalidRight);
        }
        let old = state.membership.take();
        let was_in_set = old.is_some();
        match set {
            Some(set) if old.as_ref().is_some_and(|old| Arc::ptr_eq(&old.set, set)) => {
                state.membership = old;
            }
            Some(set) => {
                if let Err(error) = state.join(port, set) {
                    state.membership = old;
                    return Err(error);
                }
                let has_messages = !state.queue.is_empty();
                state.leave_set(old);
                drop(state);
                port.wake_all_receivers(MsgErrorKind::ReceivePortChanged);
                if has_messages {
                    set.wake_all_receivers();
                }
            }
            None => state.leave_set(old),
        }
        Ok(was_in_set)
    }

    /// The ports that are members of a set now.
    pub(super) fn members(set: &PortSet<M>) -> Vec<Arc<Port<M>>> {
        set.state.lock().members.members().cloned().collect()
    }
}
