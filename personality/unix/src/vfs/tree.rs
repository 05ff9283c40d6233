//! Trees of mounts. Processes of one mount namespace see one tree (mount_namespaces(7)).

use super::mount::{ListedMount, Location, Mount, MountFlags, Sharing};
use super::propagation::{below, check_types, copy_below, is_under, is_within, lock, receivers};
use super::vnode::{FileSystem, VnodeRef, same};
use crate::account::{Account, Charge};
use crate::namespace::{self, UserNamespace};
use crate::sync::{SpinGuard, SpinLock};
use crate::{Error, Result};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

/// The most mounts of a tree.
const MOUNTS_MAXIMUM: usize = 10_000;
/// Bytes of the server's memory for a mount.
pub(super) const MOUNT_BYTES: u64 = 512;

/// The tree of mounts that the processes of a mount namespace see.
pub struct MountTree {
    number: u64,
    /// The namespace of users to which the tree belongs.
    owner: UserNamespace,
    root: SpinLock<Arc<Mount>>,
    /// The mount of files that are in no file system, such as pipes that are opened through a link
    /// to an open file. All trees have the same.
    anonymous: Arc<Mount>,
    /// The mounts in the order in which they were made.
    mounts: SpinLock<Vec<Arc<Mount>>>,
    /// What the tree is charged to the user that made it; `None` for the first tree.
    charge: SpinLock<Option<Charge>>,
    /// All trees of the system. Every change of a tree locks them, since it may be propagated to
    /// others.
    all: Arc<SpinLock<Vec<Weak<MountTree>>>>,
}

/// What mount(2) makes of a mount's propagation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// Mounts are propagated to peers and from them (MS_SHARED).
    Shared,
    /// Mounts are propagated from the former peers only (MS_SLAVE).
    Slave,
    /// Nothing is propagated (MS_PRIVATE).
    Private,
    /// Nothing is propagated, and the mount cannot be bound (MS_UNBINDABLE).
    Unbindable,
}

/// A new number of a group of mounts that are peers.
fn new_group() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // Relaxed ordering: the numbers have to be unique, and order nothing else.
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The number of the first tree of a system.
const FIRST: u64 = 0xf000_0001;

/// Bytes of the server's memory for a tree with this many mounts.
fn bytes_of(mounts: usize) -> u64 {
    namespace::NAMESPACE_BYTES + MOUNT_BYTES * mounts as u64
}

/// A change of trees: the lock that every change holds, and the trees that are in use. The trees
/// are released after the lock.
struct Change<'a> {
    _lock: SpinGuard<'a, Vec<Weak<MountTree>>>,
    trees: Vec<Arc<MountTree>>,
}

impl Change<'_> {
    /// Whether a mount is in no tree yet, and below no other mount.
    fn is_detached(&self, mount: &Arc<Mount>) -> bool {
        !mount.is_gone()
            && mount.parent().is_none()
            && self.trees.iter().all(|tree| tree.check(mount).is_err())
    }
}

/// Mounts that were removed, each with the mount point from which it was detached. Files and file
/// systems that only they kept end with them, which must not happen under the lock of a change.
type Gone = Vec<(Arc<Mount>, Option<Location>)>;

impl MountTree {
    /// Makes the first tree of a system, with `root` as its root directory.
    pub fn new(root: VnodeRef, source: &str) -> Arc<MountTree> {
        let anonymous = Mount::detached(root.clone(), "none", MountFlags::empty());
        let root = Mount::detached(root, source, MountFlags::empty());
        let owner = UserNamespace::default();
        let tree = MountTree::of(FIRST, owner, alloc::vec![root], anonymous, Arc::default());
        tree.all.lock().push(Arc::downgrade(&tree));
        tree
    }

    /// A tree of these mounts, the first of which is that of its root directory.
    fn of(
        number: u64,
        owner: UserNamespace,
        mounts: Vec<Arc<Mount>>,
        anonymous: Arc<Mount>,
        all: Arc<SpinLock<Vec<Weak<MountTree>>>>,
    ) -> Arc<MountTree> {
        let (root, mounts) = (SpinLock::new(mounts[0].clone()), SpinLock::new(mounts));
        Arc::new(MountTree { number, owner, root, anonymous, mounts, charge: SpinLock::new(None), all })
    }

