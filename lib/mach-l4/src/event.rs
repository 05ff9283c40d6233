//! Converts messages of programs' threads into Mach's events, and Mach's ways to resume a thread
//! into answers.

use l4::x2::extension::{RECALLED, SYSTEM_CALL_LABEL, SystemCallAnswer};
use l4::x2::protocol::{self, exception};
use l4::x2::{MessageTag, Rights};
use mach::machine::{
    Event, PageFault, ProcessorException, Protection, Resume, SystemCall, ThreadState, UserMessage,
};

/// The words of a message that are passed in registers: MR1..MR7.
pub(crate) type Words = [u64; l4::registers::WORDS];

/// The vector of the general-protection exception, which a forbidden access to a port raises.
const GENERAL_PROTECTION: u64 = 13;

/// The kind of a message whose answer a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    SystemCall,
    PageFault,
    Exception,
    Message,
}

/// The address and access of a page fault, if the message is one.
#[inline]
pub(crate) fn page_fault(tag: MessageTag, words: &Words) -> Option<(u64, Protection)> {
    (protocol::of(tag) == protocol::PAGE_FAULT && tag.untyped() == 2)
        .then(|| (words[0], protection(protocol::fault_access(tag))))
}

/// The number and arguments of a system call, if the message is one.
#[inline]
pub(crate) fn system_call(tag: MessageTag, words: &Words) -> Option<SystemCall> {
    let &[number, a, b, c, d, e, f] = words;
    (tag.label() == SYSTEM_CALL_LABEL && tag.untyped() == 7)
        .then_some(SystemCall { number, arguments: [a, b, c, d, e, f] })
}

/// The tag of the answer to a system call that returns a value. The value is the only word.
#[inline]
pub(crate) fn return_tag() -> MessageTag {
    MessageTag::new(SystemCallAnswer::Return as u64, 1, 0)
}

/// Decodes a message of a program's thread into an event. `None`: the message has no meaning, which
/// is possible only if the thread has sent it itself. `word(n)` reads message register n >= 8.
#[inline]
pub(crate) fn decode(tag: MessageTag, words: &Words, word: impl Fn(usize) -> u64) -> Option<(Origin, Event)> {
    let (label, count) = (tag.label(), tag.untyped());
    if let Some(call) = system_call(tag, words) {
        return Some((Origin::SystemCall, Event::SystemCall(call)));
    }
    if let Some((address, access)) = page_fault(tag, words) {
        return Some((Origin::PageFault, Event::PageFault(PageFault { address, access, ip: words[1] })));
    }
    match protocol::of(tag) {
        // Programs have no ports. So an access to one becomes the exception that the processor
        // would have raised.
        protocol::IO_PAGE_FAULT if count == 2 => {
            let exception = ProcessorException { vector: GENERAL_PROTECTION, error: 0, ip: words[1] };
            Some((Origin::PageFault, Event::Exception(exception)))
        }
        protocol::ARCHITECTURE_EXCEPTION | protocol::SYSTEM_EXCEPTION if count >= exception::WORDS => {
            let vector = word(exception::NUMBER);
            if vector == RECALLED {
                return Some((Origin::Exception, Event::Recalled));
            }
            let error =
                if count >= exception::WORDS_WITH_ERROR_CODE { word(exception::ERROR_CODE) } else { 0 };
            let ip = words[exception::RIP - 1];
            Some((Origin::Exception, Event::Exception(ProcessorException { vector, error, ip })))
        }
        _ if tag.signed_label() < 0 || count > words.len() => None,
        _ => {
            let mut message = UserMessage { label, count, words: [0; 7] };
            message.words[..count].copy_from_slice(&words[..count]);
            Some((Origin::Message, Event::Message(message)))
        }
    }
}

/// What the worker must do before it sends an answer to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preparation<'a> {
    /// Nothing has to be done.
    None,
    /// The worker writes the thread's registers by ThreadState.
    Write(&'a ThreadState),
    /// The worker reads the thread's registers by ThreadState, so that the answer repeats them.
    Read,
}

/// Encodes the answer to a thread whose message was of kind `origin`: what the worker must do
/// first, the tag, and the words in registers. If the tag has more words, all are in the message
/// registers after the preparation.
#[inline]
pub(crate) fn encode(origin: Origin, resume: &Resume) -> (Preparation<'_>, MessageTag, Words) {
    let answer_to_call = |answer, count| MessageTag::new(answer as u64, count, 0);
    let empty = MessageTag::EMPTY;
    let exception_answer = MessageTag::new(0, exception::REPLY_WORDS, 0);
    let none = [0; 7];
    match (origin, resume) {
        (Origin::SystemCall, Resume::Return(value)) => (Preparation::None, return_tag(), first(*value)),
        (Origin::SystemCall, Resume::Registers(state)) => {
            (Preparation::Write(state), answer_to_call(SystemCallAnswer::Resume, 0), none)
        }
        (Origin::SystemCall, _) => (Preparation::None, answer_to_call(SystemCallAnswer::Resume, 0), none),
        // The answer to an exception message sets the registers again, all but the bases of FS and
        // GS: so they must be written before.
        (Origin::Exception, Resume::Registers(state)) => (Preparation::Write(state), exception_answer, none),
        (Origin::Exception, _) => (Preparation::Read, exception_answer, none),
        (Origin::Message, Resume::Reply(message)) => {
            let tag = MessageTag::new(message.label, message.count.min(7), 0);
            (Preparation::None, tag, message.words)
        }
        (Origin::PageFault | Origin::Message, Resume::Registers(state)) => {
            (Preparation::Write(state), empty, none)
        }
        (Origin::PageFault | Origin::Message, _) => (Preparation::None, empty, none),
    }
}

