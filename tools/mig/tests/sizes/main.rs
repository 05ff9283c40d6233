//! The cost of the stubs of one definition: bytes of code for each kind of stubs and each side, and
//! the instructions that this compiler executes. `docs/results/mig.json` has the figures, and the
//! book has a table of them. `MIG_BLESS=1` measures and writes both. Otherwise the test measures
//! again what the installed compilers can build, and compares.

#[path = "../programs/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod programs;
#[path = "../programs/rust.rs"]
mod rust;
#[path = "../tables/table.rs"]
#[allow(dead_code, reason = "another test uses the rest")]
mod table;

use programs::{scratch, success, tests};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use table::Table;

/// The percentage by which a measured size may differ from the published one.
const TOLERANCE: u64 = 2;

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    String::from_utf8(success(output, program).stdout).unwrap()
}

/// The bytes of code and constants in an object file.
fn code(object: &Path) -> u64 {
    let sections = output("size", &["-A", &object.to_string_lossy()]);
    let sizes = sections.lines().filter(|line| line.starts_with(".text") || line.starts_with(".rodata"));
    sizes.map(|line| line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()).sum()
}

fn mig(directory: &Path, arguments: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mig"));
    command.current_dir(directory).arg("-q").args(arguments).arg(tests().join("sizes/calls.defs"));
    success(command.output().unwrap(), "mig");
}

fn gcc(directory: &Path, headers: &[PathBuf], options: &[&str], source: &str) -> u64 {
    let mut command = Command::new("gcc");
    command.current_dir(directory).args(["-std=gnu11", "-O2", "-fno-strict-aliasing", "-w", "-c"]);
    command.args(["-fno-asynchronous-unwind-tables", "-o", "object.o"]).args(options);
    command.args(headers.iter().map(|header| format!("-I{}", header.display())));
    success(command.arg(source).output().unwrap(), source);
    code(&directory.join("object.o"))
}

/// The sizes of client and server in C over messages.
fn c_messages(target: &str) -> (u64, u64) {
    let directory = scratch(&format!("sizes-{target}"));
    mig(&directory, &["-target", target, "-user", "u.c", "-server", "s.c", "-header", "u.h"]);
    c_stubs(&directory, target)
}

/// The sizes of the compiled `u.c` and `s.c`.
fn c_stubs(directory: &Path, target: &str) -> (u64, u64) {
    let (c, untyped) = (tests().join("c"), tests().join("c/untyped"));
    let own = if target.starts_with("untyped") { vec![untyped, c] } else { vec![c] };
    let headers = [own, vec![tests().join("sizes")]].concat();
    let options: &[&str] = if target.ends_with("2022") { &["-DNARROW"] } else { &[] };
    (gcc(directory, &headers, options, "u.c"), gcc(directory, &headers, options, "s.c"))
}

/// The names of the definition's routines.
fn routines() -> Vec<String> {
    let text = fs::read_to_string(tests().join("sizes/calls.defs")).unwrap();
    let names = text.lines().filter_map(|line| line.split_once("routine "));
    names.map(|(_, rest)| rest.split('(').next().unwrap().to_owned()).collect()
}

/// The sizes of client and server in C by direct IPC. A header has all functions of both.
fn c_direct() -> (u64, u64) {
    let directory = scratch("sizes-direct");
    mig(&directory, &["-l4-c", "calls.h", "-l4-rust", "calls.rs"]);
    let client = format!("#include \"calls.h\"\nvoid *calls[] = {{ {} }};\n", routines().join(", "));
    fs::write(directory.join("u.c"), client).unwrap();
    fs::write(directory.join("s.c"), "#include \"calls.h\"\nvoid *serve = calls_serve;\n").unwrap();
    let headers = [directory.clone(), tests().join("c")];
    (gcc(&directory, &headers, &[], "u.c"), gcc(&directory, &headers, &[], "s.c"))
}

/// The methods of the trait `Server` in a generated module.
fn methods(module: &str) -> Vec<String> {
    let start = module.find("pub trait Server {").expect("there is one");
    let body = &module[start..start + module[start..].find("\n}\n").unwrap()];
    let mut methods: Vec<String> = Vec::new();
    let mut inside = false;
    for line in body.lines() {
        if line.starts_with("    fn ") {
            methods.push(String::new());
            inside = true;
        }
        if inside {
            methods.last_mut().unwrap().push_str(line.trim());
            inside = !line.ends_with(';');
        }
    }
    methods
}

