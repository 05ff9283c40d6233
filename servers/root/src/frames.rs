//! Physical memory: all that sigma0 gives, which root has at its physical addresses.

use crate::chunks::Chunks;
use crate::executable::PAGE;
use crate::machine::Machine;
use crate::ranges::{RangeError, Ranges};
use crate::thread_numbers::ServerIndex;
use alloc::vec::Vec;
use core::ops::Range;

/// What new memory is to contain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Initially {
    /// Zeros.
    Zero,
    /// Any content, as long as it is not that of another server.
    AsItIs,
}

/// A contiguous range of physical memory.
#[derive(Clone)]
pub(crate) struct Block {
    pub(crate) range: Range<u64>,
    /// Whether the block must be cleared before a server gets it.
    pub(crate) clear: bool,
}

/// All physical memory that servers can have.
pub struct Frames {
    ranges: Ranges,
    /// Memory that has belonged to a server. It is cleared before it is given to another one.
    used: Chunks,
    /// All memory lies below this address.
    end: u64,
}

impl Frames {
    /// The allocator of these regions, which are all free.
    ///
    /// # Panics
    /// If two regions overlap. sigma0 gives each page out once, so they cannot.
    pub fn new(regions: impl IntoIterator<Item = Range<u64>>) -> Frames {
        let mut ranges = Ranges::new();
        let mut end = 0;
        for region in regions {
            ranges.add(region.start, region.end).expect("sigma0 gives memory out once");
            end = end.max(region.end);
        }
        Frames { ranges, used: Chunks::below(end), end }
    }

    /// The address at which all memory ends.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Whether a part of this physical memory can be given to servers.
    pub(crate) fn has_part_of(&self, memory: &Range<u64>) -> bool {
        self.ranges.has_part_of(memory.start, memory.end)
    }

    /// How many bytes are free.
    pub fn free(&self) -> u64 {
        self.ranges.free()
    }

    /// Gives `owner` `pages` pages in few blocks, the largest first, as physical ranges. Each block
    /// is aligned to its size, a power of two. The caller checks quotas and clears the blocks.
    ///
    /// # Errors
    /// [`RangeError`] if there is not so much memory; then `owner` has as much as before.
    pub(crate) fn allocate(
        &mut self,
        machine: &impl Machine,
        owner: ServerIndex,
        pages: u64,
        initially: Initially,
    ) -> Result<Vec<Block>, RangeError> {
        let mut blocks = Vec::new();
        let mut left = pages;
        let mut largest = u64::MAX;
        let mut result = Ok(());
        while left > 0 && result.is_ok() {
            let size = (PAGE << left.ilog2()).min(largest);
            let block = if machine.has_headroom() {
                self.ranges.allocate(owner, size)
            } else {
                Err(RangeError::NoMemory)
            };
            result = match block {
                Ok(base) => {
                    let range = base..base + size;
                    let clear = initially == Initially::Zero || self.used.touches(&range);
                    blocks.push(Block { range, clear });
                    left -= size / PAGE;
                    Ok(())
                }
                Err(RangeError::Unavailable) if size > PAGE => {
                    largest = size / 2;
                    Ok(())
                }
                Err(error) => Err(error),
            }
        }
        if let Err(error) = result {
            blocks.iter().for_each(|block| self.release(owner, &block.range));
            return Err(error);
        }
        blocks.iter().for_each(|block| self.used.add(&block.range));
        Ok(blocks)
    }

    /// Gives `owner` one block, still to be cleared, of `size` bytes, a power of two, whose end is
    /// at most `limit`.
    ///
    /// # Errors
    /// [`RangeError`] if there is none.
    pub(crate) fn allocate_block(
        &mut self,
        machine: &impl Machine,
        owner: ServerIndex,
        size: u64,
        limit: u64,
    ) -> Result<Range<u64>, RangeError> {
        if !machine.has_headroom() {
            return Err(RangeError::NoMemory);
        }
        let base = self.ranges.allocate_below(owner, size, limit)?;
        let block = base..base + size;
        self.used.add(&block);
        Ok(block)
    }

    /// Takes back a block that `owner` was given.
    pub(crate) fn release(&mut self, owner: ServerIndex, block: &Range<u64>) {
        self.ranges.release(owner, block.start, block.end).expect("it was the server's");
    }

    /// How many bytes `owner` has.
    #[cfg(test)]
    pub(crate) fn size_of(&self, owner: ServerIndex) -> u64 {
        self.ranges.of(owner).map(|(start, end)| end - start).sum()
    }

    /// Whether `owner` has the memory at `address`.
    #[cfg(test)]
    pub(crate) fn is_of(&self, owner: ServerIndex, address: u64) -> bool {
        self.ranges.of(owner).any(|(start, end)| (start..end).contains(&address))
    }

    /// Takes back all that `owner` has.
    pub(crate) fn release_all(&mut self, owner: ServerIndex) {
        let blocks: Vec<(u64, u64)> = self.ranges.of(owner).collect();
        blocks.into_iter().for_each(|(start, end)| self.release(owner, &(start..end)));
    }
}
