//! The attackers' threads and their memory. The program lies at the same addresses in every space.
//! Attackers can read it and execute its code. They can write only what is theirs: the records, the
//! stacks and the pool, which they can also execute.

use crate::kind::{COLUMNS, Kind};
use core::cell::UnsafeCell;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use l4::kip;
use x2::{Fpage, ThreadId};

/// Spaces of attackers. The third belongs to the first; the fourth's area is that of the spaces
/// that the controller makes.
pub(crate) const SPACES: u64 = 4;
/// Attackers that the supervisor makes in each of the first three.
pub(crate) const ATTACKERS: u64 = 8;
/// UTCBs in each area.
pub(crate) const UTCBS: u64 = 16;
/// How many thread numbers there are for attackers. The supervisor uses the lower ones, the
/// controller those from `FREE_NUMBERS` on.
pub(crate) const NUMBERS: u64 = 40;
/// Numbers left to the initial servers, the heartbeat and the controller.
const FIRST_NUMBER: u32 = 16;
/// Pages that calls name.
pub(crate) const POOL_PAGES: u64 = 64;
pub(crate) const POOL_LOG2: u32 = (POOL_PAGES * 4096).ilog2();
const _: () = assert!(align_of::<Memory<0>>() == 1 << POOL_LOG2);
pub(crate) const STACK: usize = 8192;
const SLOTS: usize = (SPACES * UTCBS) as usize;

/// The UTCB area of space `index`.
pub(crate) const fn utcb_area(index: u64) -> u64 {
    (8 + index) << 28
}

/// A thread number of an attacker, from 0, as an id.
pub(crate) fn attacker(index: u64, version: u32) -> ThreadId {
    let number = kip().thread_info().user_base + FIRST_NUMBER + index as u32;
    ThreadId::global(number, version).expect("the version makes a global id")
}

/// The heartbeat's id, and the controller's.
pub(crate) fn own_thread(index: u32) -> ThreadId {
    ThreadId::global(kip().thread_info().user_base + 8 + index, 1).expect("the version makes a global id")
}

/// What an attacker keeps outside its stack. The supervisor reads it and believes none of it: an
/// attacker may write anything here.
#[repr(C, align(4096))]
pub(crate) struct Slot {
    /// The state of the attacker's random numbers.
    pub(crate) state: AtomicU64,
    /// Calls begun, altogether and of each kind.
    calls: Count,
    begun: [Count; Kind::COUNT],
    /// Calls that came back, by what came back.
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

    /// The number of calls that the attacker has begun, since an attacker last wrote to the count.
    /// `None` while it changes.
    pub(crate) fn progress(&self) -> Option<u64> {
        self.calls.get()
    }

    /// The number of calls of this kind that the attacker has begun.
    pub(crate) fn begun(&self, kind: Kind) -> u64 {
        self.begun[kind as usize].get().unwrap_or(0)
    }

    /// Counts a call that begins.
    pub(crate) fn begin(&self, kind: Kind) {
        self.calls.add_one();
        self.begun[kind as usize].add_one();
    }

    /// Counts what has come of a call.
    pub(crate) fn end(&self, kind: Kind, column: usize) {
        self.results[kind as usize][column].add_one();
    }

    /// How often calls of this kind had the result of this column.
    pub(crate) fn result(&self, kind: Kind, column: usize) -> u64 {
        self.results[kind as usize][column].get().unwrap_or(0)
    }
}

/// A count in memory that attackers may write to, by any call that takes an address. What one of
/// them has written there is no count: it does not fit the check, and counting begins again.
struct Count {
    value: AtomicU64,
    check: AtomicU64,
}

impl Count {
    const fn new() -> Self {
        Self { value: AtomicU64::new(0), check: AtomicU64::new(0) }
    }

