//! Layouts of typed messages, in which each item is a descriptor and its data.

use super::{Descriptor, Item, ItemKind};
use crate::interface::{Argument, Routine};
use crate::ipc_type::IpcType;
use crate::target::Target;
use crate::types::Placement;

pub(super) fn request(target: &Target, routine: &Routine) -> Vec<Item> {
    let mut items = Vec::new();
    for (index, argument) in routine.arguments.iter().enumerate() {
        if argument.in_request() {
            items.push(value(target, index, argument, argument.of.sent));
        } else if argument.in_reply() && argument.count_in_out {
            let name = format!("{}Cnt", argument.name);
            items.push(integer(target, name, ItemKind::Count, Some(index)));
        }
    }
    items
}

pub(super) fn reply(target: &Target, routine: &Routine) -> Vec<Item> {
    let mut items = vec![integer(target, "RetCode".to_owned(), ItemKind::ReturnCode, None)];
    for (index, argument) in routine.arguments.iter().enumerate() {
        if argument.in_reply() {
            let item = value(target, index, argument, argument.sent_in_reply());
            items.push(item);
        }
    }
    items
}

/// An item that is one 32-bit integer with its descriptor.
fn integer(target: &Target, name: String, kind: ItemKind, argument: Option<usize>) -> Item {
    let integer =
        IpcType { number: 2, name: "MACH_MSG_TYPE_INTEGER_32", bits: crate::ipc_type::Bits::Known(32) };
    let descriptor = Descriptor {
        sent: integer,
        received: integer,
        bits: 32,
        count: 1,
        variable: false,
        placement: Placement::Inline,
        long: false,
        bytes: target.descriptor,
    };
    Item { name, kind, argument, descriptor: Some(descriptor), data: 4, varies: false }
}

fn value(target: &Target, index: usize, argument: &Argument, sent: IpcType) -> Item {
    let of = &argument.of;
    let descriptor = Descriptor {
        sent,
        received: of.received,
        bits: of.bits,
        count: of.count,
        variable: of.variable,
        placement: of.placement,
        long: argument.long,
        bytes: if argument.long { target.long_descriptor } else { target.descriptor },
    };
    Item {
        name: argument.name.clone(),
        kind: ItemKind::Value,
        argument: Some(index),
        descriptor: Some(descriptor),
        data: of.inline_bytes(target),
        varies: of.variable && of.placement != Placement::OutOfLine,
    }
}
