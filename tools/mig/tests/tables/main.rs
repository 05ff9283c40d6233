//! Definitions made from tables of Mach's and Darwin's calls. The ids must be those of the tables,
//! and the sizes of messages those that this test computes independently.

#[path = "../programs/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod programs;
mod table;

use mig::c::{self, CStyle};
use mig::interface::{Interface, Routine};
use mig::options::{Options, Request};
use mig::target::{Dialect, Target};
use mig::types::{Placement, Shape, Type};
use programs::{scratch, success, tests};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use table::Table;

/// The properties of a type that determine the sizes of messages.
#[derive(Clone, Copy)]
struct Size {
    /// The bits of all elements; the largest number of bits if the number of elements varies.
    bits: u64,
    varies: bool,
    right: bool,
    outside: bool,
    /// Whether the typed dialect puts the data in the message or out of line, as its size requires.
    either: bool,
    text: bool,
    count: u64,
    alignment: u64,
}

impl Table {
    fn size(&self, of: &str, dialect: Dialect) -> Size {
        let of = of.trim();
        let plain = Size {
            bits: 0,
            varies: false,
            right: false,
            outside: false,
            either: false,
            text: false,
            count: 1,
            alignment: 1,
        };
        let right = if dialect == Dialect::Typed { 64 } else { 32 };
        if let Some(of) = of.strip_prefix('^') {
            return Size { outside: true, either: false, ..self.size(of, dialect) };
        }
        if let Some((head, element)) = of.split_once(" of ") {
            let number = head.split(['[', ']']).nth(1).unwrap();
            let element = self.size(element, dialect);
            let varies = head.starts_with("array") && (number.is_empty() || number.starts_with('*'));
            let most = number.trim_start_matches(['*', ':', ' ']);
            if most.is_empty() {
                let outside = dialect == Dialect::Untyped;
                let bits = 2048 / (element.bits / 8) * element.bits;
                return Size { bits, varies, outside, either: !outside, ..element };
            }
            let count: u64 = most.split('+').map(|term| term.trim().parse::<u64>().unwrap()).sum();
            return Size { bits: count * element.bits, count: count * element.count, varies, ..element };
        }
        if let Some(of) = of.strip_prefix("struct") {
            let members = of.trim().trim_start_matches('{').trim_end_matches('}');
            let (mut bytes, mut alignment) = (0u64, 1);
            for member in members.split(';').filter(|member| !member.trim().is_empty()) {
                let (of, name) = member.trim().rsplit_once(' ').unwrap();
                let many: u64 =
                    name.split(['[', ']']).nth(1).map_or(1, |number| number.trim().parse().unwrap());
                let of = self.size(of, dialect);
                alignment = of.alignment.max(alignment);
                bytes = bytes.next_multiple_of(of.alignment) + of.bits / 8 * many;
            }
            return Size { bits: bytes.next_multiple_of(alignment) * 8, alignment, ..plain };
        }
        if let Some(of) = of.strip_prefix("c_string") {
            let number = of.trim().trim_start_matches('[').trim_end_matches(']');
            let varies = number.starts_with('*');
            let bits = 8 * number.trim_start_matches(['*', ':', ' ']).parse::<u64>().unwrap();
            return Size { bits, varies, text: true, ..plain };
        }
        if let Some(long) = of.strip_prefix('(') {
            let (_, bits) = long.trim_end_matches(')').split_once(", ").unwrap();
            let bits = bits.split('*').map(|factor| factor.trim().parse::<u64>().unwrap()).product();
            return Size { bits, ..plain };
        }
        if of.contains("polymorphic") {
            return Size { bits: right, right: true, alignment: right / 8, ..plain };
        }
        let number = |bits: u64| Size { bits, alignment: bits / 8, ..plain };
        match of.strip_prefix("MACH_MSG_TYPE_") {
            Some("CHAR" | "BYTE" | "INTEGER_8") => number(8),
            Some("INTEGER_16") => number(16),
            Some("INTEGER_32" | "BOOLEAN" | "PORT_NAME" | "REAL_32") => number(32),
            Some("INTEGER_64" | "REAL_64") => number(64),
            Some(_) => Size { right: true, ..number(right) },
            None => match (self.types.get(of), of) {
                (Some(of), _) => self.size(of, dialect),
                (None, "char") => number(8),
                (None, "short") => number(16),
                (None, "int") => number(32),
                (None, "uintptr_t" | "intptr_t") => number(64),
                (None, other) => panic!("{other}"),
            },
        }
    }
}

