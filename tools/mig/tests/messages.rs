//! C clients call Rust servers and Rust clients call C servers, over messages of both dialects. The
//! definitions have what the random interfaces of another test lack: polymorphic rights, ports at
//! any position, options, and arrays with `samecount`.

#[allow(dead_code, reason = "other tests use the rest")]
mod programs;
#[path = "programs/rust.rs"]
mod rust;

use programs::{Stubs, scratch, success, tests};
use rust::rustc;
use std::fs;
use std::process::Command;

fn understand_each_other(subject: &str, dialect: &str, target: &str) {
    let stubs = Stubs::ours(subject, target);
    let directory = scratch(&format!("messages-{subject}"));
    let mut mig = Command::new(env!("CARGO_BIN_EXE_mig"));
    mig.args(["-q", "-target", target, "-rust"]).arg(directory.join("stubs.rs"));
    success(mig.arg(tests().join(format!("good/{dialect}/{subject}.defs"))).output().unwrap(), subject);
    for (from, to) in [("random/support.rs", "support.rs"), (&format!("messages/{subject}.rs"), "rust.rs")] {
        fs::copy(tests().join(from), directory.join(to)).unwrap();
    }
    let options = ["--crate-type", "staticlib", "-C", "debug-assertions", "-A", "warnings"];
    let library = rustc(&directory, &options, "librust.a", "rust.rs");
    let c = tests().join("c");
    let own = if dialect == "untyped" { c.join("untyped") } else { c.clone() };
    let gcc = || {
        let mut gcc = Command::new("gcc");
        gcc.current_dir(&directory).args(["-std=gnu11", "-O1", "-fno-strict-aliasing"]);
        gcc.arg("-I").arg(&own).arg("-I").arg(&c).arg("-I").arg(&stubs.directory);
        gcc
    };
    // The definition of a macro makes the C program's client call the Rust server; the C server is
    // linked under its own name, for the Rust client.
    let mut main = gcc();
    main.args(["-DRUST", &format!("-D{subject}_server=rust_server"), "-c", "-o", "main.o"]);
    success(main.arg(own.join(format!("{subject}.c"))).output().unwrap(), subject);
    let mut program = gcc();
    program.args(["-o", "program", "main.o"]);
    for side in ["user", "server"] {
        program.arg(stubs.directory.join(format!("{subject}_{side}.c")));
    }
    program.arg(own.join("loopback.c")).arg(library);
    success(program.output().unwrap(), subject);
    success(Command::new(directory.join("program")).output().unwrap(), subject);
}

#[test]
fn programs_in_c_and_in_rust_understand_each_other_over_untyped_messages() {
    understand_each_other("data", "untyped", "untyped64");
}

#[test]
fn programs_in_c_and_in_rust_understand_each_other_over_typed_messages() {
    understand_each_other("ports", "typed", "mach64");
}