    /// The check word of `value`: it differs from that of another value, and from that of a count
    /// elsewhere that was copied here.
    fn check_of(&self, value: u64) -> u64 {
        (value ^ (&raw const *self) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// The count. `None`: the word is no count, or is being changed.
    fn get(&self) -> Option<u64> {
        // Relaxed, here and below: statistics, written by one thread each.
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

/// Aligned to the pool's size, so that no fpage up to that size which has one of its pages has
/// anything else.
#[repr(C, align(0x40000))]
pub(crate) struct Memory<const SIZE: usize>(UnsafeCell<[u8; SIZE]>);

// SAFETY: nothing forms a reference to the content.
unsafe impl<const SIZE: usize> Sync for Memory<SIZE> {}

static POOL: Memory<{ (POOL_PAGES * 4096) as usize }> = Memory(UnsafeCell::new([0; _]));
pub(crate) static STACKS: Memory<{ SLOTS * STACK }> = Memory(UnsafeCell::new([0; _]));
static SLOT_MEMORY: [Slot; SLOTS] = [const { Slot::new() }; SLOTS];
/// The controller's record, and the memory that its calls point to.
pub(crate) static CONTROLLER: Slot = Slot::new();

/// The attackers' records.
pub(crate) fn slots() -> &'static [Slot; SLOTS] {
    &SLOT_MEMORY
}

/// How many records there are: the attackers', and the controller's.
pub(crate) const RECORDS: usize = SLOTS + 1;

/// The number of the slot of the thread with this UTCB pointer.
pub(crate) fn slot_of(utcb: u64) -> usize {
    let (area, offset) = ((utcb >> 28).wrapping_sub(8) % SPACES, (utcb >> 10) % UTCBS);
    (area * UTCBS + offset) as usize
}

/// Where the stack of a slot begins.
pub(crate) fn stack_top(slot: usize) -> u64 {
    STACKS.0.get() as u64 + ((slot + 1) * STACK) as u64
}

/// A page of the pool in which calls of an attacker read and write extended state: its first, where
/// no map items are.
pub(crate) fn buffer() -> u64 {
    POOL.0.get() as u64
}

/// The addresses of the pool.
pub(crate) fn pool() -> Range<u64> {
    let base = POOL.0.get() as u64;
    base..base + POOL_PAGES * 4096
}

/// Where attackers may write but the pool: their stacks and their records.
pub(crate) fn writable() -> [Range<u64>; 2] {
    let stacks = STACKS.0.get() as u64;
    let records = (&raw const SLOT_MEMORY) as u64;
    [stacks..stacks + (SLOTS * STACK) as u64, records..records + size_of_val(&SLOT_MEMORY) as u64]
}

/// Addresses of the whole program.
#[cfg(target_os = "none")]
pub(crate) fn image() -> Range<u64> {
    unsafe extern "C" {
        static __program_start: u8;
        static __program_end: u8;
    }
    // The linker script defines both; only their addresses mean something.
    (&raw const __program_start) as u64..(&raw const __program_end) as u64
}

/// Pages of the program that attackers may at most read.
pub(crate) fn own() -> [Range<u64>; 4] {
    let [stacks, records] = writable();
    let mut others = [pool(), stacks, records];
    others.sort_unstable_by_key(|range| range.start);
    let [first, second, third] = others;
    let end = image().end.next_multiple_of(4096);
    [image().start..first.start, first.end..second.start, second.end..third.start, third.end..end]
}

/// Addresses of the program's code, which comes first: whole pages.
#[cfg(target_os = "none")]
pub(crate) fn code() -> Range<u64> {
    unsafe extern "C" {
        static __text_end: u8;
    }
    // The linker script defines it; only its address means something.
    image().start..((&raw const __text_end) as u64).next_multiple_of(4096)
}

/// On the host the program is only checked.
#[cfg(not(target_os = "none"))]
pub(crate) fn image() -> Range<u64> {
    0..0
}

#[cfg(not(target_os = "none"))]
pub(crate) fn code() -> Range<u64> {
    0..0
}

/// The kernel interface page's area, the same in all spaces.
pub(crate) fn kip_area() -> Fpage {
    Fpage::memory(kip().base(), x2::kip::SIZE_LOG2)
}
