//! Memory at addresses that the server chooses, and the boot modules.

use super::{LONGEST_NAME, Status, ask};

/// Bytes in a large page. Memory at a multiple of it is mapped by large pages as far as possible.
pub const LARGE_PAGE: u64 = 2 << 20;

/// How many bytes this server could still be given, within its quota and the machine's free memory.
/// Fragments count, so an [`allocate`] of all of it works, in pages as small as need be.
///
/// # Errors
/// A working root gives none.
pub fn available() -> Result<u64, Status> {
    ask(|root| root.root_memory_available())
}

/// Zeroed memory at `address`, where nothing is; both in whole 4 KiB pages, below 0x7000_0000_0000.
///
/// # Errors
/// `InvalidArgument`, `QuotaExceeded`, `NoMemory`.
pub fn allocate(address: u64, size: u64) -> Result<(), Status> {
    ask(|root| root.root_memory_allocate(address, size))
}

/// [`allocate`], but with whatever the memory holds (never another server's data), and executable:
/// for pools of frames that are cleared when they are used, and mapped into the server's own
/// spaces.
///
/// # Errors
/// Those of [`allocate`].
pub fn allocate_pool(address: u64, size: u64) -> Result<(), Status> {
    ask(|root| root.root_memory_pool(address, size))
}

/// Zeroed memory of `size` bytes, a power of two, at `address`, for devices that read and write it
/// themselves: in one physical piece below 2^`bits`, whose address is returned. It does not count
/// against the quota of memory but against that of `dma`.
///
/// The device may write there as long as it likes: what is given back, or left when the server
/// ends, goes only to this server, or to the server that is started in its place.
///
/// # Errors
/// `NotFound`: the configuration gives this server none. `InvalidArgument`: size, address or bits.
/// `QuotaExceeded`, `NoMemory`.
pub fn allocate_dma(address: u64, size: u64, bits: u32) -> Result<u64, Status> {
    ask(|root| root.root_memory_dma(address, size, bits.into()))
}

/// Gives memory back, all that was allocated together.
///
/// # Errors
/// `InvalidArgument`: no such memory.
///
/// # Safety
/// Nothing uses the memory any more.
#[allow(unsafe_code, reason = "that nothing uses the memory is the caller's promise")]
pub unsafe fn free(address: u64, size: u64) -> Result<(), Status> {
    ask(|root| root.root_memory_free(address, size))
}

/// Maps the boot module `name` (one that the configuration gives this server), not to be written,
/// into `room`, a multiple of [`LARGE_PAGE`]. The address space must be empty from there on, for
/// the module's size and one large page more. The module does not begin at `room` exactly but where
/// its large pages are large pages here, too. A second request for the same module gives the same
/// place.
///
/// # Errors
/// `NotFound`: no such module, or not this server's. `InvalidArgument`: no room there. `NoMemory`.
#[allow(unsafe_code, reason = "the module's memory is root's, not a Rust object")]
pub fn module(name: &str, room: u64) -> Result<&'static [u8], Status> {
    if name.len() > LONGEST_NAME {
        return Err(Status::NotFound);
    }
    let (address, size) = ask(|root| root.root_module_map(room, name.as_bytes()))?;
    // SAFETY: root has mapped the module there, never changes it, and lets it be as long as the
    // server lives.
    Ok(unsafe { core::slice::from_raw_parts(address as *const u8, size as usize) })
}