/// The bytes of the smallest and the largest message with these arguments. Each argument has its
/// type, and whether it shares the number of elements of another array.
fn bytes(dialect: Dialect, arguments: &[(Size, bool)], counts: u64, is_reply: bool) -> (u64, u64) {
    let (mut least, mut most) = (0, 0);
    if dialect == Dialect::Typed {
        let head = 32 + 16 * (counts + u64::from(is_reply));
        for (of, _) in arguments {
            let inside = of.bits.div_ceil(8).next_multiple_of(8);
            let (low, high) = match (of.outside, of.either) {
                (true, _) => (8, 8),
                (_, true) => (0, inside.max(8)),
                _ => (if of.varies { 0 } else { inside }, inside),
            };
            (least, most) = (least + 8 + low, most + 8 + high);
        }
        return (head + least, head + most);
    }
    let (mut descriptors, mut has_data) = (0, counts > 0);
    for (of, same) in arguments {
        if of.varies && !same {
            (least, most, has_data) = (least + 4, most + 4, true);
        }
        if of.varies && of.text {
            (least, most) = (least + 4, most + 4);
        }
        if of.outside {
            descriptors += 16;
        } else if of.right {
            descriptors += 12 * of.count;
        } else {
            has_data = true;
            let inside = of.bits.div_ceil(8).next_multiple_of(4);
            (least, most) = (least + if of.varies { 0 } else { inside }, most + inside);
        }
    }
    let result = is_reply && descriptors == 0;
    let head = 24
        + if descriptors > 0 { 4 + descriptors } else { 0 }
        + if has_data || result { 8 } else { 0 }
        + if result { 4 } else { 0 }
        + 4 * counts;
    (head + least, head + most)
}

/// The sizes of a call's messages: the smallest and the largest request, then the smallest and the
/// largest reply.
fn sizes(table: &Table, dialect: Dialect, arguments: &str) -> [(u64, u64); 2] {
    let (mut request, mut reply, mut counts) = (Vec::new(), Vec::new(), 0);
    for (at, argument) in arguments.split(';').enumerate() {
        let (name, of) = argument.split_once(':').unwrap();
        let direction = name.trim().split_once(' ').map_or("in", |(direction, _)| direction);
        if at == 0 || direction.ends_with("replyport") {
            continue;
        }
        let (of, flags) = of.split_once(',').unwrap_or((of, ""));
        let of = of.split_once('=').map_or(of, |(_, of)| of);
        let size = (table.size(of, dialect), flags.contains("SameCount"));
        if matches!(direction, "in" | "inout") {
            request.push(size);
        }
        if matches!(direction, "out" | "inout") {
            reply.push(size);
        }
        counts += u64::from(direction == "out" && flags.contains("CountInOut") && !size.0.outside);
    }
    [bytes(dialect, &request, counts, false), bytes(dialect, &reply, 0, true)]
}

