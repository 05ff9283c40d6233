//! The trailer that the kernel appends to a message of the untyped dialect when the message is
//! received: sequence number and tokens.

use super::text::Text;
use crate::ast::Direction;
use crate::interface::{Interface, Routine};
use crate::target::Dialect;

/// The smallest and the largest size of a trailer, in bytes.
const SMALLEST: u64 = 8;
const LARGEST: u64 = 68;

/// A member of the trailer, in the order of the members' offsets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Member {
    Sequence,
    Sender,
    Audit,
    Context,
}

impl Member {
    /// The member's name in C.
    fn name(self) -> &'static str {
        match self {
            Member::Sequence => "msgh_seqno",
            Member::Sender => "msgh_sender",
            Member::Audit => "msgh_audit",
            Member::Context => "msgh_context",
        }
    }

    /// The size in bytes of a trailer that ends with this member.
    fn end(self) -> u64 {
        match self {
            Member::Sequence => 12,
            Member::Sender => 20,
            Member::Audit => 52,
            Member::Context => 60,
        }
    }
}

/// The trailer's member that is a parameter of the server's function for an argument.
fn at_server(direction: Direction) -> Option<Member> {
    match direction {
        Direction::SequenceNumber => Some(Member::Sequence),
        Direction::SecurityToken | Direction::ServerSecurityToken => Some(Member::Sender),
        Direction::AuditToken | Direction::ServerAuditToken => Some(Member::Audit),
        // `serverimpl` names its member itself; the trailer must hold all members up to the
        // context.
        Direction::ServerContextToken | Direction::ServerImplementation => Some(Member::Context),
        _ => None,
    }
}

/// The trailer's member that is a result of the client's function for an argument.
fn at_user(direction: Direction) -> Option<Member> {
    match direction {
        Direction::SecurityToken | Direction::UserSecurityToken => Some(Member::Sender),
        Direction::AuditToken | Direction::UserAuditToken => Some(Member::Audit),
        _ => None,
    }
}

/// The last member of the trailer that the client's function returns.
fn last_at_user(routine: &Routine) -> Option<Member> {
    routine.arguments.iter().filter_map(|argument| at_user(argument.direction)).max()
}

/// Bytes that a client's buffer needs after the largest reply.
pub(super) fn room(routine: &Routine, interface: &Interface) -> u64 {
    match (interface.target.dialect, last_at_user(routine)) {
        (Dialect::Typed, _) => 0,
        (Dialect::Untyped, None) => SMALLEST,
        (Dialect::Untyped, Some(_)) => LARGEST,
    }
}

/// The options of `mach_msg` that request the trailer's members that a client needs.
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

/// Writes code that finds a message's trailer and checks that the trailer reaches up to `last`.
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

/// Writes code that stores the tokens of a reply in the client's parameters.
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

/// Writes code that finds a request's trailer if the server's function takes a member of it.
pub(super) fn request(text: &mut Text, interface: &Interface, routine: &Routine) {
    let last = routine.arguments.iter().filter_map(|argument| at_server(argument.direction)).max();
    if let Some(last) = last.filter(|_| interface.target.dialect == Dialect::Untyped) {
        let failure = "{ OutP->RetCode = MIG_TRAILER_ERROR; return; }";
        find(text, "In_", "InHeadP->", last, failure);
    }
}

/// The C expression for a parameter of the server's function that is a member of the trailer. For
/// `serverimpl` the argument's name is the member's name.
pub(super) fn value(direction: Direction, name: &str) -> String {
    match at_server(direction).filter(|_| direction != Direction::ServerImplementation) {
        Some(member) => format!("Trailer_->{}", member.name()),
        None => format!("Trailer_->{name}"),
    }
}
