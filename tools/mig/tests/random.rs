//! Random interfaces: what goes in comes out, over messages and by direct IPC.
//!
//! Each routine has pairs of arguments of the same type, one in, one out, in any order; the server
//! copies one to the other. `MIG_SEED` and `MIG_ROUNDS` choose others than the suite's.

#[allow(dead_code, reason = "other tests use the rest")]
mod programs;

use programs::{scratch, success, tests};
use std::fmt::Write;
use std::fs;
use std::process::Command;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % bound as u64) as usize
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Scalar,
    Array(usize),
    Struct(usize),
    Variable(usize),
    Text(usize),
    FixedText(usize),
    Memory,
    Unbounded,
}

/// A type: what it consists of, and how C declares it.
struct Type {
    name: String,
    kind: Kind,
    /// Bytes of an element.
    bytes: usize,
}

/// Most elements of memory in these tests.
const MEMORY: usize = 1500;

impl Type {
    fn new(random: &mut Random, at: usize) -> Type {
        let kind = match random.below(10) {
            0 | 1 => Kind::Scalar,
            2 => Kind::Array(1 + random.below(40)),
            3 => Kind::Struct(1 + random.below(40)),
            4 | 5 => Kind::Variable(1 + random.below(70)),
            6 => Kind::Text(1 + random.below(60)),
            7 => Kind::FixedText(1 + random.below(60)),
            8 => Kind::Memory,
            _ => Kind::Unbounded,
        };
        let text = matches!(kind, Kind::Text(_) | Kind::FixedText(_));
        Type { name: format!("t{at}_t"), kind, bytes: if text { 1 } else { 1 << random.below(4) } }
    }

    fn element(&self) -> String {
        format!("uint{}_t", self.bytes * 8)
    }

    /// The most elements.
    fn most(&self) -> usize {
        match self.kind {
            Kind::Scalar => 1,
            Kind::Array(n) | Kind::Struct(n) | Kind::Variable(n) | Kind::Text(n) | Kind::FixedText(n) => n,
            Kind::Memory | Kind::Unbounded => MEMORY,
        }
    }

    fn definition(&self) -> String {
        let element = ["INTEGER_8", "INTEGER_16", "INTEGER_32", "INTEGER_64"][self.bytes.ilog2() as usize];
        let element = format!("MACH_MSG_TYPE_{element}");
        let of = match self.kind {
            Kind::Scalar => element,
            Kind::Array(n) => format!("array[{n}] of {element}"),
            Kind::Struct(n) => format!("struct[{n}] of {element}"),
            Kind::Variable(n) => format!("array[*:{n}] of {element}"),
            Kind::Text(n) => format!("c_string[*:{n}]"),
            Kind::FixedText(n) => format!("c_string[{n}]"),
            Kind::Memory => format!("^array[] of {element}"),
            Kind::Unbounded => format!("array[] of {element}"),
        };
        format!("type {} = {of};\n", self.name)
    }

    fn declaration(&self) -> String {
        let (name, element) = (&self.name, self.element());
        match self.kind {
            Kind::Scalar => format!("typedef {element} {name};\n"),
            Kind::Array(n) | Kind::Variable(n) => format!("typedef {element} {name}[{n}];\n"),
            // A packed struct is what a message has.
            Kind::Struct(n) => format!("typedef struct {{ {element} a[{n}]; }} {name};\n"),
            Kind::Text(n) | Kind::FixedText(n) => {
                format!("typedef char {name}[{n}];\ntypedef const char *const_{name};\n")
            }
            Kind::Memory => format!("typedef {element} *{name};\n"),
            Kind::Unbounded => {
                format!("typedef {element} *{name};\ntypedef const {element} *const_{name};\n")
            }
        }
    }

    fn is_counted(&self) -> bool {
        matches!(self.kind, Kind::Variable(_) | Kind::Memory | Kind::Unbounded)
    }
}

/// A routine: which types its pairs have, and the order of the arguments: which pair, out or in.
struct Routine {
    name: String,
    types: Vec<usize>,
    order: Vec<(usize, bool)>,
}

struct Interface {
    types: Vec<Type>,
    routines: Vec<Routine>,
}

impl Interface {
    fn new(seed: u64) -> Interface {
        let mut random = Random(seed);
        let types: Vec<Type> = (0..12).map(|at| Type::new(&mut random, at)).collect();
        let routine = |at: usize, random: &mut Random| {
            // By direct IPC a message has at most eight strings.
            let pairs: Vec<usize> = (0..random.below(4)).map(|_| random.below(types.len())).collect();
            let mut order: Vec<(usize, bool)> =
                (0..pairs.len()).flat_map(|pair| [(pair, false), (pair, true)]).collect();
            for at in (1..order.len()).rev() {
                order.swap(at, random.below(at + 1));
            }
            Routine { name: format!("r{at}"), types: pairs, order }
        };
        let routines = (0..12).map(|at| routine(at, &mut random)).collect();
        Interface { types, routines }
    }

