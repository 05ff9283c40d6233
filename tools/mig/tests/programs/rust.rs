//! Builds Rust programs that use generated stubs.

use crate::programs::{scratch, success, tests};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Builds the libraries that generated Rust stubs need, once for each run of a test program.
fn libraries() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let directory = scratch("libraries");
        let tree = tests().join("../../../lib");
        for (name, used) in [("x2", None), ("direct", Some("x2")), ("message", Some("direct"))] {
            let mut command = Command::new("rustc");
            command.args(["--edition", "2024", "--crate-type", "rlib", "-O", "-C", "panic=abort"]);
            command.args(["--cap-lints", "allow", "--crate-name", name, "-L"]).arg(&directory);
            command.args(used.iter().flat_map(|used| ["--extern", used]));
            command.arg("--out-dir").arg(&directory).arg(tree.join(name).join("src/lib.rs"));
            success(command.output().unwrap(), name);
        }
        directory
    })
}

/// Compiles a Rust source that uses stubs into a program or a library for C. Returns the path of
/// the product.
pub(crate) fn rustc(directory: &Path, options: &[&str], product: &str, source: &str) -> PathBuf {
    let product = directory.join(product);
    let mut command = Command::new("rustc");
    command.current_dir(directory).args(["--edition", "2024", "-C", "panic=abort", "-O"]).args(options);
    command.arg("-L").arg(libraries());
    for name in ["direct", "message"] {
        command.args(["--extern", name]);
    }
    command.arg("-o").arg(&product).arg(source);
    success(command.output().unwrap(), source);
    product
}
