//! What an Ipc may answer: which errors, which sender a message may come from, and that it is what
//! was sent (X.2 rules 7).

use std::boxed::Box;

use x2::message::{REGISTER_MESSAGE_REGISTERS, TypedItemKind};
use x2::protocol::{self, exception};
use x2::{Acceptor, IpcError, IpcErrorKind, IpcPhase, MessageTag, Rights, ThreadId, extension, utcb};

use super::action::{Action, Limit, NUMBERS, Name};
use super::facts::{Facts, key_of, number_of, thread_of};
use super::perform::message_register;
use crate::arch;
use crate::interrupt;
use crate::thread::{Continuation, Found, IpcKind, ThreadRef, ipc};

/// What an id named when the call began.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Partner {
    /// No phase.
    None,
    /// Anythread.
    Any,
    /// Anylocalthread.
    AnyLocal,
    Interrupt(u32),
    /// The thread with this number, and how often it had changed.
    Thread(u32, u64),
    /// No thread.
    Absent,
}

/// An Ipc under way, and what it sends.
pub(super) struct Intent {
    to: Partner,
    from: Partner,
    /// FromSpecifier itself: what it names counts when the receive phase begins.
    from_id: ThreadId,
    send: Limit,
    receive: Limit,
    began: u64,
    tag: MessageTag,
    /// MR0 to MR63 as sent.
    words: [u64; 64],
    acceptor: Acceptor,
    /// ExchangeRegisters, or a change of the thread itself, may have ended the IPC.
    cancelled: bool,
    /// The thread that it waits for may be another than it says: its message was passed on, or
    /// redirected (X.2 rules 6.12, 7.16).
    turned: bool,
    /// An owner or redirector decides where the message goes.
    restricted: bool,
    /// The message's words are no more what they were.
    disturbed: bool,
    /// Whether the destination was waiting for any sender: the send phase succeeds immediately.
    meets: bool,
}

fn restricted(thread: ThreadRef) -> bool {
    thread.space.get().is_none_or(|space| space.is_owned() || space.is_redirected())
}

/// Notes an Ipc that `thread` is about to make: the registers are set.
pub(super) fn begin(facts: &Facts, thread: ThreadRef, action: Action) -> Option<Box<Intent>> {
    let Action::Ipc { to, from, send, receive, acceptor, .. } = action else { return None };
    let space = thread.space.get().map_or(0, key_of);
    let partner = |name: Name| match name.resolve(thread) {
        id if id.is_nil() => Partner::None,
        id if id.is_any() => Partner::Any,
        id if id.is_any_local() => Partner::AnyLocal,
        id if id.is_global() && id.number() < interrupt::system_base() => Partner::Interrupt(id.number()),
        id => facts
            .resolve(space, id)
            .map_or(Partner::Absent, |(number, _)| Partner::Thread(number, facts.changes[number as usize])),
    };
    let words = core::array::from_fn(|index| message_register(thread, index));
    let tag = MessageTag::from_raw(words[0]);
    let restricted = restricted(thread);
    let to = partner(to);
    let meets = match to {
        Partner::Thread(number, _) if !restricted && tag.is_well_formed() && tag.typed() == 0 => {
            thread_of(number).is_some_and(|receiver| {
                !core::ptr::eq(receiver, thread)
                    && receiver.continuation() == Continuation::Receive(IpcKind::User)
                    && receiver.partner().is_any()
            })
        }
        _ => false,
    };
    Some(Box::new(Intent {
        to,
        from: partner(from),
        from_id: from.resolve(thread),
        send,
        receive,
        began: arch::clock(),
        tag,
        words,
        acceptor: Acceptor::from_raw(acceptor),
        cancelled: false,
        turned: false,
        restricted,
        disturbed: false,
        meets,
    }))
}

impl Intent {
    /// Notes that something may have ended the IPC.
    pub(super) fn cancel(&mut self) {
        self.cancelled = true;
    }

    /// An owner or redirector may decide, or have decided, where the message goes.
    pub(super) fn restrict(&mut self) {
        self.restricted = true;
    }

    /// Notes that the thread may wait for another partner now.
    pub(super) fn turn(&mut self) {
        self.turned = true;
    }

    /// Notes that another thread has written the sender's message registers (K15).
    pub(super) fn disturb(&mut self) {
        self.disturbed = true;
    }

    /// After the call's own step: it must not wait where it does not want to, or has met its
    /// partner.
    pub(super) fn check_wait(&self, thread: ThreadRef) {
        if thread.ready.is_queued() {
            return;
        }
        match thread.continuation() {
            Continuation::Send(IpcKind::User) => {
                assert!(!self.send.is_zero(), "{:?} waits to send, with timeout zero", thread.id());
                assert!(!self.meets, "{:?} waits to send to a thread that waits for it", thread.id());
                assert!(self.to != Partner::None, "{:?} sends to no thread", thread.id());
            }
            Continuation::Receive(IpcKind::User) => {
                assert!(!self.receive.is_zero(), "{:?} waits for a message, with timeout zero", thread.id());
                assert!(self.from != Partner::None, "{:?} receives from no thread", thread.id());
            }
            _ => {}
        }
    }

