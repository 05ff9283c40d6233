//! Regions: what was mapped where, and how.

use super::PAGE;
use crate::exec::elf::Rights;
use crate::file::OpenFile;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

/// What a region shows.
#[derive(Clone)]
pub enum RegionKind {
    /// Private zeros.
    Zeros,
    /// Zeros that are shared with others who inherited them.
    SharedZeros,
    /// The heap (brk).
    Heap,
    /// The first thread's stack.
    Stack,
    /// A file from this offset on.
    File {
        /// The file.
        file: Arc<OpenFile>,
        /// Offset of the region's first byte.
        offset: u64,
    },
}

/// A range that was mapped in one way.
#[derive(Clone)]
pub struct Region {
    /// Its addresses.
    pub range: Range<u64>,
    /// Rights of its pages.
    pub rights: Rights,
    /// Whether it may be made writable.
    pub may_write: bool,
    /// Whether writes are seen by others.
    pub shared: bool,
    /// Whether it grows downwards.
    pub grows_down: bool,
    /// Whether its pages stay in memory (mlock).
    pub locked: bool,
    /// Whether a child gets it (not after MADV_DONTFORK).
    pub forked: bool,
    /// What it shows.
    pub kind: RegionKind,
}

impl Region {
    /// Private zeros.
    pub(super) fn zeros(range: Range<u64>, rights: Rights) -> Region {
        Region {
            range,
            rights,
            may_write: true,
            shared: false,
            grows_down: false,
            locked: false,
            forked: true,
            kind: RegionKind::Zeros,
        }
    }

    /// Bytes.
    pub fn length(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Cuts it at `address`, which lies inside; returns the upper part.
    fn cut(&mut self, address: u64) -> Region {
        let mut upper = self.clone();
        if let RegionKind::File { offset, .. } = &mut upper.kind {
            *offset += address - self.range.start;
        }
        upper.range.start = address;
        // Only the lowest part can grow.
        upper.grows_down = false;
        self.range.end = address;
        upper
    }

    fn continues_in(&self, next: &Region) -> bool {
        let same_kind = match (&self.kind, &next.kind) {
            (RegionKind::Zeros, RegionKind::Zeros)
            | (RegionKind::Heap, RegionKind::Heap)
            | (RegionKind::Stack, RegionKind::Stack) => true,
            (RegionKind::File { file: a, offset: x }, RegionKind::File { file: b, offset: y }) => {
                Arc::ptr_eq(a, b) && x + self.length() == *y
            }
            _ => false,
        };
        same_kind
            && self.range.end == next.range.start
            && self.rights == next.rights
            && (self.may_write, self.shared, self.locked, self.forked)
                == (next.may_write, next.shared, next.locked, next.forked)
            && !next.grows_down
    }
}

/// Bytes mapped, by what limits count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// All.
    pub total: u64,
    /// Private and writable, stacks apart.
    pub data: u64,
    /// Stacks.
    pub stack: u64,
    /// Executable.
    pub code: u64,
    /// Locked in memory.
    pub locked: u64,
    /// Shared.
    pub shared: u64,
}

/// The regions of an address space; none overlap.
pub(super) struct Regions {
    by_start: BTreeMap<u64, Region>,
    /// New mappings go below this.
    pub(super) mapping_top: u64,
    pub(super) break_start: u64,
    pub(super) break_end: u64,
    /// New mappings are locked (MCL_FUTURE).
    locks_new: bool,
}

impl Regions {
    pub(super) fn new(mapping_top: u64) -> Regions {
        Regions { by_start: BTreeMap::new(), mapping_top, break_start: 0, break_end: 0, locks_new: false }
    }

