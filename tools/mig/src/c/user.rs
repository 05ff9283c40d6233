//! The client's functions.

use super::CStyle;
use super::header::kind;
use super::item::{self, Parts};
use super::parameter::{self, bytes, element, find, is_widened, most, parameters};
use super::prologue::prologue;
use super::text::Text;
use crate::ast::Direction;
use crate::interface::{Argument, Interface, Role, Routine, Side, Wait};
use crate::layout::{Complexity, Item, ItemKind, Message};
use crate::types::{Placement, Shape};

/// The client's file.
pub fn user(interface: &Interface, style: &CStyle) -> String {
    let mut text = Text::default();
    prologue(&mut text, interface, Side::User, &style.header);
    interface.present().for_each(|routine| function(&mut text, interface, style, routine));
    text.finish()
}

/// A file for each of the client's functions: the routine's name and the text.
pub fn separate_users(interface: &Interface, style: &CStyle) -> Vec<(String, String)> {
    let file = |routine: &Routine| {
        let mut text = Text::default();
        prologue(&mut text, interface, Side::User, &style.header);
        function(&mut text, interface, style, routine);
        (routine.name.clone(), text.finish())
    };
    interface.present().map(file).collect()
}

fn function(text: &mut Text, interface: &Interface, style: &CStyle, routine: &Routine) {
    let name = style.user_name(interface, &routine.name);
    text.line(format!("\n/* {} {} */", kind(routine), routine.name));
    text.line(format!("mig_external kern_return_t {name}"));
    text.list(&parameters(routine, Side::User), "");
    text.block("", |text| {
        let most = routine.reply.as_ref().map_or(0, |reply| reply.maximum).max(routine.request.maximum);
        text.line("union {");
        text.deeper("mach_msg_header_t Head;");
        text.deeper(format!("char Bytes[{most}];"));
        text.deeper("uint64_t Aligned;");
        text.line("} Mess;\n");
        request(text, interface, routine);
        match &routine.reply {
            None => send(text, routine),
            Some(reply) => {
                call(text, routine, reply);
                self::reply(text, interface, routine, reply);
            }
        }
    });
}

/// Writes the request.
fn request(text: &mut Text, interface: &Interface, routine: &Routine) {
    let request = &routine.request;
    text.line(format!("uint32_t At_ = {};", interface.target.header));
    if request.complexity == Complexity::Depends {
        text.line("boolean_t Simple_ = TRUE;");
    }
    if request.items.iter().any(|item| is_string(routine, item)) {
        text.line("uint32_t Length_;");
    }
    for item in &request.items {
        let Some(argument) = item.argument.map(|index| &routine.arguments[index]) else { continue };
        text.line(format!("\n/* {} */", item.name));
        match item.kind {
            ItemKind::Count => {
                let (count, most) = (format!("*{}Cnt", argument.name), most(&argument.of));
                let least = format!("&(uint32_t) {{ {count} < {most} ? {count} : {most} }}");
                item::pack_integer(text, "Mess.Bytes", item, &least);
            }
            _ => pack(text, interface, item, argument, request.complexity),
        }
    }
    head(text, routine);
}

fn is_string(routine: &Routine, item: &Item) -> bool {
    item.argument.is_some_and(|index| routine.arguments[index].is_string())
}

fn pack(text: &mut Text, interface: &Interface, item: &Item, argument: &Argument, complexity: Complexity) {
    let (name, of) = (&argument.name, &argument.of);
    let both = argument.direction == Direction::InOut;
    let by_address = of.placement == Placement::Either || parameter::by_address(of);
    // A parameter that comes back is an address already, and so is an array.
    let address = if by_address || both { name.clone() } else { format!("&{name}") };
    if of.placement == Placement::Inline && of.shape != Shape::String && !of.variable {
        same_size(text, interface, argument, item.data);
    }
    let star = if both { "*" } else { "" };
    let parts = Parts {
        buffer: "Mess.Bytes",
        address,
        count: format!("{star}{name}Cnt"),
        name: format!("{star}{name}Poly"),
        deallocate: format!("{name}Dealloc"),
        side: Side::User,
        too_large: "return MIG_ARRAY_TOO_LARGE;",
        depends: complexity == Complexity::Depends,
    };
    // A type that only goes to the server is passed as it is.
    let type_comes_back = find(argument, Side::User, Role::Type).is_some_and(|parameter| parameter.output);
    let name = if type_comes_back { parts.name.clone() } else { format!("{name}Poly") };
    item::pack(text, interface, item, argument, &Parts { name, ..parts });
}

/// The program's type must be as large as the message's.
fn same_size(text: &mut Text, interface: &Interface, argument: &Argument, bytes: u64) {
    if !is_widened(interface, &argument.of) {
        let c_type = parameter::type_of(&argument.of, Side::User);
        text.line(format!(
            "_Static_assert(sizeof({c_type}) == {bytes}, \"{c_type} must have {bytes} bytes\");"
        ));
    }
}

