//! An open node of a disk or partition: its attributes are those of the node in /dev, its data
//! those of the disk.

use super::Device;
use crate::vfs::{
    AttributeChange, AttributeCondition, FileMemory, FileSystem, FileType, Hooks, Metadata, OpenContext,
    Opened, Vnode, VnodeRef, WriteAt,
};
use crate::{AttemptError, Error, MaybeReady, Result, UserBuffer};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

/// A node of a disk or partition that was opened once.
pub struct BlockNode {
    /// The disk or partition.
    pub device: Device,
    /// The node in /dev.
    node: VnodeRef,
    /// Whether the node was opened with O_DIRECT.
    direct: bool,
    /// How many refused writes fsync(2) has reported for this opening, or were before it.
    reported: AtomicU32,
}

impl BlockNode {
    pub(super) fn new(device: Device, node: VnodeRef, direct: bool) -> BlockNode {
        let reported = AtomicU32::new(device.disk.data.failures());
        BlockNode { device, node, direct, reported }
    }

    /// The places on the disk of a transfer at an offset of the device: the first, and the count of
    /// bytes up to the device's end. `EINVAL` for a direct transfer that is not one of whole
    /// blocks.
    fn place(&self, offset: u64, length: usize) -> Result<(u64, usize)> {
        let range = self.device.range();
        let left = (range.end - range.start).saturating_sub(offset);
        let block = u64::from(self.device.disk.about.logical);
        if self.direct && !(offset | length as u64).is_multiple_of(block) {
            return Err(Error::EINVAL);
        }
        let length = length.min(usize::try_from(left).unwrap_or(usize::MAX));
        Ok((range.start.saturating_add(offset), length))
    }

    /// Reads without the cache: what was written there reaches the disk first.
    async fn read_direct(
        &self,
        at: u64,
        length: usize,
        to: &mut dyn UserBuffer,
    ) -> Result<usize, AttemptError> {
        let data = &self.device.disk.data;
        data.write_back(at..at + length as u64, true).await?;
        data.memory().read(at, length, to).await
    }

    /// Writes without the cache: the disk has the data at the end.
    async fn write_direct(
        &self,
        at: u64,
        length: usize,
        from: &mut dyn UserBuffer,
    ) -> Result<usize, AttemptError> {
        let data = &self.device.disk.data;
        let before = data.failures();
        let count = data.memory().write(at, length, from).await?;
        data.write_back(at..at + count as u64, true).await?;
        if data.failures() == before {
            return Ok(count);
        }
        // Nothing was written, whatever has been taken from the buffer.
        from.retreat(count);
        Err(Error::EIO.into())
    }
}

impl Vnode for BlockNode {
    fn file_system(&self) -> Arc<dyn FileSystem> {
        self.node.file_system()
    }

    fn metadata(&self) -> Metadata {
        self.node.metadata()
    }

    fn file_type(&self) -> FileType {
        FileType::BlockDevice
    }

    fn number(&self) -> u64 {
        self.node.number()
    }

    fn hooks(&self) -> Option<&Hooks> {
        self.node.hooks()
    }

    fn parent(&self) -> Option<VnodeRef> {
        self.node.parent()
    }

    fn place(&self) -> Option<(VnodeRef, Vec<u8>)> {
        self.node.place()
    }

    fn size(&self) -> u64 {
        self.device.size()
    }

    fn read<'a>(
        &'a self,
        offset: u64,
        to: &'a mut dyn UserBuffer,
    ) -> MaybeReady<'a, Result<usize, AttemptError>> {
        let (at, length) = match self.place(offset, to.remaining()) {
            Ok((_, 0)) => return MaybeReady::ready(Ok(0)),
            Ok(place) => place,
            Err(error) => return MaybeReady::ready(Err(error.into())),
        };
        if self.direct {
            return MaybeReady::pending(self.read_direct(at, length, to));
        }
        let memory = self.device.disk.data.memory();
        MaybeReady::pending(async move { memory.read(at, length, to).await })
    }

    fn write<'a>(
        &'a self,
        at: WriteAt,
        _limit: u64,
        from: &'a mut dyn UserBuffer,
    ) -> MaybeReady<'a, Result<(usize, u64), AttemptError>> {
        // A device has no end to which data could be appended: the write begins at its end and
        // finds no room.
        let offset = match at {
            WriteAt::Offset(offset) => offset,
            WriteAt::End => self.device.size(),
        };
        let (place, length) = match self.place(offset, from.remaining()) {
            Ok((_, 0)) => return MaybeReady::ready(Err(Error::ENOSPC.into())),
            Ok(place) => place,
            Err(error) => return MaybeReady::ready(Err(error.into())),
        };
        let disk = &self.device.disk;
        MaybeReady::pending(async move {
            disk.touch();
            let count = match self.direct {
                true => self.write_direct(place, length, from).await?,
                false => disk.data.memory().write(place, length, from).await?,
            };
            Ok((count, offset + count as u64))
        })
    }

    /// Waits until the whole disk is stored. A write that was refused is reported once for each
    /// opening.
    fn synchronize(&self) -> MaybeReady<'_, Result<()>> {
        MaybeReady::pending(async move {
            let done = self.device.disk.synchronize().await;
            let failures = self.device.disk.data.failures();
            let reported = self.reported.swap(failures, Ordering::Relaxed);
            if failures == reported { done } else { Err(Error::EIO) }
        })
    }

    fn change(&self, change: AttributeChange) -> MaybeReady<'_, Result<()>> {
        self.node.change(change)
    }

    fn touch(&self, age: i64) {
        self.node.touch(age);
    }

    /// The pages of the whole disk. Those of a partition would not begin at the beginning of the
    /// memory, so `ENODEV`.
    fn memory(&self) -> Result<Arc<dyn FileMemory>> {
        if self.device.partition.is_some() {
            return Err(Error::ENODEV);
        }
        self.device.disk.is_mapped.store(true, Ordering::Relaxed);
        Ok(self.device.disk.data.memory())
    }

    fn attribute<'a>(&'a self, name: &'a [u8]) -> MaybeReady<'a, Result<Vec<u8>>> {
        self.node.attribute(name)
    }

    fn set_attribute<'a>(
        &'a self,
        name: &'a [u8],
        value: Option<&'a [u8]>,
        condition: AttributeCondition,
    ) -> MaybeReady<'a, Result<()>> {
        self.node.set_attribute(name, value, condition)
    }

    fn attributes(&self) -> MaybeReady<'_, Result<Vec<u8>>> {
        self.node.attributes()
    }

    fn open(&self, context: &OpenContext) -> MaybeReady<'_, Result<Opened>> {
        self.node.open(context)
    }
}
