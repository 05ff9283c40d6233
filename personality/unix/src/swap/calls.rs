//! Adding and removing swap areas: swapon(2) and swapoff(2).

use super::area::{Area, Extent, Source};
use super::header::{self, Refused};
use super::slots::Slots;
use super::{AREAS, FIRST_PRIORITY, PAGE, PAGE_BITS, Swap};
use crate::disk::Disk;
use crate::file::OpenFile;
use crate::sync::SpinLock;
use crate::vfs::{self, At, Caller, FileType, Mode, OpenFlags, VnodeRef};
use crate::{AttemptError, Bytes, Error, Result, UserBuffer};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Arguments;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use core::time::Duration;

/// How long the removal of an area waits for pages that go by themselves, and how often.
const PAUSE: Duration = Duration::from_millis(10);
const PAUSES: u32 = 500;

/// How an area is added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwapFlags {
    /// The priority; without one, it is below those of all others.
    pub priority: Option<u16>,
    /// Whether the disk is told first that the contents of the area are not needed.
    pub discard: bool,
}

/// What is written to the log.
pub type Log<'a> = &'a (dyn Fn(Arguments<'_>) + Sync);

/// A file or device that is to be an area.
struct Candidate {
    file: Arc<OpenFile>,
    source: Source,
    disk: Arc<Disk>,
    bytes: u64,
    extents: Vec<Extent>,
}

impl Candidate {
    fn vnode(&self) -> Option<&VnodeRef> {
        self.file.location().map(|location| &location.vnode)
    }

    /// The bytes of the disk that belong to the area.
    fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.extents.iter().map(|extent| extent.place..extent.place + u64::from(extent.pages) * PAGE)
    }

    /// The first page; zeros if there is none.
    async fn first_page(&self) -> Result<[u8; PAGE as usize]> {
        let mut page = [0; PAGE as usize];
        let Some(first) = self.extents.first().filter(|extent| extent.first == 0) else { return Ok(page) };
        let memory = self.disk.data.memory();
        let (mut at, mut bytes) = (first.place, Bytes::empty(page.len()));
        while bytes.remaining() > 0 {
            match memory.read(at, bytes.remaining(), &mut bytes).await {
                Ok(0) | Err(AttemptError::WouldBlock | AttemptError::NotResident) => return Err(Error::EIO),
                Err(AttemptError::Failed(error)) => return Err(error),
                Ok(count) => at += count as u64,
            }
        }
        page.copy_from_slice(bytes.done());
        Ok(page)
    }

    /// Writes what the page cache has of the area's bytes on the disk, and forgets it.
    async fn forget(&self) -> Result<()> {
        forget(&self.disk, self.ranges()).await
    }

    /// Leaves only the first so many pages. Returns whether all of them are on the disk.
    fn cut(&mut self, pages: u32) -> bool {
        self.extents.retain_mut(|extent| {
            extent.pages = extent.pages.min(pages.saturating_sub(extent.first));
            extent.pages > 0
        });
        let mut next = 0;
        self.extents
            .iter()
            .all(|extent| core::mem::replace(&mut next, extent.first + extent.pages) == extent.first)
            && next == pages
    }
}

async fn forget(disk: &Arc<Disk>, ranges: impl Iterator<Item = Range<u64>>) -> Result<()> {
    let before = disk.data.failures();
    for range in ranges {
        disk.data.write_back(range, true).await?;
    }
    if disk.data.failures() == before { Ok(()) } else { Err(Error::EIO) }
}

/// Pages are brought back from an area. If that is given up, it can be used again.
struct Closing<'a> {
    swap: &'a Swap,
    area: Arc<Area>,
    is_empty: bool,
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        if !self.is_empty {
            self.swap.open(&self.area);
        }
    }
}

impl Swap {
    /// Pages may be taken from the area from now on.
    fn open(&self, area: &Arc<Area>) {
        let mut areas = self.areas.lock();
        area.is_closing.store(false, Ordering::Relaxed);
        areas.open(area.number);
        self.free.fetch_add(area.slots.lock().free_count().into(), Ordering::Relaxed);
    }

