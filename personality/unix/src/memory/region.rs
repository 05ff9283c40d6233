//! Regions: ranges of addresses, each of which was mapped in one way.

use super::PAGE;
use crate::account::{Account, Charge};
use crate::exec::Rights;
use crate::file::OpenFile;
use crate::vfs::Seals;
use crate::{Error, Result};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::ops::{AddAssign, Range, SubAssign};

/// The kind of memory that a region shows.
#[derive(Clone)]
pub enum RegionKind {
    /// Zeros that are private to the process.
    Zeros,
    /// Zeros that are shared with processes that inherited them.
    SharedZeros,
    /// The heap of the process (brk(2)).
    Heap,
    /// The stack of the first thread.
    Stack,
    /// The contents of a file, from an offset on.
    File {
        /// The file that is mapped.
        file: Arc<OpenFile>,
        /// Offset in the file of the region's first byte.
        offset: u64,
    },
}

/// A range of addresses that was mapped in one way.
#[derive(Clone)]
pub struct Region {
    /// The addresses of the region.
    pub range: Range<u64>,
    /// Access rights of the region's pages.
    pub rights: Rights,
    /// The most rights that mprotect(2) may give the region's pages. Mach's map enforces it.
    pub limit: Rights,
    /// Whether other processes that map the file see what is written.
    pub shared: bool,
    /// Whether the region grows downwards.
    pub grows_down: bool,
    /// Whether the region's pages stay in memory (mlock).
    pub locked: bool,
    /// Whether fork copies the region to the child (not after MADV_DONTFORK).
    pub forked: bool,
    /// The kind of memory that the region shows.
    pub kind: RegionKind,
}

impl AddAssign for Usage {
    fn add_assign(&mut self, more: Usage) {
        self.total += more.total;
        self.data += more.data;
        self.stack += more.stack;
        self.code += more.code;
        self.locked += more.locked;
        self.shared += more.shared;
    }
}

impl SubAssign for Usage {
    fn sub_assign(&mut self, less: Usage) {
        self.total -= less.total;
        self.data -= less.data;
        self.stack -= less.stack;
        self.code -= less.code;
        self.locked -= less.locked;
        self.shared -= less.shared;
    }
}

impl Region {
    /// The bytes of this region, for the sums in [`Usage`].
    fn usage(&self) -> Usage {
        let length = self.length();
        debug_assert!(length.is_multiple_of(PAGE));
        let if_so = |holds: bool| if holds { length } else { 0 };
        let is_stack = self.grows_down || matches!(self.kind, RegionKind::Stack);
        Usage {
            total: length,
            data: if_so(self.rights.write && !self.shared && !is_stack),
            stack: if_so(is_stack),
            code: if_so(self.rights.execute && !self.rights.write),
            locked: if_so(self.locked),
            shared: if_so(self.shared),
        }
    }

    /// A region of private zeros.
    pub(super) fn zeros(range: Range<u64>, rights: Rights) -> Region {
        Region {
            range,
            rights,
            limit: Rights::ALL,
            shared: false,
            grows_down: false,
            locked: false,
            forked: true,
            kind: RegionKind::Zeros,
        }
    }

    /// The length of the region in bytes.
    pub fn length(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Cuts the region at `address`, which lies inside; returns the upper part.
    fn cut(&mut self, address: u64) -> Region {
        let mut upper = self.clone();
        if let RegionKind::File { offset, .. } = &mut upper.kind {
            *offset += address - self.range.start;
        }
        upper.range.start = address;
        // Only the lowest part of a split region can grow downwards.
        upper.grows_down = false;
        self.range.end = address;
        upper
    }

    /// The seals of the file that may be written through this region.
    fn writable_seals(&self) -> Option<&Seals> {
        match &self.kind {
            RegionKind::File { file, .. } if self.shared && self.limit.write => file.seals(),
            _ => None,
        }
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
            && (self.limit, self.shared, self.locked, self.forked)
                == (next.limit, next.shared, next.locked, next.forked)
            && !next.grows_down
    }
}

/// Bytes that are mapped, in the sums that limits and front ends need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of all mappings.
    pub total: u64,
    /// Bytes of private writable mappings, without stacks.
    pub data: u64,
    /// Bytes of stacks.
    pub stack: u64,
    /// Bytes of executable mappings.
    pub code: u64,
    /// Bytes that are locked in memory.
    pub locked: u64,
    /// Bytes of shared mappings.
    pub shared: u64,
}

