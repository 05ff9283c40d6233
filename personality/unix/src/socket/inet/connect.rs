//! Connecting sockets of internet domains: bind(2), listen(2), connect(2), accept(2).

use super::{InetSocket, charge};
use crate::file::OpenFile;
use crate::network::attempt;
use crate::poll::{Readiness, until_ready_or_deadline};
use crate::socket::SocketType;
use crate::vfs::{Caller, OpenFlags};
use crate::{AttemptError, Error, Privilege, Result};
use alloc::sync::Arc;
use core::net::SocketAddr;
use core::time::Duration;
use inet::{Connect, Kind, State};

/// Ports below this need a privilege.
const PRIVILEGED_PORTS: u16 = 1024;

impl InetSocket {
    /// Gives the socket an address; with port 0 the stack chooses a port. `EACCES` for a port below
    /// 1024 without the privilege, `EADDRINUSE`, `EADDRNOTAVAIL`, `EINVAL` if it has an address.
    pub fn bind(&self, caller: &Caller<'_>, address: SocketAddr) -> Result<()> {
        let has_ports = matches!(self.protocol(), Kind::Tcp(_) | Kind::Udp(_));
        let is_low = has_ports && (1..PRIVILEGED_PORTS).contains(&address.port());
        if is_low && !caller.identity.has(Privilege::LowPorts) {
            return Err(Error::EACCES);
        }
        Ok(self.network.with(|stack| stack.bind(self.id, address))?)
    }

    /// Makes the socket accept connections, of which at most `backlog` can wait.
    pub fn listen(&self, backlog: usize) -> Result<()> {
        if self.kind() != SocketType::Stream {
            return Err(Error::EOPNOTSUPP);
        }
        Ok(self.network.with(|stack| stack.listen(self.id, backlog))?)
    }

    /// Connects to this address. A stream waits until the peer has answered, unless `nonblock`:
    /// then `EINPROGRESS`. Other sockets only record the destination; `None` removes it.
    pub async fn connect(&self, caller: &Caller<'_>, peer: Option<SocketAddr>, nonblock: bool) -> Result<()> {
        let Some(peer) = peer else {
            return Ok(self.network.with(|stack| stack.disconnect(self.id))?);
        };
        match self.network.with(|stack| stack.connect(self.id, peer)) {
            // The caller that does not wait learns of the answer by the socket's readiness, even if
            // the peer, on the same system, has answered already: programs rely on it.
            Ok(Connect::Done) if !nonblock || self.kind() != SocketType::Stream => return Ok(()),
            Ok(Connect::Started | Connect::Done) => {
                self.begin_connecting();
                if nonblock {
                    return Err(Error::EINPROGRESS);
                }
            }
            Err(inet::Error::AlreadyConnecting) if !nonblock => {}
            // The call that finds a connection made says so once; those after it fail.
            Err(inet::Error::AlreadyConnected) if self.end_connecting() => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let environment = &*caller.vfs.environment;
        let deadline = self.options().send_timeout.map(|t| environment.monotonic() + t);
        let answered = until_ready_or_deadline(&self.queue, Readiness::WRITE, environment, |_| {
            self.look_if_connected().map_err(|not_done| (not_done, deadline))
        });
        match answered.await {
            Ok(()) => {
                self.end_connecting();
                Ok(())
            }
            Err(AttemptError::Failed(error)) => {
                self.end_connecting();
                Err(error)
            }
            // The connection is still being made.
            Err(_) => Err(Error::EINPROGRESS),
        }
    }

    fn look_if_connected(&self) -> Result<(), AttemptError> {
        self.network.with(|stack| match stack.state(self.id) {
            Ok(State::SynSent | State::SynReceived) => Err(AttemptError::WouldBlock),
            Ok(State::Closed) => {
                let error = stack.take_error(self.id).map_or(Error::ECONNABORTED, Error::from);
                Err(error.into())
            }
            Err(inet::Error::ConnectionReset) => Err(Error::ECONNRESET.into()),
            _ => Ok(()),
        })
    }

    /// Takes a connection that is to be accepted, and waits for one unless `nonblock`. `flags` are
    /// the new file's status flags.
    pub async fn accept(
        &self,
        caller: &Caller<'_>,
        nonblock: bool,
        flags: OpenFlags,
    ) -> Result<Arc<OpenFile>> {
        if self.kind() != SocketType::Stream {
            return Err(Error::EOPNOTSUPP);
        }
        let environment = &*caller.vfs.environment;
        let deadline = match nonblock {
            true => Some(Duration::ZERO),
            false => self.options().receive_timeout.map(|t| environment.monotonic() + t),
        };
        let left = || self.network.with(|stack| stack.readiness(self.id).read);
        let taken = until_ready_or_deadline(&self.queue, Readiness::READ, environment, |_| {
            self.try_accept(caller).map_err(|not_done| (not_done, deadline))
        });
        let socket = match taken.exclusive(Some(&left)).await {
            Ok(socket) => socket,
            Err(AttemptError::Failed(error)) => return Err(error),
            Err(_) => return Err(Error::EAGAIN),
        };
        let status = flags.intersection(OpenFlags::CHANGEABLE) | OpenFlags::READ_WRITE;
        Ok(OpenFile::of_object(socket, status))
    }

    fn try_accept(&self, caller: &Caller<'_>) -> Result<Arc<InetSocket>, AttemptError> {
        let charge = charge(caller)?;
        let options = self.options();
        self.network.with_state(|state| {
            let (id, _) = attempt(state.stack.accept(self.id))?;
            Ok(InetSocket::make(&self.network, state, id, self.protocol(), options, charge))
        })
    }
}
