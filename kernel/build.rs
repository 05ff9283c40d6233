//! Hands the linker script to the linker for the bootable image, so that every way of calling cargo links it right.
use std::env;

fn main() {
    println!("cargo:rerun-if-changed=kernel.ld");
    println!("cargo:rerun-if-changed=build.rs");
    // A checkout that was moved or copied has its linker script elsewhere.
    println!("cargo:rerun-if-env-changed=CARGO_MANIFEST_DIR");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("none") {
        return;
    }
    let directory = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    for argument in [
        format!("-T{directory}/kernel.ld"),
        // A fixed image whatever relocation model the compiler was asked for: boot code computes with its addresses.
        "--no-pie".into(),
        // The file must be a linear picture of memory from its first page on (Multiboot's address fields).
        "-zmax-page-size=4096".into(),
        "-znorelro".into(),
        "--build-id=none".into(),
    ] {
        println!("cargo:rustc-link-arg-bins={argument}");
    }
}
