//! What a value of a message is in Rust.

use crate::diagnostic::Diagnostic;
use crate::interface::Argument;
use crate::rust::{literal, number};
use crate::types::{Placement, Shape};
use proc_macro2::TokenStream;
use quote::quote;

/// A value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// One number.
    Number {
        /// Its bytes: 1, 2, 4 or 8.
        bytes: u64,
    },
    /// A fixed number of numbers.
    Elements {
        /// Bytes of one.
        bytes: u64,
        /// How many.
        count: u64,
    },
    /// Numbers, as many as there are.
    Array(Varying),
    /// A string without its zero, which has its room.
    Text {
        /// The most bytes, with the zero.
        most: u64,
    },
    /// Memory out of line.
    Memory,
    /// Numbers in the message, or in memory if there are more than the most.
    Either(Varying),
}

/// Numbers, as many as there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Varying {
    /// Bytes of one: 1, 2, 4 or 8.
    pub(super) bytes: u64,
    /// The most.
    pub(super) most: u64,
    /// How many numbers are one element of a type descriptor.
    pub(super) described: u64,
    /// How many numbers are one element of the program's.
    pub(super) unit: u64,
}

impl Value {
    /// The value of an argument.
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

    /// How it is passed to a client's call.
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

    /// How it is taken from a message, and given by a server.
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
