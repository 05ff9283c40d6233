//! Permission checks for files (path_resolution(7), "Permissions").

use super::access_list::AccessList;
use super::metadata::{FileType, Metadata, Mode};
use super::mount::{Location, MountFlags};
use super::{Caller, Vnode};
use crate::{Error, Identity, Privilege, Privileges, Result};
use bitflags::bitflags;

bitflags! {
    /// The accesses to a file that are checked: the bits of access(2).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Access: u8 {
        /// Read the file or list the directory.
        const READ = 4;
        /// Write the file or change the directory.
        const WRITE = 2;
        /// Execute the file or search the directory.
        const EXECUTE = 1;
    }
}

/// Checks that `identity` may access the file, which has this metadata. `EACCES`.
pub(super) fn permitted(
    vnode: &dyn Vnode,
    metadata: &Metadata,
    identity: &Identity,
    access: Access,
) -> Result<()> {
    permitted_by(metadata, || vnode.access_list(), identity, access)
}

/// Checks the same for a file that has the list which `list` returns.
fn permitted_by(
    metadata: &Metadata,
    list: impl FnOnce() -> Option<AccessList>,
    identity: &Identity,
    access: Access,
) -> Result<()> {
    let mode = metadata.mode.bits();
    let is_granted = |granted: u16| Access::from_bits_retain(granted as u8 & 7).contains(access);
    let granted = if identity.user == metadata.user {
        is_granted(mode >> 6)
    } else if mode & 0o070 != 0
        && let Some(list) = list()
    {
        list.gives(metadata.group, identity, access)
    } else if identity.in_group(metadata.group) {
        is_granted(mode >> 3)
    } else {
        is_granted(mode)
    };
    if granted {
        return Ok(());
    }
    let directory = metadata.file_type == FileType::Directory;
    let executable = directory || metadata.mode.intersects(Mode::ANY_EXECUTE);
    if identity.has_over(metadata, Privilege::Override) && (!access.contains(Access::EXECUTE) || executable) {
        return Ok(());
    }
    let readable = if directory { Access::READ | Access::EXECUTE } else { Access::READ };
    if identity.has_over(metadata, Privilege::ReadSearch) && readable.contains(access) {
        return Ok(());
    }
    Err(Error::EACCES)
}

/// Checks that `identity` may access the file at a location, with the mount's options. `EACCES`,
/// `EROFS`.
pub fn permitted_at(at: &Location, identity: &Identity, access: Access) -> Result<()> {
    let metadata = at.vnode.metadata();
    if access.contains(Access::WRITE)
        && matches!(metadata.file_type, FileType::Regular | FileType::Directory | FileType::SymbolicLink)
    {
        at.mount.check_writable()?;
    }
    if access.contains(Access::WRITE) && at.vnode.is_mode_final() {
        let identity = identity.clone().with_privileges(Privileges::NONE);
        permitted(&*at.vnode, &metadata, &identity, access)?;
    }
    permitted(&*at.vnode, &metadata, identity, access)?;
    if access.contains(Access::EXECUTE)
        && metadata.file_type == FileType::Regular
        && at.mount.flags().contains(MountFlags::NO_EXECUTE)
    {
        return Err(Error::EACCES);
    }
    Ok(())
}

impl Caller<'_> {
    /// Checks that the caller may access the file with this metadata at a location.
    pub(super) fn permitted(&self, at: &Location, metadata: &Metadata, access: Access) -> Result<()> {
        permitted(&*at.vnode, metadata, self.identity, access)
            .or_else(|error| self.is_own(at, access).ok_or(error))
    }

    /// Checks that the caller may access the file at a location.
    pub(super) fn permitted_at(&self, at: &Location, access: Access) -> Result<()> {
        permitted_at(at, self.identity, access).or_else(|error| self.is_own(at, access).ok_or(error))
    }

    fn is_own(&self, at: &Location, access: Access) -> Option<()> {
        (!access.contains(Access::WRITE) && at.vnode.is_open_to(self.process)).then_some(())
    }
}

/// Whether `identity` is the file's owner or has the privilege to act as the owner.
pub fn is_owner(metadata: &Metadata, identity: &Identity) -> bool {
    identity.owns(metadata)
}

