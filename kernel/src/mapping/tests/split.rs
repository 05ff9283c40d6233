//! Large pages that are split while interrupts come, and while others change them.
use super::check::{check, check_beside};
use super::*;

const PAGE: u64 = GIB;
const RWX: Rights = Rights::ALL;

/// sigma0's large page in space 1, and from there in space 2, at the same address.
fn world() -> World {
    let world = World::new(3);
    world.map(0, PAGE, 1, PAGE, 21, RWX);
    world.map(1, PAGE, 2, PAGE, 21, RWX);
    world.machine.interrupts(1, 1);
    world
}

/// Takes a small page of space 1 from all spaces that have it, `turns` times or until that is over.
/// Returns whether it is.
fn take_a_page(world: &World, mut cursor: Pin<&mut Cursor>, flush: bool, turns: usize) -> bool {
    let fpage = Fpage::memory(PAGE + 5 * KIB4, 12).with_rights(RWX);
    (0..turns).any(|_| matches!(unmap(cursor.as_mut(), world.spaces[1], fpage, flush), Progress::Done(_)))
}

/// Nodes, arrays, and what the spaces pay.
fn in_use(world: &World) -> ((u32, u32), Vec<u64>) {
    (usage(), world.spaces.iter().map(|space| space.account().used()).collect())
}

/// Rules: EXT 9.1.
#[test]
fn k2_a_split_gives_way_again_and_again_and_changes_nothing_before_its_end() {
    for flush in [false, true] {
        let world = world();
        let mut cursor = pin!(Cursor::new());
        let holder = if flush { 1 } else { 2 };
        let mut most = 0;
        let turns = (1..20_000).find(|_| {
            if take_a_page(&world, cursor.as_mut(), flush, 1) {
                return true;
            }
            if world.page_bits(holder, PAGE) == 21 {
                assert_eq!(world.at(holder, PAGE + 5 * KIB4), Some((PAGE + 5 * KIB4, RWX)));
                most = most.max(cursor.prepared_nodes());
            }
            check_beside(&world.spaces, &[GIB], cursor.prepared_nodes());
            false
        });
        assert!(turns > Some(4), "each quarter can be interrupted: {turns:?}");
        assert_eq!(most, 512, "everything is made beforehand");
        assert_eq!(world.at(2, PAGE + 5 * KIB4), None);
        assert_eq!(world.page_bits(holder, PAGE), 12);
        assert_eq!(world.at(holder, PAGE + 511 * KIB4), Some((PAGE + 511 * KIB4, RWX)));
        check(&world.spaces, &[GIB]);
        world.end();
    }
}

#[test]
fn k4_a_split_that_is_given_up_leaves_nothing() {
    for flush in [false, true] {
        for turns in 1..20 {
            let world = world();
            let before = in_use(&world);
            let mut cursor = pin!(Cursor::new());
            if take_a_page(&world, cursor.as_mut(), flush, turns) {
                break;
            }
            let holder = if flush { 1 } else { 2 };
            let is_whole = world.page_bits(holder, PAGE) == 21;
            assert!(cursor.is_active() || !is_whole);
            cursor.as_mut().cancel();
            assert!(!cursor.is_active());
            if is_whole {
                assert_eq!(in_use(&world), before, "after {turns} turns");
            }
            check(&world.spaces, &[GIB]);
            World::finish(|_| finish_walk(cursor.as_mut()));
            world.end();
        }
    }
}

/// Does `change` at every point of a split of space 2's page, then lets it go on.
fn with_change(change: impl Fn(&mut World), then: impl Fn(&World, usize)) {
    for point in 1..12 {
        let mut world = world();
        let mut cursor = pin!(Cursor::new());
        if take_a_page(&world, cursor.as_mut(), false, point) {
            break;
        }
        world.machine.interrupts(0, 1);
        change(&mut world);
        check_beside(&world.spaces, &[GIB], cursor.prepared_nodes());
        assert!(take_a_page(&world, cursor.as_mut(), false, 1));
        then(&world, point);
        check(&world.spaces, &[GIB]);
        world.end();
    }
}

