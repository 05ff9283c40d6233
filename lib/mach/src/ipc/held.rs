//! Threads that wait for a message without a task of the server, so that a sender can hand them its
//! message directly (docs/src/architecture.md, M2).
//!
//! A thread is held at the port or the port set from which it receives, if that has no message. The
//! first that takes it from there decides how its wait ends:
//!
//! - a sender that copies its message straight into the thread's buffer;
//! - a sender whose message goes through the queue, which surrenders the thread: its task then
//!   receives as any other;
//! - the end of the port or the set, an interruption, or the end of the thread.

use alloc::boxed::Box;
use alloc::sync::Arc;

use macadamia_sync::SpinLock;

use super::entry::Object;
use super::port::Port;
use super::set::PortSet;
use super::table::Table;
use super::{MsgErrorKind, Name, Space};
use crate::machine::{ExecutionContext, Machine, Resume, SystemCall};
use crate::vm::VmMap;

/// Where a thread waits.
#[derive(Clone)]
enum Place<M: Machine> {
    Port(Arc<Port<M>>),
    Set(Arc<PortSet<M>>),
}

/// The buffer of a thread that waits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Buffer {
    pub(super) address: u64,
    pub(super) room: u32,
}

/// What the task of a thread has to do that was surrendered.
pub enum Rest {
    /// Carry out the whole call.
    All,
    /// Receive; what was to be sent is sent.
    Receive,
    /// Write bytes, which ends the call.
    Write {
        /// What is to be written.
        bytes: Box<[u8]>,
        /// Where it is to be written.
        address: u64,
        /// The result of the call.
        result: u32,
        /// The result of the call if the bytes cannot be written.
        failure: u32,
    },
}

struct State<M: Machine> {
    place: Option<Place<M>>,
    buffer: Buffer,
    rest: Rest,
}

/// A thread's place to wait for messages. Each thread has one.
pub struct HeldReceiver<M: Machine> {
    context: M::Thread,
    space: Arc<Space<M>>,
    map: Arc<VmMap<M>>,
    state: SpinLock<State<M>>,
}

/// A thread that waits at a port or a set, and the version of the port.
pub(super) type Held<M> = Option<(Arc<HeldReceiver<M>>, u32)>;

impl<M: Machine> HeldReceiver<M> {
    /// The place of a thread, whose task has these names and this memory.
    pub fn new(context: &M::Thread, space: &Arc<Space<M>>, map: &Arc<VmMap<M>>) -> Arc<Self> {
        let state = State { place: None, buffer: Buffer::default(), rest: Rest::All };
        Arc::new(Self {
            context: context.clone(),
            space: space.clone(),
            map: map.clone(),
            state: SpinLock::new(state),
        })
    }

    /// The names of the thread's task.
    pub(super) fn space(&self) -> &Arc<Space<M>> {
        &self.space
    }

    /// The memory of the thread's task.
    pub(super) fn map(&self) -> &Arc<VmMap<M>> {
        &self.map
    }

    /// The buffer of the thread, which the caller has taken from its place.
    #[inline]
    pub(super) fn buffer(&self) -> Buffer {
        self.state.lock().buffer
    }

    /// Holds the thread, which waits in `call` for a message from `name`. Never blocks. Returns
    /// false, and does nothing, if there is a message already, if another thread waits there,
    /// or if the name denotes nothing to receive from.
    pub(super) fn hold(self: &Arc<Self>, name: Name, buffer: Buffer, call: &SystemCall) -> bool {
        self.hold_at(&mut self.space.table.lock(), name, buffer, call)
    }

