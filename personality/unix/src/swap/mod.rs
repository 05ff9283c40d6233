//! Swap space: where pages of anonymous memory go when memory is short.
//!
//! | module | subject |
//! |---|---|
//! | `header` | what mkswap(8) writes into the first page |
//! | `slots` | which pages of an area are in use |
//! | `area` | a disk, a partition or a file: where its pages are |
//! | `pager` | the default pager of Mach's memory: where the pages of each object are |
//! | `calls` | swapon(2) and swapoff(2) |
//!
//! Page-out must be able to write when no memory is free. An area's pages are known when it is
//! added, so no file server is asked then; frames go to the disk as they are; and what a write
//! needs of the server's memory comes from the part of its heap that is kept from requests that
//! may fail.

mod area;
mod calls;
mod header;
mod pager;
mod slots;

#[cfg(test)]
mod tests;

pub use calls::{Log, SwapFlags};
pub use header::{Header, Refused};
pub use pager::SwapSpace;

use crate::disk::Disk;
use crate::sync::SpinLock;
use crate::{BoxFuture, Error, Result};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use area::Area;
use core::num::NonZeroU32;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use header::PAGE_BITS;
use mach::machine::{Frame, PAGE_SIZE};
use pager::Pagers;

const PAGE: u64 = PAGE_SIZE;
/// How many areas there are at most.
const AREAS: usize = 29;
/// The priority of the first area that is added without one is the next lower.
const FIRST_PRIORITY: i32 = -1;

/// A page of an area. It is not 0, since the first page of an area is its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place(NonZeroU32);

impl Place {
    fn new(area: u32, page: u32) -> Place {
        debug_assert!(page > 0 && page < 1 << PAGE_BITS, "an area has so many pages");
        Place(NonZeroU32::new(area << PAGE_BITS | page).unwrap_or(NonZeroU32::MIN))
    }

    fn area(self) -> u32 {
        self.0.get() >> PAGE_BITS
    }

    fn page(self) -> u32 {
        self.0.get() & ((1 << PAGE_BITS) - 1)
    }

    /// The place `count` pages after this one in the same area, which has so many.
    fn after(self, count: u32) -> Place {
        Place(self.0.saturating_add(count))
    }
}

/// The pager of an object, as swap space sees it.
trait Swapped: Send + Sync {
    /// The first page from `from` on that is in the area.
    fn next_in(&self, area: u32, from: u64) -> Option<u64>;

    /// Brings a page back into memory, so that it is not in swap space any more.
    fn take_back(self: Arc<Self>, page: u64) -> BoxFuture<'static, Result<()>>;
}

/// The swap space of a system.
pub struct Swap {
    areas: SpinLock<Areas>,
    /// How many pages can be taken now.
    free: AtomicU64,
    /// Pages that were read, and written.
    read: AtomicU64,
    written: AtomicU64,
    pagers: SpinLock<Pagers>,
    /// Held while areas are added or removed.
    changing: crate::sync::Mutex<()>,
}

struct Areas {
    table: [Option<Arc<Area>>; AREAS],
    /// The numbers of the areas from which pages may be taken, the first ones first. Of areas with
    /// the same priority, each is used in turn.
    order: Vec<u32>,
    /// The lowest priority that was given to an area without one.
    least_priority: i32,
}

/// A swap area, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AreaInformation {
    /// The path.
    pub path: Vec<u8>,
    /// Whether it is a file.
    pub is_file: bool,
    /// How many pages it has that can be used.
    pub pages: u64,
    /// How many of them are used.
    pub used: u64,
    /// The priority.
    pub priority: i32,
}

/// The numbers of pages of swap space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwapUse {
    /// All.
    pub total: u64,
    /// Those that are not used.
    pub free: u64,
    /// How many pages were read since the start.
    pub read: u64,
    /// How many were written.
    pub written: u64,
}

impl Default for Swap {
    fn default() -> Swap {
        let order = Vec::new();
        let areas = Areas { table: [const { None }; AREAS], order, least_priority: FIRST_PRIORITY };
        Swap {
            areas: SpinLock::new(areas),
            free: AtomicU64::new(0),
            read: AtomicU64::new(0),
            written: AtomicU64::new(0),
            pagers: SpinLock::new(Pagers::default()),
            changing: crate::sync::Mutex::new(()),
        }
    }
}

