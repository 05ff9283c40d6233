//! ext4 file systems on disks. A file server of its own knows the format; it is reached by the
//! messages of `lib/ninep`, and has the disk by requests to this side ([`DiskService`]).
//!
//! The file server has no other client, so what it said once stays true: nodes, attributes and
//! names are kept. File data are in the page cache. What programs write is written to the disk by
//! fsync(2), sync(2), after some seconds, and when memory is short.
//!
//! | module | subject |
//! |---|---|
//! | `node` | vnodes |
//! | `data` | the data of a regular file |
//! | `names` | operations on directories, the names that are kept |
//! | `extended` | extended attributes |
//! | `service` | the disk, as the file server uses it |
//! | `restart` | the way to a file server that may end: what it has lost is given again |

mod data;
mod extended;
mod names;
mod node;
mod restart;
mod service;

pub use service::{DiskService, Operation};

use crate::disk::Device;
use crate::sync::{Mutex, SpinLock};
use crate::v9fs::{Fid, Session, Transport, load_status};
use crate::vfs::{
    DeviceNumber, FileSystem, FileSystemStatus, FileSystemType, MemoryProvider, UnwrittenPages, VnodeRef,
};
use crate::{BoxFuture, Environment, Error, MaybeReady, Result};
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use names::Names;
use ninep::{Attributes, Body, Call};
use node::Node;

/// The file servers that a system has.
pub trait FileServers: Send + Sync {
    /// The way to a file server that is free, whose disk is `device` from now on. `ENODEV`: there
    /// is no file server; `EBUSY`: all have a file system.
    fn connect(&self, device: &Device) -> Result<Arc<dyn Transport>>;

    /// The way to a file server that is started in place of one that has ended, for which the
    /// result waits. An error: none is started any more.
    fn connect_again<'a>(&'a self, device: &'a Device) -> BoxFuture<'a, Result<Arc<dyn Transport>>>;

    /// Runs a task, which nothing waits for.
    fn spawn(&self, task: BoxFuture<'static, ()>) -> Result<()>;

    /// Says something to the administrator of the system.
    fn log(&self, message: core::fmt::Arguments<'_>);
}

/// The type of these file systems.
pub struct Ext4Type {
    /// The file servers.
    pub servers: Arc<dyn FileServers>,
    /// Makes the memory of files.
    pub memory: Arc<dyn MemoryProvider>,
    /// The source of time.
    pub environment: Arc<dyn Environment>,
}

impl FileSystemType for Ext4Type {
    fn make<'a>(&'a self, _source: &'a [u8], _options: &'a [u8]) -> MaybeReady<'a, Result<VnodeRef>> {
        MaybeReady::ready(Err(Error::ENOTBLK))
    }

    fn is_on_device(&self) -> bool {
        true
    }

    fn make_on<'a>(
        &'a self,
        device: Device,
        options: &'a [u8],
        read_only: bool,
    ) -> MaybeReady<'a, Result<VnodeRef>> {
        MaybeReady::pending(async move {
            let read_only = check_options(options, read_only)?;
            let root: VnodeRef = Ext4::mount(self, &device, read_only).await?;
            Ok(root)
        })
    }
}

/// Checks the options of a mount: those that ask for what is done anyway. Returns whether it is
/// read-only.
fn check_options(options: &[u8], mut read_only: bool) -> Result<bool> {
    for option in options.split(|&byte| byte == b',').filter(|option| !option.is_empty()) {
        match option {
            b"ro" => read_only = true,
            b"rw" | b"defaults" | b"data=ordered" | b"barrier" | b"barrier=1" | b"user_xattr" | b"acl" => {}
            b"errors=remount-ro" | b"errors=continue" | b"nodiscard" | b"lazytime" | b"nolazytime" => {}
            b"auto_da_alloc" | b"delalloc" | b"block_validity" | b"nouid32" | b"noquota" | b"relatime" => {}
            option if option.starts_with(b"commit=") || option.starts_with(b"stripe=") => {}
            _ => return Err(Error::EINVAL),
        }
    }
    Ok(read_only)
}

