//! The global allocator of a native program: a fixed number of bytes in its zeroed data, and memory
//! that the program adds or root gives later.

mod borrowing;
mod size_classes;

pub use borrowing::{Borrowing, Extent, Lender, Locked as LockedBorrowing};
pub use size_classes::SizeClassCache;

use crate::root::memory::{self, LARGE_PAGE};
use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicUsize, Ordering};
use l4::utcb;
use l4::x2::message::MESSAGE_REGISTERS;
use talc::{OomHandler, Span, Talc};

/// Defines the program's global allocator with a heap of `SIZE` bytes. An allocation that does not
/// fit fails, as Rust defines it: an error where the caller asks for one (`try_reserve`), else a
/// panic.
///
/// `heap!(SIZE, grow = NAME)` also defines a function `NAME(memory: &'static mut [u8])` that adds
/// memory to the heap, and `heap!(SIZE, grow = NAME, borrowing = NAME)` a function `NAME() ->
/// Option<&'static Keeping>` that returns the heap itself, which can borrow memory and keep some
/// for small allocations ([`Keeping`]). In host builds it returns `None`.
#[macro_export]
macro_rules! heap {
    ($size:expr) => {
        #[cfg(target_os = "none")]
        const _: () = {
            $crate::heap!(@allocator $size, $crate::heap::Locked, $crate::heap::talc::ClaimOnOom::new);
        };
    };
    ($size:expr, grow = $grow:ident) => {
        #[cfg(target_os = "none")]
        $crate::heap!(@allocator $size, $crate::heap::Locked, $crate::heap::talc::ClaimOnOom::new);

        /// Adds memory to the program's heap.
        fn $grow(memory: &'static mut [u8]) {
            #[cfg(target_os = "none")]
            $crate::heap::grow(&HEAP, memory);
            #[cfg(not(target_os = "none"))]
            let _ = memory;
        }
    };
    ($size:expr, grow = $grow:ident, borrowing = $heap:ident) => {
        #[cfg(target_os = "none")]
        $crate::heap!(
            @allocator $size, $crate::heap::Keeping, $crate::heap::Borrowing::new, $crate::heap::Keeping::new
        );

        /// Adds memory to the program's heap.
        fn $grow(memory: &'static mut [u8]) {
            #[cfg(target_os = "none")]
            HEAP.grow(memory);
            #[cfg(not(target_os = "none"))]
            let _ = memory;
        }

        /// Returns the program's heap.
        fn $heap() -> Option<&'static $crate::heap::Keeping> {
            #[cfg(target_os = "none")]
            return Some(&HEAP);
            #[cfg(not(target_os = "none"))]
            None
        }
    };
    (@allocator $size:expr, $allocator:ty, $handler:path) => {
        $crate::heap!(@allocator $size, $allocator, $handler, ::core::convert::identity);
    };
    (@allocator $size:expr, $allocator:ty, $handler:path, $wrap:path) => {
        #[global_allocator]
        static HEAP: $allocator = {
            #[repr(C, align(4096))]
            struct Arena(::core::cell::UnsafeCell<[u8; $size]>);

            // SAFETY: only the allocator uses the array, with its lock held.
            unsafe impl Sync for Arena {}

            static ARENA: Arena = Arena(::core::cell::UnsafeCell::new([0; $size]));

            // SAFETY: only the allocator uses the arena.
            let arena = unsafe { $handler($crate::heap::talc::Span::from_array(ARENA.0.get())) };
            $wrap($crate::heap::SizeClassCache::new($crate::heap::talc::Talc::new(arena).lock()))
        };
    };
}

/// Defines the global allocator of a server that root has started. It has `SIZE` bytes at first;
/// when these are used up it gets memory from root, in steps of 2 MiB or more, at addresses from
/// [`heap::GROWTH`](crate::heap::GROWTH) on, until the server's quota is used up.
#[macro_export]
macro_rules! growing_heap {
    ($size:expr) => {
        #[cfg(target_os = "none")]
        const _: () = {
    $crate::heap!(@allocator $size, $crate::heap::LockedGrowing, $crate::heap::Growing::new);
        };
    };
}