fn check(text: &str, dialect: Dialect, number: usize) {
    let table = Table::read(text);
    let mut calls = 0;
    for subsystem in &table.subsystems {
        let name = &subsystem.name;
        let compiled = mig::compile(Target::of(dialect), name, &table.definition(subsystem));
        let Some(interface) = &compiled.interface else { panic!("{}", compiled.report()) };
        for (id, simple, name, arguments) in &subsystem.calls {
            let routine = interface.present().find(|routine| routine.name == *name).unwrap();
            let [request, reply] = sizes(&table, dialect, arguments);
            assert_eq!((routine.id, routine.simple), (*id, *simple), "{name}");
            assert_eq!((routine.request.minimum, routine.request.maximum), request, "{name}'s request");
            if let Some(message) = &routine.reply {
                assert_eq!(message.id, id + 100, "{name}");
                assert_eq!((message.minimum, message.maximum), reply, "{name}'s reply");
            }
            calls += 1;
        }
    }
    assert_eq!(calls, number);
}

#[test]
fn calls_of_mach_have_the_ids_and_sizes_of_the_tables() {
    check(include_str!("typed.txt"), Dialect::Typed, 195);
}

#[test]
fn calls_of_darwin_have_the_ids_and_sizes_of_the_tables() {
    check(include_str!("untyped.txt"), Dialect::Untyped, 287);
}

/// The interface that a definition of `interfaces/mach` describes.
fn own(name: &str) -> Interface {
    let root = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs tests")).join("../..");
    let file = root.join(format!("interfaces/mach/{name}.defs"));
    let include = root.join("interfaces").display().to_string();
    let Request::Compile(options) = Options::parse(["-I".to_owned(), include]).unwrap() else {
        panic!("options that compile");
    };
    let text = mig::preprocess::run(&file, &options).unwrap().text;
    let compiled = mig::compile(Target::of(Dialect::Typed), name, &text);
    let report = compiled.report();
    compiled.interface.unwrap_or_else(|| panic!("{report}"))
}

/// Calls of subsystem `mach` that the table does not have: two of an older Mach, and one of ours.
const ADDED: [&str; 3] =
    ["memory_object_data_provided", "memory_object_set_attributes", "memory_object_set_cluster_size"];

#[test]
fn the_definitions_of_mach_have_the_calls_of_the_table() {
    let table = Table::read(include_str!("typed.txt"));
    let mut calls = 0;
    for subsystem in table.subsystems.iter().filter(|subsystem| !subsystem.calls.is_empty()) {
        let name = &subsystem.name;
        let compiled = mig::compile(Target::of(Dialect::Typed), name, &table.definition(subsystem));
        let (expected, found) = (compiled.interface.unwrap(), own(name));
        assert_eq!((&found.name, found.base), (&expected.name, expected.base));
        let added = |routine: &&Routine| ADDED.contains(&&*routine.name);
        let of_table = || found.present().filter(|routine| !added(routine));
        assert_eq!(of_table().count(), subsystem.calls.len(), "{name}");
        assert_eq!(found.present().filter(added).count(), if name == "mach" { ADDED.len() } else { 0 });
        for (expected, found) in expected.present().zip(of_table()) {
            let name = &expected.name;
            assert_eq!((&found.name, found.id, found.simple), (name, expected.id, expected.simple));
            assert_eq!(found.request, expected.request, "{name}");
            assert_eq!(found.reply, expected.reply, "{name}");
            let arguments = |routine: &Routine| -> Vec<_> {
                let all = routine.arguments.iter();
                all.map(|argument| (argument.name.clone(), argument.direction, argument.of.name.clone()))
                    .collect()
            };
            assert_eq!(arguments(found), arguments(expected), "{name}");
            assert!(!found.comment.is_empty(), "{name} has no comment");
            calls += 1;
        }
    }
    assert_eq!(calls, 195);
}

/// Types that C or the headers of the tests declare.
const KNOWN: [&str; 26] = [
    "char",
    "short",
    "int",
    "unsigned",
    "float",
    "double",
    "boolean_t",
    "kern_return_t",
    "mach_port_t",
    "mach_port_name_t",
    "mach_msg_type_name_t",
    "mach_msg_type_number_t",
    "mach_msg_id_t",
    "mach_port_seqno_t",
    "security_token_t",
    "audit_token_t",
    "int32_t",
    "uint32_t",
    "int64_t",
    "uint64_t",
    "int8_t",
    "uint8_t",
    "int16_t",
    "uint16_t",
    "intptr_t",
    "uintptr_t",
];

