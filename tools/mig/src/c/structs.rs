//! The C structs of the untyped dialect's messages, by which programs find sizes and declare
//! buffers. Every array in them is as large as it can be.

use super::parameter::{most, type_of};
use super::text::Text;
use crate::interface::{Argument, Interface, Routine, Side};
use crate::layout::{Item, ItemKind, Message};
use crate::types::{Placement, Shape, Type};

/// Writes the structs, a union of all requests and a union of all replies.
pub(super) fn write(text: &mut Text, interface: &Interface, side: Side) {
    for (which, messages) in [("Request", requests(interface)), ("Reply", replies(interface))] {
        let name = &interface.name;
        let guard = format!("__{which}__{name}_subsystem__defined");
        text.line(format!("\n#ifndef {guard}\n#define {guard}\n#pragma pack(push, 4)"));
        for (routine, message) in &messages {
            structure(text, routine, which, message, side);
        }
        text.line("#pragma pack(pop)");
        text.line(format!("\nunion __{which}Union__{name}_subsystem {{"));
        for (routine, message) in &messages {
            let routine = &routine.name;
            text.deeper(match message {
                Some(_) => format!("__{which}__{routine}_t {which}_{routine};"),
                None => format!("mig_reply_error_t {which}_{routine};"),
            });
        }
        text.line(format!("}};\n#endif /* !{guard} */"));
    }
}

fn requests(interface: &Interface) -> Vec<(&Routine, Option<&Message>)> {
    interface.present().map(|routine| (routine, Some(&routine.request))).collect()
}

fn replies(interface: &Interface) -> Vec<(&Routine, Option<&Message>)> {
    interface.present().map(|routine| (routine, routine.reply.as_ref())).collect()
}

fn structure(text: &mut Text, routine: &Routine, which: &str, message: &Option<&Message>, side: Side) {
    let name = format!("__{which}__{}_t", routine.name);
    let Some(message) = message else {
        return text.line(format!("typedef mig_reply_error_t {name};"));
    };
    text.line("typedef struct {");
    text.deeper("mach_msg_header_t Head;");
    for item in &message.items {
        let argument = item.argument.map(|index| &routine.arguments[index]);
        text.deeper(member(item, argument, side));
    }
    text.line(format!("}} {name};"));
    text.line(format!("_Static_assert(sizeof({name}) == {}, \"{name}\");", message.maximum));
}

fn member(item: &Item, argument: Option<&Argument>, side: Side) -> String {
    let name = &item.name;
    match (item.kind, argument) {
        (ItemKind::Body, _) => "mach_msg_body_t msgh_body;".to_owned(),
        (ItemKind::DataRepresentation, _) => "NDR_record_t NDR;".to_owned(),
        (ItemKind::ReturnCode, _) => "kern_return_t RetCode;".to_owned(),
        (ItemKind::Value, Some(argument)) if item.descriptor.is_some() => described(name, &argument.of),
        (ItemKind::Value, Some(argument)) => plain(name, &argument.of, side),
        _ => format!("mach_msg_type_number_t {name};"),
    }
}

fn described(name: &str, of: &Type) -> String {
    let right = of.sent.is_port() || of.sent.is_polymorphic();
    match (of.placement, right) {
        (Placement::Inline, _) if of.count > 1 || of.variable => {
            format!("mach_msg_port_descriptor_t {name}[{}];", of.count)
        }
        (Placement::Inline, _) => format!("mach_msg_port_descriptor_t {name};"),
        (_, true) => format!("mach_msg_ool_ports_descriptor_t {name};"),
        (_, false) => format!("mach_msg_ool_descriptor_t {name};"),
    }
}

/// The C member for a value in a message's plain data, with its padding.
fn plain(name: &str, of: &Type, side: Side) -> String {
    let bytes = of.bytes_of(of.count);
    let padding = match bytes.next_multiple_of(4) - bytes {
        0 => String::new(),
        padding => format!(" char {name}Pad[{padding}];"),
    };
    let member = match of.shape {
        Shape::Scalar | Shape::Struct => format!("{} {name};", type_of(of, side)),
        Shape::String => format!("char {name}[{}];", of.count),
        Shape::Array => array(name, of, side),
    };
    member + &padding
}

/// The C declaration of an array member. Its elements have the named type of the elements if there
/// is one.
fn array(name: &str, of: &Type, side: Side) -> String {
    let element = of.element.as_deref();
    let count = if of.variable { most(of) } else { of.count / element.map_or(1, |element| element.count) };
    match element.map(|element| type_of(element, side)).filter(|name| !name.is_empty()) {
        Some(element) => format!("{element} {name}[{count}];"),
        None => format!("char {name}[{}];", of.bytes_of(of.count)),
    }
}
