//! The server's side: a function for each routine, and the one that takes any request.
//!
//! Values in the request are passed where they lie. What comes back in arrays and structs is
//! written by the server's function into the reply, where its item would be if every array before
//! it were as large as it can be; then the items are moved together.

use super::header::kind;
use super::item::{self, Parts};
use super::parameter::{by_address, bytes, element, find, is_widened, most, parameters, type_of};
use super::prologue::prologue;
use super::text::Text;
use super::user::divided;
use super::{CStyle, server_name};
use crate::ast::Direction;
use crate::interface::{Argument, Deallocate, Interface, Role, Routine, Side};
use crate::layout::{Complexity, Item, ItemKind, Message};
use crate::types::{Placement, Shape};

const FAILURE: &str = "{ OutP->RetCode = MIG_BAD_ARGUMENTS; return; }";

/// The server's file.
pub fn server(interface: &Interface, style: &CStyle) -> String {
    let mut text = Text::default();
    prologue(&mut text, interface, Side::Server, "");
    interface.present().for_each(|routine| function(&mut text, interface, routine));
    table(&mut text, interface);
    if style.symbols {
        symbols(&mut text, interface);
    }
    demux(&mut text, interface);
    text.finish()
}

fn function(text: &mut Text, interface: &Interface, routine: &Routine) {
    let name = server_name(interface, &routine.name);
    text.line(format!("\n/* {} {} */", kind(routine), routine.name));
    text.line(format!("mig_external kern_return_t {name}"));
    text.list(&parameters(routine, Side::Server), ";");
    text.line(format!("\nmig_internal void _X{}", routine.name));
    text.line("\t(mach_msg_header_t *InHeadP, mach_msg_header_t *OutHeadP)");
    text.block("", |text| {
        text.line("char *In_ __attribute__ ((unused)) = (char *) InHeadP;");
        text.line("char *Out_ __attribute__ ((unused)) = (char *) OutHeadP;");
        text.line("mig_reply_header_t *OutP = (mig_reply_header_t *) OutHeadP;");
        let items = routine.request.items.iter().chain(routine.reply.iter().flat_map(|reply| &reply.items));
        if items.clone().any(|item| item.argument.is_some()) {
            text.line(format!("uint32_t At_ = {};", interface.target.header));
        }
        request(text, interface, routine);
        let places = routine.reply.as_ref().map(|reply| places(interface, reply)).unwrap_or_default();
        locals(text, interface, routine, &places);
        call(text, routine, &name, &places);
        if let Some(reply) = &routine.reply {
            self::reply(text, interface, routine, reply, &places);
        }
    });
    default(text, routine, &name);
}

/// What the server does for a routine that it does not have.
fn default(text: &mut Text, routine: &Routine, name: &str) {
    text.line(format!("\n/* Default implementation of {name} */"));
    text.line("#ifdef\tMIG_EOPNOTSUPP");
    text.line("kern_return_t __attribute__ ((weak))");
    text.line(name);
    text.list(&parameters(routine, Side::Server), " { return MIG_EOPNOTSUPP; }");
    text.line("#endif\t/* MIG_EOPNOTSUPP */");
}

/// Checks the request and finds its values.
fn request(text: &mut Text, interface: &Interface, routine: &Routine) {
    let request = &routine.request;
    text.line(
        "boolean_t InSimple_ __attribute__ ((unused)) = !(InHeadP->msgh_bits & MACH_MSGH_BITS_COMPLEX);",
    );
    text.check(&item::wrong_size(request, "InHeadP->msgh_size", "InSimple_"), FAILURE);
    if !request.is_fixed() {
        text.line(format!("uint64_t Extra_ = InHeadP->msgh_size - {};", request.minimum));
    }
    for item in &request.items {
        let Some(argument) = item.argument.map(|index| &routine.arguments[index]) else { continue };
        text.line(format!("\n/* {} */", item.name));
        if item.kind == ItemKind::Count {
            count(text, interface, item, argument);
            continue;
        }
        item::check(text, interface, item, argument, "In_", FAILURE);
        let name = &argument.name;
        if item.descriptor.is_some_and(|descriptor| descriptor.received.is_polymorphic())
            && request.complexity == Complexity::Depends
        {
            text.check(&format!("MACH_MSG_TYPE_PORT_ANY({name}Type_.Name) && InSimple_"), FAILURE);
        }
        text.line(format!("char *{name}P_ __attribute__ ((unused)) = In_ + At_;"));
        item::advance(text, interface, item);
        let of = &argument.of;
        if argument.is_string() {
            // Whatever was sent, the string ends in the message.
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
            let count = if of.variable { format!("{name}Type_.Number") } else { of.count.to_string() };
            text.line(format!("{inline}mig_get_ports({name}P_, {name}P_, {count}, sizeof({one}));"));
        }
    }
    if !request.is_fixed() {
        text.check("Extra_ != 0", FAILURE);
    }
}

