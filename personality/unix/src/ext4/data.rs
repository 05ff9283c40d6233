//! The data of a regular file, as its pages are filled from the disk and written to it.
//!
//! The file server says where data are on the disk. Such data are read there into the frames of the
//! page cache, and pages are written from there, without a copy. Pages that have no place get one
//! from the file server first, which reads as zeros. When they are on the disk, the file server is
//! told, which records that they are data and how long the file is, in one change. The journal
//! flushes the disk before it commits that. So after a power cut a page has what was written, or
//! zeros, and never what another file had there. If the disk cannot be used like that, all data are
//! given to the file server.
//!
//! What the file server said is true until it is asked to write data, or to change the file's size
//! or space. So these requests are made alone ([`Data::alone`]), and places are forgotten then. No
//! such request comes between a place that was given and the data that are written there.
//! When the file server says a place, it has written what it had of that, and so does the page
//! cache of the disk, which forgets it ([`forget_pages`]). That cache may read it again together
//! with its neighbours, so it forgets it after each write of data, too: the file server reads what
//! is there.

use super::Ext4;
use crate::disk::Device;
use crate::sync::SpinLock;
use crate::v9fs::Fid;
use crate::vfs::{Extent, PAGE_SIZE, Store};
use crate::{BoxFuture, Error, Result};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use macadamia_sync::{RwLock, WriteGuard};
use mach::machine::Frame;
use ninep::{Body, Call, Mapped};

const PAGE: u64 = PAGE_SIZE as u64;
/// How many runs of a file's places are kept.
const RUNS: usize = 256;

/// Bytes of a file that are one after the other on the disk.
#[derive(Clone, Copy)]
struct Run {
    length: u64,
    contents: Contents,
}

/// What the bytes of a run are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Contents {
    /// Zeros, which have no space.
    Hole,
    /// Zeros, which have space.
    Unwritten,
    /// Data at this place, in bytes from the start of the disk.
    Data(u64),
}

/// Where pages are written.
struct Space {
    length: u64,
    /// In bytes from the start of the disk.
    place: u64,
    /// Whether the file server has to be told when they are.
    is_new: bool,
}

/// Known places of a file's data.
#[derive(Default)]
struct Places {
    /// By the offset of the first byte; whole pages. They do not overlap.
    runs: BTreeMap<u64, Run>,
    /// How often something that was no data has become data.
    version: u64,
}

impl Places {
    fn clear(&mut self) {
        self.runs.clear();
    }

    /// Where the pages from `offset` on are, as far as that is known.
    fn find(&self, offset: u64) -> Option<Run> {
        let (start, run) = self.runs.range(..=offset).next_back()?;
        run.from(offset - start)
    }

    /// Adds a run, which replaces what was known of its pages.
    fn add(&mut self, offset: u64, run: Run) {
        let end = offset + run.length;
        while let Some((&start, &old)) = self.runs.range(..end).next_back() {
            if start + old.length <= offset {
                break;
            }
            self.runs.remove(&start);
            if let Some(rest) = old.from(end - start) {
                self.runs.insert(end, rest);
            }
            if start < offset {
                self.runs.insert(start, Run { length: offset - start, ..old });
            }
        }
        // A run that continues the one before becomes part of it.
        let before = self.runs.range(..offset).next_back().map(|(&start, &before)| (start, before));
        let (start, run) = match before {
            Some((start, before)) if before.goes_on_as(start, offset, run) => {
                (start, Run { length: before.length + run.length, ..before })
            }
            _ => (offset, run),
        };
        if self.runs.len() >= RUNS {
            self.runs.clear();
        }
        self.runs.insert(start, run);
    }
}

impl Run {
    /// The run without its first bytes, if there are more.
    fn from(self, skip: u64) -> Option<Run> {
        let length = self.length.checked_sub(skip).filter(|&length| length > 0)?;
        Some(Run { length, contents: self.contents.after(skip) })
    }

