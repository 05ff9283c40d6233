//! Opening files (open(2)).

use super::access_list::NewLists;
use super::metadata::{FileType, Mode};
use super::mount::{Location, MountFlags};
use super::permission::{Access, is_owner, permitted_at};
use super::vnode::{NewNode, Opened};
use super::walk::{Last, Walker};
use super::{At, Caller, Changes, NewAttributes, changes};
use crate::file::{FileObject, OpenFile};
use crate::process_context::ProcessContext;
use crate::{Error, Identity, Result, pipe};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bitflags::bitflags;

bitflags! {
    /// How a file is opened. READ, WRITE and the status flags are kept in the open file
    /// description.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct OpenFlags: u32 {
        /// Open the file for reading.
        const READ = 1;
        /// Open the file for writing.
        const WRITE = 2;
        /// Make the file if it does not exist (O_CREAT).
        const CREATE = 4;
        /// Fail if the file exists (O_EXCL).
        const EXCLUSIVE = 8;
        /// Set the file's size to 0 (O_TRUNC).
        const TRUNCATE = 0x10;
        /// Fail unless the file is a directory (O_DIRECTORY).
        const DIRECTORY = 0x20;
        /// Fail if the file is a symbolic link (O_NOFOLLOW).
        const NO_FOLLOW = 0x40;
        /// Make a descriptor that only names the file (O_PATH).
        const PATH = 0x80;
        /// Make a file without a name in the file system of the directory (O_TMPFILE).
        const TEMPORARY = 0x100;
        /// Do not make a terminal the controlling one (O_NOCTTY).
        const NO_CONTROLLING_TERMINAL = 0x200;
        /// Status flag: writes go to the end of the file (O_APPEND).
        const APPEND = 0x1_0000;
        /// Status flag: reads and writes do not block (O_NONBLOCK).
        const NONBLOCK = 0x2_0000;
        /// Status flag: signal-driven input and output (O_ASYNC).
        const ASYNC = 0x4_0000;
        /// Status flag: avoid caching; for pipes, keep the boundaries of writes (O_DIRECT).
        const DIRECT = 0x8_0000;
        /// Status flag: do not update the access time (O_NOATIME).
        const NO_ACCESS_TIME = 0x10_0000;
        /// Status flag: a write waits until the data is stored (O_DSYNC).
        const DATA_SYNCHRONOUS = 0x20_0000;
        /// Status flag: a write waits until data and metadata are stored (O_SYNC).
        const SYNCHRONOUS = 0x40_0000;
    }
}

impl OpenFlags {
    /// Open the file for reading and writing.
    pub const READ_WRITE: OpenFlags = OpenFlags::from_bits_retain(3);
    /// The flags that fcntl(F_SETFL) changes.
    pub const CHANGEABLE: OpenFlags = OpenFlags::from_bits_retain(0x1f_0000);
    /// The flags that are kept in an open file description (and that F_GETFL returns).
    pub const KEPT: OpenFlags = OpenFlags::from_bits_retain(0x7f_00e3);

    fn access(self) -> Access {
        let mut access = Access::empty();
        access.set(Access::READ, self.contains(OpenFlags::READ));
        access.set(Access::WRITE, self.intersects(OpenFlags::WRITE | OpenFlags::TRUNCATE));
        access
    }
}

/// How and by which process a file is opened, for drivers and file systems that depend on it.
pub struct OpenContext<'a> {
    /// The flags with which the file is opened.
    pub flags: OpenFlags,
    /// The process that opens the file.
    pub process: &'a dyn ProcessContext,
    /// The user and groups with whose permissions the file is opened.
    pub identity: &'a Identity,
}

