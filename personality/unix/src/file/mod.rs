//! Open file descriptions: what descriptors refer to.

mod directory;
mod locks;
mod object;
mod transfer;

#[cfg(test)]
mod tests;

pub use locks::{LockKind, LockMaker, LockOwner, LockRange, LockTable, RecordLock};
pub use object::{CloseListener, DeviceDriver, FileObject, Io, Positions};
pub use transfer::{Whence, transfer};

use crate::account::{Account, Charge, FILE_BYTES};
use crate::credentials::Credentials;
use crate::pipe::PipeEnd;
use crate::poll::{PollQueue, Readiness};
use crate::process::{ExactPid, Pid};
use crate::signal::Signal;
use crate::socket::UnixSocket;
use crate::sync::{Mutex, SpinLock};
use crate::vfs::{
    Access, Caller, Changes, FileType, Hooks, Location, Metadata, Mode, OpenFlags, SealFlags, Seals, Vnode,
};
use crate::{Error, Result};
use alloc::format;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// What gets signals for a file (F_SETOWN).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalTarget {
    /// The signals go to a process.
    Process(ExactPid),
    /// The signals go to a thread of a process.
    Thread(ExactPid, Pid),
    /// The signals go to the process group that this process has made.
    Group(ExactPid),
}

/// What gets signals for a file, and by whose rights.
#[derive(Clone, Debug)]
pub struct SignalOwner {
    /// What gets them.
    pub target: SignalTarget,
    /// The credentials of the thread that said so: it must be allowed to signal the target.
    pub setter: Arc<Credentials>,
}

/// An open file description: shared by the descriptors that dup(2), fork(2) and descriptor passing
/// make.
pub struct OpenFile {
    id: u64,
    /// Where the file is in the file system, if it has or had a name.
    location: Option<Location>,
    /// The directory and the name with which the file was opened.
    entry: Option<(Location, Vec<u8>)>,
    /// The pipe end, socket, terminal or device that was opened, if the file's bytes are not a
    /// vnode's data.
    object: Option<Arc<dyn FileObject>>,
    /// The [`OpenFlags`]. Accesses are relaxed, since each use needs only some recent value.
    flags: AtomicU32,
    position: Mutex<Position>,
    signal_owner: SpinLock<Option<SignalOwner>>,
    signal: SpinLock<Option<Signal>>,
    counted_as_writer: AtomicBool,
    linking_forbidden: AtomicBool,
    /// The listeners that are called when the description is closed.
    close_listeners: SpinLock<Vec<Weak<dyn CloseListener>>>,
    /// What a front end keeps as long as the description is open.
    kept: SpinLock<Option<Arc<dyn Any + Send + Sync>>>,
    /// The charge for the description itself, to the account of the user that first had a
    /// descriptor of it.
    charge: SpinLock<Option<Charge>>,
}

/// The file offset at which the next read or write begins.
#[derive(Debug, Default)]
struct Position {
    offset: u64,
    /// For a directory: the position at which the reading that began at 0 ends, so that it ends
    /// although entries are added.
    directory_end: u64,
}

