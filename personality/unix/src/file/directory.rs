//! Reading directories (getdents(2)).

use super::OpenFile;
use crate::vfs::{Access, Caller, DirectoryEntry, FileType};
use crate::{Error, Result};
use alloc::vec::Vec;

/// One batch of directory entries, collected for a front end to lay out.
pub struct ReadDirectory {
    /// For each entry, in order: its name, file number and type, and the directory position after
    /// it.
    pub entries: Vec<(Vec<u8>, u64, FileType, u64)>,
}

/// The first directory position of the file system's own entries. `.` and `..` have the positions
/// before.
const FIRST_OWN: u64 = 2;

impl OpenFile {
    /// Reads directory entries from the file offset on, as many as `fits` accepts (it is called
    /// once with each). `EINVAL` if there are entries and not even the first fits, `ENOENT` if the
    /// directory was removed. The result is empty at the end of the directory.
    pub async fn read_directory(
        &self,
        caller: &Caller<'_>,
        mut fits: impl FnMut(&DirectoryEntry<'_>) -> bool + Send,
    ) -> Result<ReadDirectory> {
        let location = self.location().ok_or(Error::ENOTDIR)?;
        let vnode = &location.vnode;
        self.check(Access::READ)?;
        if vnode.file_type() != FileType::Directory {
            return Err(Error::ENOTDIR);
        }
        let mut position = self.position.lock().await;
        if vnode.metadata().links == 0 {
            return Err(Error::ENOENT);
        }
        if position.offset == 0 {
            position.directory_end = vnode.directory_end().saturating_add(FIRST_OWN);
        }
        let mut entries = Vec::new();
        let mut refused = false;
        let mut next = position.offset;
        let mut take = |entry: DirectoryEntry<'_>| {
            if refused || !fits(&entry) || entries.try_reserve(1).is_err() {
                refused = true;
                return false;
            }
            next = entry.next;
            entries.push((entry.name.to_vec(), entry.number, entry.file_type, entry.next));
            true
        };
        if position.offset == 0 {
            let entry = DirectoryEntry {
                name: b".",
                number: vnode.number(),
                file_type: FileType::Directory,
                next: 1,
            };
            take(entry);
        }
        if position.offset <= 1 {
            let above = location.up(&caller.directories.root()).unwrap_or_else(|_| location.clone());
            let number = above.vnode.number();
            take(DirectoryEntry { name: b"..", number, file_type: FileType::Directory, next: FIRST_OWN });
        }
        let end = position.directory_end;
        let from = position.offset.saturating_sub(FIRST_OWN);
        if position.offset < end {
            let mut own = |entry: DirectoryEntry<'_>| {
                let next = entry.next.saturating_add(FIRST_OWN);
                next <= end && take(DirectoryEntry { next, ..entry })
            };
            vnode.read_directory(from, &mut own).await?;
        }
        if entries.is_empty() && refused {
            return Err(Error::EINVAL);
        }
        position.offset = next;
        drop(position);
        self.touch();
        Ok(ReadDirectory { entries })
    }
}
