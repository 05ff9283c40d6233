//! What drivers need: interrupts, I/O ports and device memory, as far as the configuration gives them to this server.

use super::{Status, order, request};
use core::ops::RangeInclusive;
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

/// Opens I/O ports to this server's space.
///
/// # Errors
/// `NotFound`: not all of them are this server's. `InUse`: another server has one. `NoMemory`.
pub fn map_ports(ports: RangeInclusive<u16>) -> Result<(), Status> {
    order(request::PORTS_MAP, &[(*ports.start()).into(), (*ports.end()).into()])
}

/// Maps `size` bytes of device memory from `physical` on at `address`, all whole pages, readable and writable.
///
/// # Errors
/// `NotFound`: not this server's. `InUse`: another server has it. `InvalidArgument`: not whole pages, or something is at
/// `address`. `NoMemory`.
pub fn map_device(physical: u64, size: u64, address: u64) -> Result<(), Status> {
    order(request::DEVICE_MAP, &[physical, size, address])
}
