//! Kernel memory (K4): frames, packed objects, the accounts that pay for them, and what happens
//! when there is none.
//!
//! | file | what |
//! |------|------|
//! | `address` | physical and virtual addresses as types |
//! | `frame` | 4 KiB frames of the memory that boot set aside, and what is known about each |
//! | `slab` | objects of one size, packed into frames |
//! | `account`, `counters` | limits on what a space, or a group of spaces, may use |
//! | `reservation` | a system call's worst case, taken before its first state change |
//! | `node` | several nodes of memory: which one serves an allocation |
//! | `injection`, `detour` | tests make the n-th allocation fail; what is unusual, asked in one place |
//!
//! All kernel memory is reached through the direct map, by its physical address; kernel objects
//! therefore name each other by 32-bit indices (a physical address divided by the object's
//! alignment). It must lie below [`REGION_LIMIT`].
//!
//! Nothing here panics for lack of memory: [`OutOfMemory`] is a value that ends up with the caller
//! whose quota, or whose wish, was too big.
pub mod account;
pub mod address;
pub mod counters;
mod detour;
pub mod frame;
pub mod injection;
pub mod node;
pub mod reservation;
pub mod slab;

pub use account::Account;
pub use address::{PAGE_BITS, PAGE_SIZE, PhysAddr, PhysRange, VirtAddr};
pub use frame::{Frame, Statistics, Use, statistics};
pub use reservation::Reservation;
pub(crate) use slab::FastSlab;
pub use slab::{CLEARED, ObjectSlab, Reserved, Slab};

/// No kernel memory: the account's limit is reached, or the machine has none left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfMemory;

/// Kernel memory lies below this physical address, so that 28-bit indices of 32-byte map nodes
/// reach all of it.
pub const REGION_LIMIT: u64 = 8 << 30;

/// Makes the pieces of `layout` the kernel's memory.
///
/// # Safety
/// They are mapped writable in the direct map, nothing else uses them, and this is the first call
/// (on the host: the first since the machine was made).
pub unsafe fn init(layout: &node::Layout) {
    // SAFETY: the caller keeps this function's contract.
    unsafe {
        node::init(layout);
        frame::init(layout);
    }
    account::init();
}

#[cfg(test)]
mod tests;
