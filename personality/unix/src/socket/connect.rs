//! Connecting sockets: bind(2), listen(2), connect(2), accept(2).

use super::unix::{Role, UnixSocket};
use super::{PeerCredentials, SocketType, UnixAddress};
use crate::file::OpenFile;
use crate::poll::{Readiness, until_ready_or_deadline};
use crate::sync::delay;
use crate::vfs::{Access, At, Attachment, Caller, DeviceNumber, FileType, Mode, OpenFlags, permitted_at};
use crate::{AttemptError, Error, Result};
use alloc::format;
use alloc::sync::Arc;

/// The most connections that can wait to be accepted by a socket (SOMAXCONN).
const BACKLOG_MAXIMUM: usize = 4096;

impl UnixSocket {
    /// Gives the socket a name; with `Unnamed` the system chooses an abstract name. `EADDRINUSE` if
    /// another socket has the name, `EINVAL` if this one has a name.
    pub async fn bind(&self, caller: &Caller<'_>, address: UnixAddress) -> Result<()> {
        // Other callers that bind this socket wait here, so that it gets only one name.
        let _binding = self.binding.lock().await;
        if self.address() != UnixAddress::Unnamed {
            return Err(Error::EINVAL);
        }
        delay("socket binds");
        let address = match address {
            UnixAddress::Path(path) => {
                let made = caller.make_node(
                    &At::Current,
                    &path,
                    FileType::Socket,
                    Mode::new(0o777),
                    DeviceNumber::default(),
                );
                let vnode = match made.await {
                    Err(Error::EEXIST) => return Err(Error::EADDRINUSE),
                    made => made?,
                };
                let hooks = vnode.hooks().ok_or(Error::EOPNOTSUPP)?;
                *hooks.attachment.lock() = Attachment::Socket(self.this.clone());
                UnixAddress::Path(path)
            }
            UnixAddress::Abstract(name) => {
                self.claim(caller, name.clone())?;
                UnixAddress::Abstract(name)
            }
            UnixAddress::Unnamed => self.claim_any(caller)?,
        };
        self.state.lock().address = address;
        Ok(())
    }

    fn claim(&self, caller: &Caller<'_>, name: alloc::vec::Vec<u8>) -> Result<()> {
        let mut names = caller.vfs.sockets.names.lock();
        if names.get(&name).is_some_and(|bound| bound.strong_count() > 0) {
            return Err(Error::EADDRINUSE);
        }
        names.insert(name, self.this.clone());
        drop(names);
        self.state.lock().names = Some(Arc::downgrade(caller.vfs));
        Ok(())
    }

    fn claim_any(&self, caller: &Caller<'_>) -> Result<UnixAddress> {
        for number in 0..1 << 20 {
            let name = format!("{number:05x}").into_bytes();
            match self.claim(caller, name.clone()) {
                Err(Error::EADDRINUSE) => {}
                claimed => return claimed.map(|()| UnixAddress::Abstract(name)),
            }
        }
        Err(Error::ENOSPC)
    }

    /// Makes the socket accept connections, of which at most `backlog` can wait.
    pub fn listen(&self, caller: &Caller<'_>, backlog: usize) -> Result<()> {
        if self.kind == SocketType::Datagram {
            return Err(Error::EOPNOTSUPP);
        }
        let mut state = self.state.lock();
        if state.address == UnixAddress::Unnamed {
            return Err(Error::EINVAL);
        }
        let limit = backlog.min(BACKLOG_MAXIMUM);
        match &mut state.role {
            Role::Connected(_) => return Err(Error::EINVAL),
            Role::Listening { backlog, .. } => *backlog = limit,
            Role::Idle => state.role = Role::Listening { backlog: limit, pending: Default::default() },
        }
        state.peer_credentials = Some(PeerCredentials::of(caller));
        Ok(())
    }

