//! Frames: the 4 KiB units of kernel memory, and a 16-byte record about each.
//!
//! The records lie in an array at the start of the first piece of kernel memory, and span all
//! pieces. What a record's fields mean depends on the frame's [`Use`]; only the owner of that use
//! touches them: this file while the frame is free, `slab` for packed objects, `mapping` for page
//! tables (under the lock of the table's space).
//!
//! Frames that are known to be zero when they come back (page tables, which empty before they are
//! freed) are kept apart, so that the next table need not be cleared.
//!
//! With several nodes the pool has the lists of one of them *at hand*, in `here`, and exchanges
//! them when another node is wanted.
use core::cell::Cell;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::node::{self, Layout, MAX_NODES};
use super::{Account, OutOfMemory, PAGE_SIZE, PhysAddr, PhysRange, detour, injection};
use crate::arch;
use crate::sync::{SpinLock, SpinLockGuard};

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

/// What the kernel knows about one of its frames. The meaning of the general fields `link`..
/// depends on the frame's use.
#[repr(C)]
pub(crate) struct Record {
    /// Free: next free frame. Slab: next frame with free objects. Table: the index of its shadow.
    pub(crate) link: Cell<u32>,
    /// Slab: previous frame with free objects. Table: its space.
    pub(crate) back: Cell<u32>,
    /// Slab: the node in whose list it is. Table: the virtual address it maps from, in units of 2
    /// MiB.
    pub(crate) place: Cell<u32>,
    /// Slab: objects in use. Table: entries that are not zero.
    pub(crate) used: Cell<u16>,
    /// Slab: the first free object. Table: its level, 1..=4.
    pub(crate) first: Cell<u8>,
    usage: Cell<Use>,
}

/// Bytes of a [`Record`].
pub(super) const RECORD_SIZE: u64 = size_of::<Record>() as u64;

const _: () = assert!(RECORD_SIZE == 16);

/// One frame in this number is kept for what the kernel's own account pays. A program that has used
/// up the rest cannot take it from the initial servers, which every program needs.
const RESERVE: u32 = 64;

/// The free frames of a node.
#[derive(Clone, Copy)]
struct Free {
    /// Free frames that hold only zeros, linked by their records; 0 ends the list.
    zeroed: u32,
    /// Free frames whose contents are not zero.
    dirty: u32,
    /// Frames from here to `end` have never been used.
    fresh: u32,
    end: u32,
}

/// The pool of free frames.
struct Pool {
    /// The lists of the memory node from which frames are taken now.
    here: Free,
    node: u8,
    /// The lists of the other nodes; what stands here about `node` means nothing.
    others: [Free; MAX_NODES],
    /// Free frames that other accounts than the kernel's own must leave.
    reserve: u32,
    /// Frames of all nodes.
    total: u32,
    /// How many frames each use has.
    count: [u32; USES],
}

impl Free {
    const NONE: Self = Self { zeroed: 0, dirty: 0, fresh: 0, end: 0 };

    fn is_empty(&self) -> bool {
        self.zeroed == 0 && self.dirty == 0 && self.fresh == self.end
    }

    /// Takes a free frame. Returns whether it has to be cleared.
    #[inline(always)]
    fn take(&mut self) -> Option<(u32, bool)> {
        if self.zeroed != 0 {
            let number = self.zeroed;
            self.zeroed = record(number).link.get();
            Some((number, false))
        } else if self.dirty != 0 {
            let number = self.dirty;
            self.dirty = record(number).link.get();
            Some((number, true))
        } else if self.fresh < self.end {
            self.fresh += 1;
            Some((self.fresh - 1, true))
        } else {
            None
        }
    }

    #[inline(always)]
    fn put(&mut self, number: u32, zeroed: bool) {
        let list = if zeroed { &mut self.zeroed } else { &mut self.dirty };
        record(number).link.set(*list);
        *list = number;
    }
}

impl Pool {
    const EMPTY: Self = Self {
        here: Free::NONE,
        node: 0,
        others: [Free::NONE; MAX_NODES],
        reserve: 0,
        total: 0,
        count: [0; USES],
    };

    fn of(&mut self, node: u8) -> &mut Free {
        if node == self.node { &mut self.here } else { &mut self.others[usize::from(node)] }
    }

