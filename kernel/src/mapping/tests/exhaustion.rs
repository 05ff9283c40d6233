//! Kernel memory runs out (K4), and operations meet at preemption points (K12).
use super::check::check;
use super::*;
use crate::memory::injection;

const RWX: Rights = Rights::ALL;

fn used(world: &World) -> Vec<u64> {
    world.spaces.iter().map(|space| space.account().used()).collect()
}

/// Fails each allocation of an item in turn; a failure leaves nothing allocated.
fn each_failure(prepare: impl Fn(&World), from: usize, source: u64, to: usize, target: u64, bits: u32) {
    let mut failures = 0;
    for nth in 1.. {
        let world = World::new(3);
        prepare(&world);
        let before = (used(&world), usage(), memory::statistics().of(memory::Use::PageTables));
        injection::fail_nth(nth);
        let item = MapItem::map(Fpage::memory(source, bits).with_rights(RWX), target);
        let result = world.try_map(from, to, item, Fpage::COMPLETE);
        let failed = !injection::cancel();
        assert_eq!(result.is_err(), failed, "allocation {nth}");
        check(&world.spaces, &[GIB]);
        if !failed {
            assert!(world.at(to, target).is_some());
            world.end();
            break;
        }
        failures += 1;
        let after = (used(&world), usage(), memory::statistics().of(memory::Use::PageTables));
        // The directory of roots is permanent.
        assert_eq!((after.0, after.1.0, after.2), (before.0, before.1.0, before.2), "allocation {nth}");
        assert!(world.try_map(from, to, item, Fpage::COMPLETE).is_ok());
        world.end();
    }
    assert!(failures > 2);
}

/// Rules: EXT 9.1.
#[test]
fn k4_a_failed_map_item_leaves_nothing_from_sigma0() {
    each_failure(|_| {}, 0, GIB, 1, 0x5000, 12);
}

#[test]
fn k4_a_failed_map_item_leaves_nothing_from_a_large_page() {
    let prepare = |world: &World| assert!(!world.map(0, GIB, 1, GIB, 21, RWX).is_nil());
    each_failure(prepare, 1, GIB + 0x3000, 2, 0x5000, 21);
}

/// Rules: EXT 9.1.
#[test]
fn k4_a_grant_that_cannot_split_changes_nothing() {
    for nth in 1..20 {
        let world = World::new(2);
        world.map(0, GIB, 1, GIB, 21, RWX);
        world.map(1, GIB + 0x3000, 2, 0x8000, 12, RWX);
        let before = (used(&world), usage().0);
        injection::fail_nth(nth);
        let item = MapItem::grant(Fpage::memory(GIB, 12).with_rights(RWX), 0x4000_0000);
        let result = world.try_map(1, 2, item, Fpage::COMPLETE);
        if injection::cancel() {
            assert!(result.is_ok() && nth > 6);
            world.end();
            return;
        }
        assert!(result.is_err());
        check(&world.spaces, &[GIB]);
        if world.page_bits(1, GIB) == 21 {
            assert_eq!((used(&world), usage().0), before);
        }
        assert_eq!(world.at(1, GIB), Some((GIB, RWX)));
        world.end();
    }
    panic!("splitting a page takes fewer allocations");
}

/// Rules: EXT 9.1.
#[test]
fn k4_a_page_that_cannot_be_split_is_unmapped_whole() {
    let world = World::new(3);
    world.map(0, GIB, 1, GIB, 21, RWX);
    world.map(1, GIB, 2, 0, 21, RWX);
    world.map(2, 0x3000, 3, 0x3000, 12, RWX);
    world.map(1, GIB, 3, GIB, 21, RWX);
    injection::fail_nth(1);
    world.unmap(1, GIB + 0x5000, 12, Rights::WRITE, false);
    // The page that was visited first is gone, with what was derived from it; the other lost what
    // was to be revoked.
    let gone =
        [(2, 0), (3, GIB)].into_iter().filter(|&(space, base)| world.at(space, base).is_none()).count();
    assert_eq!(gone, 1);
    for (space, base) in [(2, 0), (3, GIB)] {
        if let Some((_, rights)) = world.at(space, base + 0x5000) {
            assert_eq!(rights, Rights::READ_EXECUTE);
        }
    }
    assert_eq!(world.at(3, 0x3000).is_some(), world.at(2, 0).is_some());
    assert_eq!(world.page_bits(1, GIB), 21);
    // Flush of the space's own page, too, fails when there are no spare tables left.
    assert!(give_back());
    injection::fail_nth(1);
    world.unmap(1, GIB + 0x5000, 12, RWX, true);
    assert_eq!(world.at(1, GIB), None);
    check(&world.spaces, &[GIB]);
    world.end();
}

