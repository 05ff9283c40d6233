//! Memory types: how processors cache physical memory (X.2 rules 9.1 to 9.4).
//!
//! A type belongs to the memory, not to a mapping of it: two mappings of one page with different
//! types are not allowed on this machine. So MemoryControl by any holder of a page changes the
//! entries of all holders, and the type is kept for mappings to come: an entry that is derived from
//! another one takes its type over, and for sigma0, which has no entries for what it gives away,
//! there is a list of the ranges whose type is not the usual one.
use core::pin::Pin;
use core::sync::atomic::{AtomicUsize, Ordering};

use x2::Region;

use super::cursor::{Cursor, Progress};
use super::space::SpaceMemory;
use super::table;
use super::tree::{self, TREE_LEVEL};
use super::turn::{LONG_STEP, SIGMA0_PAGE, Turn};
use super::unmap::to_boundary;
use crate::arch;
use crate::arch::page_entry::{MemoryType, page_bits};
use crate::memory::{OutOfMemory, PhysAddr, VirtAddr};
use crate::sync::SpinLock;

/// How many ranges can have an unusual type. Only privileged programs ask for them.
const RANGES: usize = 64;

#[derive(Clone, Copy)]
struct Range {
    first: u64,
    last: u64,
    memory_type: MemoryType,
}

/// Ranges that do not overlap. Neighbours that could be one range are one.
struct List {
    ranges: [Range; RANGES],
    count: usize,
}

static LIST: SpinLock<List> = SpinLock::new(List {
    ranges: [Range { first: 0, last: 0, memory_type: MemoryType::USUAL }; RANGES],
    count: 0,
});
/// The number of ranges in the list, to be read without the lock.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Forgets everything: a new machine.
pub(super) fn init() {
    LIST.lock().count = 0;
    COUNT.store(0, Ordering::Relaxed);
}

/// The type of all of the 2^`bits` bytes at `start`; `None`: parts of it differ.
#[inline]
pub(super) fn of(start: PhysAddr, bits: u32) -> Option<MemoryType> {
    // Relaxed: types change by system calls of programs that know what they do.
    if COUNT.load(Ordering::Relaxed) == 0 { Some(MemoryType::USUAL) } else { find(start, bits) }
}

#[cold]
fn find(start: PhysAddr, bits: u32) -> Option<MemoryType> {
    let list = LIST.lock();
    let (first, last) = (start.value(), start.value() + ((1 << bits) - 1));
    let mut ranges = list.ranges[..list.count].iter();
    match ranges.find(|range| range.first <= last && first <= range.last) {
        None => Some(MemoryType::USUAL),
        Some(range) if range.first <= first && last <= range.last => Some(range.memory_type),
        Some(_) => None,
    }
}

impl List {
    /// Sets the type of a range. On failure nothing has changed.
    fn set(&mut self, first: u64, last: u64, memory_type: MemoryType) -> Result<(), OutOfMemory> {
        let mut new = Range { first, last, memory_type };
        let mut ranges = [new; RANGES + 2];
        let mut count = 0;
        let mut keep = |range: Range| {
            if range.first <= range.last && count < ranges.len() {
                ranges[count] = range;
                count += 1;
            }
        };
        for &range in &self.ranges[..self.count] {
            let same = range.memory_type == memory_type;
            let touches = range.first <= last.saturating_add(1) && first <= range.last.saturating_add(1);
            if same && touches {
                (new.first, new.last) = (new.first.min(range.first), new.last.max(range.last));
            } else if range.first <= last && first <= range.last {
                if range.first < first {
                    keep(Range { last: first - 1, ..range });
                }
                if range.last > last {
                    keep(Range { first: last + 1, ..range });
                }
            } else {
                keep(range);
            }
        }
        if memory_type != MemoryType::USUAL {
            keep(new);
        }
        if count > RANGES {
            return Err(OutOfMemory);
        }
        self.ranges[..count].copy_from_slice(&ranges[..count]);
        self.count = count;
        COUNT.store(count, Ordering::Relaxed);
        Ok(())
    }
}

/// Gives the memory that `space` has in `region` the type: in all spaces, now and for mappings to
/// come. Holes are skipped. A large page of another space that cannot be split for want of memory
/// changes as a whole. Preemption point.
///
/// [`OutOfMemory`]: too many ranges have types of their own; what was done stays.
pub(super) fn set_memory_type(
    cursor: Pin<&mut Cursor>,
    space: SpaceMemory,
    region: Region,
    memory_type: MemoryType,
) -> Progress<Result<(), OutOfMemory>> {
    let cursor = cursor.project();
    let mut turn = Turn::new();
    if cursor.is_walking() {
        match cursor.continue_walk(&mut turn) {
            None => return Progress::Preempted,
            Some(_) => block_done(cursor),
        }
    }
    let end = if space.is_sigma0() { super::ports::PORT_BASE } else { arch::USER_END };
    loop {
        let address = VirtAddr::new(region.base.saturating_add(cursor.offset));
        if address.value() > region.last() || address.value() >= end {
            return cursor.finish(Ok(()));
        }
        if cursor.looked_at == 0 && turn.gives_way(LONG_STEP) {
            return Progress::Preempted;
        }
        let left = region.last() - address.value();
        let (physical, bits) = match block_at(space, address, left) {
            Ok(block) => block,
            Err(hole) => {
                cursor.offset = cursor.offset.saturating_add(hole);
                continue;
            }
        };
        if of(physical, bits) != Some(memory_type) {
            // This is reached also if another call has set another type while this one gave way:
            // then all is to be done again.
            cursor.looked_at = 0;
            let last = physical.value() + ((1 << bits) - 1);
            if let Err(error) = LIST.lock().set(physical.value(), last, memory_type) {
                return cursor.finish(Err(error));
            }
        }
        if !forget_sigma0s_pages(cursor, physical, bits, &mut turn) {
            return Progress::Preempted;
        }
        cursor.advance = bits as u8;
        let _tree = tree::lock(physical);
        let root = tree::root(physical);
        let range = Region { base: physical.value(), size_log2: bits };
        if !root.is_none() && cursor.walk_for_type(root, range, memory_type, &mut turn).is_none() {
            return Progress::Preempted;
        }
        block_done(cursor);
    }
}