    /// Makes the lists of `node` the ones from which frames are taken.
    fn turn_to(&mut self, node: u8) {
        if node != self.node {
            self.others[usize::from(self.node)] = self.here;
            self.here = self.others[usize::from(node)];
            self.node = node;
        }
    }

    /// Brings the lists of the nearest other node that has free frames to hand; `false` if none
    /// has.
    #[cold]
    fn turn_away(&mut self) -> bool {
        let has = |node: u8| node != self.node && !self.others[usize::from(node)].is_empty();
        let other = node::nearest(self.node, has);
        other.inspect(|&other| self.turn_to(other)).is_some()
    }
}

static POOL: SpinLock<Pool> = SpinLock::new(Pool::EMPTY);

/// The number of the first frame, where the records begin.
static FIRST: AtomicU32 = AtomicU32::new(0);
/// The address that the record of frame 0 would have.
static RECORDS: AtomicUsize = AtomicUsize::new(0);

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

    /// The address at which the kernel reads and writes the frame.
    pub fn as_ptr(&self) -> *mut u8 {
        arch::phys_to_virt(self.address())
    }

    /// Gives up ownership without freeing: the address goes where it will be found again for
    /// [`Frame::from_raw`].
    pub fn into_raw(self) -> PhysAddr {
        let address = self.address();
        core::mem::forget(self);
        address
    }

    /// Takes ownership back.
    ///
    /// # Safety
    /// `address` came from [`Frame::into_raw`] of a frame charged to `account`, and no other caller
    /// takes it.
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
    /// All frames.
    pub total: u32,
    /// How many frames each [`Use`] has.
    pub count: [u32; USES],
}

impl Statistics {
    /// How many frames `usage` has.
    pub fn of(&self, usage: Use) -> u32 {
        self.count[usage as usize]
    }
}

/// The present use of kernel memory.
pub fn statistics() -> Statistics {
    let pool = POOL.lock();
    Statistics { total: pool.total, count: pool.count }
}

/// Like [`statistics`], for the debugger: `None` if the pool is locked, perhaps by what has just
/// stopped.
pub fn try_statistics() -> Option<Statistics> {
    let pool = POOL.try_lock()?;
    Some(Statistics { total: pool.total, count: pool.count })
}

/// The use of the kernel memory of one node, counted frame by frame: for the debugger, while
/// nothing else runs.
pub fn statistics_of(node: u8) -> Statistics {
    let mut statistics = Statistics { total: 0, count: [0; USES] };
    for (piece, _) in node::layout().pieces().iter().filter(|piece| piece.1 == node) {
        for number in piece.start.value() / PAGE_SIZE..piece.end.value() / PAGE_SIZE {
            let number = number as u32;
            // The first frame holds the array of records itself.
            let first = FIRST.load(Ordering::Relaxed);
            let usage = if number == first { Use::Records } else { record(number).usage.get() };
            statistics.total += 1;
            statistics.count[usage as usize] += 1;
        }
    }
    statistics
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
    if !detour::none() {
        return alloc_by_detour(account, usage);
    }
    take(POOL.lock(), account, usage)
}

#[cold]
fn alloc_by_detour(account: Account, usage: Use) -> Result<u32, OutOfMemory> {
    injection::check()?;
    take_near(node::wanted(), account, usage)
}

/// Like [`alloc_number`] by a processor of `node`, inside an allocation that has asked fault
/// injection.
#[cold]
pub(super) fn take_near(node: u8, account: Account, usage: Use) -> Result<u32, OutOfMemory> {
    let mut pool = POOL.lock();
    pool.turn_to(node);
    take(pool, account, usage)
}

