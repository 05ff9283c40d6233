//! Statements that read the items of a message. They use `?` in a function that returns `Option`.

use super::value::{Value, Varying};
use super::{received, room_name, type_name, value};
use crate::interface::{Argument, Interface, Routine};
use crate::ipc_type::IpcType;
use crate::layout::{Complexity, Descriptor, Item, ItemKind, Message};
use crate::rust::{ident, literal, number};
use crate::target::Dialect;
use crate::types::Placement;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

/// The names and types of the values that the items of a request yield.
pub(super) fn found(routine: &Routine) -> Vec<(Ident, TokenStream)> {
    let mut all = Vec::new();
    for argument in &routine.arguments {
        if argument.in_request() {
            all.extend(received(argument, argument.of.received.is_polymorphic()));
        } else if argument.in_reply() && argument.count_in_out {
            all.push((room_name(argument), quote!(usize)));
        }
    }
    all
}

/// The bytes that a value has for each element that the program counts. A right counts as 1, since
/// arrays of rights are measured in elements.
pub(super) fn unit(argument: &Argument) -> u64 {
    let of = &argument.of;
    if of.sent.is_port() || of.sent.is_polymorphic() { 1 } else { of.bytes_of(of.multiplier()) }
}

fn count_name(argument: &Argument) -> Ident {
    format_ident!("{}_count", argument.name)
}

