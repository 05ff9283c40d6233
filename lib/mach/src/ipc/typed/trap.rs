//! `mach_msg`.

use alloc::sync::Arc;

use super::incoming::{self, Receiver};
use super::outgoing;
use crate::ipc::receive::NotReceived;
use crate::ipc::{Interruption, MsgError, MsgErrorKind, Name, Space, UserMemory};
use crate::machine::Machine;

bitflags::bitflags! {
    /// What `mach_msg` is to do.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct MsgOptions: u32 {
        /// Send the message.
        const SEND = 0x1;
        /// Receive a message, after one was sent if both are asked for.
        const RECEIVE = 0x2;
        /// Wait for room in the queue only for the given time.
        const SEND_TIMEOUT = 0x10;
        /// If the queue stays full, send nevertheless and be told when the message has left.
        const SEND_NOTIFY = 0x20;
        /// The library does not send again after an interruption.
        const SEND_INTERRUPT = 0x40;
        /// The port is not told of the end of the destination's name by this message.
        const SEND_CANCEL = 0x80;
        /// Wait for a message only for the given time.
        const RECEIVE_TIMEOUT = 0x100;
        /// Tell the port when the received reply port dies.
        const RECEIVE_NOTIFY = 0x200;
        /// The library does not receive again after an interruption.
        const RECEIVE_INTERRUPT = 0x400;
        /// A message that is too large stays in the queue; the size is told.
        const RECEIVE_LARGE = 0x800;
    }
}

/// The arguments of `mach_msg`.
#[derive(Clone, Copy, Debug)]
pub struct MsgArguments {
    /// Where the message is and goes.
    pub address: u64,
    /// What to do. Bits that have no meaning are ignored.
    pub options: MsgOptions,
    /// Bytes to send.
    pub send_size: u32,
    /// Bytes that can be received.
    pub receive_size: u32,
    /// The port or set to receive from.
    pub receive_name: Name,
    /// Milliseconds for each wait that has a time-out.
    pub timeout: u32,
    /// The receive right that notifications go to.
    pub notify: Name,
}

/// What `mach_msg` returns.
pub type MsgResult = Result<(), MsgError>;

/// Sends a message, receives one, or both: the trap `mach_msg`. Waits for room in the queue and for
/// a message, unless time-outs or `interruption` end that. If sending fails nothing is received,
/// and what the message carried is the task's again; a message that was to be taken from names and
/// memory is at the address in the form in which it can be sent once more.
///
/// Dropped before its end, as when the thread ends, what is in transit ends.
///
/// # Errors
/// Those of sending and of receiving.
pub async fn mach_msg<M: Machine, U: UserMemory<M>>(
    space: &Arc<Space<M>>,
    memory: &U,
    arguments: &MsgArguments,
    interruption: &Interruption,
) -> MsgResult {
    if arguments.options.contains(MsgOptions::SEND) {
        send(space, memory, arguments, interruption).await?;
    }
    if arguments.options.contains(MsgOptions::RECEIVE) {
        receive(space, memory, arguments, interruption).await?;
    }
    Ok(())
}

/// The time when a wait ends that has a time-out.
fn end<M: Machine>(space: &Space<M>, milliseconds: u32) -> u64 {
    match milliseconds {
        0 => 0,
        milliseconds => space.ipc().machine().now() + u64::from(milliseconds) * 1000,
    }
}

async fn send<M: Machine, U: UserMemory<M>>(
    space: &Arc<Space<M>>,
    memory: &U,
    arguments: &MsgArguments,
    interruption: &Interruption,
) -> MsgResult {
    let options = arguments.options;
    let cancel = options.contains(MsgOptions::SEND_CANCEL).then_some(arguments.notify);
    let message = outgoing::message(space, memory, arguments.address, arguments.send_size, cancel).await?;
    let beyond_limit = options.contains(MsgOptions::SEND_NOTIFY);
    let until = match options.contains(MsgOptions::SEND_TIMEOUT) {
        true => Some(end(space, arguments.timeout)),
        false => beyond_limit.then_some(0),
    };
    let mut result = space.send(message, until, interruption).await;
    if beyond_limit && let Err((MsgErrorKind::SendTimedOut, message)) = result {
        result = space.send_beyond_limit(message, arguments.notify);
        if result.is_ok() {
            return Err(MsgErrorKind::SendWillNotify.into());
        }
    }
    let Err((kind, message)) = result else { return Ok(()) };
    let sender = Receiver { space, memory, address: arguments.address, room: arguments.send_size };
    let shortage = sender.give_back(message).await;
    Err(MsgError { kind, shortage })
}

async fn receive<M: Machine, U: UserMemory<M>>(
    space: &Arc<Space<M>>,
    memory: &U,
    arguments: &MsgArguments,
    interruption: &Interruption,
) -> MsgResult {
    let options = arguments.options;
    let (address, room) = (arguments.address, arguments.receive_size);
    let receiver = Receiver { space, memory, address, room };
    let until = options.contains(MsgOptions::RECEIVE_TIMEOUT).then(|| end(space, arguments.timeout));
    let stays = options.contains(MsgOptions::RECEIVE_LARGE);
    let fits = |message: &crate::ipc::Message<M>| match incoming::size(message) {
        size if stays && size > room as usize => Err(size),
        _ => Ok(()),
    };
    let message = match space.receive(arguments.receive_name, &fits, until, interruption).await {
        Ok(message) => message,
        Err(NotReceived::Error(error)) => return Err(error.into()),
        Err(NotReceived::TooLarge(size)) => {
            receiver.tell_size(size).await;
            return Err(MsgErrorKind::ReceiveTooLarge.into());
        }
    };
    if incoming::size(&message) > room as usize {
        receiver.reject(message).await;
        return Err(MsgErrorKind::ReceiveTooLarge.into());
    }
    let notify = options.contains(MsgOptions::RECEIVE_NOTIFY).then_some(arguments.notify);
    receiver.accept(message, notify).await
}

/// With which options a program's library makes the call again after an interruption; `None`: the
/// program gets the error. After a send the message is in the form in which it can be sent again.
/// The size to send is 0 from the first receive on.
pub fn restart(options: MsgOptions, error: MsgError) -> Option<MsgOptions> {
    match error.kind {
        MsgErrorKind::SendInterrupted if !options.contains(MsgOptions::SEND_INTERRUPT) => Some(options),
        MsgErrorKind::ReceiveInterrupted if !options.contains(MsgOptions::RECEIVE_INTERRUPT) => {
            Some(options - MsgOptions::SEND)
        }
        _ => None,
    }
}
