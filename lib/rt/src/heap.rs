//! The global allocator of a native program: a fixed number of bytes in its zeroed data, and what it adds later.

/// Defines the program's global allocator with a heap of so many bytes. An allocation that does not fit fails, as Rust
/// defines it: an error where the caller asks for one (`try_reserve`), else a panic.
///
/// `heap!(SIZE, grow = NAME)` also defines a function `NAME(memory: &'static mut [u8])` that adds memory to the heap.
#[macro_export]
macro_rules! heap {
    ($size:expr) => {
        #[cfg(target_os = "none")]
        const _: () = {
            $crate::heap!(@allocator $size);
        };
    };
    ($size:expr, grow = $grow:ident) => {
        #[cfg(target_os = "none")]
        $crate::heap!(@allocator $size);

        /// Adds memory to the program's heap.
        fn $grow(memory: &'static mut [u8]) {
            #[cfg(target_os = "none")]
            $crate::heap::grow(&HEAP, memory);
            #[cfg(not(target_os = "none"))]
            let _ = memory;
        }
    };
    (@allocator $size:expr) => {
        #[global_allocator]
        static HEAP: $crate::heap::Locked = {
            #[repr(C, align(4096))]
            struct Arena(::core::cell::UnsafeCell<[u8; $size]>);

            // SAFETY: only the allocator uses the array, under its lock.
            unsafe impl Sync for Arena {}

            static ARENA: Arena = Arena(::core::cell::UnsafeCell::new([0; $size]));

            // SAFETY: nothing else uses the arena.
            let arena = unsafe {
                $crate::heap::talc::ClaimOnOom::new($crate::heap::talc::Span::from_array(ARENA.0.get()))
            };
            $crate::heap::talc::Talc::new(arena).lock()
        };
    };
}

/// Adds memory to a heap; [`heap!`](crate::heap!) defines who calls it. Less than a few words are not worth it and lost.
#[allow(unsafe_code, reason = "the allocator takes memory over")]
pub fn grow(heap: &Locked, memory: &'static mut [u8]) {
    // SAFETY: the memory is nobody else's, for ever.
    let _ = unsafe { heap.lock().claim(memory.into()) };
}

pub use talc;

/// The allocator behind a spin lock, which is held for the time of one allocation.
pub type Locked = talc::Talck<spin::Mutex<()>, talc::ClaimOnOom>;