#[inline(always)]
fn take(mut pool: SpinLockGuard<'_, Pool>, account: Account, usage: Use) -> Result<u32, OutOfMemory> {
    if account != Account::KERNEL && pool.count[Use::Free as usize] <= pool.reserve {
        return Err(OutOfMemory);
    }
    let (number, zero) = loop {
        match pool.here.take() {
            Some(taken) => break taken,
            None if pool.turn_away() => {}
            None => return Err(OutOfMemory),
        }
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
        // SAFETY: the frame was free, so only this call uses it; it lies in kernel memory, which is
        // mapped writable.
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
    if node::are_several() {
        return put_back(&mut pool, number, zeroed);
    }
    pool.here.put(number, zeroed);
}

/// Puts a frame back where it came from.
#[cold]
fn put_back(pool: &mut Pool, number: u32, zeroed: bool) {
    pool.of(node_of(number)).put(number, zeroed);
}

/// The node of a frame.
pub(super) fn node_of(number: u32) -> u8 {
    node::of(PhysAddr::new(u64::from(number) * PAGE_SIZE))
}

/// The kernel's view of a frame's memory.
#[inline]
pub(crate) fn frame_ptr(number: u32) -> *mut u8 {
    arch::phys_to_virt(PhysAddr::new(u64::from(number) * PAGE_SIZE))
}

/// The record of a frame of kernel memory.
#[inline]
pub(crate) fn record(number: u32) -> &'static Record {
    record_of(PhysAddr::new(u64::from(number) * PAGE_SIZE))
}

/// The record of the frame at `address`, of kernel memory.
#[inline(always)]
pub(crate) fn record_of(address: PhysAddr) -> &'static Record {
    let number = address.value() / PAGE_SIZE;
    debug_assert!(number > FIRST.load(Ordering::Relaxed).into(), "frame {number:#x} is not kernel memory");
    let address = RECORDS.load(Ordering::Relaxed).wrapping_add(number as usize * size_of::<Record>());
    // SAFETY: the records of all frames lie from the first one's on, were initialised by `init` and
    // are never freed; frame numbers come from this allocator. Fields are cells: a record is used
    // by one processor at a time (see above).
    unsafe { &*core::ptr::with_exposed_provenance(address) }
}

/// Lays out the kernel's memory: records at the start of the first piece, the rest free.
///
/// # Safety
/// As for [`super::init`].
pub(super) unsafe fn init(layout: &Layout) {
    let frames_of = |range: &PhysRange| {
        ((range.start.value() / PAGE_SIZE) as u32, (range.end.value() / PAGE_SIZE) as u32)
    };
    let pieces = || layout.pieces().iter().map(|(range, node)| (frames_of(range), *node));
    let Some(((first, first_end), first_node)) = pieces().next() else { panic!("no kernel memory") };
    let end = pieces().next_back().map_or(0, |((_, end), _)| end);
    let bytes = (end - first) as usize * size_of::<Record>();
    let behind = first + bytes.div_ceil(PAGE_SIZE as usize) as u32;
    assert!(behind < first_end, "too little kernel memory for {} frames", end - first);
    FIRST.store(first, Ordering::Relaxed);
    let of_first = frame_ptr(first).expose_provenance();
    RECORDS.store(of_first.wrapping_sub(first as usize * size_of::<Record>()), Ordering::Relaxed);
    // SAFETY: the memory is the pool's and mapped. All zero is a valid record: a free frame.
    unsafe { frame_ptr(first).write_bytes(0, (behind - first) as usize * PAGE_SIZE as usize) };
    (first + 1..behind).for_each(|number| record(number).usage.set(Use::Records));
    let mut pool = Pool::EMPTY;
    let mut records = behind - first;
    let mut last_end = first;
    for ((start, end), node) in pieces() {
        pool.total += end - start;
        // Frames that lie between pieces, and are not the kernel's, have records, too. A frame of
        // records is free if it has only such records.
        let record_frame = |number: u32| {
            first as usize * PAGE_SIZE as usize + (number - first) as usize * size_of::<Record>()
        };
        let unused = (record_frame(last_end).div_ceil(PAGE_SIZE as usize) as u32)
            ..(record_frame(start) / PAGE_SIZE as usize) as u32;
        for number in unused {
            record(number).usage.set(Use::Free);
            pool.of(first_node).put(number, true);
            records -= 1;
        }
        last_end = end;
        let start = if start == first { behind } else { start };
        let free = pool.of(node);
        if free.fresh == free.end {
            (free.fresh, free.end) = (start, end);
        } else {
            (start..end).for_each(|number| free.put(number, false));
        }
    }
    pool.count[Use::Records as usize] = records;
    pool.count[Use::Free as usize] = pool.total - records;
    pool.reserve = pool.count[Use::Free as usize] / RESERVE;
    *POOL.lock() = pool;
}
