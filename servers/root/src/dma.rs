//! Memory that devices read and write by themselves: in one piece, where its driver is told that it
//! is.
//!
//! Without an IOMMU a device goes on with what a driver has set it to, also when the driver has
//! ended. So what a server has had for its devices is never given to another one: it waits for the
//! server to be started again.

use crate::executable::PAGE;
use crate::fill::Fill;
use crate::frames::Block;
use crate::machine::Machine;
use crate::resources::Resources;
use crate::server::Server;
use crate::thread_numbers::ServerIndex;
use alloc::vec::Vec;
use core::ops::Range;
use rt::root::Status;
use x2::{Rights, ThreadId};

/// The owner of the frames that devices may write: not a running server.
const DEVICES: ServerIndex = ServerIndex::MAX - 1;

/// The blocks that a server has, or had before it was started again.
#[derive(Default)]
pub(crate) struct DeviceMemory {
    blocks: Vec<Range<u64>>,
}

impl DeviceMemory {
    /// Whether it is some of this memory.
    #[cfg(test)]
    pub(crate) fn contains(&self, address: u64) -> bool {
        self.blocks.iter().any(|block| block.contains(&address))
    }

    fn size(&self) -> u64 {
        self.blocks.iter().map(|block| block.end - block.start).sum()
    }
}

impl Server {
    /// Request: zeroed memory of `size` bytes, a power of two, at `address`, in one physical block
    /// below 2^`bits`. Returns its physical address, and what is to be done first.
    pub(crate) fn allocate_dma<M: Machine>(
        &mut self,
        resources: &mut Resources<M>,
        first: ThreadId,
        [address, size, bits]: [u64; 3],
    ) -> Result<(u64, Fill), Status> {
        let most = self.configuration.dma.ok_or(Status::NotFound)?;
        if !size.is_power_of_two() || size < PAGE || !(12..=64).contains(&bits) {
            return Err(Status::InvalidArgument);
        }
        self.memory.check_free(address, size)?;
        let limit = 1u64.checked_shl(bits as u32).unwrap_or(u64::MAX);
        let fits = |block: &&Range<u64>| block.end - block.start == size && block.end <= limit;
        let unused = |block: &&Range<u64>| !self.memory.has_borrowed(block.start);
        let block = match self.dma.blocks.iter().filter(fits).find(unused).cloned() {
            Some(block) => block,
            None => {
                if self.dma.size().checked_add(size).is_none_or(|all| all > most) {
                    return Err(Status::QuotaExceeded);
                }
                self.dma.blocks.try_reserve(1).map_err(|_| Status::NoMemory)?;
                let block = resources.frames.allocate_block(&resources.machine, DEVICES, size, limit);
                let block = block.map_err(|_| Status::NoMemory)?;
                self.dma.blocks.push(block.clone());
                block
            }
        };
        self.memory.note_borrowed(address, block.start, size)?;
        let physical = block.start;
        let blocks = alloc::vec![Block { range: block, clear: true }];
        Ok((physical, Fill::new(first, address, blocks, Rights::READ_WRITE)))
    }
}
