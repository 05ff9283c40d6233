//! The machine. `crate::arch` is the only name by which the rest of the kernel knows it: the real processor when built
//! for the bare target, a model of it on the host, where everything above is tested as ordinary Rust.

#[cfg(not(target_os = "none"))]
mod host;

#[cfg(not(target_os = "none"))]
pub use host::*;
