//! Hints: copies of the map entries that were used last, by which a page is found without a look-up
//! in the map.

use alloc::sync::Weak;

use super::super::object::VmObject;
use crate::machine::{Machine, PAGE_SHIFT, Protection};

/// A copy of the values of a map entry that a page fault needs.
pub(super) struct Hint<M: Machine> {
    pub(super) start: u64,
    pub(super) end: u64,
    /// A weak reference: a hint neither keeps the object alive nor counts as a user of it.
    pub(super) object: Weak<VmObject<M>>,
    pub(super) offset: u64,
    pub(super) protection: Protection,
    pub(super) needs_copy: bool,
    pub(super) wired: bool,
    pub(super) cluster: u64,
    /// Whether large pages should be used.
    pub(super) large: bool,
}

impl<M: Machine> Hint<M> {
    /// Whether an address lies in the entry.
    #[inline(always)]
    pub(super) fn contains(&self, address: u64) -> bool {
        self.start <= address && address < self.end
    }

    /// Whether the entry contains `address`, and allows the access without a change.
    #[inline(always)]
    fn serves(&self, address: u64, access: Protection) -> bool {
        self.contains(address)
            && self.protection.contains(access)
            && !(self.needs_copy && access.contains(Protection::WRITE))
    }

    /// Whether a part of the entry lies in this range.
    fn overlaps(&self, start: u64, end: u64) -> bool {
        self.start < end && start < self.end
    }

    /// The number of the page at `address`, which lies in the entry, in the object.
    pub(super) fn index(&self, address: u64) -> u64 {
        (self.offset + (address - self.start)) >> PAGE_SHIFT
    }

    /// Whether the large page of `size` bytes around `address` lies in the entry, at the same
    /// alignment in the object.
    pub(super) fn large_page_fits(&self, address: u64, size: u64) -> bool {
        let first = address & !(size - 1);
        first >= self.start
            && first.checked_add(size).is_some_and(|end| end <= self.end)
            && (self.offset + (first - self.start)).is_multiple_of(size)
    }
}

/// The hints of a map, which are forgotten before the map changes: of the entry that was looked up
/// last, and of another one before. Many system calls refer to two entries in turn, such as a path
/// among a program's constants and a structure on its stack.
pub(super) struct Hints<M: Machine> {
    last: Option<Hint<M>>,
    /// The last hint describes the cached entry ([`super::cached`]), and must not be used now.
    last_is_cached: bool,
    earlier: Option<Hint<M>>,
}

impl<M: Machine> Hints<M> {
    pub(super) fn new() -> Self {
        Self { last: None, last_is_cached: false, earlier: None }
    }

    /// A hint of the entry at `address`, if the entry allows the access without a change.
    #[inline(always)]
    pub(super) fn find(&self, address: u64, access: Protection) -> Option<&Hint<M>> {
        match &self.last {
            Some(hint) if !self.last_is_cached && hint.serves(address, access) => Some(hint),
            _ => self.find_earlier(address, access),
        }
    }

    /// A function of its own: without its code, page faults of the entry that was looked up last
    /// take fewer instructions.
    #[inline(never)]
    fn find_earlier(&self, address: u64, access: Protection) -> Option<&Hint<M>> {
        self.earlier.as_ref().filter(|hint| hint.serves(address, access))
    }

    /// Adds the hint of an entry that was looked up. A hint of the same entry is forgotten, because
    /// the look-up may have changed the entry.
    pub(super) fn add(&mut self, hint: Hint<M>) {
        if let Some(last) = self.last.take_if(|_| !self.last_is_cached) {
            self.earlier = Some(last);
        }
        self.earlier.take_if(|earlier| earlier.overlaps(hint.start, hint.end));
        (self.last, self.last_is_cached) = (Some(hint), false);
    }

    /// The hint that was added last, if none was forgotten since.
    pub(super) fn last(&self) -> Option<&Hint<M>> {
        self.last.as_ref()
    }