    /// A copy of the tree, which changes independently of it but for what is propagated, and
    /// belongs to `owner`. Other owners cannot undo what has been mounted, nor how, and nothing is
    /// propagated from them. Returned with it are the locations in the copy that are the same as
    /// the given ones. `ENOMEM` if `account` has too little for it.
    pub(crate) fn copy<const N: usize>(
        &self,
        places: [Location; N],
        owner: &UserNamespace,
        account: &Arc<Account>,
    ) -> Result<(Arc<MountTree>, [Location; N])> {
        let size = bytes_of(self.mounts.lock().len());
        let charge = account.charge_memory(size).ok_or(Error::ENOMEM)?;
        // The copy is known before the next change, which may be propagated to it.
        let mut all = self.all.lock();
        let copies = copy_below(&self.root.lock().clone(), None, true);
        let places =
            places.map(|place| match copies.iter().find(|(old, _)| Arc::ptr_eq(old, &place.mount)) {
                Some((_, mount)) => Location { mount: mount.clone(), vnode: place.vnode },
                None => place,
            });
        let mounts: Vec<_> = copies.into_iter().map(|(_, copy)| copy).collect();
        if *owner != self.owner {
            lock(&mounts);
            for mount in &mounts {
                let Sharing { peers, master, .. } = mount.sharing();
                mount.set_sharing(Sharing { master: peers.or(master), ..Sharing::default() });
            }
        }
        let number = namespace::new_number();
        let anonymous = self.anonymous.clone();
        let tree = MountTree::of(number, owner.clone(), mounts, anonymous, self.all.clone());
        *tree.charge.lock() = Some(charge);
        all.push(Arc::downgrade(&tree));
        Ok((tree, places))
    }

    /// Charges `more` mounts that are about to be added. `ENOSPC` for more than a tree may have,
    /// `ENOMEM` if the user that made the tree has too much memory.
    fn make_room(&self, more: usize) -> Result<()> {
        let count = self.mounts.lock().len() + more;
        if count > MOUNTS_MAXIMUM {
            return Err(Error::ENOSPC);
        }
        let mut charge = self.charge.lock();
        let is_charged = charge.as_mut().is_none_or(|charge| charge.change_memory(bytes_of(count)));
        if is_charged { Ok(()) } else { Err(Error::ENOMEM) }
    }

    /// The number of the tree, which no other namespace has.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The namespace of users to which the tree belongs.
    pub fn owner(&self) -> &UserNamespace {
        &self.owner
    }

    /// Whether a mount is in this tree.
    pub(crate) fn contains(&self, mount: &Arc<Mount>) -> bool {
        self.check(mount).is_ok()
    }

    /// Checks that in this tree a whole file system of this kind can be seen, so that another mount
    /// of it shows nothing that is hidden from processes that see the tree. Returns the options
    /// that the other mount must have, too. `EPERM`.
    pub(crate) fn check_visible(&self, kind: &str) -> Result<MountFlags> {
        let _change = self.change();
        let shows = |mount: &&Arc<Mount>| {
            let root = mount.root();
            let is_hidden = mount.children().iter().any(|child| child.is_locked());
            mount.file_system().status().kind == kind && root.vnode.place().is_none() && !is_hidden
        };
        let found = self.mounts().iter().find(shows).map(|mount| mount.flags());
        Ok(found.ok_or(Error::EPERM)?.intersection(MountFlags::READ_ONLY))
    }

    /// The location of the root directory.
    pub fn root(&self) -> Location {
        self.root.lock().clone().root().visible()
    }

    /// The location of a file that is in no file system.
    pub(crate) fn anonymous(&self, vnode: VnodeRef) -> Location {
        Location { mount: self.anonymous.clone(), vnode }
    }

    /// Whether a location is that of a file that is in no file system.
    pub(crate) fn is_anonymous(&self, place: &Location) -> bool {
        Arc::ptr_eq(&place.mount, &self.anonymous)
    }

