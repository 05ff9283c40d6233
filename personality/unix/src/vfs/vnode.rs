//! [`Vnode`]: one file of a file system.

use super::changes::Observers;
use super::metadata::{AttributeChange, DirectoryEntry, FileSystemStatus, FileType, Metadata, Mode};
use super::mount::Location;
use crate::account::Account;
use crate::file::{FileObject, LockTable};
use crate::process_context::ProcessContext;
use crate::sync::SpinLock;
use crate::{AttemptError, Error, MaybeReady, Result, UserBuffer};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;

/// A reference to a vnode.
pub type VnodeRef = Arc<dyn Vnode>;

/// A file system: what its vnodes have in common.
pub trait FileSystem: Send + Sync {
    /// For statfs(2).
    fn status(&self) -> FileSystemStatus;

    /// Options as the list of mounts shows them, each with a comma before it.
    fn options(&self) -> alloc::string::String {
        alloc::string::String::new()
    }

    /// Changes its options (remount); `EINVAL` for those that it does not have or that cannot be
    /// changed.
    fn reconfigure(&self, _options: &[u8]) -> Result<()> {
        Err(Error::EINVAL)
    }

    /// Writes everything back.
    fn synchronize(&self) -> MaybeReady<'_, Result<()>> {
        MaybeReady::ready(Ok(()))
    }
}

/// What [`Vnode::create`] makes.
#[derive(Clone, Debug)]
pub enum NewNode<'a> {
    /// An empty file.
    Regular,
    /// An empty directory.
    Directory,
    /// A link to this path.
    SymbolicLink(&'a [u8]),
    /// A device, FIFO or socket name.
    Special(FileType, super::DeviceNumber),
}

/// Owner and mode of a new file, already subject to umask and directory inheritance.
#[derive(Clone, Debug)]
pub struct NewAttributes {
    /// Permission bits.
    pub mode: Mode,
    /// Owner.
    pub user: u32,
    /// Group.
    pub group: u32,
    /// The account of the user that makes it; none if the system does.
    pub account: Option<Arc<Account>>,
}

/// Where a symbolic link leads.
#[derive(Debug)]
pub enum Link {
    /// To a path.
    Path(Vec<u8>),
    /// To a place, whatever its path (a link that stands for an open file).
    Place(Location),
}

/// Where a write goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteAt {
    /// At this offset.
    Offset(u64),
    /// At the end of the file at that moment (O_APPEND).
    End,
}

/// One end of a rename: the name, and what the caller saw there.
#[derive(Clone, Copy)]
pub struct RenameEnd<'a> {
    /// The directory.
    pub directory: &'a VnodeRef,
    /// The name in it.
    pub name: &'a [u8],
    /// The vnode that the caller found and checked.
    pub expected: Option<&'a VnodeRef>,
}

/// What a name in a file system stands for, while that is in use.
#[derive(Clone, Default)]
pub(crate) enum Attachment {
    /// Nothing.
    #[default]
    None,
    /// The pipe of a FIFO.
    Pipe(Weak<crate::pipe::Pipe>),
    /// The socket that is bound to the name.
    Socket(Weak<crate::socket::UnixSocket>),
}

/// What the core keeps with a vnode: advisory locks, and the pipe of a FIFO or the socket bound to
/// a socket name.
#[derive(Default)]
pub struct Hooks {
    /// Advisory locks (fcntl, flock).
    pub locks: LockTable,
    /// The pipe or socket that this name stands for, as long as it is in use.
    pub(crate) attachment: SpinLock<Attachment>,
    /// Those that are told what happens to the file.
    pub observers: Observers,
    /// Descriptions open for writing, or, negative, executions that forbid that.
    writers: SpinLock<i32>,
}

impl Hooks {
    /// One more writer; `ETXTBSY` while the file is executed.
    pub(crate) fn begin_writing(&self) -> Result<()> {
        let mut writers = self.writers.lock();
        if *writers < 0 {
            return Err(Error::ETXTBSY);
        }
        *writers += 1;
        Ok(())
    }

    /// One writer less.
    pub(crate) fn end_writing(&self) {
        *self.writers.lock() -= 1;
    }

    /// The file is executed and must not be written until [`Hooks::end_execution`]; `ETXTBSY` while
    /// it has writers.
    pub fn begin_execution(&self) -> Result<()> {
        let mut writers = self.writers.lock();
        if *writers > 0 {
            return Err(Error::ETXTBSY);
        }
        *writers -= 1;
        Ok(())
    }

    /// One execution less.
    pub fn end_execution(&self) {
        *self.writers.lock() += 1;
    }

    /// Whether the file is being executed.
    pub fn is_executing(&self) -> bool {
        *self.writers.lock() < 0
    }
}

/// What an opened file's reads and writes go to.
pub enum Opened {
    /// The device that it represents, by its number.
    Device,
    /// Reads and writes go to the vnode's data.
    Data,
    /// They go to this object.
    Object(Arc<dyn FileObject>),
    /// They go to the data of this vnode, which is the opened one as it is now.
    Vnode(VnodeRef),
}

