//! The client's half of the way to a block device.

use crate::area::Area;
use crate::request::{Operation, Request};
use crate::{Error, SLOTS};
use alloc::collections::VecDeque;
use ring::lane::{Receiver, Sender};

/// The number of a request, which no other request of the client has or had. Numbers grow in the
/// order of issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// A request that has no answer yet.
#[derive(Debug)]
struct Entry {
    ticket: Ticket,
    request: Request,
    /// The slot in which the driver has the request.
    slot: Option<usize>,
}

/// The client's ends of the lanes, and which slots the driver has.
#[derive(Debug)]
struct Ends<'a> {
    area: &'a Area,
    requests: Sender<'a, SLOTS>,
    answers: Receiver<'a, SLOTS>,
    in_use: u64,
}

/// The client's half. No function blocks.
#[derive(Debug)]
pub struct Client<'a> {
    /// The ends of the ring that the client shares with the present driver.
    ends: Option<Ends<'a>>,
    /// Why requests fail when there will be no driver any more.
    failed: Option<Error>,
    last: u64,
    /// The requests that have no answer yet, in the order of issue.
    entries: VecDeque<Entry>,
}

impl<'a> Client<'a> {
    /// A client of the driver that has attached to `area`, which must be zero.
    pub fn new(area: &'a Area) -> Client<'a> {
        let mut client = Client { ends: None, failed: None, last: 0, entries: VecDeque::new() };
        client.restart(area);
        client
    }

    /// Issues a request. It waits here as long as the driver has [`SLOTS`] others, and a flush as
    /// long as an earlier write has no answer. The memory of its data belongs to the device until
    /// the request has been [taken](Client::take) with its result. Afterwards the caller must ask
    /// [`must_notify`](Client::must_notify).
    ///
    /// # Errors
    /// `Broken`, `Gone`: there is no driver any more. `Shortage`: there is no memory.
    pub fn issue(&mut self, request: Request) -> Result<Ticket, Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.entries.try_reserve(1).map_err(|_| Error::Shortage)?;
        self.last += 1;
        let ticket = Ticket(self.last);
        self.entries.push_back(Entry { ticket, request, slot: None });
        self.start();
        Ok(ticket)
    }

    /// Whether the driver sleeps and must be notified of new requests.
    pub fn must_notify(&mut self) -> bool {
        self.ends.as_mut().is_some_and(|ends| ends.requests.must_notify())
    }

    /// Takes a request that has ended, with its result. Afterwards the caller must ask
    /// [`must_notify`](Client::must_notify), since requests that waited may have been given to the
    /// driver.
    pub fn take(&mut self) -> Option<(Ticket, Result<(), Error>)> {
        if let Some(ends) = &mut self.ends {
            match ends.answers.receive() {
                Ok(None) => return None,
                Ok(Some(word)) => {
                    let (slot, result) = (word as u32 as usize, (word >> 32) as u32);
                    if let Some(at) = self.entries.iter().position(|entry| entry.slot == Some(slot)) {
                        let entry = self.entries.remove(at)?;
                        ends.in_use &= !(1 << slot);
                        self.start();
                        return Some((entry.ticket, Error::result(result)));
                    }
                    // The driver has no such request.
                    self.fail(Error::Broken);
                }
                Err(_) => self.fail(Error::Broken),
            }
        }
        let error = self.failed?;
        self.entries.pop_front().map(|entry| (entry.ticket, Err(error)))
    }

    /// Says that the client sleeps until the driver notifies it. Returns whether there is an answer
    /// already: the client must take that one, since there may be no notification of it.
    pub fn sleep(&self) -> bool {
        match &self.ends {
            Some(ends) => ends.answers.sleep(),
            None => self.failed.is_some() && !self.entries.is_empty(),
        }
    }

    /// How many requests have no answer yet.
    pub fn outstanding(&self) -> usize {
        self.entries.len()
    }

    /// The driver has ended: its ring is not used any more. Requests wait for the next driver.
    pub fn detach(&mut self) {
        self.ends = None;
        self.entries.iter_mut().for_each(|entry| entry.slot = None);
    }

    /// Issues all requests that have no answer yet to the driver that has attached to `area`, whose
    /// lanes must be empty, in their order. Afterwards the caller must ask
    /// [`must_notify`](Client::must_notify).
    pub fn restart(&mut self, area: &'a Area) {
        self.detach();
        let (requests, answers) = (Sender::new(&area.requests), Receiver::new(&area.answers));
        self.ends = Some(Ends { area, requests, answers, in_use: 0 });
        self.start();
    }

    /// From now on there is no driver: all requests fail with this error.
    pub fn fail(&mut self, error: Error) {
        self.detach();
        self.failed = Some(error);
    }

    /// Why requests fail, if there will be no driver any more.
    pub fn failure(&self) -> Option<Error> {
        self.failed
    }

    /// Gives requests that wait to the driver, as far as there are slots.
    fn start(&mut self) {
        let Some(ends) = &mut self.ends else { return };
        let mut changes_before = false;
        for entry in &mut self.entries {
            let operation = entry.request.operation;
            let waits = operation == Operation::Flush && changes_before;
            changes_before |= operation.changes();
            if entry.slot.is_some() || waits {
                continue;
            }
            let slot = (!ends.in_use).trailing_zeros() as usize;
            if slot >= SLOTS {
                return;
            }
            ends.in_use |= 1 << slot;
            entry.slot = Some(slot);
            ends.area.slots[slot].write(&entry.request);
            ends.requests.send(slot as u64);
        }
    }
}
