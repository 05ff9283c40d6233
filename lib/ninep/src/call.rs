//! Requests.

use crate::wire::Writer;
use crate::{NO_TAG, VERSION, kind};
use alloc::vec::Vec;

/// The number by which the client names a file.
pub type Fid = u32;
/// No file: what [`Call::Attach`] says in place of a file for authentication.
pub const NO_FID: Fid = u32::MAX;

/// A new time of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetTime {
    /// The server's present time.
    Now,
    /// Seconds since 1970-01-01 00:00:00 UTC, and nanoseconds after them.
    To(u64, u64),
}

/// Attributes to change; `None` leaves an attribute as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttributeChange {
    /// Permission bits.
    pub mode: Option<u32>,
    /// User id of the owner.
    pub user: Option<u32>,
    /// Group id.
    pub group: Option<u32>,
    /// Size in bytes.
    pub size: Option<u64>,
    /// Time of the last access.
    pub accessed: Option<SetTime>,
    /// Time of the last modification.
    pub modified: Option<SetTime>,
    /// Whether the time of the last change becomes the present one. File servers of disks leave it
    /// as it is if only other times are set without this.
    pub changed: bool,
}

/// A request.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the fields have the names of the protocol's description")]
pub enum Call<'a> {
    /// Agree on the version and on the largest message. All fids are forgotten.
    Version { size: u32 },
    /// `fid` becomes the root directory of the file system `name`, for the user `user`.
    Attach { fid: Fid, user: u32, name: &'a [u8] },
    /// `new` becomes the file to which the names lead from `fid`.
    Walk { fid: Fid, new: Fid, names: &'a [&'a [u8]] },
    /// Opens the file of `fid`, with Linux's flags.
    Open { fid: Fid, flags: u32 },
    /// Makes a regular file in the directory of `fid`, which becomes the new file, opened.
    Create { fid: Fid, name: &'a [u8], flags: u32, mode: u32, group: u32 },
    /// Makes a symbolic link.
    Symlink { directory: Fid, name: &'a [u8], target: &'a [u8], group: u32 },
    /// Makes a device node, FIFO or name of a socket.
    Mknod { directory: Fid, name: &'a [u8], mode: u32, device: (u32, u32), group: u32 },
    /// Makes a directory.
    Mkdir { directory: Fid, name: &'a [u8], mode: u32, group: u32 },
    /// Adds a name of the file of `fid`.
    Link { directory: Fid, fid: Fid, name: &'a [u8] },
    /// Renames a file.
    RenameAt { from: Fid, old: &'a [u8], to: Fid, new: &'a [u8] },
    /// Removes a name: of a directory if `directory`.
    UnlinkAt { fid: Fid, name: &'a [u8], directory: bool },
    /// The text of a symbolic link.
    ReadLink { fid: Fid },
    /// All basic attributes of a file.
    GetAttributes { fid: Fid },
    /// Changes attributes.
    SetAttributes { fid: Fid, change: AttributeChange },
    /// Reads entries of an opened directory, from the position `offset` on.
    ReadDirectory { fid: Fid, offset: u64, count: u32 },
    /// Reads data of an opened file.
    Read { fid: Fid, offset: u64, count: u32 },
    /// Writes data of an opened file.
    Write { fid: Fid, offset: u64, data: &'a [u8] },
    /// Writes the file's data to storage.
    Synchronize { fid: Fid, data_only: bool },
    /// The status of the file system that has the file.
    Statfs { fid: Fid },
    /// `new` becomes the extended attribute `name` of the file of `fid`, or the list of their names
    /// if `name` is empty. Its value is read as data.
    XattrWalk { fid: Fid, new: Fid, name: &'a [u8] },
    /// `fid` becomes the extended attribute `name` of its file. Its value is then written as data,
    /// and set when the fid is forgotten. Servers of 9P2000.L remove it if `size` is 0, those of
    /// disks if `flags` is [`XATTR_REMOVE`](crate::XATTR_REMOVE).
    XattrCreate { fid: Fid, name: &'a [u8], size: u64, flags: u32 },
    /// Forgets the fid.
    Clunk { fid: Fid },
    /// Mounts the file system of the disk; `fid` becomes its root directory. `time` is the present
    /// time in nanoseconds since 1970-01-01 00:00:00 UTC.
    /// With `resume` nothing changes before the steps of [`Call::Resume`] do it: files without
    /// names stay.
    Mount { fid: Fid, read_only: bool, resume: bool, time: u64 },
    /// A step after a mount with `resume`, by which the server gets to where one before it was.
    Resume { step: Resume },
    /// Brings all to the disk and unmounts the file system. All fids are forgotten.
    Unmount,
    /// Mounts the file system again, with what is on the disk then. All fids stay. It is refused
    /// while there are files without names.
    Remount { read_only: bool },
    /// `new` becomes the file `name` of the directory of `fid`.
    Find { fid: Fid, new: Fid, name: &'a [u8] },
    /// Makes the file `name` in the directory of `fid`, which `new` becomes. `mode` has its type.
    /// `target` is the text of a symbolic link, `device` what a device node represents.
    Make {
        fid: Fid,
        new: Fid,
        name: &'a [u8],
        mode: u32,
        owner: (u32, u32),
        device: (u32, u32),
        target: &'a [u8],
    },
    /// Exchanges the files of two names.
    Exchange { from: Fid, old: &'a [u8], to: Fid, new: &'a [u8] },
    /// Changes the space of a range of a file.
    Allocate { fid: Fid, offset: u64, length: u64, change: SpaceChange },
    /// Where the range of a file from `offset` on is: what is the same for the first bytes of it.
    Map { fid: Fid, offset: u64, length: u64 },
    /// As `Map`, of a range that gets space first where it has none. The size stays, and what was
    /// not written reads as zeros.
    Place { fid: Fid, offset: u64, length: u64 },
    /// The client has written a range at its place: it is data from now on, and the file has at
    /// least `size` bytes. All of the range has space. The reply says how many blocks of 512 bytes
    /// the file has.
    Written { fid: Fid, offset: u64, length: u64, size: u64 },
}

/// A step by which a server that was started again gets to where the one before was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields have the names of those of requests")]
pub enum Resume {
    /// The client has written data at this place of the disk: only `Place` allocates it.
    Reserve { place: u64, length: u64 },
    /// `fid` becomes the file with this number.
    Name { fid: Fid, inode: u64 },
    /// The next file that is made gets this number, which no other file has that has a name.
    Choose { inode: u64 },
    /// The present time until the next step of this kind, in nanoseconds since 1970-01-01 00:00:00
    /// UTC.
    Time { time: u64 },
    /// Gives a range of a file this space where it has none.
    Place { fid: Fid, offset: u64, length: u64, place: u64 },
    /// The client has named all files that it has, and given all operations again. Other files
    /// without names are freed.
    End,
}

/// What is done with the space of a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceChange {
    /// It is allocated, and the file grows to hold it.
    Grow,
    /// It is allocated, and the size stays.
    Keep,
    /// It is freed: the range reads as zeros.
    Punch,
}

/// The bit of a request to remove a name that says that it is a directory's.
pub(crate) const REMOVE_DIRECTORY: u32 = 0x200;
/// The attributes that [`Call::GetAttributes`] asks for: all that Linux's stat(2) has, and no
/// others, which servers do not have.
const BASIC: u64 = 0x7ff;

impl Call<'_> {
    /// The kind of the request.
    pub fn kind(&self) -> u8 {
        match self {
            Call::Version { .. } => kind::VERSION,
            Call::Attach { .. } => kind::ATTACH,
            Call::Walk { .. } => kind::WALK,
            Call::Open { .. } => kind::OPEN,
            Call::Create { .. } => kind::CREATE,
            Call::Symlink { .. } => kind::SYMLINK,
            Call::Mknod { .. } => kind::MKNOD,
            Call::Mkdir { .. } => kind::MKDIR,
            Call::Link { .. } => kind::LINK,
            Call::RenameAt { .. } => kind::RENAMEAT,
            Call::UnlinkAt { .. } => kind::UNLINKAT,
            Call::ReadLink { .. } => kind::READLINK,
            Call::GetAttributes { .. } => kind::GETATTR,
            Call::SetAttributes { .. } => kind::SETATTR,
            Call::ReadDirectory { .. } => kind::READDIR,
            Call::Read { .. } => kind::READ,
            Call::Write { .. } => kind::WRITE,
            Call::Synchronize { .. } => kind::FSYNC,
            Call::Statfs { .. } => kind::STATFS,
            Call::XattrWalk { .. } => kind::XATTRWALK,
            Call::XattrCreate { .. } => kind::XATTRCREATE,
            Call::Clunk { .. } => kind::CLUNK,
            Call::Mount { .. } => kind::MOUNT,
            Call::Unmount => kind::UNMOUNT,
            Call::Remount { .. } => kind::REMOUNT,
            Call::Find { .. } => kind::FIND,
            Call::Make { .. } => kind::MAKE,
            Call::Exchange { .. } => kind::EXCHANGE,
            Call::Allocate { .. } => kind::ALLOCATE,
            Call::Map { .. } => kind::MAP,
            Call::Place { .. } => kind::PLACE,
            Call::Written { .. } => kind::WRITTEN,
            Call::Resume { .. } => kind::RESUME,
        }
    }

    /// The message, with the tag 0 (that of a version is [`NO_TAG`]), which the transport replaces
    /// where several requests are outstanding.
    pub fn encode(&self) -> Vec<u8> {
        let tag = if matches!(self, Call::Version { .. }) { NO_TAG } else { 0 };
        let mut to = Writer::new(self.kind(), tag);
        match *self {
            Call::Version { size } => {
                to.word(size);
                to.string(VERSION);
            }
            Call::Attach { fid, user, name } => {
                to.word(fid);
                to.word(NO_FID);
                to.string(b"");
                to.string(name);
                to.word(user);
            }
            Call::Walk { fid, new, names } => {
                to.word(fid);
                to.word(new);
                to.half(names.len() as u16);
                names.iter().for_each(|name| to.string(name));
            }
            Call::Open { fid, flags } => {
                to.word(fid);
                to.word(flags);
            }
            Call::Create { fid, name, flags, mode, group } => {
                to.word(fid);
                to.string(name);
                [flags, mode, group].into_iter().for_each(|word| to.word(word));
            }
            Call::Symlink { directory, name, target, group } => {
                to.word(directory);
                to.string(name);
                to.string(target);
                to.word(group);
            }
            Call::Mknod { directory, name, mode, device: (major, minor), group } => {
                to.word(directory);
                to.string(name);
                [mode, major, minor, group].into_iter().for_each(|word| to.word(word));
            }
            Call::Mkdir { directory, name, mode, group } => {
                to.word(directory);
                to.string(name);
                to.word(mode);
                to.word(group);
            }
            Call::Link { directory, fid, name } => {
                to.word(directory);
                to.word(fid);
                to.string(name);
            }
            Call::RenameAt { from, old, to: directory, new }
            | Call::Exchange { from, old, to: directory, new } => {
                to.word(from);
                to.string(old);
                to.word(directory);
                to.string(new);
            }
            Call::UnlinkAt { fid, name, directory } => {
                to.word(fid);
                to.string(name);
                to.word(if directory { REMOVE_DIRECTORY } else { 0 });
            }
            Call::ReadLink { fid } | Call::Statfs { fid } | Call::Clunk { fid } => to.word(fid),
            Call::GetAttributes { fid } => {
                to.word(fid);
                to.long(BASIC);
            }
            Call::SetAttributes { fid, change } => change.encode(fid, &mut to),
            Call::ReadDirectory { fid, offset, count } | Call::Read { fid, offset, count } => {
                to.word(fid);
                to.long(offset);
                to.word(count);
            }
            Call::Write { fid, offset, data } => {
                to.word(fid);
                to.long(offset);
                to.word(data.len() as u32);
                to.raw(data);
            }
            Call::Synchronize { fid, data_only } => {
                to.word(fid);
                to.word(data_only.into());
            }
            Call::XattrWalk { fid, new, name } | Call::Find { fid, new, name } => {
                to.word(fid);
                to.word(new);
                to.string(name);
            }
            Call::XattrCreate { fid, name, size, flags } => {
                to.word(fid);
                to.string(name);
                to.long(size);
                to.word(flags);
            }
            Call::Mount { fid, read_only, resume, time } => {
                to.word(fid);
                to.word(u32::from(read_only) | u32::from(resume) << 1);
                to.long(time);
            }
            Call::Resume { step } => {
                let (number, fid, longs) = match step {
                    Resume::Reserve { place, length } => (0, NO_FID, [place, length, 0]),
                    Resume::Name { fid, inode } => (1, fid, [inode, 0, 0]),
                    Resume::Choose { inode } => (2, NO_FID, [inode, 0, 0]),
                    Resume::Time { time } => (3, NO_FID, [time, 0, 0]),
                    Resume::Place { fid, offset, length, place } => (4, fid, [offset, length, place]),
                    Resume::End => (5, NO_FID, [0; 3]),
                };
                to.word(number);
                to.word(fid);
                longs.into_iter().for_each(|long| to.long(long));
            }
            Call::Unmount => {}
            Call::Remount { read_only } => to.word(read_only.into()),
            Call::Make { fid, new, name, mode, owner: (user, group), device: (major, minor), target } => {
                to.word(fid);
                to.word(new);
                to.string(name);
                [mode, user, group, major, minor].into_iter().for_each(|word| to.word(word));
                to.string(target);
            }
            Call::Allocate { fid, offset, length, change } => {
                to.word(fid);
                to.long(offset);
                to.long(length);
                to.word(change as u32);
            }
            Call::Map { fid, offset, length } | Call::Place { fid, offset, length } => {
                to.word(fid);
                to.long(offset);
                to.long(length);
            }
            Call::Written { fid, offset, length, size } => {
                to.word(fid);
                [offset, length, size].into_iter().for_each(|long| to.long(long));
            }
        }
        to.finish()
    }
}

impl AttributeChange {
    fn encode(&self, fid: Fid, to: &mut Writer) {
        let bit = |is_set: bool, number: u32| u32::from(is_set) << number;
        let explicit = |time: Option<SetTime>| matches!(time, Some(SetTime::To(..)));
        let valid = bit(self.mode.is_some(), 0)
            | bit(self.user.is_some(), 1)
            | bit(self.group.is_some(), 2)
            | bit(self.size.is_some(), 3)
            | bit(self.accessed.is_some(), 4)
            | bit(self.modified.is_some(), 5)
            | bit(self.changed, 6)
            | bit(explicit(self.accessed), 7)
            | bit(explicit(self.modified), 8);
        to.word(fid);
        to.word(valid);
        [self.mode, self.user, self.group].into_iter().for_each(|word| to.word(word.unwrap_or(0)));
        to.long(self.size.unwrap_or(0));
        for time in [self.accessed, self.modified] {
            let (seconds, nanoseconds) = match time {
                Some(SetTime::To(seconds, nanoseconds)) => (seconds, nanoseconds),
                _ => (0, 0),
            };
            to.long(seconds);
            to.long(nanoseconds);
        }
    }
}
