//! Requests for memory, at addresses that the server chooses, and for boot modules.

use super::{LONGEST_NAME, Status, ask};

/// The size of a large page in bytes. Memory at a multiple of it is mapped by large pages as far as
/// possible.
pub const LARGE_PAGE: u64 = 2 << 20;

/// How many bytes this server could still be given, within its quota and the machine's free memory.
/// [`allocate`] succeeds for so many bytes, even if free memory is fragmented into small pages.
///
/// # Errors
/// A working root gives none.
pub fn available() -> Result<u64, Status> {
    ask(|root| root.root_memory_available())
}

/// Allocates zeroed memory at `address`, where nothing may be mapped. Address and size must be
/// multiples of 4 KiB, below 0x7000_0000_0000.
///
/// # Errors
/// `InvalidArgument`: address or size. `QuotaExceeded`: the server may not have so much.
/// `NoMemory`: the machine does not have so much.
pub fn allocate(address: u64, size: u64) -> Result<(), Status> {
    ask(|root| root.root_memory_allocate(address, size))
}

/// Allocates memory like [`allocate`], but with any content (never another server's data), and
/// executable. It is meant for pools of frames that are cleared when they are used, and mapped into
/// the spaces that the server owns.
///
/// # Errors
/// Those of [`allocate`].
pub fn allocate_pool(address: u64, size: u64) -> Result<(), Status> {
    ask(|root| root.root_memory_pool(address, size))
}

/// Allocates zeroed memory for devices that read and write it themselves: `size` bytes, a power of
/// two, at `address`, physically contiguous and below 2^`bits`. Returns its physical address. It
/// counts against the quota `dma`, not against that of memory.
///
/// The device may continue to write there at any time. So memory that is freed, or left when the
/// server ends, is given only to this server again, or to the server that is started in its place.
///
/// # Errors
/// `NotFound`: the configuration gives this server none. `InvalidArgument`: size, address or bits.
/// `QuotaExceeded`: the quota `dma` is used up. `NoMemory`: there is no such block.
pub fn allocate_dma(address: u64, size: u64, bits: u32) -> Result<u64, Status> {
    ask(|root| root.root_memory_dma(address, size, bits.into(), 0))
}

/// Allocates memory like [`allocate_dma`], but as it was left by the server in whose place this one
/// was started. It is zeroed if that one had none of this size. A device may have written there
/// until it was reset.
///
/// # Errors
/// Those of [`allocate_dma`].
pub fn allocate_kept_dma(address: u64, size: u64, bits: u32) -> Result<u64, Status> {
    ask(|root| root.root_memory_dma(address, size, bits.into(), 1))
}

/// Frees memory: a whole region, as it was allocated.
///
/// # Errors
/// `InvalidArgument`: there is no such region.
///
/// # Safety
/// No code may use the memory any more.
#[allow(unsafe_code, reason = "that nothing uses the memory is the caller's promise")]
pub unsafe fn free(address: u64, size: u64) -> Result<(), Status> {
    ask(|root| root.root_memory_free(address, size))
}

/// Maps the boot module `name`, which the configuration must give this server, read-only at or
/// after `room`, a multiple of [`LARGE_PAGE`]. The address space must be empty from there on, for
/// the module's size and one large page more. The module begins at the address at which its large
/// physical pages can be mapped by large pages. A second request for the same module returns the
/// same address.
///
/// # Errors
/// `NotFound`: no such module, or not this server's. `InvalidArgument`: no room there. `NoMemory`:
/// memory is short.
#[allow(unsafe_code, reason = "the module's memory is root's, not a Rust object")]
pub fn module(name: &str, room: u64) -> Result<&'static [u8], Status> {
    if name.len() > LONGEST_NAME {
        return Err(Status::NotFound);
    }
    let (address, size) = ask(|root| root.root_module_map(room, name.as_bytes()))?;
    // SAFETY: root has mapped the module there, never changes it, and never unmaps it while the
    // server exists.
    Ok(unsafe { core::slice::from_raw_parts(address as *const u8, size as usize) })
}
