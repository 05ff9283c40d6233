//! What a file is: type, mode, owner, times.

use super::memory::PAGE_SIZE;
use crate::Timestamp;
use bitflags::bitflags;
use core::sync::atomic::{AtomicU32, Ordering};

/// The longest path name, without its final NUL (PATH_MAX - 1).
pub const PATH_MAXIMUM: usize = 4095;
/// The longest component of a path name (NAME_MAX).
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
    /// A socket's name.
    Socket,
    /// Without a name in any file system: a pipe end, an event counter.
    Anonymous,
}

/// A device: major and minor number. (As `st_dev`, the file system's.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceNumber {
    /// The driver.
    pub major: u32,
    /// Which of its devices.
    pub minor: u32,
}

impl DeviceNumber {
    /// A new number, for a file system that is on no device.
    pub fn unnamed() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(20);
        // Relaxed: only uniqueness matters.
        Self { major: 0, minor: NEXT.fetch_add(1, Ordering::Relaxed) }
    }
}

bitflags! {
    /// Permission bits, set-id bits and the sticky bit: the low 12 bits of a mode, as POSIX numbers
    /// them.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Mode: u16 {
        /// Runs with the file's user id.
        const SET_USER = 0o4000;
        /// Runs with the file's group id; in a directory: new files inherit the group.
        const SET_GROUP = 0o2000;
        /// In a directory: only owners remove entries.
        const STICKY = 0o1000;
        /// May be executed (searched) by the owner, the group or others.
        const ANY_EXECUTE = 0o111;
        /// May be executed by the group.
        const GROUP_EXECUTE = 0o010;
        /// Write permission for all others.
        const OTHER_WRITE = 0o002;
    }
}

impl Mode {
    /// The mode of the low 12 bits.
    pub const fn new(bits: u16) -> Mode {
        Mode::from_bits_retain(bits & 0o7777)
    }
}

/// Everything stat(2) and statx(2) tell of a file.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// The file system that holds it.
    pub device: DeviceNumber,
    /// Unique in its file system (inode number).
    pub number: u64,
    /// Its type.
    pub file_type: FileType,
    /// Its permission bits.
    pub mode: Mode,
    /// Names that it has.
    pub links: u32,
    /// Owner.
    pub user: u32,
    /// Group.
    pub group: u32,
    /// The device that a device node stands for.
    pub represents: DeviceNumber,
    /// Bytes.
    pub size: u64,
    /// Allocated units of 512 bytes.
    pub blocks: u64,
    /// Preferred transfer size, bytes.
    pub block_size: u32,
    /// Last read.
    pub accessed: Timestamp,
    /// Last change of the content.
    pub modified: Timestamp,
    /// Last change of content or attributes.
    pub changed: Timestamp,
    /// Creation.
    pub created: Timestamp,
}

/// A time to set (utimensat(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetTime {
    /// The present.
    Now,
    /// This time.
    To(Timestamp),
}

/// Attributes to change, all in one step. The caller has checked permission.
#[derive(Clone, Debug, Default)]
pub struct AttributeChange {
    /// New permission bits.
    pub mode: Option<Mode>,
    /// Mode bits to remove (set-id bits after a change of owner or a write).
    pub remove_mode: Mode,
    /// New owner.
    pub user: Option<u32>,
    /// New group.
    pub group: Option<u32>,
    /// New time of last access.
    pub accessed: Option<SetTime>,
    /// New time of last modification.
    pub modified: Option<SetTime>,
}

/// What statfs(2) tells of a file system.
#[derive(Clone, Debug)]
pub struct FileSystemStatus {
    /// Its type's name ("tmpfs").
    pub kind: &'static str,
    /// Bytes of a block.
    pub block_size: u32,
    /// Blocks in all.
    pub blocks: u64,
    /// Free blocks.
    pub free_blocks: u64,
    /// Free blocks that an unprivileged program can have.
    pub available_blocks: u64,
    /// Files that it can hold.
    pub files: u64,
    /// Files that it can still make.
    pub free_files: u64,
    /// Identifies it.
    pub identifier: u64,
    /// Longest component.
    pub name_maximum: u32,
}

impl FileSystemStatus {
    /// Of a file system that stores nothing.
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
    /// Its name.
    pub name: &'a [u8],
    /// The file's number.
    pub number: u64,
    /// The file's type.
    pub file_type: FileType,
    /// The position after this entry.
    pub next: u64,
}