/// Compiles a module once with a client and once with a server, and returns both sizes. The
/// transport is only declared, so that its code does not count.
fn rust_stubs(directory: &Path, transport: &str) -> (u64, u64) {
    let module = fs::read_to_string(directory.join("calls.rs")).unwrap();
    let pointers: String = routines()
        .iter()
        .map(|name| format!("    Pointer(Client::<'static, T>::{name} as *const ()),\n"))
        .collect();
    let is_over_messages = transport.contains("reply_port");
    // Each kind of stubs has an array of its own.
    let arrays = if is_over_messages { "message" } else { "direct" };
    let head = "#![no_std]\n#![allow(warnings)]\nmod calls;\nuse calls::*;\nuse direct::x2::{IpcError, MapItem, MessageTag, ThreadId};\nuse direct::{Registers, Reply, Transport};\n\
                use ::message::{Call, Data, Header, Memory, Status};\n\
                pub struct Pointer(*const ());\nunsafe impl Sync for Pointer {}\npub struct T(*mut u64);\n";
    let head = format!("{head}use ::{arrays}::Array;\n");
    let client =
        format!("{head}{transport}#[unsafe(no_mangle)]\npub static CALLS: &[Pointer] = &[\n{pointers}];\n");
    let (mut declared, mut defined) = (String::new(), String::new());
    for method in methods(&module) {
        let (name, rest) = method.strip_prefix("fn ").unwrap().split_once('(').unwrap();
        let rest = rest.replacen("&mut self", "this: &mut T", 1);
        writeln!(declared, "    fn server_{name}({rest}").unwrap();
        let parameters = rest.split_once(')').unwrap().0;
        let names: Vec<&str> =
            parameters.split(':').rev().skip(1).map(|part| part.rsplit([',', ' ']).next().unwrap()).collect();
        let names: Vec<&str> =
            names.into_iter().rev().map(|name| if name == "this" { "self" } else { name }).collect();
        let call = format!("unsafe {{ server_{name}({}) }}", names.join(", "));
        writeln!(defined, "{} {{ {call} }}", method.trim_end_matches(';')).unwrap();
    }
    let server = format!(
        "{head}unsafe extern \"Rust\" {{\n{declared}}}\nimpl Server for T {{\n{defined}}}\n{transport}{}",
        if is_over_messages { SERVE_MESSAGES } else { SERVE_DIRECT }
    );
    (rust_object(directory, "u.rs", &client), rust_object(directory, "s.rs", &server))
}

const SERVE_MESSAGES: &str = "#[unsafe(no_mangle)]
pub fn serve_calls(this: &mut T, request: &[u8], reply: &mut [u8; REPLY_BYTES]) -> Option<usize> {
    serve(this, request, reply)
}
";

const SERVE_DIRECT: &str = "#[unsafe(no_mangle)]
pub fn serve_calls<'a>(
    this: &mut T, caller: ThreadId, tag: MessageTag, registers: &mut T, strings: &[&[u8]], room: &'a mut [u8],
) -> Option<Reply<'a>> {
    serve(this, caller, tag, registers, strings, room)
}
";

/// A declared transport of messages, whose code is elsewhere.
const MESSAGES: &str = "unsafe extern \"Rust\" {
    fn port() -> u64;
    fn exchange(message: *mut u8, room: usize, length: usize, call: &Call) -> Result<(), i32>;
}
impl ::message::Transport for T {
    fn reply_port(&mut self) -> u64 { unsafe { port() } }
    fn call(&mut self, message: &mut [u8], length: usize, call: &Call) -> Result<(), i32> {
        unsafe { exchange(message.as_mut_ptr(), message.len(), length, call) }
    }
    fn send(&mut self, message: &mut [u8], length: usize, call: &Call) -> Result<(), i32> {
        unsafe { exchange(message.as_mut_ptr(), 0, length, call) }
    }
}
";

