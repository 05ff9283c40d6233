//! The C file of a server: a function for each routine, and the demultiplexer for all of them.
//!
//! The server's function gets the address of arrays and structs in the request, without a copy. It
//! writes arrays and structs of the reply directly into the reply's buffer, at the offset that the
//! item has if every array before it is as large as it can be; afterwards the stub moves the items
//! together.

use super::header::kind;
use super::item::{self, Parts, Received};
use super::parameter::{by_address, bytes, element, find, is_widened, most, parameters, type_of};
use super::prologue::prologue;
use super::text::Text;
use super::{CStyle, demux, server_name, trailer};
use crate::ast::Direction;
use crate::interface::{Argument, Deallocate, Interface, Role, Routine, Side};
use crate::layout::{Complexity, Item, ItemKind, Message};
use crate::target::Dialect;
use crate::types::{Placement, Shape};

const FAILURE: &str = "{ OutP->RetCode = MIG_BAD_ARGUMENTS; return; }";

/// The text of the server's C file.
pub fn server(interface: &Interface, style: &CStyle) -> String {
    let mut text = Text::default();
    prologue(&mut text, interface, Side::Server, "");
    interface.present().for_each(|routine| function(&mut text, interface, routine));
    demux::write(&mut text, interface, style);
    text.finish()
}

fn function(text: &mut Text, interface: &Interface, routine: &Routine) {
    let name = server_name(interface, &routine.name);
    text.line(format!("\n/* {} {} */", kind(routine), routine.name));
    text.line(format!("mig_external kern_return_t {name}"));
    text.list(&parameters(interface, routine, Side::Server), ";");
    text.line(format!("\nmig_internal void _X{}", routine.name));
    text.line("\t(mach_msg_header_t *InHeadP, mach_msg_header_t *OutHeadP)");
    text.block("", |text| {
        text.line("char *In_ __attribute__ ((unused)) = (char *) InHeadP;");
        text.line("char *Out_ __attribute__ ((unused)) = (char *) OutHeadP;");
        let reply_type = demux::reply_type(interface);
        text.line(format!("{reply_type} *OutP = ({reply_type} *) OutHeadP;"));
        let items = routine.request.items.iter().chain(routine.reply.iter().flat_map(|reply| &reply.items));
        if items.clone().any(|item| item.argument.is_some()) {
            text.line(format!("uint32_t At_ = {};", interface.target.header));
        }
        request(text, interface, routine);
        trailer::request(text, interface, routine);
        let places = routine.reply.as_ref().map(|reply| places(interface, reply)).unwrap_or_default();
        locals(text, interface, routine, &places);
        call(text, interface, routine, &name, &places);
        match (&routine.reply, interface.target.dialect) {
            (Some(reply), _) => self::reply(text, interface, routine, reply, &places),
            (None, Dialect::Untyped) => text.line("OutP->RetCode = RetCode_;"),
            (None, Dialect::Typed) => {}
        }
    });
    default(text, interface, routine, &name);
}

/// Writes a weak default for a server's function that the program does not define.
fn default(text: &mut Text, interface: &Interface, routine: &Routine, name: &str) {
    text.line(format!("\n/* Default implementation of {name} */"));
    text.line("#ifdef\tMIG_EOPNOTSUPP");
    text.line("kern_return_t __attribute__ ((weak))");
    text.line(name);
    text.list(&parameters(interface, routine, Side::Server), " { return MIG_EOPNOTSUPP; }");
    text.line("#endif\t/* MIG_EOPNOTSUPP */");
}

/// Writes checks of the request, which also find the request's values.
fn request(text: &mut Text, interface: &Interface, routine: &Routine) {
    let request = &routine.request;
    text.line(
        "boolean_t InSimple_ __attribute__ ((unused)) = !(InHeadP->msgh_bits & MACH_MSGH_BITS_COMPLEX);",
    );
    text.check(&item::wrong_size(request, "InHeadP->msgh_size", "InSimple_"), FAILURE);
    let received = Received { buffer: "In_", failure: FAILURE };
    item::check_all(text, interface, routine, request, "InHeadP->msgh_size", &received);
    for item in &request.items {
        let Some(argument) = item.argument.map(|index| &routine.arguments[index]) else { continue };
        match item.kind {
            ItemKind::Count if !argument.in_request() => room(text, argument),
            ItemKind::Value => prepare(text, interface, routine, item, argument),
            _ => {}
        }
    }
}

