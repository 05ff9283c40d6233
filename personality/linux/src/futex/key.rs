//! The identity of futex words, and access to them.

use core::future::Future;
use unix::Result;

/// The identity of a futex word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// The word is in private memory of one address space.
    Private {
        /// A number of the address space.
        space: u64,
        /// The word's address.
        address: u64,
    },
    /// The word is in a memory object that several address spaces may map.
    Shared {
        /// A number of the memory object.
        object: u64,
        /// Offset of the word in the memory object, in bytes.
        offset: u64,
    },
}

/// The words of one address space. Addresses must be multiples of 4, or of 8 for `load_u64`.
pub(crate) trait Words: Sync {
    /// The identity of the word at `address`. The map is searched only for a `shared` word; a word
    /// that is not in shared memory has the private identity in any case. `EFAULT`.
    fn key(&self, address: u64, shared: bool) -> impl Future<Output = Result<Key>> + Send;

    /// Reads a futex word atomically. `EFAULT`.
    fn load(&self, address: u64) -> impl Future<Output = Result<u32>> + Send;

    /// Replaces a word atomically if it is `current`; otherwise the inner `Err` has its value.
    /// `EFAULT`.
    fn exchange(
        &self,
        address: u64,
        current: u32,
        new: u32,
    ) -> impl Future<Output = Result<Result<u32, u32>>> + Send;

    /// Reads a word of 64 bits (a pointer of a list). `EFAULT`.
    fn load_u64(&self, address: u64) -> impl Future<Output = Result<u64>> + Send;
}
