//! Types of file systems, as mount(2) names them, and the file system of memory files, which is not
//! mounted anywhere.

use super::mount::{Location, Mount, MountFlags};
use super::vnode::{NewAttributes, VnodeRef};
use super::{Caller, Mode, OpenFlags, Vfs};
use crate::file::OpenFile;
use crate::sync::SpinLock;
use crate::{Error, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Makes a file system of some type with these options (or finds the only one of the type); returns
/// its root directory.
pub type MakeFileSystem = dyn Fn(&[u8]) -> Result<VnodeRef> + Send + Sync;

/// The types of file systems that a system has.
#[derive(Default)]
pub(super) struct Types {
    known: SpinLock<Vec<(&'static str, Arc<MakeFileSystem>)>>,
    /// The mount with the files that exist in memory only (memfd_create(2)).
    memory_files: SpinLock<Option<Arc<Mount>>>,
}

impl Vfs {
    /// Registers a type of file systems, which can be mounted from now on.
    pub fn register_file_system(&self, name: &'static str, make: Arc<MakeFileSystem>) {
        let mut known = self.types.known.lock();
        known.retain(|(other, _)| *other != name);
        known.push((name, make));
    }

    /// The names of the types of file systems.
    pub fn file_system_types(&self) -> Vec<&'static str> {
        self.types.known.lock().iter().map(|(name, _)| *name).collect()
    }

    /// Makes a file system of the type `name`. `ENODEV` if there is no such type, `EINVAL` for bad
    /// options.
    pub fn make_file_system(&self, name: &[u8], options: &[u8]) -> Result<VnodeRef> {
        let found = self.types.known.lock().iter().find(|(known, _)| known.as_bytes() == name).cloned();
        let (_, make) = found.ok_or(Error::ENODEV)?;
        make(options)
    }

    /// Sets the file system, by its root directory, in which [`Caller::make_memory_file`] makes
    /// files.
    pub fn set_memory_files(&self, root: VnodeRef) {
        *self.types.memory_files.lock() = Some(Mount::detached(root, "none", MountFlags::empty()));
    }
}

impl Caller<'_> {
    /// Makes a file in memory and opens it for reading and writing. It has no name in any
    /// directory; `name` is only shown.
    pub async fn make_memory_file(&self, name: Vec<u8>) -> Result<Arc<OpenFile>> {
        let mount = self.vfs.types.memory_files.lock().clone().ok_or(Error::ENODEV)?;
        let attributes = NewAttributes {
            mode: Mode::new(0o777),
            user: self.identity.user,
            group: self.identity.group,
            account: Some(self.process.account()),
        };
        let vnode = mount.root().vnode.create_unnamed(attributes).await?;
        let location = Location { mount: mount.clone(), vnode };
        let file = OpenFile::of_vnode(location, Some((mount.root(), name)), OpenFlags::READ_WRITE, None);
        file.forbid_linking();
        Ok(file)
    }
}
