//! The C functions of clients.

use super::CStyle;
use super::header::kind;
use super::item::{self, Parts, Received};
use super::parameter::{self, bytes, element, find, is_widened, most, parameters};
use super::prologue::prologue;
use super::text::Text;
use super::{trailer, typed};
use crate::ast::Direction;
use crate::interface::{Argument, Consume, Interface, Role, Routine, Side, Wait};
use crate::layout::{Complexity, Item, ItemKind, Message};
use crate::target::Dialect;
use crate::types::{Placement, Shape};

/// The text of the client's C file.
pub fn user(interface: &Interface, style: &CStyle) -> String {
    let mut text = Text::default();
    prologue(&mut text, interface, Side::User, &style.header);
    interface.present().for_each(|routine| function(&mut text, interface, style, routine));
    text.finish()
}

/// One C file for each of the client's functions: the routine's name and the file's text.
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
    text.list(&parameters(interface, routine, Side::User), "");
    text.block("", |text| {
        let reply =
            routine.reply.as_ref().map_or(0, |reply| reply.maximum + trailer::room(routine, interface));
        let most = reply.max(routine.request.maximum);
        text.line("union {");
        text.deeper("mach_msg_header_t Head;");
        text.deeper(format!("char Bytes[{most}];"));
        text.deeper("uint64_t Aligned;");
        text.line("} Mess;\n");
        request(text, interface, routine);
        match &routine.reply {
            None => send(text, routine),
            Some(reply) => {
                call(text, interface, routine, reply);
                self::reply(text, interface, routine, reply);
            }
        }
    });
}

/// Writes code that builds the request.
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
        let Some(argument) = item.argument.map(|index| &routine.arguments[index]) else {
            item::pack_own(text, request, item, "Mess.Bytes");
            continue;
        };
        text.line(format!("\n/* {} */", item.name));
        match item.kind {
            ItemKind::Count if !argument.in_request() => {
                let (count, most) = (format!("*{}Cnt", argument.name), most(&argument.of));
                let least = format!("&(uint32_t) {{ {count} < {most} ? {count} : {most} }}");
                item::pack_integer(text, "Mess.Bytes", item, &least);
            }
            _ => pack(text, interface, routine, item, argument),
        }
    }
    head(text, interface, routine);
}

fn is_string(routine: &Routine, item: &Item) -> bool {
    item.argument.is_some_and(|index| routine.arguments[index].is_string())
}

fn pack(text: &mut Text, interface: &Interface, routine: &Routine, item: &Item, argument: &Argument) {
    let (name, of) = (&argument.name, &argument.of);
    let both = argument.direction == Direction::InOut;
    let by_address = of.placement == Placement::Either || parameter::by_address(of);
    // The parameter of an `inout` value is an address already, and so is an array.
    let address = if by_address || both { name.clone() } else { format!("&{name}") };
    if of.placement == Placement::Inline && of.shape != Shape::String && !of.variable {
        same_size(text, interface, argument);
    }
    let star = if both { "*" } else { "" };
    let parts = Parts {
        buffer: "Mess.Bytes",
        address,
        count: format!("{star}{}Cnt", routine.leader(argument).name),
        name: format!("{star}{name}Poly"),
        deallocate: format!("{name}Dealloc"),
        side: Side::User,
        too_large: "return MIG_ARRAY_TOO_LARGE;",
        depends: routine.request.complexity == Complexity::Depends,
    };
    // The type of a polymorphic value is passed by address only if the reply returns a type.
    let type_comes_back = find(argument, Side::User, Role::Type).is_some_and(|parameter| parameter.output);
    let name = if type_comes_back { parts.name.clone() } else { format!("{name}Poly") };
    item::pack(text, interface, item, argument, &Parts { name, ..parts });
}

/// Writes an assertion in C that the program's type is as large as the message's.
fn same_size(text: &mut Text, interface: &Interface, argument: &Argument) {
    if !is_widened(interface, &argument.of) {
        let bytes = argument.of.bytes_of(argument.of.count);
        let c_type = parameter::type_of(&argument.of, Side::User);
        text.line(format!(
            "_Static_assert(sizeof({c_type}) == {bytes}, \"{c_type} must have {bytes} bytes\");"
        ));
    }
}