    /// Whether `next` at `offset` continues this run, which is at `start`, in the file and on the
    /// disk.
    fn goes_on_as(self, start: u64, offset: u64, next: Run) -> bool {
        start + self.length == offset && next.contents == self.contents.after(self.length)
    }
}

impl Contents {
    /// What the bytes are that come so many bytes later.
    fn after(self, skip: u64) -> Contents {
        match self {
            Contents::Data(place) => Contents::Data(place + skip),
            zeros => zeros,
        }
    }
}

/// A write that is under way.
pub(super) struct Reach<'a>(&'a Data);

impl Drop for Reach<'_> {
    fn drop(&mut self) {
        *self.0.reach.lock() = 0;
    }
}

/// The size of a file, and the way to its data.
pub(super) struct Data {
    file_system: Weak<Ext4>,
    fid: Arc<Fid>,
    /// The size in bytes, which the file server may not know yet.
    size: AtomicU64,
    /// How far a write that is under way may make the file reach. Pages that it has changed are
    /// written back like those within the file.
    reach: SpinLock<u64>,
    /// A size that the file server knows the file to have at least.
    stored: AtomicU64,
    /// Known places. They are added and used while `using` is locked for reading.
    places: SpinLock<Places>,
    /// Locked for writing while the file server changes data, size or space.
    using: RwLock<()>,
    /// How many blocks of 512 bytes the file has, if the file server has said it since it was asked
    /// to change that.
    blocks: SpinLock<Option<u64>>,
}

impl Data {
    pub(super) fn new(file_system: &Arc<Ext4>, fid: Arc<Fid>, size: u64, blocks: u64) -> Data {
        Data {
            file_system: Arc::downgrade(file_system),
            fid,
            size: AtomicU64::new(size),
            reach: SpinLock::new(0),
            stored: AtomicU64::new(size),
            places: SpinLock::new(Places::default()),
            using: RwLock::new(()),
            blocks: SpinLock::new(Some(blocks)),
        }
    }

    pub(super) fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    /// Where the file ends for pages that are read or written back.
    fn end(&self) -> u64 {
        (*self.reach.lock()).max(self.size())
    }

