//! The data of a regular file, as its pages are filled from the disk and written to it.
//!
//! The file server says where data are on the disk. Such data are read there into the frames of the
//! page cache, and pages of them are written from there, without a copy. What has no place yet, and
//! the page at the file's end, is given to the file server.
//!
//! What the file server said is true until it is asked to write data, or to change the file's size
//! or space. So these requests are made alone ([`Data::alone`]), and places are forgotten then.
//! When the file server says a place, it has written what it had of that, and so does the page
//! cache of the disk, which forgets it ([`forget_pages`]). That cache may read it again together
//! with its neighbours, so it forgets it after each write of data, too: the file server reads what
//! is there.

use super::Ext4;
use crate::sync::SpinLock;
use crate::v9fs::Fid;
use crate::vfs::{PAGE_SIZE, Store};
use crate::{BoxFuture, Error, Result};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
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
    /// Where they are, in bytes from the start of the disk. `None`: they are zeros.
    place: Option<u64>,
}

/// The size of a file, and the way to its data.
pub(super) struct Data {
    file_system: Weak<Ext4>,
    fid: Arc<Fid>,
    /// The size in bytes, which the file server may not know yet.
    size: AtomicU64,
    /// A size that the file server knows the file to have at least.
    stored: AtomicU64,
    /// Known places, by the offset of the first byte; whole pages. Places are added and used while
    /// `using` is locked for reading.
    places: SpinLock<BTreeMap<u64, Run>>,
    /// Locked for writing while the file server changes data, size or space.
    using: RwLock<()>,
}

impl Data {
    pub(super) fn new(file_system: &Arc<Ext4>, fid: Arc<Fid>, size: u64) -> Data {
        Data {
            file_system: Arc::downgrade(file_system),
            fid,
            size: AtomicU64::new(size),
            stored: AtomicU64::new(size),
            places: SpinLock::new(BTreeMap::new()),
            using: RwLock::new(()),
        }
    }

    pub(super) fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
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

    /// Waits until no transfer uses the places of the data, and forgets them. Until the guard is
    /// dropped, none begins: the file server may change data, size and space.
    pub(super) async fn alone(&self) -> WriteGuard<'_, ()> {
        let guard = self.using.write().await;
        self.forget_places();
        guard
    }

    pub(super) fn forget_places(&self) {
        self.places.lock().clear();
    }

    /// Where the pages from `offset` on are, as far as that is known.
    fn known(&self, offset: u64) -> Option<Run> {
        let places = self.places.lock();
        let (start, run) = places.range(..=offset).next_back()?;
        let skip = offset - start;
        let length = run.length.checked_sub(skip).filter(|&length| length > 0)?;
        Some(Run { length, place: run.place.map(|place| place + skip) })
    }

    /// Where the pages from `offset` on are. `None`: not on the disk as pages. `using` must be
    /// locked for reading.
    async fn place(&self, file_system: &Ext4, offset: u64) -> Result<Option<Run>> {
        if let Some(run) = self.known(offset) {
            return Ok(Some(run));
        }
        let length = self.size().next_multiple_of(PAGE).saturating_sub(offset);
        if length == 0 {
            return Ok(None);
        }
        let call = Call::Map { fid: self.fid.number, offset, length };
        let mapped = match file_system.session.call(&call).await?.read(Body::mapped) {
            Err(Error::EOPNOTSUPP) => return Ok(None),
            mapped => mapped?,
        };
        let (length, place) = match mapped {
            Mapped::Hole { length } | Mapped::Unwritten { length } => (length, None),
            Mapped::Data { length, place } => (length, Some(place)),
        };
        let length = length / PAGE * PAGE;
        if length == 0 {
            return Ok(None);
        }
        let mut run = Run { length, place: None };
        if let Some(place) = place {
            let range = file_system.disk.range();
            let first = range.start.checked_add(place).ok_or(Error::EIO)?;
            let end = first.checked_add(length).filter(|&end| end <= range.end).ok_or(Error::EIO)?;
            if !first.is_multiple_of(PAGE) {
                // The disk's pages of these data have other blocks as well.
                return Ok(None);
            }
            forget_pages(file_system, first..end).await?;
            run.place = Some(first);
        }
        let mut places = self.places.lock();
        if places.len() >= RUNS {
            places.clear();
        }
        places.insert(offset, run);
        Ok(Some(run))
    }

    async fn read_to(&self, offset: u64, frames: &[Frame]) -> Result<Option<usize>> {
        let file_system = self.file_system.upgrade().ok_or(Error::EIO)?;
        let _using = self.using.read().await;
        let rest = self.size().saturating_sub(offset);
        let Some(run) = self.place(&file_system, offset).await? else { return Ok(None) };
        let Some(place) = run.place else { return Ok(Some(0)) };
        let count = (run.length / PAGE).min(rest.div_ceil(PAGE)).min(frames.len() as u64) as usize;
        match file_system.disk.disk.data.read_frames(place, &frames[..count]).await {
            Ok(()) => Ok(Some(rest.min(count as u64 * PAGE) as usize)),
            Err(Error::EOPNOTSUPP) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the first of these frames, as far as the file server has nothing to do for that: they
    /// are within the file as it knows it, and have places.
    async fn write_from(&self, offset: u64, frames: &[Frame]) -> Result<usize> {
        let file_system = self.file_system.upgrade().ok_or(Error::EIO)?;
        let _using = self.using.read().await;
        let end = self.stored.load(Ordering::Acquire).min(self.size());
        let most = (end.saturating_sub(offset) / PAGE).min(frames.len() as u64) as usize;
        let mut done = 0;
        while done < most {
            let at = offset + done as u64 * PAGE;
            let Some(run) = self.place(&file_system, at).await? else { break };
            let Some(place) = run.place else { break };
            let count = (run.length / PAGE).min((most - done) as u64) as usize;
            file_system.changed();
            match file_system.disk.disk.data.write_frames(place, &frames[done..done + count]).await {
                Ok(()) => done += count,
                Err(Error::EOPNOTSUPP) => break,
                Err(error) => return Err(error),
            }
            forget_pages(&file_system, place..place + count as u64 * PAGE).await?;
        }
        Ok(done)
    }

    async fn read_all(&self, offset: u64, bytes: &mut [u8]) -> Result<usize> {
        let file_system = self.file_system.upgrade().ok_or(Error::EIO)?;
        let session = &file_system.session;
        // What is after the end is not the file's, whatever the disk has there.
        let rest = usize::try_from(self.size().saturating_sub(offset)).unwrap_or(usize::MAX);
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
        let rest = usize::try_from(self.size().saturating_sub(offset)).unwrap_or(usize::MAX);
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

    fn write_frames<'a>(&'a self, offset: u64, frames: &'a [Frame]) -> BoxFuture<'a, Result<usize>> {
        Box::pin(self.write_from(offset, frames))
    }
}
