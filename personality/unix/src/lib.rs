//! Unix as a library: processes, signals, files and terminals over the Mach library
//! (docs/src/architecture.md, U4).
//!
//! The interface of one Unix is a front end over this core, another Unix is another one. A front
//! end has the calls, and the files and file systems that only its Unix has: it makes them of what
//! is here ([`file::FileObject`], [`vfs::Vnode`], [`poll::PollQueue`], [`vfs::Observer`]). Numbers
//! and layouts of an interface (error numbers, flag bits, structures) stay in the front end; the
//! core has types.
//!
//! # Conventions
//!
//! - **Errors** are [`Error`], named as POSIX names them, without numbers.
//! - **Blocking.** Whatever may block is a future, and may be dropped at every await: a killed
//!   process drops its requests. At each await nothing is half-done and nothing has been taken that
//!   is not yet delivered.
//! - **Signals** interrupt by dropping: the process layer races the operation against the arrival
//!   of a signal. File code never looks at signals. What a transfer had moved by then stands in the
//!   caller's buffer ([`UserBuffer::transferred`]): the process layer returns that count if it is
//!   not 0, otherwise `EINTR`.
//! - **Attempts.** Streams (pipes, terminals, sockets) implement attempts that never wait
//!   ([`AttemptError`] says what is missing); one place (`file`) turns an attempt into waiting by
//!   the object's [`poll::PollQueue`], which poll and select use, too.
//! - **Results.** Operations of trait objects that usually complete without blocking return
//!   [`MaybeReady`]: no allocation unless they really wait.
//! - **User memory** enters as byte slices or as [`UserBuffer`], never as pointers.
//! - **Time and randomness** come through [`Environment`].
//! - **Locks.** [`sync::SpinLock`] sections are short, contain no await and wake no task; a future
//!   that holds an async lock across an await is safe to drop.
//! - **Memory** that a program can make large is allocated fallibly: `ENOMEM`, `ENOSPC` or
//!   `ENOBUFS`.
//!
//! # Module map
//!
//! Conventions: `error`, `account` (what is kept for each user), `maybe_ready`, `environment`,
//! `user_buffer`, `identity`, `sync`.
//!
//! Files: `vfs` (vnodes, mounts, the path walker, operations), `tmpfs`, `initramfs`, `devfs`,
//! `file` (open file descriptions), `descriptor` (descriptor tables), `pipe`, `poll`, `tty`,
//! `socket`, `log`.
//!
//! Processes: `personality` (tasks and threads of Mach), `front_end`, `process`, `thread`,
//! `credentials`, `signal`, `exec`, `memory`, `clock`, `timer`, `load`.
#![cfg_attr(not(any(test, feature = "testing")), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod account;
pub mod clock;
pub mod credentials;
pub mod descriptor;
pub mod devfs;
mod environment;
mod error;
pub mod exec;
pub mod file;
pub mod front_end;
mod identity;
pub mod initramfs;
pub mod load;
pub mod log;
mod maybe_ready;
pub mod memory;
pub mod personality;
pub mod pipe;
pub mod poll;
pub mod process;
pub mod process_context;
mod ring;
pub mod signal;
pub mod socket;
pub mod sync;
pub mod thread;
pub mod timer;
pub mod tmpfs;
pub mod tty;
mod user_buffer;
pub mod vfs;

pub use environment::{Environment, Timestamp};
pub use error::{AttemptError, Error, Result};
pub use identity::{Identity, Privilege};
pub use maybe_ready::{BoxFuture, MaybeReady};
pub use user_buffer::{Bytes, CopyError, Part, UserBuffer, copy_in_all, copy_out_all};

#[cfg(any(test, feature = "testing"))]
pub mod testing;
