//! What the debugger shows of page tables and mapping trees. It looks at them as they are while
//! everything stands still, and stops after a bounded number of steps.
use x2::Rights;

use super::node::NodeId;
use super::space::{SpaceMemory, Translation};
use super::unmap::to_boundary;
use super::{table, tree};
use crate::arch;
use crate::arch::page_entry::{ROOT_LEVEL, index, page_bits};
use crate::memory::{PhysAddr, VirtAddr};

/// Links that are followed at most.
const MOST_STEPS: usize = 10_000;

/// The entries on the way to `address` in `space`: level and raw value, from the root down.
pub fn entries(space: SpaceMemory, address: VirtAddr) -> impl Iterator<Item = (u32, u64)> {
    let end = table::find(space, address, 1).level;
    (end..=ROOT_LEVEL).rev().map(move |level| (level, table::find(space, address, level).entry.raw()))
}

/// The page table in which the last entry on the way to `address` in `space` is.
pub fn table(space: SpaceMemory, address: VirtAddr) -> PhysAddr {
    table::find(space, address, 1).at.table().address()
}

/// The pages of `space` from `from` on, the kernel's (KIP, UTCBs) included.
pub fn pages(space: SpaceMemory, from: VirtAddr) -> impl Iterator<Item = (VirtAddr, Translation)> {
    let mut next = from;
    core::iter::from_fn(move || {
        for _ in 0..MOST_STEPS {
            if next.value() >= arch::USER_END {
                return None;
            }
            let (address, place) = (next, table::find(space, next, 1));
            next = next.offset(to_boundary(next, page_bits(place.level)));
            if let Some(translation) = space.lookup(address) {
                return Some((address.align_down(translation.page_bits), translation));
            }
        }
        None
    })
}

/// A node of a mapping tree: a space that has the memory.
pub struct Holding {
    /// How many nodes are above this one in the tree.
    pub depth: usize,
    /// log2 of the mapping's size in bytes.
    pub bits: u32,
    /// The mapping is a part of the page above, not derived from it.
    pub is_part: bool,
    /// Where it is mapped: the space's root table, the address, the rights. None for roots, and
    /// what lives on in parts.
    pub page: Option<(PhysAddr, VirtAddr, Rights)>,
}

/// All mappings that are derived from the memory at `address`, in depth-first order; empty where no
/// memory can be.
pub fn tree(address: PhysAddr) -> impl Iterator<Item = Holding> {
    let is_memory = address.value() >> tree::PHYSICAL_BITS == 0;
    let mut next = (if is_memory { tree::root(address) } else { NodeId::NONE }, 0);
    core::iter::from_fn(move || {
        let (node, depth) = next;
        if node.is_none() {
            return None;
        }
        next = following(node, depth, address);
        let page = node.is_mapped().then(|| {
            let at = node.entry();
            let root = at.table().space().memory().page_table_root();
            (root, at.virtual_address(), at.load().rights())
        });
        Some(Holding { depth, bits: node.bits(), is_part: node.is_part(), page })
    })
    .take(MOST_STEPS)
}

/// The node after `node` in depth-first order, among those that hold `address`.
fn following(mut node: NodeId, mut depth: usize, address: PhysAddr) -> (NodeId, usize) {
    let parts = |node: NodeId| {
        let below = node.level() - 1;
        if below == 0 { NodeId::NONE } else { node.part_list(index(address.value(), below)) }
    };
    let below = if node.child().is_none() { parts(node) } else { node.child() };
    if !below.is_none() {
        return (below, depth + 1);
    }
    for _ in 0..MOST_STEPS {
        if !node.next().is_none() {
            return (node.next(), depth);
        }
        let parent = node.parent();
        if parent.is_none() {
            break;
        }
        // After the children come the parts.
        let list = if parent.level() == node.level() { parts(parent) } else { NodeId::NONE };
        if !list.is_none() {
            return (list, depth);
        }
        (node, depth) = (parent, depth - 1);
    }
    (NodeId::NONE, 0)
}