/// Writes further checks of a value, and its conversion in place to the form that the program
/// takes.
fn prepare(text: &mut Text, interface: &Interface, routine: &Routine, item: &Item, argument: &Argument) {
    let (name, of) = (&argument.name, &argument.of);
    let is_any = item.descriptor.is_some_and(|descriptor| descriptor.received.is_polymorphic());
    if is_any && routine.request.complexity == Complexity::Depends {
        text.check(&format!("MACH_MSG_TYPE_PORT_ANY({name}Type_.Name) && InSimple_"), FAILURE);
    }
    if argument.is_string() {
        // The client may have sent a string without a zero: a zero is written into the last byte.
        let last = if of.variable { format!("{name}Bytes_ - 1") } else { (item.data - 1).to_string() };
        if of.variable {
            text.check(&format!("{name}Bytes_ == 0"), FAILURE);
        }
        text.line(format!("{name}P_[{last}] = 0;"));
    }
    if is_widened(interface, of) && of.shape != Shape::Scalar {
        let one = element(of, Side::Server);
        let inline = if of.placement == Placement::Either {
            format!("if ({name}Type_.Flags & MIG_INLINE) ")
        } else {
            String::new()
        };
        let count = match (of.variable, interface.target.dialect) {
            (true, Dialect::Typed) => format!("{name}Type_.Number"),
            (true, Dialect::Untyped) => item::count(interface, routine, argument),
            (false, _) => of.count.to_string(),
        };
        text.line(format!("{inline}mig_get_ports({name}P_, {name}P_, {count}, sizeof({one}));"));
    }
}

/// Writes code that finds the number of elements for which the client has room.
fn room(text: &mut Text, argument: &Argument) {
    let (name, most) = (&argument.name, most(&argument.of));
    text.line(format!("mach_msg_type_number_t {name}Cnt = {name}Count_ < {most} ? {name}Count_ : {most};"));
}

/// The offset in the reply where the server's function writes each argument's data, by argument.
/// Every array is taken to be as large as it can be.
fn places(interface: &Interface, reply: &Message) -> Vec<(usize, u64)> {
    let mut at = interface.target.header;
    let mut places = Vec::new();
    for item in &reply.items {
        // The typed dialect puts a descriptor in front of each value; the untyped dialect's
        // descriptors of rights are the values themselves.
        let described = item.descriptor.map_or(0, |descriptor| descriptor.bytes);
        let before = if interface.target.dialect == Dialect::Typed { described } else { 0 };
        if let Some(argument) = item.argument.filter(|_| item.kind == ItemKind::Value) {
            places.push((argument, at + before));
        }
        at += described;
        at += interface.target.padded(item.data);
    }
    places
}

/// Whether the server's function writes this argument directly into the reply.
fn is_placed(argument: &Argument) -> bool {
    let (of, functions) = (&argument.of, &argument.of.functions);
    let is_translated = functions.into.is_some() || functions.out.is_some();
    let is_struct = of.shape == Shape::Struct && of.placement == Placement::Inline;
    by_address(of) || is_struct && !is_translated
}

/// Writes the local variables for the arguments of the server's function.
fn locals(text: &mut Text, interface: &Interface, routine: &Routine, places: &[(usize, u64)]) {
    text.line("");
    for (index, argument) in routine.arguments.iter().enumerate() {
        let place = places.iter().find(|place| place.0 == index).map(|place| place.1);
        match argument.direction {
            Direction::RequestPort => port(text, argument),
            Direction::In => input(text, interface, argument),
            Direction::Out | Direction::InOut => output(text, interface, routine, argument, place),
            _ => {}
        }
    }
}

