//! What drivers need: interrupts and device memory, as far as the configuration gives them to this server.
//!
//! I/O ports need no request: a server uses those of its configuration ([`l4::port`]); root gives them at the first use.

use super::{Status, order, request};
use l4::x2::ThreadId;

/// From now on interrupts of `line` are messages to `thread`, one of this server's, from thread number `line`
/// ([`ThreadId::interrupt`]). Each must be answered by an empty message, or the next does not come.
///
/// # Errors
/// `NotFound`: the line is not this server's, or the machine has none. `InUse`: it is attached already.
/// `InvalidArgument`: the thread is not this server's.
pub fn attach_interrupt(line: u32, thread: ThreadId) -> Result<(), Status> {
    order(request::INTERRUPT_ATTACH, &[line.into(), thread.raw()])
}

/// Ends the association of a line that this server has attached.
///
/// # Errors
/// `InvalidArgument`: it has not.
pub fn detach_interrupt(line: u32) -> Result<(), Status> {
    order(request::INTERRUPT_DETACH, &[line.into()])
}

/// Maps `size` bytes of device memory from `physical` on at `address`, all whole pages, readable and writable.
///
/// # Errors
/// `NotFound`: not this server's. `Unsupported`: there is no such device memory. `InvalidArgument`: not whole pages, or
/// something is at `address`. `NoMemory`.
pub fn map_device(physical: u64, size: u64, address: u64) -> Result<(), Status> {
    order(request::DEVICE_MAP, &[physical, size, address])
}
