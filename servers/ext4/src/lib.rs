//! A server of the files of an ext4 file system, by the messages of `lib/ninep`. Its only client
//! has the disk and the page cache; the file server has neither. It keeps metadata: names,
//! attributes, where the data of files are.
//!
//! | module | subject |
//! |---|---|
//! | `server` | requests and their answers |
//! | `mounted` | a file system that is mounted, and the files that the client has |
//! | `directory` | entries of directories, and positions in them |
//! | `xattr` | extended attributes |
//! | `attributes` | attributes of files in both forms |
//! | `failure` | errors as numbers and as words |
//!
//! The format itself is the matter of the crate `rsext4` (`vendor/rsext4`), which is synchronous:
//! each request is carried out before the next one is looked at.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod attributes;
mod directory;
mod failure;
mod mounted;
mod server;
mod xattr;

pub use rsext4::{
    BlockIo, Clock, DeviceCapabilities, DeviceGeometry, Ext4Error, Ext4Result, Ext4Timestamp, SectorId,
    WriteFlags,
};
pub use server::{FileServer, WallClock};