    /// No pages are taken from the area from now on.
    fn close(&self, area: &Arc<Area>) {
        let mut areas = self.areas.lock();
        area.is_closing.store(true, Ordering::Relaxed);
        areas.order.retain(|&number| number != area.number);
        self.free.fetch_sub(area.slots.lock().free_count().into(), Ordering::Relaxed);
    }

    fn find(&self, source: &Source) -> Option<Arc<Area>> {
        self.areas.lock().all().find(|area| area.source == *source).cloned()
    }

    /// Puts an area into the table. `EPERM` if that is full.
    fn add(
        &self,
        candidate: &Candidate,
        path: Vec<u8>,
        header: &header::Header,
        priority: Option<u16>,
    ) -> Result<Arc<Area>> {
        let slots = Slots::new(header.pages, &header.bad).ok_or(Error::ENOMEM)?;
        let mut areas = self.areas.lock();
        let number = areas.table.iter().position(Option::is_none).ok_or(Error::EPERM)?;
        let priority = match priority {
            Some(priority) => priority.into(),
            None => {
                areas.least_priority -= 1;
                areas.least_priority
            }
        };
        let area = Arc::new(Area {
            number: number as u32,
            path,
            source: candidate.source.clone(),
            disk: candidate.disk.clone(),
            extents: candidate.extents.clone(),
            priority: AtomicI32::new(priority),
            usable: slots.free_count(),
            slots: SpinLock::new(slots),
            used: AtomicU32::new(0),
            is_closing: AtomicBool::new(true),
            file: candidate.file.clone(),
        });
        areas.table[number] = Some(area.clone());
        Ok(area)
    }

