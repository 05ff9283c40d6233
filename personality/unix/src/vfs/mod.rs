//! The virtual file system: vnodes, mounts, path names, permissions, and the operations on names
//! and attributes.
//!
//! A file system implements [`Vnode`] and [`FileSystem`]; what all file systems have in common is
//! here. An operation is a method of [`Caller`], which has the process that calls and the tree as
//! that process sees it.

mod access_list;
mod anonymous;
mod attributes;
pub(crate) mod changes;
mod detached;
mod file_systems;
mod memory;
mod metadata;
mod mount;
mod names;
mod open;
mod permission;
mod propagation;
mod seals;
mod tree;
mod vnode;
mod walk;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tree_tests;

pub use access_list::{AccessList, Entry, ListKind, NewLists, Tag};
pub use changes::{Change, Changes, Observer, Observers, Observing};
pub use file_systems::FileSystemType;
pub use memory::{FileMemory, InitialContents, MemoryProvider, PAGE_SIZE, Quota, Store, UnwrittenPages};
pub use metadata::{
    AttributeChange, DeviceNumber, DirectoryEntry, FileSystemStatus, FileType, Metadata, Mode, NAME_MAXIMUM,
    OFFSET_MAXIMUM, PATH_MAXIMUM, SetTime,
};
pub use mount::{ListedMount, Location, Mount, MountFlags, Sharing};
pub use names::RenameHow;
pub use open::{OpenContext, OpenFlags};
pub use permission::{Access, is_owner, permitted_at};
pub use seals::{SealFlags, Seals};
pub use tree::{MountTree, Propagation};
pub(crate) use vnode::Attachment;
pub use vnode::{
    AttributeCondition, Extent, FileSystem, Hooks, Link, NewAttributes, NewNode, Opened, RenameEnd, Vnode,
    VnodeRef, WriteAt, same,
};
pub use walk::{Found, LINKS_MAXIMUM, Restrictions};

use crate::account::Account;
use crate::disk::Disks;
use crate::file::{DeviceDriver, OpenFile};
use crate::namespace::UserNamespace;
use crate::network::Network;
use crate::privilege::PrivilegeAttribute;
use crate::process_context::ProcessContext;
use crate::swap::Swap;
use crate::sync::SpinLock;
use crate::{Environment, Error, Identity, Result};
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};

/// The state of the file systems that all processes share.
pub struct Vfs {
    /// The tree of mounts that the first process sees.
    pub tree: Arc<MountTree>,
    /// The environment: time and randomness.
    pub environment: Arc<dyn Environment>,
    /// The disks, which have nodes in /dev.
    pub disks: Disks,
    /// The swap space.
    pub swap: Arc<Swap>,
    /// The abstract names of sockets, which are in no file system.
    pub(crate) sockets: crate::socket::Names,
    /// The network, with the sockets of the internet domains.
    pub network: Arc<Network>,
    devices: SpinLock<BTreeMap<(bool, DeviceNumber), Arc<dyn DeviceDriver>>>,
    types: file_systems::Types,
    /// The attribute in which files keep the privileges that they give.
    privileges: SpinLock<Option<&'static PrivilegeAttribute>>,
}

impl Vfs {
    /// Makes a virtual file system whose root file system has the directory `root`.
    pub fn new(root: VnodeRef, source: &str, environment: Arc<dyn Environment>) -> Arc<Vfs> {
        let tree = MountTree::new(root, source);
        let network = Network::new(environment.clone());
        Arc::new(Vfs {
            tree,
            environment,
            disks: Disks::default(),
            swap: Arc::default(),
            sockets: Default::default(),
            network,
            devices: SpinLock::new(BTreeMap::new()),
            types: Default::default(),
            privileges: SpinLock::new(None),
        })
    }

    /// Says in which attribute files keep the privileges that they give. Before that they give
    /// none.
    pub fn keep_privileges_in(&self, attribute: &'static PrivilegeAttribute) {
        *self.privileges.lock() = Some(attribute);
    }

    pub(crate) fn privilege_attribute(&self) -> Option<&'static PrivilegeAttribute> {
        *self.privileges.lock()
    }

    /// Writes what all mounted file systems have only in memory to their storage. Returns the first
    /// error; the others are written nevertheless.
    pub async fn synchronize(&self) -> Result<()> {
        let mut result = Ok(());
        for file_system in self.tree.file_systems() {
            if let Some(file_system) = file_system.upgrade() {
                result = result.and(file_system.synchronize().await);
            }
        }
        result
    }

    /// How many pages of files and disks were changed and are not stored yet.
    pub fn unwritten_pages(&self) -> UnwrittenPages {
        let mut pages = UnwrittenPages::default();
        let file_systems = self.tree.file_systems();
        file_systems.iter().filter_map(Weak::upgrade).for_each(|one| one.count_unwritten(&mut pages));
        self.disks.all().iter().for_each(|disk| pages.add(&*disk.data.memory()));
        pages
    }

    /// Ends all mounted file systems, since the system ends. Returns the first error.
    pub async fn end_file_systems(&self) -> Result<()> {
        let mut result = Ok(());
        for file_system in self.tree.file_systems() {
            if let Some(file_system) = file_system.upgrade() {
                result = result.and(file_system.end().await);
            }
        }
        result
    }

    /// Registers the driver for device nodes of this type and number.
    pub fn register_device(&self, block: bool, number: DeviceNumber, driver: Arc<dyn DeviceDriver>) {
        self.devices.lock().insert((block, number), driver);
    }

    /// The driver for device nodes of this type and number; `ENXIO` if there is none.
    pub fn device(&self, block: bool, number: DeviceNumber) -> Result<Arc<dyn DeviceDriver>> {
        self.devices.lock().get(&(block, number)).cloned().ok_or(Error::ENXIO)
    }
}

