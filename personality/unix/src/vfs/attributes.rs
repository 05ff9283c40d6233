//! Operations on attributes: stat, access, chmod, chown, utimens, truncate, extended attributes,
//! statfs, mount.

use super::access_list::{AccessList, ListKind};
use super::metadata::{AttributeChange, FileSystemStatus, FileType, Metadata, Mode, OFFSET_MAXIMUM, SetTime};
use super::mount::{Location, Mount, MountFlags};
use super::permission::{Access, is_owner, permitted_at};
use super::vnode::{AttributeCondition, VnodeRef};
use super::{At, Caller, Changes, Propagation, changes};
use crate::privilege::FilePrivileges;
use crate::{Error, Identity, Privilege, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Bytes of the longest name of an extended attribute.
const ATTRIBUTE_NAME_MAXIMUM: usize = 255;
/// Bytes of the longest value of an extended attribute.
const ATTRIBUTE_VALUE_MAXIMUM: usize = 65536;

impl Caller<'_> {
    /// The metadata of a file (stat(2)); see [`Caller::find_or_self`] for `follow` and `empty`.
    pub async fn status(&self, at: &At, path: &[u8], follow: bool, empty: bool) -> Result<Metadata> {
        if let (At::File(file), true, true) = (at, empty, path.is_empty()) {
            return Ok(file.metadata());
        }
        Ok(self.find_or_self(at, path, follow, empty).await?.location.vnode.metadata())
    }

    /// Checks that `identity` (the real ids, or the effective ones with AT_EACCESS) may access a
    /// file (access(2)). An empty `access` only checks that the file exists.
    pub async fn access(
        &self,
        identity: &Identity,
        at: &At,
        path: &[u8],
        follow: bool,
        empty: bool,
        access: Access,
    ) -> Result<()> {
        let caller = Caller { identity, ..*self };
        let found = caller.find_or_self(at, path, follow, empty).await?;
        caller.permitted_at(&found.location, access)
    }

    /// Changes the mode of the file at a location (chmod(2)).
    pub async fn change_mode(&self, place: &Location, mode: Mode) -> Result<()> {
        place.mount.check_writable()?;
        let metadata = place.vnode.metadata();
        if !is_owner(&metadata, self.identity) {
            return Err(Error::EPERM);
        }
        if metadata.file_type == FileType::SymbolicLink {
            return Err(Error::EOPNOTSUPP);
        }
        let mut mode = mode;
        if !self.identity.in_group(metadata.group) && !self.identity.has_over(&metadata, Privilege::SetId) {
            mode.remove(Mode::SET_GROUP);
        }
        place.vnode.change(AttributeChange { mode: Some(mode), ..Default::default() }).await?;
        changes::happened(&place.vnode, None, Changes::ATTRIBUTES);
        Ok(())
    }

    /// Changes the owner of the file at a location (chown(2)); `None` leaves that id as it is.
    pub async fn change_owner(&self, place: &Location, user: Option<u32>, group: Option<u32>) -> Result<()> {
        place.mount.check_writable()?;
        let metadata = place.vnode.metadata();
        if !self.identity.has_over(&metadata, Privilege::Chown) {
            let owner = self.identity.user == metadata.user;
            if user.is_some_and(|user| !owner || user != metadata.user) {
                return Err(Error::EPERM);
            }
            if group
                .is_some_and(|group| !owner || (group != metadata.group && !self.identity.in_group(group)))
            {
                return Err(Error::EPERM);
            }
        }
        if metadata.file_type != FileType::Directory {
            FilePrivileges::drop_from(self.vfs, &place.vnode).await?;
        }
        let remove_mode =
            if user.is_some() || group.is_some() { lost_set_ids(&metadata) } else { Mode::empty() };
        place.vnode.change(AttributeChange { user, group, remove_mode, ..Default::default() }).await?;
        changes::happened(&place.vnode, None, Changes::ATTRIBUTES);
        Ok(())
    }

    /// Changes the times of the file at a location (utimensat(2)). If both are [`SetTime::Now`],
    /// write permission is enough; otherwise the caller must be the owner.
    pub async fn change_times(
        &self,
        place: &Location,
        accessed: Option<SetTime>,
        modified: Option<SetTime>,
    ) -> Result<()> {
        if accessed.is_none() && modified.is_none() {
            return Ok(());
        }
        place.mount.check_writable()?;
        if !is_owner(&place.vnode.metadata(), self.identity) {
            if (accessed, modified) != (Some(SetTime::Now), Some(SetTime::Now)) {
                return Err(Error::EPERM);
            }
            permitted_at(place, self.identity, Access::WRITE)?;
        }
        place.vnode.change(AttributeChange { accessed, modified, ..Default::default() }).await?;
        changes::happened(&place.vnode, None, Changes::ATTRIBUTES);
        Ok(())
    }

    /// Sets the size of the file at a path, in bytes (truncate(2)).
    pub async fn truncate(&self, at: &At, path: &[u8], size: u64) -> Result<()> {
        let place = self.find(at, path, true).await?.location;
        match place.vnode.file_type() {
            FileType::Directory => return Err(Error::EISDIR),
            FileType::Regular => {}
            _ => return Err(Error::EINVAL),
        }
        permitted_at(&place, self.identity, Access::WRITE)?;
        if place.vnode.hooks().is_some_and(|hooks| hooks.is_executing()) {
            return Err(Error::ETXTBSY);
        }
        self.truncate_vnode(&place.vnode, size).await
    }

    /// Sets the size of a file, in bytes; the caller has checked that it may be written.
    pub(crate) async fn truncate_vnode(&self, vnode: &VnodeRef, size: u64) -> Result<()> {
        if size > OFFSET_MAXIMUM {
            return Err(Error::EINVAL);
        }
        if size > self.file_size_limit && size > vnode.metadata().size {
            return Err(Error::EFBIG);
        }
        vnode.truncate(size).await?;
        changes::happened(vnode, None, Changes::MODIFY);
        self.drop_privileges(vnode).await
    }

    /// Removes what a file that is written would give: the privileges that it names, and if an
    /// unprivileged process writes, its set-id bits.
    pub(crate) async fn drop_privileges(&self, vnode: &VnodeRef) -> Result<()> {
        FilePrivileges::drop_from(self.vfs, vnode).await?;
        if self.identity.has(Privilege::SetId) {
            return Ok(());
        }
        let metadata = vnode.metadata();
        let remove_mode = lost_set_ids(&metadata);
        if remove_mode.is_empty() {
            return Ok(());
        }
        vnode.change(AttributeChange { remove_mode, ..Default::default() }).await
    }

    /// The status of the file system at a location (statfs(2)).
    pub async fn file_system_status(&self, place: &Location) -> Result<FileSystemStatus> {
        place.vnode.file_system().load_status().await
    }

    /// The value of an extended attribute.
    pub async fn attribute(&self, place: &Location, name: &[u8]) -> Result<Vec<u8>> {
        let name = self.check_attribute(place, name, Access::READ)?;
        place.vnode.attribute(name).await
    }

    /// Sets or removes an extended attribute.
    pub async fn set_attribute(
        &self,
        place: &Location,
        name: &[u8],
        value: Option<&[u8]>,
        condition: AttributeCondition,
    ) -> Result<()> {
        place.mount.check_writable()?;
        if value.is_some_and(|value| value.len() > ATTRIBUTE_VALUE_MAXIMUM) {
            return Err(Error::E2BIG);
        }
        let name = self.check_attribute(place, name, Access::WRITE)?;
        let privileges = self.vfs.privilege_attribute().filter(|privileges| privileges.name == name);
        let kept = privileges.zip(value).map(|(privileges, value)| (privileges.kept)(value)).transpose()?;
        place.vnode.set_attribute(name, kept.as_deref().or(value), condition).await?;
        changes::happened(&place.vnode, None, Changes::ATTRIBUTES);
        Ok(())
    }

    /// An access control list of a file; `None` if it has none. `EOPNOTSUPP` if it can have none.
    pub async fn list(&self, place: &Location, kind: ListKind) -> Result<Option<AccessList>> {
        check_lists(place)?;
        Ok(match kind {
            ListKind::Access => place.vnode.access_list(),
            ListKind::Default => place.vnode.default_list(),
        })
    }

    /// Sets or removes an access control list. `EPERM` unless the caller acts as the owner,
    /// `EACCES` for a default list of a file that is no directory, `EOPNOTSUPP`.
    pub async fn set_list(&self, place: &Location, kind: ListKind, list: Option<AccessList>) -> Result<()> {
        check_lists(place)?;
        place.mount.check_writable()?;
        let metadata = place.vnode.metadata();
        if !is_owner(&metadata, self.identity) {
            return Err(Error::EPERM);
        }
        let mut mode = None;
        let mut kept = list.as_ref();
        match (kind, &list) {
            (ListKind::Access, Some(list)) => {
                let all = Mode::new(0o777);
                mode = Some(metadata.mode.difference(all) | list.mode());
                kept = kept.filter(|list| !list.is_mode());
            }
            (ListKind::Default, Some(_)) if metadata.file_type != FileType::Directory => {
                return Err(Error::EACCES);
            }
            _ => {}
        }
        let value = kept.map(AccessList::bytes);
        // While there is only one of the two, nothing is allowed that neither the old nor the new
        // rights allow.
        if let Some(mode) = mode.filter(|_| value.is_none()) {
            self.change_mode(place, mode).await?;
        }
        match place.vnode.set_attribute(kind.attribute(), value, AttributeCondition::Any).await {
            Err(Error::ENODATA) if value.is_none() => {}
            done => done?,
        }
        if let Some(mode) = mode.filter(|_| value.is_some()) {
            self.change_mode(place, mode).await?;
        }
        changes::happened(&place.vnode, None, Changes::ATTRIBUTES);
        Ok(())
    }

    /// The names of the extended attributes that the caller may see, each followed by a NUL.
    pub async fn attributes(&self, place: &Location) -> Result<Vec<u8>> {
        let names = place.vnode.attributes().await?;
        if self.identity.has(Privilege::Administrator) {
            return Ok(names);
        }
        let visible = names.split_inclusive(|&b| b == 0).filter(|name| !name.starts_with(b"trusted."));
        Ok(visible.flatten().copied().collect())
    }

    /// Checks the rules of xattr(7) for the name space of `name`.
    fn check_attribute<'n>(&self, place: &Location, name: &'n [u8], access: Access) -> Result<&'n [u8]> {
        if name.is_empty() || name.len() > ATTRIBUTE_NAME_MAXIMUM {
            return Err(Error::ERANGE);
        }
        let file_type = place.vnode.file_type();
        let write = access.contains(Access::WRITE);
        let refused = if write { Error::EPERM } else { Error::ENODATA };
        if name.starts_with(b"user.") {
            let metadata = place.vnode.metadata();
            let kept = matches!(file_type, FileType::Regular | FileType::Directory);
            let sticky = file_type == FileType::Directory && metadata.mode.contains(Mode::STICKY);
            if !kept || (write && sticky && !is_owner(&metadata, self.identity)) {
                return Err(refused);
            }
            permitted_at(place, self.identity, access)?;
        } else if name.starts_with(b"trusted.") {
            if !self.identity.has(Privilege::Administrator) {
                return Err(refused);
            }
        } else if name.starts_with(b"security.") {
            let needed = match self.vfs.privilege_attribute() {
                Some(privileges) if privileges.name == name => Privilege::SetFilePrivileges,
                _ => Privilege::Administrator,
            };
            if write && !self.identity.has(needed) {
                return Err(Error::EPERM);
            }
        } else {
            return Err(Error::EOPNOTSUPP);
        }
        Ok(name)
    }

    /// Mounts a file system at a path. This needs [`Privilege::Administrator`] over the tree, as
    /// the other operations on mounts do.
    pub async fn mount(&self, path: &[u8], root: VnodeRef, source: &str, flags: MountFlags) -> Result<()> {
        let at = self.administer(path, true).await?;
        let mount = self.mount_of(root, source, flags)?;
        self.directories.tree().attach(at, &mount)
    }

    /// A mount of a file system that the caller has made. In a namespace of users that is not the
    /// first one, only those of some types can be mounted, and only where the caller has the
    /// privilege over what they show. `EPERM`.
    pub(super) fn mount_of(&self, root: VnodeRef, source: &str, flags: MountFlags) -> Result<Arc<Mount>> {
        let kind = root.file_system().status().kind;
        let owner = self.identity.namespace();
        let flags = if owner.is_first() { flags } else { flags | self.check_kind(kind)? };
        // There is one devpts, which belongs to the first namespace.
        Ok(match kind {
            "devpts" => Mount::detached(root, source, flags),
            _ => Mount::of_namespace(root, source, flags, owner),
        })
    }

    /// Checks that a caller in a namespace of users that is not the first one may mount file
    /// systems of this type. Returns the options that the mount must have. `EPERM`.
    pub(super) fn check_kind(&self, kind: &str) -> Result<MountFlags> {
        let (Some(shown), may) = (self.process.owner_of(kind), Privilege::Administrator) else {
            return Err(Error::EPERM);
        };
        if !self.identity.has_in(&shown, may) {
            return Err(Error::EPERM);
        }
        match kind {
            "proc" => self.directories.tree().check_visible(kind),
            _ => Ok(MountFlags::empty()),
        }
    }

    /// Mounts the directory (or file) `old` at `new`, too (a bind mount); with `recursive`, also
    /// what is mounted below it.
    pub async fn bind(&self, old: &[u8], new: &[u8], recursive: bool) -> Result<()> {
        let old = self.administer(old, true).await?;
        let at = self.administer(new, true).await?;
        let tree = self.directories.tree();
        let copy = tree.copy_at(&old, recursive)?;
        tree.attach(at, &copy).inspect_err(|_| tree.release(&copy))
    }

    /// Sets how the mount at `path` takes part in propagation, and with `recursive` those below it.
    /// `EINVAL` if nothing is mounted there.
    pub async fn propagate(&self, path: &[u8], kind: Propagation, recursive: bool) -> Result<()> {
        let at = self.administer(path, true).await?;
        self.directories.tree().propagate(&at, kind, recursive)
    }

    /// Changes the flags of a mount, and with `options` those of its file system.
    /// With `keeps_times` the options about access times stay.
    pub async fn remount(
        &self,
        path: &[u8],
        mut flags: MountFlags,
        keeps_times: bool,
        options: Option<&[u8]>,
    ) -> Result<()> {
        let at = self.administer(path, true).await?;
        if keeps_times {
            flags |= at.mount.flags() & MountFlags::ACCESS_TIMES;
        }
        if let Some(options) = options
            && super::same(&at.vnode, &at.mount.root().vnode)
        {
            if !self.identity.has_in(at.mount.owner(), Privilege::Administrator) {
                return Err(Error::EPERM);
            }
            let read_only = flags.contains(MountFlags::READ_ONLY);
            at.mount.check_flags(flags)?;
            at.mount.file_system().reconfigure(options, read_only).await?;
        }
        self.directories.tree().remount(&at, flags)
    }

    /// Moves a mount from `old` to `new`.
    pub async fn move_mount(&self, old: &[u8], new: &[u8]) -> Result<()> {
        let old = self.administer(old, true).await?;
        let new = self.administer(new, true).await?;
        self.directories.tree().move_mount(&old, new)
    }

    /// Makes the mount at `new` the one of the root directory, and puts the old one at `put`
    /// (pivot_root(2)). Returns the old and the new root: processes whose root or working directory
    /// is the old one are to get the new one.
    ///
    /// # Errors
    /// `EBUSY`: `new` or `put` are on the mount of the root directory. `EINVAL`: `new` is not the
    /// root of a mount, `put` is not below it, or the mounts are shared. `ENOTDIR`, and those of
    /// paths.
    pub async fn pivot_root(&self, new: &[u8], put: &[u8]) -> Result<(Location, Location)> {
        let new = self.administer(new, true).await?;
        let put = self.administer(put, true).await?;
        if [&new, &put].iter().any(|place| place.vnode.file_type() != FileType::Directory) {
            return Err(Error::ENOTDIR);
        }
        let old = self.directories.root();
        self.directories.tree().pivot(&old, &new, &put)?;
        Ok((old, new))
    }

    /// Removes a mount, as [`super::MountTree::unmount`] does.
    pub async fn unmount(&self, path: &[u8], detach: bool, follow: bool) -> Result<()> {
        // What was mounted last on a directory is removed first, also if the path leads below that.
        let at = self.administer(path, follow).await?.visible();
        let file_system = at.vnode.file_system();
        file_system.synchronize().await?;
        self.directories.tree().unmount(at, detach)?;
        let is_other = |root: &VnodeRef| !Arc::ptr_eq(&root.file_system(), &file_system);
        match self.vfs.tree.roots_of_all().iter().all(is_other) {
            // Files that are open after a detachment are used on, so the file system does not end.
            true if !detach => file_system.end().await,
            _ => Ok(()),
        }
    }

    /// Checks that the caller may mount. `EPERM`.
    pub fn check_administrator(&self) -> Result<()> {
        let may = self.identity.has_in(self.directories.tree().owner(), Privilege::Administrator);
        if may { Ok(()) } else { Err(Error::EPERM) }
    }

    async fn administer(&self, path: &[u8], follow: bool) -> Result<Location> {
        self.check_administrator()?;
        Ok(self.find(&At::Current, path, follow).await?.location)
    }
}

/// Checks that the file at a location can have access control lists. `EOPNOTSUPP`.
fn check_lists(place: &Location) -> Result<()> {
    let may = place.vnode.keeps_lists() && place.vnode.file_type() != FileType::SymbolicLink;
    if may { Ok(()) } else { Err(Error::EOPNOTSUPP) }
}

/// The set-id bits that a change of owner or content removes: none of directories, and set-group-id
/// only if it does not mean mandatory locking.
fn lost_set_ids(metadata: &Metadata) -> Mode {
    if metadata.file_type != FileType::Regular {
        return Mode::empty();
    }
    let mut lost = Mode::SET_USER;
    lost.set(Mode::SET_GROUP, metadata.mode.contains(Mode::GROUP_EXECUTE));
    lost.intersection(metadata.mode)
}
