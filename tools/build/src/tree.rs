//! Where things are: the source tree and the directories under `target/`.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The root of the source tree. cargo says where the package is that it runs: a path from compile
/// time would still be that of the old place after the checkout, `target` included, was moved or
/// copied.
pub fn root() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let package = package.expect("this program is started by cargo: ./mac, or cargo xtask");
        package.ancestors().nth(2).expect("the packages of ./mac are two levels below the root").to_owned()
    });
    &ROOT
}

/// The build directory.
pub fn target() -> PathBuf {
    root().join("target")
}

/// Where finished boot files are put: the kernel and each program under its own name.
pub fn boot() -> PathBuf {
    target().join("boot")
}
