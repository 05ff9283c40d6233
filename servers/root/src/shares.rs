//! Memory that two servers share. It exists until both have ended.

use crate::executable::PAGE;
use crate::fill::Fill;
use crate::frames::{Block, Frames, Initially};
use crate::machine::Machine;
use crate::resources::Resources;
use crate::server::{Server, name};
use crate::thread_numbers::ServerIndex;
use alloc::vec::Vec;
use core::ops::Range;
use rt::root::Status;
use rt::root::share::LARGEST;
use x2::{Rights, ThreadId};

/// The owner, in the table of frames, of the memory that servers share. No server has this index.
const SHARED: ServerIndex = ServerIndex::MAX;
/// The most areas that one server can share with others.
const MOST_SHARES: usize = 16;

/// The table of all shares.
pub(crate) struct Shares {
    shares: Vec<Share>,
    last: u64,
}

struct Share {
    number: u64,
    /// The server that created the share, and its partner; `None` after that server has ended.
    sides: [Option<ServerIndex>; 2],
    block: Range<u64>,
    /// Whether the block has been cleared, so that the partner may map it.
    published: bool,
}

impl Shares {
    pub(crate) const fn new() -> Shares {
        Shares { shares: Vec::new(), last: 0 }
    }

    /// Removes `server`, which has ended, from its shares, and frees the shares that belong to no
    /// server any more.
    pub(crate) fn forget(&mut self, frames: &mut Frames, server: ServerIndex) {
        for share in &mut self.shares {
            if !share.published && share.sides[0] == Some(server) {
                share.sides[1] = None;
            }
            for side in share.sides.iter_mut().filter(|side| **side == Some(server)) {
                *side = None;
            }
        }
        for gone in self.shares.extract_if(.., |share| share.sides == [None; 2]) {
            frames.release(SHARED, &gone.block);
        }
    }

    /// Lets the partner map the share of this number, which has been cleared.
    pub(crate) fn publish(&mut self, number: u64) {
        self.shares
            .iter_mut()
            .filter(|share| share.number == number)
            .for_each(|share| share.published = true);
    }

    /// Removes the share of this number, because it could not be mapped for the server that created
    /// it.
    pub(crate) fn withdraw(&mut self, frames: &mut Frames, number: u64) {
        for gone in self.shares.extract_if(.., |share| share.number == number) {
            frames.release(SHARED, &gone.block);
        }
    }

    /// How many bytes the shares have that `server` created.
    #[cfg(test)]
    pub(crate) fn size_made_by(&self, server: ServerIndex) -> u64 {
        let own = self.shares.iter().filter(|share| share.sides[0] == Some(server));
        own.map(|share| share.block.end - share.block.start).sum()
    }

    /// The memory of all shares that have been cleared.
    #[cfg(test)]
    pub(crate) fn blocks(&self) -> Vec<Range<u64>> {
        let published = self.shares.iter().filter(|share| share.published);
        published.map(|share| share.block.clone()).collect()
    }

    /// Whether the physical address `address` lies in memory that `server` shares with another one.
    #[cfg(test)]
    pub(crate) fn is_between(&self, server: ServerIndex, address: u64) -> bool {
        let mut own = self.shares.iter().filter(|share| share.sides.contains(&Some(server)));
        own.any(|share| share.block.contains(&address))
    }

    fn made_by(&self, server: ServerIndex) -> usize {
        self.shares.iter().filter(|share| share.sides[0] == Some(server)).count()
    }
}

impl Server {
    /// The other server whose thread `partner` is.
    fn partner<M: Machine>(&self, resources: &Resources<M>, partner: ThreadId) -> Option<ServerIndex> {
        let owner = if partner.is_global() { resources.numbers.owner(name(partner)) } else { None };
        owner.filter(|&other| other != self.index && resources.is_own(other, partner))
    }

    /// Carries out the request for `size` bytes of memory at `address` that this server shares with
    /// the server of `partner`. Returns the share's number, and the work of clearing and mapping
    /// it, after which it is published.
    pub(crate) fn create_share<M: Machine>(
        &mut self,
        resources: &mut Resources<M>,
        first: ThreadId,
        [address, size]: [u64; 2],
        partner: ThreadId,
    ) -> Result<(u64, Fill), Status> {
        let right_size = size.is_power_of_two() && (PAGE..=LARGEST).contains(&size);
        let other = self.partner(resources, partner);
        let Some(other) = other.filter(|_| right_size) else { return Err(Status::InvalidArgument) };
        if resources.shares.made_by(self.index) >= MOST_SHARES {
            return Err(Status::QuotaExceeded);
        }
        resources.shares.shares.try_reserve(1).map_err(|_| Status::NoMemory)?;
        self.memory.reserve(size)?;
        // The size is a power of two: either one block has it, or no free block is so large.
        let blocks = resources
            .frames
            .allocate(&resources.machine, SHARED, size / PAGE, Initially::Zero)
            .unwrap_or_default();
        let noted = match &blocks[..] {
            [Block { range, .. }] => {
                self.memory.note_borrowed(address, range.start, size).map(|()| range.clone())
            }
            _ => Err(Status::NoMemory),
        };
        let block = match noted {
            Ok(block) => block,
            Err(status) => {
                blocks.iter().for_each(|block| resources.frames.release(SHARED, &block.range));
                self.memory.give_back(size);
                return Err(status);
            }
        };
        let shares = &mut resources.shares;
        shares.last += 1;
        let (number, sides) = (shares.last, [Some(self.index), Some(other)]);
        shares.shares.push(Share { number, sides, block, published: false });
        Ok((number, Fill::new(first, address, blocks, Rights::READ_WRITE)))
    }

    /// Carries out the request to share memory that this server has created, and whose partner has
    /// ended, with the server of `partner`.
    pub(crate) fn renew_share<M: Machine>(
        &mut self,
        resources: &mut Resources<M>,
        number: u64,
        partner: ThreadId,
    ) -> Result<(), Status> {
        let other = self.partner(resources, partner).ok_or(Status::InvalidArgument)?;
        let own = |share: &&mut Share| {
            share.number == number && share.sides[0] == Some(self.index) && share.published
        };
        let share = resources.shares.shares.iter_mut().find(own).ok_or(Status::NotFound)?;
        if share.sides[1].is_some() {
            return Err(Status::InUse);
        }
        share.sides[1] = Some(other);
        Ok(())
    }

    /// Carries out the request to map at `address` a share that another server has created. Returns
    /// its size in bytes.
    pub(crate) fn map_share<M: Machine>(
        &mut self,
        resources: &mut Resources<M>,
        first: ThreadId,
        number: u64,
        address: u64,
    ) -> Result<u64, Status> {
        let mut shares = resources.shares.shares.iter();
        let is_it =
            |share: &&Share| share.number == number && share.sides[1] == Some(self.index) && share.published;
        let share = shares.find(is_it);
        let block = share.ok_or(Status::NotFound)?.block.clone();
        let size = block.end - block.start;
        self.memory.add_borrowed(
            &mut resources.machine,
            first,
            address,
            block.start,
            size,
            Rights::READ_WRITE,
        )?;
        Ok(size)
    }
}
