//! A queue of requests to a device: a split virtqueue (2.6).

use crate::memory::{Descriptor, QueueMemory};
use crate::{Error, features};
use alloc::vec::Vec;
use core::sync::atomic::{Ordering, fence};

/// Bits of a descriptor: another one follows; the device writes the memory; the memory is a table
/// of descriptors.
pub(crate) const NEXT: u16 = 1;
pub(crate) const WRITABLE: u16 = 2;
pub(crate) const TABLE: u16 = 4;
/// The bit in either ring's flags by which the reader of the ring asks for no notification.
pub(crate) const NO_NOTIFICATION: u16 = 1;
/// Places in the ring of available requests: the flags, the count, the first request.
pub(crate) const FLAGS: usize = 0;
pub(crate) const COUNT: usize = 1;
pub(crate) const FIRST: usize = 2;

/// A piece of memory for the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The address of the first byte for the device, as root tells it.
    pub address: u64,
    /// How many bytes the piece has.
    pub length: u32,
}

/// The number of a request that the device has, below the queue's size. No two requests have the
/// same number at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(u16);

impl Token {
    /// The number, as an index of what the driver records about requests.
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// A request that the device has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// The request's number, which is free again.
    pub token: Token,
    /// How many bytes the device says it has written, at most those of the writable pieces.
    pub written: u32,
}

/// What the driver records about the request that begins at a descriptor.
#[derive(Clone, Copy, Debug)]
struct Request {
    /// How many descriptors of the queue the request has.
    descriptors: u16,
    /// How many bytes the device may write.
    capacity: u32,
}

/// The driver's side of a queue.
#[derive(Debug)]
pub struct Queue<'a> {
    memory: QueueMemory<'a>,
    has_event_index: bool,
    has_tables: bool,
    /// For each descriptor, the next one of its request, or of those that are free.
    next: Vec<u16>,
    /// For each descriptor, the request that begins there.
    requests: Vec<Option<Request>>,
    first_free: u16,
    free: u16,
    /// How many requests have ever been given to the device, modulo 2^16, like the counts below.
    given: u16,
    /// What `given` was when the device was notified last.
    notified: u16,
    /// How many requests the device has ever completed.
    taken: u16,
    is_broken: bool,
}

impl<'a> Queue<'a> {
    /// A queue in `memory`, which is zero, for a device with these features.
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

    /// The queue's memory, of which the device is told.
    pub fn memory(&self) -> &QueueMemory<'a> {
        &self.memory
    }

    /// How many requests the device has.
    pub fn outstanding(&self) -> u16 {
        self.given.wrapping_sub(self.taken)
    }

    /// Gives a request to the device: memory that it reads, then memory that it writes. The memory
    /// is the device's until the request is completed. The device may have to be notified:
    /// [`must_notify`](Queue::must_notify).
    ///
    /// # Errors
    /// `Full`, `Length`, `Broken`; then nothing has been given.
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
        // Both numbers fit: they are at most the size of the queue, and 2^32 - 1.
        let descriptors = descriptors as u16;
        self.free -= descriptors;
        self.requests[usize::from(head)] = Some(Request { descriptors, capacity: capacity as u32 });
        let entry = FIRST + self.entry(self.given);
        self.memory.available[entry].store(head, Ordering::Relaxed);
        self.given = self.given.wrapping_add(1);
        self.memory.available[COUNT].store(self.given, Ordering::Release);
        Ok(Token(head))
    }

    /// Whether the device waits to be notified of the requests that were given since the last call.
    pub fn must_notify(&mut self) -> bool {
        // The device must see the requests before the driver sees for what the device waits: it
        // looks for requests after it has said that it waits.
        fence(Ordering::SeqCst);
        let news = self.given.wrapping_sub(self.notified);
        self.notified = self.given;
        if self.has_event_index {
            let event = self.memory.used[self.memory.layout.used() - 1].load(Ordering::Relaxed) as u16;
            return self.given.wrapping_sub(event).wrapping_sub(1) < news;
        }
        news > 0 && self.memory.used[0].load(Ordering::Relaxed) as u16 & NO_NOTIFICATION == 0
    }

    /// The next request that the device has completed.
    ///
    /// # Errors
    /// `Broken`: the device has completed a request that it did not have, or says that it has
    /// written more than it may. What else it has completed is not known.
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
        let request =
            request.filter(|request| completed <= self.outstanding() && written <= request.capacity);
        let Some(request) = request else {
            self.is_broken = true;
            return Err(Error::Broken);
        };
        self.requests[head] = None;
        self.free(head, request.descriptors);
        self.taken = self.taken.wrapping_add(1);
        Ok(Some(Completed { token: Token(head as u16), written }))
    }

    /// Asks for an interrupt when the device completes another request. Returns whether it has
    /// completed one already, for which no interrupt may come.
    pub fn expect_interrupt(&mut self) -> bool {
        match self.has_event_index {
            true => self.waited_for().store(self.taken, Ordering::Relaxed),
            false => self.memory.available[FLAGS].store(0, Ordering::Relaxed),
        }
        // The device must see this before the driver looks: it looks whether the driver waits after
        // it has completed a request.
        fence(Ordering::SeqCst);
        self.completed() > 0
    }

    /// Asks for no interrupts. The device may interrupt nevertheless.
    pub fn expect_no_interrupt(&mut self) {
        match self.has_event_index {
            // The entry before the next one has been passed, and is not reached soon.
            true => self.waited_for().store(self.taken.wrapping_sub(1), Ordering::Relaxed),
            false => self.memory.available[FLAGS].store(NO_NOTIFICATION, Ordering::Relaxed),
        }
    }

    /// The entry of the ring of used requests for which the driver waits.
    fn waited_for(&self) -> &core::sync::atomic::AtomicU16 {
        &self.memory.available[self.memory.layout.available() - 1]
    }

    /// How many requests the device says it has completed that were not taken yet.
    fn completed(&self) -> u16 {
        let word = self.memory.used[0].load(Ordering::Acquire);
        ((word >> 16) as u16).wrapping_sub(self.taken)
    }

    /// The entry of a ring for the request with this count.
    fn entry(&self, count: u16) -> usize {
        (count & (self.memory.layout.size() - 1)).into()
    }

    /// Frees the `count` descriptors of the request that begins at `head`.
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
