//! The errors of `mach_msg`.

bitflags::bitflags! {
    /// What a task had no room for when the rights and the memory of a message were moved into the
    /// task. Mach adds these bits to the code of the error.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Shortage: u32 {
        /// The address space had no room for the memory.
        const VM_SPACE = 0x1000;
        /// The name space had no room for a right.
        const IPC_SPACE = 0x2000;
    }
}

/// The kinds of errors of `mach_msg`, with Mach's numbers. A sender whose message was not sent has
/// all rights and pages of the message back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum MsgErrorKind {
    /// The message in the sender's memory could not be read.
    SendInvalidData = 0x1000_0002,
    /// The destination's name denotes no right by which a message can be sent.
    SendInvalidDest = 0x1000_0003,
    /// The queue was full until the sender's time ran out.
    SendTimedOut = 0x1000_0004,
    /// The queue is full and the message is in it nevertheless. A notification will tell when the
    /// message has left the queue.
    SendWillNotify = 0x1000_0005,
    /// The queue is full, and an earlier message that the task sent beyond the limit is still in
    /// it.
    SendNotifyInProgress = 0x1000_0006,
    /// The sender was interrupted while it waited for room in the queue.
    SendInterrupted = 0x1000_0007,
    /// The size of the message is less than that of a header, is no multiple of 4, or is too small
    /// for what the descriptors announce.
    SendMsgTooSmall = 0x1000_0008,
    /// The reply port's name does not denote a right that the disposition can send.
    SendInvalidReply = 0x1000_0009,
    /// A name in the body does not denote a right that the disposition can send.
    SendInvalidRight = 0x1000_000a,
    /// The name for the notification that the sender asks for denotes no receive right.
    SendInvalidNotify = 0x1000_000b,
    /// Memory out of line of the sender could not be read.
    SendInvalidMemory = 0x1000_000c,
    /// There is no memory for the message, or the task may not use more.
    SendNoBuffer = 0x1000_000d,
    /// A type descriptor is not valid.
    SendInvalidType = 0x1000_000f,
    /// The bits of the header are not valid.
    SendInvalidHeader = 0x1000_0010,
    /// The name to receive from denotes neither a receive right nor a port set.
    ReceiveInvalidName = 0x1000_4002,
    /// No message came until the receiver's time ran out.
    ReceiveTimedOut = 0x1000_4003,
    /// The message is larger than the receiver's buffer.
    ReceiveTooLarge = 0x1000_4004,
    /// The receiver was interrupted while it waited.
    ReceiveInterrupted = 0x1000_4005,
    /// The port was moved into a set while the receiver waited for it.
    ReceivePortChanged = 0x1000_4006,
    /// The name for the notification that the receiver asks for denotes no receive right.
    ReceiveInvalidNotify = 0x1000_4007,
    /// The message could not be written into the receiver's buffer.
    ReceiveInvalidData = 0x1000_4008,
    /// The task lost the port or the port set while the receiver waited.
    ReceivePortDied = 0x1000_4009,
    /// The port is a member of a port set; its messages can be received only from the set.
    ReceiveInSet = 0x1000_400a,
    /// The receiver's name space had no room for the rights of the header.
    ReceiveHeaderError = 0x1000_400b,
    /// The receiver had no room for some rights or some memory of the body. The rest was received.
    ReceiveBodyError = 0x1000_400c,
}

/// The error of a message that was not sent or not received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MsgError {
    /// The kind of the error.
    pub kind: MsgErrorKind,
    /// What the task had no room for when a received message was moved into it, or a message that
    /// was not sent was moved back.
    pub shortage: Shortage,
}

impl MsgError {
    /// The code of the error in Mach's interface.
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