/// The header of the request.
fn head(text: &mut Text, routine: &Routine) {
    let port = routine.port();
    let disposition = |argument: &Argument| {
        if argument.of.sent.is_polymorphic() {
            format!("{}Poly", argument.name)
        } else {
            argument.of.sent.in_c()
        }
    };
    let reply = routine.user_reply_port.map(|index| &routine.arguments[index]);
    let (reply_type, reply_port) = match (reply, routine.simple) {
        (Some(reply), _) => (disposition(reply), reply.name.clone()),
        (None, true) => ("0".to_owned(), "MACH_PORT_NULL".to_owned()),
        (None, false) => ("MACH_MSG_TYPE_MAKE_SEND_ONCE".to_owned(), "mig_get_reply_port()".to_owned()),
    };
    let complex = match routine.request.complexity {
        Complexity::Simple => "",
        Complexity::Complex => "MACH_MSGH_BITS_COMPLEX | ",
        Complexity::Depends => "(Simple_ ? 0 : MACH_MSGH_BITS_COMPLEX) | ",
    };
    text.line("");
    text.line(format!("Mess.Head.msgh_bits = {complex}MACH_MSGH_BITS({}, {reply_type});", disposition(port)));
    text.line("Mess.Head.msgh_size = At_;");
    text.line(format!("Mess.Head.msgh_request_port = (mach_port_t) {};", port.name));
    text.line(format!("Mess.Head.msgh_reply_port = (mach_port_t) {reply_port};"));
    text.line("Mess.Head.msgh_seqno = 0;");
    text.line(format!("Mess.Head.msgh_id = {};\n", routine.id));
}

fn option(routine: &Routine) -> String {
    match routine.settings.option.as_str() {
        "" => "MACH_MSG_OPTION_NONE".to_owned(),
        option => format!("({option})"),
    }
}

fn send(text: &mut Text, routine: &Routine) {
    text.line(format!("return mach_msg(&Mess.Head, MACH_SEND_MSG|{}, At_, 0,", option(routine)));
    text.deeper("MACH_PORT_NULL, MACH_MSG_TIMEOUT_NONE, MACH_PORT_NULL);");
}

/// Sends the request and receives the reply.
fn call(text: &mut Text, routine: &Routine, reply: &Message) {
    let (more, time) = match &routine.settings.wait {
        Wait::Forever => ("", "MACH_MSG_TIMEOUT_NONE"),
        Wait::Fixed(time) | Wait::Argument(time) => ("|MACH_RCV_TIMEOUT", time.as_str()),
    };
    let own_port = routine.user_reply_port.is_none();
    text.line("mach_msg_return_t Result_;");
    text.line(format!(
        "Result_ = mach_msg(&Mess.Head, MACH_SEND_MSG|MACH_RCV_MSG|{}{more}, At_, {},",
        option(routine),
        reply.maximum
    ));
    text.deeper(format!("Mess.Head.msgh_reply_port, {time}, MACH_PORT_NULL);"));
    text.block("if (mig_unlikely (Result_ != MACH_MSG_SUCCESS))", |text| {
        if own_port {
            text.line("mig_dealloc_reply_port(Mess.Head.msgh_reply_port);");
        }
        text.line("return Result_;");
    });
    if own_port {
        text.line("mig_put_reply_port(Mess.Head.msgh_reply_port);");
    }
    text.block(format!("if (mig_unlikely (Mess.Head.msgh_id != {}))", reply.id), |text| {
        text.line("if (Mess.Head.msgh_id == MACH_NOTIFY_SEND_ONCE)");
        text.deeper("return MIG_SERVER_DIED;");
        if own_port {
            text.line("mig_dealloc_reply_port(Mess.Head.msgh_reply_port);");
        }
        text.line("return MIG_REPLY_MISMATCH;");
    });
}

