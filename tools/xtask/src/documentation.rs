//! `./mac doc`: the documentation of the libraries, as rustdoc renders it. A link that leads
//! nowhere is an error, also of `./mac check`.

use anyhow::Result;
use mac_build::{command, toolchain, tree};

/// The page whose name is printed: it lists all libraries, and it is where authors of programs
/// begin.
const FIRST: &str = "doc/l4/index.html";

/// Renders it and says where it is.
pub(crate) fn run() -> Result<()> {
    render()?;
    println!("{}", tree::target().join(FIRST).display());
    Ok(())
}

/// Renders the documentation of every library of the workspace, with what is private: most of the
/// kernel is.
pub(crate) fn render() -> Result<()> {
    let mut cargo = command::clean(toolchain::host_cargo());
    // Of a program and a library of one name, only the library can be there.
    cargo.args(["doc", "--locked", "--no-deps", "--keep-going", "--workspace", "--lib"]);
    cargo.arg("--document-private-items");
    // What is public may refer to what is private, which is rendered, too.
    cargo.env("RUSTDOCFLAGS", "-Dwarnings -Arustdoc::private_intra_doc_links");
    command::run(&mut cargo, "cargo doc")
}
