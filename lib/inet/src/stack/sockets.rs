//! What programs do with sockets.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use super::{Stack, find};
use crate::error::{Error, Result};
use crate::flow::Endpoint;
use crate::net::is_link_local;
use crate::path::Wish;
use crate::socket::{Listener, PortUse, Role, Socket};
use crate::tcp::connection::Connection;
use crate::tcp::sequence::Seq;
use crate::time::Instant;
use crate::types::*;

/// Groups that a socket can join.
const GROUPS: usize = 64;

impl Stack {
    /// Makes a socket of the superuser.
    ///
    /// # Errors
    ///
    /// `NoBufferSpace` if there are too many.
    pub fn open(&mut self, kind: Kind) -> Result<SocketId> {
        self.open_for(kind, 0)
    }

    /// Makes a socket of a user, which may have half of all sockets and half of the memory of
    /// buffers; the superuser, 0, may have all. Connections of a listener are its user's.
    ///
    /// # Errors
    ///
    /// `NoBufferSpace` if there are too many.
    pub fn open_for(&mut self, kind: Kind, owner: u32) -> Result<SocketId> {
        self.open_with(kind, Options::default(), owner)
    }

    /// Begins to close a stream, as [`Stack::close`] does, which the caller has to call when it
    /// does not wait any more. Whether there is something to wait for: the peer has not
    /// acknowledged all that was sent.
    pub fn begin_close(&mut self, id: SocketId) -> bool {
        let Ok(socket) = self.socket_mut(id) else { return false };
        let Role::Stream(connection) = &mut socket.role else { return false };
        if connection.orphan {
            return self.is_closing(id);
        }
        connection.awaited = true;
        self.close_stream(id);
        self.pump();
        self.is_closing(id)
    }

    /// Whether the program has finished the stream, and the peer has not acknowledged all of it.
    pub fn is_closing(&self, id: SocketId) -> bool {
        matches!(self.state(id), Ok(State::FinWait1 | State::Closing | State::LastAck))
    }

    /// Closes a socket. A connection ends in the background, unless [`Options::linger`] is zero or
    /// data has not been read.
    pub fn close(&mut self, id: SocketId) {
        let Ok(socket) = self.socket_mut(id) else { return };
        if let Role::Stream(connection) = &mut socket.role
            && core::mem::take(&mut connection.awaited)
        {
            // It was closed before: it goes on without the program, or has ended.
            if connection.state == State::Closed {
                self.free(id);
            }
            return;
        }
        match &socket.role {
            Role::Listener(_) => self.close_listener(id),
            Role::Stream(_) => self.close_stream(id),
            Role::Idle | Role::Datagrams(_) => {}
        }
        let keep = self.sockets.get(id.index).is_some_and(|socket| {
            socket.id == id && matches!(&socket.role, Role::Stream(connection) if connection.orphan)
        });
        if !keep {
            self.free(id);
        }
        self.pump();
    }

    /// Gives the socket an address. Port 0 means that the stack chooses one. An IPv6 address of a
    /// link has the interface as its scope. Privileges are the caller's business.
    ///
    /// # Errors
    ///
    /// `AddressInUse`, `AddressNotAvailable`, `AddressFamilyNotSupported`, `InvalidArgument` if
    /// it has one.
    pub fn bind(&mut self, id: SocketId, address: SocketAddress) -> Result<()> {
        let socket = self.socket(id)?;
        if socket.port != PortUse::None || matches!(socket.kind, Kind::Packet { .. }) || socket.peer.is_some()
        {
            return Err(Error::InvalidArgument);
        }
        let (kind, options) = (socket.kind, socket.options);
        let mut local = Endpoint::given(address, kind.family(), options.only_v6)?;
        let group = local.address.is_multicast() || self.net.is_broadcast(local.address);
        let own = local.address.is_unspecified()
            || options.free_bind
            || self.net.is_local(local.address)
            || group && !matches!(kind, Kind::Tcp(_));
        if !own {
            return Err(Error::AddressNotAvailable);
        }
        if is_link_local(local.address) && local.scope == 0 {
            return Err(Error::InvalidArgument);
        }
        if matches!(kind, Kind::Raw(..)) {
            local.port = 0;
        } else {
            if local.port == 0 {
                local.port = self.choose_port(id, &local, None)?;
            } else if self.conflicts(id, &local) {
                return Err(Error::AddressInUse);
            }
            self.ports_entry(kind.protocol(), local.port).bound.push(id);
        }
        let socket = self.socket_mut(id)?;
        socket.local = local;
        socket.fixed = true;
        if local.port != 0 {
            socket.port = PortUse::Bound;
        }
        Ok(())
    }