impl Areas {
    fn get(&self, number: u32) -> Option<&Arc<Area>> {
        self.table.get(number as usize)?.as_ref()
    }

    fn all(&self) -> impl Iterator<Item = &Arc<Area>> {
        self.table.iter().flatten()
    }

    fn priority(&self, number: u32) -> i32 {
        self.get(number).map_or(i32::MIN, |area| area.priority.load(Ordering::Relaxed))
    }

    /// Adds an area to those from which pages are taken, after those of the same priority.
    fn open(&mut self, number: u32) {
        let priority = self.priority(number);
        let at = self.order.partition_point(|&other| self.priority(other) >= priority);
        self.order.insert(at, number);
    }

    /// Takes up to `most` pages, one after the other, of the areas with the highest priority that
    /// have any.
    fn allocate(&mut self, most: u32) -> Option<(Place, u32)> {
        for at in 0..self.order.len() {
            let number = self.order[at];
            let Some(area) = self.get(number).cloned() else { continue };
            let Some((page, count)) = area.allocate(most) else { continue };
            // The next of the same priority is tried first the next time.
            let priority = self.priority(number);
            let end = self.order.partition_point(|&other| self.priority(other) >= priority);
            self.order[at..end].rotate_left(1);
            return Some((area.place_of(page), count));
        }
        None
    }
}

impl Swap {
    /// Whether a page can be taken.
    fn has_room(&self) -> bool {
        self.free.load(Ordering::Relaxed) > 0
    }

    fn area(&self, place: Place) -> Option<Arc<Area>> {
        self.areas.lock().get(place.area()).cloned()
    }

    fn allocate(&self, most: u32) -> Option<(Place, u32)> {
        let mut areas = self.areas.lock();
        let (place, count) = areas.allocate(most)?;
        self.free.fetch_sub(count.into(), Ordering::Relaxed);
        Some((place, count))
    }

    fn release(&self, place: Place) {
        let areas = self.areas.lock();
        let Some(area) = areas.get(place.area()) else { return };
        area.release(place.page());
        if !area.is_closing.load(Ordering::Relaxed) {
            self.free.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn read(&self, place: Place, frames: &[Frame]) -> Result<()> {
        let area = self.area(place).ok_or(Error::EIO)?;
        area.read(place.page(), frames).await?;
        self.read.fetch_add(frames.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    async fn write(&self, place: Place, frames: &[Frame]) -> Result<()> {
        let area = self.area(place).ok_or(Error::EIO)?;
        area.write(place.page(), frames).await?;
        self.written.fetch_add(frames.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn new_pager(&self) -> u64 {
        let mut pagers = self.pagers.lock();
        pagers.last += 1;
        pagers.last
    }

    fn add_pager(&self, number: u64, pager: Weak<dyn Swapped>) {
        self.pagers.lock().all.insert(number, pager);
    }

    fn remove_pager(&self, number: u64) {
        self.pagers.lock().all.remove(&number);
    }

    /// Whether bytes of the disk are a swap area, or a part of one.
    pub fn uses(&self, disk: &Arc<Disk>, range: &Range<u64>) -> bool {
        self.areas.lock().all().any(|area| area.overlaps(disk, range))
    }

    /// All areas, in the order in which they are shown.
    pub fn areas(&self) -> Vec<AreaInformation> {
        let areas: Vec<_> = self.areas.lock().all().cloned().collect();
        let about = |area: Arc<Area>| AreaInformation {
            path: area.path.clone(),
            is_file: matches!(area.source, area::Source::File(..)),
            pages: area.usable.into(),
            used: area.used.load(Ordering::Relaxed).into(),
            priority: area.priority.load(Ordering::Relaxed),
        };
        areas.into_iter().map(about).collect()
    }

    /// How much swap space there is. Pages of an area that is being removed count only as far as
    /// they are in use.
    pub fn usage(&self) -> SwapUse {
        let areas = self.areas.lock();
        let mut usage = SwapUse {
            read: self.read.load(Ordering::Relaxed),
            written: self.written.load(Ordering::Relaxed),
            ..SwapUse::default()
        };
        for area in areas.all() {
            let used = u64::from(area.used.load(Ordering::Relaxed));
            let total = match area.is_closing.load(Ordering::Relaxed) {
                true => used,
                false => area.usable.into(),
            };
            usage.total += total;
            usage.free += total - used.min(total);
        }
        usage
    }
}