impl Caller<'_> {
    /// Opens the file that a path names, and makes it first if the flags say so. `mode` is the mode
    /// of a new file before umask. Blocks only to wait for the other end of a FIFO.
    pub async fn open(&self, at: &At, path: &[u8], flags: OpenFlags, mode: Mode) -> Result<Arc<OpenFile>> {
        if flags.contains(OpenFlags::PATH) {
            let kept = OpenFlags::PATH | OpenFlags::DIRECTORY | OpenFlags::NO_FOLLOW;
            return self.open_path(at, path, flags.intersection(kept)).await;
        }
        if flags.contains(OpenFlags::CREATE | OpenFlags::DIRECTORY) {
            return Err(Error::EINVAL);
        }
        if flags.contains(OpenFlags::TEMPORARY) {
            return self.open_temporary(at, path, flags, mode).await;
        }
        if !flags.contains(OpenFlags::CREATE) {
            let found = self.find(at, path, !flags.contains(OpenFlags::NO_FOLLOW)).await?;
            return self.open_found(found.location, found.entry, flags, false).await;
        }
        self.open_or_create(at, path, flags, mode).await
    }

    async fn open_path(&self, at: &At, path: &[u8], flags: OpenFlags) -> Result<Arc<OpenFile>> {
        let found = self.find(at, path, !flags.contains(OpenFlags::NO_FOLLOW)).await?;
        if flags.contains(OpenFlags::DIRECTORY) && found.location.vnode.file_type() != FileType::Directory {
            return Err(Error::ENOTDIR);
        }
        Ok(OpenFile::of_vnode(found.location, found.entry, flags, None))
    }

    async fn open_or_create(
        &self,
        at: &At,
        path: &[u8],
        flags: OpenFlags,
        mode: Mode,
    ) -> Result<Arc<OpenFile>> {
        let mut walker = Walker::new(self, at, path)?;
        loop {
            let Last::Name { name, directory } = walker.walk_to_last().await? else {
                if flags.contains(OpenFlags::EXCLUSIVE) {
                    return Err(Error::EEXIST);
                }
                let here = walker.at;
                if here.vnode.file_type() == FileType::Directory {
                    return Err(Error::EISDIR);
                }
                return self.open_found(here, None, flags, false).await;
            };
            match walker.child(&name).await {
                Ok(found) => {
                    if flags.contains(OpenFlags::EXCLUSIVE) {
                        return Err(Error::EEXIST);
                    }
                    if found.vnode.file_type() == FileType::SymbolicLink
                        && !flags.contains(OpenFlags::NO_FOLLOW)
                    {
                        walker.enter_last_link(&found).await?;
                        continue;
                    }
                    if directory {
                        return Err(Error::EISDIR);
                    }
                    return self.open_found(found, Some((walker.at, name)), flags, false).await;
                }
                Err(Error::ENOENT) if directory => return Err(Error::EISDIR),
                Err(Error::ENOENT) => {}
                Err(error) => return Err(error),
            }
            let attributes = self.new_attributes(&walker.at, mode, false)?;
            match walker.at.vnode.create(&name, NewNode::Regular, attributes).await {
                Ok(vnode) => {
                    changes::created(&walker.at.vnode, &name, &vnode);
                    let location = Location { mount: walker.at.mount.clone(), vnode };
                    return self.open_found(location, Some((walker.at, name)), flags, true).await;
                }
                // Another thread made the file after the look-up: open that one.
                Err(Error::EEXIST) => {
                    if flags.contains(OpenFlags::EXCLUSIVE) {
                        return Err(Error::EEXIST);
                    }
                    let found = match walker.child(&name).await {
                        Err(Error::ENOENT) => return Err(Error::ENOENT),
                        found => found?,
                    };
                    if found.vnode.file_type() == FileType::SymbolicLink {
                        walker.enter_last_link(&found).await?;
                        continue;
                    }
                    return self.open_found(found, Some((walker.at, name)), flags, false).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn open_temporary(
        &self,
        at: &At,
        path: &[u8],
        flags: OpenFlags,
        mode: Mode,
    ) -> Result<Arc<OpenFile>> {
        if !flags.contains(OpenFlags::WRITE) {
            return Err(Error::EINVAL);
        }
        let directory = self.find(at, path, true).await?.location;
        if directory.vnode.file_type() != FileType::Directory {
            return Err(Error::ENOTDIR);
        }
        let attributes = self.new_attributes(&directory, mode, false)?;
        let vnode = directory.vnode.create_unnamed(attributes).await?;
        let location = Location { mount: directory.mount, vnode };
        // O_TMPFILE includes O_DIRECTORY, which here says that the path names a directory. The new
        // file is none.
        let flags = flags.difference(OpenFlags::TEMPORARY | OpenFlags::DIRECTORY);
        let file = self.open_found(location, None, flags, true).await?;
        if flags.contains(OpenFlags::EXCLUSIVE) {
            file.forbid_linking();
        }
        Ok(file)
    }

    /// Checks that the caller may add to a directory; returns the attributes of the new file: umask
    /// or the directory's default list applied, group inherited from a set-group-id directory.
    pub(crate) fn new_attributes(
        &self,
        directory: &Location,
        mode: Mode,
        is_directory: bool,
    ) -> Result<NewAttributes> {
        permitted_at(directory, self.identity, Access::WRITE | Access::EXECUTE)?;
        let above = directory.vnode.metadata();
        let (mut mode, mut lists) = (mode, None);
        match directory.vnode.default_list() {
            None => mode = mode.difference(self.directories.umask()),
            Some(default) => {
                let access;
                (mode, access) = default.for_new(mode)?;
                let default = is_directory.then_some(default);
                lists = Some(Box::new(NewLists { access, default }));
            }
        }
        let mut group = self.identity.group;
        if above.mode.contains(Mode::SET_GROUP) {
            group = above.group;
            if is_directory {
                mode |= Mode::SET_GROUP;
            } else if mode.contains(Mode::SET_GROUP | Mode::GROUP_EXECUTE)
                && !self.identity.in_group(group)
                && !self.identity.has_over(&above, crate::Privilege::SetId)
            {
                mode = mode.difference(Mode::SET_GROUP);
            }
        }
        let account = Some(self.process.account());
        Ok(NewAttributes { mode, user: self.identity.user, group, account, lists })
    }

    /// Opens a file that was found, or with `created` was just made: permission is then not
    /// checked.
    pub(crate) async fn open_found(
        &self,
        mut location: Location,
        entry: Option<(Location, Vec<u8>)>,
        flags: OpenFlags,
        created: bool,
    ) -> Result<Arc<OpenFile>> {
        let file_type = location.vnode.file_type();
        self.check_open(&location, file_type, flags, created)?;
        let context = OpenContext { flags, process: self.process, identity: self.identity };
        let object: Option<Arc<dyn FileObject>> = match file_type {
            FileType::Fifo if location.vnode.hooks().is_some() => {
                Some(pipe::open_fifo(self, &location.vnode, flags).await?)
            }
            FileType::Socket => return Err(Error::ENXIO),
            _ => match location.vnode.open(&context).await? {
                Opened::Data => None,
                Opened::Object(object) => Some(object),
                Opened::Vnode(vnode) => {
                    location.vnode = vnode;
                    None
                }
                Opened::Device if file_type == FileType::BlockDevice => {
                    location.vnode = self.vfs.disks.open(&location.vnode, &context)?;
                    None
                }
                Opened::Device => {
                    let number = location.vnode.metadata().represents;
                    let driver = self.vfs.device(false, number)?;
                    Some(driver.open(&context)?)
                }
            },
        };
        let kept = flags.intersection(OpenFlags::KEPT);
        let file = match object {
            Some(object) if self.vfs.tree.is_anonymous(&location) => OpenFile::of_object(object, kept),
            object => OpenFile::of_vnode(location, entry, kept, object),
        };
        file.begin_writing()?;
        if flags.contains(OpenFlags::WRITE)
            && file_type == FileType::Regular
            && let Some(location) = file.location()
        {
            // The file system may have become read-only since the path was looked up. From now on
            // it cannot, because the file is counted as open for writing.
            location.mount.check_writable()?;
        }
        if flags.contains(OpenFlags::TRUNCATE) && file_type == FileType::Regular && !created {
            file.truncate_for_open(self).await?;
        }
        file.happened(Changes::OPEN);
        Ok(file)
    }

    fn check_open(
        &self,
        location: &Location,
        file_type: FileType,
        flags: OpenFlags,
        created: bool,
    ) -> Result<()> {
        let changing = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::TRUNCATE;
        match file_type {
            FileType::SymbolicLink => return Err(Error::ELOOP),
            FileType::Directory if flags.intersects(changing) => return Err(Error::EISDIR),
            FileType::Directory => {}
            _ if flags.contains(OpenFlags::DIRECTORY) => return Err(Error::ENOTDIR),
            FileType::CharacterDevice | FileType::BlockDevice
                if location.mount.flags().contains(MountFlags::NO_DEVICES) =>
            {
                return Err(Error::EACCES);
            }
            _ => {}
        }
        if !created {
            self.permitted_at(location, flags.access())?;
        }
        if flags.contains(OpenFlags::NO_ACCESS_TIME) && !is_owner(&location.vnode.metadata(), self.identity) {
            return Err(Error::EPERM);
        }
        Ok(())
    }
}
