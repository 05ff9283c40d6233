//! Random and damaged definitions. Compiling any text yields an interface or an error, never a
//! panic, and every output can be written for each interface.
//!
//! A longer run: `MIG_FUZZ=1000000 MIG_SEED=1 cargo test --release -p mig --test fuzz --
//! --nocapture`.

use mig::c::{self, CStyle};
use mig::target::Target;
use mig::{direct, list, message, page};
use std::fs;
use std::path::Path;

/// The SplitMix64 generator of random numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// Words from which random definitions are made.
const WORDS: [&str; 60] = [
    "subsystem",
    "type",
    "routine",
    "simpleroutine",
    "skip",
    "import <a.h>",
    "array",
    "of",
    "struct",
    "c_string",
    "polymorphic",
    "MACH_MSG_TYPE_INTEGER_32",
    "MACH_MSG_TYPE_COPY_SEND",
    "MACH_MSG_TYPE_PORT_SEND",
    "MACH_MSG_TYPE_STRING",
    "MACH_MSG_TYPE_BIT",
    "MACH_MSG_TYPE_UNSTRUCTURED",
    "in",
    "out",
    "inout",
    "requestport",
    "replyport",
    "waittime",
    "msgoption",
    "msgseqno",
    "dealloc[]",
    "countinout",
    "islong",
    "servercopy",
    "ctype: x",
    "intran: a b(c)",
    "a",
    "b",
    "int",
    "char",
    "p",
    ":",
    ";",
    ";",
    ";",
    ",",
    "=",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "*",
    "^",
    "|",
    "+",
    "-",
    "/",
    "0",
    "1",
    "4096",
    "99999999999",
    "\"",
    "\n",
];

fn corpus() -> Vec<String> {
    let tests = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs tests")).join("tests");
    let mut texts = Vec::new();
    for directory in ["good/typed", "good/untyped", "good/lenient", "bad", "direct"] {
        for entry in fs::read_dir(tests.join(directory)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "defs") {
                texts.push(fs::read_to_string(path).unwrap());
            }
        }
    }
    texts.sort();
    texts
}

/// A random offset at the border of a word.
fn cut(random: &mut Random, text: &str) -> usize {
    let mut at = random.below(text.len() + 1);
    while !text.is_char_boundary(at)
        || at < text.len()
            && text.as_bytes()[at].is_ascii_alphanumeric()
            && at > 0
            && text.as_bytes()[at - 1].is_ascii_alphanumeric()
            && !random.next().is_multiple_of(8)
    {
        at -= 1;
    }
    at
}

fn damaged(random: &mut Random, corpus: &[String]) -> String {
    let mut text = corpus[random.below(corpus.len())].clone();
    for _ in 0..1 + random.below(4) {
        let (a, b) = (cut(random, &text), cut(random, &text));
        let (start, end) = (a.min(b), a.max(b).min(a.min(b) + random.below(60)));
        let end = (start..=end).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(start);
        match random.below(5) {
            0 => text.replace_range(start..end, ""),
            1 => text.insert_str(start, &format!(" {} ", WORDS[random.below(WORDS.len())])),
            2 => text.replace_range(start..end, WORDS[random.below(WORDS.len())]),
            3 => {
                let piece = text[start..end].to_owned();
                let at = cut(random, &text);
                text.insert_str(at, &piece);
            }
            _ => text.insert(start, char::from_u32(random.below(0x300) as u32).unwrap_or('?')),
        }
    }
    text
}

fn soup(random: &mut Random) -> String {
    let mut text = "subsystem s 1; type p = MACH_MSG_TYPE_COPY_SEND; ".to_owned();
    for _ in 0..random.below(60) {
        text.push_str(WORDS[random.below(WORDS.len())]);
        text.push(' ');
    }
    text
}

