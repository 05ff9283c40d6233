//! Writes the C program for a random interface over messages: a client that checks results, and a
//! server that returns its arguments. The Rust client and server are linked to the program.

use crate::interface::{Direction, Interface, Kind, Routine, Way};
use std::fmt::Write;

/// The text of the program, which runs the C and the Rust client, each with the C and the Rust
/// server.
pub(crate) fn program(interface: &Interface) -> String {
    let mut text = "#include \"loopback.h\"\n#include \"random_user.h\"\n#include \"random_server.h\"\n\
                    extern boolean_t random_server(mach_msg_header_t *, mach_msg_header_t *);\n\
                    extern boolean_t rust_server(mach_msg_header_t *, mach_msg_header_t *);\n\
                    extern void rust_client(void), rust_damage(void);\n"
        .to_owned();
    text += FILL;
    for routine in &interface.routines {
        text += &server(interface, routine);
        text += &client(interface, routine);
    }
    text += "static void c_client(void)\n{\n";
    interface.routines.iter().for_each(|routine| writeln!(text, "\ttest_{}();", routine.name).unwrap());
    text + "}\n\nint main(void)\n{\n\tfor (int i = 0; i < 40; i++) {\n\
            \t\tloopback_server = random_server;\n\t\tc_client();\n\t\trust_client();\n\
            \t\tloopback_server = rust_server;\n\t\tc_client();\n\t\trust_client();\n\t}\n\trust_damage();\n\t\
            return 0;\n}\n"
}

fn server(interface: &Interface, routine: &Routine) -> String {
    let (mut parameters, mut body) = (vec!["mach_port_t port".to_owned()], String::new());
    // In the untyped dialect a parameter of a server's function is constant if the definition says
    // `const`.
    let constant = |separator: char| match interface.way {
        Way::Untyped => String::new(),
        _ => format!("const{separator}"),
    };
    for &(pair, direction) in &routine.order {
        let of = interface.type_of(routine, pair);
        let is_out = direction != Direction::In;
        let (name, star) = (&of.name, if is_out { "*" } else { "" });
        let variable = format!("{}{pair}", direction.name());
        parameters.push(match of.kind {
            Kind::Unbounded if !is_out => format!("const_{name} {variable}"),
            _ if !of.is_array() => format!("{name} {star}{variable}"),
            _ if is_out => format!("{name} {variable}"),
            Kind::Text(_) | Kind::FixedText(_) => format!("{}{name} {variable}", constant('_')),
            _ => format!("{}{name} {variable}", constant(' ')),
        });
        if of.is_counted() {
            parameters.push(format!("mach_msg_type_number_t {star}{variable}Cnt"));
        }
        if direction != Direction::Out {
            continue;
        }
        let (bytes, most) = (of.bytes, of.most());
        body += &match of.kind {
            Kind::Scalar | Kind::Struct(_) | Kind::Right => format!("\t*out{pair} = in{pair};\n"),
            Kind::Array(_) | Kind::FixedRights(_) => {
                format!("\tmemcpy(out{pair}, in{pair}, {bytes} * {most});\n")
            }
            Kind::Variable(_) | Kind::Rights(_) => format!(
                "\tmemcpy(out{pair}, in{pair}, {bytes} * in{pair}Cnt);\n\t*out{pair}Cnt = in{pair}Cnt;\n"
            ),
            Kind::Text(_) | Kind::FixedText(_) => format!("\tstrcpy(out{pair}, in{pair});\n"),
            Kind::Memory => format!("\t*out{pair} = in{pair};\n\t*out{pair}Cnt = in{pair}Cnt;\n"),
            Kind::Unbounded => format!(
                "\tif (in{pair}Cnt > *out{pair}Cnt)\n\t\t*out{pair} = malloc({bytes} * in{pair}Cnt);\n\
                 \tmemcpy(*out{pair}, in{pair}, {bytes} * in{pair}Cnt);\n\t*out{pair}Cnt = in{pair}Cnt;\n"
            ),
        };
    }
    let (name, parameters) = (&routine.name, parameters.join(", "));
    format!(
        "kern_return_t server_{name}({parameters})\n{{\n\tcheck(port == 3);\n{body}\treturn KERN_SUCCESS;\n}}\n"
    )
}

