//! The Rust types of the values of messages.

use crate::diagnostic::Diagnostic;
use crate::interface::Argument;
use crate::rust::{literal, number};
use crate::types::{Placement, Shape};
use proc_macro2::TokenStream;
use quote::quote;

/// The form of a value in Rust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// One number.
    Number {
        /// The number's size in bytes: 1, 2, 4 or 8.
        bytes: u64,
    },
    /// A fixed number of numbers.
    Elements {
        /// The size of a number in bytes.
        bytes: u64,
        /// The number of numbers.
        count: u64,
    },
    /// A varying number of numbers in the message.
    Array(Varying),
    /// A string, without its final zero, that occupies its whole room in the message.
    Text {
        /// The most bytes of the string, which includes the final zero.
        most: u64,
    },
    /// A value in memory out of line, to which the message points.
    Memory,
    /// A varying number of numbers, which are out of line if the message has no room for them.
    Either(Varying),
}

/// A varying number of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Varying {
    /// The size of a number in bytes: 1, 2, 4 or 8.
    pub(super) bytes: u64,
    /// The most numbers.
    pub(super) most: u64,
    /// How many numbers make one element as a type descriptor counts elements.
    pub(super) described: u64,
    /// How many numbers make one element as the program counts elements.
    pub(super) unit: u64,
}

impl Value {
    /// The form of an argument's value.
    pub(super) fn of(argument: &Argument) -> Result<Value, Diagnostic> {
        let of = &argument.of;
        let bytes = u64::from(of.bits) / 8;
        let is_number = of.bits.is_multiple_of(8) && matches!(bytes, 1 | 2 | 4 | 8);
        if of.shape == Shape::String && of.placement == Placement::Inline {
            return Ok(Value::Text { most: of.bytes_of(of.count) });
        }
        if of.placement == Placement::OutOfLine {
            return Ok(Value::Memory);
        }
        if of.variable {
            if bytes == 0 || !of.bits.is_multiple_of(8) {
                let message = format!("`{}` is an array of parts of bytes, or of nothing", argument.name);
                return Err(Diagnostic::error(argument.span, message)
                    .labelled("expected elements of whole bytes: stubs in Rust have arrays of numbers"));
            }
            let (bytes, described) = if is_number { (bytes, 1) } else { (1, bytes) };
            let unit = described * of.multiplier();
            let varying = Varying { bytes, most: of.count * described, described, unit };
            let inline = of.placement == Placement::Inline;
            return Ok(if inline { Value::Array(varying) } else { Value::Either(varying) });
        }
        Ok(match (is_number, of.count) {
            (true, 1) if of.shape == Shape::Scalar => Value::Number { bytes },
            (true, count) => Value::Elements { bytes, count },
            (false, count) => Value::Elements { bytes: 1, count: of.bytes_of(count) },
        })
    }

    /// The Rust type of a parameter that passes the value to a client's method.
    pub(super) fn passed(self) -> TokenStream {
        match self {
            Value::Elements { bytes, count } => {
                let (number, count) = (number(bytes), literal(count));
                quote!(&[#number; #count])
            }
            Value::Array(Varying { bytes, .. }) | Value::Either(Varying { bytes, .. }) => {
                let number = number(bytes);
                quote!(&[#number])
            }
            Value::Text { .. } => quote!(&[u8]),
            other => other.returned(),
        }
    }

    /// The Rust type of the value where a message yields it or a server returns it.
    pub(super) fn returned(self) -> TokenStream {
        match self {
            Value::Number { bytes } => {
                let number = number(bytes);
                quote!(#number)
            }
            Value::Elements { bytes, count } => {
                let (number, count) = (number(bytes), literal(count));
                quote!([#number; #count])
            }
            Value::Array(Varying { bytes, most, .. }) => {
                let (number, most) = (number(bytes), literal(most));
                quote!(Array<#number, #most>)
            }
            Value::Text { most } => {
                let most = literal(most);
                quote!(Array<u8, #most>)
            }
            Value::Memory => quote!(Memory),
            Value::Either(Varying { bytes, most, .. }) => {
                let (number, most) = (number(bytes), literal(most));
                quote!(Data<#number, #most>)
            }
        }
    }
}
