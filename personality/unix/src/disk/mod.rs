//! Disks: block devices in /dev, with their partitions.
//!
//! A disk's contents are in the page cache: a memory object whose pager is the disk. All nodes of a
//! disk, and mappings of it, show the same pages. Pages that were written reach the disk by
//! fsync(2), sync(2), after some seconds ([`Disks::write_back`]), and when memory is short.
//!
//! | module | subject |
//! |---|---|
//! | `cache` | the pages of a disk, and what a driver implements: [`Store`] |
//! | `node` | what an open node of a disk or partition reads and writes |

mod cache;
mod node;

#[cfg(test)]
mod tests;

pub use cache::{Cache, Store};
pub use node::BlockNode;

use crate::sync::SpinLock;
use crate::vfs::{
    DeviceNumber, FileMemory, FileType, Mode, NewAttributes, NewNode, OpenContext, OpenFlags, VnodeRef,
};
use crate::{Bytes, Error, MaybeReady, Result};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};
use mach::machine::Frame;
pub use partitions::{Kind, Partition};

/// The number of bytes of a sector, in which the places of partitions are counted.
pub const SECTOR: u64 = 512;
/// The group that owns the nodes of disks in distributions.
const GROUP: u32 = 6;
/// How many minor numbers a disk has: itself, and its partitions.
pub const MINORS: u32 = 16;

/// What drives a disk: it is named after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// A virtio block device: `vda`, `vdb` and so on.
    Virtio,
    /// An NVMe disk: `nvme0n1`, `nvme1n1` and so on.
    Nvme,
}

impl Family {
    /// The name and the device number of the disk of this family with so many before it.
    pub fn name(self, before: u32) -> (String, DeviceNumber) {
        // The first dynamic number, which virtio disks usually have, and that of extended ones.
        let (name, major) = match self {
            Family::Virtio => (format!("vd{}", char::from(b'a' + (before % 26) as u8)), 254),
            Family::Nvme => (format!("nvme{before}n1"), 259),
        };
        (name, DeviceNumber { major, minor: before * MINORS })
    }
}

/// What a disk is and can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// What drives it.
    pub family: Family,
    /// The size in bytes.
    pub size: u64,
    /// The size of a logical block in bytes: a power of two from 512 to 4096.
    pub logical: u32,
    /// The size of a physical block in bytes.
    pub physical: u32,
    /// Whether nothing can be written.
    pub read_only: bool,
    /// Whether the disk has a cache of its own, which is flushed.
    pub has_cache: bool,
    /// The most bytes that one request can discard; 0: the disk cannot discard.
    pub discard: u64,
    /// Cylinders, heads and sectors of a track, if the disk says them.
    pub geometry: Option<(u16, u8, u8)>,
    /// The serial number.
    pub serial: Vec<u8>,
}

/// The contents of a disk, whatever the machine is.
pub trait Data: Send + Sync {
    /// The pages of the whole disk.
    fn memory(&self) -> Arc<dyn FileMemory>;

    /// Writes the pages of a range that were written to the disk. With `forget` the pages are freed
    /// afterwards. Errors of the disk are counted ([`failures`](Data::failures)), and pages that it
    /// refuses stay.
    fn write_back(&self, range: Range<u64>, forget: bool) -> MaybeReady<'_, Result<()>>;

    /// How many writes of pages the disk has refused so far.
    fn failures(&self) -> u32;

    /// Brings what was written to the disk to stable storage.
    fn flush(&self) -> MaybeReady<'_, Result<()>>;

    /// Fills frames with the bytes of the disk from `place` on, a multiple of the size of a sector.
    /// The pages of the disk are neither used nor changed. The future is not dropped before its
    /// end.
    ///
    /// # Errors
    /// `EOPNOTSUPP`: the disk cannot do that. `EIO`: it has an error.
    fn read_frames<'a>(&'a self, place: u64, frames: &'a [Frame]) -> MaybeReady<'a, Result<()>>;

    /// Writes frames to the bytes of the disk from `place` on, as
    /// [`read_frames`](Self::read_frames) reads them.
    fn write_frames<'a>(&'a self, place: u64, frames: &'a [Frame]) -> MaybeReady<'a, Result<()>>;

    /// Frees the pages of a range, unwritten, and tells the disk that they are not needed. The
    /// range has whole pages.
    fn discard(&self, range: Range<u64>) -> MaybeReady<'_, Result<()>>;
}

