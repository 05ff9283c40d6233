//! Why a request failed.

use core::fmt;

/// Why the stack refused a request, or why a connection ended, by POSIX' names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Error {
    /// The address or the port belongs to another socket.
    AddressInUse,
    /// The address is none of this system's.
    AddressNotAvailable,
    /// The address is of another family than the socket.
    AddressFamilyNotSupported,
    /// A connection is being made already.
    AlreadyConnecting,
    /// The identifier names no socket, interface, address or route.
    NotFound,
    /// The request makes no sense for this socket, or in its state.
    InvalidArgument,
    /// The stack cannot do this for this kind of socket.
    NotSupported,
    /// The socket is connected already.
    AlreadyConnected,
    /// The socket is not connected.
    NotConnected,
    /// A datagram was sent without a destination.
    DestinationRequired,
    /// The datagram is larger than the socket or the path takes.
    MessageTooLong,
    /// The request would have to wait for data, for space or for a connection.
    WouldBlock,
    /// A limit of the stack or of the socket is reached.
    NoBufferSpace,
    /// No route leads to the destination, or a router said so.
    NetworkUnreachable,
    /// The destination, or a router for it, does not answer.
    HostUnreachable,
    /// The interface is down.
    NetworkDown,
    /// The peer has no socket at this port.
    ConnectionRefused,
    /// The peer has ended the connection.
    ConnectionReset,
    /// The connection was ended on this side before it was made.
    ConnectionAborted,
    /// The peer did not answer in time.
    TimedOut,
    /// The connection is closed for sending.
    BrokenPipe,
    /// The socket lacks the option that the request needs (broadcasts).
    AccessDenied,
    /// An entry like this one exists already.
    Exists,
    /// The peer or a router did not understand the packet.
    ProtocolError,
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Error::AddressInUse => "the address is in use",
            Error::AddressNotAvailable => "the address is none of this system's",
            Error::AddressFamilyNotSupported => "the address is of another family",
            Error::AlreadyConnecting => "a connection is being made already",
            Error::NotFound => "there is no such thing",
            Error::InvalidArgument => "the request is invalid",
            Error::NotSupported => "the request is not supported",
            Error::AlreadyConnected => "the socket is connected already",
            Error::NotConnected => "the socket is not connected",
            Error::DestinationRequired => "a destination is required",
            Error::MessageTooLong => "the message is too long",
            Error::WouldBlock => "the request would block",
            Error::NoBufferSpace => "there is no buffer space",
            Error::NetworkUnreachable => "the network is unreachable",
            Error::HostUnreachable => "the host is unreachable",
            Error::NetworkDown => "the network is down",
            Error::ConnectionRefused => "the connection was refused",
            Error::ConnectionReset => "the peer reset the connection",
            Error::ConnectionAborted => "the connection was aborted",
            Error::TimedOut => "the peer did not answer in time",
            Error::BrokenPipe => "the connection is closed for sending",
            Error::AccessDenied => "the socket is not allowed to do this",
            Error::Exists => "it exists already",
            Error::ProtocolError => "the peer did not understand the packet",
        })
    }
}

impl core::error::Error for Error {}

/// What requests to the stack answer.
pub type Result<T> = core::result::Result<T, Error>;
