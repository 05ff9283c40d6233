//! The global allocator of a native program: a fixed number of bytes in its zeroed data.

/// Defines the program's global allocator with a heap of so many bytes. An allocation that does not fit fails, as Rust
/// defines it: an error where the caller asks for one (`try_reserve`), else a panic.
#[macro_export]
macro_rules! heap {
    ($size:expr) => {
        #[cfg(target_os = "none")]
        const _: () = {
            #[repr(C, align(4096))]
            struct Arena(::core::cell::UnsafeCell<[u8; $size]>);

            // SAFETY: only the allocator uses the array, under its lock.
            unsafe impl Sync for Arena {}

            static ARENA: Arena = Arena(::core::cell::UnsafeCell::new([0; $size]));

            #[global_allocator]
            static HEAP: $crate::heap::Locked = {
                // SAFETY: nothing else uses the arena.
                let grow = unsafe {
                    $crate::heap::talc::ClaimOnOom::new($crate::heap::talc::Span::from_array(ARENA.0.get()))
                };
                $crate::heap::talc::Talc::new(grow).lock()
            };
        };
    };
}

pub use talc;

/// The allocator behind a spin lock, which is held for the time of one allocation.
pub type Locked = talc::Talck<spin::Mutex<()>, talc::ClaimOnOom>;
