//! The attackers' threads and their memory. The program lies at the same addresses in every space.
//! Attackers can read it and execute its code. They can write only the records, the stacks and the
//! pool, and can execute the pool, too.

use crate::kind::{COLUMNS, Kind};
use core::cell::UnsafeCell;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use l4::kip;
use x2::{Fpage, ThreadId};

/// How many spaces attackers have. The first owns the third; the UTCB area of the fourth is that of
/// the spaces that the controller makes.
pub(crate) const SPACES: u64 = 4;
/// How many attackers the supervisor makes in each of the first three spaces.
pub(crate) const ATTACKERS: u64 = 8;
/// UTCBs in each area.
pub(crate) const UTCBS: u64 = 16;
/// How many thread numbers there are for attackers. The supervisor uses the lower ones, the
/// controller those from `FREE_NUMBERS` on.
pub(crate) const NUMBERS: u64 = 40;
/// The first thread number of attackers. Lower ones belong to the initial servers, the heartbeat
/// and the controller.
const FIRST_NUMBER: u32 = 16;
/// How many pages the pool has, to which the arguments of calls refer.
pub(crate) const POOL_PAGES: u64 = 64;
pub(crate) const POOL_LOG2: u32 = (POOL_PAGES * 4096).ilog2();
const _: () = assert!(align_of::<Memory<0>>() == 1 << POOL_LOG2);
pub(crate) const STACK: usize = 8192;
const SLOTS: usize = (SPACES * UTCBS) as usize;

/// The address of the UTCB area of space `index`.
pub(crate) const fn utcb_area(index: u64) -> u64 {
    (8 + index) << 28
}

/// The id of the attacker with number `index`, counted from 0.
pub(crate) fn attacker(index: u64, version: u32) -> ThreadId {
    let number = kip().thread_info().user_base + FIRST_NUMBER + index as u32;
    ThreadId::global(number, version).expect("the version makes a global id")
}

/// The id of the heartbeat thread (0) or the controller (1).
pub(crate) fn own_thread(index: u32) -> ThreadId {
    ThreadId::global(kip().thread_info().user_base + 8 + index, 1).expect("the version makes a global id")
}

/// The record of an attacker, outside its stack. Attackers may write anything into records, so the
/// supervisor does not rely on them.
#[repr(C, align(4096))]
pub(crate) struct Slot {
    /// The state of the attacker's random numbers.
    pub(crate) state: AtomicU64,
    /// How many calls have begun, in total and of each kind.
    calls: Count,
    begun: [Count; Kind::COUNT],
    /// How many calls of each kind had each result.
    results: [[Count; COLUMNS]; Kind::COUNT],
}

impl Slot {
    const fn new() -> Self {
        Self {
            state: AtomicU64::new(0),
            calls: Count::new(),
            begun: [const { Count::new() }; Kind::COUNT],
            results: [const { [const { Count::new() }; COLUMNS] }; Kind::COUNT],
        }
    }

    /// The number of calls that the attacker has begun since the count was last overwritten. `None`
    /// while the count changes.
    pub(crate) fn progress(&self) -> Option<u64> {
        self.calls.get()
    }

    /// The number of calls of this kind that the attacker has begun.
    pub(crate) fn begun(&self, kind: Kind) -> u64 {
        self.begun[kind as usize].get().unwrap_or(0)
    }

    /// Counts a call that is about to be made.
    pub(crate) fn begin(&self, kind: Kind) {
        self.calls.add_one();
        self.begun[kind as usize].add_one();
    }

    /// Counts the result of a call.
    pub(crate) fn end(&self, kind: Kind, column: usize) {
        self.results[kind as usize][column].add_one();
    }

    /// How many calls of this kind had the result of this column.
    pub(crate) fn result(&self, kind: Kind, column: usize) -> u64 {
        self.results[kind as usize][column].get().unwrap_or(0)
    }
}

/// A count in memory that attackers may overwrite by any call that takes an address. An overwritten
/// count does not fit its check word, and counting starts again.
struct Count {
    value: AtomicU64,
    check: AtomicU64,
}

impl Count {
    const fn new() -> Self {
        Self { value: AtomicU64::new(0), check: AtomicU64::new(0) }
    }

