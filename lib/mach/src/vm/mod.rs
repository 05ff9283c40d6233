//! Virtual memory: maps of address spaces, objects that hold pages, copy-on-write, paging.
//!
//! # The parts
//!
//! | module | what it holds |
//! |---|---|
//! | [`map`] | [`VmMap`]: a task's address space as an ordered set of entries; every `vm_*` call |
//! | [`object`] | [`VmObject`]: pages, and where they come from: zeros, a [`Pager`], device memory, another object |
//! | [`pager`] | what file systems and swap space implement |
//! | `control` | what a pager asks about its pages ([`VmObject::lock_request`]) |
//! | `fault` | from an address and an access to a page: the walk along shadow objects |
//! | `lend` | frames of pages for a moment, for copies from page to page |
//! | `copy` | copy-on-write: shadows, delayed copies, collapse and bypass |
//! | `queues`, `pageout` | active, inactive and free pages; taking pages when memory is short |
//! | `swap` | what pages of anonymous objects have with the default pager |
//! | `oom` | the OOM killer: what happens when no page can be taken |
//!
//! # Rules
//!
//! - **Lock order**: map (async mutex), translation (of the map), object before the object that it
//!   shadows, queues; all but the first are spin locks. No future is awaited under any of them, the
//!   map's mutex included: a fault that must wait drops what it holds, waits, and starts again. So
//!   every future here may be dropped at any await.
//! - **A page is mapped at an address only while the entry there reaches its object** through the
//!   chain of shadows. What takes an object out of a chain unmaps first; so the pages of an object
//!   without references are mapped nowhere and need no unmapping.
//! - **Dirtiness is known from faults**: a page that is clean is never mapped writable. Referenced
//!   bits come from the machine. No page tables are kept; a translation that the machine drops is
//!   entered again at the next fault.
//! - **Memory for structures is reserved** with the machine before it is used, so that its
//!   exhaustion is [`ResourceShortage`](crate::KernError::ResourceShortage), as that of frames is.
//! - Types are `Send` and `Sync`; a map is used mostly by the worker on whose processor its process
//!   lives.
//!
//! # Use
//!
//! ```
//! use mach::machine::{simulated::Simulated, Protection};
//! use mach::vm::{Inheritance, MapRequest, Placement, Vm, VmMap};
//!
//! let machine = Simulated::new(64);
//! let vm = Vm::new(machine.clone()).unwrap();
//! machine.block_on(async {
//!     let parent = VmMap::new(&vm, 0x1000, 1 << 47).await.unwrap();
//!     let request = MapRequest::anonymous(0x3000).at(Placement::Fixed(0x10_0000));
//!     let address = parent.map(&request).await.unwrap();
//!     parent.copyout(address + 0xfff, b"across").await.unwrap();
//!
//!     // A child with a copy of the parent's memory, as fork makes it: no page is copied yet.
//!     let child = parent.fork().await.unwrap();
//!     child.copyout(address, b"child").await.unwrap();
//!     parent.protect(address, 0x1000, Protection::READ, false).await.unwrap();
//!
//!     let mut bytes = [0; 6];
//!     child.copyin(address + 0xfff, &mut bytes).await.unwrap();
//!     assert_eq!(&bytes, b"across");
//!     parent.copyin(address, &mut bytes).await.unwrap();
//!     assert_eq!(bytes, [0; 6]);
//!
//!     // A page fault of the child's program.
//!     child.fault(address, Protection::WRITE).await.unwrap();
//! });
//! # drop(vm);
//! # assert_eq!(machine.reserved(), 0);
//! ```

mod control;
mod copy;
mod entry_tree;
mod fault;
mod lend;
pub mod map;
pub mod object;
mod oom;
mod page_index;
mod pageout;
pub mod pager;
mod queues;
mod swap;
#[cfg(test)]
mod tests;

use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicU64, Ordering};

use macadamia_sync::{SpinLock, WaitQueue};

pub use control::{LockRequest, ReturnPages};
pub use map::{
    AttributeValue, Behavior, CopyFault, Inheritance, MachineAttribute, MapCopy, MapRequest, Placement,
    RegionInfo, VmMap,
};
pub use object::{CopyStrategy, PageKind, VmObject};
pub use oom::{MapEnd, OomKiller};
pub use pager::{BoxFuture, DataRequest, DataReturn, DefaultPager, LeftPage, PageAnswer, Pager, SwapPager};

