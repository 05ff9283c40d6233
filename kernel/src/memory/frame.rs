//! Frames: the 4 KiB units of kernel memory, and a 16-byte record about each.
//!
//! The records lie in an array at the start of the region. What a record's fields mean depends on the frame's [`Use`];
//! only the owner of that use touches them: this file while the frame is free, `slab` for packed objects, `mapping` for
//! page tables (under the lock of the table's space).
//!
//! Frames that are known to be zero when they come back (page tables, which empty before they are freed) are kept
//! apart, so that the next table need not be cleared.
use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};

use super::{Account, OutOfMemory, PAGE_SIZE, PhysAddr, PhysRange, REGION_LIMIT, injection};
use crate::arch;
use crate::sync::SpinLock;

/// What a frame is used for: the owners that the debugger's statistics tell apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Use {
    /// Nothing.
    Free,
    /// The frame records themselves.
    Records,
    /// The table of accounts.
    Accounts,
    /// Thread control blocks and transfer records.
    Threads,
    /// Address-space objects.
    Spaces,
    /// Mapping nodes.
    MapNodes,
    /// Arrays of node indices: the shadows of page tables, and the parts of large mappings.
    MapArrays,
    /// Extended processor state (XSAVE areas).
    ExtendedState,
    /// Page tables of user spaces.
    PageTables,
    /// UTCBs and other kernel frames that users can access.
    UserVisible,
    /// Anything else of the kernel.
    Kernel,
}

/// How many variants [`Use`] has.
pub const USES: usize = Use::Kernel as usize + 1;

/// What the kernel knows about one of its frames. The general fields `link`.. mean what the frame's use says.
#[repr(C)]
pub(crate) struct Record {
    /// Free: next free frame. Slab: next frame with free objects. Table: the index of its shadow.
    pub(crate) link: Cell<u32>,
    /// Slab: previous frame with free objects. Table: its space.
    pub(crate) back: Cell<u32>,
    /// Table: the virtual address it maps from, in units of 2 MiB.
    pub(crate) place: Cell<u32>,
    /// Slab: objects in use. Table: entries that are not zero.
    pub(crate) used: Cell<u16>,
    /// Slab: the first free object. Table: its level, 1..=4.
    pub(crate) first: Cell<u8>,
    usage: Cell<Use>,
}

const _: () = assert!(size_of::<Record>() == 16);

/// Of all frames one in so many is kept for what the kernel's own account pays: whoever has used up the rest cannot take it
/// from the initial servers, which everybody needs.
const RESERVE: u32 = 64;

/// The pool of free frames.
struct Pool {
    /// Free frames that hold only zeros, linked by their records; 0 ends the list.
    zeroed: u32,
    /// Other free frames.
    dirty: u32,
    /// Frames from here to `end` have never been used.
    fresh: u32,
    end: u32,
    /// Free frames that other accounts than the kernel's own must leave.
    reserve: u32,
    /// Frames by use.
    count: [u32; USES],
}

static POOL: SpinLock<Pool> =
    SpinLock::new(Pool { zeroed: 0, dirty: 0, fresh: 0, end: 0, reserve: 0, count: [0; USES] });

/// Frame number of the region's first frame, where the records begin.
static FIRST: AtomicU32 = AtomicU32::new(0);

/// A frame of kernel memory, zeroed when allocated. Dropping it frees it and credits its account.
#[derive(Debug)]
pub struct Frame {
    number: u32,
    account: Account,
}

impl Frame {
    /// Physical address of the frame.
    pub fn address(&self) -> PhysAddr {
        PhysAddr::new(u64::from(self.number) * PAGE_SIZE)
    }

    /// Where the kernel reads and writes the frame.
    pub fn as_ptr(&self) -> *mut u8 {
        arch::phys_to_virt(self.address())
    }

    /// Gives up ownership without freeing: the address goes where it will be found again for [`Frame::from_raw`].
    pub fn into_raw(self) -> PhysAddr {
        let address = self.address();
        core::mem::forget(self);
        address
    }

    /// Takes ownership back.
    ///
    /// # Safety
    /// `address` came from [`Frame::into_raw`] of a frame charged to `account`, and nobody else takes it.
    pub unsafe fn from_raw(address: PhysAddr, account: Account) -> Self {
        Self { number: (address.value() / PAGE_SIZE) as u32, account }
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        free_number(self.number, false);
        self.account.credit(PAGE_SIZE);
    }
}

/// How many frames there are and what they are used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Statistics {
    /// Frames of the region.
    pub total: u32,
    /// Frames by [`Use`].
    pub count: [u32; USES],
}

impl Statistics {
    /// Frames used for `usage`.
    pub fn of(&self, usage: Use) -> u32 {
        self.count[usage as usize]
    }
}