/// Writes code that fills the request's header.
fn head(text: &mut Text, interface: &Interface, routine: &Routine) {
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
        (None, false) => ("MACH_MSG_TYPE_MAKE_SEND_ONCE".to_owned(), own_reply_port(routine)),
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
    text.line(match interface.target.dialect {
        Dialect::Typed => "Mess.Head.msgh_seqno = 0;",
        Dialect::Untyped => "Mess.Head.msgh_reserved = 0;",
    });
    text.line(format!("Mess.Head.msgh_id = {};\n", routine.id));
}

/// The reply port that the client's stub finds if the caller passes none: an expression in C.
fn own_reply_port(routine: &Routine) -> String {
    let kind = if routine.settings.special_reply_port { "special_" } else { "" };
    format!("mig_get_{kind}reply_port()")
}

fn option(routine: &Routine) -> String {
    let mut option = match routine.settings.option.as_str() {
        "" => "MACH_MSG_OPTION_NONE".to_owned(),
        option => format!("({option})"),
    };
    if routine.settings.send != Wait::Forever {
        option += "|MACH_SEND_TIMEOUT";
    }
    if routine.settings.special_reply_port && !routine.simple {
        option += "|MACH_SEND_SYNC_OVERRIDE|MACH_RCV_SYNC_WAIT";
    }
    option
}

/// The timeout of a call. `mach_msg` has one for both directions: it is that of the reply, if it is
/// limited.
fn time(routine: &Routine) -> &str {
    match (&routine.settings.wait, &routine.settings.send) {
        (Wait::Fixed(time) | Wait::Argument(time), _) if !routine.simple => time,
        (_, Wait::Fixed(time) | Wait::Argument(time)) => time,
        _ => "MACH_MSG_TIMEOUT_NONE",
    }
}

fn send(text: &mut Text, routine: &Routine) {
    text.line("mach_msg_return_t Result_;");
    text.line(format!("Result_ = mach_msg(&Mess.Head, MACH_SEND_MSG|{}, At_, 0,", option(routine)));
    text.deeper(format!("MACH_PORT_NULL, {}, MACH_PORT_NULL);", time(routine)));
    consume(text, routine);
    text.line("return Result_;");
}

/// Writes code that destroys the rights and memory of a request that could not be sent.
fn consume(text: &mut Text, routine: &Routine) {
    let condition = match routine.settings.consume {
        Consume::Never => return,
        Consume::Timeout => "Result_ == MACH_SEND_TIMED_OUT",
        // Codes of errors of sending are 0x10000000 to 0x10003fff; those of receiving are
        // 0x10004000 and up.
        Consume::Any => "((uint32_t) Result_ & 0xffffc000) == 0x10000000",
    };
    text.line(format!("if (mig_unlikely ({condition}))"));
    text.deeper("mach_msg_destroy(&Mess.Head);");
}

/// Writes code that sends the request and receives the reply.
fn call(text: &mut Text, interface: &Interface, routine: &Routine, reply: &Message) {
    let limited = if routine.settings.wait == Wait::Forever { "" } else { "|MACH_RCV_TIMEOUT" };
    let own_port = routine.user_reply_port.is_none();
    let (option, elements) = (option(routine), trailer::elements(routine));
    text.line("mach_msg_return_t Result_;");
    text.line(format!(
        "Result_ = mach_msg(&Mess.Head, MACH_SEND_MSG|MACH_RCV_MSG|{option}{limited}{elements}, At_, {},",
        reply.maximum + trailer::room(routine, interface),
    ));
    text.deeper(format!("Mess.Head.msgh_reply_port, {}, MACH_PORT_NULL);", time(routine)));
    let special = routine.settings.special_reply_port;
    text.block("if (mig_unlikely (Result_ != MACH_MSG_SUCCESS))", |text| {
        consume(text, routine);
        if own_port && special {
            text.line("mig_dealloc_special_reply_port(Mess.Head.msgh_reply_port);");
        } else if own_port {
            text.line("mig_dealloc_reply_port(Mess.Head.msgh_reply_port);");
        }
        text.line("return Result_;");
    });
    if own_port && !special {
        text.line("mig_put_reply_port(Mess.Head.msgh_reply_port);");
    }
    text.block(format!("if (mig_unlikely (Mess.Head.msgh_id != {}))", reply.id), |text| {
        text.line("if (Mess.Head.msgh_id == MACH_NOTIFY_SEND_ONCE)");
        text.deeper("return MIG_SERVER_DIED;");
        if own_port && !special {
            text.line("mig_dealloc_reply_port(Mess.Head.msgh_reply_port);");
        }
        text.line("return MIG_REPLY_MISMATCH;");
    });
}

