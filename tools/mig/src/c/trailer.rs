//! What the kernel appends to a message of the untyped dialect when it is received: sequence number
//! and tokens.

use super::text::Text;
use crate::ast::Direction;
use crate::interface::{Interface, Routine};
use crate::target::Dialect;

/// Bytes of the smallest trailer, and of the largest.
const SMALLEST: u64 = 8;
const LARGEST: u64 = 68;

/// A member of the trailer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Member {
    Sequence,
    Sender,
    Audit,
    Context,
}

impl Member {
    /// Its name in C.
    fn name(self) -> &'static str {
        match self {
            Member::Sequence => "msgh_seqno",
            Member::Sender => "msgh_sender",
            Member::Audit => "msgh_audit",
            Member::Context => "msgh_context",
        }
    }

    /// Bytes of a trailer that has it and all members before it.
    fn end(self) -> u64 {
        match self {
            Member::Sequence => 12,
            Member::Sender => 20,
            Member::Audit => 52,
            Member::Context => 60,
        }
    }
}

/// The member that the server's function gets for an argument.
fn at_server(direction: Direction) -> Option<Member> {
    match direction {
        Direction::SequenceNumber => Some(Member::Sequence),
        Direction::SecurityToken | Direction::ServerSecurityToken => Some(Member::Sender),
        Direction::AuditToken | Direction::ServerAuditToken => Some(Member::Audit),
        // Its own member is after all of these.
        Direction::ServerContextToken | Direction::ServerImplementation => Some(Member::Context),
        _ => None,
    }
}

/// The member that the client gets for an argument.
fn at_user(direction: Direction) -> Option<Member> {
    match direction {
        Direction::SecurityToken | Direction::UserSecurityToken => Some(Member::Sender),
        Direction::AuditToken | Direction::UserAuditToken => Some(Member::Audit),
        _ => None,
    }
}

/// The last member of the trailer that the client needs.
fn last_at_user(routine: &Routine) -> Option<Member> {
    routine.arguments.iter().filter_map(|argument| at_user(argument.direction)).max()
}

/// Bytes that a client needs after the largest reply.
pub(super) fn room(routine: &Routine, interface: &Interface) -> u64 {
    match (interface.target.dialect, last_at_user(routine)) {
        (Dialect::Typed, _) => 0,
        (Dialect::Untyped, None) => SMALLEST,
        (Dialect::Untyped, Some(_)) => LARGEST,
    }
}

/// The options by which a client asks for the members that it needs.
pub(super) fn elements(routine: &Routine) -> &'static str {
    match last_at_user(routine) {
        None => "",
        Some(Member::Audit) => {
            "|MACH_RCV_TRAILER_TYPE(MACH_MSG_TRAILER_FORMAT_0)\
             |MACH_RCV_TRAILER_ELEMENTS(MACH_RCV_TRAILER_AUDIT)"
        }
        Some(_) => {
            "|MACH_RCV_TRAILER_TYPE(MACH_MSG_TRAILER_FORMAT_0)\
             |MACH_RCV_TRAILER_ELEMENTS(MACH_RCV_TRAILER_SENDER)"
        }
    }
}

/// Finds the trailer of a message and checks that it has a member.
fn find(text: &mut Text, bytes: &str, head: &str, last: Member, failure: &str) {
    text.line("\n/* The trailer */");
    text.line(format!(
        "mach_msg_max_trailer_t *Trailer_ = (void *) ({bytes} + (({head}msgh_size + 3) & ~3U));"
    ));
    text.line(format!(
        "if (mig_unlikely (Trailer_->msgh_trailer_type != MACH_MSG_TRAILER_FORMAT_0 || \
         Trailer_->msgh_trailer_size < {}))",
        last.end()
    ));
    text.deeper(failure);
}

/// Gives the client the tokens of a reply.
pub(super) fn results(text: &mut Text, routine: &Routine) {
    let Some(last) = last_at_user(routine) else { return };
    find(text, "Mess.Bytes", "Mess.Head.", last, "return MIG_TRAILER_ERROR;");
    for argument in &routine.arguments {
        if let Some(member) = at_user(argument.direction) {
            let (name, member) = (&argument.name, member.name());
            text.line(format!("__builtin_memcpy({name}, &Trailer_->{member}, sizeof Trailer_->{member});"));
        }
    }
}

/// Finds the trailer of a request if the server's function gets something of it.
pub(super) fn request(text: &mut Text, interface: &Interface, routine: &Routine) {
    let last = routine.arguments.iter().filter_map(|argument| at_server(argument.direction)).max();
    if let Some(last) = last.filter(|_| interface.target.dialect == Dialect::Untyped) {
        let failure = "{ OutP->RetCode = MIG_TRAILER_ERROR; return; }";
        find(text, "In_", "InHeadP->", last, failure);
    }
}

/// What is passed to the server's function for an argument of this direction. `serverimpl` is the
/// member of its own name.
pub(super) fn value(direction: Direction, name: &str) -> String {
    match at_server(direction).filter(|_| direction != Direction::ServerImplementation) {
        Some(member) => format!("Trailer_->{}", member.name()),
        None => format!("Trailer_->{name}"),
    }
}
