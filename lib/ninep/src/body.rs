//! Replies.

use crate::wire::Reader;
use crate::{HEADER, kind};

/// What identifies a file at its server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Qid {
    /// Bits of the file's type: 0x80 a directory, 0x02 a symbolic link; and [`Qid::LISTS`].
    pub kind: u8,
    /// A number that usually changes with the contents.
    pub version: u32,
    /// A number that no other file of the server has.
    pub path: u64,
}

impl Qid {
    /// A bit of [`Qid::kind`], which only file servers of disks set: the file has access control
    /// lists.
    pub const LISTS: u8 = 1;
}

/// A time: seconds since 1970-01-01 00:00:00 UTC, and nanoseconds after them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time {
    /// Seconds.
    pub seconds: u64,
    /// Nanoseconds; a server may send any number.
    pub nanoseconds: u64,
}

/// The attributes of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Which file it is.
    pub qid: Qid,
    /// Type and permission bits, as Linux has them.
    pub mode: u32,
    /// User id of the owner.
    pub user: u32,
    /// Group id.
    pub group: u32,
    /// How many names the file has.
    pub links: u64,
    /// The device that a device node represents.
    pub device: u64,
    /// Size in bytes.
    pub size: u64,
    /// Preferred size of a transfer in bytes.
    pub block_size: u64,
    /// How many units of 512 bytes are allocated.
    pub blocks: u64,
    /// Time of the last read.
    pub accessed: Time,
    /// Time of the last change of the contents.
    pub modified: Time,
    /// Time of the last change of contents or attributes.
    pub changed: Time,
}

/// The status of a file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileSystemStatus {
    /// Bytes of a block.
    pub block_size: u32,
    /// How many blocks there are, are free, and can be had without privileges.
    pub blocks: [u64; 3],
    /// How many files there can be, and how many more can be made.
    pub files: [u64; 2],
    /// A number that identifies the file system.
    pub identifier: u64,
    /// Bytes of the longest name.
    pub name_maximum: u32,
}

/// An entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Which file it is.
    pub qid: Qid,
    /// The position after the entry.
    pub next: u64,
    /// The file's type, a `DT_` number of Linux.
    pub file_type: u8,
    /// The name.
    pub name: &'a [u8],
}

/// The entries in a reply, until the first one that is not complete.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    rest: Reader<'a>,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let entry = read_entry(&mut self.rest);
        if entry.is_none() {
            self.rest = Reader::new(&[]);
        }
        entry
    }
}

fn read_entry<'a>(from: &mut Reader<'a>) -> Option<Entry<'a>> {
    Some(Entry { qid: read_qid(from)?, next: from.long()?, file_type: from.byte()?, name: from.string()? })
}

fn read_qid(from: &mut Reader<'_>) -> Option<Qid> {
    Some(Qid { kind: from.byte()?, version: from.word()?, path: from.long()? })
}

fn read_time(from: &mut Reader<'_>) -> Option<Time> {
    Some(Time { seconds: from.long()?, nanoseconds: from.long()? })
}

/// What the first bytes of a range of a file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "`length` is how many bytes are so, `place` where they are on the disk")]
pub enum Mapped {
    /// No space is allocated: they are zeros.
    Hole { length: u64 },
    /// Space is allocated at this offset of the disk, but nothing was written: they are zeros.
    Unwritten { length: u64, place: u64 },
    /// They are at this offset of the disk, one after the other.
    Data { length: u64, place: u64 },
}

/// Why there is no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The server reports this error number of Linux.
    Server(u32),
    /// The reply is none to the request.
    Malformed,
}

/// The content of a reply. A function returns `Malformed` if the content is shorter than it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body<'a>(Reader<'a>);

/// Checks the reply to a request of kind `request`, and returns its content.
///
/// # Errors
/// The server reports an error, or has not replied to such a request.
pub fn reply(request: u8, message: &[u8]) -> Result<Body<'_>, Failure> {
    let mut reader = Reader::new(message);
    let header = (|| Some((reader.word()?, reader.byte()?, reader.half()?)))();
    let (size, replied, _) = header.ok_or(Failure::Malformed)?;
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let body = message.get(HEADER..size).ok_or(Failure::Malformed)?;
    let mut reader = Reader::new(body);
    match replied {
        kind::ERROR => Err(reader.word().map_or(Failure::Malformed, Failure::Server)),
        replied if replied == request + 1 => Ok(Body(reader)),
        _ => Err(Failure::Malformed),
    }
}

