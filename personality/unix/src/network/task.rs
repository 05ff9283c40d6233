//! A network whose stack is in another task.

use super::{Network, State, seed};
use alloc::boxed::Box;
use inet::Internet;
use inet::placement::{Remote, Transport};

/// What the task of a stack is told at its start.
#[derive(Clone, Copy, Debug)]
pub struct Attachment {
    /// What the secrets of its stack are made of.
    pub seed: [u8; 32],
    /// The most bytes that the buffers of all sockets may have.
    pub memory: usize,
    /// The most sockets that there may be.
    pub sockets: usize,
    /// The number from which sockets are counted.
    pub first: u32,
}

impl Network {
    /// Says that the stack is in another task, which [`Network::connect`] names. Until then no
    /// socket can be opened. For a network of which no program has a socket.
    pub fn move_out(&self) {
        let before = self.state.lock().replace(Box::new(State::new(Internet::elsewhere())));
        // Freed after the lock.
        drop(before);
    }

    /// What the next task has to be told.
    pub fn attachment(&self) -> Attachment {
        let limits = *self.limits.lock();
        let first = self.remote(|remote| remote.next_identifier()).unwrap_or_default();
        Attachment { seed: seed(&*self.environment), memory: limits.memory, sockets: limits.sockets, first }
    }

    /// Uses the task that was attached with [`Network::attachment`]. The sockets of an earlier one
    /// have ended.
    pub fn connect(&self, transport: Box<dyn Transport>) {
        self.remote(|remote| remote.connect(transport));
        let has_listeners = !self.listeners.lock().is_empty();
        self.with(|stack| stack.note_changes(has_listeners));
    }

    /// Ends the use of the task, and all its sockets.
    pub fn disconnect(&self) {
        self.remote(Remote::lose);
    }

    /// Whether the task has answered until now.
    pub fn is_connected(&self) -> bool {
        self.remote(|remote| remote.is_connected()).unwrap_or(false)
    }

    /// Asks the task which sockets have become ready, and wakes what waits for them.
    pub fn refresh(&self) {
        self.with(Internet::refresh);
    }

    /// Does something with the connection to the task. `None`: the stack is in this server.
    fn remote<R>(&self, work: impl FnOnce(&mut Remote) -> R) -> Option<R> {
        self.with(|stack| match stack {
            Internet::Here(_) => None,
            Internet::There(remote) => Some(work(remote)),
        })
    }
}
