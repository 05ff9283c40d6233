//! Layouts of stat, statx, statfs, dirent64 and iovec, and the flags of files.

use super::{Fields, Writer};
use alloc::vec::Vec;
use unix::vfs::{DeviceNumber, DirectoryEntry, FileSystemStatus, FileType, Metadata, OpenFlags};
use unix::{Error, Result, Timestamp};

/// The flag for closing a descriptor at exec: O_CLOEXEC, and the flags of other calls with its
/// value.
pub const CLOSE_ON_EXEC: u32 = 0o2000000;

const ACCESS_MODE: u32 = 3;
const FLAGS: [(u32, OpenFlags); 15] = [
    (0o100, OpenFlags::CREATE),
    (0o200, OpenFlags::EXCLUSIVE),
    (0o400, OpenFlags::NO_CONTROLLING_TERMINAL),
    (0o1000, OpenFlags::TRUNCATE),
    (0o2000, OpenFlags::APPEND),
    (0o4000, OpenFlags::NONBLOCK),
    (0o10000, OpenFlags::DATA_SYNCHRONOUS),
    (0o20000, OpenFlags::ASYNC),
    (0o40000, OpenFlags::DIRECT),
    (0o200000, OpenFlags::DIRECTORY),
    (0o400000, OpenFlags::NO_FOLLOW),
    (0o1000000, OpenFlags::NO_ACCESS_TIME),
    (0o4000000, OpenFlags::SYNCHRONOUS),
    (0o10000000, OpenFlags::PATH),
    (0o20000000, OpenFlags::TEMPORARY),
];

/// All flags of open(2) that are defined.
pub const KNOWN_FLAGS: u32 = 0o37777703;

/// The flags of open(2), without O_CLOEXEC. Unknown flags are ignored, as by open(2).
pub fn open_flags(bits: u32) -> OpenFlags {
    let mut flags = match bits & ACCESS_MODE {
        0 => OpenFlags::READ,
        1 => OpenFlags::WRITE,
        _ => OpenFlags::READ_WRITE,
    };
    for (bit, flag) in FLAGS {
        flags.set(flag, bits & bit != 0);
    }
    if flags.contains(OpenFlags::PATH) {
        flags = flags.intersection(OpenFlags::PATH | OpenFlags::DIRECTORY | OpenFlags::NO_FOLLOW);
    }
    flags
}

/// The status flags of an open file, as F_GETFL returns them. A file that was opened by a name is
/// one of any size.
pub fn to_open_flags(flags: OpenFlags, has_name: bool) -> u32 {
    const LARGE_FILE: u32 = 0o100000;
    let access = match (flags.contains(OpenFlags::READ), flags.contains(OpenFlags::WRITE)) {
        (true, true) => 2,
        (false, true) => 1,
        _ => 0,
    };
    let kept = flags.intersection(OpenFlags::KEPT);
    let bits =
        FLAGS.iter().filter(|(_, flag)| kept.contains(*flag)).fold(access, |bits, (bit, _)| bits | bit);
    if flags.contains(OpenFlags::PATH) || !has_name { bits } else { bits | LARGE_FILE }
}

/// The type bits of st_mode.
pub fn type_bits(file_type: FileType) -> u32 {
    match file_type {
        FileType::Fifo => 0o010000,
        FileType::CharacterDevice => 0o020000,
        FileType::Directory => 0o040000,
        FileType::BlockDevice => 0o060000,
        FileType::Regular => 0o100000,
        FileType::SymbolicLink => 0o120000,
        FileType::Socket => 0o140000,
        FileType::Anonymous => 0,
    }
}

/// The file type in the mode of mknod(2); `EINVAL` if there is no such type.
pub fn file_type(mode: u32) -> Result<FileType> {
    Ok(match mode & 0o170000 {
        0 | 0o100000 => FileType::Regular,
        0o010000 => FileType::Fifo,
        0o020000 => FileType::CharacterDevice,
        0o060000 => FileType::BlockDevice,
        0o140000 => FileType::Socket,
        0o040000 => return Err(Error::EPERM),
        _ => return Err(Error::EINVAL),
    })
}