/// A definition with random types and flags, chosen so that most definitions are valid.
fn plausible(random: &mut Random) -> String {
    let mut text = "subsystem s 1; type p = MACH_MSG_TYPE_COPY_SEND; type q = polymorphic ctype: p; \
         type char = MACH_MSG_TYPE_CHAR; type short = MACH_MSG_TYPE_INTEGER_16; \
         type int = MACH_MSG_TYPE_INTEGER_32;\n"
        .to_owned();
    let bases = [
        "char",
        "short",
        "int",
        "MACH_MSG_TYPE_INTEGER_64",
        "p",
        "q",
        "MACH_MSG_TYPE_PORT_SEND",
        "MACH_MSG_TYPE_BIT",
        "(MACH_MSG_TYPE_REAL, 96)",
        "MACH_MSG_TYPE_UNSTRUCTURED",
        "(MACH_MSG_TYPE_STRING, 8*30)",
    ];
    // Names of types of fixed size, which arrays and structs can have as elements.
    let mut fixed: Vec<String> = vec!["int".into(), "p".into(), "q".into(), "char".into()];
    let mut names = fixed.clone();
    for at in 0..1 + random.below(6) {
        let base = if random.below(2) == 0 {
            bases[random.below(bases.len())].to_owned()
        } else {
            let from = if random.below(8) == 0 { &names } else { &fixed };
            from[random.below(from.len())].clone()
        };
        let n = [0, 1, 2, 3, 7, 64, 300, 5000][random.below(8).max(random.below(4))];
        let kind = random.below(9);
        let of = match kind {
            0 => format!("array[{n}] of {base}"),
            1 => format!("array[*:{n}] of {base}"),
            2 => format!("array[] of {base}"),
            3 => format!("^array[] of {base}"),
            4 => format!("struct[{n}] of {base}"),
            5 => format!("c_string[*:{n}]"),
            6 => format!("c_string[{n}]"),
            7 => format!("^array[{n}] of {base}"),
            _ => base,
        };
        text += &format!("type t{at} = {of};\n");
        names.push(format!("t{at}"));
        if matches!(kind, 0 | 4 | 6) {
            fixed.push(format!("t{at}"));
        }
    }
    for at in 0..1 + random.below(3) {
        let arguments: Vec<String> = (0..random.below(6))
            .map(|at| {
                let direction = ["", "in", "out", "inout"][random.below(4)];
                let flags = ["", "", ", dealloc", ", dealloc[]", ", countinout", ", islong", ", samecount"];
                let flags = if random.below(3) == 0 { flags[random.below(flags.len())] } else { "" };
                format!("; {direction} a{at} : {}{flags}", names[random.below(names.len())])
            })
            .collect();
        let kind = if random.below(5) == 0 { "simpleroutine" } else { "routine" };
        text += &format!("{kind} r{at}(p : p{});\n", arguments.concat());
    }
    text
}

/// Compiles a text and writes every output. Returns whether the text was valid.
fn try_one(random: &mut Random, text: &str) -> bool {
    let target = Target::ALL[random.below(Target::ALL.len())];
    let compiled = mig::compile(target, "fuzz.defs", text);
    compiled.report();
    let Some(interface) = &compiled.interface else {
        assert!(!compiled.diagnostics.is_empty(), "no interface and no error: {text}");
        return false;
    };
    let style = CStyle { symbols: true, ..CStyle::default() };
    list::names(interface);
    list::layouts(interface);
    page::page(interface);
    c::internal_header(interface, &style);
    c::definitions_header(interface);
    c::server_header(interface);
    c::user(interface, &style);
    c::server(interface, &style);
    // Large interfaces are left out for the Rust outputs, since formatting them would dominate the
    // test's time.
    if interface.present().count() < 4 && random.below(8) == 0 {
        let _ = direct::module(interface).map_err(|error| error.render(&compiled.source));
        let _ = message::module(interface).map_err(|error| error.render(&compiled.source));
    }
    let _ = direct::header(interface).map_err(|error| error.render(&compiled.source));
    true
}

#[test]
fn no_definition_makes_the_compiler_panic() {
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
    };
    let (count, seed) = (number("MIG_FUZZ", 1500), number("MIG_SEED", 1));
    let (mut random, corpus) = (Random(seed), corpus());
    let mut valid = 0;
    for index in 0..count {
        let state = random.0;
        let text = match index % 4 {
            0 => soup(&mut random),
            1 => plausible(&mut random),
            _ => damaged(&mut random, &corpus),
        };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| try_one(&mut random, &text)));
        match outcome {
            Ok(is_valid) => valid += u64::from(is_valid),
            Err(_) => panic!("a panic with state {state:#x} for:\n{text}"),
        }
    }
    println!("{count} definitions with seed {seed}: {valid} were valid, none made the compiler panic");
    assert!(valid > count / 20, "only {valid} of {count} were valid");
}
