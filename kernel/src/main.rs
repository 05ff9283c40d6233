//! The bootable image: links the kernel library; the entry point is in `arch/x86_64/boot`.
#![cfg_attr(target_os = "none", no_std)]
#![cfg_attr(target_os = "none", no_main)]

use kernel as _;

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("the kernel boots on x86_64-unknown-none only: build it with `./mac build`");
    std::process::exit(2);
}
