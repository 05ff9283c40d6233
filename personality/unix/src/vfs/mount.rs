//! Mounts, which attach file systems to the tree, and locations in the tree.

use super::vnode::{FileSystem, Vnode, VnodeRef, same};
use crate::sync::SpinLock;
use crate::{Error, Result};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bitflags::bitflags;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

bitflags! {
    /// Options of a mount (mount(2)).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct MountFlags: u32 {
        /// No file can be changed through the mount (MS_RDONLY).
        const READ_ONLY = 1;
        /// Set-id bits have no effect (MS_NOSUID).
        const NO_SET_ID = 2;
        /// Devices cannot be opened (MS_NODEV).
        const NO_DEVICES = 4;
        /// Programs cannot be executed (MS_NOEXEC).
        const NO_EXECUTE = 8;
        /// Access times are not updated (MS_NOATIME).
        const NO_ACCESS_TIME = 16;
        /// Access times of directories are not updated (MS_NODIRATIME).
        const NO_DIRECTORY_ACCESS_TIME = 32;
        /// Access times are updated by every read (MS_STRICTATIME), not only if they are a day old
        /// or older than the last change.
        const STRICT_ACCESS_TIME = 64;
    }
}

/// A mount: a file system, or a directory of one, that is attached to the tree.
pub struct Mount {
    id: u64,
    /// The root of the mount: the directory or file that is seen at the mount point.
    root: VnodeRef,
    /// The source of the mount, for listings ("proc", "/dev/sda").
    source: String,
    flags: AtomicU32,
    /// The mount point; `None` for the root mount and after the mount was detached.
    parent: SpinLock<Option<Location>>,
    /// The mounts on vnodes of this mount, by vnode number.
    children: SpinLock<BTreeMap<u64, Arc<Mount>>>,
}

impl Mount {
    fn new(root: VnodeRef, source: &str, flags: MountFlags, parent: Option<Location>) -> Arc<Mount> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Arc::new(Mount {
            // Relaxed ordering: the ids have to be unique, and order nothing else.
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            root,
            source: source.into(),
            flags: AtomicU32::new(flags.bits()),
            parent: SpinLock::new(parent),
            children: SpinLock::new(BTreeMap::new()),
        })
    }

    /// Makes a mount that is not attached to the tree.
    pub(crate) fn detached(root: VnodeRef, source: &str, flags: MountFlags) -> Arc<Mount> {
        Mount::new(root, source, flags, None)
    }

    /// The id that identifies the mount in listings.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The options of the mount.
    pub fn flags(&self) -> MountFlags {
        // Relaxed ordering: an operation during a remount may see the old or the new options.
        MountFlags::from_bits_retain(self.flags.load(Ordering::Relaxed))
    }

    /// The source of the mount, as the caller of mount named it.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The path of the mount's root in its own file system.
    pub fn root_path(&self) -> Vec<u8> {
        let mut names: Vec<Vec<u8>> = Vec::new();
        let mut here = self.root.clone();
        while let Some((parent, name)) = here.place() {
            names.push(name);
            here = parent;
        }
        let mut path = Vec::new();
        for name in names.iter().rev() {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        if names.is_empty() {
            path.push(b'/');
        }
        path
    }

    /// The file system of the mount.
    pub fn file_system(&self) -> Arc<dyn FileSystem> {
        self.root.file_system()
    }

    /// The location of the mount's root.
    pub fn root(self: &Arc<Self>) -> Location {
        Location { mount: self.clone(), vnode: self.root.clone() }
    }

    /// The location at which the mount is attached; `None` if it is not attached.
    pub fn parent(&self) -> Option<Location> {
        self.parent.lock().clone()
    }

    fn child(&self, vnode: &dyn Vnode) -> Option<Arc<Mount>> {
        let children = self.children.lock();
        if children.is_empty() {
            return None;
        }
        children.get(&vnode.number()).cloned()
    }

    /// Checks that files may be changed through the mount. `EROFS`.
    pub fn check_writable(&self) -> Result<()> {
        let read_only = self.flags().contains(MountFlags::READ_ONLY) || self.file_system().is_read_only();
        if read_only { Err(Error::EROFS) } else { Ok(()) }
    }
}

