//! Which word a futex is, and access to words.

use core::future::Future;
use unix::Result;

/// The identity of a word that can be waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// A word of one address space.
    Private {
        /// The address space.
        space: u64,
        /// The word's address.
        address: u64,
    },
    /// A word of an object that several address spaces may map.
    Shared {
        /// The object.
        object: u64,
        /// The word's offset in the shared object.
        offset: u64,
    },
}

/// The words of one address space. Addresses are multiples of 4, or of 8 for `load_u64`; callers
/// check.
pub(crate) trait Words: Sync {
    /// The identity of the word at `address`. `shared` words are looked up in the map; private ones
    /// need not be, and words that are not mapped shared have the private identity either way.
    /// `EFAULT`.
    fn key(&self, address: u64, shared: bool) -> impl Future<Output = Result<Key>> + Send;

    /// Reads a futex word atomically. `EFAULT`.
    fn load(&self, address: u64) -> impl Future<Output = Result<u32>> + Send;

    /// Replaces a word atomically if it is `current`; `Err` inside tells what it was. `EFAULT`.
    fn exchange(
        &self,
        address: u64,
        current: u32,
        new: u32,
    ) -> impl Future<Output = Result<Result<u32, u32>>> + Send;

    /// Reads a double word (for lists of pointers). `EFAULT`.
    fn load_u64(&self, address: u64) -> impl Future<Output = Result<u64>> + Send;
}