/// Writes the variable for the port that received the request.
fn port(text: &mut Text, argument: &Argument) {
    let (functions, name) = (&argument.of.functions, &argument.name);
    let (c_type, raw) = (type_of(&argument.of, Side::Server), "InHeadP->msgh_request_port");
    let value = translated(&functions.into, &format!("({}) {raw}", argument.of.message));
    let value = match &functions.payload {
        Some(payload) => format!(
            "(MACH_MSGH_BITS_REQUEST(InHeadP->msgh_bits) == MACH_MSG_TYPE_PROTECTED_PAYLOAD) ? \
             {payload}(InHeadP->msgh_protected_payload) : {value}"
        ),
        None => value,
    };
    if argument.ignored {
        return;
    }
    text.line(format!("{c_type} {name} = {value};"));
}

fn translated(function: &Option<String>, value: &str) -> String {
    match function {
        Some(function) => format!("{function}({value})"),
        None => value.to_owned(),
    }
}

/// Writes the variable for an argument that only the request carries.
fn input(text: &mut Text, interface: &Interface, argument: &Argument) {
    let (of, name) = (&argument.of, &argument.name);
    let c_type = type_of(of, Side::Server);
    if by_address(of) {
        return;
    }
    if of.placement == Placement::Either {
        text.line(format!("void *{name} = {name}P_;"));
        text.line(format!("if (!({name}Type_.Flags & MIG_INLINE))"));
        text.deeper(format!("__builtin_memcpy(&{name}, {name}P_, {});", interface.target.pointer));
        return;
    }
    fetch(text, interface, argument);
    text.line(format!("{c_type} {name} = {};", translated(&of.functions.into, &format!("{name}Value_"))));
}

/// Writes code that copies a value from the request into `NAMEValue_`.
fn fetch(text: &mut Text, interface: &Interface, argument: &Argument) {
    let (of, name) = (&argument.of, &argument.name);
    let message = &of.message;
    text.line(format!("{message} {name}Value_;"));
    let size = match of.placement {
        Placement::OutOfLine => interface.target.pointer,
        _ => of.bytes_of(of.count),
    };
    if is_widened(interface, of) && of.placement == Placement::Inline {
        text.line(format!("__builtin_memcpy(&{name}Value_, {name}P_, sizeof {name}Value_);"));
    } else {
        text.line(format!(
            "_Static_assert(sizeof({message}) == {size}, \"{message} must have {size} bytes\");"
        ));
        text.line(format!("__builtin_memcpy(&{name}Value_, {name}P_, {size});"));
    }
}

/// Writes the variable for an argument that the reply carries; the request may carry it, too.
fn output(
    text: &mut Text,
    interface: &Interface,
    routine: &Routine,
    argument: &Argument,
    place: Option<u64>,
) {
    let (of, name) = (&argument.of, &argument.name);
    let (c_type, place) = (type_of(of, Side::Server), place.unwrap_or_default());
    let both = argument.direction == Direction::InOut;
    if find(argument, Side::Server, Role::Type).is_some_and(|parameter| parameter.output) {
        let value = match (both, of.received.is_polymorphic()) {
            (true, true) => item::type_name(interface, argument),
            (true, false) => of.received.in_c(),
            (false, _) => "0".to_owned(),
        };
        text.line(format!("mach_msg_type_name_t {name}Poly = {value};"));
    }
    if argument.deallocate == Deallocate::Variable {
        text.line(format!("boolean_t {name}Dealloc = FALSE;"));
    }
    if of.is_counted() && !argument.same_count && (both || !argument.count_in_out) {
        let value = if both { item::count(interface, routine, argument) } else { most(of).to_string() };
        text.line(format!("mach_msg_type_number_t {name}Cnt = {value};"));
    }
    if of.placement == Placement::Either {
        text.line(format!("void *{name}P_ = Out_ + {place};"));
        text.line(format!("{c_type} {name} = ({c_type}) {name}P_;"));
    } else if is_placed(argument) {
        if both {
            let size = match (of.variable, is_widened(interface, of)) {
                (true, true) => format!("{} * 4", item::count(interface, routine, argument)),
                (true, false) => format!("{name}Bytes_"),
                (false, _) => of.bytes_of(of.count).to_string(),
            };
            text.line(format!("__builtin_memcpy(Out_ + {place}, {name}P_, {size});"));
        }
    } else if both {
        fetch(text, interface, argument);
        text.line(format!("{c_type} {name} = {};", translated(&of.functions.into, &format!("{name}Value_"))));
    } else {
        text.line(format!("{c_type} {name} = {{0}};"));
    }
}

