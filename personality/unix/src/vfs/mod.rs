//! The virtual file system: vnodes, mounts, path names, permissions, and the operations on names
//! and attributes.
//!
//! A file system implements [`Vnode`] and [`FileSystem`]; everything that is the same for all of
//! them is here, once. An operation is a method of [`Caller`]: the process that asks, and the tree
//! as that process sees it.

mod anonymous;
mod attributes;
pub(crate) mod changes;
mod file_systems;
mod memory;
mod metadata;
mod mount;
mod names;
mod open;
mod permission;
mod vnode;
mod walk;

#[cfg(test)]
mod tests;

pub use changes::{Change, Changes, Observer, Observers, Observing};
pub use file_systems::MakeFileSystem;
pub use memory::{FileMemory, InitialContents, MemoryProvider, PAGE_SIZE, Quota};
pub use metadata::{
    AttributeChange, DeviceNumber, DirectoryEntry, FileSystemStatus, FileType, Metadata, Mode, NAME_MAXIMUM,
    OFFSET_MAXIMUM, PATH_MAXIMUM, SetTime,
};
pub use mount::{Location, Mount, MountFlags, MountTree};
pub use names::RenameHow;
pub use open::{OpenContext, OpenFlags};
pub use permission::{Access, is_owner, permitted, permitted_at};
pub(crate) use vnode::Attachment;
pub use vnode::{
    AttributeCondition, FileSystem, Hooks, Link, NewAttributes, NewNode, Opened, RenameEnd, Vnode, VnodeRef,
    WriteAt, same,
};
pub use walk::{Found, LINKS_MAXIMUM};

use crate::file::{DeviceDriver, OpenFile};
use crate::process_context::ProcessContext;
use crate::sync::SpinLock;
use crate::{Environment, Error, Identity, Result};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;

/// Everything that all processes share of the file system.
pub struct Vfs {
    /// The tree of mounts.
    pub tree: MountTree,
    /// Time and randomness.
    pub environment: Arc<dyn Environment>,
    /// The names of sockets that are in no file system.
    pub(crate) sockets: crate::socket::Names,
    devices: SpinLock<BTreeMap<(bool, DeviceNumber), Arc<dyn DeviceDriver>>>,
    types: file_systems::Types,
}

impl Vfs {
    /// A file system whose root directory is `root`.
    pub fn new(root: VnodeRef, source: &str, environment: Arc<dyn Environment>) -> Arc<Vfs> {
        let tree = MountTree::new(root, source);
        Arc::new(Vfs {
            tree,
            environment,
            sockets: Default::default(),
            devices: SpinLock::new(BTreeMap::new()),
            types: Default::default(),
        })
    }

    /// Device nodes of this type and number are served by `driver` from now on.
    pub fn register_device(&self, block: bool, number: DeviceNumber, driver: Arc<dyn DeviceDriver>) {
        self.devices.lock().insert((block, number), driver);
    }

    /// The driver of a device; `ENXIO` if there is none.
    pub fn device(&self, block: bool, number: DeviceNumber) -> Result<Arc<dyn DeviceDriver>> {
        self.devices.lock().get(&(block, number)).cloned().ok_or(Error::ENXIO)
    }
}

/// A process's root and working directory and its umask: shared by threads, copied by fork.
pub struct Directories {
    state: SpinLock<DirectoriesState>,
}

#[derive(Clone)]
struct DirectoriesState {
    root: Location,
    current: Location,
    umask: Mode,
    /// How many calls of exec are under way that must not see another process begin to share these
    /// directories.
    seals: u32,
}

/// See [`Directories::seal`].
pub(crate) struct Sealed<'a>(&'a Directories);

impl Drop for Sealed<'_> {
    fn drop(&mut self) {
        self.0.state.lock().seals -= 1;
    }
}

impl Directories {
    /// Root and working directory at `root`; umask 022.
    pub fn new(root: Location) -> Directories {
        let state = DirectoriesState { current: root.clone(), root, umask: Mode::new(0o022), seals: 0 };
        Directories { state: SpinLock::new(state) }
    }

    /// An independent copy (fork without CLONE_FS).
    pub fn copy(&self) -> Directories {
        let state = DirectoriesState { seals: 0, ..self.state.lock().clone() };
        Directories { state: SpinLock::new(state) }
    }

    /// Until the answer is dropped, no new thread may share these directories.
    pub(crate) fn seal(&self) -> Sealed<'_> {
        self.state.lock().seals += 1;
        Sealed(self)
    }

    /// Whether no new thread may share them at present.
    pub(crate) fn is_sealed(&self) -> bool {
        self.state.lock().seals > 0
    }

    /// The root directory.
    pub fn root(&self) -> Location {
        self.state.lock().root.clone()
    }

    /// The working directory.
    pub fn current(&self) -> Location {
        self.state.lock().current.clone()
    }

    /// The file mode creation mask.
    pub fn umask(&self) -> Mode {
        self.state.lock().umask
    }

    /// Sets the mask and returns the previous one.
    pub fn set_umask(&self, umask: Mode) -> Mode {
        core::mem::replace(&mut self.state.lock().umask, umask.intersection(Mode::new(0o777)))
    }

    /// Sets the working directory (the caller has checked it).
    pub fn set_current(&self, current: Location) {
        let old = core::mem::replace(&mut self.state.lock().current, current);
        drop(old);
    }

    /// Sets the root directory (the caller has checked it).
    pub fn set_root(&self, root: Location) {
        let old = core::mem::replace(&mut self.state.lock().root, root);
        drop(old);
    }
}

/// On whose behalf an operation is done. Each request makes a new one.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// The file system.
    pub vfs: &'a Arc<Vfs>,
    /// Whose permissions count.
    pub identity: &'a Identity,
    /// Root, working directory and umask.
    pub directories: &'a Directories,
    /// The process: its terminal, group and session.
    pub process: &'a dyn ProcessContext,
    /// Files must not grow beyond (RLIMIT_FSIZE); `EFBIG` then stands for SIGXFSZ as well.
    pub file_size_limit: u64,
}

/// Where relative paths begin (the first argument of the `*at` calls).
#[derive(Clone)]
pub enum At {
    /// The working directory (AT_FDCWD).
    Current,
    /// The directory that this descriptor refers to.
    File(Arc<OpenFile>),
}

impl At {
    fn location(&self, caller: &Caller<'_>) -> Result<Location> {
        match self {
            At::Current => Ok(caller.directories.current()),
            At::File(file) => file.location().cloned().ok_or(Error::ENOTDIR),
        }
    }

    fn directory(&self, caller: &Caller<'_>) -> Result<Location> {
        let location = self.location(caller)?;
        if location.vnode.file_type() != FileType::Directory {
            return Err(Error::ENOTDIR);
        }
        Ok(location)
    }
}
