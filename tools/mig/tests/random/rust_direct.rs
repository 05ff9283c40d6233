//! Writes a Rust program whose client and server use a random interface by direct IPC. The plan
//! decides how a message carries each value; the program handles all values as bytes.

use crate::interface::{Direction, Interface, Routine};
use mig::direct::{Form, Part, Parts, Plan, plan};
use mig::target::Target;

/// The text of the Rust program.
pub(crate) fn program(interface: &Interface) -> String {
    let compiled = mig::compile(Target::by_name("mach64").unwrap(), "random.defs", &interface.definition());
    let compiled = compiled.interface.expect("it is valid");
    let Ok(plans) = plan(&compiled) else { panic!("it does not fit") };
    let mut text = "mod random;\nmod support;\nuse direct::{Array, Status, x2::ThreadId};\n\
                    use random::{Client, Server, serve};\nuse support::{Bytes, Draw, Loopback, SERVER};\n\
                    struct Echo;\nimpl Server for Echo {\n"
        .to_owned();
    for (routine, plan) in interface.routines.iter().zip(&plans) {
        text += &server(routine, plan);
    }
    text += "}\n";
    for (routine, plan) in interface.routines.iter().zip(&plans) {
        text += &client(interface, routine, plan);
    }
    text += "fn main() {\n    let mut draw = Draw::new();\n    for _ in 0..40 {\n";
    interface
        .routines
        .iter()
        .for_each(|routine| text += &format!("        test_{}(&mut draw);\n", routine.name));
    text + "    }\n}\n"
}

/// The form in which a message carries the argument `name`.
fn form(parts: &Parts, plan: &Plan<'_>, name: &str) -> Form {
    let found = parts.iter().find_map(|&(index, part)| match part {
        Part::Value(form) if plan.routine.arguments[index].name == name => Some(form),
        _ => None,
    });
    found.expect("the plan has it")
}

/// The pairs with an `out` argument that the reply carries as a string, in the order of the
/// arguments.
fn strings(routine: &Routine, plan: &Plan<'_>) -> Vec<usize> {
    let is_string =
        |&pair: &usize| matches!(form(&plan.reply, plan, &format!("out{pair}")), Form::String { .. });
    pairs(routine, Direction::Out).into_iter().filter(is_string).collect()
}

fn pairs(routine: &Routine, direction: Direction) -> Vec<usize> {
    routine.order.iter().filter(|(_, other)| *other == direction).map(|&(pair, _)| pair).collect()
}

/// A Rust expression for a value of a form, made from the bytes that `bytes` yields.
fn made(form: Form, bytes: &str) -> String {
    match form {
        Form::Number { bytes: size } => format!("support::number::<u{}>({bytes})", size * 8),
        Form::Elements { bytes: size, count } => format!("support::fixed::<u{}, {count}>({bytes})", size * 8),
        Form::Array { bytes: size, .. } => format!("support::numbers::<u{}>({bytes})", size * 8),
        Form::String { .. } | Form::Map => bytes.to_owned(),
    }
}

fn tuple(names: &[String]) -> String {
    if names.len() == 1 { names[0].clone() } else { format!("({})", names.join(", ")) }
}

fn server(routine: &Routine, plan: &Plan<'_>) -> String {
    let mut parameters = String::new();
    for pair in pairs(routine, Direction::In) {
        let of = match form(&plan.request, plan, &format!("in{pair}")) {
            Form::Number { bytes } => format!("u{}", bytes * 8),
            Form::Elements { bytes, count } => format!("&[u{}; {count}]", bytes * 8),
            Form::Array { bytes, .. } => format!("&[u{}]", bytes * 8),
            Form::String { .. } | Form::Map => "&[u8]".to_owned(),
        };
        parameters += &format!(", in{pair}: {of}");
    }
    for pair in strings(routine, plan) {
        parameters += &format!(", out{pair}: &mut [u8]");
    }
    let (mut types, mut values) = (Vec::new(), Vec::new());
    for pair in pairs(routine, Direction::Out) {
        let form = form(&plan.reply, plan, &format!("out{pair}"));
        let value = made(form, &format!("&in{pair}.bytes()"));
        let (of, value) = match form {
            Form::Number { bytes } => (format!("u{}", bytes * 8), value),
            Form::Elements { bytes, count } => (format!("[u{}; {count}]", bytes * 8), value),
            Form::Array { bytes, most } => {
                (format!("Array<u{}, {most}>", bytes * 8), format!("Array::new(&{value}).unwrap()"))
            }
            Form::String { .. } | Form::Map => {
                ("usize".to_owned(), format!("support::put(out{pair}, {value})"))
            }
        };
        types.push(of);
        values.push(value);
    }
    let (name, types, values) = (&routine.name, tuple(&types), tuple(&values));
    format!(
        "    fn {name}(&mut self, _: ThreadId{parameters}) -> Result<{types}, Status> {{ Ok({values}) }}\n"
    )
}

fn client(interface: &Interface, routine: &Routine, plan: &Plan<'_>) -> String {
    let (mut before, mut after, mut arguments) = (String::new(), String::new(), Vec::new());
    for pair in 0..routine.types.len() {
        let of = interface.type_of(routine, pair);
        let (bytes, most) = (of.bytes, of.most());
        let varies = matches!(form(&plan.request, plan, &format!("in{pair}")), Form::Array { .. })
            || matches!(form(&plan.request, plan, &format!("in{pair}")), Form::String { fixed: false, .. });
        let count = if varies { format!("draw.count({most})") } else { most.to_string() };
        before += &format!("    let count = {count};\n    let value{pair} = draw.bytes({bytes} * count);\n");
    }
    for pair in pairs(routine, Direction::In) {
        let form = form(&plan.request, plan, &format!("in{pair}"));
        let address = if matches!(form, Form::Elements { .. } | Form::Array { .. }) { "&" } else { "" };
        arguments.push(format!("{address}{}", made(form, &format!("&value{pair}"))));
    }
    let strings = strings(routine, plan);
    for pair in &strings {
        before += &format!("    let mut room{pair} = vec![0; 12_000];\n");
        arguments.push(format!("&mut room{pair}"));
    }
    let outs = pairs(routine, Direction::Out);
    for pair in &outs {
        after += &if strings.contains(pair) {
            format!("    assert!(room{pair}[..out{pair}] == value{pair}[..]);\n")
        } else {
            format!("    assert!(out{pair}.bytes() == value{pair});\n")
        };
    }
    let names: Vec<String> = outs.iter().map(|pair| format!("out{pair}")).collect();
    let (name, arguments, names) = (&routine.name, arguments.join(", "), tuple(&names));
    format!(
        "fn test_{name}(draw: &mut Draw) {{\n    let mut transport = Loopback::new();\n{before}    \
         let mut client = Client {{ transport: &mut transport, to: SERVER }};\n    \
         let {names} = client.{name}({arguments}).unwrap();\n{after}}}\n"
    )
}
