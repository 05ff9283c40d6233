//! The forest of mappings: one tree for each GiB of physical memory, rooted in sigma0's holding of
//! it.
//!
//! sigma0 holds all memory but the kernel's. Its holding of one GiB is a root node, made when
//! something is first derived from it and freed with the last such mapping. A directory finds the
//! root; its arrays, one for each 512 GiB that was ever mapped, stay.
//!
//! The tree lock of a GiB covers its root's place in the directory, all nodes of the tree, and the
//! page-table entries that map them. Lock order: tree, then space. Locks are shared by GiBs that
//! are 64 apart.
use core::cell::Cell;

use x2::Rights;

use super::changes::Changes;
use super::memory_type;
use super::node::{NodeId, Status, alloc_array, array_words};
use super::ports::PORT_BASE;
use super::spare;
use super::table;
use super::walk;
use crate::arch::page_entry::{ENTRIES, PageEntry, effective, index, page_bits};
use crate::memory::{Account, OutOfMemory, PhysAddr, PhysRange};
use crate::sync::{InnerLock, InnerLockGuard, SpinLock};

/// Level of the roots: 1 GiB.
pub(super) const TREE_LEVEL: u32 = 3;
/// log2 of the physical addresses that can be mapped to users: node fields hold 32-bit frame
/// numbers. The last GiB are I/O ports.
pub(super) const PHYSICAL_BITS: u32 = 44;
const DIRECTORY: usize = 1 << (PHYSICAL_BITS - page_bits(TREE_LEVEL + 1));

/// Arrays of roots, for 512 GiB each; 0 = none yet. Written once each.
static ROOTS: SpinLock<[u32; DIRECTORY]> = SpinLock::new([0; DIRECTORY]);

const LOCKS: usize = 64;
static LOCK: [InnerLock; LOCKS] = [const { InnerLock::new() }; LOCKS];

/// How many ranges the kernel can keep for itself.
const MAX_RESERVED: usize = 32;

struct Reserved {
    ranges: [PhysRange; MAX_RESERVED],
    count: usize,
}

/// The kernel's memory ranges; written once at boot.
static RESERVED: SpinLock<Reserved> = SpinLock::new(Reserved {
    ranges: [PhysRange::new(PhysAddr::new(0), PhysAddr::new(0)); MAX_RESERVED],
    count: 0,
});

/// Says what physical memory (and device registers) sigma0 never gets: the kernel's image, its
/// memory, the interrupt controllers. Call once, before the first space is made.
///
/// # Panics
/// If there are more than 32 ranges: the boot code merges them.
pub fn init(reserved: &[PhysRange]) {
    *ROOTS.lock() = [0; DIRECTORY];
    memory_type::init();
    table::init();
    spare::init();
    walk::init();
    let mut state = RESERVED.lock();
    state.ranges[..reserved.len()].copy_from_slice(reserved);
    state.count = reserved.len();
}

/// Locks the tree of the memory at `address`.
#[inline]
pub(super) fn lock(address: PhysAddr) -> InnerLockGuard<'static> {
    LOCK[(address.value() >> page_bits(TREE_LEVEL)) as usize % LOCKS].lock()
}

/// If part of `start..start + 2^bits` is the kernel's, or does not exist: the end of that part,
/// exclusive.
pub(super) fn reserved_in(start: PhysAddr, bits: u32) -> Option<PhysAddr> {
    let end = start.offset(1 << bits);
    if end.value() > PORT_BASE {
        return Some(PhysAddr::new(u64::MAX));
    }
    let block = PhysRange::new(start, end);
    let reserved = RESERVED.lock();
    reserved.ranges[..reserved.count].iter().find(|range| range.overlaps(block)).map(|range| range.end)
}

/// The root of the tree for `address`, if anything is derived from it. Under the tree lock.
pub(super) fn root(address: PhysAddr) -> NodeId {
    match ROOTS.lock()[index(address.value(), TREE_LEVEL + 1)] {
        0 => NodeId::NONE,
        array => NodeId::from_raw(root_word(array, address).get()),
    }
}

/// The part of sigma0's holding that small pages at `address` are derived from, or what there is
/// above it; none: not even the root. Under the tree lock.
pub(super) fn root_for_small_pages(address: PhysAddr) -> NodeId {
    let root = root(address);
    if root.is_none() {
        return root;
    }
    let head = root.part_list(index(address.value(), TREE_LEVEL - 1));
    if !head.is_none() && head.is_part() { head } else { root }
}

fn root_word(array: u32, address: PhysAddr) -> &'static Cell<u32> {
    &array_words(array)[index(address.value(), TREE_LEVEL)]
}

