//! Invariants of the mapping database, checked by walking all of it.
use std::collections::HashSet;

use super::super::node::NodeId;
use super::super::table::{self, Table};
use super::super::{space::SpaceMemory, tree};
use super::*;
use crate::arch::page_entry::{ENTRIES, PageEntry, ROOT_LEVEL, index, page_bits};

/// Nodes that page tables name.
struct Found {
    pages: HashSet<u32>,
}

/// Checks every table of every space and every tree; returns how many nodes there are.
pub(super) fn check(spaces: &[SpaceMemory], gigabytes: &[u64]) -> u32 {
    check_beside(spaces, gigabytes, 0)
}

/// Like [`check`], while operations under way have made `prepared` nodes that are in no tree yet.
pub(super) fn check_beside(spaces: &[SpaceMemory], gigabytes: &[u64], prepared: u32) -> u32 {
    let mut found = Found { pages: HashSet::new() };
    for &space in spaces {
        let used = check_table(space, space.root(), ROOT_LEVEL, 0, &mut found);
        assert_eq!(used, space.root().used());
    }
    let mut seen = HashSet::new();
    for &address in gigabytes {
        let root = tree::root(PhysAddr::new(address));
        if !root.is_none() {
            assert!(root.parent().is_none() && !root.is_mapped());
            check_node(root, &mut seen, &found);
        }
    }
    for node in &found.pages {
        assert!(seen.contains(node), "a mapped node is in no tree");
    }
    let mapped = seen.iter().filter(|&&raw| NodeId::from_raw(raw).is_mapped()).count();
    assert_eq!(mapped, found.pages.len());
    assert_eq!(seen.len() as u32 + prepared, usage().0, "nodes outside the trees");
    seen.len() as u32
}

fn check_table(space: SpaceMemory, table: Table, level: u32, start: u64, found: &mut Found) -> u32 {
    let mut used = 0;
    let entries = if level == ROOT_LEVEL { ENTRIES / 2 } else { ENTRIES };
    for index in 0..entries {
        let at = table.entry(index);
        let entry = at.load();
        let address = start + ((index as u64) << page_bits(level));
        if entry == PageEntry::EMPTY {
            assert!(at.node().is_none());
            continue;
        }
        used += 1;
        assert_eq!(at.virtual_address().value(), address);
        if entry.is_table(level) {
            assert!(at.node().is_none());
            let below = Table::from_entry(entry);
            let below_used = check_table(space, below, level - 1, address, found);
            assert_eq!(below_used, below.used());
            assert!(below_used > 0 || space.spare() == Some(below), "an empty table");
            continue;
        }
        assert!(entry.is_page(level) && entry.address().is_aligned(page_bits(level)));
        assert_eq!(table::find(space, VirtAddr::new(address), 1).at, at);
        let node = at.node();
        if node.is_none() {
            assert!(space.is_sigma0());
            continue;
        }
        assert!(node.is_mapped() && node.entry() == at && node.level() == level);
        assert!(found.pages.insert(node.raw()));
    }
    used
}

/// Checks a node and everything below, without recursion: trees can be deep. (Rights are the
/// model's business: what is derived from a page that was granted with fewer rights keeps its own.)
fn check_node(root: NodeId, seen: &mut HashSet<u32>, found: &Found) {
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        assert!(seen.insert(node.raw()), "a node is reached twice");
        assert!(!node.is_mapped() || found.pages.contains(&node.raw()), "no table names the node");
        check_list(node, node.child(), node.level(), &mut open);
        if node.has_parts() {
            for piece in 0..ENTRIES {
                let list = node.part_list(piece);
                if !list.is_none() {
                    assert_eq!(index(list.address().value(), node.level() - 1), piece);
                    check_list(node, list, node.level() - 1, &mut open);
                }
            }
        }
    }
}

fn check_list(parent: NodeId, list: NodeId, level: u32, open: &mut Vec<NodeId>) {
    let mut node = list;
    while !node.is_none() {
        assert_eq!((node.parent(), node.level()), (parent, level));
        assert!(node.address().is_aligned(node.bits()));
        assert_eq!(node.address().align_down(parent.bits()), parent.address());
        assert!(!node.is_part() || node == list, "a part is first in its list");
        open.push(node);
        node = node.next();
    }
}