/// Writes the call of the server's function, and the calls of destructors after it.
fn call(text: &mut Text, interface: &Interface, routine: &Routine, name: &str, places: &[(usize, u64)]) {
    let mut passed = Vec::new();
    for (index, argument) in routine.arguments.iter().enumerate() {
        let place = places.iter().find(|place| place.0 == index).map(|place| place.1);
        for parameter in argument.parameters(Side::Server) {
            passed.push(match parameter.role {
                Role::Value => value(interface, argument, place),
                Role::Type => type_name(interface, argument, parameter.output),
                Role::Count if parameter.output => format!("&{}Cnt", argument.name),
                Role::Count => item::count(interface, routine, argument),
                Role::Deallocate => format!("&{}Dealloc", argument.name),
            });
        }
    }
    // The server's function may write over the place of an untyped reply's result, so that the
    // result is a local variable until the reply is complete.
    let result = match interface.target.dialect {
        Dialect::Typed => "OutP->RetCode",
        Dialect::Untyped => "kern_return_t RetCode_",
    };
    text.line(format!("\n{result} = {name}({});", passed.join(", ")));
    for argument in &routine.arguments {
        let comes_in = matches!(argument.direction, Direction::RequestPort | Direction::In);
        if let Some(function) =
            argument.of.functions.destructor.as_ref().filter(|_| comes_in && !argument.ignored)
        {
            text.line(format!("{function}({});", argument.name));
        }
    }
    for argument in &routine.arguments {
        if argument.direction == Direction::In && argument.of.placement == Placement::Either {
            let name = &argument.name;
            text.line(format!("if ((OutP->RetCode == KERN_SUCCESS) && !({name}Type_.Flags & MIG_INLINE))"));
            let count = format!("({})", item::count(interface, routine, argument));
            let size = bytes(&argument.of, &count);
            text.deeper(format!("mig_deallocate((vm_offset_t) {name}, {size});"));
        }
    }
}

/// The C expression that is passed to the server's function for an argument's value.
fn value(interface: &Interface, argument: &Argument, place: Option<u64>) -> String {
    let (of, name) = (&argument.of, &argument.name);
    match argument.direction {
        Direction::RequestPort if argument.ignored => format!("({}) InHeadP->msgh_request_port", of.server),
        Direction::ReplyPort | Direction::ServerReplyPort => {
            translated(&of.functions.into, &format!("({}) InHeadP->msgh_reply_port", of.message))
        }
        Direction::SequenceNumber if interface.target.dialect == Dialect::Typed => {
            "InHeadP->msgh_seqno".to_owned()
        }
        direction @ (Direction::SequenceNumber
        | Direction::SecurityToken
        | Direction::ServerSecurityToken
        | Direction::AuditToken
        | Direction::ServerAuditToken
        | Direction::ServerContextToken
        | Direction::ServerImplementation) => trailer::value(direction, name),
        Direction::In if by_address(of) => format!("(void *) {name}P_"),
        Direction::Out | Direction::InOut => match place {
            Some(place) if is_placed(argument) => format!("(void *) (Out_ + {place})"),
            _ => format!("&{name}"),
        },
        _ => name.clone(),
    }
}

/// The C expression that is passed to the server's function for a polymorphic argument's type.
fn type_name(interface: &Interface, argument: &Argument, output: bool) -> String {
    match argument.direction {
        Direction::RequestPort => "MACH_MSGH_BITS_REQUEST(InHeadP->msgh_bits)".to_owned(),
        Direction::ReplyPort | Direction::ServerReplyPort => {
            "MACH_MSGH_BITS_REPLY(InHeadP->msgh_bits)".to_owned()
        }
        _ if output => format!("&{}Poly", argument.name),
        _ => item::type_name(interface, argument),
    }
}

