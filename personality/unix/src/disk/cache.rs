//! The pages of a disk: a memory object whose pager is the disk's driver.

use super::{About, Data, SECTOR};
use crate::memory::ObjectMemory;
use crate::vfs::FileMemory;
use crate::{BoxFuture, Error, MaybeReady, Result};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ops::Range;
use mach::machine::{Frame, PAGE_SIZE};
use mach::vm::{DataRequest, DataReturn, LockRequest, PageKind, Pager, ReturnPages, Vm};
use mach::{KernError, KernResult, Machine};

/// The sectors of a page.
const SECTORS: u64 = PAGE_SIZE / SECTOR;

/// A disk's driver, as the page cache sees it. Places are in sectors of 512 bytes.
///
/// A future of a read is not dropped before its end where the memory system has a spawner, since
/// the disk may write into the frames until then.
pub trait Store<M: Machine>: Send + Sync + 'static {
    /// Reads sectors into the frames, which are filled one after the other. The last one may be
    /// filled in part.
    fn read<'a>(&'a self, sector: u64, sectors: u64, frames: &'a [Frame]) -> BoxFuture<'a, Result<()>>;

    /// Writes sectors from the frames.
    fn write<'a>(&'a self, sector: u64, sectors: u64, frames: &'a [Frame]) -> BoxFuture<'a, Result<()>>;

    /// Brings to stable storage what was written by calls that have ended.
    fn flush(&self) -> BoxFuture<'_, Result<()>>;

    /// Tells the disk that the contents of sectors are not needed.
    fn discard(&self, sector: u64, sectors: u64) -> BoxFuture<'_, Result<()>>;
}

/// The pages of a disk.
pub struct Cache<M: Machine> {
    memory: Arc<ObjectMemory<M>>,
    store: Arc<dyn Store<M>>,
    about: About,
}

/// The pager of a disk's pages.
struct DiskPager<M: Machine> {
    store: Arc<dyn Store<M>>,
    /// The size of the disk in bytes.
    size: u64,
}

impl<M: Machine> Cache<M> {
    /// Makes the pages of a disk, none of which is in memory.
    ///
    /// # Errors
    /// `ENOMEM`: memory is short.
    pub fn new(vm: &Arc<Vm<M>>, store: Arc<dyn Store<M>>, about: &About) -> Result<Arc<Cache<M>>> {
        let pager = Arc::new(DiskPager { store: store.clone(), size: about.size });
        let memory = ObjectMemory::paged(vm, pager, about.size)?;
        Ok(Arc::new(Cache { memory, store, about: about.clone() }))
    }

    async fn return_pages(&self, range: Range<u64>, returned: ReturnPages, forget: bool) -> Result<()> {
        let request = LockRequest { returned, flush: forget, prohibited: None };
        match self.memory.object().lock_request(range.start, range.end, request).await {
            // The disk has refused a page, which is counted.
            Ok(()) | Err(KernError::MemoryError) => Ok(()),
            Err(_) => Err(Error::ENOMEM),
        }
    }
}

impl<M: Machine> Data for Cache<M> {
    fn memory(&self) -> Arc<dyn FileMemory> {
        self.memory.clone()
    }

    fn write_back(&self, range: Range<u64>, forget: bool) -> MaybeReady<'_, Result<()>> {
        MaybeReady::pending(self.return_pages(range, ReturnPages::Dirty, forget))
    }

    fn failures(&self) -> u32 {
        self.memory.object().write_errors()
    }

    fn flush(&self) -> MaybeReady<'_, Result<()>> {
        MaybeReady::Pending(self.store.flush())
    }

    fn read_frames<'a>(&'a self, place: u64, frames: &'a [Frame]) -> MaybeReady<'a, Result<()>> {
        MaybeReady::Pending(self.store.read(place / SECTOR, frames.len() as u64 * SECTORS, frames))
    }

    fn write_frames<'a>(&'a self, place: u64, frames: &'a [Frame]) -> MaybeReady<'a, Result<()>> {
        MaybeReady::Pending(self.store.write(place / SECTOR, frames.len() as u64 * SECTORS, frames))
    }

    fn discard(&self, range: Range<u64>) -> MaybeReady<'_, Result<()>> {
        MaybeReady::pending(async move {
            if self.about.discard == 0 {
                return Err(Error::EOPNOTSUPP);
            }
            self.return_pages(range.clone(), ReturnPages::None, true).await?;
            let (mut at, end) = (range.start / SECTOR, range.end / SECTOR);
            while at < end {
                let count = (end - at).min((self.about.discard / SECTOR).max(1));
                self.store.discard(at, count).await?;
                at += count;
            }
            Ok(())
        })
    }
}

impl<M: Machine> DiskPager<M> {
    /// The sectors of a run of so many bytes at an offset, as far as the disk has them: the first
    /// one, and how many.
    fn sectors(&self, offset: u64, length: usize) -> (u64, u64) {
        let end = self.size.min(offset + length as u64);
        (offset / SECTOR, end.saturating_sub(offset) / SECTOR)
    }
}

impl<M: Machine> Pager<M> for DiskPager<M> {
    fn data_request<'a>(&'a self, request: DataRequest<'a, M>) -> BoxFuture<'a, KernResult<usize>> {
        Box::pin(async move {
            let (sector, count) = self.sectors(request.offset, request.length());
            let done = self.store.read(sector, count, request.frames).await;
            done.map(|()| (count * SECTOR) as usize).map_err(|_| KernError::MemoryError)
        })
    }

    fn data_return<'a>(&'a self, data: DataReturn<'a, M>) -> BoxFuture<'a, KernResult> {
        Box::pin(async move {
            let (sector, count) = self.sectors(data.offset, data.length());
            let frames = &data.frames[..(count * SECTOR).div_ceil(PAGE_SIZE) as usize];
            self.store.write(sector, count, frames).await.map_err(|_| KernError::MemoryError)
        })
    }

    fn fills_by_device(&self) -> bool {
        true
    }

    fn kind(&self) -> PageKind {
        PageKind::Disk
    }
}
