//! The trap `mach_msg`, which sends and receives messages.

use alloc::sync::Arc;

use super::incoming::{self, Receiver};
use super::outgoing;
use crate::ipc::receive::NotReceived;
use crate::ipc::{Interruption, MsgError, MsgErrorKind, Name, Space, UserMemory};
use crate::machine::Machine;

bitflags::bitflags! {
    /// The options of `mach_msg`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct MsgOptions: u32 {
        /// Send the message.
        const SEND = 0x1;
        /// Receive a message. If a message is also to be sent, it is sent first.
        const RECEIVE = 0x2;
        /// Wait for room in the queue only for the given time.
        const SEND_TIMEOUT = 0x10;
        /// If the queue stays full, send the message beyond the limit, with a notification when it
        /// has left the queue.
        const SEND_NOTIFY = 0x20;
        /// The program's library does not repeat the call when a send was interrupted.
        const SEND_INTERRUPT = 0x40;
        /// If this send ends the destination's name, the port `notify` gets no notification of
        /// that.
        const SEND_CANCEL = 0x80;
        /// Wait for a message only for the given time.
        const RECEIVE_TIMEOUT = 0x100;
        /// Ask for a notification, to the port `notify`, of the death of the received reply port.
        const RECEIVE_NOTIFY = 0x200;
        /// The program's library does not repeat the call when a receive was interrupted.
        const RECEIVE_INTERRUPT = 0x400;
        /// A message that is too large for the buffer stays in the queue, and the task gets its
        /// size.
        const RECEIVE_LARGE = 0x800;
    }
}

/// The arguments of `mach_msg`.
#[derive(Clone, Copy, Debug)]
pub struct MsgArguments {
    /// The address of the message buffer, for the message to send and for the received one.
    pub address: u64,
    /// What the call is to do. Bits that have no meaning are ignored.
    pub options: MsgOptions,
    /// The size in bytes of the message to send.
    pub send_size: u32,
    /// The size in bytes of the buffer for the received message.
    pub receive_size: u32,
    /// The name of the port or the port set to receive from.
    pub receive_name: Name,
    /// How many milliseconds each wait lasts at most that has a time-out. 0: the call does not
    /// wait.
    pub timeout: u32,
    /// The name of the receive right to which notifications go that the options ask for.
    pub notify: Name,
}

/// The result of `mach_msg`.
pub type MsgResult = Result<(), MsgError>;

/// Sends a message, receives one, or does both: the trap `mach_msg`. Blocks while the queue is full
/// and while there is no message, unless a time-out or `interruption` ends the wait. If sending
/// fails, nothing is received, and the task has back what the message carried. If the message had
/// already been taken from the task, the buffer then holds it in a form in which it can be sent
/// again.
///
/// If the future is dropped before its end, as when the thread ends, a message that it was sending
/// or copying out is destroyed.
///
/// # Errors
/// Those of sending and of receiving: see [`MsgErrorKind`].
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

/// The time, in microseconds of the machine, when a wait ends that has a time-out of
/// `milliseconds`. 0: do not wait.
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

/// The options with which a program's library repeats the call after an interruption, or `None` if
/// the program gets the error. An interrupted send has put its message back into the buffer in a
/// form in which it can be sent again. After an interrupted receive the size to send is 0.
pub fn restart(options: MsgOptions, error: MsgError) -> Option<MsgOptions> {
    match error.kind {
        MsgErrorKind::SendInterrupted if !options.contains(MsgOptions::SEND_INTERRUPT) => Some(options),
        MsgErrorKind::ReceiveInterrupted if !options.contains(MsgOptions::RECEIVE_INTERRUPT) => {
            Some(options - MsgOptions::SEND)
        }
        _ => None,
    }
}