/// The address at which heaps grow. A server whose heap grows uses no addresses from here on for
/// other purposes.
pub const GROWTH: u64 = 0x6000_0000_0000;

/// The way in which a heap grows by memory from root.
#[derive(Debug)]
pub struct Growing {
    /// The first memory of the heap, until the allocator has claimed it.
    initial: Option<Span>,
    /// The memory that root has given so far, from [`GROWTH`] on.
    grown: Span,
}

impl Growing {
    /// A heap that begins with `initial`.
    ///
    /// # Safety
    /// No other code may use the memory in `initial` nor, in a space that root manages, the memory
    /// from [`GROWTH`] on.
    #[allow(unsafe_code, reason = "what else uses the memory is the caller's promise")]
    pub const unsafe fn new(initial: Span) -> Growing {
        Growing { initial: Some(initial), grown: Span::empty() }
    }
}

impl OomHandler for Growing {
    #[allow(unsafe_code, reason = "the memory is the allocator's own")]
    fn handle_oom(talc: &mut Talc<Self>, layout: Layout) -> Result<(), ()> {
        if let Some(initial) = talc.oom_handler.initial.take() {
            // SAFETY: the caller of `new` has promised that only this heap uses the memory.
            return unsafe { talc.claim(initial) }.map(drop);
        }
        let begin = talc.oom_handler.grown.get_base_acme().map_or(GROWTH, |(_, end)| end as u64);
        // The allocator's bookkeeping and the alignment need room, too.
        let needed = (layout.size() as u64).checked_add(layout.align() as u64 + 4096).ok_or(())?;
        let sizes = [LARGE_PAGE, 4096].map(|step| needed.checked_next_multiple_of(step));
        let size = sizes.into_iter().flatten().find(|&size| allocate(begin, size)).ok_or(())?;
        let more = Span::new(begin as *mut u8, (begin + size) as *mut u8);
        let grown = talc.oom_handler.grown;
        // SAFETY: root has just given the memory, which follows the memory that it gave before.
        let grown = unsafe {
            if grown.is_empty() { talc.claim(more)? } else { talc.extend(grown, grown.fit_over(more)) }
        };
        talc.oom_handler.grown = grown;
        Ok(())
    }
}

/// Requests memory from root. The message registers are preserved, because the code that allocates
/// may be reading or writing a message.
fn allocate(address: u64, size: u64) -> bool {
    let registers: [u64; MESSAGE_REGISTERS] = core::array::from_fn(utcb::message_register);
    let error = utcb::error_word();
    let given = memory::allocate(address, size).is_ok();
    for (index, &word) in registers.iter().enumerate() {
        utcb::set_message_register(index, word);
    }
    utcb::set_error_word(error);
    given
}

/// A growing allocator with a spin lock, which is held while root is asked for memory.
pub type LockedGrowing = SizeClassCache<talc::Talck<spin::Mutex<()>, Growing>>;

/// Adds memory to a heap. [`heap!`](crate::heap!) defines the function that calls it. A piece that
/// is too small for the allocator is ignored.
#[allow(unsafe_code, reason = "the allocator takes memory over")]
pub fn grow(heap: &Locked, memory: &'static mut [u8]) {
    // SAFETY: no other code ever uses this memory.
    let _ = unsafe { heap.below().lock().claim(memory.into()) };
}

pub use talc;

/// The allocator with a spin lock, which is held for the time of one allocation.
pub type Locked = SizeClassCache<talc::Talck<spin::Mutex<()>, talc::ClaimOnOom>>;

/// The size in bytes from which on an allocation is large.
pub const LARGE: usize = 64 << 10;

