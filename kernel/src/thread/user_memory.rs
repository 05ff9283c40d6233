//! Reading and writing user memory without ever faulting: the page table is walked in software
//! (K3).

use x2::Rights;

use crate::arch;
use crate::arch::tlb::Walk;
use crate::memory::{PAGE_SIZE, VirtAddr};
use crate::space::Space;

/// Reads `buffer.len()` bytes at `address` of `space`. Returns how many could be read before the
/// first byte that is not mapped readable, or is not ordinary memory.
///
/// Bytes are read once; the user's other threads may change them meanwhile.
pub fn read(space: &Space, address: u64, buffer: &mut [u8]) -> usize {
    let mut done = 0;
    while done < buffer.len() {
        let _walk = Walk::begin();
        let Some((source, size)) = piece(space, address, done, buffer.len(), Rights::READ) else { break };
        let target = buffer[done..done + size].as_mut_ptr();
        // SAFETY: the source lies within one page that is mapped in the space, hence memory that
        // the direct map reaches; reading it disturbs no program. The target is borrowed.
        unsafe { copy(target, source, size) };
        done += size;
    }
    done
}

/// Writes `bytes` to `address` of `space`. Returns how many could be written before the first byte
/// that is not mapped writable, or is not ordinary memory.
pub fn write(space: &Space, address: u64, bytes: &[u8]) -> usize {
    let mut done = 0;
    while done < bytes.len() {
        let _walk = Walk::begin();
        let Some((target, size)) = piece(space, address, done, bytes.len(), Rights::WRITE) else { break };
        // SAFETY: the target lies within one page that is mapped writable in the space, hence
        // memory that the direct map reaches and that no kernel object lies in.
        unsafe { copy(target, bytes[done..].as_ptr(), size) };
        done += size;
    }
    done
}

/// Reads `N` words at `address`, a multiple of their size, which is a power of two; `None`: they
/// are not readable, or no ordinary memory.
pub fn read_words<const N: usize>(space: &Space, address: u64) -> Option<[u64; N]> {
    let _walk = Walk::begin();
    let source = words::<N>(space, address, Rights::READ)?;
    // SAFETY: as in `read`; the alignment puts all words into one page.
    Some(core::array::from_fn(|index| unsafe { source.add(index).read_volatile() }))
}

/// Writes the word at `address`, a multiple of 8. False: the user may not, or it is no ordinary
/// memory.
pub fn write_word(space: &Space, address: u64, word: u64) -> bool {
    let _walk = Walk::begin();
    let target = words::<1>(space, address, Rights::WRITE);
    // SAFETY: as in `write`.
    target.map(|target| unsafe { target.write_volatile(word) }).is_some()
}

/// Copies bytes, each once; by words where both sides are aligned for that.
///
/// # Safety
/// The source can be read and the target written. Users may be changing one of them.
unsafe fn copy(target: *mut u8, source: *const u8, size: usize) {
    const WORD: usize = size_of::<u64>();
    let aligned = (target as usize | source as usize).is_multiple_of(WORD);
    let words = if aligned { size / WORD } else { 0 };
    for index in 0..words {
        // SAFETY: the caller promises that both are mapped; both are aligned.
        unsafe {
            target.cast::<u64>().add(index).write_volatile(source.cast::<u64>().add(index).read_volatile());
        }
    }
    for index in words * WORD..size {
        // SAFETY: the caller keeps this function's contract.
        unsafe { target.add(index).write_volatile(source.add(index).read_volatile()) };
    }
}

/// The address in the direct map of `N` words whose alignment puts them into one page.
fn words<const N: usize>(space: &Space, address: u64, access: Rights) -> Option<*mut u64> {
    let size = const { (N * size_of::<u64>()) as u64 };
    assert!(size.is_power_of_two() && size <= PAGE_SIZE && address.is_multiple_of(size));
    let translation = space.memory.lookup(VirtAddr::new(address))?;
    translation.rights.contains(access).then_some(())?;
    arch::user_memory_to_virt(translation.address).map(<*mut u8>::cast)
}

/// Where the byte `done` of a buffer of `end` bytes at `address` lies, and how many bytes lie in
/// the same page; `None`: the user has no such access there.
fn piece(space: &Space, address: u64, done: usize, end: usize, access: Rights) -> Option<(*mut u8, usize)> {
    let address = address.checked_add(done as u64)?;
    let translation = space.memory.lookup(VirtAddr::new(address))?;
    translation.rights.contains(access).then_some(())?;
    let in_page = (PAGE_SIZE - address % PAGE_SIZE) as usize;
    Some((arch::user_memory_to_virt(translation.address)?, in_page.min(end - done)))
}

/// Whether all of `size` bytes at `address` are ordinary memory that a program in `space` may
/// access so.
pub fn is_accessible(space: &Space, address: u64, size: u64, access: Rights) -> bool {
    let Some(end) = address.checked_add(size) else { return false };
    let mut next = address;
    while next < end {
        let _walk = Walk::begin();
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
