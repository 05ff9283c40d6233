//! The network: the internet protocols ([`inet`]), the sockets above them, and the interfaces whose
//! frames drivers bring.
//!
//! One lock protects the whole stack. [`Network::with`] does something with it; what became ready
//! by that wakes its waiters after the lock is released. A task of the server runs
//! [`Network::drive`], which does what is due.
//!
//! The stack can be in another task, which has the interfaces, too ([`Network::move_out`]). Calls
//! of it are messages then, and the lock is held until the answer has come. That task never waits
//! for this server; if it ends, so do all sockets.

mod changes;
mod device;
mod task;

pub use changes::ChangeListener;

use crate::poll::{PollQueue, Readiness, until_ready_or_deadline};
use crate::socket::InetSocket;
use crate::sync::{SpinLock, give_turn};
use crate::{AttemptError, Environment, Error};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::time::Duration;
use inet::{Instant, Internet, Limits, SocketId, SocketInfo, Stack};

/// The network of a system.
pub struct Network {
    environment: Arc<dyn Environment>,
    /// The stack, which is made when it is first used: only then is its seed taken from the random
    /// source.
    state: SpinLock<Option<Box<State>>>,
    /// How much the stack may hold.
    limits: SpinLock<Limits>,
    /// Memory for copies between programs and the stack, so that it need not be cleared each time.
    /// It has old contents, of which no program may see anything.
    buffers: SpinLock<Vec<Vec<u8>>>,
    /// The task that runs [`Network::drive`]; woken when it has to look earlier than it meant to.
    timer: PollQueue,
    /// The tasks that bring frames to drivers; woken when there are frames.
    frames: PollQueue,
    /// What is told of changes of interfaces, addresses, routes and neighbours.
    listeners: SpinLock<Vec<Weak<dyn ChangeListener>>>,
}

pub use task::Attachment;

/// The stack, with what its lock protects in addition.
pub(crate) struct State {
    pub(crate) stack: Internet,
    /// The sockets that programs have.
    sockets: BTreeMap<SocketId, Weak<InetSocket>>,
    /// When the timer's task looks again; `None`: it waits to be woken.
    armed: Option<Instant>,
}

/// A socket in the lists that programs read.
pub struct SocketEntry {
    /// What the stack says about it.
    pub info: SocketInfo,
    /// The user that made or accepted it; the superuser for one that no program has.
    pub user: u32,
    /// Its number as a file; 0 for one that no program has.
    pub inode: u64,
}

/// A socket that became ready, and for what.
type Woken = (Arc<InetSocket>, Readiness);

impl Network {
    /// Makes a network with the interface `lo` only.
    pub fn new(environment: Arc<dyn Environment>) -> Arc<Network> {
        let (state, limits) = (SpinLock::new(None), SpinLock::new(Limits::default()));
        let (timer, frames) = (PollQueue::new(), PollQueue::new());
        let (buffers, listeners) = (SpinLock::new(Vec::new()), SpinLock::new(Vec::new()));
        Arc::new(Network { environment, state, limits, buffers, timer, frames, listeners })
    }

    /// Limits what the buffers of all sockets hold to so many bytes, and the number of sockets in
    /// proportion. Has no effect after the first use of the network.
    pub fn limit_memory(&self, bytes: usize) {
        /// Bytes of buffers for each socket that there may be.
        const SHARE: usize = 4096;
        let usual = Limits::default();
        let (memory, sockets) = (bytes.min(usual.memory), (bytes / SHARE).min(usual.sockets));
        *self.limits.lock() = Limits { memory, sockets, ..usual };
    }

    /// Memory for a copy, which should come back by [`Network::keep_buffer`]; empty if there is
    /// none.
    pub(crate) fn take_buffer(&self) -> Vec<u8> {
        self.buffers.lock().pop().unwrap_or_default()
    }

    /// Keeps memory for other copies.
    pub(crate) fn keep_buffer(&self, buffer: Vec<u8>) {
        /// The most that are kept; others are freed.
        const KEPT: usize = 4;
        if buffer.is_empty() {
            return;
        }
        let mut buffers = self.buffers.lock();
        if buffers.len() < KEPT {
            buffers.push(buffer);
        }
    }

