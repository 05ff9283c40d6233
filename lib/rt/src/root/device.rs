//! Requests of drivers: interrupts and device memory that the configuration gives to this server.
//!
//! I/O ports need no request. A server uses the ports of its configuration ([`l4::port`]); root
//! gives them to it at the first use.

use super::{Status, ask};
use core::ops::RangeInclusive;
use l4::x2::ThreadId;
use l4::x2::boot_info::Screen;

/// The `index`th interrupt line that the configuration gives this server.
pub fn interrupt(index: usize) -> Option<u32> {
    u32::try_from(resource(0, index)?.0).ok()
}

/// The `index`th range of I/O ports that the configuration gives this server.
pub fn ports(index: usize) -> Option<RangeInclusive<u16>> {
    let (first, last) = resource(1, index)?;
    Some(u16::try_from(first).ok()?..=u16::try_from(last).ok()?)
}

/// Physical address and size in bytes of the `index`th device memory that the configuration gives
/// this server.
pub fn device_memory(index: usize) -> Option<(u64, u64)> {
    resource(2, index)
}

/// The machine's screen, if it has one and the configuration gives it to this server.
pub fn screen() -> Option<Screen> {
    let (physical, pitch) = resource(4, 0)?;
    let (width, height) = resource(4, 1)?;
    let (bits, colours) = resource(4, 2)?;
    Some(Screen { physical, pitch, width, height, bits, colours })
}

fn resource(kind: u64, index: usize) -> Option<(u64, u64)> {
    ask(|root| root.root_resource(kind, index as u64)).ok()
}

/// Makes interrupts of `line` messages to `thread`, a thread of this server. They come from thread
/// number `line` ([`ThreadId::interrupt`]). Each must be answered by an empty message before the
/// next one can come.
///
/// # Errors
/// `NotFound`: the line is not this server's, or the machine has none. `InUse`: it is attached
/// already. `InvalidArgument`: the thread is not this server's.
pub fn attach_interrupt(line: u32, thread: ThreadId) -> Result<(), Status> {
    ask(|root| root.root_interrupt_attach(line.into(), thread.raw()))
}

/// Detaches this server from an interrupt line.
///
/// # Errors
/// `InvalidArgument`: the server is not attached to the line.
pub fn detach_interrupt(line: u32) -> Result<(), Status> {
    ask(|root| root.root_interrupt_detach(line.into()))
}

/// Maps `size` bytes of device memory from `physical` on at `address`, all whole pages, readable
/// and writable.
///
/// # Errors
/// `NotFound`: the configuration does not give it to this server. `Unsupported`: there is no such
/// device memory. `InvalidArgument`: not whole pages, or something is at `address`. `NoMemory`:
/// memory is short.
pub fn map_device(physical: u64, size: u64, address: u64) -> Result<(), Status> {
    ask(|root| root.root_device_map(physical, size, address))
}
