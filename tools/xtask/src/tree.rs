//! Where things are: the source tree and the directories under `target/`.

use std::path::{Path, PathBuf};

/// The root of the source tree.
pub(crate) fn root() -> &'static Path {
    // xtask lives in tools/xtask; the tree is built where it stands, so the compile-time path is the tree's own.
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("tools/xtask is two levels below the root")
}

/// The build directory.
pub(crate) fn target() -> PathBuf {
    root().join("target")
}

/// Where finished boot files are put: the kernel and each program under its own name.
pub(crate) fn boot() -> PathBuf {
    target().join("boot")
}
