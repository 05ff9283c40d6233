//! MapControl (K8): exact errors, exact rights, status of its own, large pages.
use super::check::check;
use super::*;
use crate::memory::injection;
use x2::extension::{MapAnswer, MapItem as Item, MapOperation};
use x2::{ErrorCode, Region};

const RWX: Rights = Rights::ALL;
const RW: Rights = Rights::READ_WRITE;
const R: Rights = Rights::READ;

impl World {
    /// An item by space 1 on space 2.
    fn control(&self, item: Item) -> Result<u64, ErrorCode> {
        Self::finish(|cursor| control(cursor, self.spaces[1], self.spaces[2], &item, true))
    }

    /// Answer to an item for `count` pages of 2^`bits` bytes.
    fn item(
        &self,
        operation: MapOperation,
        target: u64,
        bits: u32,
        rights: Rights,
        count: u32,
        source: u64,
    ) -> u64 {
        let target = Fpage::memory(target, bits).with_rights(rights);
        self.control(Item::new(operation, target, count, source)).unwrap()
    }

    fn query(&self, target: u64, clear: u64) -> MapAnswer {
        let item = Item::new(MapOperation::Query, Fpage::memory(target, 12), 1, 0).clearing(clear);
        MapAnswer(self.control(item).unwrap())
    }
}

/// Space 1 has 4 MiB at 1 GiB, in large pages.
fn world() -> World {
    let world = World::new(3);
    world.spaces[2].set_owned(true);
    world.map(0, GIB, 1, GIB, 22, RWX);
    world
}

/// Rules: EXT 4.1.
#[test]
fn runs_are_mapped_with_exact_rights_and_counted() {
    let world = world();
    assert_eq!(world.item(MapOperation::Map, 0x5000, 12, RW, 3, GIB + 0x1000) >> 32, 3);
    assert_eq!(world.at(2, 0x7000), Some((GIB + 0x3000, RW)));
    assert_eq!(world.at(2, 0x8000), None);
    // The same item with fewer rights, and then with others: the page has exactly these.
    assert_eq!(world.item(MapOperation::Map, 0x6000, 12, R, 1, GIB + 0x2000) >> 32, 1);
    assert_eq!(world.at(2, 0x6000), Some((GIB + 0x2000, R)));
    world.item(MapOperation::Map, 0x6000, 12, Rights::READ_EXECUTE, 1, GIB + 0x2000);
    assert_eq!(world.at(2, 0x6000), Some((GIB + 0x2000, Rights::READ_EXECUTE)));
    // Larger pages are used where both sides allow.
    assert_eq!(world.item(MapOperation::Map, 8 * MIB2, 12, RW, 1024, GIB) >> 32, 1024);
    assert_eq!(world.page_bits(2, 9 * MIB2), 21);
    assert_eq!(world.item(MapOperation::Map, 8 * MIB2, 16, RW, 2, GIB + MIB2) >> 32, 2);
    assert_eq!(world.at(2, 8 * MIB2 + 0x1_f000), Some((GIB + MIB2 + 0x1_f000, RW)));
    assert_eq!(world.at(2, 8 * MIB2 + 0x2_0000), Some((GIB + 0x2_0000, RW)));
    check(&world.spaces, &[GIB]);
    // The caller's Unmap reaches the page, as everything that is derived from its own.
    world.unmap(1, GIB, 22, RWX, false);
    assert_eq!(usage().0, 3);
    world.end();
}

/// Rules: EXT 4.1.
#[test]
fn holes_of_the_source_become_holes_of_the_target() {
    let world = world();
    world.unmap(1, GIB + 0x2000, 12, RWX, true);
    world.map(0, 2 * GIB, 2, 0x5000, 14, RWX);
    assert_eq!(world.item(MapOperation::Map, 0x5000, 12, RW, 3, GIB + 0x1000) >> 32, 2);
    assert_eq!(world.at(2, 0x5000), Some((GIB + 0x1000, RW)));
    assert_eq!(world.at(2, 0x6000), None);
    assert_eq!(world.at(2, 0x7000), Some((GIB + 0x3000, RW)));
    assert_eq!(world.item(MapOperation::Map, 0x5000, 12, RW, 3, 3 * GIB) >> 32, 0);
    assert_eq!(world.at(2, 0x5000), None);
    world.end();
}

