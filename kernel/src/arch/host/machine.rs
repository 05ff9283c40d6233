//! The simulated machine: its memory, and the one test at a time that owns it.
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use x2::Rights;

use super::{interrupts, tlb};
use crate::arch::page_entry;
use crate::memory::{self, PAGE_SIZE, PhysAddr, PhysRange, VirtAddr, injection, node};

static OWNER: Mutex<()> = Mutex::new(());
/// Address of the host's memory that stands for physical address [`MEMORY_START`].
static ARENA: AtomicUsize = AtomicUsize::new(0);
/// How many machines have been made.
static MACHINES: AtomicU32 = AtomicU32::new(0);
/// Physical address of the memory that the model backs: the kernel's. Users' memory has addresses,
/// but no contents.
const MEMORY_START: u64 = 0x0100_0000;

/// The machine. While it exists, no other test has one.
pub struct Machine {
    layout: Layout,
    allocation: *mut u8,
    _owner: MutexGuard<'static, ()>,
}

impl Machine {
    /// A machine with `kernel_memory` bytes of kernel memory at [`MEMORY_START`], given to
    /// [`memory::init`].
    pub fn new(kernel_memory: u64) -> Self {
        let owner = OWNER.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // The memory is aligned here: with an alignment above the allocator's own, `alloc_zeroed`
        // writes to all of the memory, of which most tests touch little.
        let layout = Layout::array::<u8>((kernel_memory + PAGE_SIZE) as usize).expect("a sane size");
        // SAFETY: the layout has a size above 0.
        let allocation = unsafe { alloc_zeroed(layout) };
        assert!(!allocation.is_null());
        ARENA.store((allocation as usize).next_multiple_of(PAGE_SIZE as usize), Ordering::Relaxed);
        MACHINES.fetch_add(1, Ordering::Relaxed);
        tlb::reset();
        page_entry::configure(true, true);
        interrupts::script(0, 1);
        injection::fail_nth(0);
        // SAFETY: the arena, the allocation's whole pages, is new, and reached through
        // `phys_to_virt` from now on.
        unsafe { memory::init(&node::Layout::one(Self::kernel_memory(kernel_memory))) };
        Self { layout, allocation, _owner: owner }
    }

    fn kernel_memory(size: u64) -> PhysRange {
        PhysRange::new(PhysAddr::new(MEMORY_START), PhysAddr::new(MEMORY_START + size))
    }

    /// From now on one poll in `one_in` finds an interrupt pending, chosen by `seed` (0: none
    /// does).
    pub fn interrupts(&self, seed: u64, one_in: u64) {
        interrupts::script(seed, one_in);
    }

    /// A user of the space with this root table reads, writes or executes at `address`: the
    /// physical address that it reaches, or `None` for a page fault. Panics if the access used a
    /// translation that should be gone.
    pub fn access(&self, root: PhysAddr, address: VirtAddr, right: Rights) -> Option<PhysAddr> {
        tlb::access(root, address, right)
    }

    /// The space with this root table was deleted: its translations will never be used again.
    pub fn forget(&self, root: PhysAddr) {
        tlb::forget_root(root);
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout. Kernel objects of the test are not used
        // after its machine.
        unsafe { dealloc(self.allocation, self.layout) };
    }
}

/// Whether the machine is a model, of which there are many in turn.
pub const IS_MODEL: bool = true;

/// Which machine this is: statics that describe an earlier one are void. (On hardware a constant.)
pub fn machine() -> u32 {
    MACHINES.load(Ordering::Relaxed)
}

/// The address at which the kernel reaches a physical address of its memory.
#[inline]
pub fn phys_to_virt(address: PhysAddr) -> *mut u8 {
    (ARENA.load(Ordering::Relaxed) + (address.value() - MEMORY_START) as usize) as *mut u8
}

/// The inverse of [`phys_to_virt`].
#[inline]
pub fn virt_to_phys<T>(pointer: *const T) -> PhysAddr {
    PhysAddr::new((pointer as usize - ARENA.load(Ordering::Relaxed)) as u64 + MEMORY_START)
}

/// The entries of the kernel half that every space shares: none here.
pub fn kernel_half() -> &'static [u64; 256] {
    &[0; 256]
}
