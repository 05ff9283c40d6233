//! The definitions in `interfaces/` are valid.

use std::path::Path;
use std::process::Command;

#[test]
fn every_definition_in_the_tree_is_valid() {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs tests");
    let root = Path::new(&package).join("../..");
    for name in ["console", "root"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mig"));
        command.current_dir(&root).args(["-I", "interfaces", "-check"]);
        let output = command.arg(format!("interfaces/{name}.defs")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