    /// Forgets all hints, before the map changes.
    pub(super) fn forget(&mut self) {
        (self.last, self.earlier) = (None, None);
    }

    /// To be called when the entry of this range becomes the cached one. Its hint is kept if it was
    /// added last, and is not used before [`Hints::take_up`]. Hints of other entries stay.
    pub(super) fn cache(&mut self, start: u64, end: u64) {
        match &self.last {
            Some(last) if (last.start, last.end) == (start, end) => self.last_is_cached = true,
            _ => {
                self.last.take_if(|hint| hint.overlaps(start, end));
                self.earlier.take_if(|hint| hint.overlaps(start, end));
            }
        }
    }

    /// To be called when the cached entry is put back into the map.
    pub(super) fn take_up(&mut self) {
        self.last_is_cached = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::simulated::Simulated;

    const READ: Protection = Protection::READ;

    fn hint(start: u64, end: u64, needs_copy: bool) -> Hint<Simulated> {
        Hint {
            start,
            end,
            object: Weak::new(),
            offset: 0,
            protection: Protection::DEFAULT,
            needs_copy,
            wired: false,
            cluster: 1,
            large: false,
        }
    }

    fn found(hints: &Hints<Simulated>, addresses: [u64; 3]) -> [bool; 3] {
        addresses.map(|address| hints.find(address, READ).is_some())
    }

    #[test]
    fn the_two_entries_that_were_looked_up_last_are_found() {
        let mut hints = Hints::new();
        assert_eq!(found(&hints, [0x1000, 0x3000, 0x5000]), [false; 3]);
        hints.add(hint(0x1000, 0x2000, false));
        hints.add(hint(0x3000, 0x4000, false));
        assert_eq!(found(&hints, [0x1000, 0x3fff, 0x4000]), [true, true, false]);
        hints.add(hint(0x5000, 0x6000, false));
        assert_eq!(found(&hints, [0x1000, 0x3000, 0x5000]), [false, true, true]);
        hints.forget();
        assert_eq!(found(&hints, [0x1000, 0x3000, 0x5000]), [false; 3]);
    }

    #[test]
    fn a_hint_of_an_entry_before_its_copy_is_not_found_any_more() {
        let mut hints = Hints::new();
        hints.add(hint(0x1000, 0x2000, true));
        assert!(hints.find(0x1000, Protection::DEFAULT).is_none());
        hints.add(hint(0x1000, 0x2000, false));
        assert!(hints.find(0x1000, READ).is_some_and(|hint| !hint.needs_copy));
        hints.add(hint(0x1000, 0x2000, true));
        hints.add(hint(0x3000, 0x4000, false));
        hints.add(hint(0x1000, 0x2000, false));
        hints.add(hint(0x5000, 0x6000, false));
        assert!(hints.find(0x1000, READ).is_some_and(|hint| !hint.needs_copy));
    }

    #[test]
    fn the_hint_of_the_cached_entry_is_found_after_it_is_taken_up() {
        let mut hints = Hints::new();
        hints.add(hint(0x1000, 0x2000, false));
        hints.add(hint(0x3000, 0x4000, false));
        hints.cache(0x3000, 0x4000);
        assert_eq!(found(&hints, [0x1000, 0x3000, 0x5000]), [true, false, false]);
        hints.take_up();
        assert_eq!(found(&hints, [0x1000, 0x3000, 0x5000]), [true, true, false]);
        hints.cache(0x3000, 0x4000);
        hints.add(hint(0x5000, 0x6000, false));
        assert_eq!(found(&hints, [0x1000, 0x3000, 0x5000]), [true, false, true]);
        // The earlier entry is cached, or one without a hint: only its own hint is forgotten.
        hints.cache(0x1000, 0x2000);
        assert_eq!(found(&hints, [0x1000, 0x3000, 0x5000]), [false, false, true]);
        hints.cache(0x7000, 0x8000);
        assert_eq!(found(&hints, [0x5000, 0x5fff, 0x7000]), [true, true, false]);
    }
}
