//! The Rust stubs of every valid definition and of every table's subsystem compile without the
//! standard library, without an allocator and without a warning.

#[allow(dead_code, reason = "other tests use the rest")]
mod programs;
#[path = "programs/rust.rs"]
mod rust;

use mig::target::{Dialect, Target};
use programs::{scratch, tests};
use std::fmt::Write;
use std::fs;

#[test]
fn stubs_in_rust_need_neither_the_standard_library_nor_an_allocator() {
    let directory = scratch("no-std");
    let mut root = "#![no_std]\n#![forbid(unsafe_code)]\n".to_owned();
    for (dialect, path) in [(Dialect::Typed, "good/typed"), (Dialect::Untyped, "good/untyped")] {
        for entry in fs::read_dir(tests().join(path)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "defs") {
                continue;
            }
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let text = fs::read_to_string(&path).unwrap();
            let targets = Target::ALL.iter().filter(|target| target.dialect == dialect);
            for target in targets {
                let compiled = mig::compile(*target, &name, &text);
                let Some(interface) = &compiled.interface else { panic!("{}", compiled.report()) };
                let module =
                    mig::message::module(interface).unwrap_or_else(|error| panic!("{}", error.message));
                let name = format!("{name}_{}", target.name.replace('-', "_"));
                fs::write(directory.join(format!("{name}.rs")), module).unwrap();
                writeln!(root, "pub mod {name};").unwrap();
            }
        }
    }
    // Generated stubs import the constants that options name from the module around them.
    root += "pub const MACH_SEND_NOTIFY: u32 = 0x20;\n";
    fs::write(directory.join("rust.rs"), root).unwrap();
    rust::rustc(&directory, &["--crate-type", "rlib", "-D", "warnings"], "stubs.rlib", "rust.rs");
}
