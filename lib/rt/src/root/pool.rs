//! Pools: memory of a server that the devices of another server, its driver, read and write in
//! place, until either server ends. The driver does not get the memory itself.

use super::{Status, ask};
use l4::x2::ThreadId;

/// A pool: the number by which its driver asks for the memory's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pool(u64);

impl Pool {
    /// The number of the pool, as a word of a message.
    pub fn word(self) -> u64 {
        self.0
    }

    /// The pool whose number is in a message.
    pub fn from_word(word: u64) -> Pool {
        Pool(word)
    }
}

/// Lets the devices of the server of the thread `driver` use the memory at `address`: a whole
/// region of `size` bytes, as it was allocated. Until the driver has ended, the region cannot be
/// freed.
///
/// # Errors
/// `InvalidArgument`: there is no such region, or `driver` is no thread of another server.
/// `QuotaExceeded`: more than 16 pools. `NoMemory`: root's memory is short.
pub fn create(address: u64, size: u64, driver: ThreadId) -> Result<Pool, Status> {
    ask(|root| root.root_pool_create(address, size, driver.raw())).map(Pool)
}

/// Returns the physical address of the byte at `offset` of a pool whose driver this server is, and
/// how many bytes from there on are physically contiguous.
///
/// # Errors
/// `NotFound`: there is no such pool for this server. `InvalidArgument`: the pool ends before the
/// offset.
pub fn find(pool: Pool, offset: u64) -> Result<(u64, u64), Status> {
    ask(|root| root.root_pool_find(pool.0, offset))
}
