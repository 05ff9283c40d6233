//! [`UnixSocket`]: its state, its options, and its methods as an open file.

use super::rights::{self, Rights};
use super::{PeerCredentials, Shutdown, SocketType, UnixAddress};
use crate::account::{Account, Charge, FILE_BYTES};
use crate::file::{FileObject, Io, OpenFile};
use crate::poll::{PollQueue, Readiness};
use crate::sync::{Mutex, SpinLock};
use crate::vfs::{Caller, FileType, OpenFlags};
use crate::{AttemptError, Error, Result, UserBuffer};
use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::time::Duration;

/// A socket of the Unix domain.
pub struct UnixSocket {
    pub(super) this: Weak<UnixSocket>,
    pub(super) kind: SocketType,
    /// The socket's state. Its lock is never held together with that of another socket.
    pub(super) state: SpinLock<State>,
    pub(super) queue: PollQueue,
    /// Locked while the socket gets its name.
    pub(super) binding: Mutex<()>,
    /// The account of the user that made the socket. What it sends is charged to this account.
    pub(super) account: Arc<Account>,
    /// The charge for the socket itself. There may be more sockets than open files, since some wait
    /// to be accepted.
    _charge: Charge,
}

pub(super) struct State {
    pub(super) role: Role,
    pub(super) address: UnixAddress,
    pub(super) peer_address: UnixAddress,
    pub(super) peer_credentials: Option<PeerCredentials>,
    pub(super) inbox: VecDeque<Message>,
    /// How many bytes are in the inbox, with an allowance for each message.
    pub(super) queued: usize,
    /// Senders that found the inbox (or the backlog) full and wait.
    pub(super) waiting: Vec<Weak<UnixSocket>>,
    /// Nothing more will be received after what is in the inbox.
    pub(super) read_ended: bool,
    /// Nothing can be sent any more.
    pub(super) write_ended: bool,
    /// An error that is reported once: the peer was closed with unread data.
    pub(super) error: Option<Error>,
    pub(super) options: SocketOptions,
    /// The table of abstract names, from which the socket's entry is removed when the socket is
    /// dropped.
    pub(super) names: Option<Weak<crate::vfs::Vfs>>,
}

pub(super) enum Role {
    Idle,
    Listening { backlog: usize, pending: VecDeque<Arc<OpenFile>> },
    Connected(Weak<UnixSocket>),
}

/// A message in an inbox, or some bytes of a stream.
pub(super) struct Message {
    pub(super) bytes: Vec<u8>,
    /// How many of the message's bytes have been read (streams).
    pub(super) read: usize,
    pub(super) rights: Rights,
    pub(super) credentials: PeerCredentials,
    pub(super) source: UnixAddress,
    /// The charge for the message's bytes, to the user that sent it.
    pub(super) charge: Charge,
}

/// The options that setsockopt(2) sets.
#[derive(Clone, Copy, Debug)]
pub struct SocketOptions {
    /// Whether credentials are delivered with each message (SO_PASSCRED).
    pub pass_credentials: bool,
    /// How many bytes the inbox holds (SO_RCVBUF; the sender has no queue of its own, so SO_SNDBUF
    /// does not count here).
    pub receive_buffer: usize,
    /// The most bytes of one message (SO_SNDBUF).
    pub send_buffer: usize,
    /// How long a receive waits at most (SO_RCVTIMEO); `None` for no limit.
    pub receive_timeout: Option<Duration>,
    /// How long a send waits at most (SO_SNDTIMEO); `None` for no limit.
    pub send_timeout: Option<Duration>,
    /// The setting of SO_LINGER in seconds. It has no effect, since closing never waits for these
    /// sockets.
    pub linger: Option<u32>,
    /// The settings of options that have no effect on these sockets: a bit for each, by the front
    /// end's numbers.
    pub kept: u64,
    /// What the receiver has asked to get with each message, by bits of the front end's.
    pub control: u32,
}

impl Default for SocketOptions {
    fn default() -> SocketOptions {
        SocketOptions {
            pass_credentials: false,
            receive_buffer: 212_992,
            send_buffer: 212_992,
            receive_timeout: None,
            send_timeout: None,
            linger: None,
            kept: 0,
            control: 0,
        }
    }
}

