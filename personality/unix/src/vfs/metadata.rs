//! Metadata of files: type, mode, owner, times.

use super::memory::PAGE_SIZE;
use crate::Timestamp;
use bitflags::bitflags;
use core::sync::atomic::{AtomicU32, Ordering};

/// Bytes of the longest path name, without its final NUL (PATH_MAX - 1).
pub const PATH_MAXIMUM: usize = 4095;
/// Bytes of the longest component of a path name (NAME_MAX).
pub const NAME_MAXIMUM: usize = 255;
/// The largest file offset.
pub const OFFSET_MAXIMUM: u64 = i64::MAX as u64;

/// The type of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileType {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    SymbolicLink,
    /// A character device.
    CharacterDevice,
    /// A block device.
    BlockDevice,
    /// A named pipe.
    Fifo,
    /// The name of a socket.
    Socket,
    /// A file without a name in any file system, such as a pipe end or an event counter.
    Anonymous,
}

/// A device number: major and minor. (In `st_dev` it is the file system's.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceNumber {
    /// The major number, which identifies the driver.
    pub major: u32,
    /// The minor number, which identifies the device among those of its driver.
    pub minor: u32,
}

impl DeviceNumber {
    /// A new device number, for a file system that is on no device.
    pub fn unnamed() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(20);
        // Relaxed ordering: the numbers have to be unique, and order nothing else.
        Self { major: 0, minor: NEXT.fetch_add(1, Ordering::Relaxed) }
    }
}

bitflags! {
    /// Permission bits, set-id bits and the sticky bit: the low 12 bits of a mode, as POSIX numbers
    /// them.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Mode: u16 {
        /// The program runs with the user id of its file (S_ISUID).
        const SET_USER = 0o4000;
        /// The program runs with the group id of its file; in a directory, new files inherit the
        /// group (S_ISGID).
        const SET_GROUP = 0o2000;
        /// In a directory, only owners remove entries (S_ISVTX).
        const STICKY = 0o1000;
        /// The owner, the group or others may execute the file (or search the directory).
        const ANY_EXECUTE = 0o111;
        /// The group may execute the file (or search the directory).
        const GROUP_EXECUTE = 0o010;
        /// Users that are neither the owner nor in the group may write.
        const OTHER_WRITE = 0o002;
    }
}

impl Mode {
    /// The mode with these bits; all but the low 12 are ignored.
    pub const fn new(bits: u16) -> Mode {
        Mode::from_bits_retain(bits & 0o7777)
    }
}

/// The metadata of a file: all that stat(2) and statx(2) return.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// The device number of the file system that has the file.
    pub device: DeviceNumber,
    /// The inode number, which is unique in the file system.
    pub number: u64,
    /// The type of the file.
    pub file_type: FileType,
    /// The permission bits of the file.
    pub mode: Mode,
    /// How many names the file has.
    pub links: u32,
    /// User id of the owner.
    pub user: u32,
    /// Group id of the file.
    pub group: u32,
    /// The device that a device node represents.
    pub represents: DeviceNumber,
    /// Size of the file in bytes.
    pub size: u64,
    /// How many units of 512 bytes are allocated.
    pub blocks: u64,
    /// Preferred size of a transfer in bytes.
    pub block_size: u32,
    /// Time of the last read.
    pub accessed: Timestamp,
    /// Time of the last change of the contents.
    pub modified: Timestamp,
    /// Time of the last change of the contents or attributes.
    pub changed: Timestamp,
    /// Time at which the file was made.
    pub created: Timestamp,
}

/// How a time of a file is set (utimensat(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetTime {
    /// The time becomes the present time (UTIME_NOW).
    Now,
    /// The time becomes the given one.
    To(Timestamp),
}

/// Attributes that are changed together. The caller has checked permission.
#[derive(Clone, Debug, Default)]
pub struct AttributeChange {
    /// The new permission bits; `None` leaves them.
    pub mode: Option<Mode>,
    /// Mode bits to remove (set-id bits after a change of owner or a write).
    pub remove_mode: Mode,
    /// The new owner; `None` leaves it.
    pub user: Option<u32>,
    /// The new group; `None` leaves it.
    pub group: Option<u32>,
    /// The new time of the last access; `None` leaves it.
    pub accessed: Option<SetTime>,
    /// The new time of the last modification; `None` leaves it.
    pub modified: Option<SetTime>,
}

/// The status of a file system, as statfs(2) returns it.
#[derive(Clone, Debug)]
pub struct FileSystemStatus {
    /// The name of the file-system type ("tmpfs").
    pub kind: &'static str,
    /// Bytes of a block of the file system.
    pub block_size: u32,
    /// How many blocks the file system has.
    pub blocks: u64,
    /// How many blocks of the file system are free.
    pub free_blocks: u64,
    /// How many of the free blocks an unprivileged program can have.
    pub available_blocks: u64,
    /// How many files the file system can have.
    pub files: u64,
    /// How many more files can be made.
    pub free_files: u64,
    /// A number that identifies the file system.
    pub identifier: u64,
    /// Bytes of the longest name in the file system.
    pub name_maximum: u32,
}

impl FileSystemStatus {
    /// The status of a file system that stores nothing.
    pub fn without_store(kind: &'static str, identifier: u64) -> Self {
        Self {
            kind,
            block_size: PAGE_SIZE as u32,
            blocks: 0,
            free_blocks: 0,
            available_blocks: 0,
            files: 0,
            free_files: 0,
            identifier,
            name_maximum: NAME_MAXIMUM as u32,
        }
    }
}

/// One entry of a directory.
#[derive(Clone, Debug)]
pub struct DirectoryEntry<'a> {
    /// The name of the entry.
    pub name: &'a [u8],
    /// The inode number of the file.
    pub number: u64,
    /// The type of the file.
    pub file_type: FileType,
    /// The directory position after this entry.
    pub next: u64,
}