fn block_done(cursor: &mut Cursor) {
    cursor.offset += 1 << cursor.advance;
    cursor.looked_at = 0;
}

/// The largest naturally aligned block of physical memory that `space` has at `address`, within the
/// `left` bytes that follow. Else how far the hole there goes.
fn block_at(space: SpaceMemory, address: VirtAddr, left: u64) -> Result<(PhysAddr, u32), u64> {
    let fits = left.saturating_add(1).ilog2().min(address.value().trailing_zeros());
    if space.is_sigma0() {
        return Ok((PhysAddr::new(address.value()), fits.min(page_bits(TREE_LEVEL))));
    }
    let place = table::find(space, address, 1);
    let bits = page_bits(place.level);
    if !place.entry.is_page(place.level) || place.at.node().is_none() {
        return Err(to_boundary(address, bits));
    }
    let offset = address.value() & ((1 << bits) - 1);
    Ok((place.entry.address().align_down(bits).offset(offset), fits.min(bits)))
}

/// Removes sigma0's own pages that reach into a block of memory: it gets them again later, with
/// their type. Returns false if it was preempted meanwhile.
fn forget_sigma0s_pages(cursor: &mut Cursor, physical: PhysAddr, bits: u32, turn: &mut Turn) -> bool {
    let Some(sigma0) = SpaceMemory::sigma0() else { return true };
    let begin = cursor.looked_at;
    while cursor.looked_at < 1 << bits {
        let address = VirtAddr::new(physical.value() + cursor.looked_at);
        if address.value() >= arch::USER_END {
            return true;
        }
        if cursor.looked_at != begin && turn.gives_way(SIGMA0_PAGE) {
            return false;
        }
        let place = table::find(sigma0, address, 1);
        let next = to_boundary(address, page_bits(place.level));
        if place.entry.is_page(place.level)
            && place.at.node().is_none()
            && sigma0.area_in(Region::containing(address.value(), page_bits(1))).is_none()
        {
            place.at.remove(&mut turn.changes);
        }
        cursor.looked_at += next;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TYPES: [MemoryType; 3] = [MemoryType::USUAL, MemoryType::UNCACHEABLE, MemoryType::WRITE_COMBINING];

    proptest! {
        /// The list behaves like an array of types.
        #[test]
        fn behaves_like_an_array(changes in prop::collection::vec((0..60u64, 0..60u64, 0..3usize), 1..40)) {
            let _machine = crate::arch::Machine::new(1 << 20);
            init();
            let mut model = [MemoryType::USUAL; 64];
            for (one, other, which) in changes {
                let (first, last) = (one.min(other), one.max(other));
                LIST.lock().set(first, last, TYPES[which]).unwrap();
                model[first as usize..=last as usize].fill(TYPES[which]);
                for (bits, unit) in (0..4).flat_map(|bits| (0..64).step_by(1 << bits).map(move |unit| (bits, unit))) {
                    let block = &model[unit..unit + (1 << bits)];
                    let is_uniform = block.iter().all(|memory_type| *memory_type == block[0]);
                    let found = of(PhysAddr::new(unit as u64), bits);
                    prop_assert_eq!(found, is_uniform.then_some(block[0]), "{} units at {}", 1 << bits, unit);
                }
                let mut runs = 0;
                for unit in 0..64 {
                    let begins = unit == 0 || model[unit] != model[unit - 1];
                    runs += usize::from(begins && model[unit] != MemoryType::USUAL);
                }
                prop_assert_eq!(LIST.lock().count, runs, "no more ranges than needed");
            }
            init();
        }
    }

    #[test]
    fn a_full_list_changes_nothing() {
        let _machine = crate::arch::Machine::new(1 << 20);
        init();
        for range in 0..RANGES as u64 {
            LIST.lock().set(range * 100, range * 100 + 9, MemoryType::UNCACHEABLE).unwrap();
        }
        assert!(LIST.lock().set(50, 59, MemoryType::UNCACHEABLE).is_err());
        assert!(LIST.lock().set(105, 106, MemoryType::USUAL).is_err(), "a hole makes two of one");
        assert_eq!(of(PhysAddr::new(105), 0), Some(MemoryType::UNCACHEABLE));
        LIST.lock().set(100, 109, MemoryType::USUAL).unwrap();
        LIST.lock().set(50, 59, MemoryType::UNCACHEABLE).unwrap();
        init();
    }
}