/// A disk.
pub struct Disk {
    /// The name of the disk's node in /dev.
    pub name: String,
    /// The device number. Partitions have the minor numbers after it.
    pub number: DeviceNumber,
    /// What the disk is and can do.
    pub about: About,
    /// The contents of the disk.
    pub data: Arc<dyn Data>,
    partitions: SpinLock<Vec<Partition>>,
    /// Whether pages were written since the last [`Disks::write_back`].
    was_written: AtomicBool,
    /// Whether programs have mapped pages, which they may write at any time.
    is_mapped: AtomicBool,
}

/// A disk or a partition: what a device number leads to.
#[derive(Clone)]
pub struct Device {
    /// The disk.
    pub disk: Arc<Disk>,
    /// The partition, if it is not the whole disk.
    pub partition: Option<Partition>,
}

impl Disk {
    /// Makes a disk without partitions, which [`Disks::add`] finds.
    pub fn new(name: &str, number: DeviceNumber, about: About, data: Arc<dyn Data>) -> Arc<Disk> {
        Arc::new(Disk {
            name: name.into(),
            number,
            about,
            data,
            partitions: SpinLock::new(Vec::new()),
            was_written: AtomicBool::new(false),
            is_mapped: AtomicBool::new(false),
        })
    }

    /// The partitions, in the order of their numbers, with places in logical blocks.
    pub fn partitions(&self) -> Vec<Partition> {
        self.partitions.lock().clone()
    }

    /// The disk itself, then its partitions.
    pub fn devices(self: &Arc<Disk>) -> Vec<Device> {
        let parts = self.partitions().into_iter().map(Some);
        let all = core::iter::once(None).chain(parts);
        all.map(|partition| Device { disk: self.clone(), partition }).collect()
    }

    /// Notes that pages are being written.
    pub(crate) fn touch(&self) {
        self.was_written.store(true, Ordering::Relaxed);
    }

    /// Writes all changed pages to the disk, and brings them to stable storage.
    ///
    /// # Errors
    /// `EIO`: the disk has refused a page, or the flush.
    pub async fn synchronize(&self) -> Result<()> {
        let before = self.data.failures();
        let written = self.data.write_back(0..self.about.size, false).await;
        self.data.flush().await?;
        written?;
        if self.data.failures() == before { Ok(()) } else { Err(Error::EIO) }
    }
}

impl Device {
    /// The name of the device's node in /dev.
    pub fn name(&self) -> String {
        let disk = &self.disk.name;
        match &self.partition {
            None => disk.clone(),
            // A number after a number would be read as one.
            Some(partition) if disk.ends_with(|last: char| last.is_ascii_digit()) => {
                format!("{disk}p{}", partition.number)
            }
            Some(partition) => format!("{disk}{}", partition.number),
        }
    }

    /// The GUID of the partition as text, if it is one of a GPT.
    pub fn partition_guid(&self) -> Option<String> {
        match self.partition.as_ref()?.kind {
            Kind::Gpt { identity, .. } => Some(partitions::guid_text(identity)),
            Kind::Mbr(_) => None,
        }
    }

    /// The device number.
    pub fn number(&self) -> DeviceNumber {
        let DeviceNumber { major, minor } = self.disk.number;
        DeviceNumber { major, minor: minor + self.partition.as_ref().map_or(0, |partition| partition.number) }
    }

    /// The bytes of the disk that belong to the device.
    pub fn range(&self) -> Range<u64> {
        let block = u64::from(self.disk.about.logical);
        match &self.partition {
            None => 0..self.disk.about.size,
            Some(partition) => partition.first * block..(partition.first + partition.count) * block,
        }
    }

    /// The size in bytes.
    pub fn size(&self) -> u64 {
        let range = self.range();
        range.end - range.start
    }
}

/// The disks of a system.
#[derive(Default)]
pub struct Disks {
    disks: SpinLock<Vec<Arc<Disk>>>,
    /// The root directory of the file system in which disks have nodes.
    directory: SpinLock<Option<VnodeRef>>,
}

impl Disks {
    /// All disks.
    pub fn all(&self) -> Vec<Arc<Disk>> {
        self.disks.lock().clone()
    }

    /// All disks and their partitions.
    pub fn devices(&self) -> Vec<Device> {
        self.all().iter().flat_map(Disk::devices).collect()
    }

    /// Sets the root directory of the file system in which disks have nodes, and makes the nodes of
    /// those that there are.
    ///
    /// # Errors
    /// `ENOMEM`: memory is short.
    pub async fn set_directory(&self, directory: VnodeRef) -> Result<()> {
        *self.directory.lock() = Some(directory);
        for device in self.devices() {
            self.make_node(&device).await?;
        }
        Ok(())
    }