/// Rules: EXT 4.2.
#[test]
fn status_is_the_owners_and_is_cleared_bit_by_bit() {
    let world = world();
    world.item(MapOperation::Map, 0x5000, 12, RW, 2, GIB);
    assert_eq!(world.query(0x5000, 0).0, GIB | 6 | MapAnswer::MAPPED);
    world.touch(2, 0x5000, Rights::WRITE);
    let seen = world.query(0x5000, Item::CLEAR_REFERENCED);
    assert!(seen.is_referenced() && seen.is_dirty());
    // The space's own Unmap, and its owner's of its own pages, do not hide anything.
    assert_eq!(world.status(2, 0x5000, 12), Rights::WRITE);
    assert_eq!(world.status(1, GIB, 12), RWX);
    let seen = world.query(0x5000, Item::CLEAR_DIRTY);
    assert!(!seen.is_referenced() && seen.is_dirty());
    assert_eq!(world.query(0x5000, 0).0, GIB | 6 | MapAnswer::MAPPED);
    assert_eq!(world.query(0x9000, 0), MapAnswer(0));
    world.touch(2, 0x6000, Rights::READ);
    let answer = MapAnswer(world.item(MapOperation::Query, 0x4000, 12, Rights::NONE, 5, 0));
    assert!(answer.is_mapped() && answer.is_referenced() && !answer.is_dirty());
    assert_eq!(answer.physical_address(), 0, "of one page only");
    let blind = Item::new(MapOperation::Query, Fpage::memory(0x5000, 12), 1, 0);
    let answer = World::finish(|cursor| control(cursor, world.spaces[1], world.spaces[2], &blind, false));
    assert_eq!(MapAnswer(answer.unwrap()).physical_address(), 0, "only a caller that may see it is told");
    world.end();
}

/// Space 1 acts on what is derived from its own pages, of which the server's pool of frames may be
/// one large one.
/// Rules: EXT 4.7.
#[test]
fn what_is_derived_from_own_pages_can_be_queried_and_reduced() {
    for bits in [12, 21] {
        let world = World::new(4);
        for space in 1..=3 {
            world.spaces[space].set_owned(true);
        }
        for page in 0..1 << (22 - bits) {
            let at = GIB + (page << bits);
            world.map(0, at, 1, at, bits, RWX);
        }
        let own = |operation, address, rights, clear| {
            let target = Fpage::memory(address, 12).with_rights(rights);
            let item = Item::new(operation, target, 1, 0).clearing(clear);
            MapAnswer(
                World::finish(|cursor| control(cursor, world.spaces[1], world.spaces[1], &item, false))
                    .unwrap(),
            )
        };
        let clear = Item::CLEAR_REFERENCED | Item::CLEAR_DIRTY;
        let query = |address| own(MapOperation::Query, address, Rights::NONE, clear);
        let share = |space: usize, source, address| {
            let item = Item::new(MapOperation::Map, Fpage::memory(address, 12).with_rights(RW), 1, source);
            World::finish(|cursor| control(cursor, world.spaces[1], world.spaces[space], &item, false))
                .unwrap();
        };
        for (space, source, address) in [(2, GIB, 0x5000), (2, GIB + 0x1000, 0x9000), (3, GIB, 0x7000)] {
            share(space, source, address);
        }
        // The caller's own use of a page is not reported as status; the use by others is, page by
        // page, until it is cleared.
        world.touch(1, GIB, Rights::WRITE);
        world.touch(1, GIB + 0x1000, Rights::WRITE);
        assert_eq!(
            (query(GIB).0, query(GIB + 0x1000).0),
            (7 | MapAnswer::MAPPED, 7 | MapAnswer::MAPPED),
            "{bits}"
        );
        world.touch(3, 0x7000, Rights::READ);
        world.touch(2, 0x9000, Rights::WRITE);
        let (first, second) = (query(GIB), query(GIB + 0x1000));
        assert!(first.is_referenced() && !first.is_dirty(), "{bits}");
        assert!(second.is_referenced() && second.is_dirty(), "{bits}");
        assert!(!query(GIB).is_referenced() && !query(GIB + 0x1000).is_dirty(), "{bits}");
        world.touch(2, 0x5000, Rights::WRITE);
        assert!(query(GIB).is_dirty(), "{bits}: after it was cleared");
        // A page that is removed passes its status on.
        world.touch(2, 0x5000, Rights::WRITE);
        world.unmap(2, 0x5000, 12, RWX, true);
        assert!(query(GIB).is_dirty(), "{bits}: of a page that is gone");
        share(2, GIB, 0x5000);
        // Rights go from all that is derived, and from nothing else.
        own(MapOperation::Protect, GIB, R, 0);
        assert_eq!((world.at(2, 0x5000), world.at(3, 0x7000)), (Some((GIB, R)), Some((GIB, R))));
        assert_eq!((world.at(1, GIB), world.at(2, 0x9000)), (Some((GIB, RWX)), Some((GIB + 0x1000, RW))));
        own(MapOperation::Unmap, GIB + 0x1000, Rights::NONE, 0);
        own(MapOperation::Protect, GIB, Rights::NONE, 0);
        assert_eq!((world.at(2, 0x5000), world.at(3, 0x7000), world.at(2, 0x9000)), (None, None, None));
        assert_eq!(world.page_bits(1, GIB), bits, "the own page stays whole");
        check(&world.spaces, &[GIB]);
        world.end();
    }
}