    /// Binds a packet socket to frames of one type at one interface, or at all. If the interface is
    /// down, that becomes the socket's error.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NotSupported` for other sockets.
    pub fn bind_packet(
        &mut self,
        id: SocketId,
        protocol: u16,
        interface: Option<InterfaceIndex>,
    ) -> Result<()> {
        let mut down = false;
        if let Some(interface) = interface {
            down = !self.net.link(interface).ok_or(Error::NotFound)?.public.up;
        }
        let Stack { sockets, net, .. } = self;
        let socket = find(sockets, id)?;
        let Kind::Packet { cooked, .. } = socket.kind else { return Err(Error::NotSupported) };
        socket.kind = Kind::Packet { protocol, cooked };
        socket.options.interface = interface;
        if down {
            socket.error = Some(Error::NetworkDown);
            socket.announce(net);
        }
        Ok(())
    }

    /// Connects the socket to a peer.
    ///
    /// # Errors
    ///
    /// `AlreadyConnecting`, `AlreadyConnected`, `ConnectionRefused` (port 0), errors of routes,
    /// and those of [`Stack::bind`].
    pub fn connect(&mut self, id: SocketId, peer: SocketAddress) -> Result<Connect> {
        let socket = self.socket(id)?;
        match (&socket.role, socket.kind) {
            (_, Kind::Packet { .. }) => Err(Error::NotSupported),
            (Role::Datagrams(_), _) => self.connect_datagrams(id, peer).map(|()| Connect::Done),
            _ => self.connect_stream(id, peer),
        }
    }