    /// Adds a disk: finds its partitions, and makes nodes for it and for them.
    ///
    /// # Errors
    /// `ENOMEM`: memory is short. A disk that cannot be read has no partitions.
    pub async fn add(&self, disk: Arc<Disk>) -> Result<()> {
        self.disks.lock().push(disk.clone());
        self.make_node(&Device { disk: disk.clone(), partition: None }).await?;
        match self.find_partitions(&disk).await {
            Err(Error::EIO) => Ok(()),
            done => done,
        }
    }

    /// The device of this number.
    ///
    /// # Errors
    /// `ENXIO`: there is none.
    pub fn find(&self, number: DeviceNumber) -> Result<Device> {
        self.devices().into_iter().find(|device| device.number() == number).ok_or(Error::ENXIO)
    }

    /// Opens a device whose node was found.
    pub(crate) fn open(&self, node: &VnodeRef, context: &OpenContext<'_>) -> Result<VnodeRef> {
        let device = self.find(node.metadata().represents)?;
        if context.flags.contains(OpenFlags::WRITE) && device.disk.about.read_only {
            return Err(Error::EACCES);
        }
        Ok(Arc::new(BlockNode::new(device, node.clone(), context.flags.contains(OpenFlags::DIRECT))))
    }

    /// Reads the partition table of a disk again (BLKRRPART).
    ///
    /// # Errors
    /// `EIO`: the disk cannot be read; its partitions are as before. `ENOMEM`: memory is short.
    pub async fn find_partitions(&self, disk: &Arc<Disk>) -> Result<()> {
        let mut found = partitions::read(&Table(disk)).await?;
        found.retain(|partition| partition.number < MINORS);
        let old = core::mem::replace(&mut *disk.partitions.lock(), found.clone());
        let is_in = |list: &[Partition], one: &Partition| list.iter().any(|other| other.number == one.number);
        for partition in old.into_iter().filter(|one| !is_in(&found, one)) {
            self.remove_node(&Device { disk: disk.clone(), partition: Some(partition) }).await;
        }
        for partition in found {
            self.make_node(&Device { disk: disk.clone(), partition: Some(partition) }).await?;
        }
        Ok(())
    }

    async fn make_node(&self, device: &Device) -> Result<()> {
        let Some(directory) = self.directory.lock().clone() else { return Ok(()) };
        let attributes =
            NewAttributes { mode: Mode::new(0o660), user: 0, group: GROUP, account: None, lists: None };
        let node = NewNode::Special(FileType::BlockDevice, device.number());
        match directory.create(device.name().as_bytes(), node, attributes).await {
            Ok(_) | Err(Error::EEXIST) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Removes the node of a device, unless a program has put something else in its place.
    async fn remove_node(&self, device: &Device) {
        let Some(directory) = self.directory.lock().clone() else { return };
        let name = device.name();
        let Ok(node) = directory.lookup(name.as_bytes()).await else { return };
        if node.file_type() == FileType::BlockDevice && node.metadata().represents == device.number() {
            // An error means that a program has removed the node already.
            let _ = directory.remove(name.as_bytes(), &node).await;
        }
    }

    /// Writes the changed pages of all disks, and brings them to stable storage (sync(2)).
    ///
    /// # Errors
    /// The first error; the other disks have been written nevertheless.
    pub async fn synchronize(&self) -> Result<()> {
        let mut result = Ok(());
        for disk in self.all() {
            let done = disk.synchronize().await;
            result = result.and(done);
        }
        result
    }

    /// Writes the pages that were changed since the last call to their disks.
    pub async fn write_back(&self) {
        for disk in self.all() {
            let is_mapped = disk.is_mapped.load(Ordering::Relaxed);
            if disk.was_written.swap(false, Ordering::Relaxed) || is_mapped {
                // Refused pages are counted, and reported by fsync(2).
                let _ = disk.data.write_back(0..disk.about.size, false).await;
            }
        }
    }
}

/// A disk, as the reader of partition tables sees it.
struct Table<'a>(&'a Disk);

impl partitions::Disk for Table<'_> {
    type Error = Error;

    fn block_size(&self) -> usize {
        self.0.about.logical as usize
    }

    fn blocks(&self) -> u64 {
        self.0.about.size / u64::from(self.0.about.logical)
    }

    async fn read(&self, block: u64, buffer: &mut [u8]) -> Result<()> {
        let memory = self.0.data.memory();
        let mut offset = block * u64::from(self.0.about.logical);
        let mut bytes = Bytes::empty(buffer.len());
        while crate::UserBuffer::remaining(&bytes) > 0 {
            let left = crate::UserBuffer::remaining(&bytes);
            match memory.read(offset, left, &mut bytes).await {
                Ok(0) | Err(_) => return Err(Error::EIO),
                Ok(count) => offset += count as u64,
            }
        }
        buffer.copy_from_slice(bytes.done());
        Ok(())
    }
}
