//! Sockets of all families, as the calls on sockets see them.

mod address;
pub(crate) mod inet;
mod message;
mod netlink;
pub(crate) mod packet;

pub(crate) use address::Address;
pub(crate) use message::{MessageFlags, Received, Sending};

use crate::layout::inet::{FAMILY_V4, FAMILY_V6, internet_address};
use crate::layout::socket::{self, FAMILY_UNIX, socket_type};
use alloc::sync::Arc;
use netlink::{FAMILY_NETLINK, NetlinkAddress, NetlinkSocket};
use packet::{FAMILY_PACKET, PacketSocket};
use unix::file::OpenFile;
use unix::socket::{
    InetSocket, PeerCredentials, ReceiveHow, SendHow, Shutdown, SocketOptions, SocketType, UnixSocket,
};
use unix::vfs::{Caller, FileType, OpenFlags};
use unix::{AttemptError, Error, Result, UserBuffer, resolve_message};

/// A socket, by its family.
#[derive(Clone)]
pub(crate) enum Socket {
    Unix(Arc<UnixSocket>),
    Internet(Arc<InetSocket>),
    Netlink(Arc<NetlinkSocket>),
    Packet(Arc<PacketSocket>),
}

/// Whether the file is a socket, of any family.
pub(crate) fn is_socket(file: &OpenFile) -> bool {
    file.object().is_some_and(|object| object.file_type() == FileType::Socket)
}

/// Makes a socket, from the arguments of socket(2). `EAFNOSUPPORT`, `EPROTONOSUPPORT`,
/// `ESOCKTNOSUPPORT`, `EINVAL`, and errors of the family.
pub(crate) fn create(
    caller: &Caller<'_>,
    family: u32,
    kind: u32,
    protocol: i32,
    flags: OpenFlags,
) -> Result<Arc<OpenFile>> {
    match u16::try_from(family) {
        Ok(FAMILY_UNIX) => unix::socket::socket(caller, unix_type(kind, protocol)?, flags),
        Ok(FAMILY_V4) => inet::create(caller, false, kind, protocol, flags),
        Ok(FAMILY_V6) => inet::create(caller, true, kind, protocol, flags),
        Ok(FAMILY_NETLINK) => netlink::create(caller, kind, protocol, flags),
        Ok(FAMILY_PACKET) => packet::create(caller, kind, protocol, flags),
        _ => Err(Error::EAFNOSUPPORT),
    }
}

/// The type of a socket of the Unix domain. `EINVAL`, `EPROTONOSUPPORT`, `ESOCKTNOSUPPORT`.
pub(crate) fn unix_type(kind: u32, protocol: i32) -> Result<SocketType> {
    let kind = socket_type(kind);
    if kind != Err(Error::EINVAL) && protocol != 0 && protocol != i32::from(FAMILY_UNIX) {
        return Err(Error::EPROTONOSUPPORT);
    }
    kind
}

/// The number of a state of TCP (TCP_ESTABLISHED and so on).
pub(crate) fn state_number(state: ::inet::State) -> u8 {
    use ::inet::State;
    match state {
        State::Established => 1,
        State::SynSent => 2,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait => 6,
        State::Closed => 7,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Listen => 10,
        State::Closing => 11,
    }
}

impl Socket {
    /// The socket that the file is; `None` if it is another kind of file.
    pub(crate) fn of(file: &OpenFile) -> Option<Socket> {
        let internet = || file.object_as().map(Socket::Internet);
        let netlink = || file.object_as().map(Socket::Netlink);
        let packet = || file.object_as().map(Socket::Packet);
        file.object_as().map(Socket::Unix).or_else(internet).or_else(netlink).or_else(packet)
    }

    /// The socket of the stack that this is, or that it is made of.
    pub(crate) fn of_stack(&self) -> Option<&InetSocket> {
        match self {
            Socket::Internet(socket) => Some(socket),
            Socket::Packet(socket) => Some(socket.inner()),
            Socket::Unix(_) | Socket::Netlink(_) => None,
        }
    }

    /// The number of the socket's family.
    pub(crate) fn family(&self) -> u16 {
        match self {
            Socket::Unix(_) => FAMILY_UNIX,
            Socket::Internet(socket) if socket.is_v6() => FAMILY_V6,
            Socket::Internet(_) => FAMILY_V4,
            Socket::Netlink(_) => FAMILY_NETLINK,
            Socket::Packet(_) => FAMILY_PACKET,
        }
    }

