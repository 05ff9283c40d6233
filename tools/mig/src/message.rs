//! Rust stubs over Mach messages of both dialects: clients, and a trait for servers with the
//! function that dispatches requests.
//!
//! Values have the types of the stubs over direct IPC: numbers, arrays of numbers, and `Array`
//! where the number of elements varies. A right is a number of the size that the right has in a
//! message.

mod reading;
mod value;
mod writing;

use crate::ast::Direction;
use crate::diagnostic::Diagnostic;
use crate::interface::{Argument, Deallocate, Interface, Routine, Wait};
use crate::layout::{Complexity, Message};
use crate::rust::{constant, document, ident, literal};
use crate::target::Dialect;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use value::Value;

/// The size of the untyped dialect's largest trailer, in bytes.
const TRAILER: u64 = 68;

/// The text of the Rust module of an interface. Calls of its client block, and its server answers
/// each request before it takes the next.
///
/// # Errors
/// A value's type cannot be expressed in Rust, or an option is not a Rust expression.
pub fn module(interface: &Interface) -> Result<String, Diagnostic> {
    text(interface, false)
}

/// The text of the Rust module of an interface in which the calls of the client and the methods of
/// the server are futures.
///
/// # Errors
/// Those of [`module`].
pub fn async_module(interface: &Interface) -> Result<String, Diagnostic> {
    text(interface, true)
}