    /// The time, as the stack counts it.
    pub fn now(&self) -> Instant {
        instant(self.environment.monotonic())
    }

    /// Does `work` with the stack, which knows the present time. Never blocks; `work` must be
    /// short, since all other users of the network wait meanwhile.
    pub fn with<R>(&self, work: impl FnOnce(&mut Internet) -> R) -> R {
        self.with_state(|state| work(&mut state.stack))
    }

    /// Does `work` with the stack and the list of sockets, as [`Network::with`] does.
    pub(crate) fn with_state<R>(&self, work: impl FnOnce(&mut State) -> R) -> R {
        let now = self.now();
        let mut woken = Vec::new();
        let mut guard = self.state.lock();
        let state =
            guard.get_or_insert_with(|| Box::new(State::here(&*self.environment, *self.limits.lock())));
        if let Internet::Here(stack) = &mut state.stack {
            stack.at(now);
        }
        let result = work(state);
        let (mut is_early, mut has_frames) = (false, false);
        if let Internet::Here(stack) = &mut state.stack {
            // Packets on `lo` arrive before the caller goes on, so that no task has to run for
            // them.
            let mut next = stack.next_deadline();
            if next.is_some_and(|deadline| deadline <= now) {
                stack.advance(now);
                next = stack.next_deadline();
            }
            has_frames = stack.transmittable().next().is_some();
            is_early = arm(&mut state.armed, next);
        }
        // Answers about changes may name sockets that are ready, so these come last.
        let told = self.tell_changes(&mut state.stack);
        state.collect_ready(&mut woken);
        drop(guard);
        for (socket, events) in &woken {
            socket.wake(*events);
        }
        for listener in told {
            listener.wake();
        }
        if is_early {
            self.timer.wake(Readiness::READ);
        }
        if has_frames {
            self.frames.wake(Readiness::READ);
        }
        result
    }

    /// All sockets, with connections that no program has any more, or none yet.
    pub fn sockets(&self) -> Vec<SocketEntry> {
        self.with_state(|state| {
            let entry = |info: SocketInfo| {
                let socket = info.id.and_then(|id| state.sockets.get(&id)?.upgrade());
                let (user, inode) = socket.as_ref().map_or((0, 0), |socket| (socket.user(), socket.inode()));
                // A last reference must not be dropped while the network is locked.
                (SocketEntry { info, user, inode }, socket)
            };
            state.stack.sockets().into_iter().map(entry).collect::<Vec<_>>()
        })
        .into_iter()
        .map(|(entry, _)| entry)
        .collect()
    }

    /// Does what is due, whenever something is: timers of connections, packets that wait. Never
    /// returns.
    pub async fn drive(&self) {
        loop {
            let due = until_ready_or_deadline(&self.timer, Readiness::READ, &*self.environment, |_| {
                let now = self.now();
                let mut guard = self.state.lock();
                let Some(state) = &mut *guard else { return Err((AttemptError::WouldBlock, None)) };
                // A stack in another task does by itself what is due.
                let next = state.stack.here().and_then(|stack| stack.next_deadline());
                state.armed = next;
                match next {
                    Some(next) if next <= now => Ok(()),
                    next => Err((AttemptError::WouldBlock, next.map(duration))),
                }
            });
            // The attempt has no error but that it would block, after which it is repeated.
            let _ = due.await;
            let now = self.now();
            self.with(|stack| {
                if let Some(stack) = stack.here() {
                    stack.advance(now);
                }
            });
            give_turn().await;
        }
    }
}

impl State {
    /// The state of a network in this server.
    fn here(environment: &dyn Environment, limits: Limits) -> State {
        let stack = Stack::new(seed(environment), limits);
        State::new(Internet::Here(Box::new(stack)))
    }

    fn new(stack: Internet) -> State {
        State { stack, sockets: BTreeMap::new(), armed: None }
    }

    /// Makes the socket known, so that it is told when it becomes ready.
    pub(crate) fn register(&mut self, id: SocketId, socket: Weak<InetSocket>) {
        self.sockets.insert(id, socket);
    }

    /// Closes a socket that no program has any more.
    pub(crate) fn close(&mut self, id: SocketId) {
        self.sockets.remove(&id);
        self.stack.close(id);
    }

