//! Mounts that are in no tree, as fsmount(2) and open_tree(2) make them, and how they get into one.

use super::mount::{Location, Mount, MountFlags};
use super::propagation::below;
use super::tree::{MOUNT_BYTES, Propagation};
use super::vnode::VnodeRef;
use super::{Caller, OpenFlags, Vfs};
use crate::account::Charge;
use crate::file::{FileObject, OpenFile};
use crate::{Error, Result};
use alloc::sync::Arc;

/// A mount that was made in no tree, with what is mounted below it. It is released with the file
/// that shows it, unless it has been attached to a tree.
struct Detached {
    vfs: Arc<Vfs>,
    mount: Arc<Mount>,
    _charge: Charge,
}

impl FileObject for Detached {
    fn label(&self) -> &'static str {
        "mount"
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        self.vfs.tree.release(&self.mount);
    }
}

impl Caller<'_> {
    /// Opens a mount that is in no tree, and charges it to the caller. `ENOMEM`.
    fn open_detached(&self, mount: Arc<Mount>) -> Result<Arc<OpenFile>> {
        let root = mount.root();
        let size = MOUNT_BYTES * below(&mount).len() as u64;
        let charge = self.process.account().charge_memory(size);
        let charge = charge.ok_or(Error::ENOMEM).inspect_err(|_| self.vfs.tree.release(&mount))?;
        let object = Arc::new(Detached { vfs: self.vfs.clone(), mount, _charge: charge });
        Ok(OpenFile::of_vnode(root, None, OpenFlags::PATH, Some(object)))
    }

    /// Makes a mount of a file system, by its root directory, that is in no tree, and opens it
    /// (fsmount(2)). `EPERM`.
    pub fn make_mount(&self, root: VnodeRef, source: &str, flags: MountFlags) -> Result<Arc<OpenFile>> {
        self.check_administrator()?;
        self.open_detached(self.mount_of(root, source, flags)?)
    }

    /// Opens a location as O_PATH does.
    pub fn open_location(&self, at: Location) -> Arc<OpenFile> {
        OpenFile::of_vnode(at, None, OpenFlags::PATH, None)
    }

    /// Copies the mount at a location from there on, with `recursive` also those below, and opens
    /// the copy, which is in no tree (open_tree(2)). `EPERM`, `EINVAL`.
    pub fn copy_mount(&self, at: &Location, recursive: bool) -> Result<Arc<OpenFile>> {
        self.check_administrator()?;
        self.open_detached(self.directories.tree().copy_at(at, recursive)?)
    }

    /// Moves a mount, by its root, to a location, from elsewhere in the tree or from no tree
    /// (move_mount(2)). `EPERM`, and the errors of mounts.
    pub fn move_mount_to(&self, from: &Location, to: Location) -> Result<()> {
        self.check_administrator()?;
        let tree = self.directories.tree();
        match tree.is_detached(from) {
            true => tree.attach(to, &from.mount),
            false => tree.move_mount(from, to),
        }
    }

    /// Sets and clears options of the mount whose root is at a location, and says how it takes part
    /// in propagation; with `recursive` also for the mounts below it (mount_setattr(2)). `EPERM`,
    /// `EINVAL`.
    pub fn change_mount(
        &self,
        at: &Location,
        (set, clear): (MountFlags, MountFlags),
        propagation: Option<Propagation>,
        recursive: bool,
    ) -> Result<()> {
        self.check_administrator()?;
        let tree = self.directories.tree();
        tree.change_flags(at, set, clear, recursive)?;
        propagation.map_or(Ok(()), |kind| tree.propagate(at, kind, recursive))
    }
}
