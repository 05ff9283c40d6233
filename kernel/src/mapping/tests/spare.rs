//! Empty page tables that stay in place (K4).
use super::check::check;
use super::*;

const RWX: Rights = Rights::ALL;
/// What the tables for a page cost: three, the last with a shadow.
const TABLES: u64 = 3 * 4096 + 2048;
const PLACE: u64 = 0x5000;

fn used(world: &World, space: usize) -> u64 {
    world.spaces[space].account().used()
}

/// Maps a page and unmaps it.
fn map_and_unmap(world: &World, space: usize, address: u64) {
    world.map(0, GIB, space, address, 12, RWX);
    assert_eq!(world.touch(space, address, Rights::WRITE), Some(GIB));
    world.unmap(space, address, 12, RWX, true);
    assert_eq!((world.at(space, address), world.touch(space, address, Rights::READ)), (None, None));
    check(&world.spaces, &[GIB]);
}

/// Rules: EXT 9.1.
#[test]
fn a_table_that_becomes_empty_serves_the_next_page_there() {
    let world = World::new(1);
    let before = used(&world, 1);
    map_and_unmap(&world, 1, PLACE);
    assert_eq!(used(&world, 1), before + TABLES);
    let tables = memory::statistics().of(memory::Use::PageTables);
    world.map(0, GIB, 1, PLACE, 12, RWX);
    assert_eq!(memory::statistics().of(memory::Use::PageTables), tables);
    world.unmap(1, PLACE, 12, RWX, true);
    map_and_unmap(&world, 1, PLACE);
    assert_eq!(used(&world, 1), before + TABLES);
    world.end();
}

#[test]
fn a_space_has_one_spare_table() {
    let world = World::new(1);
    let before = used(&world, 1);
    for address in [PLACE, MIB2, GIB, 600 * GIB, PLACE] {
        map_and_unmap(&world, 1, address);
        assert_eq!(used(&world, 1), before + TABLES, "{address:#x}");
    }
    // A spare table that is in use again is not freed.
    world.map(0, GIB, 1, PLACE, 12, RWX);
    map_and_unmap(&world, 1, GIB);
    assert_eq!(world.at(1, PLACE), Some((GIB, RWX)));
    world.end();
}

#[test]
fn a_larger_page_comes_in_place_of_a_spare_table() {
    for (bits, grant) in [(21, false), (21, true), (30, false)] {
        let world = World::new(2);
        world.map(0, GIB, 2, GIB, bits, RWX);
        map_and_unmap(&world, 1, GIB + PLACE);
        let delivered =
            if grant { world.grant(2, GIB, 1, GIB, bits, RWX) } else { world.map(2, GIB, 1, GIB, bits, RWX) };
        assert!(!delivered.is_nil());
        assert_eq!(world.page_bits(1, GIB), bits);
        check(&world.spaces, &[GIB]);
        world.end();
    }
}

#[test]
fn a_space_that_lacks_memory_gets_the_spare_tables() {
    let world = World::new(2);
    let before = used(&world, 1);
    map_and_unmap(&world, 1, PLACE);
    // The limit is enough for three tables and a node.
    world.spaces[1].account().set_limit(Quota::from_word(before + TABLES + 32).unwrap());
    world.map(0, GIB, 1, 600 * GIB, 12, RWX);
    assert_eq!(used(&world, 1), before + TABLES);
    check(&world.spaces, &[GIB]);
    // The spare table of another space is given back, too.
    map_and_unmap(&world, 2, PLACE);
    let other = used(&world, 2);
    assert!(or_from_spare(|| Err::<(), _>(OutOfMemory)).is_err() && !give_back());
    assert_eq!(used(&world, 2), other - TABLES);
    world.end();
}

#[test]
fn few_spaces_have_spare_tables() {
    let mut world = World::new(20);
    let before = (1..=20).map(|space| used(&world, space)).sum::<u64>();
    for space in 1..=20 {
        map_and_unmap(&world, space, PLACE);
    }
    let all = |world: &World| (1..world.spaces.len()).map(|space| used(world, space)).sum::<u64>();
    assert_eq!(all(&world), before + 16 * TABLES);
    let empty = used(&world, 1);
    for _ in 0..10 {
        world.destroy(5);
    }
    for space in 1..=10 {
        map_and_unmap(&world, space, PLACE);
    }
    assert_eq!(used(&world, 1), empty + TABLES);
    world.end();
}

#[test]
fn a_granted_page_may_come_to_a_spare_table_while_another_table_becomes_one() {
    let world = World::new(18);
    for space in 1..=17 {
        map_and_unmap(&world, space, PLACE);
    }
    for to in 1..=17 {
        world.map(0, GIB, 18, GIB, 12, RWX);
        world.grant(18, GIB, to, PLACE, 12, RWX);
        assert_eq!(world.at(to, PLACE), Some((GIB, RWX)));
        check(&world.spaces, &[GIB]);
        world.spaces[18].keep_no_spare();
    }
    world.end();
}