    fn collect_ready(&mut self, woken: &mut Vec<Woken>) {
        while let Some((id, events)) = self.stack.ready() {
            if let Some(socket) = self.sockets.get(&id).and_then(Weak::upgrade) {
                woken.push((socket, readiness(events)));
            }
        }
        if let Internet::There(remote) = &mut self.stack
            && remote.take_lost()
        {
            // The sockets of a task that has ended have ended, too, which is all that is left to be
            // told.
            let sockets = self.sockets.values().filter_map(Weak::upgrade);
            woken.extend(sockets.map(|socket| (socket, Readiness::all())));
        }
    }
}

/// What a stack's secrets are made of.
fn seed(environment: &dyn Environment) -> [u8; 32] {
    let mut seed = [0; 32];
    environment.fill_random(&mut seed);
    seed
}

/// Notes when the timer's task has to look again. True if that is earlier than it knows.
fn arm(armed: &mut Option<Instant>, next: Option<Instant>) -> bool {
    let Some(next) = next else { return false };
    let is_early = armed.is_none_or(|armed| next < armed);
    if is_early {
        *armed = Some(next);
    }
    is_early
}

/// A time of [`Environment::monotonic`], as the stack counts it.
pub(crate) fn instant(time: Duration) -> Instant {
    Instant::from_micros(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}

/// The time of [`Environment::monotonic`] that the stack counts so.
pub fn duration(time: Instant) -> Duration {
    Duration::from_micros(time.micros())
}

/// What the stack says that a socket is ready for, as poll(2) has it.
pub(crate) fn readiness(ready: inet::Readiness) -> Readiness {
    let mut events = Readiness::empty();
    events.set(Readiness::READ, ready.read);
    events.set(Readiness::WRITE, ready.write);
    events.set(Readiness::READ_HANGUP, ready.read_closed);
    events.set(Readiness::HANGUP, ready.hup);
    events.set(Readiness::ERROR, ready.error);
    events.set(Readiness::PRIORITY, ready.priority);
    events
}

impl From<inet::Error> for Error {
    fn from(error: inet::Error) -> Error {
        match error {
            inet::Error::AddressInUse => Error::EADDRINUSE,
            inet::Error::AddressNotAvailable => Error::EADDRNOTAVAIL,
            inet::Error::AddressFamilyNotSupported => Error::EAFNOSUPPORT,
            inet::Error::AlreadyConnecting => Error::EALREADY,
            inet::Error::NotFound => Error::ENODEV,
            inet::Error::InvalidArgument => Error::EINVAL,
            inet::Error::NotSupported => Error::EOPNOTSUPP,
            inet::Error::AlreadyConnected => Error::EISCONN,
            inet::Error::NotConnected => Error::ENOTCONN,
            inet::Error::DestinationRequired => Error::EDESTADDRREQ,
            inet::Error::MessageTooLong => Error::EMSGSIZE,
            inet::Error::WouldBlock => Error::EAGAIN,
            inet::Error::NoBufferSpace => Error::ENOBUFS,
            inet::Error::NetworkUnreachable => Error::ENETUNREACH,
            inet::Error::HostUnreachable => Error::EHOSTUNREACH,
            inet::Error::NetworkDown => Error::ENETDOWN,
            inet::Error::ConnectionRefused => Error::ECONNREFUSED,
            inet::Error::ConnectionReset => Error::ECONNRESET,
            inet::Error::ConnectionAborted => Error::ECONNABORTED,
            inet::Error::TimedOut => Error::ETIMEDOUT,
            inet::Error::BrokenPipe => Error::EPIPE,
            inet::Error::AccessDenied => Error::EACCES,
            inet::Error::Exists => Error::EEXIST,
            inet::Error::ProtocolError => Error::EPROTO,
        }
    }
}

/// The result of an attempt that the stack answered so.
pub(crate) fn attempt<T>(done: inet::Result<T>) -> Result<T, AttemptError> {
    done.map_err(|error| match error {
        inet::Error::WouldBlock => AttemptError::WouldBlock,
        error => AttemptError::Failed(error.into()),
    })
}