    /// The socket with this name, which the caller must be allowed to write to. `ECONNREFUSED` if
    /// no socket has the name.
    pub(super) async fn find(caller: &Caller<'_>, address: &UnixAddress) -> Result<Arc<UnixSocket>> {
        match address {
            UnixAddress::Unnamed => Err(Error::ECONNREFUSED),
            UnixAddress::Abstract(name) => {
                let found = caller.vfs.sockets.names.lock().get(name).cloned();
                found.and_then(|socket| socket.upgrade()).ok_or(Error::ECONNREFUSED)
            }
            UnixAddress::Path(path) => {
                let place = caller.find(&At::Current, path, true).await?.location;
                permitted_at(&place, caller.identity, Access::WRITE)?;
                if place.vnode.file_type() != FileType::Socket {
                    return Err(Error::ECONNREFUSED);
                }
                let hooks = place.vnode.hooks().ok_or(Error::ECONNREFUSED)?;
                let bound = hooks.attachment.lock().clone();
                match bound {
                    Attachment::Socket(socket) => socket.upgrade().ok_or(Error::ECONNREFUSED),
                    _ => Err(Error::ECONNREFUSED),
                }
            }
        }
    }

    /// Connects to the socket with this name. A stream waits, unless `nonblock`, while the backlog
    /// is full. A datagram socket only records the destination; `Unnamed` removes it.
    pub async fn connect(&self, caller: &Caller<'_>, address: &UnixAddress, nonblock: bool) -> Result<()> {
        if self.kind == SocketType::Datagram {
            return self.connect_datagrams(caller, address).await;
        }
        let deadline = self.options().send_timeout.map(|t| caller.vfs.environment.monotonic() + t);
        loop {
            self.check_unconnected()?;
            // The name is looked up again in each round, since the listener may have been closed
            // meanwhile.
            let listener = UnixSocket::find(caller, address).await?;
            if listener.kind != self.kind {
                return Err(Error::EPROTOTYPE);
            }
            match self.try_connect(caller, &listener) {
                Err(AttemptError::WouldBlock) if !nonblock => {}
                Err(AttemptError::Failed(error)) => return Err(error),
                Err(_) => return Err(Error::EAGAIN),
                Ok(()) => return Ok(()),
            }
            // Do not hold a reference to the listener while waiting: when it is closed, the waiting
            // senders are woken and look it up again.
            let waiting_for = Arc::downgrade(&listener);
            drop(listener);
            let environment = &*caller.vfs.environment;
            let room = until_ready_or_deadline(&self.queue, Readiness::WRITE, environment, |_| {
                match waiting_for.upgrade().is_none_or(|listener| listener.has_room(self)) {
                    true => Ok(()),
                    false => Err((AttemptError::WouldBlock, deadline)),
                }
            });
            if room.await.is_err() {
                return Err(Error::EAGAIN);
            }
        }
    }

    fn check_unconnected(&self) -> Result<()> {
        match self.state.lock().role {
            Role::Connected(_) => Err(Error::EISCONN),
            Role::Listening { .. } => Err(Error::EINVAL),
            Role::Idle => Ok(()),
        }
    }

    /// Whether a connection would be taken (or refused) without waiting; otherwise `connecting` is
    /// recorded as waiting.
    fn has_room(&self, connecting: &UnixSocket) -> bool {
        let mut state = self.state.lock();
        match &state.role {
            Role::Listening { backlog, pending } if pending.len() > *backlog => {
                state.note_waiting(connecting);
                false
            }
            _ => true,
        }
    }

