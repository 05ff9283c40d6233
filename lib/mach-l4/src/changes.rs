//! Turns changes of a translation into MapControl items: as few items as possible, in as few system
//! calls as possible.

use l4::x2::extension::{MapItem, MapOperation};
use l4::x2::{Fpage, Rights};
use mach::machine::{PAGE_SHIFT, PhysicalPage, PmapChange, PmapFull, Protection};

/// The most pages in one item. An item could count somewhat more.
const MOST_PAGES: u64 = 1 << 30;

/// The largest page that an item can name, as a shift.
const LARGEST_SHIFT: u32 = 30;

/// The kernel's rights for a protection. Every page that can be accessed at all can be read,
/// because the processor has no other kind.
pub(crate) fn rights(protection: Protection) -> Rights {
    if protection.is_empty() {
        return Rights::NONE;
    }
    let mut rights = Rights::READ;
    if protection.contains(Protection::WRITE) {
        rights = rights.or(Rights::WRITE);
    }
    if protection.contains(Protection::EXECUTE) {
        rights = rights.or(Rights::EXECUTE);
    }
    rights
}

/// An item that concerns `pages` pages of the base size.
pub(crate) fn item(operation: MapOperation, address: u64, pages: u32, rights: Rights) -> MapItem {
    MapItem::new(operation, Fpage::memory(address, PAGE_SHIFT).with_rights(rights), pages, 0)
}

/// Makes `changes` in order, in batches of up to `N` items that `make` carries out; its error is
/// the index of the item that failed. `source` gives the address at which the server has a page; a
/// page that the server does not have cannot be entered.
#[inline]
pub(crate) fn carry_out<const N: usize>(
    changes: &[PmapChange],
    source: impl Fn(PhysicalPage) -> Option<u64>,
    make: impl FnMut(&mut [MapItem]) -> Result<(), usize>,
) -> Result<(), PmapFull> {
    let mut batch = Batch::<N, _> { items: [MapItem::default(); N], first: [0; N], count: 0, make };
    for (index, change) in changes.iter().enumerate() {
        match *change {
            PmapChange::Enter { address, page, shift, protection } if !protection.is_empty() => {
                let Some(source) = source(page) else {
                    batch.flush()?;
                    return Err(PmapFull { index });
                };
                let target = Fpage::memory(address, shift).with_rights(rights(protection));
                batch.add(index, MapItem::new(MapOperation::Map, target, 1, source))?;
            }
            PmapChange::Enter { address, shift, .. } => {
                batch.add_range(index, MapOperation::Unmap, address, 1 << shift, Rights::NONE)?;
            }
            PmapChange::Remove { address, length } => {
                batch.add_range(index, MapOperation::Unmap, address, length, Rights::NONE)?;
            }
            PmapChange::Protect { address, length, protection } => {
                batch.add_range(index, MapOperation::Protect, address, length, rights(protection))?;
            }
        }
    }
    batch.flush()
}

/// MapControl items that are collected for one system call.
struct Batch<const N: usize, F> {
    items: [MapItem; N],
    /// For each item, the index of the first change that it carries out.
    first: [usize; N],
    count: usize,
    make: F,
}

impl<const N: usize, F: FnMut(&mut [MapItem]) -> Result<(), usize>> Batch<N, F> {
    /// Adds items for a range of any length.
    fn add_range(
        &mut self,
        index: usize,
        operation: MapOperation,
        address: u64,
        length: u64,
        rights: Rights,
    ) -> Result<(), PmapFull> {
        // A range with more base pages than one item can count mostly consists of whole pages of
        // the largest size, so items of that size cover it.
        let shift =
            if length >> PAGE_SHIFT <= MOST_PAGES || !(address | length).is_multiple_of(1 << LARGEST_SHIFT) {
                PAGE_SHIFT
            } else {
                LARGEST_SHIFT
            };
        let (mut address, mut pages) = (address, length >> shift);
        while pages > 0 {
            let now = pages.min(MOST_PAGES);
            let target = Fpage::memory(address, shift).with_rights(rights);
            self.add(index, MapItem::new(operation, target, now as u32, 0))?;
            address += now << shift;
            pages -= now;
        }
        Ok(())
    }

    #[inline]
    fn add(&mut self, index: usize, item: MapItem) -> Result<(), PmapFull> {
        if self.count > 0 && join(&mut self.items[self.count - 1], &item) {
            return Ok(());
        }
        if self.count == N {
            self.flush()?;
        }
        self.items[self.count] = item;
        self.first[self.count] = index;
        self.count += 1;
        Ok(())
    }

    #[inline]
    fn flush(&mut self) -> Result<(), PmapFull> {
        let count = core::mem::take(&mut self.count);
        if count == 0 {
            return Ok(());
        }
        let Err(failed) = (self.make)(&mut self.items[..count]) else { return Ok(()) };
        let failed = failed.min(count - 1);
        // A part of the failed item may have been mapped. It is unmapped, for the change that
        // failed and those after it must have no effect.
        let item = self.items[failed];
        if item.operation() == MapOperation::Map {
            let target = Fpage::from_raw(item.target).with_rights(Rights::NONE);
            // Unmapping cannot fail.
            let _ = (self.make)(&mut [MapItem::new(MapOperation::Unmap, target, item.count(), 0)]);
        }
        Err(PmapFull { index: self.first[failed] })
    }
}

