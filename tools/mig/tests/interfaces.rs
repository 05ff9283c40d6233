//! The generated stubs and pages in the tree agree with the definitions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Each entry has a definition, the option for its output, and the generated file in the tree.
const STUBS: [(&str, &str, &str); 14] = [
    ("interfaces/block.defs", "-l4-rust", "lib/interfaces/src/block.rs"),
    ("interfaces/console.defs", "-l4-rust", "lib/interfaces/src/console.rs"),
    ("interfaces/entropy.defs", "-l4-rust", "lib/interfaces/src/entropy.rs"),
    ("interfaces/input.defs", "-l4-rust", "lib/interfaces/src/input.rs"),
    ("interfaces/root.defs", "-l4-rust", "lib/interfaces/src/root.rs"),
    ("interfaces/streams.defs", "-l4-rust", "lib/interfaces/src/streams.rs"),
    ("interfaces/block.defs", "-page", "docs/src/interfaces/block.md"),
    ("interfaces/console.defs", "-page", "docs/src/interfaces/console.md"),
    ("interfaces/entropy.defs", "-page", "docs/src/interfaces/entropy.md"),
    ("interfaces/input.defs", "-page", "docs/src/interfaces/input.md"),
    ("interfaces/root.defs", "-page", "docs/src/interfaces/root.md"),
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
    for (definition, option, stubs) in STUBS {
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
