//! Messages as data: ids, sizes, and each item in its order, with its descriptor.

mod typed;
mod untyped;

use crate::interface::Routine;
use crate::ipc_type::IpcType;
use crate::target::{Dialect, Target};
use crate::types::Placement;

/// Whether a message carries rights or memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Complexity {
    /// Never.
    #[default]
    Simple,
    /// Always.
    Complex,
    /// It depends on a polymorphic type or on the size of an array.
    Depends,
}

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// The result of the server's routine.
    ReturnCode,
    /// An argument's value.
    Value,
    /// How many elements an argument has, or has room for.
    Count,
    /// The offset of a string in the untyped dialect, which is 0.
    Offset,
    /// What an untyped message with rights or memory begins with: how many descriptors follow.
    Body,
    /// How the sender represents numbers, in the untyped dialect.
    DataRepresentation,
}

/// What describes an item to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// What is sent; polymorphic if that is decided at the time.
    pub sent: IpcType,
    /// What is received.
    pub received: IpcType,
    /// Bits of an element.
    pub bits: u32,
    /// Elements, the most if they vary, 0 if there is no bound.
    pub count: u64,
    /// Whether the number of elements varies.
    pub variable: bool,
    /// Where the data lies.
    pub placement: Placement,
    /// Whether it has the long form.
    pub long: bool,
    /// Bytes of the descriptor, or of the descriptors of all rights of an array.
    pub bytes: u64,
}

/// An item of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: ItemKind,
    /// Which of the routine's arguments it belongs to.
    pub argument: Option<usize>,
    /// What describes it; items of the untyped dialect's data have none.
    pub descriptor: Option<Descriptor>,
    /// The most bytes of its data in the message, without padding.
    pub data: u64,
    /// Whether fewer bytes may be there.
    pub varies: bool,
}

/// The layout of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Its id.
    pub id: u64,
    /// Its items.
    pub items: Vec<Item>,
    /// Bytes of the smallest.
    pub minimum: u64,
    /// Bytes of the largest.
    pub maximum: u64,
    /// Whether it carries rights or memory.
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

    /// How many descriptors a message of the untyped dialect has.
    pub fn descriptors(&self) -> u64 {
        let number = |descriptor: Descriptor| match descriptor.placement {
            Placement::Inline => descriptor.count.max(1),
            _ => 1,
        };
        self.items.iter().filter_map(|item| item.descriptor).map(number).sum()
    }

    /// Whether all messages have the same size.
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
