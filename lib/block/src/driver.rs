//! The driver's half of the way to a block device.

use crate::area::Area;
use crate::description::Description;
use crate::pools::{Piece, Pools};
use crate::request::Operation;
use crate::{Error, SECTOR, SLOTS};
use alloc::vec::Vec;
use ring::lane::{Receiver, Sender};

/// A request that the driver has taken and not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The number of the request's slot, below [`SLOTS`]. No other request that the driver has not
    /// answered has it.
    pub slot: usize,
    /// What is to be done.
    pub operation: Operation,
    /// The first sector, and how many there are. They lie on the device.
    pub sector: u64,
    /// How many sectors there are.
    pub sectors: u32,
    /// The memory of the data, which has as many bytes as the sectors and lies in the client's
    /// pools.
    pub pieces: Vec<Piece>,
}

/// The driver's half. No function blocks.
#[derive(Debug)]
pub struct Driver<'a> {
    area: &'a Area,
    requests: Receiver<'a, SLOTS>,
    answers: Sender<'a, SLOTS>,
    /// The slots of the requests that have no answer yet.
    taken: u64,
    is_broken: bool,
}

impl<'a> Driver<'a> {
    /// The driver's half of a ring that was not used yet.
    pub fn new(area: &'a Area) -> Driver<'a> {
        let (requests, answers) = (Receiver::new(&area.requests), Sender::new(&area.answers));
        Driver { area, requests, answers, taken: 0, is_broken: false }
    }

    /// Takes the next request. A request that is not valid, or that the device cannot carry out, is
    /// answered here. Pieces of memory have at most `longest` bytes.
    ///
    /// `None`: there is no request now, or none any more, since the client has broken the rules.
    pub fn take(&mut self, device: &Description, pools: &Pools, longest: u64) -> Option<Job> {
        while !self.is_broken {
            let slot = match self.requests.receive() {
                Ok(slot) => slot?,
                Err(_) => {
                    self.is_broken = true;
                    break;
                }
            };
            let is_free = |&slot: &usize| slot < SLOTS && self.taken & 1 << slot == 0;
            let Some(slot) = usize::try_from(slot).ok().filter(is_free) else {
                self.is_broken = true;
                break;
            };
            self.taken |= 1 << slot;
            match self.check(slot, device, pools, longest) {
                Ok(job) => return Some(job),
                Err(error) => self.answer(slot, Err(error)),
            }
        }
        None
    }

    /// Reads and checks the request in a slot.
    fn check(&self, slot: usize, device: &Description, pools: &Pools, longest: u64) -> Result<Job, Error> {
        let request = self.area.slots[slot].read().ok_or(Error::Invalid)?;
        let unit = u64::from(device.logical) / SECTOR;
        let is_aligned = (request.sector | u64::from(request.sectors)).is_multiple_of(unit);
        if !request.is_valid(device.sectors) || !is_aligned {
            return Err(Error::Invalid);
        }
        let operation = request.operation;
        if operation.changes() && device.read_only {
            return Err(Error::ReadOnly);
        }
        if operation == Operation::Discard && request.sectors > device.discard {
            return Err(Error::Unsupported);
        }
        let mut pieces = Vec::new();
        pools.resolve(&request, longest, &mut pieces).ok_or(Error::Invalid)?;
        Ok(Job { slot, operation, sector: request.sector, sectors: request.sectors, pieces })
    }

    /// Answers a request that was taken. Afterwards the caller must ask
    /// [`must_notify`](Driver::must_notify), once for any number of answers.
    ///
    /// # Panics
    /// If the driver has no such request.
    pub fn answer(&mut self, slot: usize, result: Result<(), Error>) {
        assert!(slot < SLOTS && self.taken & 1 << slot != 0, "the request was taken");
        self.taken &= !(1 << slot);
        self.answers.send(slot as u64 | u64::from(Error::number(result)) << 32);
    }

    /// Whether the client sleeps and must be notified of answers.
    pub fn must_notify(&mut self) -> bool {
        self.answers.must_notify()
    }

    /// Says that the driver sleeps until the client notifies it. Returns whether there is a request
    /// already.
    pub fn sleep(&self) -> bool {
        self.requests.sleep() && !self.is_broken
    }
}
