//! What a thread will do next: the kernel keeps no stack for a thread that waits (K2), only this value.

/// Who performs an IPC, and therefore where its words come from, where they go, and what follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum IpcKind {
    /// The Ipc system call: words in the message registers.
    User,
    /// The kernel tells the thread's pager of a page fault and awaits the mapping (ABI 13, X.2 rule 12.2).
    PageFault,
    /// The kernel tells the thread's pager of a forbidden access to I/O ports and awaits the ports (X.2 rule 12.8).
    PortFault,
    /// The kernel tells the thread's exception handler and awaits the registers (X.2 rule 11.1).
    Exception,
    /// The kernel tells the thread's exception handler of a foreign system call and awaits the answer (K9).
    SystemCall,
    /// The kernel tells the thread's scheduler that its total quantum is used up (X.2 rule 3.19). Nothing is awaited.
    Quantum,
    /// The kernel tells the thread's exception handler that it was preempted (X.2 rule 4.9). Nothing is awaited.
    Preemption,
    /// An activated thread awaits its first IP and SP from its pager (X.2 rule 5.12).
    Start,
}

/// What a thread does when it is next given the processor, or what it waits for.
///
/// A thread whose continuation is `Send` or a `Transfer` it does not drive is never ready. `Receive` is waiting, or,
/// when the thread is in the ready queue, "look at the senders first": in both cases a sender may deliver to it.
///
/// Entry code knows the layout: the number of the variant, then that of the [`IpcKind`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Continuation {
    /// Not activated: it has no UTCB and never runs.
    Inactive,
    /// Runs at user level with the registers in its TCB.
    ReturnToUser = Self::RETURN_TO_USER,
    /// Queued at `partner`, until that thread receives from it.
    Send(IpcKind),
    /// Receives from `partner`.
    Receive(IpcKind) = Self::RECEIVE,
    /// Its message is being moved to its partner; an interrupt came in between.
    SendTransfer(IpcKind),
    /// Its partner's message is being moved to it; an interrupt came in between.
    ReceiveTransfer(IpcKind),
    /// Sends the exception message for the exception in `fault`.
    RaiseException,
    /// Tells its pager of the page in `fault`, which is missing in a transfer that it is a side of.
    RaiseFault,
    /// Goes on with a transfer, after it has told its pager.
    ResumeTransfer,
    /// Goes on with a system call that gave way to an interrupt; its state is in the transfer record.
    SystemCall,
}

impl Continuation {
    /// The number of `ReturnToUser`.
    pub const RETURN_TO_USER: u8 = 1;
    const RECEIVE: u8 = 3;
    /// The two bytes of `Receive(IpcKind::User)`.
    pub const RECEIVE_USER: u16 = Self::RECEIVE as u16 | (IpcKind::User as u16) << 8;

    /// The IPC that the thread is sending, or waiting to send, in.
    pub fn sending(self) -> Option<IpcKind> {
        match self {
            Self::Send(kind) | Self::SendTransfer(kind) => Some(kind),
            _ => None,
        }
    }

    /// The IPC that the thread is receiving, or waiting to receive, in.
    pub fn receiving(self) -> Option<IpcKind> {
        match self {
            Self::Receive(kind) | Self::ReceiveTransfer(kind) => Some(kind),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_code_knows_the_layout() {
        let bytes = |continuation: Continuation| {
            let first = core::ptr::from_ref(&continuation).cast::<u8>();
            // SAFETY: with this representation the first byte is the variant's number.
            unsafe { *first }
        };
        assert_eq!(bytes(Continuation::ReturnToUser), Continuation::RETURN_TO_USER);
        for kind in [IpcKind::User, IpcKind::Start] {
            let continuation = Continuation::Receive(kind);
            let both = core::ptr::from_ref(&continuation).cast::<[u8; 2]>();
            // SAFETY: with this representation the second byte is the only field of this variant.
            let both = u16::from_le_bytes(unsafe { *both });
            assert_eq!(both == Continuation::RECEIVE_USER, kind == IpcKind::User);
        }
    }
}
