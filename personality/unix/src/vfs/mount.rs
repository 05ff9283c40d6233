//! Mounts, which attach file systems to the tree, and locations in the tree.

use super::vnode::{FileSystem, Vnode, VnodeRef, same};
use crate::namespace::UserNamespace;
use crate::sync::SpinLock;
use crate::{Error, Result};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bitflags::bitflags;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

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

impl MountFlags {
    /// The options that say when access times are updated.
    pub(super) const ACCESS_TIMES: MountFlags = MountFlags::NO_ACCESS_TIME
        .union(MountFlags::NO_DIRECTORY_ACCESS_TIME)
        .union(MountFlags::STRICT_ACCESS_TIME);
}

/// A mount: a file system, or a directory of one, that is attached to the tree.
pub struct Mount {
    id: u64,
    /// The root of the mount: the directory or file that is seen at the mount point.
    root: VnodeRef,
    /// The source of the mount, for listings ("proc", "/dev/sda").
    source: String,
    flags: AtomicU32,
    /// The options that stay as they are, since another namespace of users has set them.
    locked_flags: AtomicU32,
    /// Whether the mount stays where it is, since another namespace of users has put it there.
    is_locked: AtomicBool,
    /// The namespace of users in which the file system was made.
    owner: UserNamespace,
    /// The mount point; `None` for the root mount and after the mount was detached.
    parent: SpinLock<Option<Location>>,
    /// The mounts on vnodes of this mount, by vnode number.
    children: SpinLock<BTreeMap<u64, Arc<Mount>>>,
    sharing: SpinLock<Sharing>,
    /// Whether the mount was removed: it gets into no tree again.
    is_gone: AtomicBool,
}

/// How a mount takes part in the propagation of mounts (mount_namespaces(7)). The default is that
/// of a private mount, which takes no part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sharing {
    /// The group of mounts to which mounts on this one are propagated, and the other way round.
    pub peers: Option<u64>,
    /// The group whose mounts are propagated to this one.
    pub master: Option<u64>,
    /// Whether the mount cannot be bound elsewhere.
    pub unbindable: bool,
}

