//! Sockets of the internet domains (ip(7), ipv6(7), tcp(7), udp(7), icmp(7), raw(7)), over the
//! stack of [`Network`].

mod close;
mod connect;
mod transfer;

pub use close::close_and_linger;
pub use transfer::{InetReceiveHow, InetReceived};

use super::{Shutdown, SocketOptions, SocketType};
use crate::account::{Charge, FILE_BYTES};
use crate::file::{FileObject, Io, OpenFile};
use crate::network::{Network, State, readiness};
use crate::poll::{PollQueue, Readiness};
use crate::sync::SpinLock;
use crate::vfs::{Caller, FileType, OpenFlags};
use crate::{AttemptError, Error, Privilege, Result, UserBuffer};
use alloc::sync::{Arc, Weak};
use core::net::{IpAddr, SocketAddr, SocketAddrV6};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use inet::{Family, Kind, Options, SocketId};

/// Bytes that are charged for the stack's part of a socket.
const STACK_BYTES: u64 = 1024;

/// What takes the messages of a socket as soon as they arrive.
pub trait Taker: Send + Sync {
    /// Called when the socket may have received something, before those that wait for it are
    /// woken. Must not block.
    fn arrived(&self);
}

/// A socket of an internet domain, or of packets of an interface.
pub struct InetSocket {
    this: Weak<InetSocket>,
    network: Arc<Network>,
    id: SocketId,
    kind: Kind,
    /// The options that sockets of all families have. The stack has the others.
    options: SpinLock<SocketOptions>,
    queue: PollQueue,
    /// A connection has been begun, and no call has been told yet that it was made.
    is_connecting: AtomicBool,
    /// The last close waits until the peer has acknowledged what was sent (SO_LINGER).
    lingers: AtomicBool,
    /// Takes what arrives, if there is such a thing.
    taker: SpinLock<Option<Weak<dyn Taker>>>,
    /// Whether there is, so that most sockets need not look.
    has_taker: AtomicBool,
    /// The charge for the socket, to the user that made or accepted it.
    charge: Charge,
}

/// Makes a socket as a file. Errors as [`InetSocket::open`].
pub fn inet_socket(caller: &Caller<'_>, kind: Kind, flags: OpenFlags) -> Result<Arc<OpenFile>> {
    Ok(OpenFile::of_object(InetSocket::open(caller, kind)?, flags | OpenFlags::READ_WRITE))
}

fn charge(caller: &Caller<'_>) -> Result<Charge> {
    caller.process.account().charge_memory(FILE_BYTES + STACK_BYTES).ok_or(Error::ENOMEM)
}

/// The family of a socket's addresses; `None` for one that has none.
fn family_of(kind: Kind) -> Option<Family> {
    match kind {
        Kind::Tcp(family) | Kind::Udp(family) | Kind::IcmpEcho(family) | Kind::Raw(family, _) => Some(family),
        Kind::Packet { .. } => None,
    }
}

/// Whether the last close of such a socket waits.
fn lingers(kind: Kind, options: &SocketOptions) -> bool {
    matches!(kind, Kind::Tcp(_)) && options.linger.is_some_and(|seconds| seconds > 0)
}

impl InetSocket {
    /// Makes a socket. `EPERM` for a raw socket without the privilege, `ENOMEM`, `ENOBUFS`.
    pub fn open(caller: &Caller<'_>, kind: Kind) -> Result<Arc<InetSocket>> {
        let is_raw = matches!(kind, Kind::Raw(..) | Kind::Packet { .. });
        if is_raw && !caller.identity.has(Privilege::RawNetwork) {
            return Err(Error::EPERM);
        }
        let charge = charge(caller)?;
        let network = caller.vfs.network.clone();
        network.with_state(|state| {
            let (id, options) = (state.stack.open_for(kind, caller.identity.user)?, SocketOptions::default());
            // The stack has made the socket just now, so it knows it.
            let _ = state.stack.configure(id, |stack| {
                stack.send_buffer = options.send_buffer;
                stack.receive_buffer = options.receive_buffer;
            });
            Ok::<_, Error>(InetSocket::make(&network, state, id, kind, options, charge))
        })
    }

    /// Makes the socket of a program for a socket of the stack.
    fn make(
        network: &Arc<Network>,
        state: &mut State,
        id: SocketId,
        kind: Kind,
        options: SocketOptions,
        charge: Charge,
    ) -> Arc<InetSocket> {
        let socket = Arc::new_cyclic(|this| InetSocket {
            this: this.clone(),
            network: network.clone(),
            id,
            kind,
            options: SpinLock::new(options),
            queue: PollQueue::new(),
            is_connecting: AtomicBool::new(false),
            lingers: AtomicBool::new(lingers(kind, &options)),
            taker: SpinLock::new(None),
            has_taker: AtomicBool::new(false),
            charge,
        });
        state.register(id, socket.this.clone());
        socket
    }

    /// What the stack calls the socket.
    pub fn id(&self) -> SocketId {
        self.id
    }

    /// What the socket is for the stack.
    pub fn protocol(&self) -> Kind {
        self.kind
    }

    /// The id of the user that made or accepted the socket.
    pub fn user(&self) -> u32 {
        self.charge.account().user()
    }

    /// The number of the socket as a file without a name.
    pub fn inode(&self) -> u64 {
        self.this.as_ptr().addr() as u64 >> 4
    }