    /// Every mount, in the order in which they were made. The caller must be a change of the trees:
    /// the references would make an unmount fail.
    pub(super) fn mounts(&self) -> Vec<Arc<Mount>> {
        self.mounts.lock().clone()
    }

    /// The mounts in the order in which they were made, as far as they can be reached from `root`.
    /// None of them is in use by that.
    pub fn list(&self, root: &Location) -> Vec<ListedMount> {
        let _change = self.change();
        self.mounts().iter().filter_map(|mount| ListedMount::new(mount, root)).collect()
    }

    /// The mount of this tree that has the root of a file system that `is_it` accepts.
    pub(crate) fn find(&self, is_it: impl Fn(&VnodeRef) -> bool) -> Option<Arc<Mount>> {
        let _change = self.change();
        self.mounts().into_iter().find(|mount| is_it(mount.root_vnode()))
    }

    /// The roots of all mounts of all trees of the system. No mount is in use by that.
    pub(crate) fn roots_of_all(&self) -> Vec<VnodeRef> {
        let change = self.change();
        let mounts = change.trees.iter().flat_map(|tree| tree.mounts());
        mounts.map(|mount| mount.root_vnode().clone()).collect()
    }

    /// The file systems that are mounted in the system, each once.
    pub(crate) fn file_systems(&self) -> Vec<Weak<dyn FileSystem>> {
        let mut all = BTreeMap::new();
        for root in self.roots_of_all() {
            let file_system = root.file_system();
            all.entry(Arc::as_ptr(&file_system).addr()).or_insert_with(|| Arc::downgrade(&file_system));
        }
        all.into_values().collect()
    }

