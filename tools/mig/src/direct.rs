//! Stubs over direct L4 IPC: how each argument is carried in L4 messages.
//!
//! An argument is carried in words of the message registers. If the registers have too little room,
//! large arguments become string items. A value of the type `l4_map_item_t` is a map item. A port
//! is a word, except the port that receives the request. Directions that belong to Mach messages
//! (reply ports, times, options, tokens) have no meaning in L4 messages, and the stubs leave them
//! out.

mod c;
mod rust;

pub use c::header;
pub use rust::module;

use crate::diagnostic::Diagnostic;
use crate::interface::{Argument, Interface, Routine};
use crate::types::{Placement, Shape};

/// The number of message registers for data: register 0 is the message tag.
const REGISTERS: u64 = 63;

/// The most string items of a message.
const STRINGS: usize = 8;

/// The name of the type whose values are sent as map items.
const MAP_ITEM: &str = "l4_map_item_t";

/// How a message carries a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One number in one word.
    Number {
        /// The number's size in bytes: 1, 2, 4 or 8.
        bytes: u64,
    },
    /// A fixed number of elements; each word holds as many elements as fit.
    Elements {
        /// The size of an element in bytes.
        bytes: u64,
        /// The number of elements.
        count: u64,
    },
    /// A word with the number of elements, then the elements.
    Array {
        /// The size of an element in bytes.
        bytes: u64,
        /// The most elements.
        most: u64,
    },
    /// A word with the number of bytes, and a string item with the data.
    String {
        /// The size of an element in bytes; the number of bytes is a multiple of it.
        bytes: u64,
        /// The most bytes, or none if the string is unbounded.
        most: Option<u64>,
        /// Whether each message has exactly the most bytes.
        fixed: bool,
    },
    /// A map item.
    Map,
}

impl Form {
    /// The most untyped words that a value of this form takes.
    fn words(self) -> u64 {
        match self {
            Form::Number { .. } | Form::String { .. } => 1,
            Form::Elements { bytes, count } => packed(bytes, count),
            Form::Array { bytes, most } => 1 + packed(bytes, most),
            Form::Map => 0,
        }
    }

    /// The words that the typed items of a value of this form take.
    fn items(self) -> u64 {
        if matches!(self, Form::String { .. } | Form::Map) { 2 } else { 0 }
    }
}

/// The number of words that hold `count` elements of `bytes` bytes each.
fn packed(bytes: u64, count: u64) -> u64 {
    count.div_ceil(8 / bytes.clamp(1, 8))
}

/// A part of a message: a value, or a word that belongs to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The value of an argument.
    Value(Form),
    /// The type of an argument that is a polymorphic right.
    Type,
    /// The number of bytes for which the caller has room, in a request.
    Room {
        /// The form in which the reply carries the value.
        form: Form,
    },
}

/// The parts of a message in the order of the arguments. Each has the index of its argument.
pub type Parts = Vec<(usize, Part)>;

/// The parts of the messages of a routine.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The routine whose messages are planned.
    pub routine: &'a Routine,
    /// The parts of the request.
    pub request: Parts,
    /// The parts of the reply that follow the word with the status.
    pub reply: Parts,
}

impl Plan<'_> {
    /// The most untyped words and the most typed words that parts take in a message.
    pub fn words(parts: &Parts) -> (u64, u64) {
        let sum = |each: fn(&Part) -> u64| parts.iter().map(|(_, part)| each(part)).sum();
        (sum(untyped), sum(typed))
    }
}

/// The numbers of untyped and of typed words of a message, or none if the numbers vary.
fn fixed_words(parts: &Parts) -> Option<(u64, u64)> {
    let varies = parts.iter().any(|(_, part)| matches!(part, Part::Value(Form::Array { .. })));
    (!varies).then(|| Plan::words(parts))
}

fn untyped(part: &Part) -> u64 {
    match part {
        Part::Value(form) => form.words(),
        Part::Type | Part::Room { .. } => 1,
    }
}

fn typed(part: &Part) -> u64 {
    match part {
        Part::Value(form) => form.items(),
        Part::Type | Part::Room { .. } => 0,
    }
}

