//! Types of the L4 X.2 interface on AMD64, shared by kernel and user level: everything that is a
//! word with a layout or a number with a meaning, and nothing that executes a system call (that is
//! `lib/l4`).
//!
//! Rules are cited by their numbers in docs/src/reference/rules.md: "X.2 rule n" is one of the
//! generic interface, "ABI n" one of its binary interface on AMD64. All words are 64 bits wide,
//! bit 0 is the least significant.
//!
//! | module | subject |
//! |---|---|
//! | [`thread_id`] | global and local thread ids |
//! | [`fpage`] | memory and IO fpages, rights, how a map item is placed |
//! | [`message`] | message tag, typed items, acceptor, string items |
//! | [`time`] | time periods and points, timeouts, precisions |
//! | [`error`] | IPC error word, error codes of the other calls |
//! | [`control`] | control and result words of the system calls |
//! | [`utcb`] | layout of a thread's control block |
//! | [`kip`] | layout of the kernel interface page |
//! | [`protocol`] | labels and message layouts of the kernel and sigma0 protocols |
//! | [`boot_info`] | generic boot info |
//! | [`kdebug`] | kernel debugger operations of the INT3 instruction |
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

pub mod boot_info;
pub mod control;
pub mod error;
pub mod extension;
pub mod fpage;
pub mod kdebug;
pub mod kip;
pub mod message;
pub mod protocol;
pub mod thread_id;
pub mod time;
pub mod utcb;

pub use error::{ErrorCode, IpcError, IpcErrorKind, IpcPhase};
pub use fpage::{Fpage, FpageKind, PortRange, Region, Rights};
pub use message::{Acceptor, MapItem, MessageTag, StringDescriptor, TypedItemKind};
pub use thread_id::ThreadId;
pub use time::{Deadline, Time, Timeouts};

/// Bits `low..=high` of `word`, shifted down.
const fn bits(word: u64, low: u32, high: u32) -> u64 {
    (word >> low) & (u64::MAX >> (63 - (high - low)))
}