    /// The network that the socket is in.
    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// Whether the socket's addresses are those of IPv6.
    pub fn is_v6(&self) -> bool {
        family_of(self.kind) == Some(Family::V6)
    }

    /// The type of the socket.
    pub fn kind(&self) -> SocketType {
        match self.kind {
            Kind::Tcp(_) => SocketType::Stream,
            Kind::Udp(_) | Kind::IcmpEcho(_) | Kind::Packet { cooked: true, .. } => SocketType::Datagram,
            Kind::Raw(..) | Kind::Packet { cooked: false, .. } => SocketType::Raw,
        }
    }

    /// The options that sockets of all families have.
    pub fn options(&self) -> SocketOptions {
        *self.options.lock()
    }

    /// Changes the options that sockets of all families have.
    pub fn set_options(&self, options: SocketOptions) {
        *self.options.lock() = options;
        // Relaxed ordering: a close at the same time may or may not know of the change.
        self.lingers.store(lingers(self.kind, &options), Ordering::Relaxed);
        self.configure(|stack| {
            stack.send_buffer = options.send_buffer;
            stack.receive_buffer = options.receive_buffer;
            stack.linger = options.linger.map(|seconds| Duration::from_secs(seconds.into()));
        });
    }

    /// The options that the stack has for the socket.
    pub fn stack_options(&self) -> Options {
        // The stack knows the socket as long as this exists.
        self.network.with(|stack| stack.options(self.id).unwrap_or_default())
    }

    /// Changes the options that the stack has for the socket.
    pub fn configure(&self, change: impl FnOnce(&mut Options)) {
        // The stack knows the socket as long as this exists.
        let _ = self.network.with(|stack| stack.configure(self.id, change));
    }

    /// The socket's own address, unspecified if it has none.
    pub fn address(&self) -> Result<SocketAddr> {
        let address = self.network.with(|stack| stack.local_address(self.id))?;
        Ok(self.shown(address))
    }

    /// The address of the socket at the other end. `ENOTCONN`.
    pub fn peer_address(&self) -> Result<SocketAddr> {
        let address = self.network.with(|stack| stack.peer_address(self.id))?;
        Ok(self.shown(address))
    }

    /// An address as programs see it: a socket of IPv6 shows one of IPv4 as a mapped address.
    fn shown(&self, address: SocketAddr) -> SocketAddr {
        match address.ip() {
            IpAddr::V4(ip) if self.is_v6() => {
                SocketAddrV6::new(ip.to_ipv6_mapped(), address.port(), 0, 0).into()
            }
            _ => address,
        }
    }

    /// Whether the socket listens (SO_ACCEPTCONN).
    pub fn is_listening(&self) -> bool {
        self.network.with(|stack| stack.state(self.id)) == Ok(inet::State::Listen)
    }

    /// Returns and clears the pending error (SO_ERROR).
    pub fn take_error(&self) -> Option<Error> {
        self.network.with(|stack| stack.take_error(self.id)).map(Error::from)
    }

    /// Ends one half of the connection, or both (shutdown(2)). `ENOTCONN`.
    pub fn shutdown(&self, how: Shutdown) -> Result<()> {
        let direction = match how {
            Shutdown::Read => inet::Direction::Read,
            Shutdown::Write => inet::Direction::Write,
            Shutdown::Both => inet::Direction::Both,
        };
        let done = self.network.with(|stack| stack.shutdown(self.id, direction));
        // What the socket is ready for changes by it even if nothing arrives.
        self.queue.wake(self.readiness());
        Ok(done?)
    }

    /// Lets `taker` take what arrives from now on.
    pub fn set_taker(&self, taker: Weak<dyn Taker>) {
        *self.taker.lock() = Some(taker);
        self.has_taker.store(true, Ordering::Release);
    }

    /// Wakes the tasks that wait for the socket.
    pub(crate) fn wake(&self, events: Readiness) {
        if self.has_taker.load(Ordering::Acquire) {
            let taker = self.taker.lock().as_ref().and_then(Weak::upgrade);
            if let Some(taker) = taker {
                taker.arrived();
            }
        }
        self.queue.wake(events);
    }
}

impl FileObject for InetSocket {
    fn try_read(&self, _io: &Io<'_>, to: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        Ok(self.try_receive(to, InetReceiveHow::default())?.count)
    }

    fn try_write(&self, _io: &Io<'_>, from: &mut dyn UserBuffer) -> Result<usize, AttemptError> {
        self.try_send(from, None, inet::SendFlags::default())
    }

    fn writes_all(&self) -> bool {
        self.kind() == SocketType::Stream
    }

    fn waits_at_close(&self) -> bool {
        self.lingers.load(Ordering::Relaxed)
    }

    fn readiness(&self) -> Readiness {
        self.network.with(|stack| readiness(stack.readiness(self.id)))
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
        if self.is_listening() {
            return Err(Error::EINVAL);
        }
        Ok(self.network.with(|stack| stack.queued(self.id))?.receive)
    }
}

impl Drop for InetSocket {
    fn drop(&mut self) {
        let id = self.id;
        self.network.with_state(|state| state.close(id));
    }
}

impl InetSocket {
    /// Notes that a connection has been begun.
    fn begin_connecting(&self) {
        self.is_connecting.store(true, Ordering::Relaxed);
    }

    /// Whether a connection has been begun of which no call has been told yet that it was made.
    fn end_connecting(&self) -> bool {
        self.is_connecting.swap(false, Ordering::Relaxed)
    }
}
