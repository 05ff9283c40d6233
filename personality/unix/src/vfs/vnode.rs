//! [`Vnode`]: a file of a file system.

use super::access_list::{AccessList, NewLists};
use super::changes::Observers;
use super::memory::UnwrittenPages;
use super::metadata::{AttributeChange, DirectoryEntry, FileSystemStatus, FileType, Metadata, Mode};
use super::mount::Location;
use super::seals::{SealFlags, Seals};
use crate::account::Account;
use crate::disk::Device;
use crate::file::{FileObject, LockTable};
use crate::process_context::ProcessContext;
use crate::sync::SpinLock;
use crate::{AttemptError, Error, MaybeReady, Result, UserBuffer};
use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::{AtomicBool, Ordering};

/// A reference to a vnode.
pub type VnodeRef = Arc<dyn Vnode>;

/// A file system: the operations that concern all its vnodes.
pub trait FileSystem: Send + Sync {
    /// The status of the file system (statfs(2)), as it was loaded last.
    fn status(&self) -> FileSystemStatus;

    /// Loads the status of the file system from its storage, if that has it.
    fn load_status(&self) -> MaybeReady<'_, Result<FileSystemStatus>> {
        MaybeReady::ready(Ok(self.status()))
    }

    /// The options of the file system as the list of mounts shows them, each with a comma before
    /// it.
    fn options(&self) -> alloc::string::String {
        alloc::string::String::new()
    }

    /// Changes the options of the file system (remount), and whether it can only be read, if that
    /// is its own matter and not only a mount's.
    ///
    /// # Errors
    /// `EINVAL`: an option is unknown or cannot be changed. `EBUSY`: files are open for writing.
    /// `EROFS`: it cannot be written. Others of the storage.
    fn reconfigure<'a>(&'a self, options: &'a [u8], _read_only: bool) -> MaybeReady<'a, Result<()>> {
        MaybeReady::ready(if options.is_empty() { Ok(()) } else { Err(Error::EINVAL) })
    }

    /// Writes all data of the file system to its storage.
    fn synchronize(&self) -> MaybeReady<'_, Result<()>> {
        MaybeReady::ready(Ok(()))
    }

    /// Adds the pages of files that were changed and are not in the storage yet.
    fn count_unwritten(&self, pages: &mut UnwrittenPages) {
        let _ = pages;
    }

    /// Called when the last mount of the file system is gone, and when the system ends: everything
    /// is brought to the storage, and the file system is not used any more.
    fn end(&self) -> MaybeReady<'_, Result<()>> {
        MaybeReady::ready(Ok(()))
    }

    /// Whether the file system itself cannot be written, whatever the options of a mount are.
    fn is_read_only(&self) -> bool {
        false
    }
}

/// The file that [`Vnode::create`] makes.
#[derive(Clone, Debug)]
pub enum NewNode<'a> {
    /// An empty regular file.
    Regular,
    /// An empty directory.
    Directory,
    /// A symbolic link to this path.
    SymbolicLink(&'a [u8]),
    /// A device node, a FIFO or the name of a socket.
    Special(FileType, super::DeviceNumber),
}

/// Owner and mode of a new file, after umask and the directory's group have been applied.
#[derive(Clone, Debug)]
pub struct NewAttributes {
    /// The permission bits of the new file.
    pub mode: Mode,
    /// User id of the new file's owner.
    pub user: u32,
    /// Group id of the new file.
    pub group: u32,
    /// The account of the user that makes the file; `None` if the system does.
    pub account: Option<Arc<Account>>,
    /// The access control lists of the new file, if it gets any.
    pub lists: Option<Box<NewLists>>,
}

/// The target of a symbolic link.
#[derive(Debug)]
pub enum Link {
    /// The link leads to a path.
    Path(Vec<u8>),
    /// The link leads to a location, whatever its path (a link that represents an open file).
    Place(Location),
}

/// The position of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteAt {
    /// The write begins at this offset.
    Offset(u64),
    /// The write begins at the end of the file at that moment (O_APPEND).
    End,
}

/// One end of a rename: a name, and the file that the caller found there.
#[derive(Clone, Copy)]
pub struct RenameEnd<'a> {
    /// The directory with the name.
    pub directory: &'a VnodeRef,
    /// The name in the directory.
    pub name: &'a [u8],
    /// The vnode that the caller found and checked; `None` if the name did not exist.
    pub expected: Option<&'a VnodeRef>,
}

/// The object that a FIFO or socket name refers to while it is in use.
#[derive(Clone, Default)]
pub(crate) enum Attachment {
    /// No pipe or socket uses the name.
    #[default]
    None,
    /// The pipe of a FIFO.
    Pipe(Weak<crate::pipe::Pipe>),
    /// The socket that is bound to the name.
    Socket(Weak<crate::socket::UnixSocket>),
}