/// The device number as a dev_t.
pub fn to_device(device: DeviceNumber) -> u64 {
    let (major, minor) = (u64::from(device.major), u64::from(device.minor));
    (minor & 0xff) | (major & 0xfff) << 8 | (minor & !0xff) << 12 | (major & !0xfff) << 32
}

/// The device number of a dev_t.
pub fn device(bits: u64) -> DeviceNumber {
    let major = (bits >> 8 & 0xfff) | (bits >> 32 & !0xfff);
    let minor = (bits & 0xff) | (bits >> 12 & 0xfff_ff00);
    DeviceNumber { major: major as u32, minor: minor as u32 }
}

fn time<const N: usize>(writer: Writer<N>, at: usize, time: Timestamp) -> Writer<N> {
    writer.i64(at, time.seconds).u32(at + 8, time.nanoseconds)
}

/// Writes the metadata as a struct stat.
pub fn to_stat(metadata: &Metadata) -> [u8; 144] {
    let mode = type_bits(metadata.file_type) | u32::from(metadata.mode.bits());
    let writer = Writer::new()
        .u64(0, to_device(metadata.device))
        .u64(8, metadata.number)
        .u64(16, metadata.links.into())
        .u32(24, mode)
        .u32(28, metadata.user)
        .u32(32, metadata.group)
        .u64(40, to_device(metadata.represents))
        .u64(48, metadata.size)
        .u64(56, metadata.block_size.into())
        .u64(64, metadata.blocks);
    time(time(time(writer, 72, metadata.accessed), 88, metadata.modified), 104, metadata.changed).done()
}

/// Writes the metadata as a struct statx, with the basic fields and the time of creation.
pub fn to_statx(metadata: &Metadata, mount: u64) -> [u8; 256] {
    const BASIC_AND_BIRTH: u32 = 0xfff;
    const MOUNT: u32 = 0x1000;
    let mode = type_bits(metadata.file_type) as u16 | metadata.mode.bits();
    let writer = Writer::new()
        .u32(0, BASIC_AND_BIRTH | if mount != 0 { MOUNT } else { 0 })
        .u32(4, metadata.block_size)
        .u32(16, metadata.links)
        .u32(20, metadata.user)
        .u32(24, metadata.group)
        .u16(28, mode)
        .u64(32, metadata.number)
        .u64(40, metadata.size)
        .u64(48, metadata.blocks)
        .u32(128, metadata.represents.major)
        .u32(132, metadata.represents.minor)
        .u32(136, metadata.device.major)
        .u32(140, metadata.device.minor)
        .u64(144, mount);
    let writer = time(time(writer, 64, metadata.accessed), 80, metadata.created);
    time(time(writer, 96, metadata.changed), 112, metadata.modified).done()
}

/// Writes the status as a struct statfs, with the mount's flags.
pub fn to_statfs(status: &FileSystemStatus, flags: u64) -> [u8; 120] {
    let magic = match status.kind {
        "tmpfs" | "devtmpfs" => 0x0102_1994,
        "ext4" => 0xef53,
        "9p" => 0x0102_1997,
        "proc" => 0x9fa0,
        "devpts" => 0x1cd1,
        "sysfs" => 0x6265_6572,
        "mqueue" => 0x1980_0202,
        "ramfs" | "rootfs" => 0x8584_58f6,
        _ => 0x4d61_6361,
    };
    const VALID: u64 = 0x20;
    Writer::new()
        .u64(0, magic)
        .u64(8, status.block_size.into())
        .u64(16, status.blocks)
        .u64(24, status.free_blocks)
        .u64(32, status.available_blocks)
        .u64(40, status.files)
        .u64(48, status.free_files)
        .u64(56, status.identifier)
        .u64(64, status.name_maximum.into())
        .u64(72, status.block_size.into())
        .u64(80, flags | VALID)
        .done()
}

/// The layouts of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryLayout {
    /// The layout of linux_dirent: the type is the last byte.
    Old,
    /// The layout of linux_dirent64: the type is before the name.
    Wide,
}

impl EntryLayout {
    /// Bytes of an entry with a name of this length; in both layouts it has a type, and a zero byte
    /// after the name.
    pub fn entry_size(self, name: usize) -> usize {
        (18 + name + 2).next_multiple_of(8)
    }
}