/// A file system.
pub(super) struct Ext4 {
    session: Arc<Session>,
    memory: Arc<dyn MemoryProvider>,
    environment: Arc<dyn Environment>,
    device: DeviceNumber,
    /// The disk, on which data are read and written without the file server where it has said the
    /// places.
    disk: Device,
    /// Whether the disk itself can only be read.
    disk_is_read_only: bool,
    /// Whether nothing is written, until it is mounted again for writing.
    read_only: AtomicBool,
    root: SpinLock<Weak<Node>>,
    /// The nodes that exist, by the numbers of their files: a file has one node.
    nodes: SpinLock<BTreeMap<u64, Weak<Node>>>,
    /// Names that were looked up, with their nodes, which are kept for that.
    names: SpinLock<Names>,
    /// Locked while names change.
    changing: Mutex<()>,
    /// Files whose data or times the file server may not have, by their numbers.
    dirty: SpinLock<BTreeMap<u64, Dirty>>,
    /// Locked while everything is stored, for which the end of the file system waits.
    storing: Mutex<()>,
    /// Whether the file server has changed anything since it was last asked to store it.
    changed: AtomicBool,
    /// How many bytes files can grow before the free space of the disk is looked at again.
    room: AtomicU64,
    /// Whether the file system is unmounted.
    ended: AtomicBool,
    status: SpinLock<FileSystemStatus>,
}

/// A file whose data or times the file server may not have.
struct Dirty {
    node: Weak<Node>,
    /// Keeps the file until it is written. A file without a name is written as long as it is used,
    /// and freed after that.
    kept: Option<Arc<Node>>,
}

impl Ext4 {
    async fn mount(of: &Ext4Type, device: &Device, read_only: bool) -> Result<Arc<Node>> {
        let session = Session::begin(restart::Way::to(of, device)?).await?;
        let fid = session.fid();
        let time = restart::now(&*of.environment);
        let reply = session.call(&Call::Mount { fid: fid.number, read_only, resume: false, time }).await?;
        reply.read(|body| {
            body.mounted().map(|mounted| {
                mounted.map(drop).map_err(|(number, why)| {
                    let why = String::from_utf8_lossy(why).into_owned();
                    of.servers.log(format_args!("{} cannot be mounted as ext4: {why}", device.name()));
                    crate::v9fs::error_of(ninep::Failure::Server(number))
                })
            })
        })??;
        let number = device.number();
        let file_system = Arc::new(Ext4 {
            session,
            memory: of.memory.clone(),
            environment: of.environment.clone(),
            device: number,
            disk: device.clone(),
            disk_is_read_only: device.disk.about.read_only,
            read_only: AtomicBool::new(read_only || device.disk.about.read_only),
            root: SpinLock::new(Weak::new()),
            nodes: SpinLock::new(BTreeMap::new()),
            names: SpinLock::new(Names::default()),
            changing: Mutex::new(()),
            storing: Mutex::new(()),
            dirty: SpinLock::new(BTreeMap::new()),
            changed: AtomicBool::new(false),
            room: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            status: SpinLock::new(FileSystemStatus::without_store("ext4", number.minor.into())),
        });
        let reply = file_system.session.call(&Call::GetAttributes { fid: fid.number }).await?;
        let root = file_system.node(fid, reply.read(Body::attributes)?, None)?;
        root.load_lists().await?;
        *file_system.root.lock() = Arc::downgrade(&root);
        // The root directory stays as long as the mount, which has it.
        file_system.load_status().await?;
        Ok(root)
    }

    /// The node of a file. `fid` is forgotten if the file has a node.
    fn node(
        self: &Arc<Self>,
        fid: Fid,
        attributes: Attributes,
        place: Option<(Arc<Node>, &[u8])>,
    ) -> Result<Arc<Node>> {
        let number = attributes.qid.path;
        let mut nodes = self.nodes.lock();
        if let Some(node) = nodes.get(&number).and_then(Weak::upgrade) {
            drop(nodes);
            if let Some((parent, name)) = place {
                node.is_at(parent, name);
            }
            return Ok(node);
        }
        let node = Node::new(self, fid, attributes, place)?;
        nodes.insert(number, Arc::downgrade(&node));
        Ok(node)
    }

