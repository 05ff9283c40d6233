//! The entries of a cpio archive in "newc" form.

use super::is_acceptable;
use crate::vfs::{DeviceNumber, FileType, Mode};

/// Where an archive is damaged, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corrupt {
    /// The offset of the header of the damaged entry.
    pub offset: usize,
    /// What is wrong with the archive.
    pub reason: &'static str,
}

/// One entry of the archive.
pub(super) struct Entry<'a> {
    pub(super) path: &'a [u8],
    pub(super) file_type: FileType,
    pub(super) mode: Mode,
    pub(super) user: u32,
    pub(super) group: u32,
    pub(super) modified: u32,
    pub(super) represents: DeviceNumber,
    /// Offset and length of the entry's data in the archive.
    pub(super) data: (usize, usize),
    inode: u32,
    device: (u32, u32),
    links: u32,
}

impl Entry<'_> {
    /// Whether other entries of the archive may be names of the same file.
    pub(super) fn is_linked(&self) -> bool {
        self.links > 1 && self.file_type == FileType::Regular
    }

    /// The device and inode numbers, which entries for the same file share.
    pub(super) fn identity(&self) -> (u32, u32, u32) {
        (self.device.0, self.device.1, self.inode)
    }
}

/// An iterator over the entries of an archive, which ends after the first damage.
pub(super) struct Archive<'a> {
    bytes: &'a [u8],
    next: usize,
}

const HEADER: usize = 110;
const END: &[u8] = b"TRAILER!!!";

impl<'a> Archive<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Archive<'a> {
        Archive { bytes, next: 0 }
    }

    fn parse(&mut self) -> Result<Entry<'a>, &'static str> {
        let start = self.next;
        let header = self.bytes.get(start..start + HEADER).ok_or("the header is cut off")?;
        if !matches!(&header[..6], b"070701" | b"070702") {
            return Err("no newc header here");
        }
        let mut numbers = [0u32; 13];
        for (number, digits) in numbers.iter_mut().zip(header[6..].chunks_exact(8)) {
            *number = hexadecimal(digits).ok_or("a header field is not a number")?;
        }
        let [inode, mode, user, group, links, modified, size, major, minor, r_major, r_minor, name_size, sum] =
            numbers;
        let (size, name_size) = (size as usize, name_size as usize);
        let name_start = start + HEADER;
        let name =
            self.bytes.get(name_start..).and_then(|b| b.get(..name_size)).ok_or("the name is cut off")?;
        let (&0, path) = name.split_last().ok_or("the name is empty")? else {
            return Err("the name does not end with NUL");
        };
        if path.contains(&0) {
            return Err("the name contains NUL");
        }
        let data_start = (name_start + name_size).next_multiple_of(4);
        let data =
            self.bytes.get(data_start..).and_then(|b| b.get(..size)).ok_or("the contents are cut off")?;
        if &header[..6] == b"070702" && data.iter().fold(0u32, |s, &b| s.wrapping_add(b.into())) != sum {
            return Err("the checksum is wrong");
        }
        self.next = (data_start + size).next_multiple_of(4);
        let file_type = match (mode >> 12, path) {
            (_, END) => FileType::Anonymous,
            (0o01, _) => FileType::Fifo,
            (0o02, _) => FileType::CharacterDevice,
            (0o04, _) => FileType::Directory,
            (0o06, _) => FileType::BlockDevice,
            (0o10, _) => FileType::Regular,
            (0o12, _) => FileType::SymbolicLink,
            (0o14, _) => FileType::Socket,
            _ => return Err("unknown file type"),
        };
        if !is_acceptable(path) {
            return Err("the name cannot be used");
        }
        if file_type == FileType::SymbolicLink && (size == 0 || size > super::PATH_LIMIT || data.contains(&0))
        {
            return Err("the link cannot be used");
        }
        Ok(Entry {
            path,
            file_type,
            mode: Mode::new(mode as u16 & 0o7777),
            user,
            group,
            modified,
            represents: DeviceNumber { major: r_major, minor: r_minor },
            data: (data_start, size),
            inode,
            device: (major, minor),
            links,
        })
    }
}

impl<'a> Iterator for Archive<'a> {
    type Item = Result<Entry<'a>, Corrupt>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            // There are zeros between archives and after the last one.
            let rest = self.bytes.get(self.next..).unwrap_or_default();
            let padding = rest.iter().position(|&b| b != 0)?;
            if !padding.is_multiple_of(4) || (padding > 0 && self.next == 0) {
                let corrupt = Corrupt { offset: self.next + padding, reason: "no newc header here" };
                self.next = self.bytes.len();
                return Some(Err(corrupt));
            }
            self.next += padding;
            let offset = self.next;
            match self.parse() {
                // The entry "TRAILER!!!" ends one archive; another may follow.
                Ok(entry) if entry.path == END => {}
                Ok(entry) => return Some(Ok(entry)),
                Err(reason) => {
                    self.next = self.bytes.len();
                    return Some(Err(Corrupt { offset, reason }));
                }
            }
        }
    }
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0u32, |number, &digit| {
        let digit = char::from(digit).to_digit(16)?;
        Some(number << 4 | digit)
    })
}