    fn definition(&self) -> String {
        let mut text = "subsystem random 1000;\nserverprefix server_;\nimport \"random_types.h\";\n\
                        type mach_port_t = MACH_MSG_TYPE_COPY_SEND;\n"
            .to_owned();
        self.types.iter().for_each(|of| text += &of.definition());
        for routine in &self.routines {
            write!(text, "routine {}(port : mach_port_t", routine.name).unwrap();
            for &(pair, out) in &routine.order {
                let (direction, of) = (if out { "out" } else { "in" }, &self.types[routine.types[pair]].name);
                write!(text, "; {direction} {direction}{pair} : {of}").unwrap();
            }
            text += ");\n";
        }
        text
    }

    /// The types in C, with 64 bits as a message has them.
    fn declarations(&self) -> String {
        let declared: String = self.types.iter().map(Type::declaration).collect();
        format!("#ifndef RANDOM_TYPES\n#define RANDOM_TYPES\n#include <stdint.h>\n{declared}#endif\n")
    }

    /// The server's functions and the tests of the client, over messages.
    fn over_messages(&self) -> String {
        let mut text = "#include \"loopback.h\"\n#include \"random_user.h\"\n#include \"random_server.h\"\n\
                        extern boolean_t random_server(mach_msg_header_t *, mach_msg_header_t *);\n"
            .to_owned();
        text += FILL;
        for routine in &self.routines {
            text += &self.message_server(routine);
            text += &self.message_client(routine);
        }
        text += "int main(void)\n{\n\tloopback_server = random_server;\n\tfor (int i = 0; i < 40; i++) {\n";
        self.routines.iter().for_each(|routine| writeln!(text, "\t\ttest_{}();", routine.name).unwrap());
        text + "\t}\n\treturn 0;\n}\n"
    }

