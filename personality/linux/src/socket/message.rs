//! What the calls that send and receive pass along with the bytes.

use super::Address;
use crate::layout::socket::Control;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bitflags::bitflags;
use unix::file::OpenFile;
use unix::socket::{self, PeerCredentials, SocketType, UnixAddress, UnixSocket};

bitflags! {
    /// The flags of send(2) and recv(2), by Linux' numbers. Others are ignored, as by Linux.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct MessageFlags: u32 {
        /// Urgent data (MSG_OOB).
        const OUT_OF_BAND = 1;
        /// What is received stays in the queue.
        const PEEK = 2;
        /// No router is used (MSG_DONTROUTE).
        const DONT_ROUTE = 4;
        /// Control messages were cut (MSG_CTRUNC).
        const CONTROL_TRUNCATED = 8;
        /// A message was cut, or its whole length is asked for.
        const TRUNCATED = 0x20;
        /// The call does not wait.
        const DONT_WAIT = 0x40;
        /// A receive waits until its buffer is full.
        const WAIT_ALL = 0x100;
        /// An entry of the queue of errors is received (MSG_ERRQUEUE).
        const ERROR_QUEUE = 0x2000;
        /// A send without a receiver causes no signal.
        const NO_SIGNAL = 0x4000;
        /// More bytes will follow (MSG_MORE).
        const MORE = 0x8000;
        /// A receive of several messages waits for the first only.
        const WAIT_FOR_ONE = 0x1_0000;
        /// Descriptors that are received are closed by exec.
        const CLOSE_ON_EXEC = 0x4000_0000;
    }
}

/// What is sent along with the bytes, and how.
pub(crate) struct Sending {
    /// The bytes of the receiver's address; `None` for the connected peer.
    pub(crate) destination: Option<Vec<u8>>,
    /// The control messages.
    pub(crate) control: Control,
    /// The open files that the control messages name.
    pub(crate) files: Vec<Arc<OpenFile>>,
    /// The sender's limit of descriptors.
    pub(crate) descriptor_limit: u64,
    /// The flags of the call.
    pub(crate) flags: MessageFlags,
    /// Whether to fail with `EAGAIN` instead of waiting.
    pub(crate) nonblock: bool,
}

impl Sending {
    /// Bytes that go to `destination` with nothing else.
    pub(crate) fn to(destination: Option<Vec<u8>>, flags: MessageFlags) -> Sending {
        Sending {
            destination,
            control: Control::default(),
            files: Vec::new(),
            descriptor_limit: 0,
            flags,
            nonblock: false,
        }
    }
}

/// What a receive returns in addition to the bytes.
#[derive(Default)]
pub(crate) struct Received {
    /// How many bytes were copied to the receiver.
    pub(crate) count: usize,
    /// The length of the whole message.
    pub(crate) length: usize,
    /// The sender's address; `None` if it has no name.
    pub(crate) source: Option<Address>,
    /// The files that were passed with the message.
    pub(crate) files: Vec<Arc<OpenFile>>,
    /// The credentials of the sender, if the receiver asked for them.
    pub(crate) credentials: Option<PeerCredentials>,
    /// Other control messages: level, type and data of each.
    pub(crate) control: Vec<(u32, u32, Vec<u8>)>,
    /// Flags that recvmsg(2) returns in addition to those that follow from the above.
    pub(crate) shown: MessageFlags,
}

impl Default for MessageFlags {
    fn default() -> MessageFlags {
        MessageFlags::empty()
    }
}

impl Received {
    /// What a socket of the Unix domain has received.
    pub(super) fn of_unix(socket: &UnixSocket, received: socket::Received) -> Received {
        let source = match socket.kind() {
            SocketType::Stream => socket.peer_address().unwrap_or_default(),
            _ => received.source,
        };
        Received {
            count: received.count,
            length: received.length,
            source: (source != UnixAddress::Unnamed).then_some(Address::Unix(source)),
            files: received.files,
            credentials: received.credentials.filter(|_| socket.options().pass_credentials),
            ..Received::default()
        }
    }
}