/// The present use of kernel memory.
pub fn statistics() -> Statistics {
    let pool = POOL.lock();
    Statistics { total: pool.end - FIRST.load(Ordering::Relaxed), count: pool.count }
}

/// As [`statistics`], for the debugger: nothing if the pool is locked, perhaps by what has just stopped.
pub fn try_statistics() -> Option<Statistics> {
    let pool = POOL.try_lock()?;
    Some(Statistics { total: pool.end - FIRST.load(Ordering::Relaxed), count: pool.count })
}

/// A zeroed frame for `usage`, charged to `account`.
pub fn alloc(account: Account, usage: Use) -> Result<Frame, OutOfMemory> {
    account.charge(PAGE_SIZE)?;
    match alloc_number(account, usage) {
        Ok(number) => Ok(Frame { number, account }),
        Err(error) => {
            account.credit(PAGE_SIZE);
            Err(error)
        }
    }
}

/// A zeroed frame, by number, for `account`, which is not charged.
pub(crate) fn alloc_number(account: Account, usage: Use) -> Result<u32, OutOfMemory> {
    injection::check()?;
    take(account, usage)
}

/// As [`alloc_number`], inside an allocation that fault injection has already counted.
pub(super) fn take(account: Account, usage: Use) -> Result<u32, OutOfMemory> {
    let mut pool = POOL.lock();
    if account != Account::KERNEL && pool.count[Use::Free as usize] <= pool.reserve {
        return Err(OutOfMemory);
    }
    let (number, zero) = if pool.zeroed != 0 {
        let number = pool.zeroed;
        pool.zeroed = record(number).link.get();
        (number, false)
    } else if pool.dirty != 0 {
        let number = pool.dirty;
        pool.dirty = record(number).link.get();
        (number, true)
    } else if pool.fresh < pool.end {
        pool.fresh += 1;
        (pool.fresh - 1, true)
    } else {
        return Err(OutOfMemory);
    };
    pool.count[Use::Free as usize] -= 1;
    pool.count[usage as usize] += 1;
    drop(pool);
    let record = record(number);
    record.usage.set(usage);
    record.link.set(0);
    record.back.set(0);
    record.place.set(0);
    record.used.set(0);
    record.first.set(0);
    if zero {
        // SAFETY: the frame was free, so it is ours alone; it lies in the region, which is mapped writable.
        unsafe { frame_ptr(number).write_bytes(0, PAGE_SIZE as usize) };
    }
    Ok(number)
}

/// Returns a frame. `zeroed`: it holds only zeros.
pub(crate) fn free_number(number: u32, zeroed: bool) {
    let record = record(number);
    let mut pool = POOL.lock();
    let usage = record.usage.replace(Use::Free);
    debug_assert!(usage != Use::Free, "frame {number:#x} freed twice");
    pool.count[usage as usize] -= 1;
    pool.count[Use::Free as usize] += 1;
    let list = if zeroed { &mut pool.zeroed } else { &mut pool.dirty };
    record.link.set(*list);
    *list = number;
}

/// The kernel's view of a frame's memory.
#[inline]
pub(crate) fn frame_ptr(number: u32) -> *mut u8 {
    arch::phys_to_virt(PhysAddr::new(u64::from(number) * PAGE_SIZE))
}

/// The record of a frame of the region.
#[inline]
pub(crate) fn record(number: u32) -> &'static Record {
    let first = FIRST.load(Ordering::Relaxed);
    debug_assert!(number > first, "frame {number:#x} is not kernel memory");
    // SAFETY: the records of all frames of the region lie at its start, were initialised by `init` and are never freed;
    // frame numbers come from this allocator. Fields are cells: a record is used by one processor at a time (see above).
    unsafe { &*frame_ptr(first).cast::<Record>().add((number - first) as usize) }
}

/// Lays out the region: records first, the rest free.
///
/// # Safety
/// As for [`super::init`].
pub(super) unsafe fn init(region: PhysRange) {
    // Frame 0 would be mistaken for the end of a list.
    let first = region.start.value().div_ceil(PAGE_SIZE).max(1) as u32;
    let end = (region.end.value().min(REGION_LIMIT) / PAGE_SIZE) as u32;
    let frames = end.saturating_sub(first);
    let records = (frames as usize * size_of::<Record>()).div_ceil(PAGE_SIZE as usize) as u32;
    assert!(frames > records, "no kernel memory in {region:x?}");
    FIRST.store(first, Ordering::Relaxed);
    // SAFETY: the region is ours and mapped. All zero is a valid record: a free frame.
    unsafe { frame_ptr(first).write_bytes(0, records as usize * PAGE_SIZE as usize) };
    let mut count = [0; USES];
    count[Use::Records as usize] = records;
    count[Use::Free as usize] = frames - records;
    *POOL.lock() = Pool {
        zeroed: 0,
        dirty: 0,
        fresh: first + records,
        end,
        reserve: (frames - records) / RESERVE,
        count,
    };
}
