//! `./mac doc`: renders the documentation of the libraries with rustdoc. A broken link is an error,
//! also in `./mac check`.

use anyhow::Result;
use mac_build::{command, toolchain, tree};

/// The page whose path is printed: authors of programs begin there, and it lists all libraries.
const FIRST: &str = "doc/l4/index.html";

/// Renders the documentation and prints where it is.
pub(crate) fn run() -> Result<()> {
    render()?;
    println!("{}", tree::target().join(FIRST).display());
    Ok(())
}

/// Renders the documentation of every library of the workspace, including private items: most of
/// the kernel is private.
pub(crate) fn render() -> Result<()> {
    let mut cargo = command::clean(toolchain::host_cargo());
    // If a program and a library have the same name, only the library can be rendered.
    cargo.args(["doc", "--locked", "--no-deps", "--keep-going", "--workspace", "--lib"]);
    cargo.arg("--document-private-items");
    // Public items may refer to private ones, because these are rendered, too.
    cargo.env("RUSTDOCFLAGS", "-Dwarnings -Arustdoc::private_intra_doc_links");
    command::run(&mut cargo, "cargo doc")
}
