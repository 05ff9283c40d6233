//! Memory that devices read and write themselves (DMA). Each block is physically contiguous,
//! because its driver tells the device only where it begins.
//!
//! Without an [IOMMU](crate::iommu) a device may continue to write after its driver has ended. So
//! the DMA memory of a server is never given to another server: it is kept until the same server is
//! started again.

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

/// The owner, in the table of frames, of the memory that devices may write. No server has this
/// index.
const DEVICES: ServerIndex = ServerIndex::MAX - 1;

/// The DMA blocks of a server. They are kept when the server ends and is started again.
#[derive(Default)]
pub(crate) struct DeviceMemory {
    blocks: Vec<Range<u64>>,
}

impl DeviceMemory {
    /// The memory.
    #[cfg(test)]
    pub(crate) fn blocks(&self) -> Vec<Range<u64>> {
        self.blocks.clone()
    }

    /// Whether the physical address lies in this device memory.
    #[cfg(test)]
    pub(crate) fn contains(&self, address: u64) -> bool {
        self.blocks.iter().any(|block| block.contains(&address))
    }

    fn size(&self) -> u64 {
        self.blocks.iter().map(|block| block.end - block.start).sum()
    }
}

impl Server {
    /// Carries out the request for zeroed DMA memory of `size` bytes, a power of two, at `address`,
    /// in one physical block below 2^`bits`. A block that the server has had before is not cleared
    /// if it is to be `kept`. Returns its physical address, and the work of clearing and mapping
    /// it.
    pub(crate) fn allocate_dma<M: Machine>(
        &mut self,
        resources: &mut Resources<M>,
        first: ThreadId,
        [address, size, bits]: [u64; 3],
        kept: bool,
    ) -> Result<(u64, Fill), Status> {
        let most = self.configuration.dma.ok_or(Status::NotFound)?;
        if !size.is_power_of_two() || size < PAGE || !(12..=64).contains(&bits) {
            return Err(Status::InvalidArgument);
        }
        self.memory.check_free(address, size)?;
        let limit = 1u64.checked_shl(bits as u32).unwrap_or(u64::MAX);
        let fits = |block: &&Range<u64>| block.end - block.start == size && block.end <= limit;
        let unused = |block: &&Range<u64>| !self.memory.has_borrowed(block.start);
        let (block, clear) = match self.dma.blocks.iter().filter(fits).find(unused).cloned() {
            Some(block) => (block, !kept),
            None => {
                if self.dma.size().checked_add(size).is_none_or(|all| all > most) {
                    return Err(Status::QuotaExceeded);
                }
                self.dma.blocks.try_reserve(1).map_err(|_| Status::NoMemory)?;
                let block = resources.frames.allocate_block(&resources.machine, DEVICES, size, limit);
                let block = block.map_err(|_| Status::NoMemory)?;
                self.dma.blocks.push(block.clone());
                (block, true)
            }
        };
        resources.grant_memory(self.index, &block)?;
        self.memory.note_borrowed(address, block.start, size)?;
        let physical = block.start;
        let blocks = alloc::vec![Block { range: block, clear }];
        Ok((physical, Fill::new(first, address, blocks, Rights::READ_WRITE)))
    }
}
