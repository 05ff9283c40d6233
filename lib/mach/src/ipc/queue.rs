//! The queues of ports: sending, where a full queue makes senders wait, and taking messages out.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use super::held::HeldReceiver;
use super::message::Message;
use super::port::{Port, PortState};
use super::set::PortSet;
use super::{MsgErrorKind, transit};
use crate::machine::Machine;

/// The condition under which a message may enter a queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    /// The message enters however many messages the queue holds.
    Always,
    /// The message enters if the queue has room and no earlier sender waits for it.
    WithRoom,
    /// The message enters in the place that `grant` has given to its sender.
    Granted,
}

/// The result of [`push`].
pub(super) enum Pushed<M: Machine> {
    /// The message counts as sent. It is in the queue, or it was destroyed because the port is dead
    /// or because the message would have closed a cycle of receive rights.
    Sent,
    /// The queue has no room; the message comes back.
    Full(Box<Message<M>>),
}

/// Where the receivers wait that are to be woken.
enum Wake<M: Machine> {
    /// A receiver that waited here, and that the sender now wakes.
    Held(Arc<HeldReceiver<M>>),
    Port,
    Set(Arc<PortSet<M>>),
}

impl<M: Machine> PortState<M> {
    fn has_room(&self) -> bool {
        self.blocked.is_empty() && self.queue.len() + (self.granted as usize) < self.queue_limit as usize
    }

    /// If there is room, gives a place in the queue to the sender that has waited longest, and
    /// returns the waker of that sender. The caller wakes it after it has released the lock.
    pub(super) fn grant(&mut self) -> Option<Waker> {
        if self.queue.len() + (self.granted as usize) >= self.queue_limit as usize {
            return None;
        }
        let (_, waker) = self.blocked.pop_front()?;
        self.granted += 1;
        Some(waker)
    }

    fn push(&mut self, mut message: Box<Message<M>>) -> Wake<M> {
        let wake = match &self.membership {
            None => self.held.take().map_or(Wake::Port, |(held, _)| Wake::Held(held)),
            Some(member) => {
                let mut set = member.set.state.lock();
                message.stamp = set.stamp();
                if self.queue.is_empty() {
                    set.members.set(member.index, Some(message.stamp));
                }
                match set.held.take() {
                    Some((held, _)) => Wake::Held(held),
                    None => Wake::Set(member.set.clone()),
                }
            }
        };
        self.queue.push_back(message);
        wake
    }

    /// Takes the first message out of the queue, and gives it the port's next sequence number.
    fn pop(&mut self) -> Option<Box<Message<M>>> {
        let mut message = self.queue.pop_front()?;
        message.sequence = self.sequence;
        self.sequence = self.sequence.wrapping_add(1);
        self.before_joining = self.before_joining.saturating_sub(1);
        if let Some(member) = &self.membership {
            let stamp = self.first_stamp();
            member.set.state.lock().members.set(member.index, stamp);
        }
        Some(message)
    }
}

/// Puts a message into the port's queue and wakes a receiver. Never blocks. No lock may be held.
pub(super) fn push<M: Machine>(port: &Arc<Port<M>>, message: Box<Message<M>>, entry: Entry) -> Pushed<M> {
    if port.kernel.is_some() {
        // Nothing is queued at a kernel port. A message that a task sends has been carried out;
        // this is a reply or a notification, which no object waits for.
        port.ipc.reuse(message);
        return Pushed::Sent;
    }
    let wake = {
        let _transit = message.moves_receive_right.then(|| port.ipc.transit.lock());
        if message.moves_receive_right && transit::is_circular(port, &message) {
            Err(message)
        } else {
            let mut state = port.state.lock();
            if entry == Entry::Granted && !state.is_dead() {
                state.granted -= 1;
            }
            if state.is_dead() {
                Err(message)
            } else if entry == Entry::WithRoom && !state.has_room() {
                return Pushed::Full(message);
            } else {
                if message.moves_receive_right {
                    transit::set_carrier(&message, Some(port));
                }
                Ok(state.push(message))
            }
        }
    };
    match wake {
        Ok(Wake::Held(receiver)) => receiver.surrender(),
        Ok(Wake::Port) => port.receivers.wake_one(),
        Ok(Wake::Set(set)) => set.receivers.wake_one(),
        // A message to a dead port or one that would close a cycle ends as if it had been received.
        Err(message) => {
            if entry == Entry::Granted {
                // The message has not used the granted place, so the next sender gets it.
                pass_on(port);
            }
            port.ipc.reuse(message);
        }
    }
    Pushed::Sent
}

/// Sends a message for which there is always room: a notification, or one by a send-once right.
/// Never blocks.
pub(super) fn deliver<M: Machine>(port: &Arc<Port<M>>, message: Box<Message<M>>) {
    // With `Entry::Always` no message comes back.
    let _ = push(port, message, Entry::Always);
}

/// Gives a place in the queue that its sender has not used to the next sender.
fn pass_on<M: Machine>(port: &Arc<Port<M>>) {
    let next = {
        let mut state = port.state.lock();
        if state.is_dead() {
            return;
        }
        state.granted = state.granted.saturating_sub(1);
        state.grant()
    };
    next.into_iter().for_each(Waker::wake);
}

/// A future that waits for room in a queue, then sends a message. Senders get places in the order
/// of their arrival. If the future is dropped before its end, its place goes to the next sender,
/// and the message is destroyed.
pub(super) struct Sending<M: Machine> {
    port: Arc<Port<M>>,
    message: Option<Box<Message<M>>>,
    /// The sender's ticket in the port's list `blocked`; `None` before the first wait.
    ticket: Option<u64>,
}

