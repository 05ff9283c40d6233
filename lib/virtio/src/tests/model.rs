//! A simulated device with one queue. It carries out each request by writing the bytes that it has
//! read (a loop).

use crate::features;
use crate::memory::{Addresses, Descriptor, Layout, QueueMemory};
use crate::queue::{COUNT, FIRST, FLAGS, NEXT, NO_NOTIFICATION, Piece, TABLE, WRITABLE};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering::SeqCst};

/// The address at which the device finds the queue's memory.
const QUEUE: u64 = 0x1_0000_0000;
/// The address at which the device finds the first piece of a test.
const PIECES: u64 = 0x2_0000_0000;

/// The memory of a queue, which the driver and the simulated device share.
pub(super) struct Shared {
    pub(super) layout: Layout,
    pub(super) descriptors: Vec<Descriptor>,
    pub(super) available: Vec<AtomicU16>,
    pub(super) used: Vec<AtomicU32>,
    pub(super) tables: Vec<Descriptor>,
}

impl Shared {
    pub(super) fn new(size: u16, entries: u16) -> Shared {
        let layout = Layout::new(size, entries).expect("a size of a queue");
        let all = |count: usize| (0..count).map(|_| Descriptor::default()).collect();
        Shared {
            layout,
            descriptors: all(size.into()),
            available: (0..layout.available()).map(|_| AtomicU16::new(0)).collect(),
            used: (0..layout.used()).map(|_| AtomicU32::new(0)).collect(),
            tables: all(usize::from(size) * usize::from(entries)),
        }
    }

    pub(super) fn memory(&self) -> QueueMemory<'_> {
        QueueMemory {
            layout: self.layout,
            descriptors: &self.descriptors,
            available: &self.available,
            used: &self.used,
            tables: &self.tables,
            addresses: Addresses::of(self.layout, QUEUE),
        }
    }
}

/// The memory of requests: pieces by their addresses.
#[derive(Default)]
pub(super) struct Memory {
    pieces: BTreeMap<u64, Vec<u8>>,
    next: u64,
}

impl Memory {
    /// Adds a piece with the content `bytes`, and returns its address and length.
    pub(super) fn add(&mut self, bytes: Vec<u8>) -> Piece {
        let piece = Piece { address: PIECES + self.next, length: bytes.len() as u32 };
        self.next += 0x1_0000;
        self.pieces.insert(piece.address, bytes);
        piece
    }

    pub(super) fn bytes(&self, piece: Piece) -> &[u8] {
        &self.pieces[&piece.address]
    }
}

/// The simulated device's side of a queue.
pub(super) struct Loop<'a> {
    shared: &'a Shared,
    agreed: u64,
    seen: u16,
    /// Requests that the device has seen and not completed yet, by their first descriptors.
    pub(super) begun: Vec<u16>,
    completed: u16,
    /// The count of completed requests when the device last interrupted the driver.
    interrupted: u16,
}

impl<'a> Loop<'a> {
    pub(super) fn new(shared: &'a Shared, agreed: u64) -> Loop<'a> {
        Loop { shared, agreed, seen: 0, begun: Vec::new(), completed: 0, interrupted: 0 }
    }

    fn has_event_index(&self) -> bool {
        self.agreed & features::EVENT_INDEX != 0
    }

    /// Reads the requests that the driver has given so far.
    pub(super) fn see(&mut self) {
        let Shared { layout, available, .. } = self.shared;
        while available[COUNT].load(SeqCst) != self.seen {
            let entry = FIRST + usize::from(self.seen % layout.size());
            self.begun.push(available[entry].load(SeqCst));
            self.seen = self.seen.wrapping_add(1);
        }
    }

    /// Sets whether the device wants to be notified of the next request.
    pub(super) fn wait(&self, waits: bool) {
        let used = &self.shared.used;
        if self.has_event_index() {
            let event = if waits { self.seen } else { self.seen.wrapping_sub(1) };
            used[used.len() - 1].store(event.into(), SeqCst);
        } else {
            let flags = if waits { 0 } else { NO_NOTIFICATION };
            used[0].store(u32::from(self.completed) << 16 | u32::from(flags), SeqCst);
        }
    }

    /// The pieces of a request: those that the device reads, and those that it writes.
    pub(super) fn pieces(&self, head: u16) -> [Vec<Piece>; 2] {
        let Shared { layout, descriptors, tables, .. } = self.shared;
        let mut all = [Vec::new(), Vec::new()];
        let first = &descriptors[usize::from(head)];
        let (mut at, list): (usize, &[Descriptor]) = if first.flags.load(SeqCst) & TABLE != 0 {
            assert_ne!(self.agreed & features::INDIRECT, 0, "only if the device knows tables");
            let begin = first.address.load(SeqCst) - Addresses::of(*layout, QUEUE).tables;
            let (begin, count) = (begin as usize / 16, first.length.load(SeqCst) as usize / 16);
            (0, &tables[begin..begin + count])
        } else {
            (head.into(), descriptors)
        };
        for _ in 0..list.len() {
            let descriptor = &list[at];
            let flags = descriptor.flags.load(SeqCst);
            let piece =
                Piece { address: descriptor.address.load(SeqCst), length: descriptor.length.load(SeqCst) };
            let writable = flags & WRITABLE != 0;
            assert!(writable || all[1].is_empty(), "pieces to be read come first");
            all[usize::from(writable)].push(piece);
            if flags & NEXT == 0 {
                return all;
            }
            at = descriptor.next.load(SeqCst).into();
        }
        panic!("the descriptors are a loop");
    }

    /// Completes the request at `index` of `begun`: writes the bytes that were read, as far as
    /// there is room. Returns whether the driver must be interrupted.
    pub(super) fn complete(&mut self, memory: &mut Memory, index: usize) -> bool {
        let head = self.begun.remove(index);
        let [readable, writable] = self.pieces(head);
        let mut bytes = readable.iter().flat_map(|&piece| memory.bytes(piece).to_vec()).collect::<Vec<_>>();
        let mut written = 0;
        for piece in writable {
            let count = bytes.len().min(piece.length as usize);
            let place = memory.pieces.get_mut(&piece.address).expect("a piece of the test");
            place[..count].copy_from_slice(&bytes[..count]);
            bytes.drain(..count);
            written += count as u32;
        }
        self.publish(head.into(), written)
    }

    /// Tells the driver that a request is completed, even if it is not. Returns whether the driver
    /// must be interrupted.
    pub(super) fn publish(&mut self, head: u32, written: u32) -> bool {
        let Shared { layout, used, available, .. } = self.shared;
        let entry = 1 + 2 * usize::from(self.completed % layout.size());
        used[entry].store(head, SeqCst);
        used[entry + 1].store(written, SeqCst);
        self.completed = self.completed.wrapping_add(1);
        let flags = used[0].load(SeqCst) & 0xffff;
        used[0].store(u32::from(self.completed) << 16 | flags, SeqCst);
        let before = std::mem::replace(&mut self.interrupted, self.completed);
        if !self.has_event_index() {
            return available[FLAGS].load(SeqCst) & NO_NOTIFICATION == 0;
        }
        let event = available[available.len() - 1].load(SeqCst);
        self.completed.wrapping_sub(event).wrapping_sub(1) < self.completed.wrapping_sub(before)
    }
}
