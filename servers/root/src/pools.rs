//! Pools: memory of a server that the devices of another server, its driver, may read and write.
//!
//! The driver learns the physical addresses of a pool's memory, and does not get the memory itself.
//! An [IOMMU](crate::iommu) limits its devices to them. Without one nothing does, and a driver is
//! trusted.
//!
//! A pool ends with the driver, whose devices can use no memory from then on. When the server that
//! owns the memory ends first, the driver's functions are disabled before any other server gets the
//! memory. The driver has to start its device again for its next client.

use crate::frames::Block;
use crate::machine::Machine;
use crate::resources::Resources;
use crate::server::{Server, name};
use crate::thread_numbers::ServerIndex;
use alloc::vec::Vec;
use core::ops::Range;
use rt::root::Status;
use x2::ThreadId;

/// The most pools that one server can have.
const MOST_POOLS: usize = 16;

/// The table of all pools.
pub(crate) struct Pools {
    pools: Vec<Pool>,
    last: u64,
}

struct Pool {
    number: u64,
    owner: ServerIndex,
    driver: ServerIndex,
    /// The address of the region in the owner's space.
    address: u64,
    /// The physical memory of the region, in the order of its addresses.
    blocks: Vec<Block>,
}

impl Pools {
    pub(crate) const fn new() -> Pools {
        Pools { pools: Vec::new(), last: 0 }
    }

    /// The memory of all pools that devices of this server use.
    pub(crate) fn ranges_of_driver(&self, driver: ServerIndex) -> Vec<Range<u64>> {
        let own = self.pools.iter().filter(|pool| pool.driver == driver);
        own.flat_map(|pool| pool.blocks.iter().map(|block| block.range.clone())).collect()
    }

    /// Whether devices of another server may use the region at this address of the server's space.
    pub(crate) fn has(&self, owner: ServerIndex, address: u64) -> bool {
        self.of(owner).any(|pool| pool.address == address)
    }

    /// The physical memory of all pools, with the server that owns it and the one that drives
    /// devices there.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> impl Iterator<Item = (ServerIndex, ServerIndex, Range<u64>)> + '_ {
        let of = |pool: &Pool, block: &Block| (pool.owner, pool.driver, block.range.clone());
        self.pools.iter().flat_map(move |pool| pool.blocks.iter().map(move |block| of(pool, block)))
    }

    fn of(&self, owner: ServerIndex) -> impl Iterator<Item = &Pool> {
        self.pools.iter().filter(move |pool| pool.owner == owner)
    }
}

impl<M: Machine> Resources<M> {
    /// Removes the pools of a server that has ended: those whose driver it was, and those that it
    /// owned. No device uses the memory of the latter afterwards.
    pub(crate) fn forget_pools(&mut self, server: ServerIndex) {
        let gone: Vec<Pool> =
            self.pools.pools.extract_if(.., |pool| pool.owner == server || pool.driver == server).collect();
        let mut drivers: Vec<ServerIndex> = gone.iter().map(|pool| pool.driver).collect();
        drivers.sort_unstable();
        drivers.dedup();
        for driver in drivers {
            self.disable_functions(driver);
            self.renew_domain(driver);
        }
    }
}

impl Server {
    /// Carries out the request that lets devices of the server of `driver` use the region at
    /// `address`, which must be all of its memory. Returns the number of the pool.
    pub(crate) fn create_pool<M: Machine>(
        &mut self,
        resources: &mut Resources<M>,
        [address, size]: [u64; 2],
        driver: ThreadId,
    ) -> Result<u64, Status> {
        let owner = if driver.is_global() { resources.numbers.owner(name(driver)) } else { None };
        let driver = owner.filter(|&other| other != self.index && resources.is_own(other, driver));
        let driver = driver.ok_or(Status::InvalidArgument)?;
        let blocks = self.memory.blocks(address, size).ok_or(Status::InvalidArgument)?;
        if resources.pools.of(self.index).count() >= MOST_POOLS {
            return Err(Status::QuotaExceeded);
        }
        resources.pools.pools.try_reserve(1).map_err(|_| Status::NoMemory)?;
        let mut copy = Vec::new();
        copy.try_reserve_exact(blocks.len()).map_err(|_| Status::NoMemory)?;
        copy.extend_from_slice(blocks);
        let mut ranges = Vec::new();
        ranges.try_reserve_exact(copy.len()).map_err(|_| Status::NoMemory)?;
        ranges.extend(copy.iter().map(|block| block.range.clone()));
        resources.grant(driver, &ranges)?;
        resources.pools.last += 1;
        let number = resources.pools.last;
        resources.pools.pools.push(Pool { number, owner: self.index, driver, address, blocks: copy });
        Ok(number)
    }

    /// Carries out the request of a driver for the physical address of the byte at `offset` in a
    /// pool, and for the number of bytes from there on that are physically contiguous.
    pub(crate) fn find_in_pool<M>(
        &self,
        resources: &Resources<M>,
        number: u64,
        offset: u64,
    ) -> Result<(u64, u64), Status> {
        let mut pools = resources.pools.pools.iter();
        let pool = pools.find(|pool| pool.number == number && pool.driver == self.index);
        let mut before = 0;
        for Block { range, .. } in &pool.ok_or(Status::NotFound)?.blocks {
            let (size, within) = (range.end - range.start, offset - before);
            if within < size {
                return Ok((range.start + within, size - within));
            }
            before += size;
        }
        Err(Status::InvalidArgument)
    }
}
