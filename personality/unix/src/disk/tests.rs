//! Disks whose driver is a vector of bytes that refuses what a test chooses.

use super::*;
use crate::sync::SpinLock as Lock;
use crate::testing::World;
use crate::vfs::{FileSystemType, OpenFlags, Vnode, WriteAt};
use crate::{AttemptError, BoxFuture, UserBuffer};
use mach::Machine;
use mach::machine::Frame;
use mach::machine::simulated::Simulated;
use mach::vm::Vm;
use std::boxed::Box;
use std::vec;

const PAGE: usize = 4096;

/// A driver that has a disk in memory.
struct Memory {
    machine: Simulated,
    bytes: Lock<Vec<u8>>,
    /// How many sectors were read, written and discarded, and how often it was flushed.
    counts: Lock<[u64; 4]>,
    /// Whether reads, writes and flushes fail.
    refuses: Lock<[bool; 3]>,
}

impl Memory {
    fn done(&self, what: usize, count: u64) -> Result<()> {
        self.counts.lock()[what] += count;
        if self.refuses.lock().get(what) == Some(&true) { Err(Error::EIO) } else { Ok(()) }
    }

    fn pieces(sector: u64, sectors: u64, frames: &[Frame]) -> impl Iterator<Item = (Range<usize>, Frame)> {
        let (start, end) = ((sector * SECTOR) as usize, ((sector + sectors) * SECTOR) as usize);
        let pieces = (start..end).step_by(PAGE).map(move |at| at..(at + PAGE).min(end));
        pieces.zip(frames.iter().copied())
    }
}

impl Store<Simulated> for Memory {
    fn read<'a>(&'a self, sector: u64, sectors: u64, frames: &'a [Frame]) -> BoxFuture<'a, Result<()>> {
        for (range, frame) in Memory::pieces(sector, sectors, frames) {
            self.machine.write_frame(frame, 0, &self.bytes.lock()[range]);
        }
        Box::pin(core::future::ready(self.done(0, sectors)))
    }

    fn write<'a>(&'a self, sector: u64, sectors: u64, frames: &'a [Frame]) -> BoxFuture<'a, Result<()>> {
        let done = self.done(1, sectors);
        if done.is_ok() {
            for (range, frame) in Memory::pieces(sector, sectors, frames) {
                self.machine.read_frame(frame, 0, &mut self.bytes.lock()[range]);
            }
        }
        Box::pin(core::future::ready(done))
    }

    fn flush(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(core::future::ready(self.done(2, 1)))
    }

    fn discard(&self, sector: u64, sectors: u64) -> BoxFuture<'_, Result<()>> {
        self.bytes.lock()[(sector * SECTOR) as usize..((sector + sectors) * SECTOR) as usize].fill(0);
        Box::pin(core::future::ready(self.done(3, sectors)))
    }
}

/// A disk of so many bytes, whose sectors begin with their numbers, and its driver.
fn disk(size: usize) -> (Simulated, Arc<Memory>, Arc<Disk>) {
    let machine = Simulated::new(256);
    let vm = Vm::new(machine.clone()).unwrap();
    let mut bytes = vec![0; size];
    for (number, sector) in bytes.chunks_mut(512).enumerate() {
        sector[..8].copy_from_slice(&(number as u64).to_le_bytes());
    }
    let (counts, refuses) = (Lock::new([0; 4]), Lock::new([false; 3]));
    let driver = Arc::new(Memory { machine: machine.clone(), bytes: Lock::new(bytes), counts, refuses });
    let about = About {
        family: Family::Virtio,
        size: size as u64,
        logical: 512,
        physical: 512,
        read_only: false,
        has_cache: true,
        discard: 1 << 20,
        geometry: None,
        serial: b"serial".to_vec(),
    };
    let cache = Cache::new(&vm, driver.clone(), &about).unwrap();
    let number = DeviceNumber { major: 254, minor: 0 };
    (machine, driver, Disk::new("vda", number, about, cache))
}

/// A node of the disk in a world, opened with these flags.
fn node(world: &World, disk: &Arc<Disk>, flags: OpenFlags) -> BlockNode {
    let device = Device { disk: disk.clone(), partition: None };
    BlockNode::new(device, world.vfs.tree.root().vnode, flags.contains(OpenFlags::DIRECT))
}

async fn read(node: &BlockNode, offset: u64, length: usize) -> Result<Vec<u8>, AttemptError> {
    let mut bytes = Bytes::empty(length);
    let mut at = offset;
    while bytes.remaining() > 0 {
        match node.read(at, &mut bytes).await? {
            0 => break,
            count => at += count as u64,
        }
    }
    Ok(bytes.done().to_vec())
}

