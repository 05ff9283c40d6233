//! The machine. `crate::arch` is the only name by which the rest of the kernel knows it: the real
//! processor when built for the bare target, a model of it on the host, where everything above is
//! tested as ordinary Rust.

mod breakpoint;
mod crash;
pub mod exit;
pub mod extended_image;
pub mod interrupt_table;
pub mod local_apic;
pub mod page_entry;
pub mod port_instruction;
mod program_breakpoints;

pub use breakpoint::{BREAKPOINTS, Breakpoint, DebugStatus, RESUME_FLAG, STEP_FLAG, StopAt};
pub use crash::Crash;
pub use exit::is_canonical;
pub use program_breakpoints::ProgramBreakpoints;

#[cfg(not(target_os = "none"))]
mod host;
#[cfg(target_os = "none")]
mod x86_64;

#[cfg(not(target_os = "none"))]
pub use host::*;
#[cfg(target_os = "none")]
pub use x86_64::*;
