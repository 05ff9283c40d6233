//! Memory that sigma0 uses itself, reached at its physical address: the only unsafe code of sigma0.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};
use l4::kip;
use sigma0::memory_map::Memory;
use sigma0::pool::{Node, State};
use x2::boot_info::BootInfo;
use x2::kip as layout;

/// Enough for the descriptors of any machine: each changes two paths of at most 52 nodes.
const INITIAL_NODES: usize = 4096;
/// Nodes for the port pool: a path down the tree for each of 100 separate ranges.
const PORT_NODES: usize = 16 * 100;
/// One node for so many pages of memory: enough unless owners alternate every few pages all over
/// it.
const PAGES_PER_NODE: u64 = 16;

/// A table that is handed out once.
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

    /// The nodes, for the one caller that may use them.
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

/// Moves the pool to a table in proportion to the machine's memory, taken from that memory. Without
/// a free block large enough it stays where it is.
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
    // SAFETY: the pool gave this block to sigma0 and gives it to no other thread; the kernel maps
    // it at its physical address when it is touched; `base` is page-aligned and not null, and every
    // element is written before the slice exists.
    let nodes = unsafe {
        for index in 0..count {
            table.add(index).write(Node::UNUSED);
        }
        core::slice::from_raw_parts_mut(table, count)
    };
    memory.moved_to(nodes)
}

/// Reads the boot info, if there is one.
pub(crate) fn with_boot_info<R>(read: impl FnOnce(BootInfo<'_>) -> R) -> Option<R> {
    /// More bytes of boot info than any loader writes.
    const LARGEST: u64 = 1 << 20;
    let address = kip().word(layout::BOOT_INFO);
    if address == 0 || !address.is_multiple_of(8) || address >= 1 << 47 {
        return None;
    }
    // SAFETY: the kernel says that boot info is there, which no other thread has been given yet and
    // nothing changes; a header lies within the first page.
    let header = unsafe { core::slice::from_raw_parts(address as *const u8, x2::boot_info::HEADER_SIZE) };
    let size = BootInfo::announced_size(header)?;
    if size > LARGEST {
        return None;
    }
    // SAFETY: as before; the header says that it is so long.
    let bytes = unsafe { core::slice::from_raw_parts(address as *const u8, size as usize) };
    BootInfo::new(bytes).map(read)
}