/// Extends `last` by `item` if `item` continues it. Returns whether it does.
#[inline]
fn join(last: &mut MapItem, item: &MapItem) -> bool {
    let operation = last.operation();
    let (target, next) = (Fpage::from_raw(last.target), Fpage::from_raw(item.target));
    let (Some(region), Some(added)) = (target.region(), next.region()) else { return false };
    let (pages, more) = (last.count(), item.count());
    let length = u64::from(pages) << region.size_log2;
    let continues = operation == item.operation()
        && region.size_log2 == added.size_log2
        && target.rights() == next.rights()
        && region.base + length == added.base
        && (operation != MapOperation::Map || last.source + length == item.source)
        && u64::from(pages) + u64::from(more) <= MOST_PAGES;
    if continues {
        *last = MapItem::new(operation, target, pages + more, last.source);
    }
    continues
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use mach::machine::{Caching, Frame};

    const POOL: u64 = 1 << 40;

    fn source(page: PhysicalPage) -> Option<u64> {
        match page {
            PhysicalPage::Frame(frame) => Some(POOL + (u64::from(frame.0) << PAGE_SHIFT)),
            PhysicalPage::Device(..) => None,
        }
    }

    fn enter(page: u64, frame: u32, protection: Protection) -> PmapChange {
        let page_ = PhysicalPage::Frame(Frame(frame));
        PmapChange::Enter { address: page << PAGE_SHIFT, page: page_, shift: PAGE_SHIFT, protection }
    }

    /// The fields of an item: operation, first page, number of pages, rights, source.
    type Item = (MapOperation, u64, u32, u64, u64);

    /// The batches of items into which changes are turned.
    fn batches<const N: usize>(changes: &[PmapChange]) -> Vec<Vec<Item>> {
        let mut batches = Vec::new();
        carry_out::<N>(changes, source, |items| {
            let items = items.iter().map(|item| {
                let target = Fpage::from_raw(item.target);
                let base = target.region().unwrap().base;
                (item.operation(), base >> 12, item.count(), target.rights().bits(), item.source)
            });
            batches.push(items.collect());
            Ok(())
        })
        .unwrap();
        batches
    }

    #[test]
    fn neighbours_become_one_item_and_many_items_one_batch() {
        let (read, write) = (Protection::READ, Protection::DEFAULT);
        let changes = [
            enter(8, 100, read),
            enter(9, 101, read),
            enter(10, 102, write),
            enter(11, 104, write),
            PmapChange::Remove { address: 0x20_0000, length: 0x3000 },
            PmapChange::Remove { address: 0x20_3000, length: 0x1000 },
            PmapChange::Protect { address: 0x20_4000, length: 0x1000, protection: read },
        ];
        use MapOperation::{Map, Protect, Unmap};
        let expected = [
            (Map, 8, 2, 4, POOL + (100 << 12)),
            (Map, 10, 1, 6, POOL + (102 << 12)),
            (Map, 11, 1, 6, POOL + (104 << 12)),
            (Unmap, 0x200, 4, 0, 0),
            (Protect, 0x204, 1, 4, 0),
        ];
        assert_eq!(batches::<16>(&changes), [expected.to_vec()]);
        assert_eq!(batches::<2>(&changes).concat(), expected);
        assert_eq!(batches::<2>(&changes).len(), 3);
    }

    #[test]
    fn no_rights_is_no_mapping_and_execution_reads() {
        let none = enter(1, 1, Protection::NONE);
        assert_eq!(batches::<1>(&[none]), [[(MapOperation::Unmap, 1, 1, 0, 0)]]);
        let execute = enter(1, 1, Protection::EXECUTE);
        assert_eq!(batches::<1>(&[execute])[0][0].3, Rights::READ_EXECUTE.bits());
    }

    #[test]
    fn the_largest_ranges_are_one_item_or_cut() {
        let everything = PmapChange::Remove { address: 0, length: 1 << 47 };
        assert_eq!(batches::<1>(&[everything]), [[(MapOperation::Unmap, 0, 1 << 17, 0, 0)]]);
        let odd = PmapChange::Remove { address: 0x1000, length: (1 << 47) - 0x1000 };
        let items = batches::<16>(&[odd]).concat();
        assert_eq!(items.iter().map(|item| u64::from(item.2)).sum::<u64>(), (1 << 35) - 1);
        assert!(items.iter().all(|item| u64::from(item.2) <= MOST_PAGES));
    }

    #[test]
    fn a_failure_names_its_change_and_leaves_nothing_of_it() {
        let write = Protection::DEFAULT;
        let changes = [enter(1, 1, write), enter(8, 100, write), enter(9, 101, write), enter(20, 300, write)];
        let mut made = Vec::new();
        let result = carry_out::<16>(&changes, source, |items| {
            made.push(items.to_vec());
            if made.len() == 1 { Err(1) } else { Ok(()) }
        });
        assert_eq!(result, Err(PmapFull { index: 1 }));
        let undone = made[1][0];
        let region = Fpage::from_raw(undone.target).region().unwrap();
        assert_eq!((undone.operation(), region.base, undone.count()), (MapOperation::Unmap, 8 << 12, 2));
        // Changes before that of a page which the server does not have are carried out.
        let device = PmapChange::Enter {
            address: 0,
            page: PhysicalPage::Device(0xfee0_0000, Caching::Uncached),
            shift: PAGE_SHIFT,
            protection: write,
        };
        let mut made = 0;
        let result = carry_out::<16>(&[enter(1, 1, write), device], source, |items| {
            made += items.len();
            Ok(())
        });
        assert_eq!((result, made), (Err(PmapFull { index: 1 }), 1));
    }
}
