//! Takes the characters of ASCII out of the font, and hands the linker script to the linker for the
//! bootable image, so that every way of calling cargo links it right.
use std::path::PathBuf;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=kernel.ld");
    println!("cargo:rerun-if-changed=build.rs");
    let output = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where the output goes"));
    fs::write(output.join("font"), ascii()).expect("the output can be written");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("none") {
        return;
    }
    for argument in [
        // The linker is started in the root of the workspace. An absolute path would be kept by
        // cargo, and be that of the old place after the tree was moved or copied.
        "-Tkernel/kernel.ld",
        // A fixed image whatever relocation model the compiler was asked for: boot code computes
        // with its addresses.
        "--no-pie",
        // The file must be a linear picture of memory from its first page on (Multiboot's address
        // fields).
        "-zmax-page-size=4096",
        "-znorelro",
        "--build-id=none",
    ] {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
}

/// The glyphs of the characters from blank to tilde, 16 bytes each. The file has 4 bytes in front
/// of its glyphs, and those of ASCII are in the places of their numbers.
fn ascii() -> &'static [u8] {
    let glyphs = &spleen_font::FONT_8X16[4..];
    &glyphs[16 * usize::from(b' ')..16 * (usize::from(b'~') + 1)]
}
