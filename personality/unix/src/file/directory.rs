//! Reading directories (getdents(2)).

use super::OpenFile;
use crate::vfs::{Access, Caller, DirectoryEntry, FileType};
use crate::{Error, Result};

/// The first directory position of the file system's own entries. `.` and `..` have the positions
/// before.
const FIRST_OWN: u64 = 2;

impl OpenFile {
    /// Reads directory entries from the file offset on, as many as `accept` takes (it is called
    /// once with each, in order, with the directory position after it). `EINVAL` if there are
    /// entries and not even the first is taken, `ENOENT` if the directory was removed. At the end
    /// of the directory there are none.
    pub async fn read_directory(
        &self,
        caller: &Caller<'_>,
        mut accept: impl FnMut(&DirectoryEntry<'_>) -> bool + Send,
    ) -> Result<()> {
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
        let (mut taken, mut refused) = (false, false);
        let mut next = position.offset;
        let mut take = |entry: DirectoryEntry<'_>| {
            if refused || !accept(&entry) {
                refused = true;
                return false;
            }
            next = entry.next;
            taken = true;
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
        if !taken && refused {
            return Err(Error::EINVAL);
        }
        position.offset = next;
        drop(position);
        self.touch();
        Ok(())
    }
}