/// Checks the reply and takes it apart.
fn reply(text: &mut Text, interface: &Interface, routine: &Routine, reply: &Message) {
    let failure = "return MIG_TYPE_ERROR;";
    let header = interface.target.header;
    let own = reply.items[0].descriptor.map_or(0, |descriptor| descriptor.bytes);
    let error = interface.target.padded(header + own + 4);
    text.line("\nboolean_t SimpleReply_ = !(Mess.Head.msgh_bits & MACH_MSGH_BITS_COMPLEX);");
    text.line("kern_return_t RetCode_ = KERN_SUCCESS;");
    text.check(&format!("Mess.Head.msgh_size < {error}"), failure);
    item::check_integer(text, &format!("Mess.Bytes + {header}"), failure);
    text.line(format!("__builtin_memcpy(&RetCode_, Mess.Bytes + {}, 4);", header + own));
    let wrong = item::wrong_size(reply, "Mess.Head.msgh_size", "SimpleReply_");
    let is_error = format!("Mess.Head.msgh_size == {error} && SimpleReply_ && RetCode_ != KERN_SUCCESS");
    text.check(&format!("({wrong}) && !({is_error})"), failure);
    text.line("(void) SimpleReply_;");
    text.line("if (RetCode_ != KERN_SUCCESS)");
    text.deeper("return RetCode_;");
    if reply.items.len() > 1 {
        text.line(format!("At_ = {};", interface.target.padded(header + own + 4)));
    }
    if !reply.is_fixed() {
        text.line(format!("uint64_t Extra_ = Mess.Head.msgh_size - {};", reply.minimum));
    }
    for item in &reply.items {
        let Some(argument) = item.argument.map(|index| &routine.arguments[index]) else { continue };
        text.line(format!("\n/* {} */", item.name));
        item::check(text, interface, item, argument, "Mess.Bytes", failure);
        unpack(text, interface, item, argument);
        item::advance(text, interface, item);
    }
    if !reply.is_fixed() {
        text.check("Extra_ != 0", failure);
    }
    text.line("\nreturn KERN_SUCCESS;");
}

/// Gives the program what is at the cursor.
fn unpack(text: &mut Text, interface: &Interface, item: &Item, argument: &Argument) {
    let (name, of) = (&argument.name, &argument.of);
    if find(argument, Side::User, Role::Type).is_some_and(|parameter| parameter.output) {
        text.line(format!("*{name}Poly = {name}Type_.Name;"));
    }
    let widened = is_widened(interface, of);
    let one = element(of, Side::User);
    let count = format!("{name}Type_.Number{}", divided(of.multiplier()));
    match (of.placement, of.shape) {
        (Placement::OutOfLine, _) => {
            text.line(format!("__builtin_memcpy({name}, Mess.Bytes + At_, {});", interface.target.pointer));
            if of.is_counted() {
                text.line(format!("*{name}Cnt = {count};"));
            }
        }
        (Placement::Either, _) => {
            text.block(format!("if (!({name}Type_.Flags & MIG_INLINE))"), |text| {
                text.line(format!(
                    "__builtin_memcpy({name}, Mess.Bytes + At_, {});",
                    interface.target.pointer
                ));
            });
            text.block("else", |text| {
                let (size, get) = if widened {
                    let size = format!("{name}Type_.Number * sizeof({one})");
                    let get = format!(
                        "mig_get_ports(*{name}, Mess.Bytes + At_, {name}Type_.Number, sizeof({one}));"
                    );
                    (size, get)
                } else {
                    let get = format!("__builtin_memcpy(*{name}, Mess.Bytes + At_, {name}Bytes_);");
                    (format!("{name}Bytes_"), get)
                };
                text.line(format!("if ({count} > *{name}Cnt)"));
                text.deeper(format!("mig_allocate((vm_offset_t *) {name}, {size});"));
                text.line(format!("if ({name}Type_.Number)"));
                text.deeper(get);
            });
            text.line(format!("*{name}Cnt = {count};"));
        }
        (Placement::Inline, Shape::String) => {
            // Whatever was sent, what the program gets ends in its room.
            let bytes = if of.variable { format!("{name}Bytes_") } else { item.data.to_string() };
            text.line(format!("__builtin_memcpy({name}, Mess.Bytes + At_, {bytes});"));
            let last = item.data - 1;
            if of.variable {
                text.line(format!("{name}[{name}Bytes_ < {last} ? {name}Bytes_ : {last}] = 0;"));
            } else {
                text.line(format!("{name}[{last}] = 0;"));
            }
        }
        (Placement::Inline, _) if of.variable => {
            text.line(format!("uint32_t {name}Room_ = *{name}Cnt;"));
            text.line(format!("*{name}Cnt = {count};"));
            text.line(format!("uint32_t {name}Some_ = {count} < {name}Room_ ? {count} : {name}Room_;"));
            if widened {
                text.line(format!("mig_get_ports({name}, Mess.Bytes + At_, {name}Some_, sizeof({one}));"));
            } else {
                let size = bytes(of, &format!("{name}Some_"));
                text.line(format!("if ({name}Some_)"));
                text.deeper(format!("__builtin_memcpy({name}, Mess.Bytes + At_, {size});"));
            }
            text.line(format!("if (mig_unlikely ({name}Some_ < *{name}Cnt))"));
            text.deeper("return MIG_ARRAY_TOO_LARGE;");
        }
        (Placement::Inline, _) if widened => {
            text.line(format!("mig_get_ports({name}, Mess.Bytes + At_, {}, sizeof({one}));", of.count));
        }
        (Placement::Inline, _) => {
            same_size(text, interface, argument, item.data);
            text.line(format!("__builtin_memcpy({name}, Mess.Bytes + At_, {});", item.data));
        }
    }
}

/// A division in C, unless by 1.
pub(super) fn divided(by: u64) -> String {
    if by == 1 { String::new() } else { format!(" / {by}") }
}
