//! A queue of requests to a device: a split virtqueue (2.6).

use crate::memory::{Descriptor, QueueMemory};
use crate::{Error, features};
use alloc::vec::Vec;
use core::sync::atomic::{Ordering, fence};

/// Bits of a descriptor's flags: another descriptor follows, the device writes the memory, and the
/// memory is a table of descriptors.
pub(crate) const NEXT: u16 = 1;
pub(crate) const WRITABLE: u16 = 2;
pub(crate) const TABLE: u16 = 4;
/// The bit in the flags of both rings by which the side that reads the ring asks for no
/// notification.
pub(crate) const NO_NOTIFICATION: u16 = 1;
/// The 16-bit words of the ring of available requests at which the flags, the count, and the first
/// request are.
pub(crate) const FLAGS: usize = 0;
pub(crate) const COUNT: usize = 1;
pub(crate) const FIRST: usize = 2;

/// A piece of memory for the device to read or to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The address at which the device finds the first byte, as root tells it.
    pub address: u64,
    /// The length of the piece in bytes.
    pub length: u32,
}

/// The number of a request that the device has. The number is below the queue's size, and no other
/// request has it until the request is completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(u16);

impl Token {
    /// The number as an index, for what the driver records about its requests.
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// A request that the device has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// The number of the request, which the next request may get.
    pub token: Token,
    /// How many bytes the device says that it has written: at most the bytes of the writable
    /// pieces.
    pub written: u32,
}

/// What the queue records about a request, at the index of the request's first descriptor.
#[derive(Clone, Copy, Debug)]
struct Request {
    /// How many descriptors of the queue the request uses.
    descriptors: u16,
    /// How many bytes the device may write.
    capacity: u32,
}

/// A queue as its driver uses it. The device has the other side of the shared memory.
#[derive(Debug)]
pub struct Queue<'a> {
    memory: QueueMemory<'a>,
    has_event_index: bool,
    has_tables: bool,
    /// For each descriptor, the next descriptor of its request; for a free one, the next free one.
    next: Vec<u16>,
    /// For each descriptor, the request that begins with it, if there is one.
    requests: Vec<Option<Request>>,
    first_free: u16,
    free: u16,
    /// How many requests were ever given to the device, modulo 2^16, like the next two counts.
    given: u16,
    /// The value of `given` when the driver last looked whether to notify the device.
    notified: u16,
    /// How many completed requests the driver has ever taken.
    taken: u16,
    is_broken: bool,
}

impl<'a> Queue<'a> {
    /// Makes a queue in `memory`, which must be zero, for a device with the features `agreed`.
    pub fn new(memory: QueueMemory<'a>, agreed: u64) -> Queue<'a> {
        let size = memory.layout.size();
        Queue {
            has_event_index: agreed & features::EVENT_INDEX != 0,
            has_tables: agreed & features::INDIRECT != 0 && memory.entries() > 0,
            memory,
            next: (1..=size).collect(),
            requests: (0..size).map(|_| None).collect(),
            first_free: 0,
            free: size,
            given: 0,
            notified: 0,
            taken: 0,
            is_broken: false,
        }
    }

    /// The memory of the queue, whose addresses the device must be told.
    pub fn memory(&self) -> &QueueMemory<'a> {
        &self.memory
    }

    /// How many requests were given to the device whose completion the driver has not taken yet.
    pub fn outstanding(&self) -> u16 {
        self.given.wrapping_sub(self.taken)
    }

    /// How many requests were ever given to the device, modulo 2^16.
    pub fn given(&self) -> u16 {
        self.given
    }

    /// How many completed requests the driver has ever taken, modulo 2^16.
    pub fn taken(&self) -> u16 {
        self.taken
    }

    /// Gives a request to the device. The device reads the `readable` pieces, and writes the
    /// `writable` ones. Their memory belongs to the device until the request is completed.
    /// Afterwards the driver must ask [`must_notify`](Queue::must_notify). Never blocks.
    ///
    /// # Errors
    /// Nothing has been given after an error. `Full`: too few free descriptors. `Length`: no queue
    /// of this size could ever hold the request. `Broken`: the queue cannot be used any more.
    pub fn give(&mut self, readable: &[Piece], writable: &[Piece]) -> Result<Token, Error> {
        if self.is_broken {
            return Err(Error::Broken);
        }
        let count = readable.len() + writable.len();
        let total = |pieces: &[Piece]| pieces.iter().map(|piece| u64::from(piece.length)).sum::<u64>();
        let capacity = total(writable);
        let in_table = self.has_tables && count > 1 && count <= self.memory.entries();
        let descriptors = if in_table { 1 } else { count };
        if count == 0
            || descriptors > usize::from(self.memory.layout.size())
            || total(readable) + capacity > u32::MAX.into()
        {
            return Err(Error::Length);
        }
        if descriptors > self.free.into() {
            return Err(Error::Full);
        }
        let head = self.first_free;
        let pieces = readable.iter().map(|piece| (piece, 0));
        let pieces = pieces.chain(writable.iter().map(|piece| (piece, WRITABLE)));
        if in_table {
            let (entries, at) = (self.memory.entries(), usize::from(head));
            let table = &self.memory.tables[at * entries..][..count];
            for ((index, descriptor), (piece, flags)) in (1u16..).zip(table).zip(pieces) {
                let more = if usize::from(index) < count { NEXT } else { 0 };
                descriptor.set(*piece, flags | more, index);
            }
            let address = self.memory.addresses.tables + (at * entries * size_of::<Descriptor>()) as u64;
            let length = (count * size_of::<Descriptor>()) as u32;
            self.memory.descriptors[at].set(Piece { address, length }, TABLE, 0);
            self.first_free = self.next[at];
        } else {
            for (index, (piece, flags)) in (1..).zip(pieces) {
                let at = usize::from(self.first_free);
                let more = if index < count { NEXT } else { 0 };
                self.memory.descriptors[at].set(*piece, flags | more, self.next[at]);
                self.first_free = self.next[at];
            }
        }
        // Both conversions are exact: the request has at most as many descriptors as the queue, and
        // less than 4 GiB.
        let descriptors = descriptors as u16;
        self.free -= descriptors;
        self.requests[usize::from(head)] = Some(Request { descriptors, capacity: capacity as u32 });
        let entry = FIRST + self.entry(self.given);
        self.memory.available[entry].store(head, Ordering::Relaxed);
        self.given = self.given.wrapping_add(1);
        self.memory.available[COUNT].store(self.given, Ordering::Release);
        Ok(Token(head))
    }

