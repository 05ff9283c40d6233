//! Rust stubs over direct L4 IPC: functions that write and read messages, clients, and a trait for
//! servers with the function that dispatches requests.

use super::{Form, Part, Parts, Plan, fixed_words, plan};
use crate::diagnostic::Diagnostic;
use crate::interface::{Argument, Interface};
use crate::rust::{constant, document, ident, literal, number};
use proc_macro2::{Ident, Literal, TokenStream};
use quote::{format_ident, quote};

/// The text of the Rust module of an interface.
///
/// # Errors
/// The arguments of a routine do not fit in a message.
pub fn module(interface: &Interface) -> Result<String, Diagnostic> {
    let plans = plan(interface)?;
    let (name, comment) = (&interface.name, document(&interface.comment));
    let ids = plans.iter().map(|plan| {
        let (id, value) = (constant(&plan.routine.name), Literal::u64_unsuffixed(plan.routine.id));
        let text = format!(" [`{}`](super::Server::{}).", plan.routine.name, ident(&plan.routine.name));
        quote!(#[doc = #text] pub const #id: u64 = #value;)
    });
    let messages = plans.iter().map(|plan| {
        let (encode, decode, reply) = (encode_request(plan), decode_reply(plan), write_reply(plan));
        quote!(#encode #decode #reply)
    });
    let calls = plans.iter().map(|plan| client(plan, false));
    let async_calls = plans.iter().filter(|plan| !plan.routine.simple).map(|plan| client(plan, true));
    let (methods, serving) = (plans.iter().map(method), plans.iter().map(serve));
    let arms = plans.iter().map(|plan| {
        let (id, function) = (constant(&plan.routine.name), format_ident!("serve_{}", plan.routine.name));
        quote!(id::#id => #function(server_, caller_, tag_, registers_, strings_, room_),)
    });
    let file = quote! {
        #comment
        #[allow(unused_imports, reason = "not every interface needs everything")]
        use direct::{
            Array, AsyncTransport, Decoder, Encoder, Error, REPLY, Registers, Reply, Status, Transport,
            x2::{MapItem, MessageTag, ThreadId},
        };

        /// Labels of requests.
        pub mod id { #(#ids)* }

        #(#messages)*

        /// The client's functions, one for each request. Each blocks until the server has answered.
        #[derive(Debug)]
        pub struct Client<'a, T> {
            /// The thread's IPC.
            pub transport: &'a mut T,
            /// The server's thread.
            pub to: ThreadId,
        }

        impl<T: Transport> Client<'_, T> { #(#calls)* }

        /// The client's functions as futures, which are ready when the server has answered.
        #[derive(Debug)]
        pub struct AsyncClient<'a, T> {
            /// The thread's IPC.
            pub transport: &'a mut T,
            /// The server's thread.
            pub to: ThreadId,
        }

        impl<T: AsyncTransport> AsyncClient<'_, T> { #(#async_calls)* }

        /// The functions that carry out the requests in the server.
        pub trait Server { #(#methods)* }

        /// Decodes a request, calls the server's function, and writes the reply. `strings_` are the
        /// strings that were received with the request. Data that the reply sends in string items
        /// is written into `room_`. `None`: the request gets no reply.
        #[inline]
        pub fn serve<'a, S: Server, R: Registers>(
            server_: &mut S,
            caller_: ThreadId,
            tag_: MessageTag,
            registers_: &mut R,
            strings_: &[&[u8]],
            room_: &'a mut [u8],
        ) -> Option<Reply<'a>> {
            match tag_.label() {
                #(#arms)*
                label => Some(Reply::refusal(registers_, label, Status::BAD_ID)),
            }
        }

        #(#serving)*
    };
    crate::rust::file(name, file)
}

/// The Rust type of a parameter that passes a value of this form.
fn passed(form: Form) -> TokenStream {
    match form {
        Form::Number { bytes } => {
            let number = number(bytes);
            quote!(#number)
        }
        Form::Elements { bytes, count } => {
            let (number, count) = (number(bytes), literal(count));
            quote!(&[#number; #count])
        }
        Form::Array { bytes, .. } => {
            let number = number(bytes);
            quote!(&[#number])
        }
        Form::String { .. } => quote!(&[u8]),
        Form::Map => quote!(MapItem),
    }
}

/// The Rust type of a returned value of this form. For a string it is the number of bytes, since
/// the data is in the caller's buffer.
fn returned(form: Form) -> TokenStream {
    match form {
        Form::Elements { bytes, count } => {
            let (number, count) = (number(bytes), literal(count));
            quote!([#number; #count])
        }
        Form::Array { bytes, most } => {
            let (number, most) = (number(bytes), literal(most));
            quote!(Array<#number, #most>)
        }
        Form::String { .. } => quote!(usize),
        form => passed(form),
    }
}

/// The identifier of a part of a message.
fn part_name(argument: &Argument, part: Part) -> Ident {
    match part {
        Part::Value(_) => ident(&argument.name),
        Part::Type => format_ident!("{}_type", argument.name),
        Part::Room { .. } => format_ident!("{}_room", argument.name),
    }
}

/// The parts of a message with their identifiers.
fn named<'a>(plan: &'a Plan<'_>, parts: &'a Parts) -> impl Iterator<Item = (Ident, Part)> + 'a {
    parts.iter().map(|&(index, part)| (part_name(&plan.routine.arguments[index], part), part))
}

/// The type of a routine's results: unit, one type, or a tuple.
fn result(plan: &Plan<'_>) -> TokenStream {
    let types: Vec<TokenStream> = named(plan, &plan.reply)
        .map(|(_, part)| match part {
            Part::Value(form) => returned(form),
            Part::Type | Part::Room { .. } => quote!(u32),
        })
        .collect();
    match types.as_slice() {
        [one] => one.clone(),
        types => quote!((#(#types),*)),
    }
}

/// The results of a routine as a pattern or an expression: unit, one name, or a tuple.
fn values(names: &[Ident]) -> TokenStream {
    match names {
        [one] => quote!(#one),
        names => quote!((#(#names),*)),
    }
}

/// Statements that write untyped words, then map items. The transport sends the strings.
fn encode(plan: &Plan<'_>, parts: &Parts, is_request: bool) -> TokenStream {
    let words = named(plan, parts).map(|(name, part)| match part {
        Part::Value(Form::Number { bytes: 8 }) => quote!(encoder_.word(#name);),
        Part::Value(Form::Number { .. }) | Part::Type => quote!(encoder_.word(u64::from(#name));),
        Part::Value(Form::Elements { .. }) if is_request => quote!(encoder_.elements(#name);),
        Part::Value(Form::Elements { .. }) => quote!(encoder_.elements(&#name);),
        Part::Value(Form::Array { .. }) if is_request => quote!(encoder_.array(#name);),
        Part::Value(Form::Array { .. }) => quote!(encoder_.array(&#name);),
        Part::Value(Form::String { .. }) if is_request => quote!(encoder_.word(#name.len() as u64);),
        Part::Value(Form::String { .. }) | Part::Room { .. } => quote!(encoder_.word(#name as u64);),
        Part::Value(Form::Map) => quote!(),
    });
    let maps = named(plan, parts).map(|(name, part)| match part {
        Part::Value(Form::Map) => quote!(encoder_.map(#name);),
        _ => quote!(),
    });
    quote!(#(#words)* #(#maps)*)
}

/// The condition that an array's size is invalid. `size` is in elements; for a string it is in
/// bytes.
fn wrong_size(form: Form, size: &TokenStream) -> Option<TokenStream> {
    match form {
        Form::Array { most, .. } => {
            let most = literal(most);
            Some(quote!(#size > #most))
        }
        Form::String { most: Some(most), fixed: true, .. } => {
            let most = literal(most);
            Some(quote!(#size != #most))
        }
        Form::String { bytes, most, .. } => {
            let unit = literal(bytes);
            let multiple = (bytes > 1).then(|| quote!(#size % #unit != 0));
            let bound = most.map(literal).map(|most| quote!(#size > #most));
            match (multiple, bound) {
                (Some(multiple), Some(bound)) => Some(quote!(#multiple || #bound)),
                (multiple, bound) => multiple.or(bound),
            }
        }
        _ => None,
    }
}

/// Statements that read parts of a message. They use `?` in a function that returns `Option`.
fn decode(plan: &Plan<'_>, parts: &Parts, is_request: bool) -> TokenStream {
    let words = named(plan, parts).map(|(name, part)| match part {
        Part::Value(Form::Number { bytes: 8 }) => quote!(let #name = decoder_.word()?;),
        Part::Value(Form::Number { bytes }) => {
            let number = number(bytes);
            quote!(let #name = decoder_.number::<#number>()?;)
        }
        Part::Type => quote!(let #name = decoder_.number::<u32>()?;),
        Part::Value(Form::Elements { bytes, count }) => {
            let (number, count) = (number(bytes), literal(count));
            quote!(let #name = decoder_.elements::<#number, #count>()?;)
        }
        Part::Value(Form::Array { bytes, most }) => {
            let (number, most) = (number(bytes), literal(most));
            quote!(let #name = decoder_.array::<#number, #most>()?;)
        }
        Part::Value(Form::String { .. }) | Part::Room { .. } => {
            quote!(let #name = usize::try_from(decoder_.word()?).ok()?;)
        }
        Part::Value(Form::Map) => quote!(),
    });
    let maps = named(plan, parts).map(|(name, part)| match part {
        Part::Value(Form::Map) => quote!(let #name = decoder_.map()?;),
        _ => quote!(),
    });
    let mut at = 0;
    let strings = named(plan, parts).map(|(name, part)| match part {
        Part::Value(form @ Form::String { .. }) => {
            let place = literal(at);
            at += 1;
            let wrong = wrong_size(form, &quote!(#name));
            let bound = wrong.map(|wrong| quote!(if #wrong { return None; }));
            if is_request {
                quote! {
                    #bound
                    let #name = strings_.get(#place).filter(|string| string.len() == #name)?;
                    if decoder_.string(#name.len())? != #name.len() { return None; }
                }
            } else {
                let room = format_ident!("{}_room", name);
                quote!(#bound if decoder_.string(#room)? != #name { return None; })
            }
        }
        _ => quote!(),
    });
    quote!(#(#words)* #(#maps)* #(#strings)*)
}

/// The names of the reply's strings, for which the caller gives buffers.
fn rooms(plan: &Plan<'_>) -> Vec<Ident> {
    let is_string = |part: &Part| matches!(part, Part::Value(Form::String { .. }));
    named(plan, &plan.reply).filter(|(_, part)| is_string(part)).map(|(name, _)| name).collect()
}

fn encode_request(plan: &Plan<'_>) -> TokenStream {
    let name = &plan.routine.name;
    let function = format_ident!("encode_{name}");
    let (id, body) = (constant(name), encode(plan, &plan.request, true));
    let parameters = named(plan, &plan.request).map(|(name, part)| {
        let of = match part {
            Part::Value(form) => passed(form),
            Part::Type => quote!(u32),
            Part::Room { .. } => quote!(usize),
        };
        quote!(#name: #of)
    });
    let checks = named(plan, &plan.request).map(|(name, part)| match part {
        Part::Value(form) => match wrong_size(form, &quote!(#name.len())) {
            Some(wrong) => quote!(if #wrong { return Err(Error::Status(Status::ARRAY_TOO_LARGE)); }),
            None => quote!(),
        },
        _ => quote!(),
    });
    let text = format!(" Writes a request of [`Server::{}`] into the registers.", ident(name));
    quote! {
        #[doc = #text]
        ///
        /// # Errors
        /// An array is longer than the interface allows.
        #[inline]
        #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
        pub fn #function<R: Registers>(registers_: &mut R, #(#parameters),*) -> Result<MessageTag, Error> {
            #(#checks)*
            #[allow(unused_mut, reason = "there may be no arguments")]
            let mut encoder_ = Encoder::new(registers_);
            #body
            Ok(encoder_.finish(id::#id))
        }
    }
}

fn decode_reply(plan: &Plan<'_>) -> TokenStream {
    if plan.routine.simple {
        return quote!();
    }
    let name = &plan.routine.name;
    let function = format_ident!("decode_{name}");
    let (id, result, body) = (constant(name), result(plan), decode(plan, &plan.reply, false));
    let names: Vec<Ident> = named(plan, &plan.reply).map(|(name, _)| name).collect();
    let values = values(&names);
    let rooms = rooms(plan).into_iter().map(|name| format_ident!("{name}_room"));
    let after_status = match fixed_words(&plan.reply) {
        Some((untyped, typed)) => {
            let (untyped, typed) = (literal(1 + untyped), literal(typed));
            quote!(direct::exact_reply(registers_, tag_, id::#id, #untyped, #typed)?)
        }
        None => quote!(direct::reply(registers_, tag_, id::#id)?),
    };
    let text = format!(" Reads the reply of [`Server::{}`].", ident(name));
    quote! {
        #[doc = #text]
        ///
        /// # Errors
        /// The server's status, or the message is not a reply to this request.
        #[inline]
        pub fn #function<R: Registers>(registers_: &R, tag_: MessageTag, #(#rooms: usize),*) -> Result<#result, Error> {
            #[allow(unused_mut, reason = "there may be no results")]
            let mut decoder_ = #after_status;
            let read = move || {
                #body
                decoder_.finish()?;
                Some(#values)
            };
            read().ok_or(Error::Malformed)
        }
    }
}

/// The function that writes a reply. A server that replies after it has returned from its method
/// calls the function itself.
fn write_reply(plan: &Plan<'_>) -> TokenStream {
    if plan.routine.simple {
        return quote!();
    }
    let name = &plan.routine.name;
    let (function, id, result) = (format_ident!("reply_{name}"), constant(name), result(plan));
    let results: Vec<Ident> = named(plan, &plan.reply).map(|(name, _)| name).collect();
    let (values, encode) = (values(&results), encode(plan, &plan.reply, false));
    let rooms = rooms(plan);
    let buffers: Vec<Ident> = rooms.iter().map(|room| format_ident!("{room}_buffer")).collect();
    let text = format!(" Writes the reply of [`Server::{}`].", ident(name));
    quote! {
        #[doc = #text]
        #[inline]
        pub fn #function<'a, R: Registers>(
            registers_: &mut R,
            result_: Result<#result, Status>,
            #(#buffers: &'a [u8]),*
        ) -> Reply<'a> {
            let #values = match result_ {
                Ok(result_) => result_,
                Err(status_) => return Reply::refusal(registers_, id::#id, status_),
            };
            #(if #rooms > #buffers.len() {
                return Reply::refusal(registers_, id::#id, Status::ARRAY_TOO_LARGE);
            })*
            let mut encoder_ = Encoder::new(registers_);
            encoder_.word(0);
            #encode
            #[allow(unused_mut, reason = "there may be no strings")]
            let mut reply_ = Reply::new(encoder_.finish(id::#id + REPLY));
            #(reply_.add_string(&#buffers[..#rooms]);)*
            reply_
        }
    }
}

/// The method of a client for a routine.
fn client(plan: &Plan<'_>, is_async: bool) -> TokenStream {
    let (name, routine) = (ident(&plan.routine.name), plan.routine);
    let comment = document(&routine.comment);
    let rooms = rooms(plan);
    let mut parameters: Vec<TokenStream> = named(plan, &plan.request)
        .filter(|(_, part)| !matches!(part, Part::Room { .. }))
        .map(|(name, part)| {
            let of = if let Part::Value(form) = part { passed(form) } else { quote!(u32) };
            quote!(#name: #of)
        })
        .collect();
    // The data of an `inout` string has two parameters: the data that is sent and a buffer.
    let buffers: Vec<Ident> = rooms.iter().map(|room| format_ident!("{room}_buffer")).collect();
    parameters.extend(buffers.iter().map(|buffer| quote!(#buffer: &mut [u8])));
    let arguments = named(plan, &plan.request).map(|(name, part)| match part {
        Part::Room { .. } => {
            let argument = name.to_string();
            let buffer = format_ident!("{}_buffer", argument.trim_end_matches("_room"));
            quote!(#buffer.len())
        }
        _ => quote!(#name),
    });
    let strings = named(plan, &plan.request)
        .filter_map(|(name, part)| matches!(part, Part::Value(Form::String { .. })).then_some(name));
    let (encode, decode) =
        (format_ident!("encode_{}", routine.name), format_ident!("decode_{}", routine.name));
    let encoded = quote!(let tag_ = #encode(self.transport, #(#arguments),*)?;);
    if routine.simple {
        return quote! {
            #comment
            ///
            /// # Errors
            /// The request could not be sent.
            #[inline]
            #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
            pub fn #name(&mut self, #(#parameters),*) -> Result<(), Error> {
                #encoded
                self.transport.send(self.to, tag_, &[#(#strings),*]).map_err(Error::Ipc)
            }
        };
    }
    let result = result(plan);
    let (keyword, wait) = if is_async { (quote!(async), quote!(.await)) } else { (quote!(), quote!()) };
    let lengths = buffers.iter().map(|buffer| quote!(#buffer.len()));
    quote! {
        #comment
        ///
        /// # Errors
        /// The server's status, or the IPC has failed.
        #[inline]
        #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
        pub #keyword fn #name(&mut self, #(#parameters),*) -> Result<#result, Error> {
            #encoded
            let strings_: &[&[u8]] = &[#(#strings),*];
            let rooms_: &mut [&mut [u8]] = &mut [#(&mut *#buffers),*];
            let tag_ = self.transport.call(self.to, tag_, strings_, rooms_) #wait .map_err(Error::Ipc)?;
            #decode(self.transport, tag_, #(#lengths),*)
        }
    }
}

/// The parameters of a method of the server's trait: values and types, then buffers.
fn served_parameters(plan: &Plan<'_>) -> Vec<TokenStream> {
    let values = named(plan, &plan.request).filter(|(_, part)| !matches!(part, Part::Room { .. })).map(
        |(name, part)| {
            let of = if let Part::Value(form) = part { passed(form) } else { quote!(u32) };
            quote!(#name: #of)
        },
    );
    let buffers = rooms(plan).into_iter().map(|room| {
        let buffer = format_ident!("{room}_buffer");
        quote!(#buffer: &mut [u8])
    });
    values.chain(buffers).collect()
}

fn method(plan: &Plan<'_>) -> TokenStream {
    let (name, comment) = (ident(&plan.routine.name), document(&plan.routine.comment));
    let parameters = served_parameters(plan);
    let result = result(plan);
    let returns = if plan.routine.simple { quote!() } else { quote!(-> Result<#result, Status>) };
    quote! {
        #comment
        #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
        fn #name(&mut self, caller_: ThreadId, #(#parameters),*) #returns;
    }
}

/// The function that reads a request, calls the server's method, and writes the reply.
fn serve(plan: &Plan<'_>) -> TokenStream {
    let (name, routine) = (ident(&plan.routine.name), plan.routine);
    let function = format_ident!("serve_{}", routine.name);
    let id = constant(&routine.name);
    let decode = decode(plan, &plan.request, true);
    let names: Vec<Ident> = named(plan, &plan.request).map(|(name, _)| name).collect();
    let decoded = values(&names);
    let malformed = if routine.simple {
        quote!(None)
    } else {
        quote!(Some(Reply::refusal(registers_, id::#id, Status::BAD_ARGUMENTS)))
    };
    let decoder = match fixed_words(&plan.request).map(|(untyped, typed)| (literal(untyped), literal(typed)))
    {
        Some((untyped, typed)) => quote!(Decoder::exact(registers_, tag_, #untyped, #typed)?),
        None => quote!(Decoder::new(registers_, tag_)),
    };
    let arguments = named(plan, &plan.request).filter(|(_, part)| !matches!(part, Part::Room { .. })).map(
        |(name, part)| match part {
            Part::Value(Form::Elements { .. } | Form::Array { .. }) => quote!(&#name),
            _ => quote!(#name),
        },
    );
    let rooms = rooms(plan);
    let buffers: Vec<Ident> = rooms.iter().map(|room| format_ident!("{room}_buffer")).collect();
    let wanted: Vec<Ident> = rooms.iter().map(|room| format_ident!("{room}_room")).collect();
    let call = quote!(server_.#name(caller_, #(#arguments,)* #(&mut *#buffers),*));
    let after = if routine.simple {
        quote!(#call; None)
    } else {
        let reply = format_ident!("reply_{}", routine.name);
        quote! {
            let result_ = #call;
            if matches!(result_, Err(Status::NO_REPLY)) {
                return None;
            }
            Some(#reply(registers_, result_, #(#buffers),*))
        }
    };
    quote! {
        #[inline]
        #[allow(unused_variables, reason = "not every routine needs everything")]
        fn #function<'a, S: Server, R: Registers>(
            server_: &mut S,
            caller_: ThreadId,
            tag_: MessageTag,
            registers_: &mut R,
            strings_: &[&[u8]],
            room_: &'a mut [u8],
        ) -> Option<Reply<'a>> {
            let read_ = |registers_: &R| {
                #[allow(unused_mut, reason = "there may be no arguments")]
                let mut decoder_ = #decoder;
                #decode
                decoder_.finish()?;
                Some(#decoded)
            };
            let Some(#decoded) = read_(registers_) else { return #malformed };
            #(
                let (#buffers, room_) = room_.split_at_mut(#wanted.min(room_.len()));
            )*
            #after
        }
    }
}