    /// Makes a connected datagram socket an unconnected one (`AF_UNSPEC`); resets a connection.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    pub fn disconnect(&mut self, id: SocketId) -> Result<()> {
        let socket = self.socket(id)?;
        match &socket.role {
            Role::Datagrams(_) => {
                self.leave_flow(id);
                let socket = self.socket_mut(id)?;
                socket.peer = None;
                if !socket.fixed {
                    let port = socket.local.port;
                    socket.local = Endpoint { port, ..Endpoint::any(socket.kind.family()) };
                }
            }
            Role::Stream(_) => {
                self.abort(id, None);
                self.leave_flow(id);
                self.leave_port(id);
                let socket = self.forget_connection(id)?;
                socket.local = Endpoint::any(socket.kind.family());
                socket.fixed = false;
            }
            Role::Listener(_) => {
                self.close_listener(id);
                self.socket_mut(id)?.role = Role::Idle;
            }
            Role::Idle => {}
        }
        self.pump();
        Ok(())
    }

    /// Makes a socket whose connection has ended an idle one, and gives back its buffers.
    fn forget_connection(&mut self, id: SocketId) -> Result<&mut Socket> {
        let Stack { sockets, net, .. } = self;
        let socket = find(sockets, id)?;
        if let Role::Stream(mut connection) = core::mem::replace(&mut socket.role, Role::Idle) {
            connection.release(net);
        }
        socket.peer = None;
        Ok(socket)
    }

    /// Makes a socket a listener, or changes its backlog.
    ///
    /// # Errors
    ///
    /// `NotSupported`, `InvalidArgument` if it is connected, `AddressInUse`.
    pub fn listen(&mut self, id: SocketId, backlog: usize) -> Result<()> {
        let most = self.net.limits.backlog;
        let socket = self.socket_mut(id)?;
        if !matches!(socket.kind, Kind::Tcp(_)) {
            return Err(Error::NotSupported);
        }
        let backlog = backlog.clamp(1, most);
        match &mut socket.role {
            Role::Listener(listener) => {
                listener.backlog = backlog;
                return Ok(());
            }
            Role::Idle => {}
            Role::Stream(connection) if connection.state == State::Closed => {
                self.leave_flow(id);
                // A port that was chosen for the connection goes with it.
                if self.socket(id)?.port == PortUse::Counted {
                    self.leave_port(id);
                    self.socket_mut(id)?.fixed = false;
                }
                let socket = self.forget_connection(id)?;
                if !socket.fixed {
                    let port = if socket.port == PortUse::Bound { socket.local.port } else { 0 };
                    socket.local = Endpoint { port, ..Endpoint::any(socket.kind.family()) };
                }
            }
            _ => return Err(Error::InvalidArgument),
        }
        let socket = self.socket(id)?;
        let local = socket.local;
        if socket.port == PortUse::None {
            let port = self.choose_port(id, &local, None)?;
            self.ports_entry(6, port).bound.push(id);
            let socket = self.socket_mut(id)?;
            socket.local.port = port;
            socket.port = PortUse::Bound;
        } else if self.listens(id, &local) {
            return Err(Error::AddressInUse);
        }
        let now = self.net.now;
        let socket = self.socket_mut(id)?;
        socket.role =
            Role::Listener(Listener { backlog, queue: VecDeque::new(), half: 0, cookies_until: now });
        Ok(())
    }

    /// The next connection of a listener, with its peer.
    ///
    /// # Errors
    ///
    /// `WouldBlock`, `InvalidArgument` if the socket is no listener.
    pub fn accept(&mut self, id: SocketId) -> Result<(SocketId, SocketAddress)> {
        let socket = self.socket_mut(id)?;
        let family = socket.family();
        let Role::Listener(listener) = &mut socket.role else { return Err(Error::InvalidArgument) };
        let child = listener.queue.pop_front().ok_or(Error::WouldBlock)?;
        let socket = self.socket_mut(child)?;
        let peer = socket.peer.map_or(Endpoint::any(family), |peer| peer);
        if let Role::Stream(connection) = &mut socket.role {
            connection.parent = None;
        }
        Ok((child, peer.shown(family)))
    }

    /// Sends. A stream takes as much as there is space for and answers how much; a datagram is
    /// sent whole or not.
    ///
    /// # Errors
    ///
    /// `WouldBlock`, `BrokenPipe`, `NotConnected`, `DestinationRequired`, `MessageTooLong`, the
    /// socket's error, errors of routes.
    pub fn send(
        &mut self,
        id: SocketId,
        data: &[u8],
        to: Option<SocketAddress>,
        flags: SendFlags,
    ) -> Result<usize> {
        let socket = self.socket(id)?;
        let result = match (&socket.role, socket.kind) {
            (Role::Idle | Role::Listener(_), _) => {
                Err(if to.is_some() { Error::NotConnected } else { Error::BrokenPipe })
            }
            (Role::Stream(_), _) => self.send_stream(id, data, flags),
            (_, Kind::Packet { .. }) => Err(Error::DestinationRequired),
            _ => self.send_datagram(id, data, to, flags),
        };
        self.pump();
        result
    }

    /// Sends a frame by a packet socket: a whole frame or, if the socket is cooked, a payload to a
    /// hardware address.
    ///
    /// # Errors
    ///
    /// `MessageTooLong`, `NetworkDown`, `NoBufferSpace`, `NotFound`.
    pub fn send_frame(
        &mut self,
        id: SocketId,
        data: &[u8],
        interface: InterfaceIndex,
        protocol: u16,
        to: [u8; 6],
    ) -> Result<usize> {
        let result = self.send_packet(id, data, interface, protocol, to);
        self.pump();
        result
    }

    /// Receives. The end of a stream is 0 bytes.
    ///
    /// # Errors
    ///
    /// `WouldBlock`, `NotConnected`, the socket's error; for urgent data `InvalidArgument` if there
    /// is none.
    pub fn receive_from(&mut self, id: SocketId, buffer: &mut [u8], flags: ReceiveFlags) -> Result<Received> {
        let socket = self.socket(id)?;
        match &socket.role {
            Role::Stream(_) => self.receive_stream(id, buffer, flags),
            Role::Datagrams(_) => self.receive_datagram(id, buffer, flags),
            Role::Idle | Role::Listener(_) => Err(self.take_error(id).unwrap_or(Error::NotConnected)),
        }
    }

    /// Closes directions of a connection.
    ///
    /// # Errors
    ///
    /// `NotConnected`.
    pub fn shutdown(&mut self, id: SocketId, direction: Direction) -> Result<()> {
        let Stack { sockets, net, .. } = self;
        let socket = find(sockets, id)?;
        let result = match &mut socket.role {
            Role::Stream(connection) => connection.shut(net, direction),
            Role::Datagrams(datagrams) => {
                datagrams.read_closed |= direction != Direction::Write;
                datagrams.write_closed |= direction != Direction::Read;
                let connected = socket.peer.is_some();
                socket.announce(net);
                if connected { Ok(()) } else { Err(Error::NotConnected) }
            }
            Role::Listener(_) if direction != Direction::Write => {
                self.close_listener(id);
                let socket = self.socket_mut(id)?;
                socket.role = Role::Idle;
                self.announce(id);
                Ok(())
            }
            _ => Err(Error::NotConnected),
        };
        self.settle(id.index);
        self.pump();
        result
    }

    /// The own address; unspecified with port 0 if there is none yet.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    pub fn local_address(&self, id: SocketId) -> Result<SocketAddress> {
        let socket = self.socket(id)?;
        Ok(socket.local.shown(socket.family()))
    }

    /// The peer's address.
    ///
    /// # Errors
    ///
    /// `NotConnected`.
    pub fn peer_address(&self, id: SocketId) -> Result<SocketAddress> {
        let socket = self.socket(id)?;
        if let Role::Stream(connection) = &socket.role
            && matches!(connection.state, State::SynSent | State::SynReceived | State::Closed)
        {
            return Err(Error::NotConnected);
        }
        socket.peer.map(|peer| peer.shown(socket.family())).ok_or(Error::NotConnected)
    }

    /// Takes the socket's error (`SO_ERROR`).
    pub fn take_error(&mut self, id: SocketId) -> Option<Error> {
        let socket = self.socket_mut(id).ok()?;
        match &mut socket.role {
            Role::Stream(connection) => connection.error.take().or(socket.error.take()),
            _ => socket.error.take(),
        }
    }

    /// Takes the next entry of the socket's queue of errors (`MSG_ERRQUEUE`).
    pub fn take_report(&mut self, id: SocketId) -> Option<ErrorReport> {
        let Role::Datagrams(datagrams) = &mut self.socket_mut(id).ok()?.role else { return None };
        datagrams.reports.pop_front()
    }

    /// What the socket can do without waiting; of unknown sockets an error.
    pub fn readiness(&self, id: SocketId) -> Readiness {
        let Ok(socket) = self.socket(id) else {
            return Readiness { error: true, hup: true, ..Readiness::default() };
        };
        let error = socket.error.is_some();
        match &socket.role {
            Role::Idle => Readiness { write: true, hup: true, error, read: error, ..Readiness::default() },
            Role::Listener(listener) => {
                Readiness { read: !listener.queue.is_empty(), error, ..Readiness::default() }
            }
            Role::Stream(connection) => connection.readiness(&socket.options),
            Role::Datagrams(datagrams) => Readiness {
                read: !datagrams.queue.is_empty() || error || datagrams.read_closed,
                write: true,
                read_closed: datagrams.read_closed,
                hup: datagrams.read_closed && datagrams.write_closed,
                error: error || !datagrams.reports.is_empty(),
                priority: !datagrams.reports.is_empty(),
            },
        }
    }

    /// What is in the socket's queues.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    pub fn queued(&self, id: SocketId) -> Result<Queued> {
        let socket = self.socket(id)?;
        Ok(match &socket.role {
            Role::Stream(connection) => connection.queued(&socket.options),
            Role::Datagrams(datagrams) => {
                let receive = datagrams.queue.front().map_or(0, |datagram| datagram.bytes.len());
                Queued { receive, ..Queued::default() }
            }
            Role::Listener(listener) => Queued { receive: listener.queue.len(), ..Queued::default() },
            Role::Idle => Queued::default(),
        })
    }

    /// The socket's options.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    pub fn options(&self, id: SocketId) -> Result<&Options> {
        self.socket(id).map(|socket| &socket.options)
    }

    /// Changes the socket's options; values that make no sense are brought into their range.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    pub fn configure(&mut self, id: SocketId, change: impl FnOnce(&mut Options)) -> Result<()> {
        let Stack { sockets, net, .. } = self;
        let socket = find(sockets, id)?;
        change(&mut socket.options);
        let options = &mut socket.options;
        options.send_buffer = options.send_buffer.clamp(2048, 8 << 20);
        options.receive_buffer = options.receive_buffer.clamp(2048, 8 << 20);
        options.keep_count = options.keep_count.clamp(1, 127);
        options.syn_retries = options.syn_retries.min(127);
        options.keep_idle = options.keep_idle.max(Duration::from_secs(1));
        options.keep_interval = options.keep_interval.max(Duration::from_secs(1));
        options.maximum_segment = options.maximum_segment.map(|size| size.clamp(88, 65495));
        options.hops = options.hops.max(1);
        if let Role::Stream(connection) = &mut socket.role {
            connection.hops = options.hops;
            connection.traffic_class = options.traffic_class;
            connection.ack_now |= options.quick_ack == Some(true) && connection.ack_at.is_some();
            // A changed option can release what waits (no-delay, cork).
            connection.more &= options.cork;
            connection.corked = connection.corked.filter(|_| options.cork);
        }
        socket.announce(net);
        self.settle(id.index);
        self.pump();
        Ok(())
    }

    /// Whether acknowledgements are said not to wait (`TCP_QUICKACK`): as the program has set, or
    /// else while the connection carries no questions and answers.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    pub fn acknowledges_quickly(&self, id: SocketId) -> Result<bool> {
        let socket = self.socket(id)?;
        let answers = matches!(&socket.role, Role::Stream(connection) if connection.answers);
        Ok(socket.options.quick_ack.unwrap_or(!answers))
    }

    /// Joins a group, at the given interface or the one that a route to it leads to.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is no group, `AddressInUse` if it was joined, `NoBufferSpace`,
    /// `NotFound`.
    pub fn join(&mut self, id: SocketId, group: IpAddr, interface: Option<InterfaceIndex>) -> Result<()> {
        if !group.is_multicast() {
            return Err(Error::InvalidArgument);
        }
        let wish = Wish { interface, dont_route: false };
        let path = self.net.path(group, wish);
        let interface =
            path.map_err(|error| if error == Error::NotFound { error } else { Error::NotFound })?.interface;
        let Role::Datagrams(datagrams) = &mut find(&mut self.sockets, id)?.role else {
            return Err(Error::NotSupported);
        };
        if datagrams.groups.contains(&(group, interface)) {
            return Err(Error::AddressInUse);
        }
        if datagrams.groups.len() >= GROUPS {
            return Err(Error::NoBufferSpace);
        }
        datagrams.groups.push((group, interface));
        self.net.join(interface, group);
        Ok(())
    }

    /// Leaves a group.
    ///
    /// # Errors
    ///
    /// `AddressNotAvailable` if it was not joined.
    pub fn leave(&mut self, id: SocketId, group: IpAddr, interface: Option<InterfaceIndex>) -> Result<()> {
        let Role::Datagrams(datagrams) = &mut find(&mut self.sockets, id)?.role else {
            return Err(Error::NotSupported);
        };
        let fits = |entry: &(IpAddr, InterfaceIndex)| {
            entry.0 == group && interface.is_none_or(|interface| entry.1 == interface)
        };
        let at = datagrams.groups.iter().position(fits).ok_or(Error::AddressNotAvailable)?;
        let (group, interface) = datagrams.groups.swap_remove(at);
        self.net.leave(interface, group);
        Ok(())
    }

    /// The state of a stream.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NotSupported`.
    pub fn state(&self, id: SocketId) -> Result<State> {
        let socket = self.socket(id)?;
        match &socket.role {
            Role::Stream(connection) => Ok(connection.state),
            Role::Listener(_) => Ok(State::Listen),
            Role::Idle => Ok(State::Closed),
            Role::Datagrams(_) => Err(Error::NotSupported),
        }
    }

    /// A stream, measured.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NotSupported`.
    pub fn tcp_info(&self, id: SocketId) -> Result<TcpInfo> {
        let socket = self.socket(id)?;
        match &socket.role {
            Role::Stream(connection) => Ok(connection.info()),
            Role::Listener(_) | Role::Idle => {
                let state = if matches!(socket.role, Role::Idle) { State::Closed } else { State::Listen };
                let local = socket.local;
                let path = self.net.path(local.address, Wish::default())?;
                let none = Connection::new(local, local, path, Seq(0), self.net.now);
                Ok(TcpInfo { state, ..none.info() })
            }
            Role::Datagrams(_) => Err(Error::NotSupported),
        }
    }

    /// All sockets, half-open connections and those in TIME_WAIT.
    pub fn sockets(&self) -> Vec<SocketInfo> {
        let mut list: Vec<SocketInfo> = self.sockets.iter().map(|socket| self.describe(socket)).collect();
        let end = |local: &Endpoint, remote: &Endpoint, family: Family, state, at: Instant| SocketInfo {
            id: None,
            kind: Kind::Tcp(family),
            local: local.shown(family),
            remote: remote.shown(family),
            state,
            receive_queue: 0,
            send_queue: 0,
            timer: Some((
                if state == State::TimeWait { Timer::TimeWait } else { Timer::Retransmission },
                at.since(self.net.now),
            )),
            drops: 0,
        };
        list.extend(self.halves.values().map(|half| {
            let family = self.socket(half.listener).map_or(Family::V4, |socket| socket.family());
            end(&half.local, &half.remote, family, State::SynReceived, half.deadline)
        }));
        list.extend(
            self.waits
                .values()
                .map(|wait| end(&wait.local, &wait.remote, wait.family, State::TimeWait, wait.deadline)),
        );
        list
    }
}
