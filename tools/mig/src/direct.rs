//! Stubs over direct L4 IPC: where each argument travels.
//!
//! Arguments are words of the message registers. What does not fit there is a string item; a
//! value of the type `l4_map_item_t` is a map item. Ports other than the one that the request goes
//! to are words. Directions that belong to Mach messages (reply ports, times, options, tokens) have
//! no meaning here, and stubs do not have them.

mod c;
mod rust;

pub use c::header;
pub use rust::module;

use crate::diagnostic::Diagnostic;
use crate::interface::{Argument, Interface, Routine};
use crate::types::{Placement, Shape};

/// Words that a message has in its registers.
const REGISTERS: u64 = 63;

/// Most strings of a message.
const STRINGS: usize = 8;

/// The name of the type that is a map item.
const MAP_ITEM: &str = "l4_map_item_t";

/// How a value travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One number in one word.
    Number {
        /// Its bytes: 1, 2, 4 or 8.
        bytes: u64,
    },
    /// A fixed number of elements, as many in a word as fit.
    Elements {
        /// Bytes of one.
        bytes: u64,
        /// How many.
        count: u64,
    },
    /// A count and the elements.
    Array {
        /// Bytes of one.
        bytes: u64,
        /// The most.
        most: u64,
    },
    /// A count of bytes and a string item.
    String {
        /// Bytes of an element: the count is a multiple.
        bytes: u64,
        /// The most bytes, if there is a bound.
        most: Option<u64>,
        /// Whether there are always so many.
        fixed: bool,
    },
    /// A map item.
    Map,
}

impl Form {
    /// The most untyped words.
    fn words(self) -> u64 {
        match self {
            Form::Number { .. } | Form::String { .. } => 1,
            Form::Elements { bytes, count } => packed(bytes, count),
            Form::Array { bytes, most } => 1 + packed(bytes, most),
            Form::Map => 0,
        }
    }

    /// The words of typed items.
    fn items(self) -> u64 {
        if matches!(self, Form::String { .. } | Form::Map) { 2 } else { 0 }
    }
}

/// The words of so many elements.
fn packed(bytes: u64, count: u64) -> u64 {
    count.div_ceil(8 / bytes.clamp(1, 8))
}

/// A part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// An argument's value.
    Value(Form),
    /// The type of a polymorphic right.
    Type,
    /// How many bytes the caller has room for.
    Room {
        /// How it travels back.
        form: Form,
    },
}

/// The parts of a message, in the order of the arguments: which argument, what of it.
pub type Parts = Vec<(usize, Part)>;

/// Where the arguments of a routine travel.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The routine.
    pub routine: &'a Routine,
    /// The request.
    pub request: Parts,
    /// The reply, after the status.
    pub reply: Parts,
}

impl Plan<'_> {
    /// The most words of a message: untyped, typed.
    pub fn words(parts: &Parts) -> (u64, u64) {
        let sum = |each: fn(&Part) -> u64| parts.iter().map(|(_, part)| each(part)).sum();
        (sum(untyped), sum(typed))
    }
}

/// How many words a message has, untyped and typed, if that does not vary.
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

/// Decides where all arguments travel.
///
/// # Errors
/// A routine's arguments do not fit a message.
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

/// How a value travels if there is room.
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

/// Moves the largest values into strings until the rest fits the registers.
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
