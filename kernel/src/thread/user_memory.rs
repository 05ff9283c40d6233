//! Reading user memory without ever faulting: the page table is walked in software (K3).

use crate::arch;
use crate::memory::VirtAddr;
use crate::space::Space;

/// Reads `buffer.len()` bytes at `address` of `space`. Returns how many could be read before the first byte that is
/// not mapped readable, or is not ordinary memory.
///
/// Bytes are read once; the user's other threads may change them meanwhile.
pub fn read(space: &Space, address: u64, buffer: &mut [u8]) -> usize {
    for (index, byte) in buffer.iter_mut().enumerate() {
        let Some(address) = address.checked_add(index as u64) else { return index };
        let Some(translation) = space.memory.lookup(VirtAddr::new(address)) else { return index };
        let Some(source) = arch::user_memory_to_virt(translation.address) else { return index };
        // SAFETY: the page is mapped in the space, hence memory that the direct map reaches; reading one byte of it
        // disturbs nobody.
        *byte = unsafe { source.read_volatile() };
    }
    buffer.len()
}
