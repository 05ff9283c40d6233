//! A reference page of an interface in Markdown: the definition's comments, the routines with their
//! arguments, and the sizes of the messages.

use crate::ast::Direction;
use crate::direct::{self, Plan};
use crate::interface::{Argument, Deallocate, Interface, Routine};
use crate::list::size;
use crate::types::{Placement, Shape, Type};
use std::fmt::Write;

/// The reference page of an interface.
pub fn page(interface: &Interface) -> String {
    let mut text = format!("# The interface `{}`\n", interface.name);
    paragraph(&mut text, &interface.comment);
    let plans = direct::plan(interface).unwrap_or_default();
    let _ = writeln!(
        text,
        "\n| routine | request | reply | bytes there, back | words by direct IPC there, back |\n|---|---|---|---|---|"
    );
    for routine in interface.present() {
        let plan = plans.iter().find(|plan| plan.routine.index == routine.index);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", row(routine, plan));
    }
    for routine in interface.present() {
        section(&mut text, routine);
    }
    text
}

/// Adds a comment, with line breaks where the comment has them.
fn paragraph(text: &mut String, comment: &str) {
    if !comment.is_empty() {
        text.push('\n');
        text.push_str(comment);
        text.push('\n');
    }
}

fn row(routine: &Routine, plan: Option<&Plan<'_>>) -> String {
    let (reply, back) = match &routine.reply {
        Some(reply) => (reply.id.to_string(), size(reply)),
        None => ("-".to_owned(), "-".to_owned()),
    };
    let words = |parts: &direct::Parts, status: u64| {
        let (untyped, typed) = Plan::words(parts);
        if typed == 0 {
            (untyped + status).to_string()
        } else {
            format!("{} + {typed} typed", untyped + status)
        }
    };
    let direct = match plan {
        Some(plan) if routine.simple => format!("{}, -", words(&plan.request, 0)),
        Some(plan) => format!("{}, {}", words(&plan.request, 0), words(&plan.reply, 1)),
        None => "does not fit".to_owned(),
    };
    let name = &routine.name;
    format!(
        "| [`{name}`](#{name}) | {} | {reply} | {}, {back} | {direct} |",
        routine.id,
        size(&routine.request)
    )
}

fn section(text: &mut String, routine: &Routine) {
    let kind = if routine.simple { ", not answered" } else { "" };
    let _ = writeln!(text, "\n## `{}`", routine.name);
    paragraph(text, &routine.comment);
    let _ = writeln!(text, "\nId {}{kind}.\n\n| argument | direction | type |\n|---|---|---|", routine.id);
    for argument in routine.arguments.iter().filter(|argument| !argument.ignored) {
        let _ = writeln!(text, "| `{}` | {} | {} |", argument.name, direction(argument), described(argument));
    }
}

fn direction(argument: &Argument) -> &'static str {
    match argument.direction {
        Direction::In => "in",
        Direction::Out => "out",
        Direction::InOut => "in and out",
        Direction::RequestPort => "where the request goes",
        other => other.keyword(),
    }
}

fn described(argument: &Argument) -> String {
    let of = &argument.of;
    let mut text = format!("`{}`", of.name);
    if let Some(what) = what(of) {
        text += &format!(": {what}");
    }
    match argument.deallocate {
        Deallocate::No => {}
        Deallocate::Yes => text += ", the sender's copy goes away",
        Deallocate::Variable => text += ", the sender says whether its copy goes away",
    }
    text
}

/// A description of a type, unless the type's name describes it.
fn what(of: &Type) -> Option<String> {
    let (bits, count) = (of.bits, of.count);
    let element = match of.sent.name.trim_start_matches("MACH_MSG_TYPE_") {
        _ if of.sent.is_port() => "rights".to_owned(),
        _ if of.sent.is_polymorphic() => "rights of any kind".to_owned(),
        "CHAR" | "BYTE" | "INTEGER_8" => "bytes".to_owned(),
        _ => format!("numbers of {bits} bits"),
    };
    let text = match (of.shape, of.placement, of.variable) {
        (Shape::String, ..) => format!("a string of up to {} bytes", of.bytes_of(count)),
        (_, Placement::OutOfLine, true) => format!("{element} in memory"),
        (_, Placement::OutOfLine, false) => format!("{count} {element} in memory"),
        (_, Placement::Either, _) => format!("{element}, up to {count} in the message, more in memory"),
        (_, Placement::Inline, true) => format!("up to {count} {element}"),
        (Shape::Scalar, ..) => return None,
        (_, Placement::Inline, false) => format!("{count} {element}"),
    };
    Some(text)
}
