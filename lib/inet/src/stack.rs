//! The stack as its callers see it.

use alloc::vec::Vec;
use core::net::IpAddr;

use crate::error::{Error, Result};
use crate::time::Instant;
use crate::types::*;

/// All interfaces, routes and sockets of a system. The caller holds a lock around it.
pub struct Stack {
    limits: Limits,
    now: Instant,
}

impl Stack {
    /// A stack with the interface `lo`. `seed` is secret and random: sequence numbers, ports and
    /// the places in hash tables depend on it.
    pub fn new(_seed: [u8; 32], limits: Limits) -> Stack {
        Stack { limits, now: Instant::default() }
    }

    /// Tells the time, which must not go back. Every other call uses the last time that was told:
    /// `stack.at(now).send(..)`.
    pub fn at(&mut self, now: Instant) -> &mut Stack {
        self.now = now.max(self.now);
        self
    }

    /// How much the stack may hold.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Adds an interface of Ethernet, which is down and whose link is up.
    ///
    /// # Errors
    ///
    /// `Exists` for a name that is taken, `InvalidArgument` for a bad name or an MTU out of
    /// 576..=65535, `NoBufferSpace` if there are too many.
    pub fn add_interface(
        &mut self,
        _name: &str,
        _mac: [u8; 6],
        _mtu: usize,
        _offload: Offload,
    ) -> Result<InterfaceIndex> {
        Err(Error::NotSupported)
    }

    /// Removes an interface with its addresses, routes and neighbours; `lo` stays.
    ///
    /// # Errors
    ///
    /// `NotFound`, `InvalidArgument` for `lo`.
    pub fn remove_interface(&mut self, _interface: InterfaceIndex) -> Result<()> {
        Err(Error::NotFound)
    }