use crate::KernResult;
use crate::machine::{Frame, Machine, PAGE_SHIFT};
use page_index::PageIndex;
use pageout::Laundry;
use queues::Queues;

/// What runs a task to its end, independently of the task that begins it: [`Vm::set_spawner`].
pub type Spawner = Arc<dyn Fn(BoxFuture<'static, ()>) -> bool + Send + Sync>;

/// The parameters of the memory system.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many pages around a faulting one are mapped with it if they are resident; a power of
    /// two, at most 16.
    pub fault_around: u64,
    /// How many pages are requested from a pager at a time where accesses are not random.
    pub cluster: u64,
    /// The number of free pages that page-out tries to keep, as Mach's `free_target`.
    pub free_target: u32,
    /// The number of free pages that only page-out may use, as Mach's `free_reserve`: for
    /// [privileged](VmObject::set_privileged) objects and maps.
    pub free_reserve: u32,
    /// Whether large pages are used wherever they fit, not only where [`Behavior::LargePages`] asks
    /// for them. A large page is cleared as a whole when it is first accessed.
    pub large_pages: bool,
}

/// The memory of a system: its machine, its page queues, its default pager.
pub struct Vm<M: Machine> {
    machine: M,
    settings: Settings,
    /// log2 of the size of large pages: the smallest of the machine's page sizes that is larger
    /// than a base page; that of base pages if there is none.
    large_shift: u32,
    queues: SpinLock<Queues<M>>,
    laundry: Laundry,
    /// Woken when a frame has been freed.
    memory_freed: WaitQueue,
    /// Woken when fewer frames are free than the target.
    memory_low: WaitQueue,
    default_pager: SpinLock<Option<Arc<dyn DefaultPager<M>>>>,
    /// What runs tasks independently of the one that begins them, if there is anything.
    spawner: SpinLock<Option<Spawner>>,
    /// The OOM killer, which finds memory when no page can be taken.
    oom_killer: SpinLock<Option<Weak<dyn OomKiller>>>,
    /// How many pages the default pager alone has.
    paged_out: AtomicU64,
    next_id: AtomicU64,
}

/// The numbers of pages of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VmStatistics {
    /// Pages that can be allocated without waiting, the reserve included.
    pub free: u32,
    /// Pages in use that were used recently, and those that have nowhere to go.
    pub active: u32,
    /// Pages in use that page-out may take next.
    pub inactive: u32,
    /// Pages that page-out may not take.
    pub wired: u32,
    /// Pages that only the default pager has.
    pub paged_out: u64,
    /// Pages of files that are only in memory, and of memory that programs share.
    pub memory_files: u32,
    /// Pages of files whose contents a pager has.
    pub files: u32,
    /// Pages of disks.
    pub disks: u32,
}

impl<M: Machine> Vm<M> {
    /// The memory system of `machine`, with all the frames that it will give.
    ///
    /// # Errors
    /// `ResourceShortage`: no memory for the table of frames (32 bytes a frame).
    pub fn new(machine: M) -> KernResult<Arc<Self>> {
        let frames = machine.free_frames();
        Self::with_settings(
            machine,
            Settings {
                fault_around: 16,
                cluster: 8,
                free_target: 15 + frames / 80,
                free_reserve: (frames / 128).min(16),
                large_pages: false,
            },
        )
    }

    /// The memory system of `machine` with other settings than those of [`new`](Self::new).
    pub fn with_settings(machine: M, settings: Settings) -> KernResult<Arc<Self>> {
        let queues = Queues::new(&machine, settings.free_reserve)?;
        let large_shift = machine.page_shifts().get(1).copied().unwrap_or(PAGE_SHIFT);
        Ok(Arc::new(Self {
            machine,
            settings,
            large_shift,
            queues: SpinLock::new(queues),
            laundry: Laundry::new(),
            memory_freed: WaitQueue::new(),
            memory_low: WaitQueue::new(),
            default_pager: SpinLock::new(None),
            spawner: SpinLock::new(None),
            oom_killer: SpinLock::new(None),
            paged_out: AtomicU64::new(0),
            next_id: AtomicU64::new(PageKind::COUNT),
        }))
    }

    /// The machine on which the library runs.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// Sets the pager that keeps the pages of objects without a pager. Without a default pager they
    /// stay in memory.
    pub fn set_default_pager(&self, pager: Arc<dyn DefaultPager<M>>) {
        *self.default_pager.lock() = Some(pager);
    }

