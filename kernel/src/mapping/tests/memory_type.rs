//! Memory types belong to memory (X.2 rules 9.2, 9.4).
use super::super::table;
use super::*;
use crate::arch::page_entry::MemoryType;

const UNCACHEABLE: MemoryType = MemoryType::UNCACHEABLE;
const USUAL: MemoryType = MemoryType::USUAL;

impl World {
    fn set_type(&self, space: usize, address: u64, bits: u32, memory_type: MemoryType) {
        let region = x2::Region::containing(address, bits);
        Self::finish(|cursor| set_memory_type(cursor, self.spaces[space], region, memory_type)).unwrap();
    }

    fn type_at(&self, space: usize, address: u64) -> MemoryType {
        let place = table::find(self.spaces[space], VirtAddr::new(address), 1);
        assert!(place.entry.is_page(place.level), "{address:#x} is not mapped");
        place.entry.memory_type(place.level)
    }
}

/// Rules: 9.2a.
#[test]
fn all_holders_of_a_page_see_its_type_change() {
    let world = World::new(5);
    world.map(0, GIB, 1, MIB2, 13, Rights::ALL);
    world.map(1, MIB2, 2, 6 * KIB4, 13, Rights::READ);
    world.map(2, 6 * KIB4, 3, MIB2, 13, Rights::READ);
    world.map(0, GIB, 4, 0, 13, Rights::ALL);
    world.touch(3, MIB2, Rights::READ);
    world.set_type(1, MIB2, 12, UNCACHEABLE);
    for (space, address) in [(1, MIB2), (2, 6 * KIB4), (3, MIB2), (4, 0)] {
        assert_eq!(world.type_at(space, address), UNCACHEABLE, "space {space}");
        assert_eq!(world.type_at(space, address + KIB4), USUAL, "the next page of space {space}");
    }
    assert_eq!(world.at(3, MIB2), Some((GIB, Rights::READ)));
    world.touch(3, MIB2, Rights::READ);
    // Pages that are mapped later get the type, too: from one of these, from sigma0, by grant.
    world.map(3, MIB2, 5, 0, 13, Rights::READ);
    world.map(0, GIB, 5, MIB2, 13, Rights::READ);
    world.grant(4, 0, 5, 2 * MIB2, 13, Rights::ALL);
    for address in [0, MIB2, 2 * MIB2] {
        assert_eq!((world.type_at(5, address), world.type_at(5, address + KIB4)), (UNCACHEABLE, USUAL));
    }
    // The types are the same long after the last mapping is gone.
    world.unmap(0, GIB, 30, Rights::ALL, false);
    world.map(0, GIB, 5, 0, 12, Rights::READ);
    assert_eq!(world.type_at(5, 0), UNCACHEABLE);
    world.set_type(5, 0, 12, USUAL);
    assert_eq!(world.type_at(5, 0), USUAL);
    world.end();
}

#[test]
fn a_part_of_a_large_page_is_split_off() {
    for interrupts in [0, 2] {
        let world = World::new(3);
        world.machine.interrupts(9, interrupts);
        world.map(0, GIB, 1, GIB, 21, Rights::ALL);
        world.map(1, GIB, 2, 2 * GIB, 21, Rights::ALL);
        world.map(2, 2 * GIB + 3 * KIB4, 3, 0, 14, Rights::READ);
        world.set_type(1, GIB + 4 * KIB4, 12, MemoryType::WRITE_COMBINING);
        for (space, base) in [(1, GIB), (2, 2 * GIB)] {
            assert_eq!(world.page_bits(space, base), 12);
            assert_eq!(world.type_at(space, base + 4 * KIB4), MemoryType::WRITE_COMBINING);
            assert_eq!(world.type_at(space, base + 6 * KIB4), USUAL);
        }
        world.set_type(2, 2 * GIB, 21, UNCACHEABLE);
        for page in 0..4 {
            assert_eq!(world.type_at(3, page * KIB4), UNCACHEABLE);
        }
        world.machine.interrupts(0, 1);
        world.set_type(0, GIB, 30, USUAL);
        world.end();
    }
}

/// Rules: 9.4.
#[test]
fn sigma0_maps_memory_with_its_types() {
    let world = World::new(1);
    world.touch(0, GIB, Rights::READ);
    sigma0_fault(world.spaces[0], VirtAddr::new(GIB)).unwrap();
    assert_eq!(world.type_at(0, GIB), USUAL);
    world.set_type(0, GIB + MIB2 / 2, 20, UNCACHEABLE);
    world.map(0, GIB, 1, GIB, 22, Rights::ALL);
    assert_eq!((world.page_bits(1, GIB), world.page_bits(1, GIB + MIB2)), (12, 21));
    for (offset, memory_type) in
        [(0, USUAL), (MIB2 / 2 - KIB4, USUAL), (MIB2 / 2, UNCACHEABLE), (MIB2, USUAL)]
    {
        assert_eq!(world.type_at(1, GIB + offset), memory_type, "{offset:#x}");
        sigma0_fault(world.spaces[0], VirtAddr::new(GIB + offset)).unwrap();
        assert_eq!(world.type_at(0, GIB + offset), memory_type, "sigma0's own at {offset:#x}");
    }
    // Memory that a space does not have keeps its type.
    world.set_type(1, 0, 64, MemoryType::WRITE_PROTECTED);
    assert_eq!(world.type_at(1, GIB + MIB2 / 2), MemoryType::WRITE_PROTECTED);
    world.map(0, 2 * GIB, 1, 0, 12, Rights::ALL);
    assert_eq!(world.type_at(1, 0), USUAL);
    world.set_type(0, GIB, 22, USUAL);
    world.end();
}