    /// Compares what the Ipc of `thread`, which is over, has answered; `sent` are the last Ipcs of
    /// all threads. Returns the threads whose messages were passed on: the originator of a
    /// propagated one, the sender of a redirected one.
    pub(super) fn check_answer(
        &self,
        facts: &Facts,
        thread: ThreadRef,
        sent: &[Option<Box<Self>>; NUMBERS as usize],
    ) -> Option<u32> {
        let tag = MessageTag::from_raw(thread.registers.message[0].get());
        let from = ThreadId::from_raw(thread.registers.rsi.get());
        assert_eq!(thread.registers.rdi.get(), thread.local_id.get(), "RDI is the UTCB's");
        if tag.is_error() {
            assert!(from.is_nil(), "an error comes from no thread");
            self.check_error(facts, thread, tag);
            return None;
        }
        if self.from == Partner::None {
            assert!(tag == MessageTag::EMPTY && from.is_nil(), "a send answers nothing: {tag:?} {from:?}");
            return None;
        }
        self.check_message(thread, tag, from, sent)
    }

    fn check_error(&self, facts: &Facts, thread: ThreadRef, tag: MessageTag) {
        let word = thread.utcb.get().map_or(0, |block| block.read(utcb::ERROR_CODE));
        let error = IpcError::from_raw(word);
        let Some(IpcError { phase, kind, offset }) = error else { panic!("{word:#x} is no error") };
        let (partner, limit) = match phase {
            IpcPhase::Send => (self.to, self.send),
            IpcPhase::Receive => (self.from, self.receive),
        };
        assert!(partner != Partner::None, "{phase:?} fails, which there was none of: {kind:?}");
        assert!(!(self.meets && phase == IpcPhase::Send), "its partner was waiting: {kind:?}");
        let interrupt = matches!(partner, Partner::Interrupt(_)) && phase == IpcPhase::Send;
        let elapsed = arch::clock() - self.began;
        let before_transfer = match kind {
            IpcErrorKind::Timeout => {
                let over = limit.shortest_wait().is_some_and(|shortest| elapsed >= shortest);
                assert!(over || interrupt, "{phase:?} times out after {elapsed} of {limit:?}");
                true
            }
            IpcErrorKind::NonExistingPartner => {
                let missing = self.may_be_missing(facts, thread, phase, partner);
                assert!(missing, "{phase:?} of {:?}: {partner:?} is there", thread.id());
                true
            }
            IpcErrorKind::Cancelled => {
                assert!(self.cancelled, "it was not cancelled");
                true
            }
            IpcErrorKind::MessageOverflow => {
                let own = if phase == IpcPhase::Send { self.tag } else { tag };
                assert!(own.typed() > 0 || !own.is_well_formed(), "{own:?} overflows");
                false
            }
            IpcErrorKind::Aborted => {
                let own = if phase == IpcPhase::Send { self.tag } else { tag };
                assert!(own.typed() > 0, "a transfer of words is aborted");
                false
            }
            IpcErrorKind::XferTimeoutOwn | IpcErrorKind::XferTimeoutPartner => {
                panic!("there are no transfer timeouts: {kind:?}")
            }
        };
        if before_transfer {
            assert!(offset == 0 && tag == MessageTag::ERROR, "{kind:?} with {tag:?} at {offset}");
        }
    }

    /// Whether the partner of a phase can be said not to exist.
    fn may_be_missing(&self, facts: &Facts, thread: ThreadRef, phase: IpcPhase, partner: Partner) -> bool {
        let restricted = self.restricted || restricted(thread);
        match partner {
            Partner::Absent => true,
            Partner::Any | Partner::AnyLocal => phase == IpcPhase::Send,
            Partner::Interrupt(_) => phase == IpcPhase::Send || restricted,
            Partner::Thread(number, changes) => {
                let own = phase == IpcPhase::Send && Some(number) == number_in_table(thread);
                let turned = phase == IpcPhase::Receive && self.turned;
                own || turned || restricted || facts.changes[number as usize] != changes
            }
            Partner::None => false,
        }
    }

