//! Layouts of messages: ids, sizes, and the items in order, each with its descriptor.

mod typed;
mod untyped;

use crate::interface::Routine;
use crate::ipc_type::IpcType;
use crate::target::{Dialect, Target};
use crate::types::Placement;

/// Whether a message carries rights or out-of-line memory, which the kernel must process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Complexity {
    /// No message of the layout does.
    #[default]
    Simple,
    /// Every message of the layout does.
    Complex,
    /// A polymorphic type or the size of an array decides for each message.
    Depends,
}

/// The content of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// The status that the server's routine returns.
    ReturnCode,
    /// The value of an argument.
    Value,
    /// The number of an argument's elements, or of the elements for which the client has room.
    Count,
    /// The offset of an untyped message's string, which is always 0.
    Offset,
    /// The number of descriptors of an untyped message that carries rights or memory.
    Body,
    /// The sender's representation of numbers, in an untyped message.
    DataRepresentation,
}

/// A descriptor, which tells the kernel the type and size of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// The type in a sent message; [`ANY`](crate::ipc_type::ANY) if the sender chooses it.
    pub sent: IpcType,
    /// The type in a received message.
    pub received: IpcType,
    /// The size of an element in bits.
    pub bits: u32,
    /// The number of elements; the most if the number varies; 0 if it has no bound.
    pub count: u64,
    /// Whether the number of elements varies.
    pub variable: bool,
    /// Whether the data lies in the message or out of line.
    pub placement: Placement,
    /// Whether the descriptor has the long form.
    pub long: bool,
    /// The size of the descriptor in bytes; of all descriptors if each right of an array has one.
    pub bytes: u64,
}

/// An item of a message's layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The item's name, which is that of its argument if there is one.
    pub name: String,
    /// The item's content.
    pub kind: ItemKind,
    /// The index of the argument in the routine's arguments, if the item belongs to one.
    pub argument: Option<usize>,
    /// The item's descriptor. Plain data of untyped messages has none.
    pub descriptor: Option<Descriptor>,
    /// The largest size of the item's data in the message in bytes, without padding.
    pub data: u64,
    /// Whether a message may hold less data than that.
    pub varies: bool,
}

/// The layout of a request or a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The message's id.
    pub id: u64,
    /// The items, in the order of the message.
    pub items: Vec<Item>,
    /// The size of the smallest message in bytes.
    pub minimum: u64,
    /// The size of the largest message in bytes.
    pub maximum: u64,
    /// Whether the message carries rights or out-of-line memory.
    pub complexity: Complexity,
}

impl Message {
    /// The layout of a routine's request.
    pub(crate) fn request(target: &Target, routine: &Routine) -> Message {
        let items = match target.dialect {
            Dialect::Typed => typed::request(target, routine),
            Dialect::Untyped => untyped::request(target, routine),
        };
        Message::new(target, routine.id, items)
    }

    /// The layout of a routine's reply.
    pub(crate) fn reply(target: &Target, routine: &Routine) -> Message {
        let items = match target.dialect {
            Dialect::Typed => typed::reply(target, routine),
            Dialect::Untyped => untyped::reply(target, routine),
        };
        Message::new(target, routine.reply_id(), items)
    }

    fn new(target: &Target, id: u64, items: Vec<Item>) -> Message {
        let mut message = Message { id, items, ..Message::default() };
        (message.minimum, message.maximum) = (target.header, target.header);
        for item in &message.items {
            let descriptor = item.descriptor.map_or(0, |descriptor| descriptor.bytes);
            let data = target.padded(item.data);
            message.minimum += descriptor + if item.varies { 0 } else { data };
            message.maximum += descriptor + data;
        }
        message.complexity = match target.dialect {
            Dialect::Typed => complexity(&message.items),
            Dialect::Untyped if message.descriptors() > 0 => Complexity::Complex,
            Dialect::Untyped => Complexity::Simple,
        };
        message
    }

    /// The number of descriptors of an untyped message.
    pub fn descriptors(&self) -> u64 {
        let number = |descriptor: Descriptor| match descriptor.placement {
            Placement::Inline => descriptor.count.max(1),
            _ => 1,
        };
        self.items.iter().filter_map(|item| item.descriptor).map(number).sum()
    }

    /// Whether every message of the layout has the same size.
    pub fn is_fixed(&self) -> bool {
        !self.items.iter().any(|item| item.varies)
    }
}

fn complexity(items: &[Item]) -> Complexity {
    let mut result = Complexity::Simple;
    for descriptor in items.iter().filter_map(|item| item.descriptor) {
        if descriptor.placement == Placement::OutOfLine || descriptor.sent.is_port() {
            return Complexity::Complex;
        }
        if descriptor.placement == Placement::Either || descriptor.sent.is_polymorphic() {
            result = Complexity::Depends;
        }
    }
    result
}