/// About how many regions an address space may have. There is a limit because each region takes
/// some of the server's memory.
pub const REGIONS_MAXIMUM: usize = 65530;
/// Bytes that a region takes, here and in Mach's map.
const REGION_BYTES: u64 = 512;
const CHARGED_TOGETHER: usize = 64;

/// The bytes that are charged for `regions` regions.
fn charged(regions: usize) -> u64 {
    (regions + 1).next_multiple_of(CHARGED_TOGETHER) as u64 * REGION_BYTES
}

/// The regions of an address space; none overlap.
pub(super) struct Regions {
    /// The regions by their first addresses. Only `put`, `take` and `change` change them, and keep
    /// the sums.
    by_start: BTreeMap<u64, Region>,
    usage: Usage,
    /// The charge for the regions, to the account of the user that began the program.
    charge: Charge,
    /// New mappings are placed below this address.
    pub(super) mapping_top: u64,
    pub(super) break_start: u64,
    pub(super) break_end: u64,
    /// Whether new mappings are locked (MCL_FUTURE).
    locks_new: bool,
}

impl Regions {
    /// Makes an empty table of regions. `ENOMEM` if the user has too much of the server's memory.
    pub(super) fn new(mapping_top: u64, account: &Arc<Account>) -> Result<Regions> {
        Ok(Regions {
            by_start: BTreeMap::new(),
            usage: Usage::default(),
            charge: account.charge_memory(charged(0)).ok_or(Error::ENOMEM)?,
            mapping_top,
            break_start: 0,
            break_end: 0,
            locks_new: false,
        })
    }

    /// The regions that a child of this user has after fork: memory locks are not inherited.
    /// `ENOMEM` if the user has too much of the server's memory.
    pub(super) fn for_child(&self, account: &Arc<Account>) -> Result<Regions> {
        let mut child = Regions::new(self.mapping_top, account)?;
        child.break_start = self.break_start;
        child.break_end = self.break_end;
        if !account.has_memory(charged(self.by_start.len())) {
            return Err(Error::ENOMEM);
        }
        for region in self.by_start.values().filter(|region| region.forked) {
            child.put(Region { locked: false, ..region.clone() });
        }
        Ok(child)
    }

    /// Charges the regions that there are now. This cannot fail: `check_room`, `check_cuts` or
    /// `check_hole` have checked for more before.
    fn update_charge(&mut self) {
        let bytes = charged(self.by_start.len());
        if bytes != self.charge.amount() {
            self.charge.change(bytes, |_| true);
        }
    }

    /// Whether the user's account allows more memory.
    fn has_memory(&self) -> bool {
        self.charge.account().has_memory(charged(0))
    }

    /// How many more regions may be made with what is charged already.
    fn room(&self) -> usize {
        match self.has_memory() {
            true => REGIONS_MAXIMUM.saturating_sub(self.by_start.len()),
            false => 0,
        }
    }

    fn put(&mut self, region: Region) {
        self.usage += region.usage();
        if let Some(seals) = region.writable_seals() {
            seals.copy_mapping();
        }
        self.by_start.insert(region.range.start, region);
        self.update_charge();
    }

    fn take(&mut self, start: u64) -> Option<Region> {
        let region = self.by_start.remove(&start)?;
        self.usage -= region.usage();
        if let Some(seals) = region.writable_seals() {
            seals.end_mapping();
        }
        self.update_charge();
        Some(region)
    }