/// A location in the tree: a vnode as seen through a mount.
#[derive(Clone)]
pub struct Location {
    /// The mount through which the vnode was reached.
    pub mount: Arc<Mount>,
    /// The vnode at the location.
    pub vnode: VnodeRef,
}

impl core::fmt::Debug for Location {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "mount {} vnode {}", self.mount.id, self.vnode.number())
    }
}

impl Location {
    /// Whether both locations are the same vnode of the same mount.
    pub fn same(&self, other: &Location) -> bool {
        Arc::ptr_eq(&self.mount, &other.mount) && same(&self.vnode, &other.vnode)
    }

    /// What is visible at the location: the root of the last file system that is mounted on it, or
    /// the location itself.
    pub fn visible(mut self) -> Location {
        while let Some(child) = self.mount.child(&*self.vnode) {
            self = child.root();
        }
        self
    }

    /// Whether a file system is mounted on this location.
    pub fn is_mount_point(&self) -> bool {
        self.mount.child(&*self.vnode).is_some()
    }

    /// The parent directory; at `root` it is `root` itself. `ENOENT` for a directory that was
    /// removed.
    pub fn up(&self, root: &Location) -> Result<Location> {
        let mut here = self.clone();
        loop {
            if here.same(root) {
                return Ok(here);
            }
            if same(&here.vnode, &here.mount.root) {
                match here.mount.parent() {
                    Some(parent) => here = parent,
                    None => return Ok(here),
                }
            } else {
                let vnode = here.vnode.parent().ok_or(Error::ENOENT)?;
                return Ok(Location { mount: here.mount, vnode }.visible());
            }
        }
    }

    /// The absolute path of the location as seen from `root`; `ENOENT` if the directory was
    /// removed. The path begins with "(unreachable)" if the location is not below `root`.
    pub fn path(&self, root: &Location) -> Result<Vec<u8>> {
        let mut names: Vec<Vec<u8>> = Vec::new();
        let mut here = self.clone();
        let reachable = loop {
            if here.same(root) {
                break true;
            }
            if same(&here.vnode, &here.mount.root) {
                match here.mount.parent() {
                    Some(parent) => here = parent,
                    None => break same(&here.vnode, &root.vnode),
                }
                continue;
            }
            let (parent, name) = here.vnode.place().ok_or(Error::ENOENT)?;
            names.push(name);
            here.vnode = parent;
        };
        let mut path = Vec::new();
        if !reachable {
            path.extend_from_slice(b"(unreachable)");
        }
        for name in names.iter().rev() {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        if names.is_empty() {
            path.push(b'/');
        }
        Ok(path)
    }

    /// The path from the root of the tree, with " (deleted)" appended if the file has no name any
    /// more.
    pub async fn path_from_root(&self) -> Vec<u8> {
        let mut top = self.mount.clone();
        while let Some(parent) = top.parent() {
            top = parent.mount;
        }
        self.path(&top.root()).unwrap_or_else(|_| b"/ (deleted)".to_vec())
    }
}

/// The tree of mounts that processes see.
pub struct MountTree {
    root: Arc<Mount>,
    /// The mount of files that are in no file system, such as pipes that are opened through a link
    /// to an open file.
    anonymous: Arc<Mount>,
    /// The mounts in the order in which they were made. Every change of the tree locks this.
    mounts: SpinLock<Vec<Arc<Mount>>>,
}

impl MountTree {
    /// Makes a tree with `root` as its root directory.
    pub fn new(root: VnodeRef, source: &str) -> MountTree {
        let anonymous = Mount::new(root.clone(), "none", MountFlags::empty(), None);
        let root = Mount::new(root, source, MountFlags::empty(), None);
        MountTree { anonymous, mounts: SpinLock::new(alloc::vec![root.clone()]), root }
    }