/// Makes a socket. `ENOMEM`.
pub fn socket(caller: &Caller<'_>, kind: SocketType, flags: OpenFlags) -> Result<Arc<OpenFile>> {
    Ok(OpenFile::of_object(UnixSocket::new(caller, kind)?, flags | OpenFlags::READ_WRITE))
}

/// Makes two sockets connected to each other (socketpair(2)). `ENOMEM`.
pub fn socket_pair(
    caller: &Caller<'_>,
    kind: SocketType,
    flags: OpenFlags,
) -> Result<(Arc<OpenFile>, Arc<OpenFile>)> {
    let (a, b) = (UnixSocket::new(caller, kind)?, UnixSocket::new(caller, kind)?);
    let credentials = PeerCredentials::of(caller);
    for (one, other) in [(&a, &b), (&b, &a)] {
        let mut state = one.state.lock();
        state.role = Role::Connected(Arc::downgrade(other));
        state.peer_credentials = Some(credentials);
    }
    let flags = flags | OpenFlags::READ_WRITE;
    Ok((OpenFile::of_object(a, flags), OpenFile::of_object(b, flags)))
}

impl UnixSocket {
    pub(super) fn new(caller: &Caller<'_>, kind: SocketType) -> Result<Arc<UnixSocket>> {
        let account = caller.process.account();
        let charge = account.charge_memory(FILE_BYTES).ok_or(Error::ENOMEM)?;
        Ok(Arc::new_cyclic(|this| UnixSocket {
            this: this.clone(),
            kind,
            state: SpinLock::new(State {
                role: Role::Idle,
                address: UnixAddress::Unnamed,
                peer_address: UnixAddress::Unnamed,
                peer_credentials: None,
                inbox: VecDeque::new(),
                queued: 0,
                waiting: Vec::new(),
                read_ended: false,
                write_ended: false,
                error: None,
                options: SocketOptions::default(),
                names: None,
            }),
            queue: PollQueue::new(),
            binding: Mutex::new(()),
            account,
            _charge: charge,
        }))
    }

    /// The type of the socket.
    pub fn kind(&self) -> SocketType {
        self.kind
    }

    /// The options of the socket.
    pub fn options(&self) -> SocketOptions {
        self.state.lock().options
    }

    /// Changes the options of the socket.
    pub fn set_options(&self, options: SocketOptions) {
        self.state.lock().options = options;
    }

    /// The name of the socket (getsockname(2)).
    pub fn address(&self) -> UnixAddress {
        self.state.lock().address.clone()
    }

    /// The name of the socket at the other end (getpeername(2)).
    pub fn peer_address(&self) -> Result<UnixAddress> {
        let state = self.state.lock();
        match state.role {
            Role::Connected(_) => Ok(state.peer_address.clone()),
            _ => Err(Error::ENOTCONN),
        }
    }

    /// The credentials of the process at the other end (SO_PEERCRED).
    pub fn peer_credentials(&self) -> Option<PeerCredentials> {
        self.state.lock().peer_credentials
    }

    /// Whether the socket listens (SO_ACCEPTCONN).
    pub fn is_listening(&self) -> bool {
        matches!(self.state.lock().role, Role::Listening { .. })
    }

    /// Returns and clears the pending error (SO_ERROR).
    pub fn take_error(&self) -> Option<Error> {
        self.state.lock().error.take()
    }

    pub(super) fn peer(&self) -> Option<Arc<UnixSocket>> {
        match &self.state.lock().role {
            Role::Connected(peer) => peer.upgrade(),
            _ => None,
        }
    }

    /// Ends one half of the connection, or both (shutdown(2)).
    pub fn shutdown(&self, how: Shutdown) {
        let (read, write) = (how != Shutdown::Write, how != Shutdown::Read);
        {
            let mut state = self.state.lock();
            state.read_ended |= read;
            state.write_ended |= write;
        }
        if self.kind != SocketType::Datagram
            && let Some(peer) = self.peer()
        {
            let mut state = peer.state.lock();
            state.read_ended |= write;
            state.write_ended |= read;
            drop(state);
            peer.queue.wake(Readiness::ALL);
        }
        self.queue.wake(Readiness::ALL);
    }

    /// Wakes the senders that wait for room.
    pub(super) fn wake_senders(&self, waiting: Vec<Weak<UnixSocket>>) {
        for sender in waiting.iter().filter_map(Weak::upgrade) {
            sender.queue.wake(Readiness::WRITE);
        }
    }