#[test]
fn k12_the_space_of_a_page_goes_while_it_is_split() {
    let replace = |world: &mut World| {
        world.destroy(2);
        // The new node may lie where the old one was.
        let account = Account::create(Quota::UNLIMITED).unwrap();
        world.spaces.insert(2, SpaceMemory::new(account).unwrap());
        account.release();
    };
    with_change(replace, |world, _| assert_eq!(world.at(2, PAGE), None));
    let replace_and_map = |world: &mut World| {
        replace(world);
        world.map(1, PAGE, 2, PAGE, 21, Rights::READ);
    };
    with_change(replace_and_map, |world, point| {
        for (page, rights) in [(PAGE, Rights::READ), (PAGE + 5 * KIB4, Rights::READ)] {
            let found = world.at(2, page);
            assert!(found.is_none_or(|(_, present)| present == rights), "{found:?} after {point}");
        }
    });
}

#[test]
fn k12_a_page_loses_rights_while_it_is_split() {
    let reduce = |world: &mut World| {
        world.unmap(1, PAGE, 21, Rights::WRITE, false);
    };
    with_change(reduce, |world, point| {
        for page in [PAGE, PAGE + 200 * KIB4, PAGE + 511 * KIB4] {
            assert_eq!(world.at(2, page), Some((page, Rights::READ_EXECUTE)), "after {point}");
        }
        assert_eq!(world.at(2, PAGE + 5 * KIB4), None);
    });
}

#[test]
fn k12_a_page_moves_while_it_is_split() {
    let grant = |world: &mut World| assert!(!world.grant(2, PAGE, 3, 2 * PAGE, 21, RWX).is_nil());
    with_change(grant, |world, _| {
        assert_eq!((world.at(2, PAGE), world.at(3, 2 * PAGE + 5 * KIB4)), (None, None));
        assert_eq!(world.at(3, 2 * PAGE + 6 * KIB4), Some((PAGE + 6 * KIB4, RWX)));
    });
    // The page is granted back, to another place: the paying accounts and the pieces are the same
    // again.
    let there_and_back = |world: &mut World| {
        grant(world);
        assert!(!world.grant(3, 2 * PAGE, 2, 2 * PAGE, 21, RWX).is_nil());
    };
    with_change(there_and_back, |world, _| {
        assert_eq!((world.at(2, PAGE), world.at(2, 2 * PAGE + 5 * KIB4)), (None, None));
        assert_eq!(world.at(2, 2 * PAGE + 6 * KIB4), Some((PAGE + 6 * KIB4, RWX)));
    });
}

/// Rules: 8.5.
#[test]
fn status_that_comes_while_a_page_is_split_is_not_lost() {
    let touch = |world: &mut World| {
        world.touch(2, PAGE + 9 * KIB4, Rights::WRITE);
    };
    with_change(touch, |world, point| {
        let status = world.status(2, PAGE + 9 * KIB4, 12);
        assert!(status.contains(Rights::WRITE), "after {point}");
        assert!(world.status(1, PAGE + 9 * KIB4, 12).contains(Rights::WRITE), "after {point}");
    });
}

/// Each part of a page that was split has the status of the whole page, until its holder asks for
/// that part; and the parent, which was told before, is not told again.
/// Rules: 8.5, 8.6.
#[test]
fn each_part_of_a_split_page_has_the_status_of_the_whole() {
    let (page, other) = (PAGE + 9 * KIB4, PAGE + 200 * KIB4);
    for (right, expected) in [(Rights::READ, Rights::READ_EXECUTE), (Rights::WRITE, RWX)] {
        for parent_asks_first in [false, true] {
            let world = world();
            world.touch(2, page, right);
            if parent_asks_first {
                assert_eq!(world.status(1, PAGE, 21), expected);
            }
            assert!(take_a_page(&world, pin!(Cursor::new()), false, 20_000));
            assert_eq!(world.page_bits(2, PAGE), 12);
            if !parent_asks_first {
                assert_eq!(world.status(1, PAGE, 21), expected);
            }
            assert_eq!(world.status(1, PAGE, 21), Rights::NONE);
            for part in [page, other] {
                assert_eq!(world.status(2, part, 12), expected);
                assert_eq!(world.status(2, part, 12), Rights::NONE);
            }
            assert_eq!(world.status(2, PAGE, 20), expected, "the parts that were not asked for");
            assert_eq!(world.status(2, PAGE, 20), Rights::NONE);
            assert_eq!(world.status(1, PAGE, 21), Rights::NONE);
            // From now on each part has its own status, for its holder and for the parent.
            world.touch(2, page, right);
            assert_eq!(world.status(2, page, 12), expected);
            assert_eq!(world.status(2, other, 12), Rights::NONE);
            assert_eq!(world.status(2, page, 12), Rights::NONE);
            assert_eq!(world.status(2, PAGE, 21), expected, "the upper half of the parts");
            assert_eq!(world.status(1, PAGE, 21), expected);
            assert_eq!(world.status(1, PAGE, 21), Rights::NONE);
            world.end();
        }
    }
}