/// The state that the Unix library keeps with a vnode: advisory locks, and the pipe of a FIFO or
/// the socket bound to a socket name.
#[derive(Default)]
pub struct Hooks {
    /// The advisory locks on the file (fcntl, flock).
    pub locks: LockTable,
    /// The pipe or socket that the name refers to, while it is in use.
    pub(crate) attachment: SpinLock<Attachment>,
    /// The observers of the file.
    pub observers: Observers,
    /// The seals of the file, and the mappings on which they depend.
    pub(crate) seals: Seals,
    /// How many descriptions are open for writing or, as a negative number, how many executions
    /// forbid that.
    writers: SpinLock<i32>,
    /// Whether the file is a swap area.
    swaps: AtomicBool,
}

impl Hooks {
    /// Counts one more writer; `ETXTBSY` while the file is executed.
    pub(crate) fn begin_writing(&self) -> Result<()> {
        let mut writers = self.writers.lock();
        if *writers < 0 {
            return Err(Error::ETXTBSY);
        }
        *writers += 1;
        Ok(())
    }

    /// Whether descriptions are open for writing.
    pub(crate) fn has_writers(&self) -> bool {
        *self.writers.lock() > 0
    }

    /// Counts one writer less.
    pub(crate) fn end_writing(&self) {
        *self.writers.lock() -= 1;
    }

    /// Counts one more execution: the file must not be written until [`Hooks::end_execution`].
    /// `ETXTBSY` while it has writers.
    pub fn begin_execution(&self) -> Result<()> {
        let mut writers = self.writers.lock();
        if *writers > 0 {
            return Err(Error::ETXTBSY);
        }
        *writers -= 1;
        Ok(())
    }

    /// Counts one execution less.
    pub fn end_execution(&self) {
        *self.writers.lock() += 1;
    }

    /// The file becomes a swap area: until [`Hooks::end_swapping`] it can be neither written nor
    /// removed. `ETXTBSY` while it has writers.
    pub(crate) fn begin_swapping(&self) -> Result<()> {
        self.begin_execution()?;
        self.swaps.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// The file is no swap area any more.
    pub(crate) fn end_swapping(&self) {
        self.swaps.store(false, Ordering::Relaxed);
        self.end_execution();
    }

    /// Whether the file is a swap area.
    pub(crate) fn is_swapping(&self) -> bool {
        self.swaps.load(Ordering::Relaxed)
    }

    /// Whether the file is being executed.
    pub fn is_executing(&self) -> bool {
        *self.writers.lock() < 0
    }
}

/// The object to which an opened file's reads and writes go.
pub enum Opened {
    /// Reads and writes go to the device that the node represents, by its number.
    Device,
    /// Reads and writes go to the vnode's data.
    Data,
    /// Reads and writes go to this object.
    Object(Arc<dyn FileObject>),
    /// Reads and writes go to the data of this vnode, which is the opened one as it is now.
    Vnode(VnodeRef),
}

impl Opened {
    /// What a file of this type is opened as, unless its file system says otherwise. `ENXIO`.
    pub(crate) fn of_type(file_type: FileType) -> Result<Opened> {
        match file_type {
            FileType::Regular | FileType::Directory => Ok(Opened::Data),
            FileType::CharacterDevice | FileType::BlockDevice => Ok(Opened::Device),
            _ => Err(Error::ENXIO),
        }
    }
}

/// Bytes of a file that are one after the other on its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Where they are in the file.
    pub offset: u64,
    /// How many there are: whole blocks of the file system, also at the file's end.
    pub length: u64,
    /// Where the first one is, from the start of the disk or partition.
    pub place: u64,
    /// Whether the file has zeros there until it is written.
    pub is_unwritten: bool,
}

/// A file of a file system. Permissions, limits and read-only mounts have been checked by the
/// caller (`vfs`); names are single components other than `.` and `..`.
///
/// Changes of directories are conditional: the caller passes the vnode that it found and checked.
/// `ESTALE` means that the name refers to another file now, and the caller looks it up again. So no
/// lock is held between a check and the change.
pub trait Vnode: Any + Send + Sync {
    /// The file system of the file.
    fn file_system(&self) -> Arc<dyn FileSystem>;

    /// The metadata of the file. Does not block: a file system loads it with the vnode.
    fn metadata(&self) -> Metadata;

    /// The number of bytes that can be read, also of a device, whose metadata say 0.
    fn size(&self) -> u64 {
        self.metadata().size
    }

    /// The type of the file, which never changes.
    fn file_type(&self) -> FileType;

    /// The file's inode number, which no other file of its file system has.
    fn number(&self) -> u64;

