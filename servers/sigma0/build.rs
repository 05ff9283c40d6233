//! Links sigma0 at addresses below those of the root task.
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo::rustc-link-arg-bins=--defsym=LINK_ADDRESS=0xf00000");
    }
}