impl Mount {
    fn new(root: VnodeRef, source: &str, flags: MountFlags, owner: &UserNamespace) -> Arc<Mount> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Arc::new(Mount {
            // Relaxed ordering: the ids have to be unique, and order nothing else.
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            root,
            source: source.into(),
            flags: AtomicU32::new(flags.bits()),
            locked_flags: AtomicU32::new(0),
            is_locked: AtomicBool::new(false),
            owner: owner.clone(),
            parent: SpinLock::new(None),
            children: SpinLock::new(BTreeMap::new()),
            sharing: SpinLock::new(Sharing::default()),
            is_gone: AtomicBool::new(false),
        })
    }

    /// Makes a mount that is not attached to the tree.
    pub(crate) fn detached(root: VnodeRef, source: &str, flags: MountFlags) -> Arc<Mount> {
        Mount::new(root, source, flags, &UserNamespace::FIRST)
    }

    /// Makes a mount of a file system that was made in a namespace of users. Devices cannot be
    /// opened in one that is not the first one's, whatever its options become.
    pub(crate) fn of_namespace(
        root: VnodeRef,
        source: &str,
        flags: MountFlags,
        owner: &UserNamespace,
    ) -> Arc<Mount> {
        if owner.is_first() {
            return Mount::new(root, source, flags, owner);
        }
        let mount = Mount::new(root, source, flags | MountFlags::NO_DEVICES, owner);
        mount.locked_flags.store(MountFlags::NO_DEVICES.bits(), Ordering::Relaxed);
        mount
    }

    /// The namespace of users in which the file system was made.
    pub fn owner(&self) -> &UserNamespace {
        &self.owner
    }

    // Relaxed ordering, here and below: the locks are set before the mount is in a tree of those
    // that they bind.

    /// Locks the options that the mount has, since it gets into a tree of other users.
    pub(super) fn lock_flags(&self) {
        let kept = self.flags() | MountFlags::ACCESS_TIMES;
        self.locked_flags.fetch_or(kept.bits(), Ordering::Relaxed);
    }

    /// Whether the mount stays where it is.
    pub(super) fn is_locked(&self) -> bool {
        self.is_locked.load(Ordering::Relaxed)
    }

    /// Says whether the mount stays where it is; returns what was said before.
    pub(super) fn set_locked(&self, locked: bool) -> bool {
        self.is_locked.swap(locked, Ordering::Relaxed)
    }

    /// Checks that the options may become `new`. `EPERM`.
    pub(super) fn check_flags(&self, new: MountFlags) -> Result<()> {
        let locked = MountFlags::from_bits_retain(self.locked_flags.load(Ordering::Relaxed));
        let (times, others) = (MountFlags::ACCESS_TIMES, MountFlags::ACCESS_TIMES.complement());
        let old = self.flags();
        let stays = new.contains(locked & others) && (!locked.contains(times) || new & times == old & times);
        if stays { Ok(()) } else { Err(Error::EPERM) }
    }

    /// A copy that is not attached, with another directory or file of the file system as its root.
    /// It has the same peers and the same master.
    pub(super) fn copy(&self, root: VnodeRef) -> Arc<Mount> {
        let copy = Mount::new(root, &self.source, self.flags(), &self.owner);
        copy.locked_flags.store(self.locked_flags.load(Ordering::Relaxed), Ordering::Relaxed);
        copy.set_locked(self.is_locked());
        *copy.sharing.lock() = self.sharing();
        copy
    }

    /// How the mount takes part in propagation.
    pub fn sharing(&self) -> Sharing {
        *self.sharing.lock()
    }

    pub(super) fn set_sharing(&self, sharing: Sharing) {
        *self.sharing.lock() = sharing;
    }

    pub(super) fn set_flags(&self, flags: MountFlags) {
        self.flags.store(flags.bits(), Ordering::Relaxed);
    }

    /// Attaches the mount at a location.
    pub(super) fn attach(self: &Arc<Self>, at: Location) {
        at.mount.children.lock().insert(at.vnode.number(), self.clone());
        *self.parent.lock() = Some(at);
    }

    /// Attaches the mount at a location, beneath what is mounted there already.
    pub(super) fn attach_beneath(self: &Arc<Self>, at: Location) {
        let above = at.mount.child(&*at.vnode);
        self.attach(at);
        if let Some(above) = above {
            above.attach(self.root().visible());
        }
    }

    /// What is mounted on the root of the mount.
    pub(super) fn on_top(&self) -> Option<Arc<Mount>> {
        self.child(&*self.root)
    }

    /// Detaches the mount from the location at which it is attached, which is returned.
    pub(super) fn detach(&self) -> Option<Location> {
        let at = self.parent.lock().take()?;
        at.mount.children.lock().remove(&at.vnode.number());
        Some(at)
    }

    /// Whether the mount was removed.
    pub(super) fn is_gone(&self) -> bool {
        // Relaxed ordering: it is set and read under the lock of changes, or when no tree can get
        // the mount any more.
        self.is_gone.load(Ordering::Relaxed)
    }

    /// Removes the mount for good, by itself. Returns where it was.
    pub(super) fn remove(&self) -> Option<Location> {
        self.is_gone.store(true, Ordering::Relaxed);
        self.detach()
    }

    /// Removes the mount for good, together with the one on which it is. If it is locked it stays
    /// there for processes that still use that one, so that they do not see what it covers; it
    /// ends with it. Returns where it was.
    pub(super) fn remove_with_parent(&self) -> Option<Location> {
        if !self.is_locked() {
            return self.remove();
        }
        self.is_gone.store(true, Ordering::Relaxed);
        // Mounts refer to those above and below them: this way round, none keeps itself.
        self.parent.lock().take()
    }

    /// The mounts on vnodes of this mount.
    pub(super) fn children(&self) -> Vec<Arc<Mount>> {
        self.children.lock().values().cloned().collect()
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

    /// The file system of the mount.
    pub fn file_system(&self) -> Arc<dyn FileSystem> {
        self.root.file_system()
    }

    pub(super) fn root_vnode(&self) -> &VnodeRef {
        &self.root
    }

    /// The location of the mount's root.
    pub fn root(self: &Arc<Self>) -> Location {
        Location { mount: self.clone(), vnode: self.root.clone() }
    }

    /// The location at which the mount is attached; `None` if it is not attached.
    pub fn parent(&self) -> Option<Location> {
        self.parent.lock().clone()
    }

    pub(super) fn child(&self, vnode: &dyn Vnode) -> Option<Arc<Mount>> {
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

/// A mount in a list of the mounts that a process sees. It does not keep the mount in use.
pub struct ListedMount {
    /// The id of the mount.
    pub id: u64,
    /// The id of the mount on which it is; `None` for the root mount.
    pub above: Option<u64>,
    /// Where the process sees it.
    pub path: Vec<u8>,
    /// The source of the mount, as the caller of mount named it.
    pub source: String,
    /// The options of the mount.
    pub flags: MountFlags,
    /// How it takes part in propagation.
    pub sharing: Sharing,
    /// The root of the mount.
    pub root: VnodeRef,
}

impl ListedMount {
    /// `None` if a process with this root directory cannot reach the mount.
    pub(super) fn new(mount: &Arc<Mount>, root: &Location) -> Option<ListedMount> {
        let path = mount.root().path(root).ok()?;
        // The root in memory, if another is mounted over it, cannot be reached, and what is outside
        // of the root directory neither.
        path.starts_with(b"/").then(|| ListedMount {
            id: mount.id,
            above: mount.parent().map(|parent| parent.mount.id),
            path,
            source: mount.source.clone(),
            flags: mount.flags(),
            sharing: mount.sharing(),
            root: mount.root.clone(),
        })
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