/// Rules: EXT 4.2.
#[test]
fn protect_and_unmap_report_what_was() {
    let world = world();
    world.item(MapOperation::Map, 0x20_0000, 21, RWX, 1, GIB);
    world.map(2, 0x20_3000, 3, 0x3000, 12, RWX);
    world.touch(2, 0x20_3000, Rights::WRITE);
    let answer = MapAnswer(world.item(MapOperation::Protect, 0x20_3000, 12, R, 2, 0));
    assert_eq!((answer.rights(), answer.is_dirty()), (7, true));
    assert_eq!(world.at(2, 0x20_2000), Some((GIB + 0x2000, RWX)));
    assert_eq!(world.at(2, 0x20_4000), Some((GIB + 0x4000, R)));
    assert_eq!(world.at(3, 0x3000), Some((GIB + 0x3000, R)));
    // Protect never adds.
    world.item(MapOperation::Protect, 0x20_4000, 12, RWX, 1, 0);
    assert_eq!(world.at(2, 0x20_4000), Some((GIB + 0x4000, R)));
    let answer = MapAnswer(world.item(MapOperation::Unmap, 0x20_3000, 12, Rights::NONE, 1, 0));
    assert_eq!((answer.rights(), answer.is_dirty(), answer.physical_address()), (4, true, GIB + 0x3000));
    assert_eq!((world.at(2, 0x20_3000), world.at(3, 0x3000)), (None, None));
    assert_eq!(MapAnswer(world.item(MapOperation::Unmap, 0, 12, Rights::NONE, 1 << 20, 0)).rights(), 7);
    assert_eq!(world.at(2, 0x20_4000), None);
    check(&world.spaces, &[GIB]);
    world.end();
}

/// Rules: EXT 4.3.
#[test]
fn wrong_items_are_refused_without_effect() {
    let world = world();
    let utcb = Region { base: 0x20_0000, size_log2: 14 };
    world.spaces[2].set_areas(None, Some(utcb));
    let map = |target: Fpage, source| Item::new(MapOperation::Map, target.with_rights(RW), 1, source);
    let end = crate::arch::USER_END;
    let wrong = [
        map(Fpage::NIL, GIB),
        map(Fpage::from_raw(0x5000 | 11 << 4), GIB),
        map(Fpage::memory(0, 31), GIB),
        map(Fpage::COMPLETE, GIB),
        map(Fpage::COMPLETE_IO, GIB),
        map(Fpage::memory(0x5000, 12), GIB + 1),
        map(Fpage::memory(0x5000, 12), end),
        map(Fpage::memory(end, 12), GIB),
        map(Fpage::memory(u64::MAX, 12), GIB),
        map(Fpage::memory(0x20_3000, 12), GIB),
        Item::new(MapOperation::Unmap, Fpage::memory(0x10_0000, 20), 2, 0),
        Item::new(MapOperation::Unmap, Fpage::memory(end - KIB4, 12), 2, 0),
        Item::new(MapOperation::Map, Fpage::memory(0x5000, 12), 1, GIB),
        Item { control: 1 << 4, ..map(Fpage::memory(0x5000, 12), GIB) },
    ];
    for item in wrong {
        assert_eq!(world.control(item), Err(ErrorCode::InvalidParameter), "{item:x?}");
    }
    let own = map(Fpage::memory(0x5000, 12), GIB);
    let own = World::finish(|cursor| control(cursor, world.spaces[1], world.spaces[1], &own, false));
    assert_eq!(own, Err(ErrorCode::InvalidParameter));
    assert_eq!(world.at(2, 0x5000), None);
    injection::fail_nth(1);
    assert_eq!(world.control(map(Fpage::memory(0x5000, 12), GIB)), Err(ErrorCode::NoMemory));
    check(&world.spaces, &[GIB]);
    assert!(world.control(map(Fpage::memory(0x5000, 12), GIB)).is_ok());
    world.end();
}
