//! Memory that sigma0 uses itself, reached at its physical address. This module has all unsafe code
//! of sigma0's tables.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};
use l4::kip;
use sigma0::memory_map::Memory;
use sigma0::pool::{Node, State};
use x2::boot_info::BootInfo;
use x2::kip as layout;

/// Number of nodes in the initial table: enough for the descriptors of any machine, each of which
/// changes two paths of at most 52 nodes.
const INITIAL_NODES: usize = 4096;
/// Number of nodes for the pool of ports: a path down the tree for each of 100 separate ranges.
const PORT_NODES: usize = 16 * 100;
/// The larger table has one node for so many pages of memory. That is enough unless owners
/// alternate every few pages in all of memory.
const PAGES_PER_NODE: u64 = 16;

/// A table of nodes of which one reference is given out, and only once.
struct Table<const N: usize> {
    taken: AtomicBool,
    nodes: UnsafeCell<[Node; N]>,
}

// SAFETY: `claim` gives out the only pointer to the nodes.
unsafe impl<const N: usize> Sync for Table<N> {}

impl<const N: usize> Table<N> {
    const fn new() -> Self {
        Self { taken: AtomicBool::new(false), nodes: UnsafeCell::new([Node::UNUSED; N]) }
    }

    /// Gives the nodes to the first caller. Panics if it is called again.
    fn claim(&self) -> *mut [Node] {
        assert!(!self.taken.swap(true, Ordering::Relaxed), "a table is handed out once");
        self.nodes.get()
    }
}

static MEMORY_NODES: Table<INITIAL_NODES> = Table::new();
static IO_NODES: Table<PORT_NODES> = Table::new();

/// The table of nodes with which the memory pool begins.
pub(crate) fn initial_memory() -> &'static mut [Node] {
    // SAFETY: `claim` succeeds only once, so that this is the only reference.
    unsafe { &mut *MEMORY_NODES.claim() }
}

/// The table of nodes of the port pool.
pub(crate) fn ports() -> &'static mut [Node] {
    // SAFETY: `claim` succeeds only once, so that this is the only reference.
    unsafe { &mut *IO_NODES.claim() }
}

/// Moves the pool to a table in proportion to the machine's memory, which is taken from that
/// memory. If there is no free block large enough, the pool stays where it is.
pub(crate) fn enlarge(mut memory: Memory<'static>) -> Memory<'static> {
    let pages = memory.count(|state| state == State::Conventional);
    let bytes = (pages / PAGES_PER_NODE).saturating_mul(size_of::<Node>() as u64);
    if bytes <= size_of::<[Node; INITIAL_NODES]>() as u64 {
        return memory;
    }
    let order = bytes.next_power_of_two().ilog2();
    let Ok(Some(base)) = memory.take_any(order, kip().sigma0()) else { return memory };
    let count = (1usize << order) / size_of::<Node>();
    let table = base as *mut Node;
    // SAFETY: the pool gave this block to sigma0 and gives it to no other thread. The kernel maps
    // it at its physical address when it is touched. `base` is page-aligned and not null, and every
    // element is written before the slice exists.
    let nodes = unsafe {
        for index in 0..count {
            table.add(index).write(Node::UNUSED);
        }
        core::slice::from_raw_parts_mut(table, count)
    };
    memory.moved_to(nodes)
}

/// Calls `read` with the boot info, if there is one.
pub(crate) fn with_boot_info<R>(read: impl FnOnce(BootInfo<'_>) -> R) -> Option<R> {
    /// Upper bound of the size of boot info in bytes: more than any loader writes.
    const LARGEST: u64 = 1 << 20;
    let address = kip().word(layout::BOOT_INFO);
    if address == 0 || !address.is_multiple_of(8) || address >= 1 << 47 {
        return None;
    }
    // SAFETY: the kernel says that boot info is at this address. No other thread has been given the
    // memory yet, and nothing writes to it. A header lies within the first page.
    let header = unsafe { core::slice::from_raw_parts(address as *const u8, x2::boot_info::HEADER_SIZE) };
    let size = BootInfo::announced_size(header)?;
    if size > LARGEST {
        return None;
    }
    // SAFETY: boot info is at this address, unchanged, and its header says that it has this size.
    let bytes = unsafe { core::slice::from_raw_parts(address as *const u8, size as usize) };
    BootInfo::new(bytes).map(read)
}