    /// What a child has after fork: locks are not inherited.
    pub(super) fn for_child(&self) -> Regions {
        let inherited = self.by_start.values().filter(|region| region.forked);
        let by_start = inherited.map(|r| (r.range.start, Region { locked: false, ..r.clone() })).collect();
        Regions { by_start, locks_new: false, ..*self }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Region> {
        self.by_start.values()
    }

    pub(super) fn lock_future(&self) -> bool {
        self.locks_new
    }

    pub(super) fn set_lock_future(&mut self, locks: bool) {
        self.locks_new = locks;
    }

    /// The region that contains `address`.
    pub(super) fn at(&self, address: u64) -> Option<&Region> {
        let (_, region) = self.by_start.range(..=address).next_back()?;
        (region.range.end > address).then_some(region)
    }

    /// The regions that touch `range`.
    pub(super) fn touching(&self, range: Range<u64>) -> impl Iterator<Item = &Region> {
        let start = self.at(range.start).map_or(range.start, |region| region.range.start);
        self.by_start.range(start..range.end.max(start)).map(|(_, region)| region)
    }

    /// Bytes of `range` that are mapped.
    pub(super) fn bytes_in(&self, range: Range<u64>) -> u64 {
        let part = |r: &Region| r.range.end.min(range.end) - r.range.start.max(range.start);
        self.touching(range.clone()).map(part).sum()
    }

    /// Whether all of `range` is mapped.
    pub(super) fn covers(&self, range: Range<u64>) -> bool {
        self.bytes_in(range.clone()) == range.end - range.start
    }

    fn cut(&mut self, address: u64) {
        let start = self.at(address).map(|region| region.range.start).filter(|start| *start < address);
        if let Some(region) = start.and_then(|start| self.by_start.get_mut(&start)) {
            let upper = region.cut(address);
            self.by_start.insert(address, upper);
        }
    }

    /// Takes what lies in `range` out.
    pub(super) fn remove(&mut self, range: Range<u64>) -> Vec<Region> {
        self.cut(range.start);
        self.cut(range.end);
        let starts: Vec<u64> = self.by_start.range(range).map(|(start, _)| *start).collect();
        starts.into_iter().filter_map(|start| self.by_start.remove(&start)).collect()
    }

    /// Puts a region in place of whatever is in its range.
    pub(super) fn replace(&mut self, region: Region) {
        let range = region.range.clone();
        self.remove(range.clone());
        self.by_start.insert(range.start, region);
        self.join(range);
    }

    /// Changes the regions in `range`, which are cut at its ends.
    pub(super) fn update(&mut self, range: Range<u64>, mut change: impl FnMut(&mut Region)) {
        self.cut(range.start);
        self.cut(range.end);
        self.by_start.range_mut(range.clone()).for_each(|(_, region)| change(region));
        self.join(range);
    }

    /// Joins neighbours in and around `range` that could be one.
    fn join(&mut self, range: Range<u64>) {
        let from = self.at(range.start.saturating_sub(1)).map_or(range.start, |region| region.range.start);
        let mut starts: Vec<u64> = self.by_start.range(from..=range.end).map(|(start, _)| *start).collect();
        starts.reverse();
        for pair in starts.windows(2) {
            let (upper, lower) = (pair[0], pair[1]);
            let joins = match (self.by_start.get(&lower), self.by_start.get(&upper)) {
                (Some(a), Some(b)) => a.continues_in(b),
                _ => false,
            };
            if joins
                && let Some(end) = self.by_start.remove(&upper).map(|region| region.range.end)
                && let Some(region) = self.by_start.get_mut(&lower)
            {
                region.range.end = end;
            }
        }
    }

    /// The range of the growing region that is next above `address`.
    pub(super) fn stack_above(&self, address: u64) -> Option<Range<u64>> {
        let (_, region) = self.by_start.range(address..).next()?;
        region.grows_down.then(|| region.range.clone())
    }

    /// The end of the region below `address`; 0 if there is none.
    pub(super) fn end_before(&self, address: u64) -> u64 {
        self.by_start.range(..address).next_back().map_or(0, |(_, region)| region.range.end)
    }

    /// Moves the start of the region at `old` down to `new`.
    pub(super) fn extend_down(&mut self, old: u64, new: u64) {
        if let Some(mut region) = self.by_start.remove(&old) {
            region.range.start = new;
            self.by_start.insert(new, region);
        }
    }

    /// How often regions meet in `range`, roughly: how many there are.
    pub(super) fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        for region in self.by_start.values() {
            let length = region.length();
            let is_stack = region.grows_down || matches!(region.kind, RegionKind::Stack);
            usage.total += length;
            usage.stack += if is_stack { length } else { 0 };
            usage.data += if region.rights.write && !region.shared && !is_stack { length } else { 0 };
            usage.code += if region.rights.execute && !region.rights.write { length } else { 0 };
            usage.locked += if region.locked { length } else { 0 };
            usage.shared += if region.shared { length } else { 0 };
        }
        debug_assert!(usage.total.is_multiple_of(PAGE));
        usage
    }
}