impl<M: Machine> Sending<M> {
    pub(super) fn new(port: Arc<Port<M>>, message: Box<Message<M>>) -> Self {
        Self { port, message: Some(message), ticket: None }
    }

    /// Ends the wait and returns the message, or `None` if it has been sent.
    pub(super) fn give_up(&mut self) -> Option<Box<Message<M>>> {
        self.leave();
        self.message.take()
    }

    fn leave(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        let was_granted = {
            let mut state = self.port.state.lock();
            let place = state.blocked.binary_search_by_key(&ticket, |(ticket, _)| *ticket);
            match place {
                Ok(place) => {
                    state.blocked.remove(place);
                    false
                }
                Err(_) => true,
            }
        };
        if was_granted {
            pass_on(&self.port);
        }
    }

    /// Puts the sender into the list of those that wait, or renews its waker there. Returns false
    /// if the sender has been given a place or the port is dead, so that it must not wait.
    fn wait(&mut self, waker: &Waker) -> bool {
        let mut state = self.port.state.lock();
        if state.is_dead() {
            return false;
        }
        match self.ticket {
            Some(ticket) => match state.blocked.binary_search_by_key(&ticket, |(ticket, _)| *ticket) {
                Ok(place) => {
                    state.blocked[place].1.clone_from(waker);
                    true
                }
                Err(_) => false,
            },
            None if state.has_room() => {
                // There is room: a message has left since `push` found the queue full.
                state.granted += 1;
                false
            }
            None => {
                let ticket = state.next_ticket;
                state.next_ticket += 1;
                state.blocked.push_back((ticket, waker.clone()));
                self.ticket = Some(ticket);
                true
            }
        }
    }
}

impl<M: Machine> Future for Sending<M> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if this.message.is_none() {
            return Poll::Ready(());
        }
        if this.wait(context.waker()) {
            return Poll::Pending;
        }
        this.ticket = None;
        if let Some(message) = this.message.take() {
            // With `Entry::Granted` no message comes back.
            let _ = push(&this.port, message, Entry::Granted);
        }
        Poll::Ready(())
    }
}

impl<M: Machine> Drop for Sending<M> {
    fn drop(&mut self) {
        if let Some(message) = self.give_up() {
            self.port.ipc.reuse(message);
        }
    }
}

/// What a receiver finds when it tries to take a message.
pub(super) enum Taken<M: Machine> {
    Message(Box<Message<M>>),
    /// The first message has this size, which is larger than the receiver wants. It stays queued.
    TooLarge(usize),
    Nothing,
    /// The receiver's task has the port or the set no longer, or the port has joined a set.
    Gone(MsgErrorKind),
}

/// A port or a port set to receive from.
#[derive(Clone)]
pub(super) enum Source<M: Machine> {
    /// A port that is in no set, and its version: another version means that the receive right has
    /// left the receiver's task.
    Port(Arc<Port<M>>, u32),
    Set(Arc<PortSet<M>>),
}

impl<M: Machine> Source<M> {
    /// Takes the first message if `fits` accepts it. Never blocks.
    pub(super) fn take(&self, fits: &dyn Fn(&Message<M>) -> Result<(), usize>) -> Taken<M> {
        match self {
            Self::Port(port, version) => take_first(port, fits, |state| {
                if state.is_dead() || state.version != *version {
                    Some(MsgErrorKind::ReceivePortDied)
                } else {
                    state.membership.as_ref().map(|_| MsgErrorKind::ReceivePortChanged)
                }
            }),
            Self::Set(set) => loop {
                let port = {
                    let state = set.state.lock();
                    if !state.alive {
                        return Taken::Gone(MsgErrorKind::ReceivePortDied);
                    }
                    let Some(port) = state.members.first() else { return Taken::Nothing };
                    port.clone()
                };
                let is_member = |state: &PortState<M>| {
                    let member = state.membership.as_ref();
                    let is_member = member.is_some_and(|member| Arc::ptr_eq(&member.set, set));
                    (!is_member).then_some(MsgErrorKind::ReceivePortChanged)
                };
                match take_first(&port, fits, is_member) {
                    // The port has left the set, or another receiver took its message: try the next
                    // port.
                    Taken::Gone(_) | Taken::Nothing => {}
                    taken => return taken,
                }
            },
        }
    }

    /// Wakes another receiver, because the caller leaves a message in the queue.
    pub(super) fn pass_on(&self) {
        match self {
            Self::Port(port, _) => port.receivers.wake_one(),
            Self::Set(set) => set.receivers.wake_one(),
        }
    }
}

fn take_first<M: Machine>(
    port: &Arc<Port<M>>,
    fits: &dyn Fn(&Message<M>) -> Result<(), usize>,
    gone: impl Fn(&PortState<M>) -> Option<MsgErrorKind>,
) -> Taken<M> {
    let mut transit = None;
    let (mut message, sender) = loop {
        let mut state = port.state.lock();
        if let Some(error) = gone(&state) {
            return Taken::Gone(error);
        }
        let Some(first) = state.queue.front() else { return Taken::Nothing };
        if let Err(size) = fits(first) {
            return Taken::TooLarge(size);
        }
        if first.moves_receive_right && transit.is_none() {
            // The lock of transit must be taken before a port's lock, so begin again.
            drop(state);
            transit = Some(port.ipc.transit.lock());
            continue;
        }
        let Some(message) = state.pop() else { return Taken::Nothing };
        if message.moves_receive_right {
            transit::set_carrier(&message, None);
        }
        break (message, state.grant());
    };
    drop(transit);
    sender.into_iter().for_each(Waker::wake);
    message.accepted = None;
    Taken::Message(message)
}
