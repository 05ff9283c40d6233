//! Requests for memory that two servers share. It exists until both have ended, so that neither can
//! free it while the other uses it.

use super::{Status, ask};
use l4::x2::ThreadId;

/// The maximum number of bytes that can be shared in one request.
pub const LARGEST: u64 = 1 << 20;

/// A share: the number by which the other server requests the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(u64);

impl Share {
    /// The number of the share, as a word of a message.
    pub fn word(self) -> u64 {
        self.0
    }

    /// The share whose number is in a message.
    pub fn from_word(word: u64) -> Share {
        Share(word)
    }
}

/// Allocates zeroed memory of `size` bytes, a power of two from 4096 to [`LARGEST`], at `address`,
/// that this server shares with the server of the thread `partner`. It counts against this server's
/// quota until it ends.
///
/// # Errors
/// `InvalidArgument`: size or address are wrong, or `partner` is no thread of another server.
/// `QuotaExceeded`: of memory, or more than 16 shares. `NoMemory`: memory is short.
pub fn create(address: u64, size: u64, partner: ThreadId) -> Result<Share, Status> {
    ask(|root| root.root_share_create(address, size, partner.raw())).map(Share)
}

/// Shares memory that this server has [created](create) with the server of the thread `partner`,
/// instead of the one that it was shared with, which must have ended. The memory stays as it is.
///
/// # Errors
/// `NotFound`: there is no such share of this server's. `InUse`: the earlier partner has not ended.
/// `InvalidArgument`: `partner` is no thread of another server.
pub fn renew(share: Share, partner: ThreadId) -> Result<(), Status> {
    ask(|root| root.root_share_renew(share.0, partner.raw()))
}

/// Maps memory that another server shares with this one at `address`. Returns its size in bytes.
///
/// # Errors
/// `NotFound`: there is no such share for this server. `InvalidArgument`: something is mapped at
/// `address`. `NoMemory`: memory is short.
pub fn map(share: Share, address: u64) -> Result<u64, Status> {
    ask(|root| root.root_share_map(share.0, address))
}