    /// The number of the protocol of the socket (SO_PROTOCOL).
    pub(crate) fn protocol(&self) -> u32 {
        match self {
            Socket::Unix(_) => 0,
            Socket::Internet(socket) => inet::protocol(socket),
            Socket::Netlink(socket) => socket.protocol(),
            Socket::Packet(socket) => socket.protocol(),
        }
    }

    /// The type of the socket.
    pub(crate) fn kind(&self) -> SocketType {
        match self {
            Socket::Unix(socket) => socket.kind(),
            Socket::Internet(socket) => socket.kind(),
            Socket::Netlink(socket) => socket.kind(),
            Socket::Packet(socket) => socket.inner().kind(),
        }
    }

    /// Whether the socket transfers a stream of bytes.
    pub(crate) fn is_stream(&self) -> bool {
        self.kind() == SocketType::Stream
    }

    /// The options of the socket that all families have.
    pub(crate) fn options(&self) -> SocketOptions {
        match self {
            Socket::Unix(socket) => socket.options(),
            Socket::Internet(socket) => socket.options(),
            Socket::Netlink(socket) => socket.options(),
            Socket::Packet(socket) => socket.inner().options(),
        }
    }

    /// Changes the options that all families have.
    pub(crate) fn set_options(&self, options: SocketOptions) {
        match self {
            Socket::Unix(socket) => socket.set_options(options),
            Socket::Internet(socket) => socket.set_options(options),
            Socket::Netlink(socket) => socket.set_options(options),
            Socket::Packet(socket) => socket.inner().set_options(options),
        }
    }

    /// Returns and clears the pending error (SO_ERROR).
    pub(crate) fn take_error(&self) -> Option<Error> {
        match self {
            Socket::Unix(socket) => socket.take_error(),
            Socket::Internet(socket) => socket.take_error(),
            Socket::Packet(socket) => socket.inner().take_error(),
            Socket::Netlink(_) => None,
        }
    }

    /// Whether the socket listens (SO_ACCEPTCONN).
    pub(crate) fn is_listening(&self) -> bool {
        match self {
            Socket::Unix(socket) => socket.is_listening(),
            Socket::Internet(socket) => socket.is_listening(),
            Socket::Netlink(_) | Socket::Packet(_) => false,
        }
    }

    /// The credentials of the process at the other end (SO_PEERCRED).
    pub(crate) fn peer_credentials(&self) -> Option<PeerCredentials> {
        match self {
            Socket::Unix(socket) => socket.peer_credentials(),
            Socket::Internet(_) | Socket::Netlink(_) | Socket::Packet(_) => None,
        }
    }

    /// The socket's own address.
    pub(crate) fn address(&self) -> Result<Address> {
        match self {
            Socket::Unix(socket) => Ok(Address::Unix(socket.address())),
            Socket::Internet(socket) => socket.address().map(Address::Internet),
            Socket::Netlink(socket) => Ok(Address::Netlink(socket.address())),
            Socket::Packet(socket) => Ok(Address::Packet(socket.address())),
        }
    }

    /// The address of the socket at the other end. `ENOTCONN`.
    pub(crate) fn peer_address(&self) -> Result<Address> {
        match self {
            Socket::Unix(socket) => socket.peer_address().map(Address::Unix),
            Socket::Internet(socket) => socket.peer_address().map(Address::Internet),
            // The peer is the system.
            Socket::Netlink(_) => Ok(Address::Netlink(NetlinkAddress::default())),
            Socket::Packet(_) => Err(Error::EOPNOTSUPP),
        }
    }

    /// Gives the socket the address in these bytes.
    pub(crate) async fn bind(&self, caller: &Caller<'_>, bytes: &[u8]) -> Result<()> {
        match self {
            Socket::Unix(socket) => socket.bind(caller, socket::address(bytes)?).await,
            Socket::Internet(socket) => socket.bind(caller, internet_address(bytes, socket.is_v6())?),
            Socket::Netlink(socket) => socket.bind(caller, bytes),
            Socket::Packet(socket) => socket.bind(bytes),
        }
    }

    /// Makes the socket accept connections.
    pub(crate) fn listen(&self, caller: &Caller<'_>, backlog: usize) -> Result<()> {
        match self {
            Socket::Unix(socket) => socket.listen(caller, backlog),
            Socket::Internet(socket) => socket.listen(backlog),
            Socket::Netlink(_) | Socket::Packet(_) => Err(Error::EOPNOTSUPP),
        }
    }

