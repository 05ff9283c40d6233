//! Random interfaces: a server returns each value unchanged, over messages of both dialects and by
//! direct IPC, with clients and servers in C and in Rust.
//!
//! Each routine has pairs of arguments of one type, an `in` and an `out` argument, in random order;
//! the server copies the first to the second. Some pairs are a single `inout` argument. `MIG_SEED`
//! and `MIG_ROUNDS` select other interfaces than the suite's.

mod c_direct;
mod c_messages;
mod interface;
#[path = "../programs/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod programs;
#[path = "../programs/rust.rs"]
mod rust;
mod rust_direct;
mod rust_messages;

use interface::{Interface, Way};
use programs::{scratch, success, tests};
use rust::rustc;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options of rustc for generated programs: warnings, such as of unused code, are allowed.
const LENIENT: [&str; 4] = ["-A", "warnings", "-C", "debug-assertions"];

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn each_seed(what: &str, way: Way, test: fn(&Interface, &Path)) {
    let first = number("MIG_SEED", 1);
    for seed in first..first + number("MIG_ROUNDS", 1) {
        let directory = scratch(&format!("random-{what}"));
        let interface = Interface::new(seed, way);
        fs::write(directory.join("random.defs"), interface.definition()).unwrap();
        fs::write(directory.join("random_types.h"), interface.declarations()).unwrap();
        println!("{what}: seed {seed}");
        test(&interface, &directory);
    }
}

fn generate(directory: &Path, arguments: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mig"));
    command.current_dir(directory).args(arguments).arg("random.defs");
    success(command.output().unwrap(), "mig");
}

fn build_and_run(directory: &Path, options: &[&str], sources: &[PathBuf]) {
    let mut command = Command::new("gcc");
    command.current_dir(directory).args(["-std=gnu11", "-O1", "-fno-strict-aliasing", "-o", "program"]);
    command.args(options).arg("-I.").arg("-I").arg(tests().join("c")).args(sources);
    success(command.output().unwrap(), "gcc");
    success(Command::new(directory.join("program")).output().unwrap(), "the program");
}

fn over_messages(interface: &Interface, directory: &Path) {
    let (dialect, c) = match interface.way {
        Way::Untyped => ("untyped", tests().join("c/untyped")),
        _ => ("typed", tests().join("c")),
    };
    fs::write(directory.join("main.c"), c_messages::program(interface)).unwrap();
    let files = [
        ["-dialect", dialect],
        ["-user", "u.c"],
        ["-server", "s.c"],
        ["-header", "random_user.h"],
        ["-sheader", "random_server.h"],
        ["-rust", "random.rs"],
    ];
    generate(directory, files.as_flattened());
    fs::write(directory.join("rust.rs"), rust_messages::program(interface)).unwrap();
    fs::copy(tests().join("random/support.rs"), directory.join("support.rs")).unwrap();
    let library =
        rustc(directory, &[&LENIENT[..], &["--crate-type", "staticlib"]].concat(), "librust.a", "rust.rs");
    let mut sources = ["u.c", "s.c", "main.c"].map(|name| directory.join(name)).to_vec();
    sources.extend([c.join("loopback.c"), library]);
    let own = format!("-I{}", c.display());
    build_and_run(directory, &["-Wall", "-Werror", &own], &sources);
}

#[test]
fn what_goes_in_comes_out_over_typed_messages() {
    each_seed("typed", Way::Typed, over_messages);
}

#[test]
fn what_goes_in_comes_out_over_untyped_messages() {
    each_seed("untyped", Way::Untyped, over_messages);
}

#[test]
fn what_goes_in_comes_out_by_direct_ipc() {
    each_seed("direct", Way::Direct, |interface, directory| {
        fs::write(directory.join("main.c"), c_direct::program(interface)).unwrap();
        generate(directory, &["-l4-c", "random.h", "-l4-rust", "random.rs"]);
        build_and_run(directory, &["-Wall", "-Wno-incompatible-pointer-types"], &[directory.join("main.c")]);
        fs::write(directory.join("rust.rs"), rust_direct::program(interface)).unwrap();
        fs::copy(tests().join("random/support_direct.rs"), directory.join("support.rs")).unwrap();
        let program = rustc(directory, &LENIENT, "rust-program", "rust.rs");
        success(Command::new(program).output().unwrap(), "the program in Rust");
    });
}