/// Appends a directory entry to `bytes`, which may have `room` bytes then. False: it does not fit,
/// and nothing has changed.
pub fn append_entry(
    bytes: &mut Vec<u8>,
    room: usize,
    layout: EntryLayout,
    entry: &DirectoryEntry<'_>,
) -> bool {
    let size = layout.entry_size(entry.name.len());
    let start = bytes.len();
    if start + size > room || (bytes.capacity() < start + size && bytes.try_reserve(size).is_err()) {
        return false;
    }
    bytes.resize(start + size, 0);
    let written = &mut bytes[start..];
    written[..8].copy_from_slice(&entry.number.to_le_bytes());
    written[8..16].copy_from_slice(&entry.next.to_le_bytes());
    written[16..18].copy_from_slice(&(size as u16).to_le_bytes());
    let (kind_at, name_at) = if layout == EntryLayout::Wide { (18, 19) } else { (size - 1, 18) };
    written[kind_at] = (type_bits(entry.file_type) >> 12) as u8;
    written[name_at..name_at + entry.name.len()].copy_from_slice(entry.name);
    true
}

/// The ranges of an array of iovec: address and length of each. `EINVAL` if a length, or the sum,
/// is too large for a result.
pub fn ranges(bytes: &[u8]) -> Result<Vec<(u64, usize)>> {
    /// The most bytes that one transfer moves.
    const MAXIMUM: usize = 0x7fff_f000;
    let mut ranges = Vec::new();
    ranges.try_reserve_exact(bytes.len() / 16).map_err(|_| Error::ENOMEM)?;
    let mut left = MAXIMUM;
    for entry in bytes.chunks_exact(16) {
        let (address, length) = (entry.u64_at(0)?, entry.i64_at(8)?);
        let length = usize::try_from(length).map_err(|_| Error::EINVAL)?.min(left);
        left -= length;
        ranges.push((address, length));
    }
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_flags_survive_conversion_both_ways() {
        let flags = open_flags(0o2 | 0o100 | 0o2000 | 0o4010000);
        assert!(flags.contains(OpenFlags::READ_WRITE | OpenFlags::CREATE | OpenFlags::APPEND));
        assert_eq!(to_open_flags(flags, true), 0o2 | 0o2000 | 0o4010000 | 0o100000);
        assert_eq!(to_open_flags(flags, false), 0o2 | 0o2000 | 0o4010000);
        assert_eq!(open_flags(0o10000000 | 0o1), OpenFlags::PATH);
    }

    #[test]
    fn device_numbers_have_linux_layout() {
        let number = DeviceNumber { major: 0x1234, minor: 0xabcde };
        assert_eq!(device(to_device(number)), number);
        assert_eq!(to_device(DeviceNumber { major: 1, minor: 3 }), 0x103);
    }

    #[test]
    fn directory_entries_have_both_layouts() {
        let mut bytes = Vec::new();
        let entry = DirectoryEntry { name: b"name", number: 7, file_type: FileType::Directory, next: 9 };
        assert!(!append_entry(&mut bytes, 23, EntryLayout::Wide, &entry) && bytes.is_empty());
        assert!(append_entry(&mut bytes, 24, EntryLayout::Wide, &entry));
        assert_eq!(bytes.len(), EntryLayout::Wide.entry_size(4));
        assert_eq!((bytes.u64_at(0), bytes.u64_at(8), bytes.u16_at(16)), (Ok(7), Ok(9), Ok(24)));
        assert_eq!((bytes[18], &bytes[19..24]), (4, &b"name\0"[..]));
        bytes.clear();
        assert!(append_entry(&mut bytes, 24, EntryLayout::Old, &entry));
        assert_eq!((&bytes[18..23], bytes[23], bytes.len()), (&b"name\0"[..], 4, 24));
    }

    #[test]
    fn iovec_arrays_are_cut_and_refused_as_linux_does() {
        let entry = |address: u64, length: i64| Writer::<16>::new().u64(0, address).i64(8, length).done();
        let both = [entry(1, 2), entry(3, i64::MAX)].concat();
        assert_eq!(ranges(&both), Ok(vec![(1, 2), (3, 0x7fff_f000 - 2)]));
        assert_eq!(ranges(&entry(1, -1)), Err(Error::EINVAL));
    }
}