impl OpenFile {
    fn new(
        location: Option<Location>,
        entry: Option<(Location, Vec<u8>)>,
        object: Option<Arc<dyn FileObject>>,
        flags: OpenFlags,
    ) -> Arc<OpenFile> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Arc::new(OpenFile {
            // Relaxed ordering: the ids have to be unique, and order nothing else.
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            location,
            entry,
            object,
            flags: AtomicU32::new(flags.bits()),
            position: Mutex::new(Position::default()),
            signal_owner: SpinLock::new(None),
            signal: SpinLock::new(None),
            counted_as_writer: AtomicBool::new(false),
            linking_forbidden: AtomicBool::new(false),
            close_listeners: SpinLock::new(Vec::new()),
            kept: SpinLock::new(None),
            charge: SpinLock::new(None),
        })
    }

    /// Charges the description to a user, unless it is charged to one already. `ENFILE` if the user
    /// has too much.
    pub fn charge(&self, account: &Arc<Account>) -> Result<()> {
        let mut charge = self.charge.lock();
        if charge.is_none() {
            *charge = Some(account.charge_memory(FILE_BYTES).ok_or(Error::ENFILE)?);
        }
        Ok(())
    }

    /// Makes the open file description of an opened vnode.
    pub(crate) fn of_vnode(
        location: Location,
        entry: Option<(Location, Vec<u8>)>,
        flags: OpenFlags,
        object: Option<Arc<dyn FileObject>>,
    ) -> Arc<OpenFile> {
        OpenFile::new(Some(location), entry, object, flags)
    }

    /// Makes the open file description of an object without a name.
    pub fn of_object(object: Arc<dyn FileObject>, flags: OpenFlags) -> Arc<OpenFile> {
        OpenFile::new(None, None, Some(object), flags)
    }

    /// A number that no other open file description has.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The offset at which the next read or write begins; 0 if there is none. Waits for a transfer
    /// that moves it.
    pub async fn offset(&self) -> u64 {
        self.position.lock().await.offset
    }

    /// Where the file is in the file system.
    pub fn location(&self) -> Option<&Location> {
        self.location.as_ref()
    }

    /// The file's vnode, if it has one.
    pub fn vnode(&self) -> Option<&Arc<dyn Vnode>> {
        self.location.as_ref().map(|location| &location.vnode)
    }

    /// The file's object, if its bytes are not a vnode's data.
    pub fn object(&self) -> Option<&Arc<dyn FileObject>> {
        self.object.as_ref()
    }

    /// The file's object as a `T`, if it is one. A front end recognises the objects of its own
    /// types with this, and the Unix library need not know these types.
    pub fn object_as<T: FileObject>(&self) -> Option<Arc<T>> {
        let object: Arc<dyn Any + Send + Sync> = self.object.clone()?;
        object.downcast().ok()
    }

    /// The pipe end that this file is, if it is one.
    pub fn pipe_end(&self) -> Option<&PipeEnd> {
        self.object.as_ref()?.pipe_end()
    }

    /// The socket that this file is, if it is one.
    pub fn socket(&self) -> Option<&UnixSocket> {
        self.object.as_ref()?.socket()
    }

    /// The flags with which the file was opened, and its present status flags.
    pub fn flags(&self) -> OpenFlags {
        OpenFlags::from_bits_retain(self.flags.load(Ordering::Relaxed))
    }

    /// Sets the changeable status flags (F_SETFL).
    pub fn set_flags(&self, caller: &Caller<'_>, flags: OpenFlags) -> Result<()> {
        let old = self.flags();
        if flags.difference(old).contains(OpenFlags::NO_ACCESS_TIME)
            && let Some(vnode) = self.vnode()
            && !crate::vfs::is_owner(&vnode.metadata(), caller.identity)
        {
            return Err(Error::EPERM);
        }
        let kept = old.difference(OpenFlags::CHANGEABLE);
        self.flags.store((kept | flags.intersection(OpenFlags::CHANGEABLE)).bits(), Ordering::Relaxed);
        Ok(())
    }

    /// Sets or clears one status flag (FIONBIO, FIOASYNC).
    pub fn set_flag(&self, flag: OpenFlags, on: bool) {
        if on {
            self.flags.fetch_or(flag.bits(), Ordering::Relaxed);
        } else {
            self.flags.fetch_and(!flag.bits(), Ordering::Relaxed);
        }
    }

    /// `EBADF` unless the file is open for all of `access`.
    pub fn check(&self, access: Access) -> Result<()> {
        let flags = self.flags();
        let refused = flags.contains(OpenFlags::PATH)
            || (access.contains(Access::READ) && !flags.contains(OpenFlags::READ))
            || (access.contains(Access::WRITE) && !flags.contains(OpenFlags::WRITE));
        if refused { Err(Error::EBADF) } else { Ok(()) }
    }

    /// What gets signals for this file.
    pub fn signal_owner(&self) -> Option<SignalOwner> {
        self.signal_owner.lock().clone()
    }

    /// Sets what gets signals for this file, as a thread with the credentials `setter` may.
    pub fn set_signal_owner(&self, target: Option<SignalTarget>, setter: Arc<Credentials>) {
        *self.signal_owner.lock() = target.map(|target| SignalOwner { target, setter });
    }

    /// The signal that says what has happened when the file becomes ready (F_SETSIG); `None` for
    /// SIGIO, which does not say it.
    pub fn signal(&self) -> Option<Signal> {
        *self.signal.lock()
    }

    /// Sets that signal.
    pub fn set_signal(&self, signal: Option<Signal>) {
        *self.signal.lock() = signal;
    }

    /// The file's type.
    pub fn file_type(&self) -> FileType {
        match (self.vnode(), &self.object) {
            (Some(vnode), _) => vnode.file_type(),
            (None, Some(object)) => object.file_type(),
            (None, None) => FileType::Anonymous,
        }
    }

    /// The file's metadata, as fstat(2) gives it.
    pub fn metadata(&self) -> Metadata {
        if let Some(vnode) = self.vnode() {
            return vnode.metadata();
        }
        let never = crate::Timestamp::default();
        let (user, group) = self.object.as_ref().map_or((0, 0), |object| object.owner());
        Metadata {
            device: ANONYMOUS_DEVICE,
            number: self.object.as_ref().map_or(0, |o| Arc::as_ptr(o).addr() as u64 >> 4),
            file_type: self.file_type(),
            mode: Mode::new(0o600),
            links: 1,
            user,
            group,
            represents: Default::default(),
            size: 0,
            blocks: 0,
            block_size: 4096,
            accessed: never,
            modified: never,
            changed: never,
            created: never,
        }
    }

    /// The path of the file, to be shown to users: the name with which it was opened if that still
    /// means this file, else another of its names, else the old name with " (deleted)" appended. An
    /// object without a name shows its kind.
    pub async fn path(&self, root: &Location) -> Vec<u8> {
        let Some(location) = &self.location else {
            let label = self.object.as_ref().map_or("anon", |o| o.label());
            return match self.file_type() {
                FileType::Anonymous => label.as_bytes().to_vec(),
                _ => format!("{label}:[{}]", self.metadata().number).into_bytes(),
            };
        };
        if location.vnode.file_type() == FileType::Directory {
            return location.path(root).unwrap_or_else(|_| b"/ (deleted)".to_vec());
        }
        let in_directory = |directory: &Location, name: &[u8]| {
            let path = directory.path(root).ok()?;
            // Unlike a directory's path, a file's path does not say that it cannot be reached.
            let mut path = path.strip_prefix(b"(unreachable)").map_or(path.clone(), <[u8]>::to_vec);
            if !path.ends_with(b"/") {
                path.push(b'/');
            }
            path.extend_from_slice(name);
            Some(path)
        };
        let mut opened_as = None;
        if let Some((directory, name)) = &self.entry {
            let path = in_directory(directory, name);
            // A file that is mounted there is what the name means.
            let now = directory.vnode.lookup(name).await;
            let now = now.map(|vnode| Location { mount: directory.mount.clone(), vnode }.visible());
            match path {
                Some(path) if now.is_ok_and(|now| crate::vfs::same(&now.vnode, &location.vnode)) => {
                    return path;
                }
                path => opened_as = path,
            }
        }
        let place = location.vnode.place();
        let renamed = place.and_then(|(parent, name)| {
            in_directory(&Location { mount: location.mount.clone(), vnode: parent }, &name)
        });
        let mut path = renamed.clone().or(opened_as).unwrap_or_else(|| b"/".to_vec());
        if renamed.is_none() || location.vnode.metadata().links == 0 {
            path.extend_from_slice(b" (deleted)");
        }
        path
    }

    /// For which operations the file is ready; files with a vnode's data are always ready.
    pub fn readiness(&self) -> Readiness {
        match &self.object {
            Some(object) => object.readiness(),
            None => Readiness::READ | Readiness::WRITE,
        }
    }

    /// Whether the file can signal an owner when it becomes ready (O_ASYNC).
    pub fn can_signal(&self) -> bool {
        self.object.as_ref().is_some_and(|object| object.can_signal())
    }

    /// The queue of the threads that wait for it.
    pub fn queue(&self) -> Option<&PollQueue> {
        self.object.as_ref()?.queue()
    }

    /// Waits until the file's data is stored (fsync(2), fdatasync(2)); `EINVAL` for a file without
    /// storage.
    pub async fn synchronize(&self) -> Result<()> {
        match (&self.location, &self.object) {
            (Some(location), None) => location.vnode.synchronize().await,
            _ => Err(Error::EINVAL),
        }
    }

    /// Sets the file's size, in bytes (ftruncate(2)).
    pub async fn truncate(&self, caller: &Caller<'_>, size: u64) -> Result<()> {
        if self.flags().contains(OpenFlags::PATH) {
            return Err(Error::EBADF);
        }
        let vnode = self.regular()?;
        self.check(Access::WRITE).map_err(|_| Error::EINVAL)?;
        caller.truncate_vnode(vnode, size).await
    }

    pub(crate) async fn truncate_for_open(&self, caller: &Caller<'_>) -> Result<()> {
        match self.vnode() {
            Some(vnode) => caller.truncate_vnode(vnode, 0).await,
            None => Ok(()),
        }
    }

    /// Allocates or deallocates a range of the file (fallocate(2)).
    pub async fn allocate(
        &self,
        caller: &Caller<'_>,
        offset: u64,
        length: u64,
        keep_size: bool,
        punch: bool,
    ) -> Result<()> {
        self.check(Access::WRITE)?;
        let vnode = match self.file_type() {
            FileType::Regular => self.regular()?,
            FileType::Directory => return Err(Error::EISDIR),
            FileType::Fifo => return Err(Error::ESPIPE),
            _ => return Err(Error::ENODEV),
        };
        if length == 0 {
            return Err(Error::EINVAL);
        }
        let end = offset.checked_add(length).filter(|&end| end <= crate::vfs::OFFSET_MAXIMUM);
        if end.is_none_or(|end| !punch && end > caller.file_size_limit) {
            return Err(Error::EFBIG);
        }
        vnode.allocate(offset, length, keep_size, punch).await
    }

    fn regular(&self) -> Result<&Arc<dyn Vnode>> {
        match (self.vnode(), &self.object) {
            (Some(vnode), None) if vnode.file_type() == FileType::Regular => Ok(vnode),
            _ => Err(Error::EINVAL),
        }
    }

    /// The memory that mmap(2) maps for this file. `EACCES` if the file is not open for reading, or
    /// is not open for writing and a shared mapping is to be written; `ENODEV` if it cannot be
    /// mapped.
    pub fn memory(&self, write_shared: bool) -> Result<Arc<dyn crate::vfs::FileMemory>> {
        self.check_mapping(write_shared)?;
        match (self.vnode(), &self.object) {
            (Some(vnode), None) => vnode.memory(),
            (_, Some(object)) => object.memory(),
            _ => Err(Error::ENODEV),
        }
    }

    /// The seals of the file, if it is one of a file system.
    pub(crate) fn seals(&self) -> Option<&Seals> {
        self.hooks().map(|hooks| &hooks.seals)
    }

    /// The seals of a file in memory (F_GET_SEALS); `EINVAL` for another file.
    pub fn sealed(&self) -> Result<SealFlags> {
        self.sealable()?.seals()
    }

    /// Adds seals to a file in memory (F_ADD_SEALS). `EPERM` if the file is not open for writing or
    /// may not be sealed, `EBUSY` if it is mapped to be written, `EINVAL` for another file.
    pub async fn seal(&self, seals: SealFlags) -> Result<()> {
        self.check(Access::WRITE).map_err(|_| Error::EPERM)?;
        self.sealable()?.seal(seals).await
    }

    fn sealable(&self) -> Result<&Arc<dyn Vnode>> {
        if self.object.is_some() { Err(Error::EINVAL) } else { self.vnode().ok_or(Error::EINVAL) }
    }

    /// Whether mmap(2) of the file maps zeros (/dev/zero). `EACCES` as for [`OpenFile::memory`].
    pub fn maps_zeros(&self, write_shared: bool) -> Result<bool> {
        let zeros = self.object.as_ref().is_some_and(|object| object.maps_zeros());
        if zeros { self.check_mapping(write_shared).map(|()| true) } else { Ok(false) }
    }

    fn check_mapping(&self, write_shared: bool) -> Result<()> {
        let needed = if write_shared { Access::READ | Access::WRITE } else { Access::READ };
        self.check(needed).map_err(|_| Error::EACCES)
    }

    /// Counts the description as a writer of its file until it is closed; `ETXTBSY` while the file
    /// is being executed.
    pub(crate) fn begin_writing(&self) -> Result<()> {
        if self.object.is_none()
            && self.flags().contains(OpenFlags::WRITE)
            && let Some(hooks) = self.hooks()
        {
            hooks.begin_writing()?;
            self.counted_as_writer.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Reports changes of the file to the observers of the file, and to those of the directory in
    /// which it was found.
    pub(crate) fn happened(&self, changes: Changes) {
        if let Some(vnode) = self.vnode() {
            let entry = self.entry.as_ref().map(|(directory, name)| (&directory.vnode, &name[..]));
            crate::vfs::changes::happened(vnode, entry, changes);
        }
    }

    /// The state that the Unix library keeps with the vnode.
    pub fn hooks(&self) -> Option<&Hooks> {
        self.location.as_ref()?.vnode.hooks()
    }

    /// Makes linkat(2) refuse this file (an O_TMPFILE file that was opened with O_EXCL).
    pub(crate) fn forbid_linking(&self) {
        self.linking_forbidden.store(true, Ordering::Relaxed);
    }

    /// Whether linkat(2) may give a name to a file without one.
    pub(crate) fn may_link(&self) -> bool {
        !self.linking_forbidden.load(Ordering::Relaxed)
    }

    /// Has `listener` called when the description is closed. Code that waits for a file for longer
    /// than one call registers a listener, instead of keeping the file open.
    pub fn add_close_listener(&self, listener: Weak<dyn CloseListener>) {
        let mut listeners = self.close_listeners.lock();
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(listener);
    }

    /// Adds a listener as [`OpenFile::add_close_listener`] does, unless one of its type is there,
    /// which is returned then.
    pub fn add_only_close_listener<T: CloseListener>(&self, listener: Weak<T>) -> Option<Arc<T>> {
        let mut listeners = self.close_listeners.lock();
        // The lock is released before a listener is dropped.
        let others: Vec<Arc<dyn CloseListener>> = listeners.iter().filter_map(Weak::upgrade).collect();
        let of_type = |other: &Arc<dyn CloseListener>| {
            let other: Arc<dyn Any + Send + Sync> = other.clone();
            other.downcast::<T>().ok()
        };
        let found = others.iter().find_map(of_type);
        if found.is_none() {
            listeners.push(listener);
        }
        drop(listeners);
        found
    }

    /// What is kept with the description until it is closed.
    pub fn kept(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.kept.lock().clone()
    }

    /// Keeps something instead until the description is closed. Returns what was kept before.
    pub fn keep(&self, new: Option<Arc<dyn Any + Send + Sync>>) -> Option<Arc<dyn Any + Send + Sync>> {
        core::mem::replace(&mut *self.kept.lock(), new)
    }

    /// The listeners that are called when the description is closed.
    pub fn close_listeners(&self) -> Vec<Arc<dyn CloseListener>> {
        self.close_listeners.lock().iter().filter_map(Weak::upgrade).collect()
    }
}

/// The device number of files that are in no file system.
const ANONYMOUS_DEVICE: crate::vfs::DeviceNumber = crate::vfs::DeviceNumber { major: 0, minor: 1 };

impl Drop for OpenFile {
    fn drop(&mut self) {
        let listeners = core::mem::take(self.close_listeners.get_mut());
        for listener in listeners.iter().filter_map(Weak::upgrade) {
            listener.closed(self.queue());
        }
        let flags = self.flags();
        if !flags.contains(OpenFlags::PATH) {
            let wrote = flags.contains(OpenFlags::WRITE);
            self.happened(if wrote { Changes::CLOSE_WRITE } else { Changes::CLOSE_OTHER });
        }
        if let Some(hooks) = self.hooks() {
            hooks.locks.release(LockOwner::Description(self.id));
            if self.counted_as_writer.load(Ordering::Relaxed) {
                hooks.end_writing();
            }
        }
    }
}
