//! Reading and writing user memory without ever faulting: the page table is walked in software (K3).

use x2::Rights;

use crate::arch;
use crate::memory::{PAGE_SIZE, VirtAddr};
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

/// Whether all of `size` bytes at `address` are ordinary memory that a program in `space` may access so.
pub fn is_accessible(space: &Space, address: u64, size: u64, access: Rights) -> bool {
    let Some(end) = address.checked_add(size) else { return false };
    let mut next = address;
    while next < end {
        let translation = space.memory.lookup(VirtAddr::new(next));
        let allowed = translation.is_some_and(|translation| {
            translation.rights.contains(access) && arch::user_memory_to_virt(translation.address).is_some()
        });
        if next >= arch::USER_END || !allowed {
            return false;
        }
        next = (next | (PAGE_SIZE - 1)).saturating_add(1);
    }
    end <= arch::USER_END
}

/// Writes `bytes` to `address` of `space`. Returns how many could be written before the first byte that is not mapped
/// writable, or is not ordinary memory.
pub fn write(space: &Space, address: u64, bytes: &[u8]) -> usize {
    for (index, &byte) in bytes.iter().enumerate() {
        let Some(address) = address.checked_add(index as u64) else { return index };
        let translation = space.memory.lookup(VirtAddr::new(address));
        let Some(translation) = translation.filter(|found| found.rights.contains(Rights::WRITE)) else {
            return index;
        };
        let Some(target) = arch::user_memory_to_virt(translation.address) else { return index };
        // SAFETY: the page is mapped writable in the space, hence memory that the direct map reaches and that no kernel
        // object lies in.
        unsafe { target.write_volatile(byte) };
    }
    bytes.len()
}