    /// Takes an area out of the table.
    fn remove(&self, area: &Area) {
        let mut areas = self.areas.lock();
        areas.table[area.number as usize] = None;
        let gone = area.priority.load(Ordering::Relaxed);
        if gone < 0 {
            // The priorities that were given stay one after the other.
            areas.least_priority = (areas.least_priority + 1).min(FIRST_PRIORITY);
            for other in areas.all().filter(|other| other.priority.load(Ordering::Relaxed) < gone) {
                other.priority.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Brings all pages of an area back. `ENOMEM`: there is no memory for them. `EIO`: one cannot
    /// be read.
    async fn empty(&self, area: &Area, caller: &Caller<'_>) -> Result<()> {
        let mut pauses = 0;
        loop {
            let before = area.used.load(Ordering::Acquire);
            let mut last = 0;
            loop {
                let next = self.pagers.lock().after(last);
                let Some((number, pager)) = next else { break };
                let mut from = 0;
                while let Some(page) = pager.next_in(area.number, from) {
                    pager.clone().take_back(page).await?;
                    crate::sync::give_turn().await;
                    from = page + 1;
                }
                last = number;
            }
            let now = area.used.load(Ordering::Acquire);
            if now == 0 {
                return Ok(());
            }
            // What is left belongs to objects that are being merged or freed.
            if now >= before {
                pauses += 1;
                if pauses > PAUSES {
                    return Err(Error::ENOMEM);
                }
                let environment = &caller.vfs.environment;
                environment.sleep_until(environment.monotonic() + PAUSE).await;
            }
        }
    }
}

impl Caller<'_> {
    /// Adds a swap area: a disk, a partition or a file that mkswap(8) has prepared. The caller has
    /// checked the privilege.
    ///
    /// # Errors
    /// `EBUSY`: it is a swap area, or mounted. `EINVAL`: it has no valid header, it is a file with
    /// holes or of a file system that cannot say where its data are, or neither a file nor a disk.
    /// `ETXTBSY`: the file is open for writing, or executed. `EROFS`, `EACCES`: it cannot be
    /// written. `EPERM`: there are too many areas. `EIO`, `ENOMEM`; those of open(2).
    pub async fn swap_on(&self, path: &[u8], flags: SwapFlags, log: Log<'_>) -> Result<()> {
        let swap = &self.vfs.swap;
        let _changing = swap.changing.lock().await;
        let mut candidate = self.swap_candidate(path).await.inspect_err(|error| {
            if *error == Error::EINVAL {
                log(format_args!(
                    "swapon: neither a disk nor a file of an ext4 file system with blocks of 4096 bytes"
                ));
            }
        })?;
        if swap.find(&candidate.source).is_some() {
            return Err(Error::EBUSY);
        }
        if let Source::Device(_) = candidate.source {
            self.check_unused(&candidate)?;
        }
        let is_file = matches!(candidate.source, Source::File(..));
        let page = candidate.first_page().await?;
        let refuse = |refused: Refused| {
            log(format_args!("{refused}"));
            Error::EINVAL
        };
        let header = header::parse(&page, candidate.bytes, is_file).map_err(refuse)?;
        if let Some(last) = header.oversized {
            let kib = |pages: u32| u64::from(pages) * (PAGE / 1024);
            let (only, all) = (kib((1 << PAGE_BITS) - 1), kib(last));
            log(format_args!("Truncating oversized swap area, only using {only}k out of {all}k"));
        }
        if !candidate.cut(header.pages) {
            log(format_args!("swapon: swapfile has holes"));
            return Err(Error::EINVAL);
        }
        candidate.forget().await?;
        let discards = flags.discard && candidate.disk.about.discard > 0;
        if discards {
            for range in candidate.ranges() {
                let start =
                    if range.start == candidate.extents[0].place { range.start + PAGE } else { range.start };
                if (start | range.end).is_multiple_of(PAGE) && start < range.end {
                    candidate.disk.data.discard(start..range.end).await?;
                }
            }
        }
        let hooks = candidate.vnode().and_then(|vnode| vnode.hooks()).filter(|_| is_file);
        if let Some(hooks) = hooks {
            hooks.begin_swapping()?;
        }
        let shown = candidate.file.path(&self.directories.root()).await;
        let area = match swap.add(&candidate, shown, &header, flags.priority) {
            Ok(area) => area,
            Err(error) => {
                hooks.inspect(|hooks| hooks.end_swapping());
                return Err(error);
            }
        };
        let places = area.extents.iter().map(|extent| (extent.place, u64::from(extent.pages) * PAGE));
        let lowest = places.clone().map(|(place, _)| place).min().unwrap_or(0);
        let highest = places.map(|(place, bytes)| place + bytes).max().unwrap_or(0);
        log(format_args!(
            "Adding {}k swap on {}.  Priority:{} extents:{} across:{}k SS{}",
            u64::from(area.usable) * (PAGE / 1024),
            alloc::string::String::from_utf8_lossy(&area.path),
            area.priority.load(Ordering::Relaxed),
            area.extents.len(),
            (highest - lowest) / 1024,
            if discards { "Ds" } else { "" },
        ));
        swap.open(&area);
        Ok(())
    }

    /// Removes a swap area, after all its pages have been brought back. If the future is dropped
    /// before its end, the area stays. The caller has checked the privilege.
    ///
    /// # Errors
    /// `EINVAL`: it is no swap area. `ENOMEM`: there is no memory for what it has. `EIO`: a page
    /// cannot be read. Those of open(2).
    pub async fn swap_off(&self, path: &[u8]) -> Result<()> {
        let swap = &self.vfs.swap;
        let vnode = self.find(&At::Current, path, true).await?.location.vnode;
        let _changing = swap.changing.lock().await;
        if vnode.file_type() == FileType::Directory {
            return Err(Error::EISDIR);
        }
        let area = source_of(&vnode).and_then(|source| swap.find(&source)).ok_or(Error::EINVAL)?;
        swap.close(&area);
        let mut closing = Closing { swap, area, is_empty: false };
        swap.empty(&closing.area, self).await?;
        closing.is_empty = true;
        let area = &closing.area;
        swap.remove(area);
        if let (Source::File(..), Some(location)) = (&area.source, area.file.location())
            && let Some(hooks) = location.vnode.hooks()
        {
            hooks.end_swapping();
        }
        // What the page cache has read of the disk meanwhile may be older than the disk. An error
        // of the disk is that of the next access.
        let ranges = area.extents.iter().map(|it| it.place..it.place + u64::from(it.pages) * PAGE);
        let _ = forget(&area.disk, ranges).await;
        Ok(())
    }

    async fn swap_candidate(&self, path: &[u8]) -> Result<Candidate> {
        let found = self.find(&At::Current, path, true).await?.location;
        let flags = match found.vnode.file_type() {
            FileType::BlockDevice => OpenFlags::READ_WRITE,
            FileType::Regular => OpenFlags::READ,
            FileType::Directory => return Err(Error::EISDIR),
            _ => return Err(Error::EINVAL),
        };
        let source = source_of(&found.vnode).ok_or(Error::EINVAL)?;
        if self.vfs.swap.find(&source).is_some() {
            return Err(Error::EBUSY);
        }
        found.mount.check_writable()?;
        let file = self.open(&At::Current, path, flags, Mode::new(0)).await?;
        let vnode = file.location().ok_or(Error::EINVAL)?.vnode.clone();
        if source_of(&vnode).as_ref() != Some(&source) {
            // The name means another file now.
            return Err(Error::EINVAL);
        }
        if let Source::Device(number) = source {
            let device = self.vfs.disks.find(number)?;
            if device.disk.about.read_only {
                return Err(Error::EACCES);
            }
            let pages = u32::try_from(device.size() / PAGE).unwrap_or(u32::MAX);
            let extents = match pages {
                0 => Vec::new(),
                pages => alloc::vec![Extent { first: 0, pages, place: device.range().start }],
            };
            let (disk, bytes) = (device.disk.clone(), device.size());
            return Ok(Candidate { file, source, disk, bytes, extents });
        }
        if vnode.hooks().is_some_and(|hooks| hooks.has_writers() || hooks.is_executing()) {
            return Err(Error::ETXTBSY);
        }
        let (device, extents) = match vnode.extents().await {
            Err(Error::EOPNOTSUPP) => return Err(Error::EINVAL),
            found => found?,
        };
        let (disk, bytes) = (device.disk.clone(), vnode.size());
        let extents = pages(device.range(), bytes, &extents)?;
        Ok(Candidate { bytes, file, source, disk, extents })
    }

    /// `EBUSY` if a file system on these bytes of the disk is mounted, or another area is there.
    fn check_unused(&self, candidate: &Candidate) -> Result<()> {
        let is_on = |root: &VnodeRef| {
            let Ok(device) = self.vfs.disks.find(root.metadata().device) else { return false };
            let range = device.range();
            Arc::ptr_eq(&device.disk, &candidate.disk)
                && candidate.ranges().any(|it| it.start < range.end && range.start < it.end)
        };
        let used = candidate.ranges().any(|range| self.vfs.swap.uses(&candidate.disk, &range));
        match used || self.vfs.tree.roots_of_all().iter().any(is_on) {
            true => Err(Error::EBUSY),
            false => Ok(()),
        }
    }
}

/// The whole pages of a file of `size` bytes, whose file system is in `range` of a disk. `EINVAL`:
/// they are not as pages there.
fn pages(range: Range<u64>, size: u64, extents: &[vfs::Extent]) -> Result<Vec<Extent>> {
    let end = size.min(u64::from(u32::MAX) * PAGE) / PAGE * PAGE;
    let mut pages = Vec::<Extent>::new();
    for extent in extents.iter().filter(|extent| extent.offset < end) {
        let (offset, length) = (extent.offset, extent.length.min(end - extent.offset));
        let place = range.start.checked_add(extent.place).filter(|place| place + length <= range.end);
        let place = place.ok_or(Error::EIO)?;
        if ![offset, length, place].iter().all(|it| it.is_multiple_of(PAGE)) {
            return Err(Error::EINVAL);
        }
        let (first, count) = ((offset / PAGE) as u32, (length / PAGE) as u32);
        match pages.last_mut() {
            Some(last)
                if last.first + last.pages == first && last.place + u64::from(last.pages) * PAGE == place =>
            {
                last.pages += count;
            }
            _ => pages.push(Extent { first, pages: count, place }),
        }
    }
    Ok(pages)
}

/// What an area would be that is this file.
fn source_of(vnode: &VnodeRef) -> Option<Source> {
    let metadata = vnode.metadata();
    match vnode.file_type() {
        FileType::BlockDevice => Some(Source::Device(metadata.represents)),
        FileType::Regular => Some(Source::File(metadata.device, vnode.number())),
        _ => None,
    }
}

const _: () = assert!(AREAS < 1 << (u32::BITS - PAGE_BITS));
