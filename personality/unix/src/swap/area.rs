//! A swap area: a disk, a partition, or a file, whose pages are on a disk.

use super::slots::Slots;
use super::{PAGE, Place};
use crate::Result;
use crate::disk::Disk;
use crate::file::OpenFile;
use crate::sync::SpinLock;
use crate::vfs::DeviceNumber;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use mach::machine::Frame;

/// Pages of an area that are one after the other on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// The number of the first page in the area.
    pub first: u32,
    /// How many there are.
    pub pages: u32,
    /// Where the first one is, in bytes from the start of the disk.
    pub place: u64,
}

/// What an area is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A disk or partition of this number.
    Device(DeviceNumber),
    /// A file: the device of its file system, and its number there.
    File(DeviceNumber, u64),
}

/// A swap area.
pub(super) struct Area {
    /// The number in the table of areas.
    pub(super) number: u32,
    /// The path that is shown.
    pub(super) path: Vec<u8>,
    pub(super) source: Source,
    pub(super) disk: Arc<Disk>,
    /// In the order of pages; each page is in one.
    pub(super) extents: Vec<Extent>,
    /// Areas of a higher priority are used first.
    pub(super) priority: AtomicI32,
    pub(super) slots: SpinLock<Slots>,
    /// How many pages can be used in all.
    pub(super) usable: u32,
    /// How many pages are in use.
    pub(super) used: AtomicU32,
    /// Whether pages are being brought back, so that none is written any more.
    pub(super) is_closing: AtomicBool,
    /// Keeps the file and its file system in use.
    pub(super) file: Arc<OpenFile>,
}

impl Area {
    /// Takes up to `most` pages, one after the other.
    pub(super) fn allocate(&self, most: u32) -> Option<(u32, u32)> {
        let (first, count) = self.slots.lock().allocate(most)?;
        self.used.fetch_add(count, Ordering::AcqRel);
        Some((first, count))
    }

    /// Frees a page.
    pub(super) fn release(&self, page: u32) {
        self.slots.lock().release(page);
        self.used.fetch_sub(1, Ordering::AcqRel);
    }

    /// The pieces of `count` pages from `first` on that are together on the disk: where each is,
    /// and how many pages it has.
    fn pieces(&self, first: u32, count: u32) -> impl Iterator<Item = (u64, usize)> {
        let at = self.extents.partition_point(|extent| extent.first + extent.pages <= first);
        let end = first + count;
        let inside = self.extents[at..].iter().take_while(move |extent| extent.first < end);
        inside.map(move |extent| {
            let from = first.max(extent.first);
            let to = end.min(extent.first + extent.pages);
            (extent.place + u64::from(from - extent.first) * PAGE, (to - from) as usize)
        })
    }

    /// Reads pages into frames.
    pub(super) async fn read(&self, first: u32, mut frames: &[Frame]) -> Result<()> {
        for (place, count) in self.pieces(first, frames.len() as u32) {
            let (now, rest) = frames.split_at(count);
            self.disk.data.read_frames(place, now).await?;
            frames = rest;
        }
        Ok(())
    }

    /// Writes pages from frames.
    pub(super) async fn write(&self, first: u32, mut frames: &[Frame]) -> Result<()> {
        for (place, count) in self.pieces(first, frames.len() as u32) {
            let (now, rest) = frames.split_at(count);
            self.disk.data.write_frames(place, now).await?;
            frames = rest;
        }
        Ok(())
    }

    /// Whether bytes of the disk belong to this area.
    pub(super) fn overlaps(&self, disk: &Arc<Disk>, range: &core::ops::Range<u64>) -> bool {
        let is_in = |extent: &Extent| {
            extent.place < range.end && range.start < extent.place + u64::from(extent.pages) * PAGE
        };
        Arc::ptr_eq(&self.disk, disk) && self.extents.iter().any(is_in)
    }

    /// The place in swap space of a page of this area.
    pub(super) fn place_of(&self, page: u32) -> Place {
        Place::new(self.number, page)
    }
}
