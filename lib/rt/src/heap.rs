//! The global allocator of a native program: a fixed number of bytes in its zeroed data, and what it adds later or what
//! root gives when it is needed.

use crate::root::memory::{self, LARGE_PAGE};
use core::alloc::Layout;
use l4::utcb;
use l4::x2::message::MESSAGE_REGISTERS;
use talc::{OomHandler, Span, Talc};

/// Defines the program's global allocator with a heap of so many bytes. An allocation that does not fit fails, as Rust
/// defines it: an error where the caller asks for one (`try_reserve`), else a panic.
///
/// `heap!(SIZE, grow = NAME)` also defines a function `NAME(memory: &'static mut [u8])` that adds memory to the heap, and
/// `heap!(SIZE, grow = NAME, free = NAME)` a function `NAME() -> usize` that tells how many bytes are free, in pieces of any
/// size.
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
    ($size:expr, grow = $grow:ident, free = $free:ident) => {
        $crate::heap!($size, grow = $grow);

        /// Free bytes of the program's heap.
        fn $free() -> usize {
            #[cfg(target_os = "none")]
            return $crate::heap::free(&HEAP);
            #[cfg(not(target_os = "none"))]
            usize::MAX
        }
    };
    (@allocator $size:expr, $allocator:ty, $handler:path) => {
        #[global_allocator]
        static HEAP: $allocator = {
            #[repr(C, align(4096))]
            struct Arena(::core::cell::UnsafeCell<[u8; $size]>);

            // SAFETY: only the allocator uses the array, under its lock.
            unsafe impl Sync for Arena {}

            static ARENA: Arena = Arena(::core::cell::UnsafeCell::new([0; $size]));

            // SAFETY: nothing else uses the arena.
            let arena = unsafe { $handler($crate::heap::talc::Span::from_array(ARENA.0.get())) };
            $crate::heap::talc::Talc::new(arena).lock()
        };
    };
}

/// Defines the global allocator of a server that root has started: so many bytes to begin with; what does not fit there
/// comes from root, in steps of 2 MiB or more from [`heap::GROWTH`](crate::heap::GROWTH) on, until the server's quota is
/// used up.
#[macro_export]
macro_rules! growing_heap {
    ($size:expr) => {
        #[cfg(target_os = "none")]
        const _: () = {
    $crate::heap!(@allocator $size, $crate::heap::LockedGrowing, $crate::heap::Growing::new);
        };
    };
}

/// Where heaps grow: a server that has one leaves the memory from here on to it.
pub const GROWTH: u64 = 0x6000_0000_0000;

/// How a heap grows by memory from root.
#[derive(Debug)]
pub struct Growing {
    /// The memory to begin with, until it is used.
    initial: Option<Span>,
    /// What root has given so far, from [`GROWTH`] on.
    grown: Span,
}

impl Growing {
    /// A heap that begins with `initial`.
    ///
    /// # Safety
    /// Nothing else uses the memory in `initial`, nor, in a space that root manages, that from [`GROWTH`] on.
    #[allow(unsafe_code, reason = "what else uses the memory is the caller's promise")]
    pub const unsafe fn new(initial: Span) -> Growing {
        Growing { initial: Some(initial), grown: Span::empty() }
    }
}

impl OomHandler for Growing {
    #[allow(unsafe_code, reason = "the memory is the allocator's own")]
    fn handle_oom(talc: &mut Talc<Self>, layout: Layout) -> Result<(), ()> {
        if let Some(initial) = talc.oom_handler.initial.take() {
            // SAFETY: `new`'s caller has promised that it is this heap's alone.
            return unsafe { talc.claim(initial) }.map(drop);
        }
        let begin = talc.oom_handler.grown.get_base_acme().map_or(GROWTH, |(_, end)| end as u64);
        // The allocator's own notes and the alignment need room, too.
        let needed = (layout.size() as u64).checked_add(layout.align() as u64 + 4096).ok_or(())?;
        let sizes = [LARGE_PAGE, 4096].map(|step| needed.checked_next_multiple_of(step));
        let size = sizes.into_iter().flatten().find(|&size| allocate(begin, size)).ok_or(())?;
        let more = Span::new(begin as *mut u8, (begin + size) as *mut u8);
        let grown = talc.oom_handler.grown;
        // SAFETY: root has just given the memory, which follows what it gave before.
        let grown = unsafe {
            if grown.is_empty() { talc.claim(more)? } else { talc.extend(grown, grown.fit_over(more)) }
        };
        talc.oom_handler.grown = grown;
        Ok(())
    }
}

/// Asks root for memory. The message registers stay as they are: whoever allocates may be writing or reading a message.
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

/// A growing allocator behind a spin lock, which is held while root is asked for memory.
pub type LockedGrowing = talc::Talck<spin::Mutex<()>, Growing>;

/// Adds memory to a heap; [`heap!`](crate::heap!) defines who calls it. Less than a few words are not worth it and lost.
#[allow(unsafe_code, reason = "the allocator takes memory over")]
pub fn grow(heap: &Locked, memory: &'static mut [u8]) {
    // SAFETY: the memory is nobody else's, for ever.
    let _ = unsafe { heap.lock().claim(memory.into()) };
}

/// Free bytes of a heap.
pub fn free(heap: &Locked) -> usize {
    heap.lock().get_counters().available_bytes
}

pub use talc;

/// The allocator behind a spin lock, which is held for the time of one allocation.
pub type Locked = talc::Talck<spin::Mutex<()>, talc::ClaimOnOom>;