    /// Begins a write that may make the file reach so far. It is under way until the result is
    /// dropped.
    pub(super) fn reach(&self, end: u64) -> Reach<'_> {
        *self.reach.lock() = end;
        Reach(self)
    }

    /// Whether the file server may know the file to be longer than it is, because a write was given
    /// up after some of its pages were written back.
    pub(super) fn is_too_long(&self) -> bool {
        self.stored.load(Ordering::Acquire) > self.end()
    }

    /// The file has at least `size` bytes.
    pub(super) fn grow(&self, size: u64) {
        self.size.fetch_max(size, Ordering::AcqRel);
    }

    pub(super) fn set_size(&self, size: u64) {
        self.size.store(size, Ordering::Release);
    }

    /// The file server may make the file as short as this.
    pub(super) fn may_be_stored(&self, size: u64) {
        self.stored.fetch_min(size, Ordering::AcqRel);
    }

    /// The file server has made the file so long, or longer.
    pub(super) fn is_stored(&self, size: u64) {
        self.stored.fetch_max(size, Ordering::AcqRel);
    }

    /// The bytes of a range, and those after it in the same page, have become a hole, at the end of
    /// the file. Places must not be in use.
    pub(super) fn has_hole(&self, range: Range<u64>) {
        let start = range.start.next_multiple_of(PAGE);
        let length = range.end.next_multiple_of(PAGE).saturating_sub(start);
        if length > 0 {
            self.places.lock().add(start, Run { length, contents: Contents::Hole });
        }
    }

    /// Whether the page at `offset` has no space on the disk, as far as that is known.
    pub(super) fn lacks_space(&self, offset: u64) -> bool {
        let is_hole = |run: Run| run.contents == Contents::Hole;
        offset >= self.stored.load(Ordering::Acquire) || self.places.lock().find(offset).is_some_and(is_hole)
    }

    /// Waits until no transfer uses the places of the data, and forgets them. Until the guard is
    /// dropped, none begins: the file server may change data, size and space.
    pub(super) async fn alone(&self) -> WriteGuard<'_, ()> {
        let guard = self.using.write().await;
        self.forget_places();
        self.forget_blocks();
        guard
    }

    /// How many blocks of 512 bytes the file has, if that is known.
    pub(super) fn blocks(&self) -> Option<u64> {
        *self.blocks.lock()
    }

    /// The file server may change how many blocks the file has.
    pub(super) fn forget_blocks(&self) {
        self.blocks.lock().take();
    }

    /// The file server has said how many blocks of 512 bytes the file has. Replies may be seen in
    /// another order than the server's, but blocks are only added meanwhile.
    pub(super) fn has_blocks(&self, blocks: u64) {
        let mut known = self.blocks.lock();
        *known = (*known).max(Some(blocks));
    }

    pub(super) fn forget_places(&self) {
        self.places.lock().clear();
    }

    /// Where the pages from `offset` on are. `None`: not on the disk as pages. `using` must be
    /// locked for reading.
    async fn place(&self, file_system: &Ext4, offset: u64) -> Result<Option<Run>> {
        let before = {
            let places = self.places.lock();
            if let Some(run) = places.find(offset) {
                return Ok(Some(run));
            }
            places.version
        };
        let length = self.end().next_multiple_of(PAGE).saturating_sub(offset);
        if length == 0 {
            return Ok(None);
        }
        let call = Call::Map { fid: self.fid.number, offset, length };
        let mapped = match file_system.session.call(&call).await?.read(Body::mapped) {
            Err(Error::EOPNOTSUPP) => return Ok(None),
            mapped => mapped?,
        };
        let (length, contents) = match mapped {
            Mapped::Hole { length } => (length, Contents::Hole),
            Mapped::Unwritten { length, .. } => (length, Contents::Unwritten),
            Mapped::Data { length, place } => (length, Contents::Data(place)),
        };
        let length = length / PAGE * PAGE;
        if length == 0 {
            return Ok(None);
        }
        let contents = match contents {
            Contents::Data(place) => match on_disk(file_system, place, length).await? {
                Some(place) => Contents::Data(place),
                None => return Ok(None),
            },
            zeros => zeros,
        };
        let run = Run { length, contents };
        let mut places = self.places.lock();
        // What was zeros when the file server answered may have been written meanwhile.
        if matches!(contents, Contents::Data(_)) || places.version == before {
            places.add(offset, run);
        }
        Ok(Some(run))
    }

    /// Where pages from `offset` on are written, at most `most` bytes: at the place of the data
    /// that they have, or at a new one. `None`: the file server has to write them. `using` must be
    /// locked for reading.
    async fn space(&self, file_system: &Ext4, offset: u64, most: u64) -> Result<Option<Space>> {
        let known = match offset < self.stored.load(Ordering::Acquire) {
            true => self.place(file_system, offset).await?,
            false => self.places.lock().find(offset),
        };
        if let Some(Run { length, contents: Contents::Data(place) }) = known {
            return Ok(Some(Space { length: length.min(most), place, is_new: false }));
        }
        if !file_system.has_blocks_of_pages() {
            return Ok(None);
        }
        file_system.changed();
        self.forget_blocks();
        let call = Call::Place { fid: self.fid.number, offset, length: most };
        let mapped = match file_system.session.call(&call).await?.read(Body::mapped) {
            Err(Error::EOPNOTSUPP) => return Ok(None),
            mapped => mapped?,
        };
        let (length, place, is_new) = match mapped {
            Mapped::Hole { .. } => return Err(Error::EIO),
            Mapped::Unwritten { length, place } => (length, place, true),
            Mapped::Data { length, place } => (length, place, false),
        };
        let length = length.min(most) / PAGE * PAGE;
        if length == 0 {
            return Ok(None);
        }
        let place = on_disk(file_system, place, length).await?;
        Ok(place.map(|place| Space { length, place, is_new }))
    }

    /// Where the file's data are on its disk or partition; holes are in no extent.
    pub(super) async fn extents(&self) -> Result<(Device, Vec<Extent>)> {
        let file_system = self.file_system.upgrade().ok_or(Error::EIO)?;
        let _using = self.using.read().await;
        // The last block is the file's as a whole.
        let end = self.size().next_multiple_of(PAGE);
        let (mut offset, mut extents) = (0, Vec::<Extent>::new());
        while offset < end {
            let call = Call::Map { fid: self.fid.number, offset, length: end - offset };
            let (length, place, is_unwritten) =
                match file_system.session.call(&call).await?.read(Body::mapped)? {
                    Mapped::Hole { length } => (length, None, false),
                    Mapped::Unwritten { length, place } => (length, Some(place), true),
                    Mapped::Data { length, place } => (length, Some(place), false),
                };
            let length = length.min(end - offset);
            if length == 0 {
                return Err(Error::EIO);
            }
            if let Some(place) = place {
                match extents.last_mut() {
                    Some(last)
                        if last.offset + last.length == offset
                            && last.place + last.length == place
                            && last.is_unwritten == is_unwritten =>
                    {
                        last.length += length;
                    }
                    _ => extents.push(Extent { offset, length, place, is_unwritten }),
                }
            }
            offset += length;
        }
        Ok((file_system.disk.clone(), extents))
    }

    async fn read_to(&self, offset: u64, frames: &[Frame]) -> Result<Option<usize>> {
        let file_system = self.file_system.upgrade().ok_or(Error::EIO)?;
        let _using = self.using.read().await;
        let rest = self.end().saturating_sub(offset);
        let Some(run) = self.place(&file_system, offset).await? else { return Ok(None) };
        let Contents::Data(place) = run.contents else { return Ok(Some(0)) };
        let count = (run.length / PAGE).min(rest.div_ceil(PAGE)).min(frames.len() as u64) as usize;
        match file_system.disk.disk.data.read_frames(place, &frames[..count]).await {
            Ok(()) => Ok(Some(rest.min(count as u64 * PAGE) as usize)),
            Err(Error::EOPNOTSUPP) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the frames that are pages of the file, as far as the file server need not do that.
    async fn write_from(&self, offset: u64, frames: &[Frame]) -> Result<usize> {
        let file_system = self.file_system.upgrade().ok_or(Error::EIO)?;
        let _using = self.using.read().await;
        let end = self.end();
        let pages = end.saturating_sub(offset).div_ceil(PAGE).min(frames.len() as u64) as usize;
        let mut done = 0;
        while done < pages {
            let at = offset + done as u64 * PAGE;
            let most = (pages - done) as u64 * PAGE;
            let Some(space) = self.space(&file_system, at, most).await? else { break };
            let count = (space.length / PAGE) as usize;
            file_system.changed();
            match file_system.disk.disk.data.write_frames(space.place, &frames[done..done + count]).await {
                Ok(()) => {}
                Err(Error::EOPNOTSUPP) => break,
                Err(error) => return Err(error),
            }
            forget_pages(&file_system, space.place..space.place + space.length).await?;
            let size = end.min(at + space.length);
            if space.is_new || size > self.stored.load(Ordering::Acquire) {
                // The data are on the disk.
                let (fid, length) = (self.fid.number, space.length);
                let reply =
                    file_system.session.call(&Call::Written { fid, offset: at, length, size }).await?;
                let blocks = reply.read(Body::size)?;
                self.is_stored(size);
                self.has_blocks(blocks);
            }
            let mut places = self.places.lock();
            places.version += u64::from(space.is_new);
            places.add(at, Run { length: space.length, contents: Contents::Data(space.place) });
            drop(places);
            done += count;
        }
        Ok(done)
    }

    async fn read_all(&self, offset: u64, bytes: &mut [u8]) -> Result<usize> {
        let file_system = self.file_system.upgrade().ok_or(Error::EIO)?;
        let session = &file_system.session;
        // What is after the end is not the file's, whatever the disk has there.
        let rest = usize::try_from(self.end().saturating_sub(offset)).unwrap_or(usize::MAX);
        let length = bytes.len().min(rest);
        let mut done = 0;
        while done < length {
            let count = (length - done).min(session.data_size());
            let offset = offset + done as u64;
            let reply =
                session.call(&Call::Read { fid: self.fid.number, offset, count: count as u32 }).await?;
            let data = reply.read(|body| body.data(count))?;
            if data.is_empty() {
                break;
            }
            bytes[done..done + data.len()].copy_from_slice(data);
            done += data.len();
        }
        Ok(done)
    }

    async fn write_all(&self, mut offset: u64, bytes: &[u8]) -> Result<()> {
        let file_system = self.file_system.upgrade().ok_or(Error::EIO)?;
        // A page may extend beyond the end of the file.
        let rest = usize::try_from(self.end().saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut bytes = &bytes[..bytes.len().min(rest)];
        if bytes.is_empty() {
            return Ok(());
        }
        let _alone = self.alone().await;
        file_system.changed();
        while !bytes.is_empty() {
            let data = &bytes[..bytes.len().min(file_system.session.data_size())];
            let call = Call::Write { fid: self.fid.number, offset, data };
            let reply = file_system.session.call(&call).await?;
            let count = reply.read(|body| body.count(data.len()))?;
            if count == 0 {
                return Err(Error::EIO);
            }
            offset += count as u64;
            bytes = &bytes[count..];
            self.is_stored(offset);
        }
        Ok(())
    }
}

/// A place of the file system in bytes from the start of the disk, for transfers of frames. `None`:
/// the disk's pages of these data have other blocks as well.
async fn on_disk(file_system: &Ext4, place: u64, length: u64) -> Result<Option<u64>> {
    let range = file_system.disk.range();
    let first = range.start.checked_add(place).ok_or(Error::EIO)?;
    let end = first.checked_add(length).filter(|&end| end <= range.end).ok_or(Error::EIO)?;
    if !first.is_multiple_of(PAGE) {
        return Ok(None);
    }
    forget_pages(file_system, first..end).await?;
    Ok(Some(first))
}

/// Writes the pages of the disk itself that were changed in a range of data, and forgets all of
/// them.
async fn forget_pages(file_system: &Ext4, range: Range<u64>) -> Result<()> {
    let disk = &file_system.disk.disk.data;
    let failures = disk.failures();
    disk.write_back(range, true).await?;
    if disk.failures() == failures { Ok(()) } else { Err(Error::EIO) }
}

impl Store for Data {
    fn read<'a>(&'a self, offset: u64, bytes: &'a mut [u8]) -> BoxFuture<'a, Result<usize>> {
        Box::pin(self.read_all(offset, bytes))
    }

    fn write<'a>(&'a self, offset: u64, bytes: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.write_all(offset, bytes))
    }

    fn has_device(&self) -> bool {
        true
    }

    fn read_frames<'a>(&'a self, offset: u64, frames: &'a [Frame]) -> BoxFuture<'a, Result<Option<usize>>> {
        Box::pin(self.read_to(offset, frames))
    }

    fn with_end(&self, range: Range<u64>, clear: &mut dyn FnMut(u64)) {
        if range.end <= self.size() {
            return;
        }
        let reach = self.reach.lock();
        let end = self.size().max(*reach);
        if range.contains(&end) && !end.is_multiple_of(PAGE) {
            clear(end);
        }
    }

    fn write_frames<'a>(&'a self, offset: u64, frames: &'a [Frame]) -> BoxFuture<'a, Result<usize>> {
        Box::pin(self.write_from(offset, frames))
    }
}