    /// Notes that the file server is about to change something.
    fn changed(&self) {
        self.changed.store(true, Ordering::Release);
    }

    /// Carries out a request that changes something.
    async fn change(&self, call: &Call<'_>) -> Result<()> {
        self.changed();
        self.session.perform(call).await
    }

    /// Whether blocks of data are pages of the disk, so that pages of a file can be written alone.
    fn has_blocks_of_pages(&self) -> bool {
        let page = crate::vfs::PAGE_SIZE as u64;
        u64::from(self.status.lock().block_size) == page && self.disk.range().start.is_multiple_of(page)
    }

    /// By how many of these bytes a file can grow. `ENOSPC`: by none, and it is to grow.
    async fn reserve(&self, bytes: u64) -> Result<u64> {
        let take = |room: u64| room.checked_sub(bytes);
        // Relaxed ordering: an estimate, which is made again when it is used up.
        if self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
            return Ok(bytes);
        }
        // The data that are in memory only get their places first.
        self.write_all_back().await?;
        let status = self.load_status().await?;
        let room = status.available_blocks.saturating_mul(status.block_size.into());
        let reserved = bytes.min(room);
        self.room.store(room - reserved, Ordering::Relaxed);
        if reserved > 0 { Ok(reserved) } else { Err(Error::ENOSPC) }
    }

    fn is_dirty(&self, node: Arc<Node>) {
        let kept = (!node.has_no_name()).then(|| node.clone());
        self.dirty.lock().insert(node.number, Dirty { node: Arc::downgrade(&node), kept });
    }

    /// The file with this number has lost its last name: nothing is stored for its own sake.
    fn has_lost_its_name(&self, number: u64) {
        let kept = self.dirty.lock().get_mut(&number).and_then(|dirty| dirty.kept.take());
        drop(kept);
    }

    /// Gives the file server all data and times that it does not have. Returns the first error.
    async fn write_all_back(&self) -> Result<()> {
        let all: alloc::vec::Vec<_> = {
            let mut dirty = self.dirty.lock();
            dirty.retain(|_, dirty| dirty.node.strong_count() > 0);
            dirty.values().map(|dirty| dirty.node.clone()).collect()
        };
        let mut result = Ok(());
        for node in all {
            let Some(node) = node.upgrade() else { continue };
            let written = node.write_back().await;
            let mut dirty = self.dirty.lock();
            // `node` and perhaps this list have a reference, and names have others. A file that was
            // mapped and has more may still be, and its pages may change at any time.
            let listed = dirty.get(&node.number).map_or(0, |dirty| usize::from(dirty.kept.is_some()));
            let unused = Arc::strong_count(&node) <= 1 + listed + node.kept();
            let gone = match written.is_ok() && node.is_clean(unused) {
                true => dirty.remove(&node.number),
                false => None,
            };
            drop(dirty);
            drop(gone);
            result = result.and(written);
        }
        result
    }

    async fn store(&self) -> Result<()> {
        let _alone = self.storing.lock().await;
        if self.ended.load(Ordering::Acquire) {
            return Ok(());
        }
        let written = self.write_all_back().await;
        if !self.changed.swap(false, Ordering::AcqRel) {
            return written;
        }
        let root = self.root.lock().upgrade().ok_or(Error::EIO)?;
        let call = Call::Synchronize { fid: root.fid(), data_only: false };
        written.and(self.session.perform(&call).await)
    }

    /// Makes the file system one that can only be read, or can be written again.
    ///
    /// # Errors
    /// `EBUSY`: files are open for writing, or have no names any more. `EROFS`: the disk cannot be
    /// written. Others of the disk.
    async fn remount(&self, read_only: bool) -> Result<()> {
        let _alone = self.changing.lock().await;
        if read_only == self.is_read_only() {
            return Ok(());
        }
        if !read_only {
            if self.disk_is_read_only {
                return Err(Error::EROFS);
            }
            self.session.perform(&Call::Remount { read_only }).await?;
            // A program may have repaired the file system meanwhile.
            let nodes: alloc::vec::Vec<_> = self.nodes.lock().values().filter_map(Weak::upgrade).collect();
            nodes.iter().for_each(|node| node.forget_places());
            self.read_only.store(false, Ordering::Release);
            return Ok(());
        }
        // No file is opened for writing from now on, unless this fails.
        let writable_again = WritableAgain::unless_done(&self.read_only);
        let nodes: alloc::vec::Vec<_> = self.nodes.lock().values().filter_map(Weak::upgrade).collect();
        let is_written = nodes.iter().any(|node| node.has_writers());
        drop(nodes);
        if is_written {
            return Err(Error::EBUSY);
        }
        self.write_all_back().await?;
        self.session.perform(&Call::Remount { read_only }).await?;
        self.changed.store(false, Ordering::Release);
        writable_again.done();
        Ok(())
    }

    async fn unmount(&self) -> Result<()> {
        if self.ended.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        // Until a store that is under way has ended, the file server would not be free.
        let _alone = self.storing.lock().await;
        let written = self.write_all_back().await;
        let names = self.names.lock().clear();
        drop(names);
        let dirty = core::mem::take(&mut *self.dirty.lock());
        drop(dirty);
        written.and(self.session.perform(&Call::Unmount).await)
    }
}