    /// Changes the region that starts at `start`, but not its start.
    fn change<R>(&mut self, start: u64, change: impl FnOnce(&mut Region) -> R) -> Option<R> {
        let region = self.by_start.get_mut(&start)?;
        self.usage -= region.usage();
        let result = change(region);
        self.usage += region.usage();
        Some(result)
    }

    /// Checks that one more region may be made. `ENOMEM`.
    pub(super) fn check_room(&self) -> Result<()> {
        // The check comes before the region is made, so the table may get one region more than the
        // maximum.
        let fits = self.by_start.len() <= REGIONS_MAXIMUM && self.has_memory();
        if fits { Ok(()) } else { Err(Error::ENOMEM) }
    }

    /// Cuts regions at the ends of `range`. `ENOMEM` if that would make too many; if there is room
    /// for one of two cuts, that one is made.
    pub(super) fn check_cuts(&mut self, range: &Range<u64>) -> Result<()> {
        let is_inside = |address: u64| self.at(address).is_some_and(|region| region.range.start < address);
        let cuts = usize::from(is_inside(range.start)) + usize::from(is_inside(range.end));
        let room = self.room();
        if cuts <= room {
            return Ok(());
        }
        if room > 0 {
            self.cut(range.start);
        }
        Err(Error::ENOMEM)
    }

    /// Checks that `range` may be taken out of the regions. `ENOMEM` if that would cut a region in
    /// two and make too many.
    pub(super) fn check_hole(&self, range: &Range<u64>) -> Result<()> {
        let inside = self
            .at(range.start)
            .is_some_and(|region| region.range.start < range.start && range.end < region.range.end);
        if inside && self.room() == 0 { Err(Error::ENOMEM) } else { Ok(()) }
    }

    /// The regions that begin at `address` or above.
    pub(super) fn from(&self, address: u64) -> impl Iterator<Item = &Region> {
        self.by_start.range(address..).map(|(_, region)| region)
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

    /// The first region that touches `range`, for callers that go from one region to the next and
    /// change each.
    pub(super) fn first_touching(&self, range: Range<u64>) -> Option<Region> {
        self.touching(range).next().cloned()
    }

    /// How many bytes of `range` are mapped.
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
        if let Some(upper) = start.and_then(|start| self.change(start, |region| region.cut(address))) {
            self.put(upper);
        }
    }

    /// Removes the regions in `range`. There may be tens of thousands, so here and below no list of
    /// them is made.
    pub(super) fn remove(&mut self, range: Range<u64>) {
        self.cut(range.start);
        self.cut(range.end);
        while let Some(start) = self.first_start(range.clone()) {
            drop(self.take(start));
        }
    }

    fn first_start(&self, range: Range<u64>) -> Option<u64> {
        self.by_start.range(range).next().map(|(start, _)| *start)
    }

    /// Puts a region in place of whatever is in its range.
    pub(super) fn replace(&mut self, region: Region) {
        let range = region.range.clone();
        self.remove(range.clone());
        self.put(region);
        self.join(range);
    }

    /// Changes the regions in `range` with `change`. They are cut at the ends of the range first.
    pub(super) fn update(&mut self, range: Range<u64>, mut change: impl FnMut(&mut Region)) {
        self.cut(range.start);
        self.cut(range.end);
        for (_, region) in self.by_start.range_mut(range.clone()) {
            self.usage -= region.usage();
            change(region);
            self.usage += region.usage();
        }
        self.join(range);
    }

    /// Joins neighbours in and around `range` that differ only in their addresses.
    fn join(&mut self, range: Range<u64>) {
        let from = self.at(range.start.saturating_sub(1)).map_or(range.start, |region| region.range.start);
        let mut next = self.by_start.range(from..=range.end).next_back().map(|(start, _)| *start);
        while let Some(upper) = next {
            next = self.by_start.range(from..upper).next_back().map(|(start, _)| *start);
            let Some(lower) = next else { break };
            let joins = match (self.by_start.get(&lower), self.by_start.get(&upper)) {
                (Some(a), Some(b)) => a.continues_in(b),
                _ => false,
            };
            if joins && let Some(end) = self.take(upper).map(|region| region.range.end) {
                self.change(lower, |region| region.range.end = end);
            }
        }
    }