fn client(interface: &Interface, routine: &Routine) -> String {
    let (mut before, mut after, mut arguments) = (String::new(), String::new(), vec!["3".to_owned()]);
    for pair in 0..routine.types.len() {
        let of = interface.type_of(routine, pair);
        let (name, bytes, most, element) = (&of.name, of.bytes, of.most(), of.element());
        let both = routine.goes_both_ways(pair);
        let out = if both { format!("both{pair}") } else { format!("out{pair}") };
        if of.is_counted() {
            let count = if both { format!("in{pair}Cnt") } else { most.to_string() };
            before += &format!("\tmach_msg_type_number_t in{pair}Cnt = some({most}), {out}Cnt = {count};\n");
            after += &format!("\tcheck({out}Cnt == in{pair}Cnt);\n");
        }
        let size =
            if of.is_counted() { format!("{bytes} * in{pair}Cnt") } else { format!("{bytes} * {most}") };
        let address = if of.is_array() { "" } else { "&" };
        let copied = format!("\tmemcpy({address}{out}, {address}in{pair}, sizeof {out});\n");
        match of.kind {
            Kind::Memory | Kind::Unbounded => {
                before += &format!("\tstatic {element} in{pair}[{most}], room{pair}[{most}];\n");
                let first = if both { "in" } else { "room" };
                before += &format!("\t(void) room{pair};\n");
                before += &format!("\t{name} {out} = {first}{pair};\n\tfill(in{pair}, {size});\n");
                after += &format!("\tcheck(!memcmp(in{pair}, {out}, {size}));\n");
            }
            Kind::Text(_) | Kind::FixedText(_) => {
                before += &format!("\t{name} in{pair}, {out};\n\tfill_text(in{pair}, {most});\n");
                before += if both { &copied } else { "" };
                after += &format!("\tcheck(!strcmp(in{pair}, {out}));\n");
            }
            _ => {
                before += &format!("\t{name} in{pair}, {out};\n\tfill({address}in{pair}, {size});\n");
                before += if both { &copied } else { "" };
                after += &format!("\tcheck(!memcmp({address}in{pair}, {address}{out}, {size}));\n");
            }
        }
    }
    for &(pair, direction) in &routine.order {
        let of = interface.type_of(routine, pair);
        let (name, is_out) = (direction.name(), direction != Direction::In);
        let address = if is_out && !of.is_array() { "&" } else { "" };
        arguments.push(format!("{address}{name}{pair}"));
        if of.is_counted() {
            let address = if is_out { "&" } else { "" };
            arguments.push(format!("{address}{name}{pair}Cnt"));
        }
    }
    let (name, arguments) = (&routine.name, arguments.join(", "));
    format!(
        "static void test_{name}(void)\n{{\n{before}\tcheck({name}({arguments}) == KERN_SUCCESS);\n{after}}}\n"
    )
}

/// C code for random values.
pub(crate) const FILL: &str = "
static uint64_t state = 1;
static uint32_t draw(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return state >> 33;
}
__attribute__ ((unused)) static void fill(void *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		((unsigned char *) data)[i] = draw();
}
__attribute__ ((unused)) static void fill_text(char *text, size_t size)
{
	size_t length = draw() % size;
	for (size_t i = 0; i < length; i++)
		text[i] = 'a' + draw() % 26;
	text[length] = 0;
}
/* So many elements: often none or all. */
__attribute__ ((unused)) static uint32_t some(uint32_t most)
{
	uint32_t kind = draw() % 4;
	return kind == 0 ? 0 : kind == 1 ? most : draw() % (most + 1);
}
";
