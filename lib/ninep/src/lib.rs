//! Messages of 9P2000.L, the protocol by which a client uses the files of a server (the
//! documentation of diod, `protocol.md`; the basic messages are those of Plan 9's manual, section
//! 5).
//!
//! A client gives each file that it uses a number, a [`Fid`]. It sends a request, [`Call`], and
//! gets one reply, which [`reply`] checks and hands out as a [`Body`], to be read by the function
//! for the request's kind. Integers are little-endian; a string is its length in 16 bits and its
//! bytes.
//!
//! The server is not trusted. Whatever it sends, nothing here panics, and nothing is allocated.
//!
//! A server reads requests with [`Call::decode`] and replies with [`Answer`]. Requests from
//! [`kind::MOUNT`] on are no part of 9P2000.L: they are for servers of file systems on disks, whose
//! only client is the one that has mounted the file system.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod answer;
mod body;
mod call;
mod decode;
mod progress;
mod wire;

#[cfg(test)]
mod tests;

pub use answer::{Answer, EntryList};
pub use body::{Attributes, Body, Entries, Entry, Failure, FileSystemStatus, Mapped, Qid, Time, reply};
pub use call::{AttributeChange, Call, Fid, NO_FID, Resume, SetTime, SpaceChange};
pub use progress::Progress;
pub use wire::{Reader, Writer};

/// The version of the protocol, as client and server agree on it.
pub const VERSION: &[u8] = b"9P2000.L";
/// Bytes of the header of a message: size, kind, tag.
pub const HEADER: usize = 7;
/// The offset of the tag in a message.
pub const TAG: usize = 5;
/// The tag of the first request, [`Call::Version`].
pub const NO_TAG: u16 = 0xffff;
/// How much longer a request to write and a reply with data are than the data.
pub const DATA_OVERHEAD: usize = 24;
/// The most names that one request walks.
pub const WALK_MAXIMUM: usize = 16;

/// What [`Call::XattrCreate`] says to a server of a disk to remove an attribute.
pub const XATTR_REMOVE: u32 = 4;

/// Kinds of messages. The reply to a request has the next number.
pub mod kind {
    /// The reply to a request that failed.
    pub const ERROR: u8 = 7;
    /// The status of the file system.
    pub const STATFS: u8 = 8;
    /// Open a file.
    pub const OPEN: u8 = 12;
    /// Make and open a regular file.
    pub const CREATE: u8 = 14;
    /// Make a symbolic link.
    pub const SYMLINK: u8 = 16;
    /// Make a device node, FIFO or name of a socket.
    pub const MKNOD: u8 = 18;
    /// The text of a symbolic link.
    pub const READLINK: u8 = 22;
    /// The attributes of a file.
    pub const GETATTR: u8 = 24;
    /// Change attributes.
    pub const SETATTR: u8 = 26;
    /// Open an extended attribute, or the list of them.
    pub const XATTRWALK: u8 = 30;
    /// Begin to set an extended attribute.
    pub const XATTRCREATE: u8 = 32;
    /// Read entries of a directory.
    pub const READDIR: u8 = 40;
    /// Write a file's data to storage.
    pub const FSYNC: u8 = 50;
    /// Add a name of a file.
    pub const LINK: u8 = 70;
    /// Make a directory.
    pub const MKDIR: u8 = 72;
    /// Rename a file.
    pub const RENAMEAT: u8 = 74;
    /// Remove a name.
    pub const UNLINKAT: u8 = 76;
    /// Agree on version and message size.
    pub const VERSION: u8 = 100;
    /// Get the root directory.
    pub const ATTACH: u8 = 104;
    /// Find a file by names.
    pub const WALK: u8 = 110;
    /// Read data.
    pub const READ: u8 = 116;
    /// Write data.
    pub const WRITE: u8 = 118;
    /// Forget a fid.
    pub const CLUNK: u8 = 120;
    /// Mount the file system of a disk.
    pub const MOUNT: u8 = 200;
    /// Unmount it.
    pub const UNMOUNT: u8 = 202;
    /// Find a name in a directory, with the attributes of its file.
    pub const FIND: u8 = 204;
    /// Make a file of any type, with its owner.
    pub const MAKE: u8 = 206;
    /// Exchange two names.
    pub const EXCHANGE: u8 = 208;
    /// Allocate or free the space of a range of a file.
    pub const ALLOCATE: u8 = 210;
    /// Where a range of a file is on the disk.
    pub const MAP: u8 = 212;
    /// Mount the file system again, for writing or only for reading.
    pub const REMOUNT: u8 = 214;
    /// Find a place on the disk for a range of a file.
    pub const PLACE: u8 = 216;
    /// Tell that a range of a file was written at its place.
    pub const WRITTEN: u8 = 218;
    /// A step by which a server that was started again gets to where the one before was.
    pub const RESUME: u8 = 220;
}