/// The root of the tree for `address`, made on the account of sigma0 if there is none. Under the
/// tree lock.
pub(super) fn make_root(address: PhysAddr, sigma0: Account) -> Result<NodeId, OutOfMemory> {
    let array = {
        let mut roots = ROOTS.lock();
        let place = &mut roots[index(address.value(), TREE_LEVEL + 1)];
        if *place == 0 {
            *place = alloc_array(Account::KERNEL)?;
        }
        *place
    };
    let word = root_word(array, address);
    if word.get() == 0 {
        let root = NodeId::alloc(sigma0, TREE_LEVEL)?;
        root.clear_entry(address.align_down(page_bits(TREE_LEVEL)));
        word.set(root.raw());
    }
    Ok(NodeId::from_raw(word.get()))
}

/// Where to put a holding of `level` at `address` that is derived from `node`: under `node` itself,
/// or under a part of it, made on `account`. If it stays unused, [`release`] frees what was made;
/// on failure that has been done.
#[inline]
pub(super) fn anchor(
    mut node: NodeId,
    address: PhysAddr,
    level: u32,
    account: Account,
) -> Result<NodeId, OutOfMemory> {
    while node.level() > level {
        match step_down(node, address, level, account) {
            Ok(below) if below == node => break,
            Ok(below) => node = below,
            Err(error) => {
                release(node);
                return Err(error);
            }
        }
    }
    Ok(node)
}

/// The part of `node` at `address`, made if necessary; `node` itself if its list is the right
/// place.
#[inline]
fn step_down(node: NodeId, address: PhysAddr, level: u32, account: Account) -> Result<NodeId, OutOfMemory> {
    node.make_parts(account)?;
    let below = node.level() - 1;
    if below == level {
        return Ok(node);
    }
    let head = node.part_list(index(address.value(), below));
    if !head.is_none() && head.is_part() {
        return Ok(head);
    }
    let part = NodeId::alloc(account, below)?;
    let start = address.align_down(page_bits(below));
    part.clear_entry(start);
    part.link(node, start, true);
    Ok(part)
}

/// Whether `node` is derived from what `source`, a page at the same memory, is or is a part of. As
/// the mapped parts of a holding do not overlap, the node's parent is then just that page.
pub(super) fn is_derived(node: NodeId, source: NodeId) -> bool {
    let parent = node.holding().parent();
    !parent.is_none() && parent.holding() == source.holding()
}

/// Frees `node` if it stands for nothing any more, then what stood only for it above. That is at
/// most one part for each level: where more is void, because a removal is on its way down, the walk
/// stands at the end, and frees it step by step.
pub(super) fn release(mut node: NodeId) {
    while is_void(node) && !(node.is_watched() && walk::stands_on(node)) {
        let parent = node.parent();
        free(node);
        if parent.is_none() {
            return;
        }
        node = parent;
    }
}

/// Frees an ordinary small page's node, from which nothing is derived: its entry is `gone`. Also
/// frees what stood only for it above. Returns what the holder had not seen of the page's use.
#[inline(always)]
pub(super) fn free_plain(node: NodeId, gone: PageEntry) -> Rights {
    let address = gone.address();
    if node.is_watched() {
        node.clear_entry(address);
        node.add_status(Status::fresh(gone.status()));
        walk::node_goes(node);
    }
    let status = node.status_with(gone.status());
    let parent = node.leave_parent(address, status);
    node.free_small();
    if !parent.is_mapped() && parent.is_leaf() {
        release(parent);
    }
    status.mine()
}

/// Like [`release`], but stops before it frees `kept`.
pub(super) fn release_below(mut node: NodeId, kept: NodeId) {
    while node != kept && is_void(node) {
        let parent = node.parent();
        free(node);
        if parent.is_none() {
            return;
        }
        node = parent;
    }
}

/// Whether `node` maps nothing, has nothing below it, and need not keep the status of a piece of a
/// large page.
#[inline]
pub(super) fn is_void(node: NodeId) -> bool {
    !node.is_mapped() && node.is_leaf() && !(node.is_part() && node.parent().is_mapped())
}

/// Takes a node that maps nothing out of the tree.
pub(super) fn free(node: NodeId) {
    if node.is_watched() {
        walk::node_goes(node);
    }
    if node.parent().is_none() {
        let address = node.address();
        let array = ROOTS.lock()[index(address.value(), TREE_LEVEL + 1)];
        root_word(array, address).set(0);
    } else {
        if node.level() > 1 {
            node.collect_parts(0, ENTRIES - 1, Rights::NONE);
        }
        node.notify_parent();
        node.unlink();
    }
    node.free();
}

/// Removes the page that maps `node`; the node stays, unmapped, with the page's status.
#[inline]
pub(super) fn unmap(node: NodeId, changes: &mut Changes) {
    let entry = node.entry().remove(changes);
    node.clear_entry(entry.address().align_down(node.bits()));
    node.add_status(Status::fresh(entry.status()));
}

/// The rights that `wanted` comes to for a holder of `held` (X.2 rule 7.34): those of both, and
/// what the processor cannot forbid with them.
#[inline]
pub(super) fn granted(wanted: Rights, held: Rights) -> Rights {
    let rights = wanted.and(held);
    if rights.is_none() { rights } else { effective(rights) }
}