/// A transport for direct IPC with message registers in memory, whose calls are only declared.
const DIRECT: &str = "unsafe extern \"Rust\" {
    fn ipc(to: ThreadId, tag: MessageTag, strings: &[&[u8]], rooms: &mut [&mut [u8]]) -> Result<MessageTag, IpcError>;
}
impl Registers for T {
    fn register(&self, index: usize) -> u64 { unsafe { self.0.add(index).read() } }
    fn set_register(&mut self, index: usize, word: u64) { unsafe { self.0.add(index).write(word) } }
}
impl Transport for T {
    fn call(
        &mut self, to: ThreadId, tag: MessageTag, strings: &[&[u8]], rooms: &mut [&mut [u8]],
    ) -> Result<MessageTag, IpcError> {
        unsafe { ipc(to, tag, strings, rooms) }
    }
    fn send(&mut self, to: ThreadId, tag: MessageTag, strings: &[&[u8]]) -> Result<(), IpcError> {
        unsafe { ipc(to, tag, strings, &mut []) }.map(|_| ())
    }
}
";

fn rust_object(directory: &Path, name: &str, text: &str) -> u64 {
    fs::write(directory.join(name), text).unwrap();
    let options = ["--crate-type", "lib", "--emit", "obj", "-C", "codegen-units=1", "-A", "warnings"];
    code(&rust::rustc(directory, &options, "object-rust.o", name))
}

fn rust_messages(target: &str) -> (u64, u64) {
    let directory = scratch(&format!("sizes-rust-{target}"));
    mig(&directory, &["-target", target, "-rust", "calls.rs"]);
    rust_stubs(&directory, MESSAGES)
}

/// The sizes of the stubs that GNU's compiler writes for the definition, if that compiler is
/// installed.
fn original() -> Option<(u64, u64)> {
    let root = PathBuf::from(std::env::var_os("MIG_ORIGINAL")?);
    let directory = scratch("sizes-original");
    let preprocessed = output(
        "gcc",
        &["-E", "-x", "c", "-undef", "-ansi", &tests().join("sizes/calls.defs").to_string_lossy()],
    );
    // GNU's compiler has the type `int` built in, and refuses a definition of it.
    fs::write(directory.join("in.defs"), preprocessed.replace("type int = MACH_MSG_TYPE_INTEGER_32;", ""))
        .unwrap();
    let mut command = Command::new(root.join("usr/lib/mig/x86_64-gnu-migcom"));
    command.current_dir(&directory).stdin(fs::File::open(directory.join("in.defs")).unwrap());
    command.args(["-q", "-user", "u.c", "-server", "s.c", "-header", "u.h"]);
    success(command.output().unwrap(), "migcom");
    Some(c_stubs(&directory, "mach64-2022"))
}

/// The instructions that this compiler executes for all outputs over messages of its largest input,
/// the subsystem of Darwin with the most calls. None if valgrind is not installed.
fn instructions() -> Option<u64> {
    let directory = scratch("sizes-time");
    let table = Table::read(include_str!("../tables/untyped.txt"));
    let largest = table.subsystems.iter().max_by_key(|subsystem| subsystem.calls.len())?;
    fs::write(directory.join("largest.defs"), table.definition(largest)).ok()?;
    let mut command = Command::new("valgrind");
    command.current_dir(&directory).args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.args([env!("CARGO_BIN_EXE_mig"), "-q", "-dialect", "untyped", "-rust", "r.rs", "-user", "u.c"]);
    command
        .args(["-server", "s.c", "-header", "u.h"])
        .stdin(fs::File::open(directory.join("largest.defs")).ok()?);
    let said = String::from_utf8(command.output().ok()?.stderr).ok()?;
    said.lines().find_map(|line| line.split_once("Collected : "))?.1.trim().parse().ok()
}

/// Measures all figures: the kind of stubs, the client's size and the server's size.
fn measure() -> Vec<(String, u64, u64)> {
    let mut all = vec![
        ("C, typed".to_owned(), c_messages("mach64")),
        ("C, typed, form of 2022".to_owned(), c_messages("mach64-2022")),
        ("C, untyped".to_owned(), c_messages("untyped64")),
        ("C, direct IPC".to_owned(), c_direct()),
        ("Rust, typed".to_owned(), rust_messages("mach64")),
        ("Rust, untyped".to_owned(), rust_messages("untyped64")),
        ("Rust, direct IPC".to_owned(), rust_stubs(&scratch("sizes-direct"), DIRECT)),
    ];
    all.extend(original().map(|sizes| (GNU.to_owned(), sizes)));
    all.into_iter().map(|(name, (client, server))| (name, client, server)).collect()
}