    /// The location of the root directory.
    pub fn root(&self) -> Location {
        self.root.root().visible()
    }

    /// The location of a file that is in no file system.
    pub(crate) fn anonymous(&self, vnode: VnodeRef) -> Location {
        Location { mount: self.anonymous.clone(), vnode }
    }

    /// Whether a location is that of a file that is in no file system.
    pub(crate) fn is_anonymous(&self, place: &Location) -> bool {
        Arc::ptr_eq(&place.mount, &self.anonymous)
    }

    /// Every mount, in the order in which they were made.
    pub fn mounts(&self) -> Vec<Arc<Mount>> {
        self.mounts.lock().clone()
    }

    /// Mounts `root` at a location. `ENOTDIR` unless both or none are directories, `EBUSY` if
    /// `root` is mounted at this location already.
    pub fn mount(&self, at: Location, root: VnodeRef, source: &str, flags: MountFlags) -> Result<Arc<Mount>> {
        use super::FileType::Directory;
        if (at.vnode.file_type() == Directory) != (root.file_type() == Directory) {
            return Err(Error::ENOTDIR);
        }
        let mut mounts = self.mounts.lock();
        let at = at.visible();
        if same(&at.vnode, &root) && same(&at.vnode, &at.mount.root) {
            return Err(Error::EBUSY);
        }
        let mount = Mount::new(root, source, flags, Some(at.clone()));
        at.mount.children.lock().insert(at.vnode.number(), mount.clone());
        mounts.push(mount.clone());
        Ok(mount)
    }

    /// Removes the mount whose root is at `at`: `EINVAL` if that is not the root of a mount,
    /// `EBUSY` while it is used, unless `detach` (the mount is then removed from the tree, and kept
    /// until its users are gone).
    pub fn unmount(&self, at: Location, detach: bool) -> Result<()> {
        let mut mounts = self.mounts.lock();
        let Location { mount, vnode } = at;
        if !same(&vnode, &mount.root) {
            return Err(Error::EINVAL);
        }
        let parent = mount.parent().ok_or(Error::EBUSY)?;
        // The mount is not in use if there are three references: the list's, the parent's and this
        // function's.
        if !detach && (Arc::strong_count(&mount) > 3 || !mount.children.lock().is_empty()) {
            return Err(Error::EBUSY);
        }
        parent.mount.children.lock().remove(&parent.vnode.number());
        *mount.parent.lock() = None;
        let gone: Vec<_> = mounts.extract_if(.., |m| is_under(m, &mount)).collect();
        drop(mounts);
        drop(gone);
        Ok(())
    }

    /// Changes the options of the mount whose root is at `at`.
    pub fn remount(&self, at: &Location, flags: MountFlags) -> Result<()> {
        if !same(&at.vnode, &at.mount.root) {
            return Err(Error::EINVAL);
        }
        at.mount.flags.store(flags.bits(), Ordering::Relaxed);
        Ok(())
    }

    /// Moves the mount whose root is at `from` to a location outside it.
    pub fn move_mount(&self, from: &Location, to: Location) -> Result<()> {
        let _changes = self.mounts.lock();
        let to = to.visible();
        if !same(&from.vnode, &from.mount.root) || is_under(&to.mount, &from.mount) {
            return Err(Error::EINVAL);
        }
        let old = from.mount.parent().ok_or(Error::EINVAL)?;
        old.mount.children.lock().remove(&old.vnode.number());
        *from.mount.parent.lock() = Some(to.clone());
        to.mount.children.lock().insert(to.vnode.number(), from.mount.clone());
        Ok(())
    }
}

/// Whether `mount` is `above` itself, or is mounted in it, directly or through other mounts.
fn is_under(mount: &Arc<Mount>, above: &Arc<Mount>) -> bool {
    let mut mount = mount.clone();
    loop {
        if Arc::ptr_eq(&mount, above) {
            return true;
        }
        match mount.parent() {
            Some(parent) => mount = parent.mount,
            None => return false,
        }
    }
}