/// How many elements the client has room for.
fn count(text: &mut Text, interface: &Interface, item: &Item, argument: &Argument) {
    let (name, most) = (&argument.name, most(&argument.of));
    let own = item.descriptor.map_or(0, |descriptor| descriptor.bytes);
    item::check_integer(text, "In_ + At_", FAILURE);
    text.line(format!("mach_msg_type_number_t {name}Cnt = {most};"));
    text.line(format!("__builtin_memcpy(&{name}Cnt, In_ + At_ + {own}, 4);"));
    text.line(format!("if ({name}Cnt > {most})"));
    text.deeper(format!("{name}Cnt = {most};"));
    text.line(format!("At_ += {};", own + interface.target.padded(item.data)));
}

/// Where the data of each argument of a reply is while the server's function runs.
fn places(interface: &Interface, reply: &Message) -> Vec<(usize, u64)> {
    let mut at = interface.target.header;
    let mut places = Vec::new();
    for item in &reply.items {
        at += item.descriptor.map_or(0, |descriptor| descriptor.bytes);
        if let Some(argument) = item.argument {
            places.push((argument, at));
        }
        at += interface.target.padded(item.data);
    }
    places
}

/// Whether the server's function writes the value into the reply.
fn is_placed(argument: &Argument) -> bool {
    let (of, functions) = (&argument.of, &argument.of.functions);
    let is_translated = functions.into.is_some() || functions.out.is_some();
    let is_struct = of.shape == Shape::Struct && of.placement == Placement::Inline;
    by_address(of) || is_struct && !is_translated
}

/// The program's values.
fn locals(text: &mut Text, interface: &Interface, routine: &Routine, places: &[(usize, u64)]) {
    text.line("");
    for (index, argument) in routine.arguments.iter().enumerate() {
        let place = places.iter().find(|place| place.0 == index).map(|place| place.1);
        match argument.direction {
            Direction::RequestPort => port(text, argument),
            Direction::In => input(text, interface, argument),
            Direction::Out | Direction::InOut => output(text, interface, argument, place),
            _ => {}
        }
    }
}

/// The port that the request came to.
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

/// A value that only comes in.
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

/// Reads a value from the request into `NAMEValue_`.
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

/// A value that comes back, and perhaps comes in, too.
fn output(text: &mut Text, interface: &Interface, argument: &Argument, place: Option<u64>) {
    let (of, name) = (&argument.of, &argument.name);
    let (c_type, place) = (type_of(of, Side::Server), place.unwrap_or_default());
    let both = argument.direction == Direction::InOut;
    if find(argument, Side::Server, Role::Type).is_some_and(|parameter| parameter.output) {
        let value = match (both, of.received.is_polymorphic()) {
            (true, true) => format!("{name}Type_.Name"),
            (true, false) => of.received.in_c(),
            (false, _) => "0".to_owned(),
        };
        text.line(format!("mach_msg_type_name_t {name}Poly = {value};"));
    }
    if argument.deallocate == Deallocate::Variable {
        text.line(format!("boolean_t {name}Dealloc = FALSE;"));
    }
    if of.is_counted() && !argument.count_in_out {
        let value = if both && of.placement == Placement::OutOfLine {
            format!("{name}Type_.Number{}", divided(of.multiplier()))
        } else {
            most(of).to_string()
        };
        text.line(format!("mach_msg_type_number_t {name}Cnt = {value};"));
    }
    if of.placement == Placement::Either {
        text.line(format!("void *{name}P_ = Out_ + {place};"));
        text.line(format!("{c_type} {name} = ({c_type}) {name}P_;"));
    } else if is_placed(argument) {
        if both {
            text.line(format!("__builtin_memcpy(Out_ + {place}, {name}P_, {});", of.bytes_of(of.count)));
        }
    } else if both {
        fetch(text, interface, argument);
        text.line(format!("{c_type} {name} = {};", translated(&of.functions.into, &format!("{name}Value_"))));
    } else {
        text.line(format!("{c_type} {name} = {{0}};"));
    }
}

