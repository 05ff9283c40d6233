//! What a thread will do next: the kernel keeps no stack for a thread that waits (K2), only this
//! value.

use crate::syscall::Call;

/// What kind of IPC a thread performs, and therefore where its words come from, where they go, and
/// what follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum IpcKind {
    /// The Ipc system call: words in the message registers.
    User,
    /// The kernel tells the thread's pager of a page fault and awaits the mapping (ABI 13, X.2 rule
    /// 12.2).
    PageFault,
    /// The kernel tells the thread's pager of a forbidden access to I/O ports and awaits the ports
    /// (X.2 rule 12.8).
    PortFault,
    /// The kernel tells the thread's exception handler and awaits the registers (X.2 rule 11.1).
    Exception,
    /// The kernel tells the thread's exception handler of a foreign system call and awaits the
    /// answer (K9).
    SystemCall,
    /// The kernel tells the thread's scheduler that its total quantum is used up (X.2 rule 3.19).
    /// Nothing is awaited.
    Quantum,
    /// The kernel tells the thread's exception handler that it was preempted (X.2 rule 4.9).
    /// Nothing is awaited.
    Preemption,
    /// An activated thread awaits its first IP and SP from its pager (X.2 rule 5.12).
    Start,
}

/// What a thread does when it is next given the processor, or what it waits for.
///
/// A thread whose continuation is `Send` or a `Transfer` it does not drive is never ready.
/// `Receive` is waiting, or, when the thread is in the ready queue, "look at the senders first": in
/// both cases a sender may deliver to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Continuation {
    /// The thread is not activated: it has no UTCB and never runs.
    Inactive,
    /// Runs at user level with the registers in its TCB.
    ReturnToUser,
    /// Queued at `partner`, until that thread receives from it; or, if it is redirected, at the
    /// redirector, or nowhere if there is none.
    Send(IpcKind),
    /// Receives a message from `partner`.
    Receive(IpcKind),
    /// The thread's message is being moved to its partner; an interrupt came in between.
    SendTransfer(IpcKind),
    /// The partner's message is being moved to the thread; an interrupt came in between.
    ReceiveTransfer(IpcKind),
    /// Sends the exception message for the exception in `fault`.
    RaiseException,
    /// Tells its pager of the page in `fault`, which is missing in a transfer that it is a side of.
    RaiseFault,
    /// The thread goes on with a transfer, after it has told its pager of a missing page.
    ResumeTransfer,
    /// Goes on with a system call that gave way to an interrupt; its state is in the transfer
    /// record.
    SystemCall,
    /// Looks once more where its message, which it was waiting to send, goes: the redirector has
    /// changed, or the thread has gone to the processor where its partner is.
    SendAgain(IpcKind),
    /// Makes a system call again, on the processor where the thread has gone for that.
    Call(Call),
}

impl Continuation {
    /// The IPC that the thread is sending, or waiting to send, in.
    pub fn sending(self) -> Option<IpcKind> {
        match self {
            Self::Send(kind) | Self::SendAgain(kind) | Self::SendTransfer(kind) => Some(kind),
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