/// Writes code that checks the reply and stores its values in the caller's parameters.
fn reply(text: &mut Text, interface: &Interface, routine: &Routine, reply: &Message) {
    text.line("\nboolean_t SimpleReply_ = !(Mess.Head.msgh_bits & MACH_MSGH_BITS_COMPLEX);");
    text.line("kern_return_t RetCode_ = KERN_SUCCESS;");
    let received = Received { buffer: "Mess.Bytes", failure: "return MIG_TYPE_ERROR;" };
    result(text, interface, reply, &received);
    if reply.items.iter().any(|item| item.argument.is_some()) {
        let first = match interface.target.dialect {
            Dialect::Typed => reply.items[0].descriptor.map_or(0, |descriptor| descriptor.bytes) + 4,
            Dialect::Untyped => 0,
        };
        text.line(format!("At_ = {};", interface.target.padded(interface.target.header + first)));
        item::check_all(text, interface, routine, reply, "Mess.Head.msgh_size", &received);
    }
    trailer::results(text, routine);
    let of_kind = |kind| {
        let items = reply.items.iter().filter(move |item| item.kind == kind);
        items.filter_map(|item| Some((item, &routine.arguments[item.argument?])))
    };
    for (_, argument) in of_kind(ItemKind::Count).filter(|(_, argument)| !argument.is_string()) {
        set_count(text, interface, routine, argument);
    }
    for (item, argument) in of_kind(ItemKind::Value) {
        unpack(text, interface, routine, item, argument);
    }
    text.line("\nreturn KERN_SUCCESS;");
}

/// Writes code that reads the result into `RetCode_`. If the result is an error, nothing follows it
/// in the reply.
fn result(text: &mut Text, interface: &Interface, reply: &Message, received: &Received<'_>) {
    let header = interface.target.header;
    let (at, error) = match interface.target.dialect {
        Dialect::Typed => {
            let own = reply.items[0].descriptor.map_or(0, |descriptor| descriptor.bytes);
            (header + own, interface.target.padded(header + own + 4))
        }
        Dialect::Untyped => (header + 8, header + 12),
    };
    text.check(&format!("Mess.Head.msgh_size < {error}"), received.failure);
    let get = format!("__builtin_memcpy(&RetCode_, Mess.Bytes + {at}, 4);");
    if interface.target.dialect == Dialect::Typed {
        typed::check_integer(text, &format!("Mess.Bytes + {header}"), received.failure);
        text.line(get);
    } else if reply.complexity == Complexity::Complex {
        // In a reply that otherwise carries rights or memory, only an error is simple.
        text.line("if (SimpleReply_)");
        text.deeper(get);
    } else {
        text.line(get);
    }
    let wrong = item::wrong_size(reply, "Mess.Head.msgh_size", "SimpleReply_");
    let is_error = format!("Mess.Head.msgh_size == {error} && SimpleReply_ && RetCode_ != KERN_SUCCESS");
    text.check(&format!("({wrong}) && !({is_error})"), received.failure);
    text.line("(void) SimpleReply_;");
    text.line("if (RetCode_ != KERN_SUCCESS)");
    text.deeper("return RetCode_;");
}

/// Writes code that stores an array's number of elements in the caller's parameter. `NAMERoom_` is
/// the number of elements for which the caller has room.
fn set_count(text: &mut Text, interface: &Interface, routine: &Routine, argument: &Argument) {
    let (name, of) = (&argument.name, &argument.of);
    let count = item::count(interface, routine, argument);
    if of.placement == Placement::Inline {
        let asked = interface.target.dialect == Dialect::Typed || argument.count_in_out;
        let room = if asked { format!("*{name}Cnt") } else { most(of).to_string() };
        text.line(format!("uint32_t {name}Room_ = {room};"));
    }
    text.line(format!("*{name}Cnt = {count};"));
}