    /// The ids of the sockets in messages of this socket's inbox, and of connections that are not
    /// accepted yet.
    pub fn held_files(&self) -> Vec<u64> {
        let mut held = Vec::new();
        let pending: Vec<Arc<OpenFile>> = {
            let state = self.state.lock();
            held.extend(state.inbox.iter().flat_map(|message| message.rights.ids()));
            match &state.role {
                Role::Listening { pending, .. } => pending.iter().cloned().collect(),
                _ => Vec::new(),
            }
        };
        for file in pending {
            if let Some(socket) = file.socket() {
                held.extend(socket.held_files());
            }
        }
        held
    }

    /// Discards the messages that wait to be received.
    pub(super) fn discard_messages(&self) {
        let (inbox, pending) = {
            let mut state = self.state.lock();
            state.queued = 0;
            let pending = match &mut state.role {
                Role::Listening { pending, .. } => core::mem::take(pending),
                _ => VecDeque::new(),
            };
            (core::mem::take(&mut state.inbox), pending)
        };
        drop(inbox);
        drop(pending);
    }
}

impl FileObject for UnixSocket {
    fn socket(&self) -> Option<&UnixSocket> {
        Some(self)
    }

    fn try_read(&self, _io: &Io<'_>, to: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        Ok(self.try_receive(to, false)?.count)
    }

    fn try_write(&self, io: &Io<'_>, from: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        self.try_send(PeerCredentials::of(io.caller), from, &mut Rights::default(), None)
    }

    fn writes_all(&self) -> bool {
        self.kind == SocketType::Stream
    }

    fn readiness(&self) -> Readiness {
        let mut ready = Readiness::empty();
        {
            let state = self.state.lock();
            let pending = matches!(&state.role, Role::Listening { pending, .. } if !pending.is_empty());
            ready.set(Readiness::READ, !state.inbox.is_empty() || state.read_ended || pending);
            ready.set(Readiness::READ_HANGUP, state.read_ended);
            ready.set(Readiness::HANGUP, state.read_ended && state.write_ended);
            ready.set(Readiness::ERROR, state.error.is_some());
            if self.kind != SocketType::Datagram && matches!(state.role, Role::Idle) {
                ready |= Readiness::WRITE | Readiness::HANGUP;
            }
            if matches!(state.role, Role::Listening { .. }) {
                return ready;
            }
        }
        ready.set(Readiness::WRITE, self.can_send());
        ready
    }

    fn queue(&self) -> Option<&PollQueue> {
        Some(&self.queue)
    }

    fn deadline(&self, io: &Io<'_>, write: bool) -> Option<Duration> {
        let options = self.options();
        let timeout = if write { options.send_timeout } else { options.receive_timeout };
        Some(io.started + timeout?)
    }

    fn file_type(&self) -> FileType {
        FileType::Socket
    }

    fn label(&self) -> &'static str {
        "socket"
    }

    fn readable_bytes(&self) -> Result<usize> {
        let state = self.state.lock();
        let unread = |message: &Message| message.bytes.len() - message.read;
        Ok(match self.kind {
            SocketType::Stream => state.inbox.iter().map(unread).sum(),
            _ => state.inbox.front().map_or(0, unread),
        })
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        let this = self.this.clone();
        let state = self.state.get_mut();
        let unread = !state.inbox.is_empty();
        let role = core::mem::replace(&mut state.role, Role::Idle);
        let inbox = core::mem::take(&mut state.inbox);
        let waiting = core::mem::take(&mut state.waiting);
        if let (UnixAddress::Abstract(name), Some(vfs)) =
            (&state.address, state.names.as_ref().and_then(Weak::upgrade))
        {
            let mut names = vfs.sockets.names.lock();
            if names.get(name).is_some_and(|bound| bound.ptr_eq(&this)) {
                names.remove(name);
            }
        }
        if let Role::Connected(peer) = &role
            && let Some(peer) = peer.upgrade()
        {
            let mut state = peer.state.lock();
            let is_its_peer = matches!(&state.role, Role::Connected(mine) if mine.ptr_eq(&this));
            if is_its_peer && self.kind != SocketType::Datagram {
                state.read_ended = true;
                state.write_ended = true;
                if unread {
                    state.error = Some(Error::ECONNRESET);
                }
            }
            drop(state);
            peer.queue.wake(Readiness::ALL);
        }
        self.wake_senders(waiting);
        drop(inbox);
        drop(role);
        rights::collect();
    }
}
