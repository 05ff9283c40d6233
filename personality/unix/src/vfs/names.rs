//! Operations on names: mkdir, mknod, link, symlink, unlink, rmdir, rename, readlink, getcwd,
//! chdir, chroot.

use super::metadata::{DeviceNumber, FileType, Metadata, Mode};
use super::mount::Location;
use super::permission::{Access, check_sticky, is_owner, permitted, permitted_at};
use super::vnode::{NewNode, RenameEnd, VnodeRef, same};
use super::walk::Last;
use super::{At, Caller, Changes, changes};
use crate::account::Setting;
use crate::{Error, Privilege, Result};
use alloc::vec::Vec;

/// What rename does if the new name exists (renameat2(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RenameHow {
    /// The file that has the new name is replaced.
    #[default]
    Replace,
    /// The call fails with `EEXIST` if the new name exists (RENAME_NOREPLACE).
    NoReplace,
    /// The two files are exchanged (RENAME_EXCHANGE).
    Exchange,
}

impl Caller<'_> {
    /// Makes a directory.
    pub async fn make_directory(&self, at: &At, path: &[u8], mode: Mode) -> Result<()> {
        let mode = mode.intersection(Mode::new(0o1777));
        self.add(at, path, NewNode::Directory, mode).await.map(drop)
    }

    /// Makes a symbolic link at `path` that leads to `target`.
    pub async fn make_link(&self, target: &[u8], at: &At, path: &[u8]) -> Result<()> {
        if target.is_empty() {
            return Err(Error::ENOENT);
        }
        self.add(at, path, NewNode::SymbolicLink(target), Mode::new(0o777)).await.map(drop)
    }

    /// Makes an empty file, FIFO, socket name or device node.
    pub async fn make_node(
        &self,
        at: &At,
        path: &[u8],
        file_type: FileType,
        mode: Mode,
        device: DeviceNumber,
    ) -> Result<VnodeRef> {
        let node = match file_type {
            FileType::Regular => NewNode::Regular,
            FileType::Fifo | FileType::Socket => NewNode::Special(file_type, DeviceNumber::default()),
            FileType::CharacterDevice | FileType::BlockDevice => {
                if !self.identity.has(Privilege::MakeNode) {
                    return Err(Error::EPERM);
                }
                NewNode::Special(file_type, device)
            }
            FileType::Directory => return Err(Error::EPERM),
            FileType::SymbolicLink | FileType::Anonymous => return Err(Error::EINVAL),
        };
        self.add(at, path, node, mode).await
    }

    async fn add(&self, at: &At, path: &[u8], node: NewNode<'_>, mode: Mode) -> Result<VnodeRef> {
        let (directory, last) = self.find_directory(at, path).await?;
        let Last::Name { name, directory: slash } = last else {
            return Err(Error::EEXIST);
        };
        let is_directory = matches!(node, NewNode::Directory);
        match directory.vnode.lookup(&name).await {
            Ok(_) => return Err(Error::EEXIST),
            Err(Error::ENOENT) if slash && !is_directory => return Err(Error::ENOENT),
            Err(Error::ENOENT) => {}
            Err(error) => return Err(error),
        }
        let mut attributes = self.new_attributes(&directory, mode, is_directory)?;
        if matches!(node, NewNode::SymbolicLink(_)) {
            attributes.mode = Mode::new(0o777);
            attributes.lists = None;
        }
        let made = directory.vnode.create(&name, node, attributes).await?;
        changes::created(&directory.vnode, &name, &made);
        Ok(made)
    }

    /// Gives the file at `old` another name. With `follow`, a symbolic link at `old` is followed;
    /// with `empty`, an empty `old` means the file of `old_at`.
    pub async fn link(
        &self,
        old_at: &At,
        old: &[u8],
        follow: bool,
        empty: bool,
        new_at: &At,
        new: &[u8],
    ) -> Result<()> {
        if let (At::File(file), true, true) = (old_at, empty, old.is_empty())
            && (!file.may_link() || !self.identity.has(Privilege::ReadSearch))
        {
            return Err(Error::ENOENT);
        }
        let target = self.find_or_self(old_at, old, follow, empty).await?.location;
        let (directory, last) = self.find_directory(new_at, new).await?;
        let Last::Name { name, directory: slash } = last else {
            return Err(Error::EEXIST);
        };
        match directory.vnode.lookup(&name).await {
            Ok(_) => return Err(Error::EEXIST),
            Err(Error::ENOENT) if slash => return Err(Error::ENOENT),
            Err(Error::ENOENT) => {}
            Err(error) => return Err(error),
        }
        if !alloc::sync::Arc::ptr_eq(&directory.mount, &target.mount) {
            return Err(Error::EXDEV);
        }
        permitted_at(&directory, self.identity, Access::WRITE | Access::EXECUTE)?;
        if target.vnode.file_type() == FileType::Directory || !self.may_link(&target.vnode) {
            return Err(Error::EPERM);
        }
        directory.vnode.link(&name, &target.vnode).await?;
        changes::happened(&target.vnode, None, Changes::ATTRIBUTES);
        changes::created(&directory.vnode, &name, &target.vnode);
        Ok(())
    }

    /// Whether the caller may give a file another name. It may if it owns the file. A file of
    /// another user must be one that the caller may read and write, and that lends no privileges to
    /// a process that executes it (proc(5), protected_hardlinks).
    fn may_link(&self, vnode: &VnodeRef) -> bool {
        let target = &vnode.metadata();
        if !self.process.account().settings().is_on(Setting::ProtectedHardLinks) {
            return true;
        }
        let lends = target.mode.contains(Mode::SET_USER)
            || target.mode.contains(Mode::SET_GROUP | Mode::GROUP_EXECUTE);
        let plain = target.file_type == FileType::Regular && !lends;
        is_owner(target, self.identity)
            || (plain && permitted(&**vnode, target, self.identity, Access::READ | Access::WRITE).is_ok())
    }

    /// Removes a name of a file that is not a directory.
    pub async fn unlink(&self, at: &At, path: &[u8]) -> Result<()> {
        let (directory, last) = self.find_directory(at, path).await?;
        let Last::Name { name, directory: slash } = last else {
            return Err(Error::EISDIR);
        };
        self.remove(&directory, &name, |victim| match victim.file_type {
            FileType::Directory => Err(Error::EISDIR),
            _ if slash => Err(Error::ENOTDIR),
            _ => Ok(()),
        })
        .await
    }

    /// Removes an empty directory.
    pub async fn remove_directory(&self, at: &At, path: &[u8]) -> Result<()> {
        let (directory, last) = self.find_directory(at, path).await?;
        let name = match last {
            Last::Name { name, .. } => name,
            Last::Dot => return Err(Error::EINVAL),
            Last::DotDot => return Err(Error::ENOTEMPTY),
            Last::Here => return Err(Error::EBUSY),
        };
        self.remove(&directory, &name, |victim| match victim.file_type {
            FileType::Directory => Ok(()),
            _ => Err(Error::ENOTDIR),
        })
        .await
    }

    async fn remove(
        &self,
        directory: &Location,
        name: &[u8],
        check: impl Fn(&Metadata) -> Result<()>,
    ) -> Result<()> {
        loop {
            let victim = self.look_in(directory, name).await?;
            self.check_removal(directory, &victim)?;
            check(&victim.vnode.metadata())?;
            if victim.is_mount_point() {
                return Err(Error::EBUSY);
            }
            match directory.vnode.remove(name, &victim.vnode).await {
                Err(Error::ESTALE) => continue,
                Err(error) => return Err(error),
                Ok(()) => {
                    changes::removed(&directory.vnode, name, &victim.vnode);
                    return Ok(());
                }
            }
        }
    }

    /// The file that has this name in a directory, not what is mounted on it.
    async fn look_in(&self, directory: &Location, name: &[u8]) -> Result<Location> {
        permitted_at(directory, self.identity, Access::EXECUTE)?;
        let vnode = directory.vnode.lookup(name).await?;
        Ok(Location { mount: directory.mount.clone(), vnode })
    }

    fn check_removal(&self, directory: &Location, victim: &Location) -> Result<()> {
        permitted_at(directory, self.identity, Access::WRITE | Access::EXECUTE)?;
        if victim.vnode.hooks().is_some_and(|hooks| hooks.is_swapping()) {
            return Err(Error::EPERM);
        }
        check_sticky(&directory.vnode.metadata(), &victim.vnode.metadata(), self.identity)
    }

    /// Renames a file.
    pub async fn rename(
        &self,
        old_at: &At,
        old: &[u8],
        new_at: &At,
        new: &[u8],
        how: RenameHow,
    ) -> Result<()> {
        let (old_directory, old_last) = self.find_directory(old_at, old).await?;
        let (new_directory, new_last) = self.find_directory(new_at, new).await?;
        if !alloc::sync::Arc::ptr_eq(&old_directory.mount, &new_directory.mount) {
            return Err(Error::EXDEV);
        }
        let Last::Name { name: old_name, directory: old_slash } = old_last else {
            return Err(Error::EBUSY);
        };
        let Last::Name { name: new_name, directory: new_slash } = new_last else {
            return Err(if how == RenameHow::NoReplace { Error::EEXIST } else { Error::EBUSY });
        };
        loop {
            let source = self.look_in(&old_directory, &old_name).await?;
            let target = match self.look_in(&new_directory, &new_name).await {
                Ok(target) => Some(target),
                Err(Error::ENOENT) => None,
                Err(error) => return Err(error),
            };
            match (how, &target) {
                (RenameHow::NoReplace, Some(_)) => return Err(Error::EEXIST),
                (RenameHow::Exchange, None) => return Err(Error::ENOENT),
                _ => {}
            }
            let source_is_directory = source.vnode.file_type() == FileType::Directory;
            let slash_allowed = match (&target, how) {
                (Some(target), RenameHow::Exchange) => target.vnode.file_type() == FileType::Directory,
                _ => source_is_directory,
            };
            if (old_slash && !source_is_directory) || (new_slash && !slash_allowed) {
                return Err(Error::ENOTDIR);
            }
            self.check_rename(&old_directory, &source, &new_directory, target.as_ref(), how)?;
            if let Some(target) = &target
                && same(&source.vnode, &target.vnode)
            {
                // Both ends are one name, or names of one file: there is nothing to do.
                return Ok(());
            }
            let from =
                RenameEnd { directory: &old_directory.vnode, name: &old_name, expected: Some(&source.vnode) };
            let to = RenameEnd {
                directory: &new_directory.vnode,
                name: &new_name,
                expected: target.as_ref().map(|t| &t.vnode),
            };
            match old_directory.vnode.rename(from, to, how == RenameHow::Exchange).await {
                Err(Error::ESTALE) => continue,
                Err(error) => return Err(error),
                Ok(()) => {}
            }
            let (from, to) = ((from.directory, from.name), (to.directory, to.name));
            changes::moved(from, to, &source.vnode);
            match &target {
                Some(target) if how == RenameHow::Exchange => changes::moved(to, from, &target.vnode),
                Some(target) => changes::lost_name(&target.vnode),
                None => {}
            }
            return Ok(());
        }
    }

    fn check_rename(
        &self,
        old_directory: &Location,
        source: &Location,
        new_directory: &Location,
        target: Option<&Location>,
        how: RenameHow,
    ) -> Result<()> {
        self.check_removal(old_directory, source)?;
        permitted_at(new_directory, self.identity, Access::WRITE | Access::EXECUTE)?;
        let moves = !same(&old_directory.vnode, &new_directory.vnode);
        let is_directory = |l: &Location| l.vnode.file_type() == FileType::Directory;
        if let Some(target) = target {
            self.check_removal(new_directory, target)?;
            if how == RenameHow::Replace && !same(&source.vnode, &target.vnode) {
                match (is_directory(source), is_directory(target)) {
                    (true, false) => return Err(Error::ENOTDIR),
                    (false, true) => return Err(Error::EISDIR),
                    _ => {}
                }
            }
            // A directory that moves gets another `..`, so the caller needs write permission for
            // the directory itself.
            if how == RenameHow::Exchange && moves && is_directory(target) {
                permitted_at(target, self.identity, Access::WRITE)?;
            }
            if target.is_mount_point() {
                return Err(Error::EBUSY);
            }
        }
        if moves && is_directory(source) {
            permitted_at(source, self.identity, Access::WRITE)?;
        }
        if source.is_mount_point() {
            return Err(Error::EBUSY);
        }
        Ok(())
    }

    /// The contents of a symbolic link. With an empty path, the link that `at` was opened as
    /// (O_PATH | O_NOFOLLOW).
    pub async fn read_link(&self, at: &At, path: &[u8]) -> Result<Vec<u8>> {
        let found = self.find_or_self(at, path, false, matches!(at, At::File(_))).await?;
        if found.location.vnode.file_type() != FileType::SymbolicLink {
            return Err(if path.is_empty() { Error::ENOENT } else { Error::EINVAL });
        }
        found.location.vnode.link_text_for(self.process).await
    }

    /// The path of the working directory.
    pub fn current_path(&self) -> Result<Vec<u8>> {
        self.directories.current().path(&self.directories.root())
    }

    /// Changes the working directory.
    pub async fn change_directory(&self, at: &At, path: &[u8], empty: bool) -> Result<()> {
        let found = self.find_or_self(at, path, true, empty).await?.location;
        self.check_enter(&found)?;
        self.directories.set_current(found);
        Ok(())
    }

    /// Changes the root directory; needs [`Privilege::ChangeRoot`].
    pub async fn change_root(&self, path: &[u8]) -> Result<()> {
        let found = self.find(&At::Current, path, true).await?.location;
        self.check_enter(&found)?;
        if !self.identity.has_own(Privilege::ChangeRoot) {
            return Err(Error::EPERM);
        }
        self.directories.set_root(found);
        Ok(())
    }

    fn check_enter(&self, place: &Location) -> Result<()> {
        if place.vnode.file_type() != FileType::Directory {
            return Err(Error::ENOTDIR);
        }
        self.permitted_at(place, Access::EXECUTE)
    }
}
