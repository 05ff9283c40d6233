//! Writes the Rust client and server of a random interface over messages, as a library for the C
//! program. The client checks results, and the server returns its arguments.

use crate::interface::{Direction, Interface, Kind, Routine, Type, Way};

/// The Rust type of an element, in which a right has its size in messages.
fn number(interface: &Interface, of: &Type) -> String {
    let is_right = matches!(of.kind, Kind::Right | Kind::Rights(_) | Kind::FixedRights(_));
    let bytes = if is_right && interface.way == Way::Typed { 8 } else { of.bytes };
    format!("u{}", bytes * 8)
}

/// The Rust type in which a server takes and returns a value.
fn owned(interface: &Interface, of: &Type) -> String {
    let number = number(interface, of);
    match of.kind {
        Kind::Scalar | Kind::Right => number,
        Kind::Array(n) | Kind::Struct(n) | Kind::FixedRights(n) => format!("[{number}; {n}]"),
        Kind::Variable(n) | Kind::Rights(n) => format!("Array<{number}, {n}>"),
        Kind::Text(n) | Kind::FixedText(n) => format!("Array<u8, {n}>"),
        Kind::Memory => "Memory".to_owned(),
        Kind::Unbounded => format!("Data<{number}, {}>", 2048 / of.bytes),
    }
}

fn tuple(names: &[String]) -> String {
    if names.len() == 1 { names[0].clone() } else { format!("({})", names.join(", ")) }
}

/// The pairs that have a result of a routine, in the order of the results.
fn results(routine: &Routine) -> Vec<(usize, Direction)> {
    routine.order.iter().copied().filter(|(_, direction)| *direction != Direction::In).collect()
}

/// The text of the Rust library.
pub(crate) fn program(interface: &Interface) -> String {
    let mut text = "#![allow(dead_code, unused_imports, non_snake_case)]\n\
                    mod random;\nmod support;\nuse message::{Array, Data, Memory, Status};\n\
                    use random::{Client, REPLY_BYTES, Server, serve};\nuse support::{Draw, Messages};\n\
                    struct Echo;\nimpl Server for Echo {\n"
        .to_owned();
    for routine in &interface.routines {
        text += &server(interface, routine);
    }
    text += "}\n";
    for routine in &interface.routines {
        text += &client(interface, routine);
    }
    text += "fn clients(damaged: bool) {\n    let mut draw = Draw::new();\n";
    interface
        .routines
        .iter()
        .for_each(|routine| text += &format!("    test_{}(&mut draw, damaged);\n", routine.name));
    text + "}\n#[unsafe(no_mangle)]\nextern \"C\" fn rust_client() {\n    clients(false);\n}\n\
            // Damaged messages have an answer or an error, never a panic.\n\
            #[unsafe(no_mangle)]\nextern \"C\" fn rust_damage() {\n    support::damage_messages();\n    \
            (0..300).for_each(|_| clients(true));\n}\n#[unsafe(no_mangle)]\nextern \"C\" fn rust_server(request: *const u8, reply: *mut u8) -> i32 {\n\
            let request = support::received(request);\n\
            let room = unsafe { &mut *reply.cast::<[u8; REPLY_BYTES]>() };\n\
            support::answered(serve(&mut Echo, request, room), reply)\n}\n"
}

fn server(interface: &Interface, routine: &Routine) -> String {
    let mut parameters = String::new();
    for &(pair, direction) in routine.order.iter().filter(|(_, direction)| *direction != Direction::Out) {
        let of = owned(interface, interface.type_of(routine, pair));
        parameters += &format!(", {}{pair}: {of}", direction.name());
    }
    let results = results(routine);
    let types: Vec<String> =
        results.iter().map(|&(pair, _)| owned(interface, interface.type_of(routine, pair))).collect();
    let value = |&(pair, direction): &(usize, Direction)| match direction {
        Direction::Both => format!("both{pair}"),
        _ => format!("in{pair}"),
    };
    let values: Vec<String> = results.iter().map(value).collect();
    let (name, types, values) = (&routine.name, tuple(&types), tuple(&values));
    format!(
        "    fn {name}(&mut self, port: u64{parameters}) -> Result<{types}, Status> {{\n        \
         assert_eq!(port, 3);\n        Ok({values})\n    }}\n"
    )
}

fn client(interface: &Interface, routine: &Routine) -> String {
    let (mut before, mut after, mut arguments) = (String::new(), String::new(), Vec::new());
    for pair in 0..routine.types.len() {
        let of = interface.type_of(routine, pair);
        let (number, most) = (number(interface, of), of.most());
        let out = if routine.goes_both_ways(pair) { format!("both{pair}") } else { format!("out{pair}") };
        let draw = match of.kind {
            Kind::Scalar | Kind::Right => format!("draw.number::<{number}>({})", of.bytes),
            Kind::Array(n) | Kind::Struct(n) | Kind::FixedRights(n) => {
                format!("draw.fixed::<{number}, {n}>({})", of.bytes)
            }
            Kind::Variable(_) | Kind::Memory | Kind::Unbounded | Kind::Rights(_) => {
                format!("draw.some::<{number}>({most}, {})", of.bytes)
            }
            Kind::Text(_) | Kind::FixedText(_) => format!("draw.text({most})"),
        };
        before += &format!("    let in{pair} = {draw};\n");
        after += &match of.kind {
            Kind::Scalar | Kind::Right | Kind::Array(_) | Kind::Struct(_) | Kind::FixedRights(_) => {
                format!("    assert!({out} == in{pair});\n")
            }
            Kind::Variable(_) | Kind::Rights(_) | Kind::Text(_) | Kind::FixedText(_) => {
                format!("    assert!({out}[..] == in{pair}[..]);\n")
            }
            Kind::Memory => format!("    assert!({out} == Memory::of(&in{pair}));\n"),
            Kind::Unbounded => format!("    assert!(support::elements(&{out}) == in{pair});\n"),
        };
    }
    for &(pair, _) in routine.order.iter().filter(|(_, direction)| *direction != Direction::Out) {
        arguments.push(match interface.type_of(routine, pair).kind {
            Kind::Scalar | Kind::Right => format!("in{pair}"),
            Kind::Memory => format!("Memory::of(&in{pair})"),
            _ => format!("&in{pair}"),
        });
    }
    let names: Vec<String> =
        results(routine).iter().map(|(pair, direction)| format!("{}{pair}", direction.name())).collect();
    let (name, arguments, names) = (&routine.name, arguments.join(", "), tuple(&names));
    format!(
        "fn test_{name}(draw: &mut Draw, damaged: bool) {{\n{before}    \
         let mut client = Client {{ transport: &mut Messages, to: 3 }};\n    \
         let result = client.{name}({arguments});\n    if damaged {{ return; }}\n    \
         let {names} = result.unwrap();\n{after}}}\n"
    )
}