async fn write(node: &BlockNode, offset: u64, bytes: &[u8]) -> Result<(), AttemptError> {
    let mut from = Bytes::of(bytes);
    let mut at = offset;
    while from.remaining() > 0 {
        at = node.write(WriteAt::Offset(at), u64::MAX, &mut from).await?.1;
    }
    Ok(())
}

#[test]
fn what_is_written_is_read_and_reaches_the_disk_by_fsync() {
    let (machine, driver, disk) = disk(20 * PAGE + 1024);
    let world = World::new();
    let node = node(&world, &disk, OpenFlags::READ_WRITE);
    machine.block_on(async {
        let sector = read(&node, 512 * 9, 8).await.unwrap();
        assert_eq!(sector, 9u64.to_le_bytes());
        write(&node, 100, b"in the middle of a page").await.unwrap();
        assert_eq!(read(&node, 100, 23).await.unwrap(), b"in the middle of a page");
        assert_eq!(driver.counts.lock()[1..3], [0, 0]);
        node.synchronize().await.unwrap();
        assert_eq!(driver.counts.lock()[1..3], [8, 1]);
        assert_eq!(&driver.bytes.lock()[100..123], b"in the middle of a page");
        // The last page of the disk is no whole one.
        let end = disk.about.size;
        write(&node, end - 4, b"last").await.unwrap();
        assert_eq!(read(&node, end - 4, 100).await.unwrap(), b"last");
        assert_eq!(write(&node, end - 4, b"more than fits").await, Err(Error::ENOSPC.into()));
        node.synchronize().await.unwrap();
        assert_eq!(&driver.bytes.lock()[end as usize - 4..], b"more");
        assert_eq!(read(&node, end, 1).await.unwrap(), b"");
        assert_eq!((node.size(), node.metadata().size), (end, 0));
    });
}

#[test]
fn whole_pages_are_written_without_being_read() {
    let (machine, driver, disk) = disk(20 * PAGE);
    let world = World::new();
    let node = node(&world, &disk, OpenFlags::READ_WRITE);
    machine.block_on(async {
        write(&node, 0, &vec![7; 20 * PAGE]).await.unwrap();
        assert_eq!(driver.counts.lock()[0], 0);
        node.synchronize().await.unwrap();
        assert!(driver.bytes.lock().iter().all(|&byte| byte == 7));
    });
}

#[test]
fn an_error_reaches_the_one_who_asked() {
    let (machine, driver, disk) = disk(20 * PAGE);
    let world = World::new();
    let node = node(&world, &disk, OpenFlags::READ_WRITE);
    let other = super::tests::node(&world, &disk, OpenFlags::READ_WRITE);
    machine.block_on(async {
        *driver.refuses.lock() = [true, false, false];
        assert_eq!(read(&node, 0, 10).await, Err(Error::EIO.into()));
        *driver.refuses.lock() = [false, true, false];
        write(&node, 0, &[1; PAGE]).await.unwrap();
        disk.data.write_back(0..disk.about.size, false).await.unwrap();
        *driver.refuses.lock() = [false; 3];
        // The page was refused before, in the background. It stays and is written now; both
        // openings get the error once.
        assert_eq!(node.synchronize().await, Err(Error::EIO));
        assert_eq!(node.synchronize().await, Ok(()));
        assert_eq!(driver.bytes.lock()[..PAGE], [1; PAGE]);
        assert_eq!(other.synchronize().await, Err(Error::EIO));
        assert_eq!(other.synchronize().await, Ok(()));
        let later = super::tests::node(&world, &disk, OpenFlags::READ_WRITE);
        assert_eq!(later.synchronize().await, Ok(()));
        *driver.refuses.lock() = [false, false, true];
        assert_eq!(node.synchronize().await, Err(Error::EIO));
    });
}

#[test]
fn direct_transfers_are_of_whole_blocks_and_leave_nothing_in_memory() {
    let (machine, driver, disk) = disk(20 * PAGE);
    let world = World::new();
    let cached = node(&world, &disk, OpenFlags::READ_WRITE);
    let direct = node(&world, &disk, OpenFlags::READ_WRITE | OpenFlags::DIRECT);
    machine.block_on(async {
        for (offset, length) in [(1, 512), (0, 100), (512, 513)] {
            assert_eq!(read(&direct, offset, length).await, Err(Error::EINVAL.into()));
            assert_eq!(write(&direct, offset, &vec![1; length]).await, Err(Error::EINVAL.into()));
        }
        write(&cached, 0, &[5; PAGE]).await.unwrap();
        assert_eq!(read(&direct, 512, 512).await.unwrap(), [5; 512], "both see the same data");
        write(&direct, 1024, &[6; 512]).await.unwrap();
        assert_eq!(driver.bytes.lock()[1024..1536], [6; 512]);
        assert_eq!(read(&cached, 1024, 512).await.unwrap(), [6; 512]);
        *driver.refuses.lock() = [false, true, false];
        let mut from = Bytes::of(&[6; 512]);
        let refused = direct.write(WriteAt::Offset(0), u64::MAX, &mut from).await;
        assert_eq!((refused, from.remaining()), (Err(Error::EIO.into()), 512), "nothing was taken");
    });
}