/// The call of the server's function, and what goes away after it.
fn call(text: &mut Text, routine: &Routine, name: &str, places: &[(usize, u64)]) {
    let mut passed = Vec::new();
    for (index, argument) in routine.arguments.iter().enumerate() {
        let place = places.iter().find(|place| place.0 == index).map(|place| place.1);
        for parameter in argument.parameters(Side::Server) {
            passed.push(match parameter.role {
                Role::Value => value(argument, place),
                Role::Type => type_name(argument, parameter.output),
                Role::Count if parameter.output => format!("&{}Cnt", argument.name),
                Role::Count => format!("{}Type_.Number{}", argument.name, divided(argument.of.multiplier())),
                Role::Deallocate => format!("&{}Dealloc", argument.name),
            });
        }
    }
    text.line(format!("\nOutP->RetCode = {name}({});", passed.join(", ")));
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
            let count = format!("({name}Type_.Number{})", divided(argument.of.multiplier()));
            let size = bytes(&argument.of, &count);
            text.deeper(format!("mig_deallocate((vm_offset_t) {name}, {size});"));
        }
    }
}

/// What is passed for an argument's value.
fn value(argument: &Argument, place: Option<u64>) -> String {
    let (of, name) = (&argument.of, &argument.name);
    match argument.direction {
        Direction::RequestPort if argument.ignored => format!("({}) InHeadP->msgh_request_port", of.server),
        Direction::ReplyPort | Direction::ServerReplyPort => {
            translated(&of.functions.into, &format!("({}) InHeadP->msgh_reply_port", of.message))
        }
        Direction::SequenceNumber => "InHeadP->msgh_seqno".to_owned(),
        Direction::In if by_address(of) => format!("(void *) {name}P_"),
        Direction::Out | Direction::InOut => match place {
            Some(place) if is_placed(argument) => format!("(void *) (Out_ + {place})"),
            _ => format!("&{name}"),
        },
        _ => name.clone(),
    }
}

/// What is passed for an argument's type.
fn type_name(argument: &Argument, output: bool) -> String {
    match argument.direction {
        Direction::RequestPort => "MACH_MSGH_BITS_REQUEST(InHeadP->msgh_bits)".to_owned(),
        Direction::ReplyPort | Direction::ServerReplyPort => {
            "MACH_MSGH_BITS_REPLY(InHeadP->msgh_bits)".to_owned()
        }
        _ if output => format!("&{}Poly", argument.name),
        _ => format!("{}Type_.Name", argument.name),
    }
}