/// One file. Permissions, limits and read-only mounts have been checked by the caller (`vfs`);
/// names are single components other than `.` and `..`.
///
/// Directory changes are conditional: the caller names the vnode it saw and checked, and `ESTALE`
/// tells it that the name now means another, so that it looks again. So no lock is held between a
/// check and the change.
pub trait Vnode: Any + Send + Sync {
    /// Its file system.
    fn file_system(&self) -> Arc<dyn FileSystem>;

    /// Everything about it. Immediate: a file system loads this with the vnode.
    fn metadata(&self) -> Metadata;

    /// Its type; never changes.
    fn file_type(&self) -> FileType;

    /// The file's inode number, which no other file of its file system has.
    fn number(&self) -> u64;

    /// Locks and attachments; `None` where neither makes sense.
    fn hooks(&self) -> Option<&Hooks> {
        None
    }

    /// The directory above; `None` at the file system's root and for what was removed.
    fn parent(&self) -> Option<VnodeRef> {
        None
    }

    /// A directory and name under which this vnode is linked: for a directory its only one, for
    /// others some one that is or was right.
    fn place(&self) -> Option<(VnodeRef, Vec<u8>)> {
        None
    }

    /// Finds a name in a directory.
    fn lookup<'a>(&'a self, name: &'a [u8]) -> MaybeReady<'a, Result<VnodeRef>> {
        let _ = name;
        MaybeReady::ready(Err(Error::ENOTDIR))
    }