    /// Connects to the address in these bytes; one without a family ends the connection of a
    /// datagram socket.
    pub(crate) async fn connect(&self, caller: &Caller<'_>, bytes: &[u8], nonblock: bool) -> Result<()> {
        match self {
            Socket::Unix(socket) => {
                let name = address::of_peer(bytes, socket.kind() == SocketType::Datagram)?;
                socket.connect(caller, &name, nonblock).await
            }
            Socket::Internet(socket) => socket.connect(caller, inet::of_peer(socket, bytes)?, nonblock).await,
            Socket::Netlink(socket) => socket.connect(caller, bytes),
            Socket::Packet(_) => Err(Error::EOPNOTSUPP),
        }
    }

    /// Takes a connection that is to be accepted. `flags` are the new file's status flags.
    pub(crate) async fn accept(
        &self,
        caller: &Caller<'_>,
        nonblock: bool,
        flags: OpenFlags,
    ) -> Result<Arc<OpenFile>> {
        match self {
            Socket::Unix(socket) => socket.accept(caller, nonblock, flags).await,
            Socket::Internet(socket) => socket.accept(caller, nonblock, flags).await,
            Socket::Netlink(_) | Socket::Packet(_) => Err(Error::EOPNOTSUPP),
        }
    }

    /// Ends one half of the connection, or both.
    pub(crate) fn shutdown(&self, how: Shutdown) -> Result<()> {
        match self {
            Socket::Unix(socket) => {
                socket.shutdown(how);
                Ok(())
            }
            Socket::Internet(socket) => socket.shutdown(how),
            Socket::Netlink(_) | Socket::Packet(_) => Err(Error::EOPNOTSUPP),
        }
    }

    /// Sends a message, or bytes of a stream. Returns how many bytes were sent.
    pub(crate) async fn send(
        &self,
        caller: &Caller<'_>,
        from: &mut dyn UserBuffer,
        sending: Sending,
    ) -> Result<usize> {
        match self {
            Socket::Unix(socket) => {
                if sending.flags.contains(MessageFlags::OUT_OF_BAND) {
                    return Err(Error::EOPNOTSUPP);
                }
                let destination = match &sending.destination {
                    Some(bytes) => Some(socket::address(bytes)?),
                    None => None,
                };
                let how = SendHow {
                    destination,
                    files: sending.files,
                    descriptor_limit: sending.descriptor_limit,
                    credentials: sending.control.credentials,
                    nonblock: sending.nonblock,
                };
                socket.send(caller, from, how).await
            }
            Socket::Internet(socket) => inet::send(socket, caller, from, sending).await,
            Socket::Netlink(_) | Socket::Packet(_) => loop {
                let attempt = match self {
                    Socket::Packet(socket) => socket.try_send(from, sending.destination.as_deref()),
                    Socket::Netlink(socket) => socket.send(caller, from, &sending),
                    _ => return Err(Error::EOPNOTSUPP),
                };
                match attempt {
                    Ok(count) => return Ok(count),
                    Err(AttemptError::Failed(error)) => return Err(error),
                    Err(_) => {
                        let count = from.remaining();
                        resolve_message(from, count, false).await?;
                    }
                }
            },
        }
    }

    /// Receives a message, or bytes of a stream.
    pub(crate) async fn receive(
        &self,
        caller: &Caller<'_>,
        to: &mut dyn UserBuffer,
        flags: MessageFlags,
        nonblock: bool,
    ) -> Result<Received> {
        match self {
            Socket::Unix(socket) => {
                if flags.contains(MessageFlags::OUT_OF_BAND) {
                    return Err(Error::EOPNOTSUPP);
                }
                let (peek, wait_all) =
                    (flags.contains(MessageFlags::PEEK), flags.contains(MessageFlags::WAIT_ALL));
                let received = socket.receive(caller, to, ReceiveHow { peek, wait_all, nonblock }).await?;
                Ok(Received::of_unix(socket, received))
            }
            Socket::Internet(socket) => inet::receive(socket, caller, to, flags, nonblock).await,
            Socket::Netlink(socket) => socket.receive(caller, to, flags, nonblock).await,
            Socket::Packet(socket) => socket.receive(caller, to, flags, nonblock).await,
        }
    }
}