    /// Whether the driver must notify the device, because the device waits for a request that was
    /// given since the last call of this function.
    pub fn must_notify(&mut self) -> bool {
        // The device first says that it waits, then looks for requests. So the driver must first
        // make its requests visible, then look whether the device waits: otherwise both could miss
        // the other.
        fence(Ordering::SeqCst);
        let news = self.given.wrapping_sub(self.notified);
        self.notified = self.given;
        if self.has_event_index {
            let event = self.memory.used[self.memory.layout.used() - 1].load(Ordering::Relaxed) as u16;
            return self.given.wrapping_sub(event).wrapping_sub(1) < news;
        }
        news > 0 && self.memory.used[0].load(Ordering::Relaxed) as u16 & NO_NOTIFICATION == 0
    }

    /// Takes the next request that the device has completed, if there is one. Never blocks.
    ///
    /// # Errors
    /// `Broken`: the device has completed a request that it did not have, or says that it has
    /// written more than it may. The state of the other requests is unknown.
    pub fn take(&mut self) -> Result<Option<Completed>, Error> {
        if self.is_broken {
            return Err(Error::Broken);
        }
        let completed = self.completed();
        if completed == 0 {
            return Ok(None);
        }
        let entry = 1 + 2 * self.entry(self.taken);
        let head = self.memory.used[entry].load(Ordering::Relaxed) as usize;
        let written = self.memory.used[entry + 1].load(Ordering::Relaxed);
        let request = self.requests.get(head).copied().flatten();
        // Of a request without writable pieces, some devices tell how many bytes they have read.
        let count = |request: &Request| if request.capacity == 0 { 0 } else { written };
        let request = request.map(|request| (request, count(&request)));
        let is_possible = |(request, written): &(Request, u32)| {
            completed <= self.outstanding() && *written <= request.capacity
        };
        let Some((request, written)) = request.filter(is_possible) else {
            self.is_broken = true;
            return Err(Error::Broken);
        };
        self.requests[head] = None;
        self.free(head, request.descriptors);
        self.taken = self.taken.wrapping_add(1);
        Ok(Some(Completed { token: Token(head as u16), written }))
    }

    /// Asks for an interrupt when the device completes another request. Returns whether the device
    /// has completed one already: the driver must take that one, since there may be no interrupt
    /// for it.
    pub fn expect_interrupt(&mut self) -> bool {
        match self.has_event_index {
            true => self.waited_for().store(self.taken, Ordering::Relaxed),
            false => self.memory.available[FLAGS].store(0, Ordering::Relaxed),
        }
        // The device first completes a request, then looks whether the driver waits. So the driver
        // must first say that it waits, then look for completed requests: otherwise both could miss
        // the other.
        fence(Ordering::SeqCst);
        self.completed() > 0
    }

    /// Asks for no interrupts. The device may still interrupt.
    pub fn expect_no_interrupt(&mut self) {
        match self.has_event_index {
            // The driver has taken the entry before the next one, so the device reaches that entry
            // again only after a whole round of the ring.
            true => self.waited_for().store(self.taken.wrapping_sub(1), Ordering::Relaxed),
            false => self.memory.available[FLAGS].store(NO_NOTIFICATION, Ordering::Relaxed),
        }
    }

    /// The word in which the driver says at which entry of the ring of used requests it waits.
    fn waited_for(&self) -> &core::sync::atomic::AtomicU16 {
        &self.memory.available[self.memory.layout.available() - 1]
    }

    /// How many requests the device has completed that the driver has not taken yet, as the device
    /// says.
    fn completed(&self) -> u16 {
        let word = self.memory.used[0].load(Ordering::Acquire);
        ((word >> 16) as u16).wrapping_sub(self.taken)
    }

    /// The index, in either ring, of the entry that is used when the ring's count is `count`.
    fn entry(&self, count: u16) -> usize {
        (count & (self.memory.layout.size() - 1)).into()
    }

    /// Frees the `count` descriptors of the request that begins with the descriptor `head`.
    fn free(&mut self, head: usize, count: u16) {
        let mut last = head;
        for _ in 1..count {
            last = self.next[last].into();
        }
        self.next[last] = self.first_free;
        self.first_free = head as u16;
        self.free += count;
    }
}

impl Descriptor {
    fn set(&self, piece: Piece, flags: u16, next: u16) {
        self.address.store(piece.address, Ordering::Relaxed);
        self.length.store(piece.length, Ordering::Relaxed);
        self.flags.store(flags, Ordering::Relaxed);
        self.next.store(next, Ordering::Relaxed);
    }
}
