//! What a request asks for, and how it lies in its slot of the shared memory.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};

use crate::{PAGE, SECTOR};

/// The most segments of a request.
pub const SEGMENTS: usize = if cfg!(loom) { 1 } else { 32 };
/// The words of a slot before the segments.
const HEAD: usize = 3;

/// What is to be done with sectors of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads sectors into memory.
    Read,
    /// Writes sectors from memory.
    Write {
        /// Whether the request ends only when the data are on stable storage (force unit access).
        through: bool,
    },
    /// Brings to stable storage what was written by requests that were issued earlier.
    Flush,
    /// Tells the device that the contents of sectors are not needed any more. What a read of them
    /// gives is not defined.
    Discard,
}

impl Operation {
    fn number(self) -> u64 {
        match self {
            Operation::Read => 0,
            Operation::Write { through: false } => 1,
            Operation::Write { through: true } => 2,
            Operation::Flush => 3,
            Operation::Discard => 4,
        }
    }

    fn from_number(number: u64) -> Option<Operation> {
        Some(match number {
            0 => Operation::Read,
            1 => Operation::Write { through: false },
            2 => Operation::Write { through: true },
            3 => Operation::Flush,
            4 => Operation::Discard,
            _ => return None,
        })
    }

    /// Whether the operation changes what the device holds.
    pub fn changes(self) -> bool {
        matches!(self, Operation::Write { .. } | Operation::Discard)
    }

    /// Whether the operation moves data between device and memory.
    pub fn moves_data(self) -> bool {
        matches!(self, Operation::Read | Operation::Write { .. })
    }
}

/// A run of pages of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The number of the pool, as the driver has answered it.
    pub pool: u16,
    /// How many pages there are.
    pub count: u16,
    /// The number of the first page in the pool.
    pub page: u32,
}

/// The memory of a request: runs of pages, in the order of the data.
#[derive(Clone, Copy, Debug, Default)]
pub struct Segments {
    list: [Segment; SEGMENTS],
    count: usize,
}

impl Segments {
    /// Adds a page to the memory. Returns false, and adds nothing, if there is no room.
    pub fn push(&mut self, pool: u16, page: u32) -> bool {
        if let Some(last) = self.list[..self.count].last_mut()
            && last.pool == pool
            && last.count < u16::MAX
            && last.page.checked_add(last.count.into()) == Some(page)
        {
            last.count += 1;
            return true;
        }
        let Some(place) = self.list.get_mut(self.count) else { return false };
        *place = Segment { pool, count: 1, page };
        self.count += 1;
        true
    }

    /// The runs of pages.
    pub fn as_slice(&self) -> &[Segment] {
        &self.list[..self.count]
    }

    /// How many pages there are.
    pub fn pages(&self) -> u64 {
        self.as_slice().iter().map(|segment| u64::from(segment.count)).sum()
    }
}

/// A request to a block device.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// What is to be done.
    pub operation: Operation,
    /// The first sector; 0 for a flush.
    pub sector: u64,
    /// How many sectors there are; 0 for a flush.
    pub sectors: u32,
    /// Where the data begin in the first page, in bytes: a multiple of 512 below 4096.
    pub offset: u16,
    /// The memory of the data; none unless the operation [moves data](Operation::moves_data).
    pub segments: Segments,
}

impl Request {
    /// A flush.
    pub fn flush() -> Request {
        let (operation, segments) = (Operation::Flush, Segments::default());
        Request { operation, sector: 0, sectors: 0, offset: 0, segments }
    }

    /// How many bytes of data the request moves.
    pub fn bytes(&self) -> u64 {
        if self.operation.moves_data() { u64::from(self.sectors) * SECTOR } else { 0 }
    }

    /// Whether the fields agree with each other and with a device of `sectors` sectors.
    pub(crate) fn is_valid(&self, sectors: u64) -> bool {
        if self.operation == Operation::Flush {
            return self.sector == 0 && self.sectors == 0 && self.segments.as_slice().is_empty();
        }
        let end = self.sector.checked_add(self.sectors.into());
        let offset = u64::from(self.offset);
        // The last page is used: otherwise the pages do not belong to the sectors.
        let moves = self.operation.moves_data();
        let pages = if moves { (self.bytes() + offset).div_ceil(PAGE) } else { 0 };
        self.sectors > 0
            && end.is_some_and(|end| end <= sectors)
            && offset < PAGE
            && (moves || offset == 0)
            && offset.is_multiple_of(SECTOR)
            && pages == self.segments.pages()
    }
}

/// The place of a request in shared memory. Every content of it is valid.
#[repr(C)]
#[derive(Debug)]
pub struct Slot {
    words: [AtomicU64; HEAD + SEGMENTS],
}

impl Default for Slot {
    fn default() -> Slot {
        Slot { words: core::array::from_fn(|_| AtomicU64::new(0)) }
    }
}

impl Slot {
    /// Writes a request. The lane orders the words before the driver's reads.
    pub(crate) fn write(&self, request: &Request) {
        let set = |index: usize, word: u64| self.words[index].store(word, Ordering::Relaxed);
        let segments = request.segments.as_slice();
        let count = segments.len() as u64;
        set(0, request.operation.number() | count << 8 | u64::from(request.offset) << 16);
        set(1, request.sector);
        set(2, request.sectors.into());
        for (index, segment) in segments.iter().enumerate() {
            let Segment { pool, count, page } = *segment;
            set(HEAD + index, u64::from(page) | u64::from(count) << 32 | u64::from(pool) << 48);
        }
    }

    /// Writes any word of the slot, as a client could that breaks the rules.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn set(&self, index: usize, word: u64) {
        self.words[index].store(word, Ordering::Relaxed);
    }

    /// Reads a request, each word once. `None`: the words are no request.
    pub(crate) fn read(&self) -> Option<Request> {
        let word = |index: usize| self.words[index].load(Ordering::Relaxed);
        let head = word(0);
        let operation = Operation::from_number(head & 0xff)?;
        let count = (head >> 8 & 0xff) as usize;
        let (offset, rest) = ((head >> 16) as u16, head >> 32);
        let sectors = u32::try_from(word(2)).ok()?;
        if count > SEGMENTS || rest != 0 {
            return None;
        }
        let mut segments = Segments { count, ..Segments::default() };
        for (index, segment) in segments.list[..count].iter_mut().enumerate() {
            let word = word(HEAD + index);
            *segment = Segment { page: word as u32, count: (word >> 32) as u16, pool: (word >> 48) as u16 };
        }
        Some(Request { operation, sector: word(1), sectors, offset, segments })
    }
}
