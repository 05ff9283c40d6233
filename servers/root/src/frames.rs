//! Physical memory: all that sigma0 gives, which root has at its physical addresses.

use core::ops::Range;
use l4::sigma0;
use root::executable::PAGE;
use root::ranges::{RangeError, Ranges};
use root::thread_numbers::ServerIndex;

/// Takes all free memory from sigma0, the largest pieces first.
pub(crate) fn take_all() -> Ranges {
    let mut memory = Ranges::new();
    for size_log2 in (12..=30).rev() {
        while let Ok(Some(region)) = sigma0::request_any(size_log2) {
            memory.add(region.base, region.last() + 1).expect("sigma0 gives memory out once");
        }
    }
    memory
}

/// Gives `owner` `pages` pages as few blocks, the largest first, each cleared, as physical ranges. Quotas are the caller's
/// business.
///
/// # Errors
/// [`RangeError`] if there is not so much; then `owner` has as much as before.
pub(crate) fn allocate(
    memory: &mut Ranges,
    owner: ServerIndex,
    pages: u64,
) -> Result<alloc::vec::Vec<Range<u64>>, RangeError> {
    let mut blocks = alloc::vec::Vec::new();
    let mut left = pages;
    let mut largest = u64::MAX;
    while left > 0 {
        let size = (PAGE << left.ilog2()).min(largest);
        match memory.allocate(owner, size) {
            Ok(base) => {
                clear(base..base + size);
                blocks.push(base..base + size);
                left -= size / PAGE;
            }
            Err(RangeError::Unavailable) if size > PAGE => largest = size / 2,
            Err(error) => {
                for block in blocks {
                    memory.release(owner, block.start, block.end)?;
                }
                return Err(error);
            }
        }
    }
    Ok(blocks)
}

fn clear(block: Range<u64>) {
    // SAFETY: the memory is root's, from sigma0; it was free, so nobody else has it and no reference to it exists.
    unsafe { core::ptr::write_bytes(block.start as *mut u8, 0, (block.end - block.start) as usize) }
}

/// Copies `bytes` to the physical address `to`, in a block that [`allocate`] gave and that no server uses yet.
pub(crate) fn write(block: &Range<u64>, offset: u64, bytes: &[u8]) {
    assert!(offset + bytes.len() as u64 <= block.end - block.start, "within the block");
    // SAFETY: within the block, which is mapped here and which no reference points into.
    unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), (block.start + offset) as *mut u8, bytes.len()) }
}