/// Statements that read all items of a message.
pub(super) fn items(
    interface: &Interface,
    routine: &Routine,
    message: &Message,
    is_request: bool,
) -> TokenStream {
    let typed = interface.target.dialect == Dialect::Typed;
    // The caller's statements have read the result and the items before it.
    let has_result = !is_request && (typed || message.complexity == Complexity::Simple);
    let read = message.items.iter().map(|item| {
        let argument = item.argument.map(|index| &routine.arguments[index]);
        match (item.kind, argument, &item.descriptor) {
            (ItemKind::Value, Some(argument), Some(descriptor)) if typed => {
                described(argument, item, descriptor)
            }
            (ItemKind::Value, Some(argument), Some(descriptor)) => descriptors(argument, descriptor),
            (ItemKind::Value, Some(argument), None) => data(routine, argument, item),
            (ItemKind::Count, Some(argument), _) if is_request && !argument.in_request() => {
                let (room, most) = (room_name(argument), argument.of.count / argument.of.multiplier().max(1));
                let (most, read) = (literal(most), if typed { quote!(integer) } else { quote!(word) });
                quote!(let #room = reader_.#read()?.min(#most) as usize;)
            }
            (ItemKind::Count, Some(argument), _) => {
                let count = count_name(argument);
                quote!(let #count = reader_.word()?;)
            }
            (ItemKind::Offset, ..) => quote!(reader_.word()?;),
            (ItemKind::Body, ..) => {
                let count = literal(message.descriptors());
                quote!(reader_.body(#count)?;)
            }
            (ItemKind::DataRepresentation, ..) if !has_result => quote!(reader_.representation()?;),
            _ => quote!(),
        }
    });
    let counted = message.items.iter().filter(|_| !typed).map(|item| match item.argument {
        Some(index) if item.kind == ItemKind::Value && item.descriptor.is_some() => {
            counted(routine, &routine.arguments[index])
        }
        _ => quote!(),
    });
    quote!(#(#read)* #(#counted)*)
}

/// The generic arguments of a value of varying size: the type of a number, and the most numbers.
fn generics(varying: &Varying) -> TokenStream {
    let (number, most) = (number(varying.bytes), literal(varying.most));
    quote!(#number, #most)
}

/// The expression that reads a value of fixed size without a descriptor, or after its descriptor.
fn fixed(argument: &Argument) -> TokenStream {
    match value(argument) {
        Value::Number { bytes } => {
            let (number, bytes) = (number(bytes), literal(bytes));
            quote!(reader_.number(#bytes)? as #number)
        }
        Value::Elements { bytes, count } => {
            let (number, count) = (number(bytes), literal(count));
            quote!(reader_.elements::<#number, #count>()?)
        }
        Value::Text { most } => {
            let most = literal(most);
            quote!(reader_.text::<#most>(#most)?)
        }
        _ => quote!(),
    }
}

/// The expression that reads a value of an untyped message's plain data.
fn data(routine: &Routine, argument: &Argument, item: &Item) -> TokenStream {
    let (name, count) = (ident(&argument.name), count_name(routine.leader(argument)));
    let value = match value(argument) {
        Value::Array(varying) => {
            let (generics, unit) = (generics(&varying), literal(varying.unit));
            quote!(reader_.array::<#generics>(#count.checked_mul(#unit)?)?)
        }
        Value::Text { most } if item.varies => {
            let most = literal(most);
            quote!(reader_.text::<#most>(#count)?)
        }
        _ => fixed(argument),
    };
    quote!(let #name = #value;)
}

/// The type number that a received message must have, or an expression for any type if the sender
/// chooses it.
fn expected(of: IpcType) -> TokenStream {
    if of.is_polymorphic() {
        quote!(None)
    } else {
        let number = literal(of.number.into());
        quote!(Some(#number))
    }
}

/// Statements that read an item of a typed message: the descriptor and its data.
fn described(argument: &Argument, item: &Item, descriptor: &Descriptor) -> TokenStream {
    let (name, bits, long) = (ident(&argument.name), literal(descriptor.bits.into()), descriptor.long);
    let (kind, count) = (expected(descriptor.received), literal(descriptor.count));
    let elements = match (descriptor.variable, descriptor.placement) {
        (false, _) => quote!(Number::Exactly(#count)),
        (true, Placement::OutOfLine) => quote!(Number::Any),
        (true, _) => quote!(Number::UpTo(#count)),
    };
    let inline = match descriptor.placement {
        Placement::Inline => quote!(Some(true)),
        Placement::OutOfLine => quote!(Some(false)),
        Placement::Either => quote!(None),
    };
    let multiplier = literal(argument.of.multiplier());
    let array = |varying: &Varying| {
        let (generics, described) = (generics(varying), literal(varying.described));
        let number = quote!(descriptor_.number.checked_mul(#described)?);
        let whole = if varying.unit > varying.described {
            quote!(if descriptor_.number % #multiplier != 0 { return None; })
        } else {
            quote!()
        };
        (whole, quote!(reader_.array::<#generics>(#number)?))
    };
    let read = match value(argument) {
        Value::Array(varying) => {
            let (whole, array) = array(&varying);
            quote!(#whole let #name = #array;)
        }
        Value::Either(varying) => {
            let (whole, array) = array(&varying);
            quote! {
                #whole
                let #name = if descriptor_.flags & message::INLINE != 0 {
                    Data::Inline(#array)
                } else {
                    Data::Memory(reader_.pointer(descriptor_, #multiplier)?)
                };
            }
        }
        Value::Memory => quote!(let #name = reader_.pointer(descriptor_, #multiplier)?;),
        Value::Text { most } if item.varies => {
            let most = literal(most);
            quote!(let #name = reader_.text::<#most>(descriptor_.number)?;)
        }
        _ => {
            let value = fixed(argument);
            quote!(let #name = #value;)
        }
    };
    let any = descriptor.received.is_polymorphic().then(|| {
        let name = type_name(argument);
        quote!(let #name = descriptor_.name;)
    });
    let describe = quote! {
        &Expected { name: #kind, bits: #bits, number: #elements, inline: #inline, long: #long }
    };
    let uses = any.is_some() || read.to_string().contains("descriptor_");
    if let (Value::Number { bytes }, None) = (value(argument), &any) {
        let (number, bytes) = (number(bytes), literal(bytes));
        quote!(let #name = reader_.value(#describe, #bytes)? as #number;)
    } else if uses {
        quote!(let descriptor_ = reader_.described(#describe)?; #any #read)
    } else {
        quote!(reader_.expect(#describe)?; #read)
    }
}

/// Statements that read a value's descriptors in an untyped message. The number of elements is not
/// known before the item that holds it has been read.
fn descriptors(argument: &Argument, descriptor: &Descriptor) -> TokenStream {
    let (name, kind) = (ident(&argument.name), expected(descriptor.received));
    let is_any = descriptor.received.is_polymorphic();
    let right = descriptor.received.is_port() || is_any;
    let type_of = type_name(argument);
    let found_type = if is_any { quote!(#type_of) } else { quote!(_) };
    match value(argument) {
        Value::Number { .. } => quote!(let (#name, #found_type) = reader_.right(#kind)?;),
        Value::Memory => {
            let rights = if right { quote!(Some(#kind)) } else { quote!(None) };
            let any = is_any.then(|| quote!(let #type_of = #name.disposition;));
            quote!(let #name = reader_.memory(#rights)?; #any)
        }
        _ => {
            let most = literal(descriptor.count);
            quote!(let (#name, #found_type) = reader_.rights::<#most>(#kind)?;)
        }
    }
}

/// Statements that apply the number of elements, which an item of its own gives, to a value with
/// descriptors.
fn counted(routine: &Routine, argument: &Argument) -> TokenStream {
    let (name, count) = (ident(&argument.name), count_name(routine.leader(argument)));
    match value(argument) {
        Value::Memory => {
            let unit = literal(unit(argument));
            let fixed = literal(argument.of.count);
            let count = if argument.of.variable { quote!(#count) } else { quote!(#fixed) };
            quote!(let #name = #name.counted(#count, #unit)?;)
        }
        Value::Array(varying) => {
            let generics = generics(&varying);
            quote!(let #name = Array::<#generics>::new(#name.get(..#count as usize)?)?;)
        }
        _ => quote!(),
    }
}