const GNU: &str = "C, typed, form of 2022, by GNU's compiler";

fn published() -> PathBuf {
    tests().join("../../../docs/results/mig.json")
}

fn compilers() -> [String; 2] {
    let first = |program: &str| output(program, &["--version"]).lines().next().unwrap().to_owned();
    [first("gcc"), first("rustc")]
}

/// The text of the file of figures, with a line for each figure.
fn json(figures: &[(String, u64, u64)], time: Option<u64>) -> String {
    let [gcc, rustc] = compilers();
    let lines: Vec<String> = figures
        .iter()
        .map(|(name, client, server)| {
            format!("    {{ \"stubs\": \"{name}\", \"client\": {client}, \"server\": {server} }}")
        })
        .collect();
    format!(
        "{{\n  \"gcc\": \"{gcc}\",\n  \"rustc\": \"{rustc}\",\n  \"routines\": {},\n  \
         \"instructions of mig\": {},\n  \"bytes of code\": [\n{}\n  ]\n}}\n",
        routines().len(),
        time.map_or("null".to_owned(), |time| time.to_string()),
        lines.join(",\n")
    )
}

/// Reads the figures of a file that [`json`] has written.
fn read(text: &str) -> Vec<(String, u64, u64)> {
    let entries = text.lines().filter_map(|line| line.trim().strip_prefix("{ \"stubs\": \""));
    let number = |text: &str, key: &str| {
        let digits = text.split_once(&format!("\"{key}\": ")).unwrap().1;
        digits.split(|letter: char| !letter.is_ascii_digit()).next().unwrap().parse().unwrap()
    };
    entries
        .map(|entry| {
            let name = entry.split('"').next().unwrap().to_owned();
            (name, number(entry, "client"), number(entry, "server"))
        })
        .collect()
}

/// The text of the book's table.
fn table(text: &str) -> String {
    let mut table = "\n| stubs | client | server |\n|---|---|---|\n".to_owned();
    for (name, client, server) in read(text) {
        writeln!(table, "| {name} | {client} | {server} |").unwrap();
    }
    let time = text.split_once("\"instructions of mig\": ").and_then(|(_, rest)| rest.split(',').next());
    let millions = time.and_then(|time| time.parse::<u64>().ok()).unwrap_or(0) / 1_000_000;
    write!(
        table,
        "\nFor the largest subsystem of the tables in its tests, with all outputs over messages, mig itself\n\
         executes {millions} million instructions.\n\n"
    )
    .unwrap();
    table
}

#[test]
fn code_size_of_stubs_is_that_of_the_book() {
    let (path, book) = (published(), tests().join("../../../docs/src/mig.md"));
    let chapter = fs::read_to_string(&book).unwrap();
    let (before, rest) = chapter.split_once("<!-- mig: sizes -->\n").expect("the chapter has the table");
    let (_, after) = rest.split_once("<!-- end -->").expect("the table ends");
    let chapter_with =
        |text: &str| format!("{before}<!-- mig: sizes -->\n{}<!-- end -->{after}", table(text));
    if std::env::var_os("MIG_BLESS").is_some() {
        let time = instructions();
        let mut figures = measure();
        // Without GNU's compiler the published figures of its stubs are kept.
        let kept = read(&fs::read_to_string(&path).unwrap_or_default());
        if !figures.iter().any(|(name, ..)| name == GNU) {
            figures.extend(kept.into_iter().filter(|(name, ..)| name == GNU));
        }
        let text = json(&figures, time);
        fs::write(&path, &text).unwrap();
        fs::write(&book, chapter_with(&text)).unwrap();
        return;
    }
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(chapter, chapter_with(&text), "the book's table is not that of {}", path.display());
    let is_comparable = compilers().iter().all(|compiler| text.contains(&format!("\"{compiler}\"")));
    if !is_comparable {
        return println!("measured with other compilers: not compared");
    }
    let published = read(&text);
    for (name, client, server) in measure() {
        let (_, other_client, other_server) = published.iter().find(|(other, ..)| *other == name).unwrap();
        for (found, kept) in [(client, *other_client), (server, *other_server)] {
            assert!(
                found.abs_diff(kept) * 100 <= kept * TOLERANCE,
                "{name}: {found} bytes, published {kept}"
            );
        }
    }
}