/// Writes the reply.
fn reply(
    text: &mut Text,
    interface: &Interface,
    routine: &Routine,
    reply: &Message,
    places: &[(usize, u64)],
) {
    if reply.items.len() == 1 {
        return;
    }
    text.line("if (OutP->RetCode != KERN_SUCCESS)");
    text.deeper("return;\n");
    let first = &reply.items[0];
    let own = first.descriptor.map_or(0, |descriptor| descriptor.bytes);
    text.line(format!("At_ = {};", interface.target.header + own + interface.target.padded(4)));
    if reply.complexity == Complexity::Depends {
        text.line("boolean_t Simple_ = TRUE;");
    }
    if reply.items.iter().any(|item| item.argument.is_some_and(|index| routine.arguments[index].is_string()))
    {
        text.line("uint32_t Length_;");
    }
    for item in &reply.items {
        let Some(index) = item.argument else { continue };
        let argument = &routine.arguments[index];
        text.line(format!("\n/* {} */", item.name));
        let place = places.iter().find(|place| place.0 == index).map_or(0, |place| place.1);
        pack(text, interface, item, argument, place, reply.complexity);
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

fn pack(
    text: &mut Text,
    interface: &Interface,
    item: &Item,
    argument: &Argument,
    place: u64,
    complexity: Complexity,
) {
    let (name, of) = (&argument.name, &argument.of);
    let address = if is_placed(argument) {
        format!("Out_ + {place}")
    } else if of.placement == Placement::Either {
        name.clone()
    } else {
        let message = &of.message;
        let value = translated(&of.functions.out, name);
        text.line(format!("{message} {name}Sent_ = {value};"));
        if !is_widened(interface, of) && of.placement == Placement::Inline {
            let bytes = item.data;
            text.line(format!(
                "_Static_assert(sizeof({message}) == {bytes}, \"{message} must have {bytes} bytes\");"
            ));
        }
        format!("&{name}Sent_")
    };
    let parts = Parts {
        buffer: "Out_",
        address,
        count: format!("{name}Cnt"),
        name: format!("{name}Poly"),
        deallocate: format!("{name}Dealloc"),
        side: Side::Server,
        too_large: "{ OutP->RetCode = MIG_ARRAY_TOO_LARGE; return; }",
        depends: complexity == Complexity::Depends,
    };
    item::pack(text, interface, item, argument, &parts);
}

/// The functions by id.
fn table(text: &mut Text, interface: &Interface) {
    text.line(format!("\nmig_routine_t {}_routines[] =", interface.demux));
    text.block("", |text| {
        for routine in &interface.routines {
            match routine {
                Some(routine) => text.line(format!("_X{},", routine.name)),
                None => text.line("0,"),
            }
        }
        if interface.routines.is_empty() {
            text.line("0");
        }
    });
    text.raw(";\n");
}

fn symbols(text: &mut Text, interface: &Interface) {
    let (name, base) = (&interface.name, interface.base);
    text.line(format!("\nmig_symtab_t _{name}SymTab[] ="));
    text.block("", |text| {
        for routine in &interface.routines {
            match routine {
                Some(routine) => {
                    text.line(format!("{{ \"{0}\", {1}, (void *) _X{0} }},", routine.name, routine.id))
                }
                None => text.line("{ \"\", 0, 0 },"),
            }
        }
    });
    text.raw(";\n");
    text.line(format!("int _{name}SymTabBase = {base};"));
    text.line(format!("int _{name}SymTabEnd = {};", base + interface.routines.len() as u64));
}

/// The function that takes any request.
fn demux(text: &mut Text, interface: &Interface) {
    let (name, base) = (&interface.demux, interface.base);
    let last = base + interface.routines.len().saturating_sub(1) as u64;
    text.line(format!("\nmig_external boolean_t {name}"));
    text.line("\t(mach_msg_header_t *InHeadP, mach_msg_header_t *OutHeadP)");
    text.block("", |text| {
        text.raw(
            "	mig_reply_header_t *OutP = (mig_reply_header_t *) OutHeadP;
	mig_routine_t routine;

	OutP->Head.msgh_bits = MACH_MSGH_BITS(MACH_MSGH_BITS_REPLY(InHeadP->msgh_bits), 0);
	OutP->Head.msgh_size = sizeof *OutP;
	OutP->Head.msgh_remote_port = InHeadP->msgh_reply_port;
	OutP->Head.msgh_local_port = MACH_PORT_NULL;
	OutP->Head.msgh_seqno = 0;
	OutP->Head.msgh_id = InHeadP->msgh_id + 100;
	mig_describe((char *) &OutP->RetCodeType, MACH_MSG_TYPE_INTEGER_32, 32, 1, MIG_INLINE);

",
        );
        text.line(format!("if ((InHeadP->msgh_id > {last}) || (InHeadP->msgh_id < {base}) ||"));
        text.line(format!("    ((routine = {name}_routines[InHeadP->msgh_id - {base}]) == 0)) {{"));
        text.raw(
            "		OutP->RetCode = MIG_BAD_ID;
		return FALSE;
	}
	(*routine) (InHeadP, &OutP->Head);
	return TRUE;
",
        );
    });
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