/// A process's root directory, working directory and umask: shared by its threads, copied by fork.
pub struct Directories {
    state: SpinLock<DirectoriesState>,
}

#[derive(Clone)]
struct DirectoriesState {
    tree: Arc<MountTree>,
    root: Location,
    current: Location,
    umask: Mode,
    /// How many calls of exec are under way during which no other process may begin to share these
    /// directories.
    seals: u32,
}

/// A seal on the directories, which is removed when this is dropped ([`Directories::seal`]).
pub(crate) struct Sealed<'a>(&'a Directories);

impl Drop for Sealed<'_> {
    fn drop(&mut self) {
        self.0.state.lock().seals -= 1;
    }
}

impl Directories {
    /// Directories with root and working directory at the root of `tree`, and umask 022.
    pub fn new(tree: &Arc<MountTree>) -> Directories {
        let (tree, root) = (tree.clone(), tree.root());
        let state = DirectoriesState { tree, current: root.clone(), root, umask: Mode::new(0o022), seals: 0 };
        Directories { state: SpinLock::new(state) }
    }

    /// An independent copy, for a process that does not share the directories.
    pub fn copy(&self) -> Directories {
        let state = DirectoriesState { seals: 0, ..self.state.lock().clone() };
        Directories { state: SpinLock::new(state) }
    }

    /// The tree of mounts that the process sees.
    pub fn tree(&self) -> Arc<MountTree> {
        self.state.lock().tree.clone()
    }

    /// Gives the process a copy of its tree of mounts, which belongs to `owner` and is charged to
    /// `account` (CLONE_NEWNS). `ENOMEM`.
    pub fn unshare_mounts(&self, owner: &UserNamespace, account: &Arc<Account>) -> Result<()> {
        let (tree, root, current) = {
            let state = self.state.lock();
            (state.tree.clone(), state.root.clone(), state.current.clone())
        };
        let (tree, [root, current]) = tree.copy([root, current], owner, account)?;
        let old = {
            let mut state = self.state.lock();
            let (seals, umask) = (state.seals, state.umask);
            core::mem::replace(&mut *state, DirectoriesState { tree, root, current, umask, seals })
        };
        drop(old);
        Ok(())
    }

    /// Gives the process another tree of mounts, in whose root directory it then is.
    pub fn set_tree(&self, tree: Arc<MountTree>) {
        let root = tree.root();
        let old = {
            let mut state = self.state.lock();
            let (seals, umask) = (state.seals, state.umask);
            core::mem::replace(
                &mut *state,
                DirectoriesState { tree, current: root.clone(), root, umask, seals },
            )
        };
        drop(old);
    }

    /// Whether the root directory is that of the tree.
    pub fn is_at_root(&self) -> bool {
        let (tree, root) = {
            let state = self.state.lock();
            (state.tree.clone(), state.root.clone())
        };
        tree.root().same(&root)
    }

    /// Replaces the root and the working directory if they are `old`.
    pub fn follow_pivot(&self, old: &Location, new: &Location) {
        for (current, set) in [
            (self.root(), Directories::set_root as fn(&Directories, Location)),
            (self.current(), Directories::set_current),
        ] {
            if current.same(old) {
                set(self, new.clone());
            }
        }
    }

    /// Prevents new threads from beginning to share these directories, until the result is dropped.
    pub(crate) fn seal(&self) -> Sealed<'_> {
        self.state.lock().seals += 1;
        Sealed(self)
    }

    /// Whether new threads are prevented from sharing the directories.
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

    /// Sets the file mode creation mask and returns the previous one.
    pub fn set_umask(&self, umask: Mode) -> Mode {
        core::mem::replace(&mut self.state.lock().umask, umask.intersection(Mode::new(0o777)))
    }

    /// Sets the working directory. The caller has checked that the process may enter it.
    pub fn set_current(&self, current: Location) {
        let old = core::mem::replace(&mut self.state.lock().current, current);
        drop(old);
    }

    /// Sets the root directory. The caller has checked that the process may enter it.
    pub fn set_root(&self, root: Location) {
        let old = core::mem::replace(&mut self.state.lock().root, root);
        drop(old);
    }
}

/// The process on whose behalf an operation is done. Each request makes a new one.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// The file systems.
    pub vfs: &'a Arc<Vfs>,
    /// The user and groups whose permissions apply.
    pub identity: &'a Identity,
    /// The root directory, working directory and umask.
    pub directories: &'a Directories,
    /// The process with its terminal, group and session.
    pub process: &'a dyn ProcessContext,
    /// The size in bytes that files must not exceed (RLIMIT_FSIZE); after `EFBIG` the front end
    /// sends SIGXFSZ.
    pub file_size_limit: u64,
    /// What paths must not do.
    pub restrictions: Restrictions,
}

/// The directory at which a relative path begins (the first argument of the `*at` calls).
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