/// An allocator that [borrows](Keeping::borrow_from) memory, and refuses large allocations
/// ([`LARGE`]) which would leave less than a part of it that is kept for small ones. If all large
/// allocations of a server can fail (`try_reserve`), a request that needs too much memory gets an
/// error, and small allocations for other requests still succeed.
pub struct Keeping {
    heap: LockedBorrowing,
    kept: AtomicUsize,
}

impl Keeping {
    /// An allocator on top of `heap` that keeps no bytes yet.
    pub const fn new(heap: LockedBorrowing) -> Keeping {
        Keeping { heap, kept: AtomicUsize::new(0) }
    }

    /// The allocator below this one.
    pub fn heap(&self) -> &LockedBorrowing {
        &self.heap
    }

    /// Adds memory, which is never given back.
    #[allow(unsafe_code, reason = "the allocator takes memory over")]
    pub fn grow(&self, memory: &'static mut [u8]) {
        // SAFETY: no other code ever uses this memory.
        let _ = unsafe { self.heap.below().lock().claim(memory.into()) };
    }

    /// Sets how many bytes large allocations must leave free.
    pub fn keep(&self, bytes: usize) {
        // Relaxed: the number guards no other data.
        self.kept.store(bytes, Ordering::Relaxed);
    }

    fn refuses(&self, size: usize) -> bool {
        if size < LARGE {
            return false;
        }
        let Extent { free, obtainable, .. } = self.extent();
        free.saturating_add(obtainable).saturating_sub(size) < self.kept.load(Ordering::Relaxed)
    }
}

// SAFETY: allocations that are not refused are made by the allocator below, which fulfils the
// contract of `GlobalAlloc`. A refusal is a null pointer.
#[allow(unsafe_code, reason = "an allocator")]
unsafe impl GlobalAlloc for Keeping {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if self.refuses(layout.size()) {
            return core::ptr::null_mut();
        }
        // SAFETY: the caller keeps this function's contract.
        unsafe { self.heap.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps this function's contract.
        unsafe { self.heap.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // The block may have to move, and then the old and the new block exist at the same time for
        // a while.
        if size > layout.size() && self.refuses(size) {
            return core::ptr::null_mut();
        }
        // SAFETY: the caller keeps this function's contract.
        unsafe { self.heap.realloc(pointer, layout, size) }
    }
}

#[cfg(test)]
#[allow(unsafe_code, reason = "allocates by hand")]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    #[test]
    fn large_allocations_leave_what_is_kept() {
        let arena = vec![0u8; 1 << 20].leak();
        // SAFETY: nothing else uses the memory.
        let arena = unsafe { Borrowing::new(Span::from(arena)) };
        let keeping = Keeping::new(SizeClassCache::new(Talc::new(arena).lock()));
        // The first allocation claims the arena. SAFETY: the layout has bytes.
        assert!(!unsafe { keeping.alloc(Layout::new::<u64>()) }.is_null());
        keeping.keep(256 << 10);
        let layout = |size| Layout::from_size_align(size, 16).expect("a layout");
        // SAFETY: each layout has bytes, and no block is used after it was freed.
        unsafe {
            let first = keeping.alloc(layout(512 << 10));
            assert!(!first.is_null());
            assert!(keeping.alloc(layout(512 << 10)).is_null(), "as much as is there");
            assert!(keeping.alloc(layout(300 << 10)).is_null(), "leaves less than is kept");
            assert!(keeping.realloc(first, layout(512 << 10), 700 << 10).is_null());
            let small: Vec<_> = (0..300).map(|_| keeping.alloc(layout(1 << 10))).collect();
            assert!(small.iter().all(|pointer| !pointer.is_null()), "small ones get the part that is kept");
            small.into_iter().for_each(|pointer| keeping.dealloc(pointer, layout(1 << 10)));
            keeping.dealloc(first, layout(512 << 10));
            assert!(!keeping.alloc(layout(700 << 10)).is_null(), "what was given back counts");
        }
    }
}
