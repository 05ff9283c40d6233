//! The stubs of Mach's own interfaces over messages of the typed dialect, with calls that are
//! futures. `mig` writes each module from the definition of the same name in `interfaces/mach`; a
//! test of `tools/mig` compares them, and `MIG_BLESS=1 cargo test -p mig --test interfaces` writes
//! them again.
#![no_std]
#![forbid(unsafe_code)]

/// Mach's calls on devices.
#[rustfmt::skip]
#[allow(clippy::all, reason = "written by a program")]
pub mod device;

/// Mach's messages about exceptions.
#[rustfmt::skip]
#[allow(clippy::all, reason = "written by a program")]
pub mod exc;

/// Mach's calls that GNU Mach has in addition to Mach 3.
#[rustfmt::skip]
#[allow(clippy::all, reason = "written by a program")]
pub mod gnumach;

/// Mach's calls on tasks, threads and memory.
#[rustfmt::skip]
#[allow(clippy::all, reason = "written by a program")]
pub mod mach;

/// Mach's proxies of memory objects.
#[rustfmt::skip]
#[allow(clippy::all, reason = "written by a program")]
pub mod mach4;

/// Mach's calls for debuggers.
#[rustfmt::skip]
#[allow(clippy::all, reason = "written by a program")]
pub mod mach_debug;

/// Mach's calls on the host, processors and processor sets.
#[rustfmt::skip]
#[allow(clippy::all, reason = "written by a program")]
pub mod mach_host;

/// Mach's calls on what is particular to the processors of PCs.
#[rustfmt::skip]
#[allow(clippy::all, reason = "written by a program")]
pub mod mach_i386;

/// Mach's calls on the names of a task's rights.
#[rustfmt::skip]
#[allow(clippy::all, reason = "written by a program")]
pub mod mach_port;

/// Mach's requests to pagers.
#[rustfmt::skip]
#[allow(clippy::all, reason = "written by a program")]
pub mod memory_object;

/// Mach's additional requests to the default pager.
#[rustfmt::skip]
#[allow(clippy::all, reason = "written by a program")]
pub mod memory_object_default;

/// Mach's messages about new tasks.
#[rustfmt::skip]
#[allow(clippy::all, reason = "written by a program")]
pub mod task_notify;
