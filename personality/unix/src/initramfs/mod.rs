//! The initial root: a cpio archive in "newc" form, unpacked into a tmpfs without copying file
//! contents.
//!
//! An archive is accepted in this format: headers of 110 bytes (magic 070701 or 070702 and thirteen
//! numbers of eight hexadecimal digits), name, data, each padded to four bytes; archives may follow
//! one another, with zeros in between; links to one file share device and inode number, and at
//! least the last of them carries the data.

mod archive;

#[cfg(test)]
mod tests;

pub use archive::Corrupt;

use crate::tmpfs::{Builder, Tmpfs, TmpfsOptions};
use crate::vfs::{
    AttributeChange, FileType, InitialContents, MemoryProvider, Mode, NewAttributes, NewNode, SetTime,
    VnodeRef,
};
use crate::{Environment, Error, Timestamp};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use archive::{Archive, Entry};

/// Why an archive could not be unpacked completely. The entries before the damage have been
/// unpacked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnpackError {
    /// The archive is damaged.
    Corrupt(Corrupt),
    /// A file could not be made in the tmpfs.
    Failed(Error),
}

impl From<Error> for UnpackError {
    fn from(error: Error) -> UnpackError {
        UnpackError::Failed(error)
    }
}

/// Unpacks `archive` into a new tmpfs; returns its root directory, and an error if part of the
/// archive could not be unpacked.
pub async fn unpack(
    archive: Arc<dyn AsRef<[u8]> + Send + Sync>,
    options: &TmpfsOptions,
    memory: Arc<dyn MemoryProvider>,
    environment: Arc<dyn Environment>,
) -> (Option<VnodeRef>, Result<(), UnpackError>) {
    let builder = match Tmpfs::with_contents(options, memory, environment) {
        Ok(builder) => builder,
        Err(error) => return (None, Err(error.into())),
    };
    let root = builder.root();
    let mut unpacking = Unpacking { archive: archive.clone(), builder, linked: BTreeMap::new() };
    let done = unpacking.run((*archive).as_ref()).await;
    (Some(root), done)
}

/// Files with several names, by their device and inode numbers in the archive.
type Linked = BTreeMap<(u32, u32, u32), LinkedFile>;

struct LinkedFile {
    /// Offset and length of the file's data in the archive.
    contents: (usize, usize),
    /// The file, once its first name has been unpacked.
    vnode: Option<VnodeRef>,
}

struct Unpacking {
    archive: Arc<dyn AsRef<[u8]> + Send + Sync>,
    builder: Builder,
    linked: Linked,
}

impl Unpacking {
    async fn run(&mut self, bytes: &[u8]) -> Result<(), UnpackError> {
        // First find the data of files with several names, since it may come with the last name.
        for entry in Archive::new(bytes) {
            let Ok(entry) = entry else { break };
            if entry.is_linked() {
                let file = LinkedFile { contents: entry.data, vnode: None };
                let known = self.linked.entry(entry.identity()).or_insert(file);
                if entry.data.1 > 0 {
                    known.contents = entry.data;
                }
            }
        }
        for entry in Archive::new(bytes) {
            let entry = entry.map_err(UnpackError::Corrupt)?;
            self.make(&entry, bytes).await?;
        }
        Ok(())
    }

    async fn make(&mut self, entry: &Entry<'_>, bytes: &[u8]) -> Result<(), UnpackError> {
        let mut components = entry.path.split(|&b| b == b'/').filter(|c| !c.is_empty() && *c != b".");
        let Some(mut name) = components.next() else {
            // The entry is the root directory itself.
            set_attributes(&self.builder.root(), entry).await?;
            return Ok(());
        };
        let mut directory = self.builder.root();
        for next in components {
            directory = directory_in(&directory, name).await?;
            name = next;
        }
        let attributes = NewAttributes {
            mode: entry.mode,
            user: entry.user,
            group: entry.group,
            account: None,
            lists: None,
        };
        if entry.file_type == FileType::Directory {
            let made = directory_in(&directory, name).await?;
            set_attributes(&made, entry).await?;
            return Ok(());
        }
        // A later entry of the same name replaces an earlier one.
        if let Ok(old) = directory.lookup(name).await {
            directory.remove(name, &old).await?;
        }
        let node = match entry.file_type {
            FileType::Regular => {
                let file = self.file(entry, attributes).await?;
                directory.link(name, &file).await?;
                set_attributes(&file, entry).await?;
                return Ok(());
            }
            FileType::SymbolicLink => {
                let (start, length) = entry.data;
                NewNode::SymbolicLink(&bytes[start..][..length])
            }
            file_type => NewNode::Special(file_type, entry.represents),
        };
        let made = directory.create(name, node, attributes).await?;
        set_attributes(&made, entry).await?;
        Ok(())
    }

    /// The regular file of an entry: a new one, or the one that an earlier entry made.
    async fn file(&mut self, entry: &Entry<'_>, attributes: NewAttributes) -> Result<VnodeRef, Error> {
        let linked = if entry.is_linked() { self.linked.get_mut(&entry.identity()) } else { None };
        if let Some(LinkedFile { vnode: Some(vnode), .. }) = &linked {
            return Ok(vnode.clone());
        }
        let (start, length) = linked.as_ref().map_or(entry.data, |linked| linked.contents);
        let contents = InitialContents { holder: self.archive.clone(), start, length };
        let file = self.builder.file(contents, attributes)?;
        if let Some(linked) = linked {
            linked.vnode = Some(file.clone());
        }
        Ok(file)
    }
}

/// The directory `name` in `directory`, made if it is missing.
async fn directory_in(directory: &VnodeRef, name: &[u8]) -> Result<VnodeRef, Error> {
    match directory.lookup(name).await {
        Err(Error::ENOENT) => {
            let attributes =
                NewAttributes { mode: Mode::new(0o755), user: 0, group: 0, account: None, lists: None };
            directory.create(name, NewNode::Directory, attributes).await
        }
        found => found,
    }
}

async fn set_attributes(vnode: &VnodeRef, entry: &Entry<'_>) -> Result<(), Error> {
    let time = SetTime::To(Timestamp { seconds: i64::from(entry.modified), nanoseconds: 0 });
    vnode
        .change(AttributeChange {
            mode: Some(entry.mode),
            user: Some(entry.user),
            group: Some(entry.group),
            accessed: Some(time),
            modified: Some(time),
            ..Default::default()
        })
        .await
}

/// The longest path that an entry may have.
const PATH_LIMIT: usize = crate::vfs::PATH_MAXIMUM;

/// Whether an archive may use this path: `..` could leave the root, and long names cannot be looked
/// up.
fn is_acceptable(path: &[u8]) -> bool {
    let mut components: core::slice::Split<'_, u8, _> = path.split(|&b: &u8| b == b'/');
    path.len() <= PATH_LIMIT && components.all(|c| c != b".." && c.len() <= crate::vfs::NAME_MAXIMUM)
}

/// The names of an archive's entries, for listings and tests.
pub fn names(archive: &[u8]) -> Result<Vec<Vec<u8>>, Corrupt> {
    Archive::new(archive).map(|entry| entry.map(|entry| entry.path.to_vec())).collect()
}