/// Words of which only the first has a meaning.
#[inline]
pub(crate) fn first(word: u64) -> Words {
    let mut words = [0; 7];
    words[0] = word;
    words
}

/// Mach's protection for the kernel's rights.
pub(crate) fn protection(rights: Rights) -> Protection {
    [
        (Rights::READ, Protection::READ),
        (Rights::WRITE, Protection::WRITE),
        (Rights::EXECUTE, Protection::EXECUTE),
    ]
    .into_iter()
    .filter(|&(right, _)| rights.contains(right))
    .fold(Protection::NONE, |all, (_, protection)| all | protection)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::boxed::Box;
    use l4::x2::extension::SYSTEM_CALL_LABEL;

    fn decoded(tag: MessageTag, words: Words) -> Option<(Origin, Event)> {
        decode(tag, &words, |index| match index {
            exception::NUMBER => 13,
            exception::ERROR_CODE => 0x50,
            other => panic!("message register {other} is not needed"),
        })
    }

    #[test]
    fn kernel_messages_become_events() {
        let call = decoded(MessageTag::new(SYSTEM_CALL_LABEL, 7, 0), [1, 2, 3, 4, 5, 6, 7]);
        let event = Event::SystemCall(SystemCall { number: 1, arguments: [2, 3, 4, 5, 6, 7] });
        assert_eq!(call, Some((Origin::SystemCall, event)));
        let fault = decoded(protocol::page_fault_tag(Rights::WRITE), [0x5008, 0x40_0000, 0, 0, 0, 0, 0]);
        let event = Event::PageFault(PageFault { address: 0x5008, access: Protection::WRITE, ip: 0x40_0000 });
        assert_eq!(fault, Some((Origin::PageFault, event)));
        let port = decoded(protocol::IO_PAGE_FAULT_TAG, [0x64_0000, 0x40_0002, 0, 0, 0, 0, 0]);
        let exception = ProcessorException { vector: 13, error: 0, ip: 0x40_0002 };
        assert_eq!(port, Some((Origin::PageFault, Event::Exception(exception))));
        let words = [0x40_0002, 0, 0, 0, 0, 0, 0];
        let exception = |error| Event::Exception(ProcessorException { vector: 13, error, ip: 0x40_0002 });
        assert_eq!(decoded(exception::TAG, words), Some((Origin::Exception, exception(0))));
        let with_error = exception::TAG.with_words(exception::WORDS_WITH_ERROR_CODE, 0);
        assert_eq!(decoded(with_error, words), Some((Origin::Exception, exception(0x50))));
        let recalled = decode(exception::TAG, &words, |_| RECALLED);
        assert_eq!(recalled, Some((Origin::Exception, Event::Recalled)));
    }

    #[test]
    fn what_programs_send_themselves_is_a_message_or_nothing() {
        let words = [9, 8, 7, 6, 5, 4, 3];
        let message = UserMessage { label: 77, count: 2, words: [9, 8, 0, 0, 0, 0, 0] };
        let event = Some((Origin::Message, Event::Message(message)));
        assert_eq!(decoded(MessageTag::new(77, 2, 0), words), event);
        // Messages that are too short or too long for their labels are not decoded.
        for (label, count) in [
            (SYSTEM_CALL_LABEL, 6),
            (protocol::label(protocol::PAGE_FAULT, 2), 1),
            (protocol::label(protocol::PAGE_FAULT, 2), 63),
            (protocol::label(protocol::ARCHITECTURE_EXCEPTION, 0), 18),
            (protocol::label(protocol::INTERRUPT, 0), 0),
            (protocol::label(protocol::PREEMPTION, 0), 2),
            (77, 8),
        ] {
            assert_eq!(decoded(MessageTag::new(label, count, 0), words), None, "{label:x} {count}");
        }
    }

    #[test]
    fn answers_fit_the_messages() {
        let state = ThreadState { rax: 5, ..ThreadState::default() };
        let origins = [Origin::SystemCall, Origin::PageFault, Origin::Exception, Origin::Message];
        let tags = |resume: Resume| {
            origins.map(|origin| {
                let (_, tag, _) = encode(origin, &resume);
                (tag.label(), tag.untyped())
            })
        };
        assert_eq!(tags(Resume::Return(1)), [(0, 1), (0, 0), (0, 18), (0, 0)]);
        assert_eq!(tags(Resume::Continue), [(3, 0), (0, 0), (0, 18), (0, 0)]);
        assert_eq!(tags(Resume::Registers(Box::new(state))), [(3, 0), (0, 0), (0, 18), (0, 0)]);
        let message = UserMessage { label: 8, count: 3, words: [1, 2, 3, 0, 0, 0, 0] };
        assert_eq!(tags(Resume::Reply(Box::new(message))), [(3, 0), (0, 0), (0, 18), (8, 3)]);
        assert_eq!(encode(Origin::SystemCall, &Resume::Return(1)).2[0], 1);
        let registers = Resume::Registers(Box::new(state));
        assert_eq!(encode(Origin::PageFault, &registers).0, Preparation::Write(&state));
        assert_eq!(encode(Origin::Exception, &Resume::Return(0)).0, Preparation::Read);
    }

    #[test]
    fn rights_have_the_same_names() {
        assert_eq!(protection(Rights::READ_EXECUTE), Protection::READ | Protection::EXECUTE);
        assert_eq!(protection(Rights::NONE), Protection::NONE);
    }
}