    /// Locks and attachments of the file; `None` if it can have neither.
    fn hooks(&self) -> Option<&Hooks> {
        None
    }

    /// The parent directory; `None` at the file system's root and after the directory was removed.
    fn parent(&self) -> Option<VnodeRef> {
        None
    }

    /// A directory, and a name in it under which this vnode is linked. A directory has only one
    /// such name. For another file it is one of its present or recent names.
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

    /// Adds a new file to a directory whose reads and writes go to an object, in a file system of
    /// such files. `EEXIST` if the name is there.
    fn create_object<'a>(
        &'a self,
        name: &'a [u8],
        object: Arc<dyn FileObject>,
        attributes: NewAttributes,
    ) -> MaybeReady<'a, Result<VnodeRef>> {
        let _ = (name, object, attributes);
        MaybeReady::ready(Err(Error::EPERM))
    }

    /// Makes a file without a name in this directory's file system (O_TMPFILE).
    fn create_unnamed(&self, attributes: NewAttributes) -> MaybeReady<'_, Result<VnodeRef>> {
        let _ = attributes;
        MaybeReady::ready(Err(Error::EOPNOTSUPP))
    }

    /// Adds another name of `target`, which is of the same file system and no directory.
    fn link<'a>(&'a self, name: &'a [u8], target: &'a VnodeRef) -> MaybeReady<'a, Result<()>> {
        let _ = (name, target);
        MaybeReady::ready(Err(Error::EPERM))
    }

    /// Removes the name of `expected` from this directory. A directory must be empty (`ENOTEMPTY`).
    fn remove<'a>(&'a self, name: &'a [u8], expected: &'a VnodeRef) -> MaybeReady<'a, Result<()>> {
        let _ = (name, expected);
        MaybeReady::ready(Err(Error::EPERM))
    }

    /// Renames a file within this file system (whose vnode this is), atomically. With `exchange`
    /// both ends exist and are exchanged; otherwise the expected file at the destination is
    /// replaced (the caller has checked the types). `EINVAL` if a directory would become its own
    /// ancestor.
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
    /// false. Positions are those of [`DirectoryEntry::next`], 0 at the start, and stay valid while
    /// the directory changes. `accept` may run under locks of the file system: it must be short,
    /// and may use no file.
    fn read_directory<'a>(
        &'a self,
        position: u64,
        accept: &'a mut (dyn FnMut(DirectoryEntry<'_>) -> bool + Send),
    ) -> MaybeReady<'a, Result<()>> {
        let _ = (position, accept);
        MaybeReady::ready(Err(Error::ENOTDIR))
    }

    /// The position after the last entry that there is now. A reader that stops there ends, however
    /// fast entries are added.
    fn directory_end(&self) -> u64 {
        u64::MAX
    }

    /// The target of a symbolic link.
    fn follow(&self) -> MaybeReady<'_, Result<Link>> {
        MaybeReady::ready(Err(Error::EINVAL))
    }

    /// The target of a symbolic link for this process. Without an implementation it is that of
    /// [`Vnode::follow`].
    fn follow_for<'a>(&'a self, process: &'a dyn ProcessContext) -> MaybeReady<'a, Result<Link>> {
        let _ = process;
        self.follow()
    }

    /// The text of a symbolic link for this process. Without an implementation it is that of
    /// [`Vnode::link_text`].
    fn link_text_for<'a>(&'a self, process: &'a dyn ProcessContext) -> MaybeReady<'a, Result<Vec<u8>>> {
        let _ = process;
        self.link_text()
    }

    /// The text that readlink(2) returns, if that differs from [`Vnode::follow`].
    fn link_text(&self) -> MaybeReady<'_, Result<Vec<u8>>> {
        MaybeReady::local(async move {
            match self.follow().await? {
                Link::Path(path) => Ok(path),
                Link::Place(place) => Ok(place.path_from_root().await),
            }
        })
    }

    /// Copies data from `offset` on to the reader, as much as there is now; 0 at the end.
    fn read<'a>(
        &'a self,
        offset: u64,
        to: &'a mut dyn UserBuffer,
    ) -> MaybeReady<'a, Result<usize, AttemptError>> {
        let _ = (offset, to);
        MaybeReady::ready(Err(Error::EINVAL.into()))
    }

    /// Reads a file whose contents depend on the process that reads. Without an implementation it
    /// is [`Vnode::read`].
    fn read_for<'a>(
        &'a self,
        process: &'a dyn ProcessContext,
        offset: u64,
        to: &'a mut dyn UserBuffer,
    ) -> MaybeReady<'a, Result<usize, AttemptError>> {
        let _ = process;
        self.read(offset, to)
    }

    /// Whether this process may read or search the file whatever its mode is.
    fn is_open_to(&self, process: &dyn ProcessContext) -> bool {
        let _ = process;
        false
    }

    /// Whether the mode decides about writing even for a process that may override modes
    /// ([`crate::Privilege::Override`]).
    fn is_mode_final(&self) -> bool {
        false
    }

    /// Copies data from the writer to the file, not beyond `limit` (`EFBIG` if the write begins
    /// there); returns the count of bytes and the offset after them.
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

    /// The seals of a file in memory; `EINVAL` for another file.
    fn seals(&self) -> Result<SealFlags> {
        Err(Error::EINVAL)
    }

    /// Adds seals to a file in memory; see [`Seals::add`].
    fn seal(&self, seals: SealFlags) -> MaybeReady<'_, Result<()>> {
        let _ = seals;
        MaybeReady::ready(Err(Error::EINVAL))
    }

    /// Allocates space for a range of a regular file, or with `punch` frees it, so that it reads as
    /// zeros. Without `keep_size` the file grows to hold the range.
    fn allocate(&self, offset: u64, length: u64, keep_size: bool, punch: bool) -> MaybeReady<'_, Result<()>> {
        let _ = (offset, length, keep_size, punch);
        MaybeReady::ready(Err(Error::EOPNOTSUPP))
    }

    /// The first offset from `offset` on that is data (or with `hole` is not); `ENXIO` if there is
    /// none.
    fn seek_data(&self, offset: u64, hole: bool) -> MaybeReady<'_, Result<u64>> {
        let size = self.size();
        MaybeReady::ready(match () {
            () if offset >= size => Err(Error::ENXIO),
            () if hole => Ok(size),
            () => Ok(offset),
        })
    }

    /// The disk or partition of a regular file, and where the file's data are on it, in the order
    /// of their offsets; holes are in no extent. What was written to the file is there. The answer
    /// is true as long as nothing changes the file's data, size or space. `EOPNOTSUPP`: the file is
    /// on no disk.
    fn extents(&self) -> MaybeReady<'_, Result<(Device, Vec<Extent>)>> {
        MaybeReady::ready(Err(Error::EOPNOTSUPP))
    }

    /// Waits until all that was written to the file is on stable storage.
    fn synchronize(&self) -> MaybeReady<'_, Result<()>> {
        MaybeReady::ready(Ok(()))
    }

    /// Changes attributes of the file.
    fn change(&self, change: AttributeChange) -> MaybeReady<'_, Result<()>> {
        let _ = change;
        MaybeReady::ready(Err(Error::EPERM))
    }

    /// To be called after a read: the time of last access becomes the present time if it is at
    /// least `age` seconds old, or older than the last change.
    fn touch(&self, age: i64) {
        let _ = age;
    }

    /// The memory that holds a regular file's data, to be mapped.
    fn memory(&self) -> Result<Arc<dyn super::FileMemory>> {
        Err(Error::ENODEV)
    }

    /// Takes over the time at which a program has written to the file through a mapping; the next
    /// such write counts again (msync(2)).
    fn note_mapped_writes(&self) {}

    /// Whether the file may have extended attributes that are honoured, such as the one with the
    /// privileges that it gives ([`crate::privilege::FilePrivileges`]). It is asked at each write,
    /// so it takes no time.
    fn has_attributes(&self) -> bool {
        false
    }

    /// Whether the file has or can get access control lists. Those are extended attributes, too.
    fn keeps_lists(&self) -> bool {
        false
    }

    /// The access control list of the file, if it says more than its mode.
    fn access_list(&self) -> Option<AccessList> {
        None
    }

    /// The access control list that new files in the directory get.
    fn default_list(&self) -> Option<AccessList> {
        None
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

    /// Opens the file; returns the object to which reads and writes go. `context` has the access
    /// that is asked for.
    fn open(&self, context: &super::OpenContext) -> MaybeReady<'_, Result<Opened>> {
        let _ = context;
        MaybeReady::ready(Opened::of_type(self.file_type()))
    }
}

/// Whether an extended attribute must or must not exist before it is set (XATTR_CREATE,
/// XATTR_REPLACE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeCondition {
    /// The attribute may exist or not.
    Any,
    /// The attribute must not exist (`EEXIST`).
    Create,
    /// The attribute must exist (`ENODATA`).
    Replace,
}

/// Whether two references are to one vnode. (A file system may make a new object at each lookup.)
pub fn same(a: &VnodeRef, b: &VnodeRef) -> bool {
    core::ptr::addr_eq(Arc::as_ptr(a), Arc::as_ptr(b))
        || (a.number() == b.number()
            && core::ptr::addr_eq(Arc::as_ptr(&a.file_system()), Arc::as_ptr(&b.file_system())))
}
