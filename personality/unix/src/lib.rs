//! Unix as a library: processes, signals, files and terminals over the Mach library
//! (docs/src/architecture.md, U4).
//!
//! The interface of one Unix system is a front end over this core. A front end has
//! the system calls, and the files and file systems that only its system has: it makes them with
//! traits and types of the core ([`file::FileObject`], [`vfs::Vnode`], [`poll::PollQueue`],
//! [`vfs::Observer`]). Numbers and layouts of an interface (error numbers, flag bits, structures)
//! stay in the front end; the core has types.
//!
//! # Conventions
//!
//! - **Errors** are [`Error`], named as POSIX names them, without numbers.
//! - **Blocking.** An operation that may block is a future, and may be dropped at every await: a
//!   killed process drops its requests. At each await nothing is half-done, and no data has been
//!   taken that is not delivered yet.
//! - **Signals** interrupt an operation by dropping its future: the process layer polls the
//!   operation and the arrival of a signal together. File code never looks at signals. The caller's
//!   buffer knows how many bytes the transfer had moved ([`UserBuffer::transferred`]): the process
//!   layer returns that count if it is not 0, otherwise `EINTR`.
//! - **Attempts.** Streams (pipes, terminals, sockets) implement attempts that never block
//!   ([`AttemptError`] says what is missing). The module `file` repeats an attempt after waiting
//!   for the object's [`poll::PollQueue`], which poll and select use, too.
//! - **Results.** Operations of trait objects that usually complete without blocking return
//!   [`MaybeReady`], which allocates only if they block.
//! - **User memory** enters as byte slices or as [`UserBuffer`], never as pointers.
//! - **Time and randomness** come through [`Environment`].
//! - **Locks.** [`sync::SpinLock`] sections are short, contain no await and wake no task; a future
//!   that holds an async lock across an await is safe to drop.
//! - **Memory** of a size that a program decides is allocated fallibly: `ENOMEM`, `ENOSPC` or
//!   `ENOBUFS`.
//!
//! # Module map
//!
//! Conventions: `error`, `account` (limits for each user), `maybe_ready`, `environment`,
//! `user_buffer`, `identity`, `sync`.
//!
//! Files: `vfs` (vnodes, mounts, the path walker, operations), `tmpfs`, `initramfs`, `devfs`,
//! `disk`, `file` (open file descriptions), `descriptor` (descriptor tables), `pipe`, `poll`,
//! `tty`, `socket`, `network` (the internet protocols), `log`.
//!
//! Processes: `personality` (tasks and threads of Mach), `front_end`, `process`, `thread`,
//! `credentials`, `namespace`, `signal`, `exec`, `memory`, `clock`, `timer`, `load`, `sysv` (System
//! V objects), `seed` (of the random source).
#![cfg_attr(not(any(test, feature = "testing")), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod account;
pub mod clock;
pub mod credentials;
pub mod descriptor;
pub mod devfs;
pub mod disk;
mod environment;
mod error;
pub mod exec;
pub mod ext4;
pub mod file;
pub mod front_end;
pub mod hardware_clock;
mod identity;
pub mod initramfs;
pub mod load;
pub mod log;
mod maybe_ready;
pub mod memory;
pub mod message_queue;
pub mod namespace;
pub mod network;
pub mod personality;
pub mod pipe;
pub mod poll;
pub mod privilege;
pub mod process;
pub mod process_context;
mod ring;
pub mod schedule;
mod seed;
pub mod signal;
pub mod socket;
pub mod swap;
pub mod sync;
pub mod sysv;
pub mod thread;
pub mod timer;
pub mod tmpfs;
pub mod tty;
mod user_buffer;
pub mod v9fs;
pub mod vfs;

pub use environment::{Environment, Seeding, Timestamp};
pub use error::{AttemptError, Error, Result};
pub use identity::Identity;
pub use maybe_ready::{BoxFuture, MaybeReady};
pub use privilege::{Privilege, Privileges};
pub use user_buffer::{Bytes, CopyError, Part, UserBuffer, copy_in_all, copy_out_all, resolve_message};

#[cfg(any(test, feature = "testing"))]
pub mod testing;
