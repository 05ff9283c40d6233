//! Layouts of untyped messages: descriptors of rights and memory, then plain data.

use super::{Descriptor, Item, ItemKind};
use crate::interface::{Argument, Routine};
use crate::target::Target;
use crate::types::{Placement, Shape};

pub(super) fn request(target: &Target, routine: &Routine) -> Vec<Item> {
    let sent = routine.arguments.iter().enumerate().filter(|(_, argument)| argument.in_request());
    let mut items = descriptors(target, sent.clone());
    let mut data = Vec::new();
    for (index, argument) in routine.arguments.iter().enumerate() {
        if argument.in_request() {
            data.extend(plain(index, argument));
        } else if argument.in_reply() && argument.count_in_out {
            data.push(word(format!("{}Cnt", argument.name), ItemKind::Count, Some(index)));
        }
    }
    if !data.is_empty() {
        items.push(representation());
    }
    items.extend(data);
    items
}

pub(super) fn reply(target: &Target, routine: &Routine) -> Vec<Item> {
    let sent = routine.arguments.iter().enumerate().filter(|(_, argument)| argument.in_reply());
    let mut items = descriptors(target, sent.clone());
    let mut data: Vec<Item> = sent.flat_map(|(index, argument)| plain(index, argument)).collect();
    if items.is_empty() {
        // A reply with descriptors always means success, since an error reply has none: only a
        // reply without descriptors has an item for the result.
        data.insert(0, word("RetCode".to_owned(), ItemKind::ReturnCode, None));
    }
    if !data.is_empty() {
        items.push(representation());
    }
    items.extend(data);
    items
}

/// Whether an untyped message carries the argument by a descriptor.
fn is_described(argument: &Argument) -> bool {
    argument.of.is_complex()
}

/// The items of a message's descriptors, after one with their number; none if there are no
/// descriptors.
fn descriptors<'a>(target: &Target, sent: impl Iterator<Item = (usize, &'a Argument)>) -> Vec<Item> {
    let mut items: Vec<Item> = sent
        .filter(|(_, argument)| is_described(argument))
        .map(|(index, argument)| described(target, index, argument))
        .collect();
    if !items.is_empty() {
        items.insert(0, word("msgh_body".to_owned(), ItemKind::Body, None));
    }
    items
}

fn described(target: &Target, index: usize, argument: &Argument) -> Item {
    let of = &argument.of;
    let in_memory = of.placement == Placement::OutOfLine;
    // Each right of an array has a descriptor, which is present even if fewer rights are sent.
    let descriptors = if in_memory { 1 } else { of.count.max(1) };
    let descriptor = Descriptor {
        sent: of.sent,
        received: of.received,
        bits: of.bits,
        count: of.count,
        variable: of.variable,
        placement: of.placement,
        long: in_memory,
        bytes: descriptors * if in_memory { target.long_descriptor } else { target.descriptor },
    };
    Item {
        name: argument.name.clone(),
        kind: ItemKind::Value,
        argument: Some(index),
        descriptor: Some(descriptor),
        data: 0,
        varies: false,
    }
}

/// The items that an argument has in the plain data: its value, or the number of elements of data
/// out of line.
fn plain(index: usize, argument: &Argument) -> Vec<Item> {
    let of = &argument.of;
    let mut items = Vec::new();
    if of.variable && of.shape == Shape::String {
        items.push(word(format!("{}Offset", argument.name), ItemKind::Offset, Some(index)));
    }
    if of.variable && !argument.same_count {
        items.push(word(format!("{}Cnt", argument.name), ItemKind::Count, Some(index)));
    }
    if !is_described(argument) {
        items.push(Item {
            name: argument.name.clone(),
            kind: ItemKind::Value,
            argument: Some(index),
            descriptor: None,
            data: of.bytes_of(of.count),
            varies: of.variable,
        });
    }
    items
}

fn word(name: String, kind: ItemKind, argument: Option<usize>) -> Item {
    Item { name, kind, argument, descriptor: None, data: 4, varies: false }
}

fn representation() -> Item {
    Item { data: 8, ..word("NDR".to_owned(), ItemKind::DataRepresentation, None) }
}
