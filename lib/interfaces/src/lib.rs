//! The stubs of the servers' interfaces over direct IPC. `mig` writes each module from the
//! definition of the same name in `interfaces/`; a test of `tools/mig` compares them, and
//! `MIG_BLESS=1 cargo test -p mig --test interfaces` writes them again.
#![no_std]
#![forbid(unsafe_code)]

/// The interface of the driver of a block device.
#[rustfmt::skip]
#[allow(clippy::all, reason = "written by a program")]
pub mod block;

/// The interface of the driver of a console.
#[rustfmt::skip]
#[allow(clippy::all, reason = "written by a program")]
pub mod console;

/// The interface of the driver of a source of random bytes.
#[rustfmt::skip]
#[allow(clippy::all, reason = "written by a program")]
pub mod entropy;

/// The interface of the driver of a channel to a server of files.
#[rustfmt::skip]
#[allow(clippy::all, reason = "written by a program")]
pub mod file_channel;

/// The interface of the driver of a keyboard.
#[rustfmt::skip]
#[allow(clippy::all, reason = "written by a program")]
pub mod input;

/// The interface of the driver of a network interface.
#[rustfmt::skip]
#[allow(clippy::all, reason = "written by a program")]
pub mod net;

/// The interface of the internet protocols in a task of their own.
#[rustfmt::skip]
#[allow(clippy::all, reason = "written by a program")]
pub mod network;

/// The interface of root to the servers that it has started.
#[rustfmt::skip]
#[allow(clippy::all, reason = "written by a program")]
pub mod root;

/// The interface of the driver of a real-time clock.
#[rustfmt::skip]
#[allow(clippy::all, reason = "written by a program")]
pub mod rtc;

/// The interface of streams of bytes between this machine and its host.
#[rustfmt::skip]
#[allow(clippy::all, reason = "written by a program")]
pub mod streams;