    /// Adds a new file to a directory. `EEXIST` if the name is there.
    fn create<'a>(
        &'a self,
        name: &'a [u8],
        node: NewNode<'a>,
        attributes: NewAttributes,
    ) -> MaybeReady<'a, Result<VnodeRef>> {
        let _ = (name, node, attributes);
        MaybeReady::ready(Err(Error::EPERM))
    }

    /// Makes a file without a name, in this directory's file system (O_TMPFILE).
    fn create_unnamed(&self, attributes: NewAttributes) -> MaybeReady<'_, Result<VnodeRef>> {
        let _ = attributes;
        MaybeReady::ready(Err(Error::EOPNOTSUPP))
    }

    /// Adds another name of `target`, a vnode of the same file system and not a directory.
    fn link<'a>(&'a self, name: &'a [u8], target: &'a VnodeRef) -> MaybeReady<'a, Result<()>> {
        let _ = (name, target);
        MaybeReady::ready(Err(Error::EPERM))
    }

    /// Removes the name of `expected` from this directory. A directory must be empty (`ENOTEMPTY`).
    fn remove<'a>(&'a self, name: &'a [u8], expected: &'a VnodeRef) -> MaybeReady<'a, Result<()>> {
        let _ = (name, expected);
        MaybeReady::ready(Err(Error::EPERM))
    }

    /// Renames within this file system (whose vnode this is), atomically. With `exchange` both ends
    /// exist and are exchanged; otherwise what is expected at the destination is replaced (types
    /// already checked); a directory that would become its own ancestor is `EINVAL`.
    fn rename<'a>(
        &'a self,
        from: RenameEnd<'a>,
        to: RenameEnd<'a>,
        exchange: bool,
    ) -> MaybeReady<'a, Result<()>> {
        let _ = (from, to, exchange);
        MaybeReady::ready(Err(Error::EPERM))
    }

    /// Calls `accept` with each entry from `position` on, without `.` and `..`, until it returns
    /// false. Positions are those of [`DirectoryEntry::next`], 0 at the start, and stay good while
    /// the directory changes.
    fn read_directory<'a>(
        &'a self,
        position: u64,
        accept: &'a mut (dyn FnMut(DirectoryEntry<'_>) -> bool + Send),
    ) -> MaybeReady<'a, Result<()>> {
        let _ = (position, accept);
        MaybeReady::ready(Err(Error::ENOTDIR))
    }

    /// The position after the last entry that there is now. A reader that stops there comes to an
    /// end, however fast entries are added.
    fn directory_end(&self) -> u64 {
        u64::MAX
    }

    /// Where a symbolic link leads.
    fn follow(&self) -> MaybeReady<'_, Result<Link>> {
        MaybeReady::ready(Err(Error::EINVAL))
    }

    /// As [`Vnode::follow`], for links that lead each process elsewhere.
    fn follow_for<'a>(&'a self, process: &'a dyn ProcessContext) -> MaybeReady<'a, Result<Link>> {
        let _ = process;
        self.follow()
    }

    /// As [`Vnode::link_text`], for links that lead each process elsewhere.
    fn link_text_for<'a>(&'a self, process: &'a dyn ProcessContext) -> MaybeReady<'a, Result<Vec<u8>>> {
        let _ = process;
        self.link_text()
    }

    /// What readlink(2) shows, where that differs from [`Vnode::follow`].
    fn link_text(&self) -> MaybeReady<'_, Result<Vec<u8>>> {
        MaybeReady::pending(async move {
            match self.follow().await? {
                Link::Path(path) => Ok(path),
                Link::Place(place) => Ok(place.path_from_root().await),
            }
        })
    }

    /// Copies data from `offset` out, as much as there is now; 0 at the end.
    fn read<'a>(
        &'a self,
        offset: u64,
        to: &'a mut dyn UserBuffer,
    ) -> MaybeReady<'a, Result<usize, AttemptError>> {
        let _ = (offset, to);
        MaybeReady::ready(Err(Error::EINVAL.into()))
    }

    /// As [`Vnode::read`], where what is read depends on the reader.
    fn read_for<'a>(
        &'a self,
        process: &'a dyn ProcessContext,
        offset: u64,
        to: &'a mut dyn UserBuffer,
    ) -> MaybeReady<'a, Result<usize, AttemptError>> {
        let _ = process;
        self.read(offset, to)
    }

    /// Whether this process may read or search it whatever its mode says.
    fn is_open_to(&self, process: &dyn ProcessContext) -> bool {
        let _ = process;
        false
    }

    /// Copies data in, not beyond `limit` (`EFBIG` if it starts there); returns the count and the
    /// offset after the data.
    fn write<'a>(
        &'a self,
        at: WriteAt,
        limit: u64,
        from: &'a mut dyn UserBuffer,
    ) -> MaybeReady<'a, Result<(usize, u64), AttemptError>> {
        let _ = (at, limit, from);
        MaybeReady::ready(Err(Error::EINVAL.into()))
    }

    /// Sets the size of a regular file.
    fn truncate(&self, size: u64) -> MaybeReady<'_, Result<()>> {
        let _ = size;
        MaybeReady::ready(Err(Error::EINVAL))
    }

    /// Allocates space for a range of a regular file, or with `punch` frees it, reading as zeros.
    /// Without `keep_size` the file grows to hold the range.
    fn allocate(&self, offset: u64, length: u64, keep_size: bool, punch: bool) -> MaybeReady<'_, Result<()>> {
        let _ = (offset, length, keep_size, punch);
        MaybeReady::ready(Err(Error::EOPNOTSUPP))
    }

    /// The next offset at or after `offset` that is data (or, with `hole`, is not); `ENXIO` if
    /// there is none.
    fn seek_data(&self, offset: u64, hole: bool) -> MaybeReady<'_, Result<u64>> {
        let size = self.metadata().size;
        MaybeReady::ready(match () {
            () if offset >= size => Err(Error::ENXIO),
            () if hole => Ok(size),
            () => Ok(offset),
        })
    }

    /// Waits until everything written is on stable storage.
    fn synchronize(&self) -> MaybeReady<'_, Result<()>> {
        MaybeReady::ready(Ok(()))
    }

    /// Changes attributes.
    fn change(&self, change: AttributeChange) -> MaybeReady<'_, Result<()>> {
        let _ = change;
        MaybeReady::ready(Err(Error::EPERM))
    }

    /// The file was read: its time of last access becomes now, if that was `age` seconds ago or
    /// before the last change.
    fn touch(&self, age: i64) {
        let _ = age;
    }

    /// The memory that holds a regular file's data, for mapping.
    fn memory(&self) -> Result<Arc<dyn super::FileMemory>> {
        Err(Error::ENODEV)
    }

    /// The value of an extended attribute; `ENODATA` if there is none.
    fn attribute<'a>(&'a self, name: &'a [u8]) -> MaybeReady<'a, Result<Vec<u8>>> {
        let _ = name;
        MaybeReady::ready(Err(Error::EOPNOTSUPP))
    }

    /// Sets (`Some`) or removes an extended attribute, subject to `condition`.
    fn set_attribute<'a>(
        &'a self,
        name: &'a [u8],
        value: Option<&'a [u8]>,
        condition: AttributeCondition,
    ) -> MaybeReady<'a, Result<()>> {
        let _ = (name, value, condition);
        MaybeReady::ready(Err(Error::EOPNOTSUPP))
    }

    /// The names of the extended attributes, each followed by a NUL.
    fn attributes(&self) -> MaybeReady<'_, Result<Vec<u8>>> {
        MaybeReady::ready(Err(Error::EOPNOTSUPP))
    }

    /// Opens the file: what reads and writes will go to. `read` and `write` are the access asked
    /// for.
    fn open(&self, context: &super::OpenContext) -> MaybeReady<'_, Result<Opened>> {
        let _ = context;
        MaybeReady::ready(match self.file_type() {
            FileType::Regular | FileType::Directory => Ok(Opened::Data),
            FileType::CharacterDevice | FileType::BlockDevice => Ok(Opened::Device),
            _ => Err(Error::ENXIO),
        })
    }
}

/// Whether an extended attribute must or must not exist before it is set (XATTR_CREATE,
/// XATTR_REPLACE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeCondition {
    /// Either.
    Any,
    /// It must not exist (`EEXIST`).
    Create,
    /// It must exist (`ENODATA`).
    Replace,
}

/// Whether two references are to one vnode. (A file system may make a new object for each lookup.)
pub fn same(a: &VnodeRef, b: &VnodeRef) -> bool {
    core::ptr::addr_eq(Arc::as_ptr(a), Arc::as_ptr(b))
        || (a.number() == b.number()
            && core::ptr::addr_eq(Arc::as_ptr(&a.file_system()), Arc::as_ptr(&b.file_system())))
}
