//! Types of file systems, as mount(2) names them, and the file system of memory files, which is not
//! mounted anywhere.

use super::mount::{Location, Mount, MountFlags};
use super::vnode::{NewAttributes, VnodeRef};
use super::{At, Caller, FileType, Mode, OpenFlags, SealFlags, Vfs};
use crate::disk::Device;
use crate::file::OpenFile;
use crate::message_queue::{MessageQueues, QueueFileSystems};
use crate::process_context::ProcessContext;
use crate::sync::SpinLock;
use crate::{Error, MaybeReady, Result};
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A type of file systems. A function of the options is one whose file systems have no source.
pub trait FileSystemType: Send + Sync {
    /// Makes a file system of the type (or finds the only one); returns its root directory. The
    /// arguments are those of mount(2).
    fn make<'a>(&'a self, source: &'a [u8], options: &'a [u8]) -> MaybeReady<'a, Result<VnodeRef>>;

    /// The same for a process, if what the file system shows depends on its namespaces.
    fn make_for<'a>(
        &'a self,
        process: &dyn ProcessContext,
        source: &'a [u8],
        options: &'a [u8],
    ) -> MaybeReady<'a, Result<VnodeRef>> {
        let _ = process;
        self.make(source, options)
    }

    /// Whether the source is a block device: the file system is made by
    /// [`make_on`](FileSystemType::make_on).
    fn is_on_device(&self) -> bool {
        false
    }

    /// Makes the file system that is on a device. With `read_only` nothing is written there, except
    /// for a journal that is replayed.
    fn make_on<'a>(
        &'a self,
        device: Device,
        options: &'a [u8],
        read_only: bool,
    ) -> MaybeReady<'a, Result<VnodeRef>> {
        let _ = (device, options, read_only);
        MaybeReady::ready(Err(Error::ENOTBLK))
    }
}

impl<F: Fn(&[u8]) -> Result<VnodeRef> + Send + Sync> FileSystemType for F {
    fn make<'a>(&'a self, _source: &'a [u8], options: &'a [u8]) -> MaybeReady<'a, Result<VnodeRef>> {
        MaybeReady::ready(self(options))
    }
}

/// The types of file systems that a system has.
#[derive(Default)]
pub(super) struct Types {
    known: SpinLock<Vec<(&'static str, Arc<dyn FileSystemType>)>>,
    /// The mount with the files that exist in memory only (memfd_create(2)).
    memory_files: SpinLock<Option<Arc<Mount>>>,
    message_queues: SpinLock<Option<Arc<QueueFileSystems>>>,
}

impl Vfs {
    /// Registers a type of file systems, which can be mounted from now on.
    pub fn register_file_system(&self, name: &'static str, kind: Arc<dyn FileSystemType>) {
        let mut known = self.types.known.lock();
        known.retain(|(other, _)| *other != name);
        known.push((name, kind));
    }

    /// The names of the types of file systems.
    pub fn file_system_types(&self) -> Vec<&'static str> {
        self.types.known.lock().iter().map(|(name, _)| *name).collect()
    }

    /// Makes a file system of the type `name`. `ENODEV` if there is no such type, `EINVAL` for bad
    /// options; other errors of the source.
    pub async fn make_file_system(&self, name: &[u8], source: &[u8], options: &[u8]) -> Result<VnodeRef> {
        self.type_of_file_system(name)?.make(source, options).await
    }

    fn type_of_file_system(&self, name: &[u8]) -> Result<Arc<dyn FileSystemType>> {
        let found = self.types.known.lock().iter().find(|(known, _)| known.as_bytes() == name).cloned();
        found.map(|(_, kind)| kind).ok_or(Error::ENODEV)
    }

