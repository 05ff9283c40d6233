//! Namespaces (namespaces(7)): what processes of one namespace share and those of others do not
//! see. Those of mounts are trees of mounts ([`crate::vfs::MountTree`]); those of processes are a
//! part of the process table ([`crate::process::PidNamespace`]).

mod own;
mod user;

pub use own::{Names, Namespaces, ObjectNamespace};
pub use user::{IdKind, IdMap, MapWriter, Range, UserNamespace};

use core::sync::atomic::{AtomicU64, Ordering};

/// The deepest level of nested namespaces of users or of processes; the first one's is 0.
pub const LEVEL_MAXIMUM: u32 = 32;

/// Bytes of the server's memory that are charged for a namespace, beyond what is in it.
pub(crate) const NAMESPACE_BYTES: u64 = 1024;

/// The numbers of the first namespaces, which programs know.
const IPC: u64 = 0xefff_ffff;
const NAMES: u64 = 0xefff_fffe;
const USER: u64 = 0xefff_fffd;
/// The number of the first namespace of processes.
pub(crate) const PROCESS: u64 = 0xefff_fffc;

/// A new number of a namespace, which no other namespace of any kind has.
pub(crate) fn new_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0xf000_0100);
    // Relaxed ordering: the numbers have to be unique, and order nothing else.
    NEXT.fetch_add(1, Ordering::Relaxed)
}
