//! The results of `mach_msg`.

bitflags::bitflags! {
    /// What a task had no room for when the parts of a message were put into it. The bits are added
    /// to the code of the error.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Shortage: u32 {
        /// No room for the pages in the address space.
        const VM_SPACE = 0x1000;
        /// No name for a right.
        const IPC_SPACE = 0x2000;
    }
}

/// What kept a message from being sent or received, with Mach's numbers. A sender whose message was
/// not sent has every right and page of it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum MsgErrorKind {
    /// The message could not be read.
    SendInvalidData = 0x1000_0002,
    /// The destination's name denotes no right to send.
    SendInvalidDest = 0x1000_0003,
    /// The queue was full until the time ran out.
    SendTimedOut = 0x1000_0004,
    /// The queue is full, but the message is in it; a notification says when it has left.
    SendWillNotify = 0x1000_0005,
    /// The queue is full, and an earlier message of the task is in it beyond its limit.
    SendNotifyInProgress = 0x1000_0006,
    /// The sender was interrupted while it waited for room in the queue.
    SendInterrupted = 0x1000_0007,
    /// The size is less than a header's, is no multiple of 4, or does not hold what the descriptors
    /// announce.
    SendMsgTooSmall = 0x1000_0008,
    /// The reply port's name does not denote the right to be sent.
    SendInvalidReply = 0x1000_0009,
    /// A name in the body does not denote the right to be sent.
    SendInvalidRight = 0x1000_000a,
    /// The port for the notification is no receive right.
    SendInvalidNotify = 0x1000_000b,
    /// Memory out of line could not be read.
    SendInvalidMemory = 0x1000_000c,
    /// No memory for the message.
    SendNoBuffer = 0x1000_000d,
    /// A descriptor has no meaning.
    SendInvalidType = 0x1000_000f,
    /// The header's bits have no meaning.
    SendInvalidHeader = 0x1000_0010,
    /// The name denotes neither a receive right nor a port set.
    ReceiveInvalidName = 0x1000_4002,
    /// No message came in time.
    ReceiveTimedOut = 0x1000_4003,
    /// The message is larger than the buffer.
    ReceiveTooLarge = 0x1000_4004,
    /// The receiver was interrupted while it waited.
    ReceiveInterrupted = 0x1000_4005,
    /// The port was moved into a set while the receiver waited for it.
    ReceivePortChanged = 0x1000_4006,
    /// The port for the notification is no receive right.
    ReceiveInvalidNotify = 0x1000_4007,
    /// The message could not be written to the buffer.
    ReceiveInvalidData = 0x1000_4008,
    /// The port or set has gone while the receiver waited.
    ReceivePortDied = 0x1000_4009,
    /// The port is a member of a set; only the set can be received from.
    ReceiveInSet = 0x1000_400a,
    /// There was no room for the header's rights.
    ReceiveHeaderError = 0x1000_400b,
    /// There was no room for some of the body's rights or memory; the rest was received.
    ReceiveBodyError = 0x1000_400c,
}

/// Why a message was not sent or not received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MsgError {
    /// The reason.
    pub kind: MsgErrorKind,
    /// What there was no room for when the message was moved into the task, or back.
    pub shortage: Shortage,
}

impl MsgError {
    /// The number of the error in Mach's interface.
    pub fn code(self) -> u32 {
        self.kind as u32 | self.shortage.bits()
    }
}

impl From<MsgErrorKind> for MsgError {
    fn from(kind: MsgErrorKind) -> Self {
        Self { kind, shortage: Shortage::empty() }
    }
}

impl core::fmt::Display for MsgError {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "{:?} ({:#x})", self.kind, self.code())
    }
}

impl core::error::Error for MsgError {}
