//! Mounts: where file systems are attached to the tree, and places in it.

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
        /// Nothing can be changed through it.
        const READ_ONLY = 1;
        /// Set-id bits have no effect.
        const NO_SET_ID = 2;
        /// Devices cannot be opened.
        const NO_DEVICES = 4;
        /// Programs cannot be executed.
        const NO_EXECUTE = 8;
        /// Access times are not kept.
        const NO_ACCESS_TIME = 16;
        /// Access times of directories are not kept.
        const NO_DIRECTORY_ACCESS_TIME = 32;
        /// Access times are updated by every read, not only when older than the last change or a
        /// day.
        const STRICT_ACCESS_TIME = 64;
    }
}

/// A file system, or a directory of one, attached to the tree.
pub struct Mount {
    id: u64,
    /// What it shows at its mount point.
    root: VnodeRef,
    /// What was mounted, for listings ("proc", "/dev/sda").
    source: String,
    flags: AtomicU32,
    /// Where it is attached; `None` for the root mount and when it was detached.
    parent: SpinLock<Option<Location>>,
    /// The mounts attached to vnodes of this one, by vnode number.
    children: SpinLock<BTreeMap<u64, Arc<Mount>>>,
}

impl Mount {
    fn new(root: VnodeRef, source: &str, flags: MountFlags, parent: Option<Location>) -> Arc<Mount> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Arc::new(Mount {
            // Relaxed: only uniqueness matters.
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            root,
            source: source.into(),
            flags: AtomicU32::new(flags.bits()),
            parent: SpinLock::new(parent),
            children: SpinLock::new(BTreeMap::new()),
        })
    }

    /// A mount that is nowhere in the tree.
    pub(super) fn detached(root: VnodeRef, source: &str, flags: MountFlags) -> Arc<Mount> {
        Mount::new(root, source, flags, None)
    }

    /// Identifies the mount for listings.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Its options.
    pub fn flags(&self) -> MountFlags {
        // Relaxed: an operation that races with a remount may see either.
        MountFlags::from_bits_retain(self.flags.load(Ordering::Relaxed))
    }

    /// What was mounted, as the caller of mount named it.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The path of what it shows in its own file system.
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

    /// Its file system.
    pub fn file_system(&self) -> Arc<dyn FileSystem> {
        self.root.file_system()
    }

    /// The place that it shows at its mount point.
    pub fn root(self: &Arc<Self>) -> Location {
        Location { mount: self.clone(), vnode: self.root.clone() }
    }

    /// Where it is attached.
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

    /// `EROFS` if nothing may be changed through it.
    pub fn check_writable(&self) -> Result<()> {
        if self.flags().contains(MountFlags::READ_ONLY) { Err(Error::EROFS) } else { Ok(()) }
    }
}

/// A place in the tree: a vnode as seen through a mount.
#[derive(Clone)]
pub struct Location {
    /// The mount through which it was reached.
    pub mount: Arc<Mount>,
    /// The file there.
    pub vnode: VnodeRef,
}

impl core::fmt::Debug for Location {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "mount {} vnode {}", self.mount.id, self.vnode.number())
    }
}

impl Location {
    /// Whether both are the same vnode of the same mount.
    pub fn same(&self, other: &Location) -> bool {
        Arc::ptr_eq(&self.mount, &other.mount) && same(&self.vnode, &other.vnode)
    }

    /// What is visible here: the root of whatever is mounted on this place, and on that.
    pub fn visible(mut self) -> Location {
        while let Some(child) = self.mount.child(&*self.vnode) {
            self = child.root();
        }
        self
    }

    /// Whether something is mounted on this place.
    pub fn is_mount_point(&self) -> bool {
        self.mount.child(&*self.vnode).is_some()
    }

    /// The directory above, not leaving `root`. A directory that was removed has none above:
    /// `ENOENT`.
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

    /// The absolute path as seen from `root`; `ENOENT` if the directory was removed. A place that
    /// `root` does not contain has "(unreachable)" before its path.
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

    /// The path from the top of the tree, with " (deleted)" where it has no name left.
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
    /// The mount of files that are in no file system, such as pipes opened again by their place.
    anonymous: Arc<Mount>,
    /// In the order in which they were mounted. Every change of the tree holds this lock.
    mounts: SpinLock<Vec<Arc<Mount>>>,
}

impl MountTree {
    /// A tree with `root` as its root directory.
    pub fn new(root: VnodeRef, source: &str) -> MountTree {
        let anonymous = Mount::new(root.clone(), "none", MountFlags::empty(), None);
        let root = Mount::new(root, source, MountFlags::empty(), None);
        MountTree { anonymous, mounts: SpinLock::new(alloc::vec![root.clone()]), root }
    }

    /// The root directory.
    pub fn root(&self) -> Location {
        self.root.root().visible()
    }

    /// The place of a file that is in no file system.
    pub(crate) fn anonymous(&self, vnode: VnodeRef) -> Location {
        Location { mount: self.anonymous.clone(), vnode }
    }

    /// Whether a place is that of a file that is in no file system.
    pub(crate) fn is_anonymous(&self, place: &Location) -> bool {
        Arc::ptr_eq(&place.mount, &self.anonymous)
    }

    /// Every mount, in order.
    pub fn mounts(&self) -> Vec<Arc<Mount>> {
        self.mounts.lock().clone()
    }

    /// Attaches `root` at a place. Both are directories or neither is: `ENOTDIR`. `EBUSY` if `root`
    /// is mounted at this place already.
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

    /// Detaches the mount whose root `at` is: `EINVAL` if it is not one's root, `EBUSY` while it is
    /// used, unless `detach` (then it lives on, unseen, until its users are gone).
    pub fn unmount(&self, at: Location, detach: bool) -> Result<()> {
        let mut mounts = self.mounts.lock();
        let Location { mount, vnode } = at;
        if !same(&vnode, &mount.root) {
            return Err(Error::EINVAL);
        }
        let parent = mount.parent().ok_or(Error::EBUSY)?;
        // Three references do not mean that the mount is in use: the list's, the parent's and this
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

    /// Changes the options of the mount whose root `at` is.
    pub fn remount(&self, at: &Location, flags: MountFlags) -> Result<()> {
        if !same(&at.vnode, &at.mount.root) {
            return Err(Error::EINVAL);
        }
        at.mount.flags.store(flags.bits(), Ordering::Relaxed);
        Ok(())
    }

    /// Moves the mount whose root `from` is to another place outside it.
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

/// Whether `mount` is `above` or attached somewhere below it.
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