/// What was done to a large page that is derived from another large one is told to the holder of
/// that for each of its pieces once, if the holder asks for pieces.
/// Rules: 8.6.
#[test]
fn a_holder_that_asks_for_pieces_is_told_of_each_once() {
    let world = world();
    // The holder keeps the status of pieces as soon as one of them is mapped alone.
    world.map(1, PAGE + 3 * KIB4, 3, 0x3000, 12, RWX);
    world.touch(2, PAGE, Rights::WRITE);
    assert_eq!(world.status(2, PAGE, 21), RWX);
    for piece in [PAGE, PAGE + 3 * KIB4, PAGE + 511 * KIB4] {
        assert_eq!(world.status(1, piece, 12), RWX);
        assert_eq!(world.status(1, piece, 12), Rights::NONE);
    }
    assert_eq!(world.status(1, PAGE, 21), RWX, "the other pieces");
    assert_eq!(world.status(1, PAGE, 21), Rights::NONE);
    world.end();
}

/// A small page that is derived from a part of a large one goes. What was done to it is kept for
/// the part, and told to the parent of the large page once.
/// Rules: 8.6.
#[test]
fn a_piece_tells_the_parent_once() {
    let world = world();
    world.map(2, PAGE + 3 * KIB4, 3, 0x3000, 12, RWX);
    world.touch(3, 0x3000, Rights::WRITE);
    assert!(world.unmap(3, 0x3000, 12, RWX, true).contains(Rights::WRITE));
    for (space, address, bits) in [(1, PAGE, 21), (2, PAGE + 3 * KIB4, 12)] {
        assert_eq!(world.status(space, address, bits), RWX);
        assert_eq!(world.status(space, address, bits), Rights::NONE);
    }
    assert_eq!(world.status(1, PAGE, 21), Rights::NONE);
    world.end();
}

#[test]
fn what_is_derived_while_a_page_is_split_stays() {
    let derive = |world: &mut World| {
        world.map(2, PAGE + 7 * KIB4, 3, 0x7000, 12, RWX);
        world.map(2, PAGE + 5 * KIB4, 3, 0x5000, 12, RWX);
    };
    with_change(derive, |world, point| {
        assert_eq!(world.at(3, 0x7000), Some((PAGE + 7 * KIB4, RWX)), "after {point}");
        assert_eq!(world.at(3, 0x5000), None, "after {point}");
    });
}

/// A page that is mapped where there are many smaller ones, which go one by one.
#[test]
fn k2_a_large_page_in_place_of_small_ones_gives_way() {
    for same_parent in [false, true] {
        let world = World::new(2);
        world.map(0, PAGE, 1, PAGE, 21, RWX);
        for page in 0..512 {
            let source = if same_parent { page } else { 511 - page };
            world.map(1, PAGE + source * KIB4, 2, PAGE + page * KIB4, 12, RWX);
        }
        world.machine.interrupts(1, 1);
        let item = MapItem::map(Fpage::memory(PAGE, 21).with_rights(RWX), PAGE);
        let mut cursor = pin!(Cursor::new());
        let turns = (1..20_000).find(|_| {
            matches!(
                map(cursor.as_mut(), world.spaces[1], world.spaces[2], item, Fpage::COMPLETE),
                Progress::Done(Ok(_))
            )
        });
        assert!(turns > Some(100), "{turns:?}");
        assert!((0..512).all(|page| world.at(2, PAGE + page * KIB4) == Some((PAGE + page * KIB4, RWX))));
        assert_eq!(world.page_bits(2, PAGE), if same_parent { 12 } else { 21 });
        check(&world.spaces, &[GIB]);
        world.end();
    }
}