/// The C declaration of a type.
fn declaration(of: &Type) -> String {
    let name = &of.name;
    if KNOWN.contains(&name.as_str()) {
        return String::new();
    }
    let is_right = of.sent.is_port() || of.sent.is_polymorphic();
    let number = if is_right { "mach_port_t".to_owned() } else { format!("uint{}_t", of.bits.min(64)) };
    let element = of.element.as_ref().map(|element| element.user.clone()).filter(|name| !name.is_empty());
    let own = element.clone().unwrap_or(number);
    let count = of.count / of.element.as_ref().map_or(1, |element| element.count).max(1);
    let outside = of.placement != Placement::Inline;
    let declared = match of.shape {
        Shape::String => {
            format!("typedef char {name}[{0}]; typedef const char *const_{name};", of.bytes_of(of.count))
        }
        Shape::Array if outside => format!("typedef {own} *{name}; typedef const {own} *const_{name};"),
        Shape::Array => format!("typedef {own} {name}[{count}];"),
        Shape::Scalar | Shape::Struct if outside => format!("typedef {own} *{name};"),
        Shape::Struct => format!("typedef struct {{ {own} a[{count}]; }} {name};"),
        Shape::Scalar => format!("typedef {own} {name};"),
    };
    declared + "\n"
}

fn compile_in_c(interface: &Interface, directory: &std::path::Path) {
    let mut types =
        "#pragma once\n#include <stdint.h>\n#include <mach/message.h>\n#pragma pack(push, 4)\n".to_owned();
    // Arguments may have types that no `type` statement defines.
    let arguments = interface.present().flat_map(|routine| &routine.arguments).map(|argument| &argument.of);
    let mut declared = BTreeSet::new();
    for of in interface.types.iter().chain(arguments) {
        if declared.insert(&of.name) {
            types += &declaration(of);
        }
    }
    fs::write(directory.join("types.h"), types + "#pragma pack(pop)\n").unwrap();
    let style = CStyle { header: "u.h".to_owned(), symbols: true, ..CStyle::default() };
    for (name, text) in [
        ("u.h", c::header(interface, &style)),
        ("s.h", c::server_header(interface)),
        ("u.c", c::user(interface, &style)),
        ("s.c", c::server(interface, &style)),
    ] {
        fs::write(directory.join(name), text).unwrap();
    }
    let c = tests().join("c");
    let own = if interface.target.dialect == Dialect::Untyped { c.join("untyped") } else { c.clone() };
    for (source, header) in [("u.c", "u.h"), ("s.c", "s.h")] {
        let mut gcc = Command::new("gcc");
        gcc.current_dir(directory).args(["-std=gnu11", "-O1", "-fno-strict-aliasing", "-Wall", "-Wextra"]);
        gcc.args(["-Werror", "-Wno-unused-parameter", "-include", "types.h", "-include", header, "-c"]);
        gcc.args(["-o", "o.o"]).arg("-I").arg(own.as_os_str()).arg("-I").arg(c.as_os_str());
        success(gcc.arg(source).output().unwrap(), &format!("{} {source}", interface.name));
    }
}

#[test]
fn stubs_in_c_of_every_subsystem_compile_without_a_warning() {
    let directory = scratch("tables");
    for (text, dialect) in
        [(include_str!("typed.txt"), Dialect::Typed), (include_str!("untyped.txt"), Dialect::Untyped)]
    {
        let table = Table::read(text);
        for subsystem in &table.subsystems {
            let compiled = mig::compile(Target::of(dialect), &subsystem.name, &table.definition(subsystem));
            let Some(interface) = &compiled.interface else { panic!("{}", compiled.report()) };
            compile_in_c(interface, &directory);
        }
    }
}