/// Writes code that copies a value from `NAMEP_` in the reply to the caller's parameter.
fn unpack(text: &mut Text, interface: &Interface, routine: &Routine, item: &Item, argument: &Argument) {
    let (name, of) = (&argument.name, &argument.of);
    text.line(format!("\n/* {name} */"));
    if find(argument, Side::User, Role::Type).is_some_and(|parameter| parameter.output) {
        text.line(format!("*{name}Poly = {};", item::type_name(interface, argument)));
    }
    // The untyped dialect carries the number in an item of its own, which is read separately.
    let counts = interface.target.dialect == Dialect::Typed && of.is_counted();
    let one = element(of, Side::User);
    match (of.placement, of.shape) {
        (Placement::OutOfLine, _) => {
            text.line(format!("__builtin_memcpy({name}, {name}P_, {});", interface.target.pointer));
            if counts {
                set_count(text, interface, routine, argument);
            }
        }
        (Placement::Either, _) => either(text, interface, routine, argument),
        (Placement::Inline, Shape::String) => {
            // The server may have sent a string without a zero: one is written after the received
            // bytes, inside the caller's room.
            let bytes = if of.variable { format!("{name}Bytes_") } else { item.data.to_string() };
            text.line(format!("__builtin_memcpy({name}, {name}P_, {bytes});"));
            let last = item.data - 1;
            if of.variable {
                text.line(format!("{name}[{name}Bytes_ < {last} ? {name}Bytes_ : {last}] = 0;"));
            } else {
                text.line(format!("{name}[{last}] = 0;"));
            }
        }
        (Placement::Inline, _) if of.variable => {
            if counts {
                set_count(text, interface, routine, argument);
            }
            array(text, interface, routine, argument);
        }
        (Placement::Inline, _) if is_widened(interface, of) => {
            text.line(format!("mig_get_ports({name}, {name}P_, {}, sizeof({one}));", of.count));
        }
        (Placement::Inline, _) => {
            same_size(text, interface, argument);
            text.line(format!("__builtin_memcpy({name}, {name}P_, {});", of.bytes_of(of.count)));
        }
    }
}

/// Writes code that copies an array of varying size out of the reply.
fn array(text: &mut Text, interface: &Interface, routine: &Routine, argument: &Argument) {
    let (name, of, leader) = (&argument.name, &argument.of, &routine.leader(argument).name);
    let (count, room) = (item::count(interface, routine, argument), format!("{leader}Room_"));
    let one = element(of, Side::User);
    text.line(format!("uint32_t {name}Some_ = {count} < {room} ? {count} : {room};"));
    if is_widened(interface, of) {
        text.line(format!("mig_get_ports({name}, {name}P_, {name}Some_, sizeof({one}));"));
    } else {
        let size = bytes(of, &format!("{name}Some_"));
        text.line(format!("if ({name}Some_)"));
        text.deeper(format!("__builtin_memcpy({name}, {name}P_, {size});"));
    }
    text.line(format!("if (mig_unlikely ({name}Some_ < {count}))"));
    text.deeper("return MIG_ARRAY_TOO_LARGE;");
}

/// Writes code for an array that the reply holds either in line or out of line.
fn either(text: &mut Text, interface: &Interface, routine: &Routine, argument: &Argument) {
    let (name, of) = (&argument.name, &argument.of);
    let (count, one) = (item::count(interface, routine, argument), element(of, Side::User));
    text.block(format!("if (!({name}Type_.Flags & MIG_INLINE))"), |text| {
        text.line(format!("__builtin_memcpy({name}, {name}P_, {});", interface.target.pointer));
    });
    text.block("else", |text| {
        let (size, get) = if is_widened(interface, of) {
            let size = format!("{name}Type_.Number * sizeof({one})");
            let get = format!("mig_get_ports(*{name}, {name}P_, {name}Type_.Number, sizeof({one}));");
            (size, get)
        } else {
            let get = format!("__builtin_memcpy(*{name}, {name}P_, {name}Bytes_);");
            (format!("{name}Bytes_"), get)
        };
        text.line(format!("if ({count} > *{name}Cnt)"));
        text.deeper(format!("mig_allocate((vm_offset_t *) {name}, {size});"));
        text.line(format!("if ({name}Type_.Number)"));
        text.deeper(get);
    });
    text.line(format!("*{name}Cnt = {count};"));
}