#[test]
fn discarded_pages_are_forgotten() {
    let (machine, driver, disk) = disk(20 * PAGE);
    let world = World::new();
    let node = node(&world, &disk, OpenFlags::READ_WRITE);
    machine.block_on(async {
        write(&node, 0, &[5; 2 * PAGE]).await.unwrap();
        disk.data.discard(0..PAGE as u64).await.unwrap();
        assert_eq!(driver.counts.lock()[3], 8);
        assert_eq!(read(&node, 0, 16).await.unwrap(), [0; 16]);
        assert_eq!(read(&node, PAGE as u64, 16).await.unwrap(), [5; 16]);
    });
}

#[test]
fn partitions_have_nodes_and_windows() {
    let (machine, driver, disk) = disk(64 * PAGE);
    let world = World::new();
    let root = world.vfs.tree.root().vnode;
    {
        let mut bytes = driver.bytes.lock();
        bytes[..512].fill(0);
        bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
        bytes[450] = 0x83;
        bytes[454..462].copy_from_slice(&[63, 0, 0, 0, 16, 0, 0, 0]);
    }
    machine.block_on(async {
        world.vfs.disks.add(disk.clone()).await.unwrap();
        // Disks are there before the file system for their nodes is.
        world.vfs.disks.set_directory(root.clone()).await.unwrap();
        let names: Vec<_> = world.vfs.disks.devices().iter().map(Device::name).collect();
        assert_eq!(names, ["vda", "vda1"]);
        let found = root.lookup(b"vda1").await.unwrap();
        assert_eq!(found.metadata().represents, DeviceNumber { major: 254, minor: 1 });
        let device = world.vfs.disks.find(found.metadata().represents).unwrap();
        let part = BlockNode::new(device, found, false);
        assert_eq!(
            (part.size(), read(&part, 512, 8).await.unwrap()),
            (16 * 512, 64u64.to_le_bytes().to_vec())
        );
        assert_eq!(read(&part, 16 * 512 - 4, 100).await.unwrap().len(), 4, "it ends with the partition");
        assert!(part.memory().is_err());
        // The table changes: the node goes.
        write(&node(&world, &disk, OpenFlags::READ_WRITE), 450, &[0]).await.unwrap();
        world.vfs.disks.find_partitions(&disk).await.unwrap();
        assert!(root.lookup(b"vda1").await.is_err() && root.lookup(b"vda").await.is_ok());
        assert_eq!(world.vfs.disks.find(DeviceNumber { major: 254, minor: 1 }).err(), Some(Error::ENXIO));
    });
}

/// A type of file systems that refuses each mount, or each one that writes.
struct Refusing {
    root: Option<VnodeRef>,
    mounts: Lock<Vec<(String, bool)>>,
}

impl FileSystemType for Refusing {
    fn make<'a>(&'a self, _: &'a [u8], _: &'a [u8]) -> MaybeReady<'a, Result<VnodeRef>> {
        MaybeReady::ready(Err(Error::ENOTBLK))
    }

    fn is_on_device(&self) -> bool {
        true
    }

    fn make_on<'a>(
        &'a self,
        device: Device,
        _: &'a [u8],
        read_only: bool,
    ) -> MaybeReady<'a, Result<VnodeRef>> {
        self.mounts.lock().push((device.name(), read_only));
        MaybeReady::ready(self.root.clone().filter(|_| read_only).ok_or(Error::EIO))
    }
}

#[test]
fn a_root_that_cannot_be_written_is_mounted_for_reading() {
    let (machine, _, disk) = disk(64 * PAGE);
    let world = World::new();
    let other = World::new().vfs.tree.root().vnode;
    machine.block_on(async {
        let mount = || world.vfs.mount_root("vda");
        assert_eq!(mount().await, Err(Error::ENXIO), "there is no disk");
        world.vfs.disks.add(disk.clone()).await.unwrap();
        assert_eq!(mount().await, Err(Error::ENODEV), "there is no type of file systems for disks");
        let refusing = |root| Arc::new(Refusing { root, mounts: Lock::new(Vec::new()) });
        world.vfs.register_file_system("damaged", refusing(None));
        assert_eq!(mount().await, Err(Error::EIO));
        let kind = refusing(Some(other.clone()));
        world.vfs.register_file_system("damaged", kind.clone());
        mount().await.unwrap();
        assert_eq!(*kind.mounts.lock(), [("vda".into(), false), ("vda".into(), true)]);
    });
    let root = world.vfs.tree.root();
    assert!(crate::vfs::same(&root.vnode, &other) && root.mount.source() == "/dev/vda");
}