    /// The types of file systems whose source is a block device.
    pub fn types_on_devices(&self) -> Vec<&'static str> {
        let known = self.types.known.lock();
        known.iter().filter(|(_, kind)| kind.is_on_device()).map(|(name, _)| *name).collect()
    }

    /// Mounts the file system of a device over the root directory, before there are processes. The
    /// device is named as in /dev, or as `PARTUUID=` with the GUID of a partition. Returns whether
    /// the file system can only be read: it is mounted so if it cannot be mounted otherwise.
    ///
    /// # Errors
    /// `ENXIO`: there is no such device; `ENODEV`: no type of file systems is that of devices.
    /// Others of the file system.
    pub async fn mount_root(&self, name: &str) -> Result<bool> {
        let is_meant = |device: &Device| match name.strip_prefix("PARTUUID=") {
            Some(guid) => device.partition_guid().is_some_and(|own| own.eq_ignore_ascii_case(guid)),
            None => device.name() == name,
        };
        let device = self.disks.devices().into_iter().find(is_meant).ok_or(Error::ENXIO)?;
        let mut refused = Error::ENODEV;
        for read_only in [false, true] {
            for kind in self.types_on_devices() {
                let kind = self.type_of_file_system(kind.as_bytes())?;
                match kind.make_on(device.clone(), b"", read_only).await {
                    Ok(root) => {
                        let read_only = root.file_system().is_read_only();
                        let flags = if read_only { MountFlags::READ_ONLY } else { MountFlags::empty() };
                        self.tree.mount(self.tree.root(), root, &format!("/dev/{}", device.name()), flags)?;
                        return Ok(read_only);
                    }
                    Err(error) => refused = error,
                }
            }
        }
        Err(refused)
    }

    /// Sets the file system, by its root directory, in which [`Caller::make_memory_file`] makes
    /// files.
    pub fn set_memory_files(&self, root: VnodeRef) {
        *self.types.memory_files.lock() = Some(Mount::detached(root, "none", MountFlags::empty()));
    }
}

impl Vfs {
    pub(crate) fn set_message_queues(&self, queues: Arc<QueueFileSystems>) {
        *self.types.message_queues.lock() = Some(queues);
    }

    /// The message queues that a process sees. `ENOSYS` if the system has none.
    pub(crate) fn message_queues(&self, process: &dyn ProcessContext) -> Result<MessageQueues> {
        let all = self.types.message_queues.lock().clone();
        all.ok_or(Error::ENOSYS)?.of(process)
    }
}

impl Caller<'_> {
    /// Makes a file in memory of this size, opened twice: for reading and writing, and for reading
    /// only.
    pub async fn make_shared_memory(&self, name: Vec<u8>, size: u64) -> Result<[Arc<OpenFile>; 2]> {
        let writable = self.make_memory_file(name.clone(), SealFlags::SEAL).await?;
        writable.truncate(self, size).await?;
        let location = writable.location().ok_or(Error::ENODEV)?.clone();
        let entry = (location.mount.root(), name);
        let readable = OpenFile::of_vnode(location, Some(entry), OpenFlags::READ, None);
        readable.forbid_linking();
        Ok([writable, readable])
    }

    /// Makes a file system of the type `name`, as mount(2) does. The source is looked up if it is
    /// to be a block device: `ENOTBLK` if it is none, `EBUSY` if it has a file system that is
    /// mounted.
    pub async fn make_file_system(
        &self,
        name: &[u8],
        source: &[u8],
        options: &[u8],
        read_only: bool,
    ) -> Result<VnodeRef> {
        let kind = self.vfs.type_of_file_system(name)?;
        if !self.identity.namespace().is_first() {
            self.check_kind(core::str::from_utf8(name).map_err(|_| Error::ENODEV)?)?;
        }
        if !kind.is_on_device() {
            return kind.make_for(self.process, source, options).await;
        }
        let node = self.find(&At::Current, source, true).await?.location.vnode;
        if node.file_type() != FileType::BlockDevice {
            return Err(Error::ENOTBLK);
        }
        let device = self.vfs.disks.find(node.metadata().represents)?;
        let device_number = device.number();
        let is_mounted = |root: &VnodeRef| root.metadata().device == device_number;
        if self.vfs.tree.roots_of_all().iter().any(is_mounted) {
            return Err(Error::EBUSY);
        }
        if self.vfs.swap.uses(&device.disk, &device.range()) {
            return Err(Error::EBUSY);
        }
        kind.make_on(device, options, read_only).await
    }

    /// Makes a file in memory with these seals and opens it for reading and writing. It has no name
    /// in any directory; `name` is only shown.
    pub async fn make_memory_file(&self, name: Vec<u8>, seals: SealFlags) -> Result<Arc<OpenFile>> {
        let mount = self.vfs.types.memory_files.lock().clone().ok_or(Error::ENODEV)?;
        let attributes = NewAttributes {
            mode: Mode::new(0o777),
            user: self.identity.user,
            group: self.identity.group,
            account: Some(self.process.account()),
            lists: None,
        };
        let vnode = mount.root().vnode.create_unnamed(attributes).await?;
        if let Some(hooks) = vnode.hooks() {
            hooks.seals.begin(seals);
        }
        let location = Location { mount: mount.clone(), vnode };
        let file = OpenFile::of_vnode(location, Some((mount.root(), name)), OpenFlags::READ_WRITE, None);
        file.forbid_linking();
        Ok(file)
    }
}