/// Checks that the directory's sticky bit does not keep `identity` from removing or renaming
/// `victim`. `EPERM`.
pub(super) fn check_sticky(directory: &Metadata, victim: &Metadata, identity: &Identity) -> Result<()> {
    let free = !directory.mode.contains(Mode::STICKY)
        || identity.user == directory.user
        || identity.user == victim.user
        || identity.has_over(victim, Privilege::Owner);
    if free { Ok(()) } else { Err(Error::EPERM) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vfs::access_list::{Entry, Tag};
    use alloc::sync::Arc;
    use proptest::prelude::*;

    fn permitted(metadata: &Metadata, identity: &Identity, access: Access) -> Result<()> {
        permitted_by(metadata, || None, identity, access)
    }

    fn file(mode: u16, file_type: FileType) -> Metadata {
        let zero = crate::Timestamp::default();
        Metadata {
            device: Default::default(),
            number: 1,
            file_type,
            mode: Mode::new(mode),
            links: 1,
            user: 10,
            group: 20,
            represents: Default::default(),
            size: 0,
            blocks: 0,
            block_size: 4096,
            accessed: zero,
            modified: zero,
            changed: zero,
            created: zero,
        }
    }

    #[test]
    fn the_first_class_that_matches_decides() {
        let owner = Identity::new(10, 1, Arc::new([]));
        let member = Identity::new(11, 1, Arc::new([5, 20]));
        let other = Identity::new(11, 1, Arc::new([]));
        let f = file(0o047, FileType::Regular);
        assert_eq!(permitted(&f, &owner, Access::READ), Err(Error::EACCES));
        assert_eq!(permitted(&f, &member, Access::READ), Ok(()));
        assert_eq!(permitted(&f, &member, Access::WRITE), Err(Error::EACCES));
        assert_eq!(permitted(&f, &other, Access::READ | Access::WRITE | Access::EXECUTE), Ok(()));
    }

    #[test]
    fn a_list_decides_about_all_but_the_owner_unless_its_mask_is_empty() {
        let entries =
            [(Tag::Owner, 0), (Tag::User(11), 6), (Tag::OwnGroup, 4), (Tag::Mask, 7), (Tag::Others, 0)];
        let list = AccessList::of(&entries.map(|(tag, rights)| Entry { tag, rights })).unwrap();
        let user = |user| Identity::new(user, 1, Arc::new([]));
        let may = |mode, user: &Identity, access| {
            permitted_by(&file(mode, FileType::Regular), || Some(list.clone()), user, access).is_ok()
        };
        assert!(may(0o070, &user(11), Access::READ | Access::WRITE));
        assert!(!may(0o070, &user(12), Access::READ) && !may(0o077, &user(12), Access::READ));
        assert!(!may(0o077, &user(10), Access::READ), "the owner has the rights of the mode");
        assert!(may(0o707, &user(12), Access::READ), "with an empty mask the mode decides");
        assert!(may(0o070, &Identity::superuser(), Access::WRITE));
    }

    #[test]
    fn the_superuser_executes_only_files_with_an_execute_bit() {
        let root = Identity::superuser();
        assert_eq!(permitted(&file(0o000, FileType::Regular), &root, Access::WRITE), Ok(()));
        assert_eq!(permitted(&file(0o666, FileType::Regular), &root, Access::EXECUTE), Err(Error::EACCES));
        assert_eq!(permitted(&file(0o001, FileType::Regular), &root, Access::EXECUTE), Ok(()));
        assert_eq!(permitted(&file(0o000, FileType::Directory), &root, Access::EXECUTE), Ok(()));
    }

    #[test]
    fn the_sticky_bit_protects_the_files_of_others() {
        let directory = file(0o1777, FileType::Directory);
        let mut victim = file(0o644, FileType::Regular);
        victim.user = 30;
        let check = |user| check_sticky(&directory, &victim, &Identity::new(user, 0, Arc::new([])));
        assert_eq!(check(30), Ok(()));
        assert_eq!(check(10), Ok(()));
        assert_eq!(check(40), Err(Error::EPERM));
    }

    proptest! {
        #[test]
        fn more_privilege_never_takes_away(mode in 0u16..0o1000, user in 9u32..12, group in 19u32..22, bits in 1u8..8) {
            let access = Access::from_bits_retain(bits);
            for file_type in [FileType::Regular, FileType::Directory] {
                let f = file(mode, file_type);
                let plain = Identity::new(user, group, Arc::new([]));
                if permitted(&f, &plain, access).is_ok() {
                    prop_assert!(permitted(&f, &plain.clone().with(Privilege::ReadSearch), access).is_ok());
                    prop_assert!(permitted(&f, &plain.with_privileges(crate::Privileges::ALL), access).is_ok());
                }
            }
        }
    }
}