    /// Does what [`hold`](Self::hold) does; `table` has the names of the thread's task.
    pub(super) fn hold_at(
        self: &Arc<Self>,
        table: &mut Table<M>,
        name: Name,
        buffer: Buffer,
        call: &SystemCall,
    ) -> bool {
        let Some(entry) = table.get(name) else { return false };
        match &entry.object {
            Object::Receive(right) | Object::SendReceive(_, right) => {
                let port = right.port();
                let mut state = port.state.lock();
                let is_free = state.membership.is_none() && state.queue.is_empty() && state.held.is_none();
                if !is_free || !self.wait(Place::Port(port.clone()), buffer, call) {
                    return false;
                }
                state.held = Some((self.clone(), state.version));
            }
            Object::Set(set) => {
                let mut state = set.state.lock();
                let is_free = state.alive && state.members.first().is_none() && state.held.is_none();
                if !is_free || !self.wait(Place::Set(set.clone()), buffer, call) {
                    return false;
                }
                state.held = Some((self.clone(), 0));
            }
            _ => return false,
        }
        true
    }

    #[inline(always)]
    fn wait(&self, place: Place<M>, buffer: Buffer, call: &SystemCall) -> bool {
        let held = self.context.hold(call);
        if held {
            let mut state = self.state.lock();
            state.buffer = buffer;
            // Usually nothing is dropped here.
            if let Some(before) = state.place.replace(place) {
                drop(before);
            }
            if let rest @ Rest::Write { .. } = core::mem::replace(&mut state.rest, Rest::Receive) {
                drop(rest);
            }
        }
        held
    }

    /// Takes the thread from the place where it waits. Returns false if another has taken it,
    /// or if it does not wait.
    fn leave_place(self: &Arc<Self>) -> bool {
        let place = self.state.lock().place.take();
        let take = |held: &mut Held<M>| {
            let is_here = held.as_ref().is_some_and(|(held, _)| Arc::ptr_eq(held, self));
            if is_here { held.take() } else { None }
        };
        // What is taken is dropped without the lock.
        let taken = match place {
            None => None,
            Some(Place::Port(port)) => take(&mut port.state.lock().held),
            Some(Place::Set(set)) => take(&mut set.state.lock().held),
        };
        taken.is_some()
    }

    /// Ends the thread's wait with the error of an interruption, as Mach's `thread_abort` does.
    /// Returns false if the thread does not wait.
    pub fn interrupt(self: &Arc<Self>) -> bool {
        let was_held = self.leave_place();
        if was_held {
            self.end(MsgErrorKind::ReceiveInterrupted as u32);
        }
        was_held
    }

    /// Forgets a thread that has ended.
    pub fn leave(self: &Arc<Self>) {
        self.leave_place();
    }

    /// Ends the call of a thread that was taken from its place. No lock may be held.
    #[inline]
    pub(super) fn end(&self, result: u32) {
        {
            let mut state = self.state.lock();
            (state.place, state.rest) = (None, Rest::All);
        }
        self.context.answer(Resume::Return(u64::from(result)));
    }

    /// Gives the call of a thread that was taken from its place to the thread's task. No lock may
    /// be held.
    pub(super) fn surrender(&self) {
        self.state.lock().place = None;
        self.context.surrender();
    }

    /// Leaves the end of the thread's call to its task: [`Rest::Write`].
    #[cold]
    pub fn leave_write(&self, bytes: &[u8], address: u64, result: u32, failure: u32) {
        self.state.lock().rest = Rest::Write { bytes: bytes.into(), address, result, failure };
    }

    /// Records that the thread's task has only to receive, although the call also sends.
    pub(super) fn has_sent(&self) {
        self.state.lock().rest = Rest::Receive;
    }

    /// What the thread's task has to do. The task asks for it once in each call.
    pub fn take_rest(&self) -> Rest {
        core::mem::replace(&mut self.state.lock().rest, Rest::All)
    }
}

impl<M: Machine> Port<M> {
    /// Takes the thread that waits here and ends its wait with an error: the port has left the
    /// thread's task, or has joined a set. No lock may be held.
    pub(super) fn end_held(&self, error: MsgErrorKind) {
        let held = self.state.lock().held.take();
        if let Some((held, _)) = held {
            held.end(error as u32);
        }
    }
}
