//! The generated stubs and pages in the tree agree with the definitions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Each entry has a definition, the option for its output, and the generated file in the tree.
const STUBS: &[(&str, &str, &str)] = &[
    ("interfaces/block.defs", "-l4-rust", "lib/interfaces/src/block.rs"),
    ("interfaces/console.defs", "-l4-rust", "lib/interfaces/src/console.rs"),
    ("interfaces/entropy.defs", "-l4-rust", "lib/interfaces/src/entropy.rs"),
    ("interfaces/file_channel.defs", "-l4-rust", "lib/interfaces/src/file_channel.rs"),
    ("interfaces/input.defs", "-l4-rust", "lib/interfaces/src/input.rs"),
    ("interfaces/net.defs", "-l4-rust", "lib/interfaces/src/net.rs"),
    ("interfaces/network.defs", "-l4-rust", "lib/interfaces/src/network.rs"),
    ("interfaces/root.defs", "-l4-rust", "lib/interfaces/src/root.rs"),
    ("interfaces/rtc.defs", "-l4-rust", "lib/interfaces/src/rtc.rs"),
    ("interfaces/streams.defs", "-l4-rust", "lib/interfaces/src/streams.rs"),
    ("interfaces/block.defs", "-page", "docs/src/interfaces/block.md"),
    ("interfaces/console.defs", "-page", "docs/src/interfaces/console.md"),
    ("interfaces/entropy.defs", "-page", "docs/src/interfaces/entropy.md"),
    ("interfaces/file_channel.defs", "-page", "docs/src/interfaces/file_channel.md"),
    ("interfaces/input.defs", "-page", "docs/src/interfaces/input.md"),
    ("interfaces/net.defs", "-page", "docs/src/interfaces/net.md"),
    ("interfaces/network.defs", "-page", "docs/src/interfaces/network.md"),
    ("interfaces/root.defs", "-page", "docs/src/interfaces/root.md"),
    ("interfaces/rtc.defs", "-page", "docs/src/interfaces/rtc.md"),
    ("interfaces/mach/device.defs", "-async-rust", "lib/mach-interfaces/src/device.rs"),
    ("interfaces/mach/exc.defs", "-async-rust", "lib/mach-interfaces/src/exc.rs"),
    ("interfaces/mach/gnumach.defs", "-async-rust", "lib/mach-interfaces/src/gnumach.rs"),
    ("interfaces/mach/mach.defs", "-async-rust", "lib/mach-interfaces/src/mach.rs"),
    ("interfaces/mach/mach4.defs", "-async-rust", "lib/mach-interfaces/src/mach4.rs"),
    ("interfaces/mach/mach_debug.defs", "-async-rust", "lib/mach-interfaces/src/mach_debug.rs"),
    ("interfaces/mach/mach_host.defs", "-async-rust", "lib/mach-interfaces/src/mach_host.rs"),
    ("interfaces/mach/mach_i386.defs", "-async-rust", "lib/mach-interfaces/src/mach_i386.rs"),
    ("interfaces/mach/mach_port.defs", "-async-rust", "lib/mach-interfaces/src/mach_port.rs"),
    ("interfaces/mach/memory_object.defs", "-async-rust", "lib/mach-interfaces/src/memory_object.rs"),
    (
        "interfaces/mach/memory_object_default.defs",
        "-async-rust",
        "lib/mach-interfaces/src/memory_object_default.rs",
    ),
    ("interfaces/mach/task_notify.defs", "-async-rust", "lib/mach-interfaces/src/task_notify.rs"),
    ("interfaces/streams.defs", "-page", "docs/src/interfaces/streams.md"),
    ("bench/kernel/src/adder.defs", "-l4-rust", "bench/kernel/src/adder.rs"),
    ("bench/kernel/src/adder.defs", "-l4-c", "tests/c/stubs/adder.h"),
];

/// The root directory of the tree.
fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs tests");
    Path::new(&package).join("../..")
}

#[test]
fn the_stubs_of_the_servers_are_those_of_their_definitions() {
    let root = root();
    let written = std::env::temp_dir().join(format!("mig-interface-{}", std::process::id()));
    for &(definition, option, stubs) in STUBS {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mig"));
        command.current_dir(&root).args(["-I", "interfaces", option]).arg(&written);
        let output = command.arg(definition).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let module = root.join(stubs);
        let text = fs::read_to_string(&written).unwrap();
        if std::env::var_os("MIG_BLESS").is_some() {
            fs::write(&module, &text).unwrap();
        }
        let present = fs::read_to_string(&module).unwrap_or_default();
        assert!(present == text, "MIG_BLESS=1 writes {}", module.display());
    }
    fs::remove_file(&written).unwrap();
}

#[test]
fn every_definition_in_the_tree_is_valid() {
    let root = root();
    for (definition, ..) in STUBS {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mig"));
        command.current_dir(&root).args(["-I", "interfaces", "-check"]);
        let output = command.arg(definition).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn no_two_servers_of_the_tree_have_requests_with_the_same_number() {
    let mut bases: Vec<(u64, PathBuf)> = Vec::new();
    for entry in fs::read_dir(root().join("interfaces")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "defs") {
            let text = fs::read_to_string(&path).unwrap();
            let line = text.lines().find(|line| line.starts_with("subsystem ")).unwrap();
            let base = line.trim_end_matches(';').rsplit(' ').next().unwrap().parse().unwrap();
            bases.push((base, path));
        }
    }
    bases.sort();
    // The label of an answer is 100 more than the first request's.
    for pair in bases.windows(2) {
        assert!(pair[1].0 >= pair[0].0 + 200, "{} and {}", pair[0].1.display(), pair[1].1.display());
    }
}
