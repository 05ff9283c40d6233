//! Writes a C program whose client and server use a random interface by direct IPC.

use crate::c_messages::FILL;
use crate::interface::{Direction, Interface, Kind, Routine};
use std::fmt::Write;

/// The text of the C program.
pub(crate) fn program(interface: &Interface) -> String {
    let mut text = "#define L4_LOOPBACK\n#include \"random.h\"\n#include <string.h>\n\
                        #define check(condition) do { if (!(condition)) { fprintf(stderr, \"%d: %s is false\\n\", \
                        __LINE__, #condition); exit(1); } } while (0)\n"
            .to_owned();
    text += FILL;
    for routine in &interface.routines {
        text += &one(interface, routine);
    }
    text += "static const struct random_functions functions = {\n";
    interface.routines.iter().for_each(|routine| writeln!(text, "\tserver_{},", routine.name).unwrap());
    text += DIRECT_MAIN;
    interface.routines.iter().for_each(|routine| writeln!(text, "\t\ttest_{}();", routine.name).unwrap());
    text + "\t}\n\treturn 0;\n}\n"
}

fn one(interface: &Interface, routine: &Routine) -> String {
    let mut parameters = vec!["void *self".to_owned(), "L4_ThreadId_t caller".to_owned()];
    let (mut body, mut before, mut after) = (String::new(), String::new(), String::new());
    let mut arguments = vec!["to".to_owned()];
    for &(pair, direction) in &routine.order {
        let out = direction == Direction::Out;
        let of = interface.type_of(routine, pair);
        let (constant, variable) =
            if out { ("", format!("out{pair}")) } else { ("const ", format!("in{pair}")) };
        let star = if out { "*" } else { "" };
        let element = of.element();
        let number = of.most() == 1 && matches!(of.kind, Kind::Scalar | Kind::Array(_) | Kind::Struct(_));
        // Large data travels as a string, whose C parameter is `void *`; every address converts to
        // that type.
        parameters.push(if number {
            format!("{element} {star}{variable}")
        } else {
            format!("{constant}void *{variable}")
        });
        arguments.push(if number && out { format!("&{variable}") } else { variable.clone() });
        let counted = of.is_counted() || matches!(of.kind, Kind::Text(_) | Kind::FixedText(_));
        if counted {
            parameters.push(format!("L4_Word_t {star}{variable}Cnt"));
            arguments.push(if out { format!("&{variable}Cnt") } else { format!("{variable}Cnt") });
        }
        if !out {
            continue;
        }
        let (bytes, most) = (of.bytes, of.most());
        if number {
            before += &format!("\t{element} in{pair}, out{pair};\n\tfill(&in{pair}, {bytes});\n");
            body += &format!("\t*out{pair} = in{pair};\n");
            after += &format!("\tcheck(in{pair} == out{pair});\n");
        } else if counted {
            before += &format!("\tstatic {element} in{pair}[{most}], out{pair}[{most}];\n");
            before += &format!("\tL4_Word_t in{pair}Cnt = some({most}), out{pair}Cnt = {most};\n");
            before += &format!("\tfill(in{pair}, {bytes} * {most});\n");
            body += &format!(
                "\tmemcpy(out{pair}, in{pair}, {bytes} * in{pair}Cnt);\n\t*out{pair}Cnt = in{pair}Cnt;\n"
            );
            after += &format!(
                "\tcheck(in{pair}Cnt == out{pair}Cnt && !memcmp(in{pair}, out{pair}, {bytes} * in{pair}Cnt));\n"
            );
        } else {
            before += &format!(
                "\t{element} in{pair}[{most}], out{pair}[{most}];\n\tfill(in{pair}, sizeof in{pair});\n"
            );
            body += &format!("\tmemcpy(out{pair}, in{pair}, {bytes} * {most});\n");
            after += &format!("\tcheck(!memcmp(in{pair}, out{pair}, sizeof in{pair}));\n");
        }
    }
    let (name, parameters, arguments) = (&routine.name, parameters.join(", "), arguments.join(", "));
    format!(
        "static int32_t server_{name}({parameters})\n{{\n\t(void) self, (void) caller;\n{body}\treturn 0;\n}}\n\
             static void test_{name}(void)\n{{\n\tL4_ThreadId_t to = {{ 1 }};\n{before}\tcheck({name}({arguments}) == 0);\n{after}}}\n"
    )
}

const DIRECT_MAIN: &str = "};

/* Buffers of the server's strings, and the room for those that it answers. */
static uint64_t buffers[8][2000], room[20000];

static int serve(void)
{
	const void *strings[8];
	L4_ThreadId_t caller = { 2 };
	for (int i = 0; i < 8; i++)
		strings[i] = buffers[i];
	struct mig_l4_message message;
	memcpy(message.MR, message_registers, sizeof message.MR);
	int replies = random_serve(&functions, 0, caller, &message, strings, room, sizeof room);
	memcpy(message_registers, message.MR, sizeof message.MR);
	return replies;
}

int main(void)
{
	loopback_serve = serve;
	for (int i = 0; i < 8; i++)
		loopback_buffers[i] = buffers[i];
	for (int i = 0; i < 40; i++) {
";
