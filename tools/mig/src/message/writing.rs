//! Statements that write the items of a message.

use super::value::{Value, Varying};
use super::{deallocate_name, has_deallocate, room_name, type_name, value};
use crate::interface::{Argument, Deallocate, Interface, Routine};
use crate::layout::{Descriptor, Item, ItemKind, Message};
use crate::rust::{ident, literal};
use crate::target::Dialect;
use crate::types::Placement;
use proc_macro2::{Ident, TokenStream};
use quote::quote;

/// Statements that check values before they are sent. They return `error` if an array is too large.
pub(super) fn checks(routine: &Routine, is_request: bool, error: &TokenStream) -> TokenStream {
    let is_sent = |argument: &&Argument| if is_request { argument.in_request() } else { argument.in_reply() };
    let checks = routine.arguments.iter().filter(is_sent).map(|argument| {
        let name = ident(&argument.name);
        let mut wrong = Vec::new();
        match value(argument) {
            Value::Text { most } => {
                let most = literal(most);
                wrong.push(quote!(#name.len() >= #most));
            }
            Value::Array(varying) => {
                let (most, unit) = (literal(varying.most), literal(varying.unit));
                wrong.push(quote!(#name.len() > #most));
                if varying.unit > 1 {
                    wrong.push(quote!(#name.len() % #unit != 0));
                }
                if !is_request && argument.count_in_out && !argument.in_request() {
                    let room = room_name(argument);
                    wrong.push(quote!(#name.len() > #room * #unit));
                }
            }
            Value::Either(varying) if is_request && varying.unit > 1 => {
                let unit = literal(varying.unit);
                wrong.push(quote!(#name.len() % #unit != 0));
            }
            _ => {}
        }
        if argument.same_count {
            let (own, other) = (count(argument), count(routine.leader(argument)));
            wrong.push(quote!(#own != #other));
        }
        if wrong.is_empty() { quote!() } else { quote!(if #(#wrong)||* { return Err(#error); }) }
    });
    quote!(#(#checks)*)
}

/// The number of a value's elements, as the program counts them: an expression.
fn count(argument: &Argument) -> TokenStream {
    let name = ident(&argument.name);
    match value(argument) {
        Value::Array(Varying { unit: 1, .. }) | Value::Either(Varying { unit: 1, .. }) => {
            quote!(#name.len() as u32)
        }
        Value::Array(varying) | Value::Either(varying) => {
            let unit = literal(varying.unit);
            quote!((#name.len() / #unit) as u32)
        }
        Value::Text { .. } => quote!(#name.len() as u32 + 1),
        _ => quote!(#name.count),
    }
}

/// Statements that write all items of a message.
pub(super) fn items(
    interface: &Interface,
    routine: &Routine,
    message: &Message,
    is_request: bool,
) -> TokenStream {
    let typed = interface.target.dialect == Dialect::Typed;
    let write = message.items.iter().map(|item| {
        let argument = item.argument.map(|index| &routine.arguments[index]);
        match (item.kind, argument, &item.descriptor) {
            (ItemKind::Value, Some(argument), Some(descriptor)) if typed => {
                described(argument, item, descriptor, is_request)
            }
            (ItemKind::Value, Some(argument), Some(descriptor)) => {
                descriptors(argument, descriptor, is_request)
            }
            (ItemKind::Value, Some(argument), None) => data(argument, item, is_request),
            (ItemKind::Count, Some(argument), _) if is_request && !argument.in_request() => {
                let most = literal(argument.of.count / argument.of.multiplier().max(1));
                if typed { quote!(writer_.integer(#most);) } else { quote!(writer_.word(#most);) }
            }
            (ItemKind::Count, Some(argument), _) => {
                let count = count(argument);
                quote!(writer_.word(#count);)
            }
            (ItemKind::Offset, ..) => quote!(writer_.word(0);),
            (ItemKind::Body, ..) => {
                let count = literal(message.descriptors());
                quote!(writer_.body(#count);)
            }
            (ItemKind::DataRepresentation, ..) => quote!(writer_.representation();),
            (ItemKind::ReturnCode, ..) if typed => quote!(writer_.integer(0);),
            (ItemKind::ReturnCode, ..) => quote!(writer_.word(0);),
            (_, None, _) => quote!(),
        }
    });
    quote!(#(#write)*)
}

/// The expression that converts a number to a word.
fn word(name: &Ident, bytes: u64) -> TokenStream {
    if bytes == 8 { quote!(#name) } else { quote!(u64::from(#name)) }
}

/// Statements that write a value without a descriptor.
fn data(argument: &Argument, item: &Item, is_request: bool) -> TokenStream {
    let name = ident(&argument.name);
    match value(argument) {
        Value::Number { bytes } => {
            let (word, bytes) = (word(&name, bytes), literal(bytes));
            quote!(writer_.number(#word, #bytes);)
        }
        Value::Text { .. } if item.varies => quote!(writer_.text(&#name, #name.len() + 1);),
        Value::Text { most } => {
            let most = literal(most);
            quote!(writer_.text(&#name, #most);)
        }
        _ if is_request => quote!(writer_.data(#name);),
        _ => quote!(writer_.data(&#name);),
    }
}

/// The number of a type, or the name of the value that gives it if the sender chooses the type.
fn sent(argument: &Argument, descriptor: &Descriptor) -> TokenStream {
    if descriptor.sent.is_polymorphic() {
        let name = type_name(argument);
        quote!(#name)
    } else {
        let number = literal(descriptor.sent.number.into());
        quote!(#number)
    }
}

/// Statements that write an item of a typed message: the descriptor and its data.
fn described(argument: &Argument, item: &Item, descriptor: &Descriptor, is_request: bool) -> TokenStream {
    let (name, kind, bits) =
        (ident(&argument.name), sent(argument, descriptor), literal(descriptor.bits.into()));
    let constant =
        if descriptor.long { 2 } else { 0 } | if argument.deallocate == Deallocate::Yes { 4 } else { 0 };
    let describe = |number: TokenStream, inline: bool| {
        let flags = literal(constant | u64::from(inline));
        let flags = match (argument.deallocate, has_deallocate(argument)) {
            (Deallocate::Variable, true) => {
                let name = deallocate_name(argument);
                quote!(#flags | if #name { message::DEALLOCATE } else { 0 })
            }
            (Deallocate::Variable, false) => {
                quote!(#flags | if #name.deallocate { message::DEALLOCATE } else { 0 })
            }
            _ => quote!(#flags),
        };
        quote!(&Descriptor { name: #kind, bits: #bits, number: #number, flags: #flags })
    };
    if let Value::Number { bytes } = value(argument) {
        let (describe, word, bytes) = (describe(quote!(1), true), word(&name, bytes), literal(bytes));
        return quote!(writer_.value(#describe, #word, #bytes););
    }
    let describe = |number, inline| {
        let descriptor = describe(number, inline);
        quote!(writer_.describe(#descriptor);)
    };
    let fixed = literal(descriptor.count);
    let multiplier = literal(argument.of.multiplier());
    let data = data(argument, item, is_request);
    match value(argument) {
        Value::Memory => {
            let number =
                if argument.of.variable { quote!(#name.count * #multiplier) } else { quote!(#fixed) };
            let describe = describe(number, false);
            quote!(#describe writer_.pointer(#name.address);)
        }
        Value::Text { .. } if item.varies => {
            let describe = describe(quote!(#name.len() as u32 + 1), true);
            quote!(#describe #data)
        }
        Value::Array(varying) => {
            let describe = describe(elements(&varying, &quote!(#name.len())), true);
            quote!(#describe #data)
        }
        Value::Either(varying) if is_request => {
            let number = elements(&varying, &quote!(#name.len()));
            let (inside, outside, most) =
                (describe(number.clone(), true), describe(number, false), literal(varying.most));
            quote! {
                if #name.len() > #most {
                    #outside
                    writer_.pointer(#name.as_ptr() as u64);
                } else {
                    #inside
                    writer_.data(#name);
                }
            }
        }
        Value::Either(varying) => {
            let inside = describe(elements(&varying, &quote!(elements_.len())), true);
            let outside = describe(quote!(memory_.count * #multiplier), false);
            quote! {
                match #name {
                    Data::Inline(elements_) => { #inside writer_.data(&elements_); }
                    Data::Memory(memory_) => { #outside writer_.pointer(memory_.address); }
                }
            }
        }
        _ => {
            let describe = describe(quote!(#fixed), true);
            quote!(#describe #data)
        }
    }
}

/// The number of a descriptor's elements that `length` numbers make: an expression.
fn elements(varying: &Varying, length: &TokenStream) -> TokenStream {
    match varying.described {
        1 => quote!(#length as u32),
        described => {
            let described = literal(described);
            quote!((#length / #described) as u32)
        }
    }
}

/// Statements that write a value's descriptors in an untyped message.
fn descriptors(argument: &Argument, descriptor: &Descriptor, is_request: bool) -> TokenStream {
    let (name, kind) = (ident(&argument.name), sent(argument, descriptor));
    let right = descriptor.sent.is_port() || descriptor.sent.is_polymorphic();
    if descriptor.placement == Placement::Inline {
        let most = literal(descriptor.count);
        return match value(argument) {
            Value::Number { .. } => quote!(writer_.right(#name, #kind);),
            _ if is_request => quote!(writer_.rights(#name, #most, #kind);),
            _ => quote!(writer_.rights(&#name, #most, #kind);),
        };
    }
    let memory = match argument.deallocate {
        Deallocate::No => quote!(Memory { deallocate: false, ..#name }),
        Deallocate::Yes => quote!(Memory { deallocate: true, ..#name }),
        Deallocate::Variable => quote!(#name),
    };
    let (of, unit) = (&argument.of, literal(super::reading::unit(argument)));
    let (count, bytes) = (literal(of.count), literal(of.bytes_of(of.count)));
    let size = match (right, of.variable) {
        (true, true) => quote!(#name.count),
        (false, true) => quote!(#name.count.saturating_mul(#unit)),
        (true, false) => quote!(#count),
        (false, false) => quote!(#bytes),
    };
    let disposition = if right { quote!(Some(#kind)) } else { quote!(None) };
    let physical = argument.physical_copy;
    quote!(writer_.memory(#memory, #size, #disposition, #physical);)
}
