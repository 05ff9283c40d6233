//! Writing an item into a message, and checking one that came: the same for client and server. How
//! an item looks is the dialect's business.

use super::text::Text;
use super::{typed, untyped};
use crate::interface::{Argument, Interface, Routine, Side};
use crate::layout::{Complexity, Item, Message};
use crate::target::Dialect;

/// What C expressions an item is written from.
pub(super) struct Parts<'a> {
    /// The message, as bytes.
    pub(super) buffer: &'a str,
    /// The address of the value, or of the pointer to it.
    pub(super) address: String,
    /// How many elements, in the program's.
    pub(super) count: String,
    /// Which type, if the program says.
    pub(super) name: String,
    /// Whether the sender's copy goes away, if the program says.
    pub(super) deallocate: String,
    /// Whose value it is.
    pub(super) side: Side,
    /// What is done with an array that is too large.
    pub(super) too_large: &'a str,
    /// Whether it depends on the items if the message is complex.
    pub(super) depends: bool,
}

/// Where a message that came is, and what is done if it is wrong.
pub(super) struct Received<'a> {
    /// The message, as bytes.
    pub(super) buffer: &'a str,
    /// A statement.
    pub(super) failure: &'a str,
}

/// Writes an argument's item at the cursor.
pub(super) fn pack(
    text: &mut Text,
    interface: &Interface,
    item: &Item,
    argument: &Argument,
    parts: &Parts<'_>,
) {
    match interface.target.dialect {
        Dialect::Typed => typed::pack(text, interface, item, argument, parts),
        Dialect::Untyped => untyped::pack(text, interface, item, argument, parts),
    }
}

/// Writes an item that belongs to no argument.
pub(super) fn pack_own(text: &mut Text, message: &Message, item: &Item, buffer: &str) {
    // In the typed dialect the only one is the result, which is there already.
    if item.descriptor.is_none() {
        untyped::pack_own(text, message, item, buffer);
    }
}

/// Writes one integer of 32 bits.
pub(super) fn pack_integer(text: &mut Text, buffer: &str, item: &Item, address: &str) {
    if item.descriptor.is_some() {
        typed::describe_integer(text, buffer, item);
    }
    text.line(format!("At_ += mig_put({buffer} + At_, {address}, 4);"));
}

/// The condition that a message has not the size and the complexity that it must have.
pub(super) fn wrong_size(message: &Message, size: &str, simple: &str) -> String {
    let comparison = if message.is_fixed() { "!=" } else { "<" };
    let wrong = format!("{size} {comparison} {}", message.minimum);
    match message.complexity {
        Complexity::Simple => format!("({wrong}) || !{simple}"),
        Complexity::Complex => format!("({wrong}) || {simple}"),
        Complexity::Depends => format!("({wrong})"),
    }
}

/// Checks all items and leaves the cursor at the end. Of each value, `NAMEP_` is where its data are
/// in the message, and `NAMEBytes_` their size if it varies.
pub(super) fn check_all(
    text: &mut Text,
    interface: &Interface,
    routine: &Routine,
    message: &Message,
    size: &str,
    received: &Received<'_>,
) {
    if !message.is_fixed() {
        text.line(format!("uint64_t Extra_ = {size} - {};", message.minimum));
    }
    for item in &message.items {
        let Some(argument) = item.argument.map(|index| &routine.arguments[index]) else {
            if item.descriptor.is_none() {
                untyped::check_own(text, message, item, received);
            }
            continue;
        };
        text.line(format!("\n/* {} */", item.name));
        match interface.target.dialect {
            Dialect::Typed => typed::check(text, interface, item, argument, received),
            Dialect::Untyped => untyped::check(text, interface, routine, item, argument, received),
        }
    }
    if !message.is_fixed() {
        text.check("Extra_ != 0", received.failure);
    }
}

/// How many elements of an argument a message has, in the program's, as an expression in C.
pub(super) fn count(interface: &Interface, routine: &Routine, argument: &Argument) -> String {
    match interface.target.dialect {
        Dialect::Typed => typed::count(argument),
        Dialect::Untyped => format!("{}Count_", routine.leader(argument).name),
    }
}

/// The type of a polymorphic argument in a message, as an expression in C.
pub(super) fn type_name(interface: &Interface, argument: &Argument) -> String {
    match interface.target.dialect {
        Dialect::Typed => format!("{}Type_.Name", argument.name),
        Dialect::Untyped => format!("{}Disposition_", argument.name),
    }
}