    /// The range of the next region above `address`, if that grows downwards.
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
        if let Some(mut region) = self.take(old) {
            region.range.start = new;
            self.put(region);
        }
    }

    /// Bytes that are mapped, in the sums that limits and front ends need.
    pub(super) fn usage(&self) -> Usage {
        self.usage
    }
}

impl Drop for Regions {
    fn drop(&mut self) {
        self.by_start.values().filter_map(Region::writable_seals).for_each(Seals::end_mapping);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{Kept, Settings};
    use crate::testing::account;
    use proptest::prelude::*;

    const WRITE: Rights = Rights { read: true, write: true, execute: false };
    const RUN: Rights = Rights { read: true, write: false, execute: true };

    #[derive(Clone, Debug)]
    enum Step {
        Map(Range<u64>, bool, bool),
        Unmap(Range<u64>),
        Lock(Range<u64>, bool),
        Protect(Range<u64>, bool),
    }

    fn range() -> impl Strategy<Value = Range<u64>> {
        (1u64..60, 1u64..12).prop_map(|(first, count)| first * PAGE..(first + count) * PAGE)
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (range(), any::<bool>(), any::<bool>()).prop_map(|(range, a, b)| Step::Map(range, a, b)),
            range().prop_map(Step::Unmap),
            (range(), any::<bool>()).prop_map(|(range, lock)| Step::Lock(range, lock)),
            (range(), any::<bool>()).prop_map(|(range, write)| Step::Protect(range, write)),
        ]
    }

    #[test]
    fn the_regions_of_a_user_are_limited_together() {
        let user = Account::new(1000, Settings::new(2 * (charged(0) + 2 * charged(64))));
        let mut regions = Regions::new(1 << 40, &user).unwrap();
        for page in (0..).step_by(2).take(64) {
            regions.check_room().unwrap();
            regions.replace(Region::zeros(page * PAGE..(page + 1) * PAGE, WRITE));
        }
        let child = regions.for_child(&user).unwrap();
        assert!(regions.for_child(&user).is_err(), "there is room for two like this");
        assert_eq!(user.amount(Kept::ServerMemory), 2 * charged(64));
        drop(child);
        regions.remove(0..1 << 40);
        assert_eq!(user.amount(Kept::ServerMemory), charged(0));
        let other = Regions::new(1 << 40, &user).unwrap();
        let _rest = user.charge_memory(3 * charged(0)).unwrap();
        assert_eq!((regions.check_room(), regions.room()), (Err(Error::ENOMEM), 0));
        drop(other);
        assert_eq!(regions.check_room(), Ok(()));
    }

    proptest! {
        /// The sums that are kept are those of all regions, and neighbours that could be one region
        /// are joined.
        #[test]
        fn the_usage_is_the_sum_of_the_regions(steps in prop::collection::vec(step(), 1..60)) {
            let mut regions = Regions::new(1 << 40, &account()).unwrap();
            for step in steps {
                match step {
                    Step::Map(range, shared, grows_down) => {
                        let region = Region::zeros(range, WRITE);
                        regions.replace(Region { shared, grows_down: grows_down && !shared, ..region });
                    }
                    Step::Unmap(range) => regions.remove(range),
                    Step::Lock(range, lock) => regions.update(range, |region| region.locked = lock),
                    Step::Protect(range, write) => {
                        regions.update(range, |region| region.rights = if write { WRITE } else { RUN });
                    }
                }
                let mut sum = Usage::default();
                regions.from(0).for_each(|region| sum += region.usage());
                prop_assert_eq!(regions.usage(), sum);
                let child = regions.for_child(&account()).unwrap();
                prop_assert_eq!(child.usage().total, sum.total);
                prop_assert_eq!(child.usage().locked, 0);
                let list: Vec<Region> = regions.from(0).cloned().collect();
                prop_assert!(list.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start));
            }
        }
    }
}
