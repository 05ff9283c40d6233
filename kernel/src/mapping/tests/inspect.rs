//! What the debugger sees of trees and tables.
use super::*;
use crate::mapping::inspect;

#[test]
fn a_tree_is_shown_with_everything_that_holds_the_address() {
    let world = World::new(4);
    world.map(0, GIB, 1, GIB, 21, Rights::ALL);
    world.map(1, GIB, 2, 2 * GIB, 21, Rights::READ);
    world.map(2, 2 * GIB + KIB4, 3, 0, 12, Rights::READ);
    world.map(2, 2 * GIB + 5 * KIB4, 3, MIB2, 12, Rights::READ);
    world.map(1, GIB + KIB4, 4, 0, 12, Rights::ALL);
    world.map(0, GIB + KIB4, 4, MIB2, 12, Rights::ALL);
    let holders = |address: u64| -> Vec<(usize, u64, u64)> {
        let mapped = inspect::tree(PhysAddr::new(address)).filter_map(|holding| {
            let (root, at, _) = holding.page?;
            let space = world.spaces.iter().position(|space| space.page_table_root() == root).unwrap();
            Some((space, at.value(), holding.depth as u64))
        });
        let mut found: Vec<_> = mapped.collect();
        found.sort_unstable();
        found
    };
    let at =
        |offset: u64| holders(GIB + offset).into_iter().map(|(space, at, _)| (space, at)).collect::<Vec<_>>();
    assert_eq!(at(KIB4), [(1, GIB), (2, 2 * GIB), (3, 0), (4, 0), (4, MIB2)]);
    assert_eq!(at(5 * KIB4), [(1, GIB), (2, 2 * GIB), (3, MIB2)]);
    assert_eq!(at(7 * KIB4), [(1, GIB), (2, 2 * GIB)]);
    assert_eq!(inspect::tree(PhysAddr::new(5 * GIB)).count(), 0);
    let first = inspect::tree(PhysAddr::new(GIB)).next().unwrap();
    assert!(first.depth == 0 && first.page.is_none() && first.bits == 30);
    let pages: Vec<_> = inspect::pages(world.spaces[4], VirtAddr::new(0)).map(|(at, _)| at.value()).collect();
    assert_eq!(pages, [0, MIB2]);
    assert_eq!(inspect::entries(world.spaces[4], VirtAddr::new(0)).count(), 4);
    assert_eq!(inspect::entries(world.spaces[4], VirtAddr::new(GIB)).count(), 2);
    world.end();
}