    fn try_connect(&self, caller: &Caller<'_>, listener: &Arc<UnixSocket>) -> Result<(), AttemptError> {
        let credentials = PeerCredentials::of(caller);
        let accepted = UnixSocket::new(caller, self.kind)?;
        let own_address = self.address();
        let (listener_address, listener_credentials) = {
            let mut state = accepted.state.lock();
            state.role = Role::Connected(self.this.clone());
            state.peer_address = own_address;
            state.peer_credentials = Some(credentials);
            drop(state);
            let state = listener.state.lock();
            (state.address.clone(), state.peer_credentials)
        };
        accepted.state.lock().address = listener_address.clone();
        let file = OpenFile::of_object(accepted.clone(), OpenFlags::READ_WRITE);
        // The connecting side is connected before the listener sees the connection, so that what
        // the accepting side sends immediately arrives.
        {
            let mut state = self.state.lock();
            if !matches!(state.role, Role::Idle) {
                return Err(Error::EISCONN.into());
            }
            state.role = Role::Connected(Arc::downgrade(&accepted));
            state.peer_address = listener_address;
            state.peer_credentials = listener_credentials;
        }
        let refused = {
            let mut state = listener.state.lock();
            let read_ended = state.read_ended;
            match &mut state.role {
                Role::Listening { backlog, pending } if !read_ended => {
                    if pending.len() > *backlog {
                        state.note_waiting(self);
                        Some(AttemptError::WouldBlock)
                    } else {
                        pending.push_back(file.clone());
                        None
                    }
                }
                _ => Some(Error::ECONNREFUSED.into()),
            }
        };
        if let Some(refused) = refused {
            // Undo the connection before the accepted side, which no process has seen, is dropped.
            {
                let mut state = self.state.lock();
                state.role = Role::Idle;
                state.peer_address = UnixAddress::Unnamed;
                state.peer_credentials = None;
            }
            return Err(refused);
        }
        listener.queue.wake(Readiness::READ);
        self.queue.wake(Readiness::ALL);
        Ok(())
    }

    async fn connect_datagrams(&self, caller: &Caller<'_>, address: &UnixAddress) -> Result<()> {
        if *address == UnixAddress::Unnamed {
            let mut state = self.state.lock();
            state.role = Role::Idle;
            state.peer_address = UnixAddress::Unnamed;
            return Ok(());
        }
        let peer = UnixSocket::find(caller, address).await?;
        if peer.kind != SocketType::Datagram {
            return Err(Error::EPROTOTYPE);
        }
        let mut state = self.state.lock();
        state.role = Role::Connected(Arc::downgrade(&peer));
        state.peer_address = address.clone();
        drop(state);
        self.queue.wake(Readiness::WRITE);
        Ok(())
    }

    /// Takes a connection that is to be accepted, and waits for one unless `nonblock`. `flags` are
    /// the new file's status flags.
    pub async fn accept(
        &self,
        caller: &Caller<'_>,
        nonblock: bool,
        flags: OpenFlags,
    ) -> Result<Arc<OpenFile>> {
        let environment = &*caller.vfs.environment;
        let deadline = match nonblock {
            true => Some(core::time::Duration::ZERO),
            false => self.options().receive_timeout.map(|t| environment.monotonic() + t),
        };
        let left =
            || matches!(&self.state.lock().role, Role::Listening { pending, .. } if !pending.is_empty());
        let taken = until_ready_or_deadline(&self.queue, Readiness::READ, environment, |_| {
            self.try_accept().map_err(|not_done| (not_done, deadline))
        });
        let file = match taken.exclusive(Some(&left)).await {
            Ok(file) => file,
            Err(AttemptError::Failed(error)) => return Err(error),
            Err(_) => return Err(Error::EAGAIN),
        };
        file.set_flag(flags.intersection(OpenFlags::CHANGEABLE), true);
        Ok(file)
    }

    fn try_accept(&self) -> Result<Arc<OpenFile>, AttemptError> {
        let mut state = self.state.lock();
        let read_ended = state.read_ended;
        let Role::Listening { pending, .. } = &mut state.role else {
            let unsupported = self.kind == SocketType::Datagram;
            return Err(if unsupported { Error::EOPNOTSUPP } else { Error::EINVAL }.into());
        };
        let Some(file) = pending.pop_front() else {
            return Err(if read_ended { Error::EINVAL.into() } else { AttemptError::WouldBlock });
        };
        let waiting = core::mem::take(&mut state.waiting);
        drop(state);
        self.wake_senders(waiting);
        Ok(file)
    }
}