/// Writes code that completes the reply.
fn reply(
    text: &mut Text,
    interface: &Interface,
    routine: &Routine,
    reply: &Message,
    places: &[(usize, u64)],
) {
    let has_results = reply.items.iter().any(|item| item.argument.is_some());
    match interface.target.dialect {
        Dialect::Typed if has_results => {
            text.line("if (OutP->RetCode != KERN_SUCCESS)");
            text.deeper("return;\n");
        }
        Dialect::Untyped if has_results => {
            text.block("if (RetCode_ != KERN_SUCCESS)", |text| {
                text.line("mig_fail(OutP, RetCode_);");
                text.line("return;");
            });
        }
        Dialect::Typed => return,
        Dialect::Untyped => return text.line("OutP->RetCode = RetCode_;"),
    }
    let first = match interface.target.dialect {
        Dialect::Typed => reply.items[0].descriptor.map_or(0, |descriptor| descriptor.bytes) + 4,
        Dialect::Untyped => 0,
    };
    text.line(format!("At_ = {};", interface.target.padded(interface.target.header + first)));
    if reply.complexity == Complexity::Depends {
        text.line("boolean_t Simple_ = TRUE;");
    }
    if reply.items.iter().any(|item| item.argument.is_some_and(|index| routine.arguments[index].is_string()))
    {
        text.line("uint32_t Length_;");
    }
    for item in &reply.items {
        let Some(index) = item.argument else {
            item::pack_own(text, reply, item, "Out_");
            continue;
        };
        text.line(format!("\n/* {} */", item.name));
        let place = places.iter().find(|place| place.0 == index).map_or(0, |place| place.1);
        pack(text, interface, routine, item, index, place);
    }
    text.line("");
    match reply.complexity {
        Complexity::Simple => {}
        Complexity::Complex => text.line("OutHeadP->msgh_bits |= MACH_MSGH_BITS_COMPLEX;"),
        Complexity::Depends => {
            text.line("if (!Simple_)");
            text.deeper("OutHeadP->msgh_bits |= MACH_MSGH_BITS_COMPLEX;");
        }
    }
    text.line("OutHeadP->msgh_size = At_;");
}

fn pack(text: &mut Text, interface: &Interface, routine: &Routine, item: &Item, index: usize, place: u64) {
    let argument = &routine.arguments[index];
    let (name, of) = (&argument.name, &argument.of);
    let address = if is_placed(argument) {
        format!("Out_ + {place}")
    } else if of.placement == Placement::Either {
        name.clone()
    } else if item.kind != ItemKind::Value {
        String::new()
    } else {
        let message = &of.message;
        let value = translated(&of.functions.out, name);
        text.line(format!("{message} {name}Sent_ = {value};"));
        if !is_widened(interface, of) && of.placement == Placement::Inline {
            let bytes = of.bytes_of(of.count);
            text.line(format!(
                "_Static_assert(sizeof({message}) == {bytes}, \"{message} must have {bytes} bytes\");"
            ));
        }
        format!("&{name}Sent_")
    };
    let parts = Parts {
        buffer: "Out_",
        address,
        count: format!("{}Cnt", routine.leader(argument).name),
        name: format!("{name}Poly"),
        deallocate: format!("{name}Dealloc"),
        side: Side::Server,
        too_large: match interface.target.dialect {
            Dialect::Typed => "{ OutP->RetCode = MIG_ARRAY_TOO_LARGE; return; }",
            Dialect::Untyped => "{ mig_fail(OutP, MIG_ARRAY_TOO_LARGE); return; }",
        },
        depends: routine.reply.as_ref().is_some_and(|reply| reply.complexity == Complexity::Depends),
    };
    item::pack(text, interface, item, argument, &parts);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;

    #[test]
    fn data_of_a_reply_is_placed_after_the_largest_arrays_before_it() {
        let text = "subsystem a 1; type p = MACH_MSG_TYPE_COPY_SEND; type v = array[*:9] of char; \
                    routine r(port : p; out a : v; out b : int);";
        let compiled = crate::compile(Target::by_name("mach64").unwrap(), "a", text);
        let interface = compiled.interface.unwrap();
        let reply = interface.routines[0].as_ref().unwrap().reply.as_ref().unwrap();
        assert_eq!(places(&interface, reply), [(1, 56), (2, 80)]);
        assert_eq!(most(&interface.routines[0].as_ref().unwrap().arguments[1].of), 9);
    }
}
