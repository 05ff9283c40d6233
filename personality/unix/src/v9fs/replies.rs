//! What replies of a server of files are in Unix' terms.

use super::Session;
use crate::vfs::{DeviceNumber, DirectoryEntry, FileSystemStatus, FileType, Metadata, Mode, NAME_MAXIMUM};
use crate::{Error, Result, Timestamp};
use ninep::{Attributes, Body, Call};

/// The bits of a mode that are the type of the file.
const TYPE: u32 = 0o170_000;

/// The type of a file with this mode. `None`: the mode has none.
pub(crate) fn type_of(mode: u32) -> Option<FileType> {
    Some(match mode & TYPE {
        0o010_000 => FileType::Fifo,
        0o020_000 => FileType::CharacterDevice,
        0o040_000 => FileType::Directory,
        0o060_000 => FileType::BlockDevice,
        0o100_000 => FileType::Regular,
        0o120_000 => FileType::SymbolicLink,
        0o140_000 => FileType::Socket,
        _ => return None,
    })
}

/// The device number in the protocol's form of 64 bits.
fn device(number: u64) -> DeviceNumber {
    DeviceNumber {
        major: ((number >> 8) & 0xfff | (number >> 32) & 0xffff_f000) as u32,
        minor: (number & 0xff | (number >> 12) & 0xffff_ff00) as u32,
    }
}

/// The file type of a directory entry, by the protocol's number; `Anonymous` if it is not known.
fn type_of_entry(number: u8) -> FileType {
    match number {
        1 => FileType::Fifo,
        2 => FileType::CharacterDevice,
        4 => FileType::Directory,
        6 => FileType::BlockDevice,
        8 => FileType::Regular,
        10 => FileType::SymbolicLink,
        12 => FileType::Socket,
        _ => FileType::Anonymous,
    }
}

/// What the attributes say of a file of the type `file_type`, with its times of the last access, of
/// the last change of its data, and of its attributes. The caller sets the numbers of the file and
/// of its file system, and the size if it knows better.
pub(crate) fn metadata(attributes: &Attributes, file_type: FileType, times: [Timestamp; 3]) -> Metadata {
    let [accessed, modified, changed] = times;
    Metadata {
        device: DeviceNumber::default(),
        number: attributes.qid.path,
        file_type,
        mode: Mode::new(attributes.mode as u16),
        links: u32::try_from(attributes.links).unwrap_or(u32::MAX),
        user: attributes.user,
        group: attributes.group,
        represents: device(attributes.device),
        size: attributes.size,
        blocks: attributes.blocks,
        block_size: u32::try_from(attributes.block_size).unwrap_or(4096).max(512),
        accessed,
        modified,
        changed,
        created: changed,
    }
}

/// Calls `accept` with the entries of the directory `fid` from `position` on, until it returns
/// false. Names that no directory can have are left out, and so are `.` and `..`.
pub(crate) async fn list(
    session: &Session,
    fid: u32,
    position: u64,
    accept: &mut (dyn FnMut(DirectoryEntry<'_>) -> bool + Send),
) -> Result<()> {
    let mut offset = position;
    loop {
        let count = session.data_size() as u32;
        let reply = session.call(&Call::ReadDirectory { fid, offset, count }).await?;
        let mut is_empty = true;
        for entry in reply.read(Body::entries)? {
            // A server that does not get on would be asked without end.
            if entry.next == offset {
                return Err(Error::EIO);
            }
            (offset, is_empty) = (entry.next, false);
            let is_name = !entry.name.is_empty() && !entry.name.iter().any(|byte| matches!(byte, 0 | b'/'));
            if !is_name || matches!(entry.name, b"." | b"..") {
                continue;
            }
            let entry = DirectoryEntry {
                name: entry.name,
                number: entry.qid.path,
                file_type: type_of_entry(entry.file_type),
                next: entry.next,
            };
            if !accept(entry) {
                return Ok(());
            }
        }
        if is_empty {
            return Ok(());
        }
    }
}

/// Asks for the state of the file system that the file `fid` is in. `name` is the file system's
/// type, and `minor` the number of its device.
pub(crate) async fn load_status(
    session: &Session,
    fid: u32,
    name: &'static str,
    minor: u64,
) -> Result<FileSystemStatus> {
    let reply = session.call(&Call::Statfs { fid }).await?;
    let status = reply.read(Body::status)?;
    let [blocks, free_blocks, available_blocks] = status.blocks;
    let [files, free_files] = status.files;
    Ok(FileSystemStatus {
        block_size: status.block_size.max(1),
        blocks,
        free_blocks,
        available_blocks,
        files,
        free_files,
        name_maximum: status.name_maximum.min(NAME_MAXIMUM as u32),
        ..FileSystemStatus::without_store(name, minor)
    })
}