    fn change(&self) -> Change<'_> {
        let lock = self.all.lock();
        let trees = lock.iter().filter_map(Weak::upgrade).collect();
        Change { _lock: lock, trees }
    }

    /// Checks that a mount is in this tree. `EINVAL`.
    fn check(&self, mount: &Arc<Mount>) -> Result<()> {
        if is_under(mount, &self.root.lock()) { Ok(()) } else { Err(Error::EINVAL) }
    }

    /// Mounts `root` at a location. `ENOTDIR` unless both or none are directories, `EBUSY` if
    /// `root` is mounted at this location already, `EINVAL` if the location is in another tree.
    pub fn mount(&self, at: Location, root: VnodeRef, source: &str, flags: MountFlags) -> Result<Arc<Mount>> {
        let mount = Mount::detached(root, source, flags);
        self.attach(at, &mount)?;
        Ok(mount)
    }

    /// Attaches a mount that is in no tree at a location, with what is mounted below it. Errors are
    /// those of [`MountTree::mount`].
    pub(crate) fn attach(&self, at: Location, mount: &Arc<Mount>) -> Result<()> {
        let change = self.change();
        let at = at.visible();
        self.check(&at.mount)?;
        let root = mount.root().vnode;
        check_types(&at, &root)?;
        if !change.is_detached(mount) {
            return Err(Error::EINVAL);
        }
        if same(&at.vnode, &root) && same(&at.vnode, &at.mount.root().vnode) {
            return Err(Error::EBUSY);
        }
        self.attach_shared(&change.trees, at, mount)
    }

    /// Attaches a mount, and copies of it wherever it is propagated and there is room. The errors
    /// are those of [`MountTree::make_room`].
    fn attach_shared(&self, trees: &[Arc<MountTree>], at: Location, mount: &Arc<Mount>) -> Result<()> {
        let mut receivers = receivers(trees, &at);
        let size = below(mount).len();
        let copies = |of: &MountTree| {
            receivers.iter().filter(|(tree, ..)| core::ptr::eq::<MountTree>(&**tree, of)).count()
        };
        self.make_room((1 + copies(self)) * size)?;
        // A namespace without room gets no copies: it cannot keep others from mounting.
        let is_full = |tree: &&Arc<MountTree>| {
            let is_other = !core::ptr::eq::<MountTree>(&***tree, self);
            let copies = if is_other { copies(tree) } else { 0 };
            copies > 0 && tree.make_room(copies * size).is_err()
        };
        let full: Vec<_> = trees.iter().filter(is_full).collect();
        receivers.retain(|(tree, ..)| !full.iter().any(|full| Arc::ptr_eq(full, tree)));
        if at.mount.sharing().peers.is_some() {
            for old in below(mount) {
                let Sharing { peers, master, .. } = old.sharing();
                let peers = peers.or_else(|| Some(new_group()));
                old.set_sharing(Sharing { peers, master, unbindable: false });
            }
        }
        // The groups of the copies in slaves, by the group of the slave and the place in the copy.
        let mut groups = BTreeMap::new();
        for (tree, at, is_slave) in receivers {
            let copies = copy_below(mount, None, true);
            for (index, (_, copy)) in copies.iter().enumerate().filter(|_| is_slave) {
                // Copies in peers are peers, and slaves of the copies in the master of those.
                let Sharing { peers, master, .. } = at.mount.sharing();
                let of_master = master.and_then(|group| groups.get(&(group, index)).copied());
                let master = of_master.or(copy.sharing().peers);
                let peers = peers.map(|group| *groups.entry((group, index)).or_insert_with(new_group));
                copy.set_sharing(Sharing { peers, master, unbindable: false });
            }
            let mounts: Vec<_> = copies.iter().map(|(_, copy)| copy.clone()).collect();
            if tree.owner != self.owner {
                lock(&mounts);
            }
            tree.mounts.lock().extend(mounts);
            copies[0].1.attach_beneath(at);
        }
        self.mounts.lock().extend(below(mount));
        mount.attach(at);
        Ok(())
    }

    /// A copy of what is at a location, which is in no tree; with `recursive` also of what is
    /// mounted below it. `EINVAL` if the location is in another tree, or the mount must not be
    /// bound.
    pub(crate) fn copy_at(&self, at: &Location, recursive: bool) -> Result<Arc<Mount>> {
        let _changes = self.all.lock();
        self.check(&at.mount)?;
        if at.mount.sharing().unbindable {
            return Err(Error::EINVAL);
        }
        let shows = |child: &Arc<Mount>| {
            child.is_locked() && child.parent().is_some_and(|place| is_within(&place.vnode, &at.vnode))
        };
        if !recursive && at.mount.children().iter().any(shows) {
            return Err(Error::EINVAL);
        }
        let copy = copy_below(&at.mount, Some(&at.vnode), recursive)[0].1.clone();
        copy.set_locked(false);
        Ok(copy)
    }

    /// Removes the mount whose root is at `at`, and the copies to which this is propagated.
    /// `EINVAL` if that is not the root of a mount of this tree, or the mount stays. `EBUSY` while
    /// it or such a copy is used, unless `detach`: they are then removed from their trees, and kept
    /// until their users are gone.
    pub fn unmount(&self, at: Location, detach: bool) -> Result<()> {
        let mut gone = Vec::new();
        let change = self.change();
        let Location { mount, vnode } = at;
        if !same(&vnode, &mount.root().vnode) {
            return Err(Error::EINVAL);
        }
        self.check(&mount)?;
        if mount.is_locked() {
            return Err(Error::EINVAL);
        }
        let parent = mount.parent().ok_or(Error::EBUSY)?;
        // A mount that is not in use has three references: the list's, the parent's and this
        // function's; and one of what is mounted on its root.
        let is_used =
            |mount: &Arc<Mount>| Arc::strong_count(mount) > 3 + usize::from(mount.on_top().is_some());
        if !detach && (is_used(&mount) || !mount.children().is_empty()) {
            return Err(Error::EBUSY);
        }
        let copies = receivers(&change.trees, &parent).into_iter();
        let copies: Vec<_> = copies
            .filter_map(|(tree, at, _)| Some((tree, at.mount.child(&*at.vnode)?)))
            .filter(|(_, copy)| same(&copy.root().vnode, &vnode))
            .filter(|(_, copy)| detach || copy.children().len() == usize::from(copy.on_top().is_some()))
            .collect();
        if !detach && copies.iter().any(|(_, copy)| is_used(copy)) {
            return Err(Error::EBUSY);
        }
        self.remove(&mount, &mut gone);
        for (tree, copy) in copies {
            tree.remove(&copy, &mut gone);
        }
        Ok(())
    }

    /// Removes a mount, and those that are mounted in it, from the tree. They are put into `gone`
    /// with their mount points, to be released after the lock. What is mounted on the root of the
    /// mount stays, at the mount point.
    fn remove(&self, mount: &Arc<Mount>, gone: &mut Gone) {
        let on_top = mount.on_top();
        gone.extend(on_top.iter().map(|above| (above.clone(), above.detach())));
        let under = below(mount);
        self.forget(&under);
        let place = mount.parent();
        gone.push((mount.clone(), mount.remove()));
        gone.extend(under.into_iter().skip(1).map(|mount| (mount.clone(), mount.remove_with_parent())));
        if let (Some(above), Some(place)) = (on_top, place) {
            above.attach(place);
        }
    }

    /// Takes mounts out of the list of the tree's mounts.
    fn forget(&self, mounts: &[Arc<Mount>]) {
        let ids: BTreeSet<u64> = mounts.iter().map(|mount| mount.id()).collect();
        self.mounts.lock().retain(|kept| !ids.contains(&kept.id()));
    }

    /// Changes the options of the mount whose root is at `at`. `EINVAL`, and `EPERM` if they are
    /// locked.
    pub fn remount(&self, at: &Location, flags: MountFlags) -> Result<()> {
        if !same(&at.vnode, &at.mount.root().vnode) {
            return Err(Error::EINVAL);
        }
        self.check(&at.mount)?;
        at.mount.check_flags(flags)?;
        at.mount.set_flags(flags);
        Ok(())
    }

    /// Sets and clears options of the mount whose root is at `at`, in this tree or in none; with
    /// `recursive`, also of the mounts below it. `EINVAL`; `EPERM` if one is locked.
    pub(crate) fn change_flags(
        &self,
        at: &Location,
        set: MountFlags,
        clear: MountFlags,
        recursive: bool,
    ) -> Result<()> {
        let _change = self.change_at(at)?;
        let chosen = if recursive { below(&at.mount) } else { alloc::vec![at.mount.clone()] };
        let new = |mount: &Mount| mount.flags().difference(clear) | set;
        chosen.iter().try_for_each(|mount| mount.check_flags(new(mount)))?;
        chosen.iter().for_each(|mount| mount.set_flags(new(mount)));
        Ok(())
    }

    /// Begins a change of the mount whose root is at `at`, in this tree or in none. `EINVAL` if it
    /// is elsewhere, or there is no such mount.
    fn change_at(&self, at: &Location) -> Result<Change<'_>> {
        let change = self.change();
        if !same(&at.vnode, &at.mount.root().vnode) {
            return Err(Error::EINVAL);
        }
        if change.trees.iter().any(|tree| tree.check(&at.mount).is_ok()) {
            self.check(&at.mount)?;
        }
        Ok(change)
    }

    /// Whether a location is the root of a mount that is in no tree, and below no other mount.
    pub(crate) fn is_detached(&self, at: &Location) -> bool {
        same(&at.vnode, &at.mount.root().vnode)
            && !self.is_anonymous(at)
            && self.change().is_detached(&at.mount)
    }

    /// Releases what is mounted below a mount that is in no tree.
    pub(crate) fn release(&self, mount: &Arc<Mount>) {
        let mut gone: Gone = Vec::new();
        let change = self.change();
        if change.is_detached(mount) {
            // Mounts refer to those above and below them: without this they would keep each other.
            gone.extend(below(mount).into_iter().map(|mount| (mount.clone(), mount.remove_with_parent())));
        }
    }

    /// Sets how the mount whose root is at `at`, in this tree or in none, takes part in
    /// propagation; with `recursive`, also the mounts below it. `EINVAL`.
    pub fn propagate(&self, at: &Location, kind: Propagation, recursive: bool) -> Result<()> {
        let change = self.change_at(at)?;
        let chosen = if recursive { below(&at.mount) } else { alloc::vec![at.mount.clone()] };
        for mount in chosen {
            let old = mount.sharing();
            let sharing = match kind {
                Propagation::Shared => {
                    Sharing { peers: old.peers.or_else(|| Some(new_group())), unbindable: false, ..old }
                }
                // The last of a group has no peers whose slave it could become.
                Propagation::Slave => {
                    let others = change.trees.iter().flat_map(|tree| tree.mounts());
                    let mut others = others.filter(|other| !Arc::ptr_eq(other, &mount));
                    let group = old.peers.filter(|_| others.any(|other| other.sharing().peers == old.peers));
                    Sharing { peers: None, master: group.or(old.master), ..old }
                }
                Propagation::Private => Sharing::default(),
                Propagation::Unbindable => Sharing { unbindable: true, ..Sharing::default() },
            };
            mount.set_sharing(sharing);
        }
        Ok(())
    }

    /// Moves the mount whose root is at `from` to a location outside it, else `ELOOP`. `EINVAL`
    /// unless both are in this tree and of one kind, or if the mount stays or is in one that is
    /// shared.
    pub fn move_mount(&self, from: &Location, to: Location) -> Result<()> {
        let change = self.change();
        let to = to.visible();
        self.check(&from.mount)?;
        self.check(&to.mount)?;
        if !same(&from.vnode, &from.mount.root().vnode) {
            return Err(Error::EINVAL);
        }
        check_types(&to, &from.vnode).map_err(|_| Error::EINVAL)?;
        let old = from.mount.parent().ok_or(Error::EINVAL)?;
        if old.mount.sharing().peers.is_some() || from.mount.is_locked() {
            return Err(Error::EINVAL);
        }
        if is_under(&to.mount, &from.mount) {
            return Err(Error::ELOOP);
        }
        from.mount.detach();
        self.forget(&below(&from.mount));
        // If there is no room for the copies to which it is propagated, it stays where it was.
        self.attach_shared(&change.trees, to, &from.mount).inspect_err(|_| {
            self.mounts.lock().extend(below(&from.mount));
            from.mount.attach(old);
        })
    }

    /// Puts the mount with the root directory `root` at `put`, and the mount whose root is at `new`
    /// where the former was (pivot_root(2)). `EBUSY` if `new` or `put` are on the mount of the root
    /// directory; `EINVAL` unless `root` and `new` are roots of mounts and `put` is below `new`.
    pub(crate) fn pivot(&self, root: &Location, new: &Location, put: &Location) -> Result<()> {
        let _change = self.change();
        // Something may have been mounted on it since its path was looked up.
        let put = &put.clone().visible();
        for place in [root, new, put] {
            self.check(&place.mount)?;
        }
        if [new, put].iter().any(|place| Arc::ptr_eq(&place.mount, &root.mount)) {
            return Err(Error::EBUSY);
        }
        let is_root = |place: &Location| same(&place.vnode, &place.mount.root().vnode);
        let is_shared = |at: Option<Location>| at.is_some_and(|at| at.mount.sharing().peers.is_some());
        let is_below = put.path(new).is_ok_and(|path| path.starts_with(b"/"));
        if !is_root(root)
            || !is_root(new)
            || !is_below
            || !new.path(root).is_ok_and(|path| path.starts_with(b"/"))
            || is_shared(new.mount.parent())
            || is_shared(root.mount.parent())
            || put.mount.sharing().peers.is_some()
            || new.mount.is_locked()
        {
            return Err(Error::EINVAL);
        }
        // What stayed at the place of the old root is now the new one.
        new.mount.set_locked(root.mount.set_locked(false));
        new.mount.detach();
        match root.mount.detach() {
            Some(place) => new.mount.attach(place),
            None => *self.root.lock() = new.mount.clone(),
        }
        root.mount.attach(put.clone());
        Ok(())
    }
}

impl Drop for MountTree {
    fn drop(&mut self) {
        // Mounts refer to those above and below them: without this they would keep each other.
        for mount in self.mounts.get_mut().iter() {
            mount.remove_with_parent();
        }
        self.all.lock().retain(|tree| tree.strong_count() > 0);
    }
}