    fn message_server(&self, routine: &Routine) -> String {
        let (mut parameters, mut body) = (vec!["mach_port_t port".to_owned()], String::new());
        for &(pair, out) in &routine.order {
            let of = &self.types[routine.types[pair]];
            let (name, star) = (&of.name, if out { "*" } else { "" });
            let variable = format!("{}{pair}", if out { "out" } else { "in" });
            parameters.push(match of.kind {
                Kind::Scalar | Kind::Struct(_) | Kind::Memory => format!("{name} {star}{variable}"),
                Kind::Array(_) | Kind::Variable(_) if out => format!("{name} {variable}"),
                Kind::Array(_) | Kind::Variable(_) => format!("const {name} {variable}"),
                Kind::Text(_) | Kind::FixedText(_) if out => format!("{name} {variable}"),
                Kind::Unbounded if out => format!("{name} *{variable}"),
                Kind::Text(_) | Kind::FixedText(_) | Kind::Unbounded => format!("const_{name} {variable}"),
            });
            if of.is_counted() {
                parameters.push(format!("mach_msg_type_number_t {star}{variable}Cnt"));
            }
            if !out {
                continue;
            }
            let (bytes, most) = (of.bytes, of.most());
            body += &match of.kind {
                Kind::Scalar | Kind::Struct(_) => format!("\t*out{pair} = in{pair};\n"),
                Kind::Array(_) => format!("\tmemcpy(out{pair}, in{pair}, {bytes} * {most});\n"),
                Kind::Variable(_) => format!(
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

    fn message_client(&self, routine: &Routine) -> String {
        let (mut before, mut after, mut arguments) = (String::new(), String::new(), vec!["3".to_owned()]);
        for (pair, &at) in routine.types.iter().enumerate() {
            let of = &self.types[at];
            let (name, bytes, most, element) = (&of.name, of.bytes, of.most(), of.element());
            if of.is_counted() {
                before +=
                    &format!("\tmach_msg_type_number_t in{pair}Cnt = some({most}), out{pair}Cnt = {most};\n");
                after += &format!("\tcheck(out{pair}Cnt == in{pair}Cnt);\n");
            }
            let size =
                if of.is_counted() { format!("{bytes} * in{pair}Cnt") } else { format!("{bytes} * {most}") };
            match of.kind {
                Kind::Memory | Kind::Unbounded => {
                    before += &format!("\tstatic {element} in{pair}[{most}], room{pair}[{most}];\n");
                    before += &format!("\t{name} out{pair} = room{pair};\n\tfill(in{pair}, {size});\n");
                    after += &format!("\tcheck(!memcmp(in{pair}, out{pair}, {size}));\n");
                }
                Kind::Text(_) | Kind::FixedText(_) => {
                    before += &format!("\t{name} in{pair}, out{pair};\n\tfill_text(in{pair}, {most});\n");
                    after += &format!("\tcheck(!strcmp(in{pair}, out{pair}));\n");
                }
                Kind::Array(_) | Kind::Variable(_) => {
                    before += &format!("\t{name} in{pair}, out{pair};\n\tfill(in{pair}, {size});\n");
                    after += &format!("\tcheck(!memcmp(in{pair}, out{pair}, {size}));\n");
                }
                Kind::Scalar | Kind::Struct(_) => {
                    before += &format!("\t{name} in{pair}, out{pair};\n\tfill(&in{pair}, {size});\n");
                    after += &format!("\tcheck(!memcmp(&in{pair}, &out{pair}, {size}));\n");
                }
            }
        }
        for &(pair, out) in &routine.order {
            let of = &self.types[routine.types[pair]];
            let by_address =
                matches!(of.kind, Kind::Array(_) | Kind::Variable(_) | Kind::Text(_) | Kind::FixedText(_));
            arguments.push(match out {
                true if by_address => format!("out{pair}"),
                true => format!("&out{pair}"),
                false => format!("in{pair}"),
            });
            if of.is_counted() {
                arguments.push(if out { format!("&out{pair}Cnt") } else { format!("in{pair}Cnt") });
            }
        }
        let (name, arguments) = (&routine.name, arguments.join(", "));
        format!(
            "static void test_{name}(void)\n{{\n{before}\tcheck({name}({arguments}) == KERN_SUCCESS);\n{after}}}\n"
        )
    }

    /// The same by direct IPC: arrays are addresses and counts there.
    fn direct(&self) -> String {
        let mut text = "#define L4_LOOPBACK\n#include \"random.h\"\n#include <string.h>\n\
                        #define check(condition) do { if (!(condition)) { fprintf(stderr, \"%d: %s is false\\n\", \
                        __LINE__, #condition); exit(1); } } while (0)\n"
            .to_owned();
        text += FILL;
        for routine in &self.routines {
            text += &self.direct_routine(routine);
        }
        text += "static const struct random_functions functions = {\n";
        self.routines.iter().for_each(|routine| writeln!(text, "\tserver_{},", routine.name).unwrap());
        text += DIRECT_MAIN;
        self.routines.iter().for_each(|routine| writeln!(text, "\t\ttest_{}();", routine.name).unwrap());
        text + "\t}\n\treturn 0;\n}\n"
    }

    fn direct_routine(&self, routine: &Routine) -> String {
        let mut parameters = vec!["void *self".to_owned(), "L4_ThreadId_t caller".to_owned()];
        let (mut body, mut before, mut after) = (String::new(), String::new(), String::new());
        let mut arguments = vec!["to".to_owned()];
        for &(pair, out) in &routine.order {
            let of = &self.types[routine.types[pair]];
            let (constant, variable) =
                if out { ("", format!("out{pair}")) } else { ("const ", format!("in{pair}")) };
            let star = if out { "*" } else { "" };
            let element = of.element();
            let number = of.most() == 1 && matches!(of.kind, Kind::Scalar | Kind::Array(_) | Kind::Struct(_));
            // What is large is a string without a type; an address of anything is one of that, too.
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
}

const FILL: &str = "
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

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn each_seed(what: &str, test: fn(&Interface, &std::path::Path)) {
    let first = number("MIG_SEED", 1);
    for seed in first..first + number("MIG_ROUNDS", 1) {
        let directory = scratch(&format!("random-{what}"));
        let interface = Interface::new(seed);
        fs::write(directory.join("random.defs"), interface.definition()).unwrap();
        fs::write(directory.join("random_types.h"), interface.declarations()).unwrap();
        println!("{what}: seed {seed}");
        test(&interface, &directory);
    }
}

fn generate(directory: &std::path::Path, arguments: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mig"));
    command.current_dir(directory).args(arguments).arg("random.defs");
    success(command.output().unwrap(), "mig");
}

fn build_and_run(directory: &std::path::Path, options: &[&str], sources: &[std::path::PathBuf]) {
    let mut command = Command::new("gcc");
    command.current_dir(directory).args([
        "-std=gnu11",
        "-O1",
        "-fno-strict-aliasing",
        "-o",
        "program",
        "-I.",
    ]);
    command.arg("-I").arg(tests().join("c")).args(options).args(sources);
    success(command.output().unwrap(), "gcc");
    success(Command::new(directory.join("program")).output().unwrap(), "the program");
}

fn over_messages(interface: &Interface, directory: &std::path::Path) {
    fs::write(directory.join("main.c"), interface.over_messages()).unwrap();
    let files = ["-user", "u.c", "-server", "s.c", "-header", "random_user.h", "-sheader", "random_server.h"];
    generate(directory, &files);
    let sources = ["u.c", "s.c", "main.c"].map(|name| directory.join(name));
    build_and_run(
        directory,
        &["-Wall", "-Werror"],
        &[&sources[..], &[tests().join("c/loopback.c")]].concat(),
    );
}

#[test]
fn what_goes_in_comes_out_over_messages() {
    each_seed("messages", over_messages);
}

#[test]
fn what_goes_in_comes_out_by_direct_ipc() {
    each_seed("direct", |interface, directory| {
        fs::write(directory.join("main.c"), interface.direct()).unwrap();
        generate(directory, &["-l4-c", "random.h"]);
        build_and_run(directory, &["-Wall", "-Wno-incompatible-pointer-types"], &[directory.join("main.c")]);
    });
}