    fn check_message(
        &self,
        thread: ThreadRef,
        tag: MessageTag,
        from: ThreadId,
        sent: &[Option<Box<Self>>; NUMBERS as usize],
    ) -> Option<u32> {
        let kernel_tag = tag.without_flags();
        if from.is_nil() {
            let expected = MessageTag::new(extension::NOTIFICATION_LABEL, 1, 0);
            assert!(tag == expected && self.from == Partner::Any, "a message from no thread: {tag:?}");
            assert!(self.acceptor.accepts_notifications(), "a notification that it does not accept");
            assert!(thread.registers.rax().get() != 0, "a notification of nothing");
            return None;
        }
        if from.is_global() && from.number() < interrupt::system_base() {
            assert!(
                tag == protocol::INTERRUPT_TAG
                    && (self.from == Partner::Any || self.from == Partner::Interrupt(from.number())),
                "{from:?} interrupts with {tag:?} a thread that waits for {:?}",
                self.from
            );
            return None;
        }
        let originator = ipc::resolve_thread(thread, from)?.anywhere();
        let number = number_of(originator.id());
        // An inactive thread, in whose name a message was passed on, may have no local id.
        let has_local_form = originator.shares_space_with(thread) && originator.local_id.get() != 0;
        assert_eq!(from.is_local(), has_local_form, "the form of {from:?}");
        let expected = match self.from {
            Partner::Any => true,
            Partner::AnyLocal => from.is_local(),
            Partner::Thread(awaited, _) if awaited == number => true,
            _ => [originator.id().raw(), originator.local_id.get()].contains(&self.from_id.raw()),
        };
        assert!(
            expected || self.turned || self.restricted || restricted(thread),
            "{from:?}, number {number}, sends to a thread that waits for {:?}",
            self.from
        );
        if is_of_the_kernel(kernel_tag) {
            let told = originator.fault[0].get();
            if tag.untyped() == 2 && kernel_tag != protocol::PREEMPTION_TAG {
                assert_eq!(thread.registers.rax().get(), told, "the address of a page fault");
            }
            return tag.is_redirected().then_some(number);
        }
        let sender = if tag.is_propagated() { actual_sender(thread)? } else { originator };
        let message = sent[number_of(sender.id()) as usize].as_ref();
        let Some(message) = message else { panic!("{:?} sends, which has sent nothing", sender.id()) };
        message.check_delivery(self, thread, tag, number_in_table(thread));
        (tag.is_propagated() || tag.is_redirected()).then_some(number)
    }

    /// Compares what `receiver` has got with this, which was sent.
    fn check_delivery(&self, taken: &Self, receiver: ThreadRef, tag: MessageTag, number: Option<u32>) {
        let to = match self.to {
            Partner::Thread(number, _) => Some(number),
            _ => None,
        };
        if self.disturbed {
            return;
        }
        assert!(to == number || tag.is_redirected(), "a message for {:?} comes to {number:?}", self.to);
        assert!(!tag.is_propagated() || self.tag.is_propagated(), "propagated, which no sender asked for");
        assert_eq!(tag.label(), self.tag.label(), "the label");
        assert_eq!(
            (tag.untyped(), tag.typed()),
            (self.tag.untyped(), self.tag.typed()),
            "the numbers of words"
        );
        let untyped = tag.untyped();
        for index in 1..=untyped {
            assert_eq!(message_register(receiver, index), self.words[index], "word {index} of {untyped}");
        }
        if tag.typed() == 0 {
            for index in untyped + 1..REGISTER_MESSAGE_REGISTERS {
                assert_eq!(message_register(receiver, index), 0, "register {index} behind {untyped} words");
            }
        }
        let window = taken.acceptor.window().region();
        let mut index = untyped + 1;
        while index < tag.end() {
            let [first, second] = [0, 1].map(|place| message_register(receiver, index + place));
            // A message with items of other kinds overflows.
            let is_string = matches!(TypedItemKind::of(self.words[index]), TypedItemKind::String(_));
            assert!(!is_string, "a string arrives, in a machine without memory");
            assert_eq!(first & !1, self.words[index] & !1, "an item's first word");
            assert_eq!(first & 1 == 1, index + 2 < tag.end(), "bit C of an item");
            let got = x2::Fpage::from_raw(second);
            if let Some(region) = got.region() {
                let inside = window.is_some_and(|window| window.contains_region(region));
                assert!(inside, "{got:?} is outside the window {window:?}");
                let sent = x2::Fpage::from_raw(self.words[index + 1]).rights();
                // Every right that the processor knows includes the right to read.
                let most = if sent.is_none() { sent } else { sent.or(Rights::READ) };
                assert!(most.contains(got.rights()), "{got:?} with more rights than were sent");
            }
            index += 2;
        }
    }
}

/// The number above UserBase of a thread that is current in its table.
fn number_in_table(thread: ThreadRef) -> Option<u32> {
    Some(thread.id()).filter(|id| !id.is_nil()).map(number_of)
}

fn actual_sender(receiver: ThreadRef) -> Option<ThreadRef> {
    let id = receiver.utcb.get()?.read_id(utcb::ACTUAL_SENDER);
    ipc::resolve_thread(receiver, id).map(Found::anywhere)
}

/// Whether the kernel sends messages with this tag in a thread's name.
fn is_of_the_kernel(tag: MessageTag) -> bool {
    let faults = [Rights::READ, Rights::WRITE, Rights::EXECUTE].map(protocol::page_fault_tag);
    faults.contains(&tag)
        || [
            protocol::IO_PAGE_FAULT_TAG,
            protocol::PREEMPTION_TAG,
            exception::TAG,
            exception::PREEMPTION_TAG,
            MessageTag::new(extension::SYSTEM_CALL_LABEL, 7, 0),
        ]
        .contains(&tag)
}
