//! Attributes of files, as the file system and as the messages have them.

use crate::failure::{Failure, number};
use ninep::{AttributeChange, Attributes, Qid, SetTime, Time};
use rsext4::{
    Clock, DeviceNumber, DirectoryEntryType, Ext4Timestamp, FilePermissions, InodeInfo, InodeMetadataUpdate,
};

/// Bits of a file's mode: its type.
pub(crate) const TYPE: u32 = 0o170_000;
pub(crate) const FIFO: u32 = 0o010_000;
pub(crate) const CHARACTER_DEVICE: u32 = 0o020_000;
pub(crate) const DIRECTORY: u32 = 0o040_000;
pub(crate) const BLOCK_DEVICE: u32 = 0o060_000;
pub(crate) const REGULAR: u32 = 0o100_000;
pub(crate) const SYMBOLIC_LINK: u32 = 0o120_000;
pub(crate) const SOCKET: u32 = 0o140_000;

/// Which file it is.
pub(crate) fn qid(info: &InodeInfo) -> Qid {
    let kind = match u32::from(info.mode) & TYPE {
        DIRECTORY => 0x80,
        SYMBOLIC_LINK => 0x02,
        _ => 0,
    };
    Qid { kind, version: info.change_attribute as u32, path: info.number.as_u64() }
}

/// A time before 1970 is a negative number of seconds, in 64 bits.
fn time(time: Ext4Timestamp) -> Time {
    Time { seconds: time.sec as u64, nanoseconds: time.nsec.into() }
}

/// A device number in the form of 64 bits that programs see.
fn device(number: DeviceNumber) -> u64 {
    let (major, minor) = (u64::from(number.major()), u64::from(number.minor()));
    minor & 0xff | (major & 0xfff) << 8 | (minor & !0xff) << 12
}

/// The attributes of a file.
pub(crate) fn attributes(info: &InodeInfo, block_size: u64) -> Attributes {
    Attributes {
        qid: qid(info),
        mode: info.mode.into(),
        user: info.uid,
        group: info.gid,
        links: info.links.into(),
        device: info.device_number.map_or(0, device),
        size: info.size,
        block_size,
        blocks: info.blocks,
        accessed: time(info.atime),
        modified: time(info.mtime),
        changed: time(info.ctime),
    }
}

/// The type of a directory entry, a `DT_` number of Linux.
pub(crate) fn entry_type(kind: DirectoryEntryType) -> u8 {
    match kind {
        DirectoryEntryType::Unknown => 0,
        DirectoryEntryType::Fifo => 1,
        DirectoryEntryType::CharacterDevice => 2,
        DirectoryEntryType::Directory => 4,
        DirectoryEntryType::BlockDevice => 6,
        DirectoryEntryType::RegularFile => 8,
        DirectoryEntryType::Symlink => 10,
        DirectoryEntryType::Socket => 12,
    }
}

/// What a change other than of the size is for the file system. `before` are the attributes so far.
pub(crate) fn update(
    change: &AttributeChange,
    before: &InodeInfo,
    clock: &impl Clock,
) -> Result<InodeMetadataUpdate, Failure> {
    let stamp = |time: Option<SetTime>| -> Result<Option<Ext4Timestamp>, Failure> {
        Ok(match time {
            None => None,
            Some(SetTime::Now) => Some(clock.now()?),
            Some(SetTime::To(seconds, nanoseconds)) => {
                let nanoseconds = u32::try_from(nanoseconds).map_err(|_| Failure(number::EINVAL))?;
                Some(Ext4Timestamp::new(seconds as i64, nanoseconds))
            }
        })
    };
    let owner = (change.user.is_some() || change.group.is_some())
        .then(|| (change.user.unwrap_or(before.uid), change.group.unwrap_or(before.gid)));
    let permissions = change.mode.map(|mode| FilePermissions::new((mode & 0o7777) as u16)).transpose()?;
    Ok(InodeMetadataUpdate {
        keeps_ctime: !change.changed && permissions.is_none() && owner.is_none(),
        permissions,
        owner,
        atime: stamp(change.accessed)?,
        mtime: stamp(change.modified)?,
        ..InodeMetadataUpdate::default()
    })
}