    /// Sets what runs a task independently of the one that begins it. It returns false if there is
    /// no memory for the task.
    pub fn set_spawner(&self, spawner: Spawner) {
        *self.spawner.lock() = Some(spawner);
    }

    /// How the pages are used now.
    pub fn statistics(&self) -> VmStatistics {
        let queues = self.queues.lock();
        let (active, inactive) = queues.counts();
        let (stranded, wired) = queues.kept_counts();
        let free = queues.free_count(&self.machine) + queues.reserve_count();
        let paged_out = self.paged_out.load(Ordering::Relaxed);
        let [memory_files, files, disks] =
            [PageKind::Memory, PageKind::File, PageKind::Disk].map(|kind| queues.count_of(kind));
        let active = active + stranded;
        VmStatistics { free, active, inactive, wired, paged_out, memory_files, files, disks }
    }

    /// So many more pages are with the default pager alone.
    fn count_paged_out(&self, more: i64) {
        // Relaxed: the count is a figure, and protects nothing. Adding a negative number wraps.
        self.paged_out.fetch_add(more as u64, Ordering::Relaxed);
    }

    /// How many more pages can be kept in memory together.
    fn pages_that_may_be_wired(&self) -> u64 {
        let queues = self.queues.lock();
        let ((active, inactive), (stranded, _)) = (queues.counts(), queues.kept_counts());
        let free = queues.free_count(&self.machine);
        [free, active, inactive, stranded].map(u64::from).iter().sum()
    }

    /// How many base pages a large page has.
    fn large_pages(&self) -> u64 {
        1 << (self.large_shift - PAGE_SHIFT)
    }

    /// A number that no other object or map of this memory system has or had. Its lowest bits, as
    /// many as say the [kind](PageKind) of pages, are 0.
    fn new_id(&self) -> u64 {
        // Relaxed: only uniqueness matters.
        self.next_id.fetch_add(PageKind::COUNT, Ordering::Relaxed)
    }

    /// Allocates a frame for a page of `owner`, which is active at first. The contents are
    /// undefined.
    #[inline(always)]
    fn allocate_frame(&self, owner: &Arc<VmObject<M>>, index: u64) -> Option<Frame> {
        let weak: Weak<VmObject<M>> = Arc::downgrade(owner);
        let (frame, low) = {
            let mut queues = self.queues.lock();
            let frame = queues.allocate(&self.machine, weak, owner.kind(), index);
            (frame, queues.is_low(&self.machine, self.settings.free_target))
        };
        if low {
            self.memory_low.wake_all();
        }
        frame
    }

    /// Allocates a frame of the reserve, when no other is free, for pagers that page-out waits for.
    #[cold]
    fn allocate_reserved(&self, owner: &Arc<VmObject<M>>, index: u64) -> Option<Frame> {
        self.queues.lock().allocate_reserved(Arc::downgrade(owner), owner.kind(), index)
    }

    /// Frees all pages of an object that is being dropped. They must not be mapped.
    fn free_frames(&self, pages: &mut PageIndex) {
        if let Some(slot) = pages.take_only() {
            match slot.is_resident() {
                true => self.free_frame(slot.frame, slot.wired > 0),
                false => self.count_paged_out(-1),
            }
        } else if pages.len() > 0 {
            let mut queues = None;
            let (mut count, mut paged_out) = (0u32, 0);
            pages.drain(&self.machine, |slot| {
                if !slot.is_resident() {
                    paged_out += 1;
                } else {
                    count += 1;
                    if u32::is_multiple_of(count, 64) {
                        // The lock is released between batches, so that other threads get it.
                        drop(queues.take());
                    }
                    let queues = queues.get_or_insert_with(|| self.queues.lock());
                    queues.free(&self.machine, slot.frame, slot.wired > 0);
                }
            });
            drop(queues);
            self.count_paged_out(-paged_out);
            self.memory_freed.wake_all();
        }
    }

    /// Frees a frame, which must not be mapped.
    fn free_frame(&self, frame: Frame, wired: bool) {
        self.queues.lock().free(&self.machine, frame, wired);
        self.memory_freed.wake_all();
    }
}

impl<M: Machine> Drop for Vm<M> {
    fn drop(&mut self) {
        self.queues.get_mut().give_back_all(&self.machine);
    }
}
