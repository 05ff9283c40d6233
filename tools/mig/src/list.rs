//! Text lists of an interface: names and ids, and the layouts of messages.

use crate::interface::{Interface, Routine};
use crate::ipc_type::IpcType;
use crate::layout::{Complexity, Descriptor, ItemKind, Message};
use crate::types::Placement;
use std::fmt::{self, Write};

/// One line for each routine: the subsystem's name and base, the routine's name and index, the ids
/// of request and reply. The id of a missing reply is 0.
pub fn names(interface: &Interface) -> String {
    let line = |routine: &Routine| {
        let reply = if routine.simple { 0 } else { routine.reply_id() };
        let (subsystem, base) = (&interface.name, interface.base);
        format!("{subsystem} {base} {} {} {} {reply}\n", routine.name, routine.index, routine.id)
    };
    interface.present().map(line).collect()
}

/// The layouts of all messages of an interface.
pub fn layouts(interface: &Interface) -> String {
    let mut text = format!("subsystem {} {} {}\n", interface.name, interface.base, interface.target.name);
    for routine in interface.present() {
        let kind = if routine.simple { "simpleroutine" } else { "routine" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n{kind} {}", routine.name);
        let _ = message(&mut text, "request", &routine.request);
        if let Some(reply) = &routine.reply {
            let _ = message(&mut text, "reply", reply);
        }
    }
    text
}

/// The size of a message in bytes: one number, or the smallest and the largest.
pub fn size(message: &Message) -> String {
    if message.is_fixed() {
        message.minimum.to_string()
    } else {
        format!("{}..{}", message.minimum, message.maximum)
    }
}

fn message(text: &mut String, which: &str, message: &Message) -> fmt::Result {
    let complexity = match message.complexity {
        Complexity::Simple => "simple",
        Complexity::Complex => "complex",
        Complexity::Depends => "simple or complex",
    };
    writeln!(text, "  {which} {} size {} {complexity}", message.id, size(message))?;
    for item in &message.items {
        let kind = match item.kind {
            ItemKind::ReturnCode => "result",
            ItemKind::Value => "value",
            ItemKind::Count => "count",
            ItemKind::Offset => "offset",
            ItemKind::Body => "body",
            ItemKind::DataRepresentation => "representation",
        };
        let most = if item.varies { "<=" } else { "" };
        write!(text, "    {kind} {} {most}{}", item.name, item.data)?;
        if let Some(descriptor) = &item.descriptor {
            write!(text, " {}", described(descriptor))?;
        }
        text.push('\n');
    }
    Ok(())
}

fn described(descriptor: &Descriptor) -> String {
    let name = |of: IpcType| of.in_c().trim_start_matches("MACH_MSG_TYPE_").to_ascii_lowercase();
    let mut text = name(descriptor.sent);
    if descriptor.received != descriptor.sent {
        text += &format!("|{}", name(descriptor.received));
    }
    let (most, count) = (if descriptor.variable { "<=" } else { "" }, descriptor.count);
    if descriptor.variable && count == 0 {
        text += &format!(" {}x?", descriptor.bits);
    } else {
        text += &format!(" {}x{most}{count}", descriptor.bits);
    }
    text += match descriptor.placement {
        Placement::Inline => "",
        Placement::OutOfLine => " out-of-line",
        Placement::Either => " or out-of-line",
    };
    if descriptor.long {
        text += " long";
    }
    text
}