impl<'a> Body<'a> {
    fn read<T>(mut self, read: impl FnOnce(&mut Reader<'a>) -> Option<T>) -> Result<T, Failure> {
        read(&mut self.0).ok_or(Failure::Malformed)
    }

    /// The largest message and the version, on which the server agrees.
    pub fn version(self) -> Result<(u32, &'a [u8]), Failure> {
        self.read(|from| Some((from.word()?, from.string()?)))
    }

    /// A file: what is attached, opened or made.
    pub fn qid(self) -> Result<Qid, Failure> {
        self.read(read_qid)
    }

    /// The file to which `names` names lead. A server that found fewer names is right only if there
    /// is no such file: that is its error 2 (ENOENT).
    pub fn walked(self, names: usize) -> Result<Option<Qid>, Failure> {
        const NOT_FOUND: u32 = 2;
        let found = self.read(|from| {
            let count = usize::from(from.half()?);
            if count > names {
                return None;
            }
            let mut last = None;
            for _ in 0..count {
                last = Some(read_qid(from)?);
            }
            Some((count, last))
        });
        let (count, last) = found?;
        if count < names { Err(Failure::Server(NOT_FOUND)) } else { Ok(last) }
    }

    /// The attributes of a file.
    pub fn attributes(self) -> Result<Attributes, Failure> {
        self.read(|from| {
            from.long()?;
            Some(Attributes {
                qid: read_qid(from)?,
                mode: from.word()?,
                user: from.word()?,
                group: from.word()?,
                links: from.long()?,
                device: from.long()?,
                size: from.long()?,
                block_size: from.long()?,
                blocks: from.long()?,
                accessed: read_time(from)?,
                modified: read_time(from)?,
                changed: read_time(from)?,
            })
        })
    }

    /// Whether a file system was mounted: its root, or an error number and what is wrong, in words.
    pub fn mounted(self) -> Result<Result<Qid, (u32, &'a [u8])>, Failure> {
        self.read(|from| {
            let (number, qid, text) = (from.word()?, read_qid(from)?, from.string()?);
            Some(if number == 0 { Ok(qid) } else { Err((number, text)) })
        })
    }

    /// Where a range of a file is.
    pub fn mapped(self) -> Result<Mapped, Failure> {
        self.read(|from| {
            let (length, place, kind) = (from.long()?, from.long()?, from.word()?);
            let place = match kind {
                0 => Some(Mapped::Hole { length }),
                1 => Some(Mapped::Unwritten { length, place }),
                2 => Some(Mapped::Data { length, place }),
                _ => None,
            };
            place.filter(|_| length > 0)
        })
    }

    /// Data that was read, at most `most` bytes of it.
    pub fn data(self, most: usize) -> Result<&'a [u8], Failure> {
        self.read(|from| from.data().filter(|data| data.len() <= most))
    }

    /// How many bytes were written, of `most`.
    pub fn count(self, most: usize) -> Result<usize, Failure> {
        self.read(|from| usize::try_from(from.word()?).ok().filter(|&count| count <= most))
    }

    /// The size of an extended attribute.
    pub fn size(self) -> Result<u64, Failure> {
        self.read(Reader::long)
    }

    /// The text of a symbolic link.
    pub fn text(self) -> Result<&'a [u8], Failure> {
        self.read(Reader::string)
    }

    /// Entries of a directory.
    pub fn entries(self) -> Result<Entries<'a>, Failure> {
        self.read(|from| Some(Entries { rest: Reader::new(from.data()?) }))
    }

    /// The status of the file system.
    pub fn status(self) -> Result<FileSystemStatus, Failure> {
        self.read(|from| {
            from.word()?;
            Some(FileSystemStatus {
                block_size: from.word()?,
                blocks: [from.long()?, from.long()?, from.long()?],
                files: [from.long()?, from.long()?],
                identifier: from.long()?,
                name_maximum: from.word()?,
            })
        })
    }
}