/// Chooses the parts of the messages of all routines.
///
/// # Errors
/// The arguments of a routine do not fit in a message.
pub fn plan(interface: &Interface) -> Result<Vec<Plan<'_>>, Diagnostic> {
    interface.present().map(plan_routine).collect()
}

fn plan_routine(routine: &Routine) -> Result<Plan<'_>, Diagnostic> {
    let mut reply = Parts::new();
    for (index, argument) in routine.arguments.iter().enumerate() {
        if argument.in_reply() {
            reply.push((index, Part::Value(form(argument))));
            if argument.of.received.is_polymorphic() {
                reply.push((index, Part::Type));
            }
        }
    }
    fit(routine, "reply", &mut reply, 1)?;
    let mut request = Parts::new();
    for (index, argument) in routine.arguments.iter().enumerate() {
        if argument.in_request() {
            request.push((index, Part::Value(form(argument))));
            if argument.of.sent.is_polymorphic() {
                request.push((index, Part::Type));
            }
        }
        let string = reply.iter().find_map(|&(other, part)| match part {
            Part::Value(form @ Form::String { .. }) if other == index => Some(form),
            _ => None,
        });
        if let Some(form) = string {
            request.push((index, Part::Room { form }));
        }
    }
    fit(routine, "request", &mut request, 0)?;
    Ok(Plan { routine, request, reply })
}

/// The form of an argument's value while the registers have room for it.
fn form(argument: &Argument) -> Form {
    let of = &argument.of;
    if of.name == MAP_ITEM {
        return Form::Map;
    }
    let bytes = u64::from(of.bits).div_ceil(8).max(1);
    match of.placement {
        Placement::OutOfLine | Placement::Either => {
            let fixed = of.placement == Placement::OutOfLine && !of.variable;
            let bytes = u64::from(of.bits).div_ceil(8).max(1);
            Form::String { bytes, most: fixed.then(|| of.count * bytes), fixed }
        }
        Placement::Inline if !matches!(bytes, 1 | 2 | 4 | 8) => {
            Form::Elements { bytes: 1, count: of.bytes_of(of.count) }
        }
        Placement::Inline if of.variable => Form::Array { bytes, most: of.count },
        Placement::Inline if of.shape == Shape::String => Form::Array { bytes: 1, most: of.count },
        Placement::Inline if of.count == 1 => Form::Number { bytes },
        Placement::Inline => Form::Elements { bytes, count: of.count },
    }
}

/// Turns the largest values into strings until the other parts fit in the registers.
fn fit(routine: &Routine, which: &str, parts: &mut Parts, taken: u64) -> Result<(), Diagnostic> {
    loop {
        let (untyped, typed) = Plan::words(parts);
        let strings =
            parts.iter().filter(|(_, part)| matches!(part, Part::Value(Form::String { .. }))).count();
        if taken + untyped + typed <= REGISTERS && strings <= STRINGS {
            return Ok(());
        }
        let movable = |part: &Part| match part {
            Part::Value(form @ (Form::Elements { .. } | Form::Array { .. })) => {
                Some(form.words()).filter(|&words| words > 3)
            }
            _ => None,
        };
        let largest = (0..parts.len())
            .filter(|&at| movable(&parts[at].1).is_some())
            .max_by_key(|&at| movable(&parts[at].1));
        let Some(largest) = largest.filter(|_| strings < STRINGS) else {
            return Err(Diagnostic::error(
                routine.span,
                format!("the {which} of `{}` does not fit the registers", routine.name),
            )
            .labelled(format!("expected at most {REGISTERS} words and {STRINGS} strings")));
        };
        let (bytes, most, fixed) = match parts[largest].1 {
            Part::Value(Form::Elements { bytes, count }) => (bytes, bytes * count, true),
            Part::Value(Form::Array { bytes, most }) => (bytes, bytes * most, false),
            _ => (1, 0, false),
        };
        parts[largest].1 = Part::Value(Form::String { bytes, most: Some(most), fixed });
    }
}