#[test]
fn k4_the_mapper_pays_for_nodes_and_the_holder_for_tables() {
    let world = World::new(2);
    world.map(0, GIB, 1, GIB, 12, RWX);
    let before = used(&world);
    world.map(1, GIB, 2, 0x5000, 12, RWX);
    let after = used(&world);
    assert_eq!(after[1] - before[1], 32);
    assert_eq!(after[2] - before[2], 3 * 4096 + 2048);
    // At its limit, the mapper cannot map; others can.
    world.spaces[1].account().set_limit(Quota::from_word(after[1]).unwrap());
    let item = MapItem::map(Fpage::memory(GIB, 12).with_rights(RWX), 0x6000);
    assert_eq!(world.try_map(1, 2, item, Fpage::COMPLETE), Err(OutOfMemory));
    world.map(0, 2 * GIB, 2, 0x6000, 12, RWX);
    assert_eq!(used(&world)[1..], after[1..]);
    world.end();
}

/// What the book says ("What a process costs the kernel"): the space of a Unix process with its
/// program, its stack, the pages that the server maps next to the kernel interface page, and its
/// UTCBs.
#[test]
fn tables_of_a_process_have_shadows_only_where_its_pages_are() {
    const TABLE: u64 = 4096;
    const SHADOW: u64 = 2048;
    const INTERFACE: u64 = 0x7fff_8000_0000;
    let world = World::new(1);
    let account = Account::create(Quota::UNLIMITED).unwrap();
    let space = SpaceMemory::new(account).unwrap();
    account.release();
    let process = World { spaces: [world.spaces.clone(), std::vec![space]].concat(), ..world };
    let used = || space.account().used();
    let empty = used();
    let kernels = |address: u64, frame: u64, rights: Rights| {
        space.insert_kernel_frame(VirtAddr::new(address), PhysAddr::new(frame), rights).unwrap();
    };
    kernels(INTERFACE, 0x100_0000, Rights::READ_EXECUTE);
    kernels(INTERFACE + 0x40_0000, 0x100_1000, Rights::READ_WRITE);
    assert_eq!(used() - empty, 4 * TABLE);
    let page = |address: u64| assert!(!process.map(0, GIB, 2, address, 12, RWX).is_nil());
    (0..64).for_each(|number| page(0x40_0000 + number * KIB4));
    assert_eq!(used() - empty, 7 * TABLE + SHADOW);
    page(0x7ffc_1234_5000);
    assert_eq!(used() - empty, 9 * TABLE + 2 * SHADOW);
    page(INTERFACE + KIB4);
    assert_eq!(used() - empty, 9 * TABLE + 3 * SHADOW);
    assert_eq!(empty, TABLE + 64, "the root table, which leads only to others, and the space");
    for address in [INTERFACE, INTERFACE + 0x40_0000] {
        assert!(space.remove_kernel_frame(VirtAddr::new(address)).is_some());
    }
    process.end();
}

#[test]
fn k12_a_walk_goes_on_where_its_node_was_deleted() {
    // Space 1 revokes from three spaces; between any two steps one of them disappears.
    for point in 0..20 {
        for victim in 2..5 {
            let mut world = World::new(4);
            world.map(0, GIB, 1, GIB, 12, RWX);
            for (from, to) in [(1, 2), (2, 3), (3, 4)] {
                world.map(from, if from == 1 { GIB } else { 0x1000 }, to, 0x1000, 12, RWX);
                world.map(1, GIB, to, 0x7000, 12, RWX);
            }
            let mut cursor = pin!(Cursor::new());
            let fpage = Fpage::memory(GIB, 12).with_rights(Rights::WRITE);
            world.machine.interrupts(1, 1);
            let mut done = false;
            for _ in 0..point {
                done = done || unmap(cursor.as_mut(), world.spaces[1], fpage, false) != Progress::Preempted;
            }
            world.destroy(victim);
            check(&world.spaces, &[GIB]);
            while !done {
                done = unmap(cursor.as_mut(), world.spaces[1], fpage, false) != Progress::Preempted;
            }
            for space in 2..4 {
                for address in [0x1000, 0x7000] {
                    if let Some((_, rights)) = world.at(space, address) {
                        assert_eq!(rights, Rights::READ_EXECUTE, "after {point} steps without {victim}");
                    }
                }
            }
            world.end();
        }
    }
}

#[test]
fn k12_a_cancelled_removal_leaves_nothing_behind() {
    for point in 1..12 {
        let mut world = World::new(3);
        world.map(0, GIB, 1, GIB, 21, RWX);
        world.map(1, GIB, 2, 0, 21, RWX);
        world.map(2, 0x1000, 3, 0x1000, 12, RWX);
        world.machine.interrupts(1, 1);
        let mut cursor = pin!(Cursor::new());
        let fpage = Fpage::memory(GIB, 13).with_rights(RWX);
        for _ in 0..point {
            if unmap(cursor.as_mut(), world.spaces[1], fpage, true) != Progress::Preempted {
                break;
            }
        }
        // The operation is given up as if its thread was deleted, and never finished.
        cursor.as_mut().give_up();
        check(&world.spaces, &[GIB]);
        for _ in 0..3 {
            world.destroy(1);
            check(&world.spaces, &[GIB]);
        }
        world.end();
    }
}