fn text(interface: &Interface, is_async: bool) -> Result<String, Diagnostic> {
    let (comment, format) = (document(&interface.comment), format(interface));
    let routines: Vec<&Routine> = interface.present().collect();
    for routine in &routines {
        let mut arguments = routine.arguments.iter().filter(|argument| travels(argument));
        arguments.try_for_each(|argument| Value::of(argument).map(drop))?;
    }
    let ids = routines.iter().map(|routine| {
        let (id, value) = (constant(&routine.name), literal(routine.id));
        let text = format!(" [`{}`](super::Server::{}).", routine.name, ident(&routine.name));
        quote!(#[doc = #text] pub const #id: u32 = #value;)
    });
    let calls =
        routines.iter().map(|routine| client(interface, routine, is_async)).collect::<Result<Vec<_>, _>>()?;
    let methods = routines.iter().map(|routine| method(routine, is_async));
    let serving = routines.iter().map(|routine| serve(interface, routine, is_async));
    let (asynchronous, transport) = (asynchronous(is_async), transport(is_async));
    let (server_bound, blocks) = match is_async {
        true => (quote!(Server + Send), ""),
        false => (quote!(Server), " Each blocks until the server has answered."),
    };
    let blocks = format!(" The client's functions, one for each request.{blocks}");
    let arms = routines.iter().map(|routine| {
        let (id, function) = (constant(&routine.name), format_ident!("serve_{}", routine.name));
        let wait = wait(is_async);
        quote!(id::#id => #function(server_, &header_, request_, reply_) #wait,)
    });
    let largest = routines.iter().filter_map(|routine| routine.reply.as_ref()).map(|reply| reply.maximum);
    let error = interface.target.padded(interface.target.header + interface.target.descriptor + 4);
    let reply_bytes = literal(largest.max().unwrap_or(0).max(error));
    let names = if routines.iter().any(|routine| needs_names(routine)) {
        quote!(
            use super::*;
        )
    } else {
        quote!()
    };
    let file = quote! {
        #comment
        #[allow(unused_imports, reason = "not every interface needs everything")]
        use message::{
            Array, Call, Data, Descriptor, Error, Expected, Format, Header, Memory, Number, Reader, Request, Status,
            #transport, Writer,
        };
        #names

        /// The layout of messages.
        pub const FORMAT: Format = #format;

        /// Bytes of the largest reply.
        pub const REPLY_BYTES: usize = #reply_bytes;

        /// Ids of requests.
        pub mod id { #(#ids)* }

        #[doc = #blocks]
        #[derive(Debug)]
        pub struct Client<'a, T> {
            /// The program's messages.
            pub transport: &'a mut T,
            /// The server's port.
            pub to: u64,
        }

        impl<T: #transport> Client<'_, T> { #(#calls)* }

        /// The functions that carry out the requests in the server.
        pub trait Server { #(#methods)* }

        /// Decodes a request, calls the server's function, and writes the reply. Returns the size
        /// of the reply, or `None` if there is none to send. `request_` is the received message with its
        /// trailer.
        pub #asynchronous fn serve<S: #server_bound>(
            server_: &mut S,
            request_: &[u8],
            reply_: &mut [u8; REPLY_BYTES],
        ) -> Option<usize> {
            let header_ = Header::read(&FORMAT, request_)?;
            let result = match header_.id {
                #(#arms)*
                _ => Err(Status::BAD_ID),
            };
            message::answer(&FORMAT, &header_, reply_, result)
        }

        #(#serving)*
    };
    crate::rust::file(&interface.name, file)
}

/// The keyword in front of a function that is a future if the module is asynchronous.
fn asynchronous(is_async: bool) -> TokenStream {
    if is_async { quote!(async) } else { quote!() }
}

/// What follows a call that is a future if the module is asynchronous.
fn wait(is_async: bool) -> TokenStream {
    if is_async { quote!(.await) } else { quote!() }
}

/// The trait of a client's messages.
fn transport(is_async: bool) -> TokenStream {
    if is_async { quote!(AsyncTransport) } else { quote!(Transport) }
}

fn format(interface: &Interface) -> TokenStream {
    let name = ident(&interface.target.name.to_ascii_uppercase().replace('-', "_"));
    quote!(Format::#name)
}

/// Whether the request or the reply carries an argument.
fn travels(argument: &Argument) -> bool {
    argument.in_request() || argument.in_reply()
}

/// The Rust value of an argument. The fallback is never used: `module` has refused arguments
/// without a value.
fn value(argument: &Argument) -> Value {
    Value::of(argument).unwrap_or(Value::Memory)
}

fn type_name(argument: &Argument) -> Ident {
    format_ident!("{}_type", argument.name)
}

fn deallocate_name(argument: &Argument) -> Ident {
    format_ident!("{}_deallocate", argument.name)
}

fn room_name(argument: &Argument) -> Ident {
    format_ident!("{}_room", argument.name)
}

/// Whether the sender passes a flag that says if sending takes the right or memory from it.
fn has_deallocate(argument: &Argument) -> bool {
    argument.deallocate == Deallocate::Variable && value(argument) != Value::Memory
}

/// The parameters of a client's method.
fn client_parameters(routine: &Routine) -> Vec<TokenStream> {
    let mut all = Vec::new();
    for argument in routine.arguments.iter().filter(|argument| !argument.ignored) {
        let (name, kind) = (ident(&argument.name), type_name(argument));
        let mut is_sent = true;
        match argument.direction {
            Direction::In | Direction::InOut => {
                let of = value(argument).passed();
                all.push(quote!(#name: #of));
            }
            Direction::ReplyPort | Direction::UserReplyPort => all.push(quote!(#name: u64)),
            Direction::WaitTime | Direction::SendTime | Direction::MessageOption => {
                all.push(quote!(#name: u32))
            }
            Direction::RequestPort => {}
            _ => is_sent = false,
        }
        if is_sent && argument.of.sent.is_polymorphic() {
            all.push(quote!(#kind: u32));
        }
        if argument.in_request() && has_deallocate(argument) {
            let name = deallocate_name(argument);
            all.push(quote!(#name: bool));
        }
    }
    all
}

/// The names and types of the Rust values that a receiver obtains for an argument: the value, and
/// with `is_any` the type of a polymorphic right.
fn received(argument: &Argument, is_any: bool) -> Vec<(Ident, TokenStream)> {
    let mut all = vec![(ident(&argument.name), value(argument).returned())];
    if is_any {
        all.push((type_name(argument), quote!(u32)));
    }
    all
}

/// The results of a client's method.
fn client_results(routine: &Routine) -> Vec<(Ident, TokenStream)> {
    let mut all = Vec::new();
    for argument in &routine.arguments {
        if argument.in_reply() {
            all.extend(received(argument, argument.of.received.is_polymorphic()));
        }
        if let Some((_, of)) = token(argument, false) {
            all.push((ident(&argument.name), of));
        }
    }
    all
}

/// The parameters of a method of the server's trait.
fn server_parameters(routine: &Routine) -> Vec<(Ident, TokenStream)> {
    let mut all = Vec::new();
    for argument in routine.arguments.iter().filter(|argument| !argument.ignored) {
        let is_any = argument.of.received.is_polymorphic();
        match argument.direction {
            Direction::In | Direction::InOut => all.extend(received(argument, is_any)),
            Direction::RequestPort | Direction::ReplyPort | Direction::ServerReplyPort => {
                all.push((ident(&argument.name), quote!(u64)));
                if is_any {
                    all.push((type_name(argument), quote!(u32)));
                }
            }
            Direction::Out if argument.count_in_out => all.push((room_name(argument), quote!(usize))),
            _ => all.extend(token(argument, true).map(|(_, of)| (ident(&argument.name), of))),
        }
    }
    all
}

/// The results of a method of the server's trait.
fn server_results(routine: &Routine) -> Vec<(Ident, TokenStream)> {
    let mut all = Vec::new();
    for argument in routine.arguments.iter().filter(|argument| argument.in_reply()) {
        all.extend(received(argument, argument.sent_in_reply().is_polymorphic()));
        if has_deallocate(argument) {
            all.push((deallocate_name(argument), quote!(bool)));
        }
    }
    all
}

/// The trailer's or header's member that the client or the server receives for an argument: the
/// name of the function that reads it, and its type. None for an argument that is not such a
/// member.
fn token(argument: &Argument, at_server: bool) -> Option<(Ident, TokenStream)> {
    let (member, of) = match (argument.direction, at_server) {
        (Direction::SequenceNumber, true) => ("sequence", quote!(u32)),
        (Direction::SecurityToken, _)
        | (Direction::ServerSecurityToken, true)
        | (Direction::UserSecurityToken, false) => ("sender", quote!([u32; 2])),
        (Direction::AuditToken, _)
        | (Direction::ServerAuditToken, true)
        | (Direction::UserAuditToken, false) => ("audit", quote!([u32; 8])),
        (Direction::ServerContextToken, true) => ("context", quote!(u64)),
        _ => return None,
    };
    Some((ident(member), of))
}

/// Statements that read the members of the trailer or header which the arguments ask for.
fn tokens(interface: &Interface, routine: &Routine, at_server: bool, error: &TokenStream) -> TokenStream {
    let read = routine.arguments.iter().filter_map(|argument| {
        let ((member, _), name) = (token(argument, at_server)?, ident(&argument.name));
        if interface.target.dialect == Dialect::Typed {
            return Some(quote!(let #name = header_.sequence;));
        }
        Some(quote! {
            let #name = trailer_.and_then(|trailer| trailer.#member()).ok_or(#error)?;
        })
    });
    let read: Vec<TokenStream> = read.collect();
    if read.is_empty() || interface.target.dialect == Dialect::Typed {
        return quote!(#(#read)*);
    }
    quote!(let trailer_ = reader_.trailer(); #(#read)*)
}

/// The types of values as one type: unit, the type itself, or a tuple.
fn types(all: &[(Ident, TokenStream)]) -> TokenStream {
    match all {
        [(_, one)] => one.clone(),
        all => {
            let types = all.iter().map(|(_, of)| of);
            quote!((#(#types),*))
        }
    }
}

/// Names of values as one pattern or expression: unit, the name itself, or a tuple.
fn values(all: &[(Ident, TokenStream)]) -> TokenStream {
    match all {
        [(one, _)] => quote!(#one),
        all => {
            let names = all.iter().map(|(name, _)| name);
            quote!((#(#names),*))
        }
    }
}

/// The expected complexity of a received message; `None` if only the items decide.
fn complexity(message: &Message) -> TokenStream {
    match message.complexity {
        Complexity::Simple => quote!(Some(false)),
        Complexity::Complex => quote!(Some(true)),
        Complexity::Depends => quote!(None),
    }
}

/// The Rust form of an option or a timeout, which the definition gives as a C expression.
fn expression(routine: &Routine, text: &str) -> Result<TokenStream, Diagnostic> {
    let text = text.trim_matches('"');
    match (syn::parse_str::<syn::Expr>(text), text.parse::<TokenStream>()) {
        (Ok(_), Ok(expression)) => Ok(expression),
        _ => {
            let message = format!("an option or a time of `{}` is `{text}`", routine.name);
            Err(Diagnostic::error(routine.span, message)
                .labelled("expected an expression that Rust has, too"))
        }
    }
}

/// Whether an option or a timeout of a routine may contain names of constants, which the module
/// must import.
fn needs_names(routine: &Routine) -> bool {
    let is_name = |text: &str| {
        let is_argument = routine.arguments.iter().any(|argument| argument.name == text);
        !is_argument && text.contains(|letter: char| letter.is_alphabetic())
    };
    let of = |wait: &Wait| matches!(wait, Wait::Fixed(text) if is_name(text));
    is_name(&routine.settings.option) || of(&routine.settings.wait) || of(&routine.settings.send)
}

/// The expression for a `Call`: options, timeouts, and the size of the trailer that the client asks
/// for.
fn call(routine: &Routine) -> Result<TokenStream, Diagnostic> {
    let time = |wait: &Wait| match wait {
        Wait::Forever => Ok(quote!(None)),
        Wait::Fixed(text) => expression(routine, text).map(|time| quote!(Some(#time))),
        Wait::Argument(name) => {
            let name = ident(name);
            Ok(quote!(Some(#name)))
        }
    };
    let option = match routine.settings.option.as_str() {
        "" => quote!(0),
        option if routine.arguments.iter().any(|argument| argument.name == option) => {
            let name = ident(option);
            quote!(#name)
        }
        option => expression(routine, option)?,
    };
    // A simple routine has no reply to wait for.
    let wait = if routine.simple { &Wait::Forever } else { &routine.settings.wait };
    let (wait, send) = (time(wait)?, time(&routine.settings.send)?);
    let members = routine.arguments.iter().filter_map(|argument| token(argument, false));
    let trailer = members.map(|(member, _)| if member == "audit" { 52 } else { 20 }).max().unwrap_or(0);
    let trailer = literal(trailer);
    Ok(quote!(Call { options: #option, wait: #wait, send: #send, trailer: #trailer }))
}

/// The expression for the `Request` that a client passes to the runtime library: ids, port types
/// and expected reply of a routine.
fn request(routine: &Routine) -> Result<TokenStream, Diagnostic> {
    let kind = |argument: &Argument| {
        if argument.of.sent.is_polymorphic() {
            let name = type_name(argument);
            quote!(#name)
        } else {
            let number = literal(argument.of.sent.number.into());
            quote!(#number)
        }
    };
    let remote = kind(routine.port());
    let (local, port) = match routine.user_reply_port.map(|index| &routine.arguments[index]) {
        Some(argument) => {
            let name = ident(&argument.name);
            (kind(argument), quote!(Some(#name)))
        }
        None if routine.simple => (quote!(0), quote!(None)),
        None => (quote!(message::MAKE_SEND_ONCE), quote!(None)),
    };
    let (id, call) = (constant(&routine.name), call(routine)?);
    let (reply, complex) = match &routine.reply {
        Some(reply) => {
            let id = literal(reply.id);
            (quote!(Some(#id)), complexity(reply))
        }
        None => (quote!(None), quote!(None)),
    };
    Ok(quote! {
        &Request {
            bits: #remote | #local << 8, id: id::#id, reply_port: #port, reply: #reply, complex: #complex,
            call: #call,
        }
    })
}

/// The client's method for a routine.
fn client(interface: &Interface, routine: &Routine, is_async: bool) -> Result<TokenStream, Diagnostic> {
    let (name, comment) = (ident(&routine.name), document(&routine.comment));
    let (parameters, results) = (client_parameters(routine), client_results(routine));
    let result = types(&results);
    let trailer = if interface.target.dialect == Dialect::Untyped { TRAILER } else { 0 };
    let reply = routine.reply.as_ref().map_or(0, |reply| reply.maximum + trailer);
    let (bytes, request) = (literal(reply.max(routine.request.maximum)), request(routine)?);
    let too_large = quote!(Error::Status(Status::ARRAY_TOO_LARGE));
    let checks = writing::checks(routine, true, &too_large);
    let write = writing::items(interface, routine, &routine.request, true);
    let (asynchronous, wait) = (asynchronous(is_async), wait(is_async));
    let (send, call) =
        if is_async { (quote!(send_async), quote!(call_async)) } else { (quote!(send), quote!(call)) };
    let end = match &routine.reply {
        None => quote!(writer_.#send(self.transport, self.to, #request) #wait),
        Some(reply) => {
            let (read, values) = (reading::items(interface, routine, reply, false), values(&results));
            let tokens = tokens(interface, routine, false, &quote!(Error::TrailerError));
            quote! {
                #[allow(unused_mut, reason = "there may be no results")]
                let mut reader_ = writer_.#call(self.transport, self.to, #request) #wait?;
                #tokens
                let read_ = move || {
                    #read
                    reader_.finish()?;
                    Some(#values)
                };
                read_().ok_or(Error::TypeError)
            }
        }
    };
    Ok(quote! {
        #comment
        ///
        /// # Errors
        /// An array is longer than the interface allows, the message was not sent, or the server's
        /// status.
        #[allow(clippy::too_many_arguments, clippy::type_complexity, reason = "the interface says how many")]
        pub #asynchronous fn #name(&mut self, #(#parameters),*) -> Result<#result, Error> {
            #checks
            let mut message_ = [0; #bytes];
            #[allow(unused_mut, reason = "there may be no arguments")]
            let mut writer_ = Writer::new(&FORMAT, &mut message_);
            #write
            #end
        }
    })
}

/// The method of the server's trait for a routine.
fn method(routine: &Routine, is_async: bool) -> TokenStream {
    let (name, comment) = (ident(&routine.name), document(&routine.comment));
    let parameters = server_parameters(routine).into_iter().map(|(name, of)| quote!(#name: #of));
    let result = types(&server_results(routine));
    let result = quote!(Result<#result, Status>);
    let result = if is_async { quote!(impl Future<Output = #result> + Send) } else { result };
    quote! {
        #comment
        ///
        /// # Errors
        /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
        #[allow(clippy::too_many_arguments, clippy::type_complexity, reason = "the interface says how many")]
        fn #name(&mut self, #(#parameters),*) -> #result;
    }
}

/// Statements that read from the request's header the ports that are parameters of the server's
/// method.
fn from_header(routine: &Routine) -> TokenStream {
    let read = routine.arguments.iter().filter(|argument| !argument.ignored).map(|argument| {
        let (port, kind) = match argument.direction {
            Direction::RequestPort => (quote!(local), quote!(local_type)),
            Direction::ReplyPort | Direction::ServerReplyPort => (quote!(remote), quote!(remote_type)),
            _ => return quote!(),
        };
        let (name, type_name) = (ident(&argument.name), type_name(argument));
        let any = argument.of.received.is_polymorphic().then(|| quote!(let #type_name = header_.#kind();));
        quote!(let #name = header_.#port; #any)
    });
    quote!(#(#read)*)
}

/// The function that reads a routine's request, calls the server's method, and writes the reply.
fn serve(interface: &Interface, routine: &Routine, is_async: bool) -> TokenStream {
    let (function, name) = (format_ident!("serve_{}", routine.name), ident(&routine.name));
    let complex = complexity(&routine.request);
    let read = reading::items(interface, routine, &routine.request, true);
    let found = values(&reading::found(routine));
    let (header, tokens) = (from_header(routine), tokens(interface, routine, true, &quote!(Status(-309))));
    let passed = server_parameters(routine).into_iter().map(|(name, _)| name);
    let results = server_results(routine);
    let values = values(&results);
    let end = match &routine.reply {
        None => quote!(Ok(None)),
        Some(reply) => {
            let checks = writing::checks(routine, false, &quote!(Status::ARRAY_TOO_LARGE));
            let write = writing::items(interface, routine, reply, false);
            quote! {
                #checks
                let mut writer_ = Writer::new(&FORMAT, reply_);
                #write
                Ok(Some(writer_.finish(&header_.of_reply())))
            }
        }
    };
    let result = if results.is_empty() { quote!() } else { quote!(let #values =) };
    let (asynchronous, wait) = (asynchronous(is_async), wait(is_async));
    let bound = if is_async { quote!(Server + Send) } else { quote!(Server) };
    quote! {
        #[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
        #asynchronous fn #function<S: #bound>(
            server_: &mut S,
            header_: &Header,
            request_: &[u8],
            reply_: &mut [u8; REPLY_BYTES],
        ) -> Result<Option<usize>, Status> {
            #[allow(unused_mut, reason = "there may be no arguments")]
            let mut reader_ =
                Reader::new(&FORMAT, header_, request_, #complex).ok_or(Status::BAD_ARGUMENTS)?;
            #header
            #tokens
            let read_ = move || {
                #read
                reader_.finish()?;
                Some(#found)
            };
            let #found = read_().ok_or(Status::BAD_ARGUMENTS)?;
            #result server_.#name(#(#passed),*) #wait?;
            #end
        }
    }
}
