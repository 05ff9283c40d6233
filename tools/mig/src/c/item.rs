//! C code that writes an item into a message, or checks an item of a received message. Clients and
//! servers use it alike; `typed` and `untyped` hold the forms of items in the two dialects.

use super::text::Text;
use super::{typed, untyped};
use crate::interface::{Argument, Interface, Routine, Side};
use crate::layout::{Complexity, Item, Message};
use crate::target::Dialect;

/// The C expressions that the code for writing an item is made of.
pub(super) struct Parts<'a> {
    /// The buffer that holds the message, as an expression for its bytes.
    pub(super) buffer: &'a str,
    /// The address of the value; for data out of line the address of the pointer to the data.
    pub(super) address: String,
    /// The number of elements, as the program counts them.
    pub(super) count: String,
    /// The type of a polymorphic right, if the program passes it.
    pub(super) name: String,
    /// Whether the sender's copy is deallocated, if the program decides that.
    pub(super) deallocate: String,
    /// The side that sends the value.
    pub(super) side: Side,
    /// The statement that handles an array larger than the message can hold.
    pub(super) too_large: &'a str,
    /// Whether only the items decide if the message is complex, so that their code must record it.
    pub(super) depends: bool,
}

/// The buffer of a received message, and the statement that handles an invalid one.
pub(super) struct Received<'a> {
    /// The buffer that holds the message, as an expression for its bytes.
    pub(super) buffer: &'a str,
    /// The C statement that runs if the message is invalid.
    pub(super) failure: &'a str,
}

/// Writes code that puts an argument's item into the message at the cursor.
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

/// Writes code that puts an item that belongs to no argument into the message.
pub(super) fn pack_own(text: &mut Text, message: &Message, item: &Item, buffer: &str) {
    // The typed dialect's only such item is the result of a reply, which has been written already.
    if item.descriptor.is_none() {
        untyped::pack_own(text, message, item, buffer);
    }
}

/// Writes code that puts an item of one 32-bit integer into the message.
pub(super) fn pack_integer(text: &mut Text, buffer: &str, item: &Item, address: &str) {
    if item.descriptor.is_some() {
        typed::describe_integer(text, buffer, item);
    }
    text.line(format!("At_ += mig_put({buffer} + At_, {address}, 4);"));
}

/// A C condition that holds if a received message has a wrong size or wrong complexity.
pub(super) fn wrong_size(message: &Message, size: &str, simple: &str) -> String {
    let comparison = if message.is_fixed() { "!=" } else { "<" };
    let wrong = format!("{size} {comparison} {}", message.minimum);
    match message.complexity {
        Complexity::Simple => format!("({wrong}) || !{simple}"),
        Complexity::Complex => format!("({wrong}) || {simple}"),
        Complexity::Depends => format!("({wrong})"),
    }
}

/// Writes checks of all items of a message; they leave the cursor at the end of the message. For
/// each value the checks set `NAMEP_` to the address of its data in the message, and `NAMEBytes_`
/// to the size of the data if that varies.
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

/// The number of an argument's elements in a received message, as the program counts them: an
/// expression in C.
pub(super) fn count(interface: &Interface, routine: &Routine, argument: &Argument) -> String {
    match interface.target.dialect {
        Dialect::Typed => typed::count(argument),
        Dialect::Untyped => format!("{}Count_", routine.leader(argument).name),
    }
}

/// The type of a polymorphic argument in a received message: an expression in C.
pub(super) fn type_name(interface: &Interface, argument: &Argument) -> String {
    match interface.target.dialect {
        Dialect::Typed => format!("{}Type_.Name", argument.name),
        Dialect::Untyped => format!("{}Disposition_", argument.name),
    }
}
