//! Links the server at addresses of its own, so that a debugger can tell it from root and other
//! servers.
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("none") {
        println!("cargo::rustc-link-arg-bins=--defsym=LINK_ADDRESS=0x3600000");
    }
}
