//! How the phases of an IPC end, for each kind of IPC. These functions change only the thread they
//! are given.

use x2::protocol::{exception, start};
use x2::{IpcError, IpcErrorKind, IpcPhase, MessageTag, ThreadId, utcb};

use super::message::Message;
use super::rendezvous::id_seen_by;
use super::{Failure, cancel, transfer_fault};
use crate::sync::SEVERAL;
use crate::syscall::arguments;
use crate::thread::exception::{GENERAL_PROTECTION, PAGE_FAULT};
use crate::thread::{Continuation, Found, IpcKind, ThreadRef, flag, redirect};
use crate::trace::{self, Event};

/// The sender of a received message, and the id under which it sent.
#[derive(Clone, Copy)]
pub(super) struct Origin {
    /// The thread that sent the message.
    pub sender: ThreadRef,
    /// The thread whose message it is: not the sender, if the message was propagated.
    pub originator: Found,
    /// The thread that the message was for, if it was redirected.
    pub instead_of: Option<ThreadId>,
}

impl Origin {
    fn is_propagated(self) -> bool {
        !self.originator.is(self.sender)
    }

    /// Whether the sender runs on another processor than `receiver` (X.2 rule 7.18).
    fn crosses_to(self, receiver: ThreadRef) -> bool {
        SEVERAL && self.sender.home() != receiver.home()
    }
}

/// What a receiver does after its message has arrived.
pub(super) enum Received {
    /// The receive phase has ended.
    Over,
    /// The receiver waits for another message (this was a wrong start message).
    Again,
}

/// The message with `tag` has arrived in `receiver`, or the transfer failed midway.
pub(super) fn received(
    receiver: Message,
    origin: Origin,
    tag: MessageTag,
    failure: Option<Failure>,
) -> Received {
    let Message { thread, kind } = receiver;
    thread.set_continuation(Continuation::ReturnToUser);
    match kind {
        IpcKind::User => {
            let tag = tag.without_flags();
            match failure {
                None => {
                    let from = id_seen_by(thread, origin.originator);
                    let tag = tag.with_propagated(origin.is_propagated());
                    let tag = tag.with_cross_processor(origin.crosses_to(thread));
                    return_user(thread, tag.with_redirected(origin.instead_of.is_some()), from);
                    if let (Some(id), Some(block)) = (origin.instead_of, thread.utcb.get()) {
                        // The sender is in another space than the redirector, which sees it by its
                        // global id.
                        block.write(utcb::INTENDED_RECEIVER, id.raw());
                    }
                }
                Some(failure) => fail_user(thread, IpcPhase::Receive, failure, tag.with_error(true)),
            }
            if origin.is_propagated()
                && let Some(block) = thread.utcb.get()
            {
                block.write(utcb::ACTUAL_SENDER, id_seen_by(thread, origin.sender).raw());
            }
        }
        IpcKind::PageFault if transfer_fault::outer(thread).is_some() => match failure {
            None => thread.set_continuation(Continuation::ResumeTransfer),
            Some(_) => cancel::end_fault(thread, IpcErrorKind::Aborted),
        },
        IpcKind::PageFault | IpcKind::PortFault => {
            if failure.is_some_and(|failure| failure.out_of_memory) {
                let is_page_fault = kind == IpcKind::PageFault;
                thread.fault[0].set(if is_page_fault { PAGE_FAULT } else { GENERAL_PROTECTION });
                thread.fault[1].set(0);
                thread.set_continuation(Continuation::RaiseException);
            }
        }
        IpcKind::Exception => {
            if tag.untyped() < exception::REPLY_WORDS {
                thread.set_flag(flag::HALTED, true);
            }
        }
        IpcKind::SystemCall => redirect::answered(thread, tag),
        IpcKind::Quantum | IpcKind::Preemption => debug_assert!(false, "these have no receive phase"),
        IpcKind::Start => {
            if failure.is_some() || tag.untyped() != start::WORDS || tag.typed() != 0 {
                return Received::Again;
            }
            if let Some(block) = thread.utcb.get() {
                block.write(utcb::message_register(0), tag.without_flags().raw());
                thread.registers.rip.set(block.read(utcb::message_register(start::IP)));
                thread.registers.rsp.set(block.read(utcb::message_register(start::SP)));
            }
        }
    }
    Received::Over
}

/// The receive phase of `thread` ends without a transfer, or in the midst of one (`tag`).
pub(super) fn receive_failed(thread: ThreadRef, kind: IpcKind, failure: Failure, tag: MessageTag) {
    if kind == IpcKind::PageFault && transfer_fault::outer(thread).is_some() {
        return cancel::end_fault(thread, failure.kind);
    }
    if kind == IpcKind::SystemCall && failure.kind == IpcErrorKind::NonExistingPartner {
        redirect::make_again(thread);
    }
    thread.set_continuation(Continuation::ReturnToUser);
    match kind {
        IpcKind::User => fail_user(thread, IpcPhase::Receive, failure, tag.with_error(true)),
        // The partner that owes the reply is gone (X.2 rule 5.34).
        IpcKind::PageFault | IpcKind::PortFault | IpcKind::Exception | IpcKind::SystemCall
            if failure.kind == IpcErrorKind::NonExistingPartner =>
        {
            thread.set_flag(flag::HALTED, true);
        }
        // The IPC is cancelled: the thread goes on at its user IP (X.2 rule 5.31).
        _ => {}
    }
}

/// The send phase of `thread` was successful and no receive phase follows.
pub(super) fn sent(thread: ThreadRef, kind: IpcKind) {
    thread.set_continuation(Continuation::ReturnToUser);
    if kind == IpcKind::User {
        return_user(thread, MessageTag::EMPTY, ThreadId::NIL);
    }
}

/// The send phase of `thread` fails. `tag` is that of the message after a partial transfer, else
/// empty.
pub(super) fn send_failed(thread: ThreadRef, kind: IpcKind, failure: Failure, tag: MessageTag) {
    if kind == IpcKind::PageFault && transfer_fault::outer(thread).is_some() {
        return cancel::end_fault(thread, failure.kind);
    }
    if kind == IpcKind::SystemCall && failure.kind == IpcErrorKind::NonExistingPartner {
        redirect::make_again(thread);
    }
    thread.set_continuation(Continuation::ReturnToUser);
    match kind {
        IpcKind::User => {
            let tag = tag.without_flags().with_error(true);
            fail_user(thread, IpcPhase::Send, failure, tag);
        }
        // A preemption that cannot be reported is forgotten (X.2 rule 4.9).
        IpcKind::Preemption | IpcKind::Start => {}
        _ if failure.kind == IpcErrorKind::NonExistingPartner => thread.set_flag(flag::HALTED, true),
        _ => {}
    }
}

fn fail_user(thread: ThreadRef, phase: IpcPhase, failure: Failure, tag: MessageTag) {
    if let Some(block) = thread.utcb.get() {
        let error = IpcError::with_offset(phase, failure.kind, failure.offset);
        trace::event(Event::IpcError, error.raw(), thread.partner().raw());
        block.write(utcb::ERROR_CODE, error.raw());
    }
    return_user(thread, tag, ThreadId::NIL);
}

/// Sets the registers with which Ipc returns (ABI 5).
pub fn return_user(thread: ThreadRef, tag: MessageTag, from: ThreadId) {
    trace::event(Event::IpcReturn, from.raw(), tag.raw());
    let results = arguments::Ipc::of(thread);
    results.set_tag(tag.raw());
    results.set_from(from.raw());
    results.set_local_id(thread.local_id.get());
}