    /// The check word of `value`. It depends on the value and on the address of the count, so that
    /// a count that was copied here does not fit.
    fn check_of(&self, value: u64) -> u64 {
        (value ^ (&raw const *self) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// The value of the count. `None`: it was overwritten, or is being changed.
    fn get(&self) -> Option<u64> {
        // Relaxed, here and below: these are statistics, each written by one thread.
        let value = self.value.load(Ordering::Relaxed);
        let check = self.check.load(Ordering::Relaxed);
        (value == 0 || check == self.check_of(value)).then_some(value)
    }

    fn add_one(&self) {
        let value = self.get().unwrap_or(0) + 1;
        self.value.store(value, Ordering::Relaxed);
        self.check.store(self.check_of(value), Ordering::Relaxed);
    }
}

/// Memory aligned to the size of the pool: an fpage up to that size that has a page of the pool has
/// no other pages.
#[repr(C, align(0x40000))]
pub(crate) struct Memory<const SIZE: usize>(UnsafeCell<[u8; SIZE]>);

// SAFETY: no reference to the content is ever made.
unsafe impl<const SIZE: usize> Sync for Memory<SIZE> {}

static POOL: Memory<{ (POOL_PAGES * 4096) as usize }> = Memory(UnsafeCell::new([0; _]));
pub(crate) static STACKS: Memory<{ SLOTS * STACK }> = Memory(UnsafeCell::new([0; _]));
static SLOT_MEMORY: [Slot; SLOTS] = [const { Slot::new() }; SLOTS];
/// The controller's record, and the memory to which its calls refer.
pub(crate) static CONTROLLER: Slot = Slot::new();

/// The attackers' records.
pub(crate) fn slots() -> &'static [Slot; SLOTS] {
    &SLOT_MEMORY
}

/// How many records there are: the attackers', and the controller's.
pub(crate) const RECORDS: usize = SLOTS + 1;

/// The number of the slot of the thread with UTCB pointer `utcb`.
pub(crate) fn slot_of(utcb: u64) -> usize {
    let (area, offset) = ((utcb >> 28).wrapping_sub(8) % SPACES, (utcb >> 10) % UTCBS);
    (area * UTCBS + offset) as usize
}

/// The address of the top of a slot's stack.
pub(crate) fn stack_top(slot: usize) -> u64 {
    STACKS.0.get() as u64 + ((slot + 1) * STACK) as u64
}

/// The page of the pool in which calls of attackers read and write extended state: the first one,
/// which has no map items.
pub(crate) fn buffer() -> u64 {
    POOL.0.get() as u64
}

/// The addresses of the pool.
pub(crate) fn pool() -> Range<u64> {
    let base = POOL.0.get() as u64;
    base..base + POOL_PAGES * 4096
}

/// The memory outside the pool that attackers may write: their stacks and their records.
pub(crate) fn writable() -> [Range<u64>; 2] {
    let stacks = STACKS.0.get() as u64;
    let records = (&raw const SLOT_MEMORY) as u64;
    [stacks..stacks + (SLOTS * STACK) as u64, records..records + size_of_val(&SLOT_MEMORY) as u64]
}

/// The addresses of the whole program.
#[cfg(target_os = "none")]
pub(crate) fn image() -> Range<u64> {
    unsafe extern "C" {
        static __program_start: u8;
        static __program_end: u8;
    }
    // The linker script defines both symbols; only their addresses have a meaning.
    (&raw const __program_start) as u64..(&raw const __program_end) as u64
}

/// The parts of the program that attackers may read but not write.
pub(crate) fn own() -> [Range<u64>; 4] {
    let [stacks, records] = writable();
    let mut others = [pool(), stacks, records];
    others.sort_unstable_by_key(|range| range.start);
    let [first, second, third] = others;
    let end = image().end.next_multiple_of(4096);
    [image().start..first.start, first.end..second.start, second.end..third.start, third.end..end]
}

/// The addresses of the program's code, which comes first, in whole pages.
#[cfg(target_os = "none")]
pub(crate) fn code() -> Range<u64> {
    unsafe extern "C" {
        static __text_end: u8;
    }
    // The linker script defines the symbol; only its address has a meaning.
    image().start..((&raw const __text_end) as u64).next_multiple_of(4096)
}

/// The addresses in host builds, where the program is only checked.
#[cfg(not(target_os = "none"))]
pub(crate) fn image() -> Range<u64> {
    0..0
}

#[cfg(not(target_os = "none"))]
pub(crate) fn code() -> Range<u64> {
    0..0
}

/// The area of the kernel interface page, which is the same in all spaces.
pub(crate) fn kip_area() -> Fpage {
    Fpage::memory(kip().base(), x2::kip::SIZE_LOG2)
}