    /// Allows the interface to be used, or forbids it.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    pub fn set_up(&mut self, _interface: InterfaceIndex, _up: bool) -> Result<()> {
        Err(Error::NotFound)
    }

    /// Says that the cable was plugged in or out.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    pub fn set_link(&mut self, _interface: InterfaceIndex, _link: bool) -> Result<()> {
        Err(Error::NotFound)
    }

    /// Changes the MTU.
    ///
    /// # Errors
    ///
    /// `NotFound`, `InvalidArgument`.
    pub fn set_mtu(&mut self, _interface: InterfaceIndex, _mtu: usize) -> Result<()> {
        Err(Error::NotFound)
    }

    /// Gives packet sockets the frames to other systems, too.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    pub fn set_promiscuous(&mut self, _interface: InterfaceIndex, _promiscuous: bool) -> Result<()> {
        Err(Error::NotFound)
    }

    /// All interfaces, by number.
    pub fn interfaces(&self) -> impl Iterator<Item = &Interface> {
        [].into_iter()
    }

    /// Gives an interface an address, with a route to its network.
    ///
    /// # Errors
    ///
    /// `NotFound`, `Exists`, `InvalidArgument` for addresses of groups and the like,
    /// `NoBufferSpace`.
    pub fn add_address(&mut self, _interface: InterfaceIndex, _prefix: Prefix) -> Result<()> {
        Err(Error::NotFound)
    }

    /// Takes an address away, with its route.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    pub fn remove_address(&mut self, _interface: InterfaceIndex, _address: IpAddr) -> Result<()> {
        Err(Error::NotFound)
    }

    /// All addresses of all interfaces.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        [].into_iter()
    }

    /// Adds a route.
    ///
    /// # Errors
    ///
    /// `NotFound` for the interface, `Exists`, `NetworkUnreachable` if the router is no neighbour,
    /// `NoBufferSpace`.
    pub fn add_route(&mut self, _route: Route) -> Result<()> {
        Err(Error::NotFound)
    }

    /// Removes the first route to `destination` that agrees with what else is given.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    pub fn remove_route(
        &mut self,
        _destination: Prefix,
        _gateway: Option<IpAddr>,
        _interface: Option<InterfaceIndex>,
    ) -> Result<()> {
        Err(Error::NotFound)
    }

    /// All routes.
    pub fn routes(&self) -> impl Iterator<Item = &Route> {
        [].into_iter()
    }

    /// The route that a packet to `destination` would take, and its source's address.
    ///
    /// # Errors
    ///
    /// `NetworkUnreachable`.
    pub fn route_to(
        &self,
        _destination: IpAddr,
        _interface: Option<InterfaceIndex>,
    ) -> Result<(Route, IpAddr)> {
        Err(Error::NetworkUnreachable)
    }

    /// All neighbours.
    pub fn neighbours(&self) -> impl Iterator<Item = Neighbour> {
        [].into_iter()
    }

    /// Gives a neighbour's hardware address, or forgets the neighbour.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NoBufferSpace`.
    pub fn set_neighbour(
        &mut self,
        _interface: InterfaceIndex,
        _address: IpAddr,
        _mac: Option<[u8; 6]>,
    ) -> Result<()> {
        Err(Error::NotFound)
    }

    /// Asks DHCP servers for an address of the interface, and keeps the lease. Answers are in
    /// [`Stack::lease`]; the stack sets the address and the route by itself.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NoBufferSpace`.
    pub fn start_dhcp(&mut self, _interface: InterfaceIndex, _host_name: &str) -> Result<()> {
        Err(Error::NotFound)
    }

    /// Ends DHCP on the interface, with its address.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    pub fn stop_dhcp(&mut self, _interface: InterfaceIndex) -> Result<()> {
        Err(Error::NotFound)
    }

    /// What a DHCP server granted to the interface.
    pub fn lease(&self, _interface: InterfaceIndex) -> Option<&Lease> {
        None
    }

    /// Takes a frame that arrived at an interface. Malformed ones are counted and dropped.
    pub fn receive(&mut self, _interface: InterfaceIndex, _frame: &[u8], now: Instant) {
        self.at(now);
    }

    /// The same for a frame whose checksums above IP the device has verified.
    pub fn receive_verified(&mut self, _interface: InterfaceIndex, _frame: &[u8], now: Instant) {
        self.at(now);
    }

    /// The next frame to be sent by the interface's device.
    pub fn transmit(&mut self, _interface: InterfaceIndex) -> Option<Frame> {
        None
    }

    /// Whether [`Stack::transmit`] has a frame for some interface, in the order of their numbers.
    pub fn transmittable(&self) -> impl Iterator<Item = InterfaceIndex> {
        [].into_iter()
    }

    /// Takes back a frame's buffer, so that the next frame need not allocate one.
    pub fn recycle(&mut self, _frame: Frame) {}

    /// Does what is due: timers, and packets on `lo` that earlier calls left over.
    pub fn advance(&mut self, now: Instant) {
        self.at(now);
    }

    /// When [`Stack::advance`] wants to be called; possibly in the past.
    pub fn next_deadline(&self) -> Option<Instant> {
        None
    }

    /// The next socket whose readiness may have changed. A socket is named once for each change
    /// since it was last named.
    pub fn ready(&mut self) -> Option<SocketId> {
        None
    }

    /// Makes a socket.
    ///
    /// # Errors
    ///
    /// `NoBufferSpace` if there are too many.
    pub fn open(&mut self, _kind: Kind) -> Result<SocketId> {
        Err(Error::NoBufferSpace)
    }

    /// Closes a socket. A connection ends in the background, unless [`Options::linger`] is zero or
    /// data has not been read.
    pub fn close(&mut self, _id: SocketId) {}

    /// Gives the socket an address. Port 0 means that the stack chooses one. An IPv6 address of a
    /// link has the interface as its scope. Privileges are the caller's business.
    ///
    /// # Errors
    ///
    /// `AddressInUse`, `AddressNotAvailable`, `AddressFamilyNotSupported`, `InvalidArgument` if
    /// it has one.
    pub fn bind(&mut self, _id: SocketId, _address: SocketAddress) -> Result<()> {
        Err(Error::NotFound)
    }

    /// Binds a packet socket to frames of one type at one interface, or at all.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NotSupported` for other sockets.
    pub fn bind_packet(
        &mut self,
        _id: SocketId,
        _protocol: u16,
        _interface: Option<InterfaceIndex>,
    ) -> Result<()> {
        Err(Error::NotFound)
    }

    /// Connects the socket to a peer.
    ///
    /// # Errors
    ///
    /// `AlreadyConnecting`, `AlreadyConnected`, `ConnectionRefused` (on `lo`), errors of routes, and
    /// those of [`Stack::bind`].
    pub fn connect(&mut self, _id: SocketId, _peer: SocketAddress) -> Result<Connect> {
        Err(Error::NotFound)
    }

    /// Makes a connected datagram socket an unconnected one (`AF_UNSPEC`); resets a connection.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    pub fn disconnect(&mut self, _id: SocketId) -> Result<()> {
        Err(Error::NotFound)
    }

    /// Makes a socket a listener, or changes its backlog.
    ///
    /// # Errors
    ///
    /// `NotSupported`, `InvalidArgument` if it is connected, `AddressInUse`.
    pub fn listen(&mut self, _id: SocketId, _backlog: usize) -> Result<()> {
        Err(Error::NotFound)
    }

    /// The next connection of a listener, with its peer.
    ///
    /// # Errors
    ///
    /// `WouldBlock`, `InvalidArgument` if the socket is no listener.
    pub fn accept(&mut self, _id: SocketId) -> Result<(SocketId, SocketAddress)> {
        Err(Error::NotFound)
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
        _id: SocketId,
        _data: &[u8],
        _to: Option<SocketAddress>,
        _flags: SendFlags,
    ) -> Result<usize> {
        Err(Error::NotFound)
    }

    /// Sends a frame by a packet socket: a whole frame or, if the socket is cooked, a payload to a
    /// hardware address.
    ///
    /// # Errors
    ///
    /// `MessageTooLong`, `NetworkDown`, `NoBufferSpace`, `NotFound`.
    pub fn send_frame(
        &mut self,
        _id: SocketId,
        _data: &[u8],
        _interface: InterfaceIndex,
        _protocol: u16,
        _to: [u8; 6],
    ) -> Result<usize> {
        Err(Error::NotFound)
    }

    /// Receives. The end of a stream is 0 bytes.
    ///
    /// # Errors
    ///
    /// `WouldBlock`, `NotConnected`, the socket's error; for urgent data `InvalidArgument` if there
    /// is none.
    pub fn receive_from(
        &mut self,
        _id: SocketId,
        _buffer: &mut [u8],
        _flags: ReceiveFlags,
    ) -> Result<Received> {
        Err(Error::NotFound)
    }

    /// Closes directions of a connection.
    ///
    /// # Errors
    ///
    /// `NotConnected`.
    pub fn shutdown(&mut self, _id: SocketId, _direction: Direction) -> Result<()> {
        Err(Error::NotFound)
    }

    /// The own address; unspecified with port 0 if there is none yet.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    pub fn local_address(&self, _id: SocketId) -> Result<SocketAddress> {
        Err(Error::NotFound)
    }

    /// The peer's address.
    ///
    /// # Errors
    ///
    /// `NotConnected`.
    pub fn peer_address(&self, _id: SocketId) -> Result<SocketAddress> {
        Err(Error::NotFound)
    }

    /// Takes the socket's error (`SO_ERROR`).
    pub fn take_error(&mut self, _id: SocketId) -> Option<Error> {
        None
    }

    /// Takes the next entry of the socket's queue of errors (`MSG_ERRQUEUE`).
    pub fn take_report(&mut self, _id: SocketId) -> Option<ErrorReport> {
        None
    }

    /// What the socket can do without waiting; of unknown sockets an error.
    pub fn readiness(&self, _id: SocketId) -> Readiness {
        Readiness { error: true, hup: true, ..Readiness::default() }
    }

    /// What is in the socket's queues.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    pub fn queued(&self, _id: SocketId) -> Result<Queued> {
        Err(Error::NotFound)
    }

    /// The socket's options.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    pub fn options(&self, _id: SocketId) -> Result<&Options> {
        Err(Error::NotFound)
    }

    /// Changes the socket's options; values that make no sense are brought into their range.
    ///
    /// # Errors
    ///
    /// `NotFound`.
    pub fn configure(&mut self, _id: SocketId, _change: impl FnOnce(&mut Options)) -> Result<()> {
        Err(Error::NotFound)
    }

    /// Joins a group, at the given interface or the one that a route to it leads to.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is no group, `AddressInUse` if it was joined, `NoBufferSpace`,
    /// `NotFound`.
    pub fn join(&mut self, _id: SocketId, _group: IpAddr, _interface: Option<InterfaceIndex>) -> Result<()> {
        Err(Error::NotFound)
    }

    /// Leaves a group.
    ///
    /// # Errors
    ///
    /// `AddressNotAvailable` if it was not joined.
    pub fn leave(&mut self, _id: SocketId, _group: IpAddr, _interface: Option<InterfaceIndex>) -> Result<()> {
        Err(Error::NotFound)
    }

    /// The state of a stream.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NotSupported`.
    pub fn state(&self, _id: SocketId) -> Result<State> {
        Err(Error::NotFound)
    }

    /// A stream, measured.
    ///
    /// # Errors
    ///
    /// `NotFound`, `NotSupported`.
    pub fn tcp_info(&self, _id: SocketId) -> Result<TcpInfo> {
        Err(Error::NotFound)
    }

    /// All sockets, half-open connections and those in TIME_WAIT.
    pub fn sockets(&self) -> Vec<SocketInfo> {
        Vec::new()
    }
}