/// Takes back that a file system can only be read, if what makes it so fails or is given up.
struct WritableAgain<'a>(Option<&'a AtomicBool>);

impl WritableAgain<'_> {
    fn unless_done(read_only: &AtomicBool) -> WritableAgain<'_> {
        read_only.store(true, Ordering::Release);
        WritableAgain(Some(read_only))
    }

    fn done(mut self) {
        self.0 = None;
    }
}

impl Drop for WritableAgain<'_> {
    fn drop(&mut self) {
        if let Some(read_only) = self.0 {
            read_only.store(false, Ordering::Release);
        }
    }
}

impl FileSystem for Ext4 {
    fn status(&self) -> FileSystemStatus {
        self.status.lock().clone()
    }

    fn options(&self) -> String {
        if self.is_read_only() { ",errors=remount-ro".to_string() } else { String::new() }
    }

    fn reconfigure<'a>(&'a self, options: &'a [u8], read_only: bool) -> MaybeReady<'a, Result<()>> {
        match check_options(options, read_only) {
            Ok(read_only) => MaybeReady::pending(self.remount(read_only)),
            Err(error) => MaybeReady::ready(Err(error)),
        }
    }

    fn load_status(&self) -> MaybeReady<'_, Result<FileSystemStatus>> {
        MaybeReady::pending(async move {
            let status = load_status(&self.session, 0, "ext4", self.device.minor.into()).await?;
            *self.status.lock() = status.clone();
            Ok(status)
        })
    }

    fn synchronize(&self) -> MaybeReady<'_, Result<()>> {
        match self.dirty.lock().is_empty() && !self.changed.load(Ordering::Acquire) {
            true => MaybeReady::ready(Ok(())),
            false => MaybeReady::pending(self.store()),
        }
    }

    fn count_unwritten(&self, pages: &mut UnwrittenPages) {
        let nodes: alloc::vec::Vec<_> = self.dirty.lock().values().map(|dirty| dirty.node.clone()).collect();
        let nodes = nodes.iter().filter_map(Weak::upgrade);
        nodes.filter_map(|node| node.cached()).for_each(|memory| pages.add(&*memory));
    }

    fn end(&self) -> MaybeReady<'_, Result<()>> {
        MaybeReady::pending(self.unmount())
    }

    fn is_read_only(&self) -> bool {
        self.read_only.load(Ordering::Acquire)
    }
}
