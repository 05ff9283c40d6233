//! A queue of the device, and the pieces of memory that its requests have.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use virtio::Error;
use virtio::left::Left;
use virtio::mapped::Mapped;
use virtio::memory::{Buffer, Layout, QueueMemory};
use virtio::queue::Queue;
use virtio::setup::{Device, Notify};
use virtio_console::pieces::{MOST, Pieces};

/// The memory of each queue.
pub(crate) const QUEUE_LAYOUT: Layout = match Layout::new(MOST as u16, 0) {
    Some(layout) => layout,
    None => panic!("the size is no power of two"),
};
pub(crate) const QUEUE_BYTES: usize = 512;
const _: () = assert!(QUEUE_LAYOUT.bytes() <= QUEUE_BYTES);

/// A queue whose requests have one piece of memory each.
pub(crate) struct Channel {
    pub(crate) queue: Queue<'static>,
    pub(crate) pieces: Pieces,
    notify: Notify,
    buffers: Vec<Buffer<'static>>,
}

impl Channel {
    /// A channel without pieces.
    pub(crate) fn new(memory: QueueMemory<'static>, notify: Notify, features: u64) -> Channel {
        Channel {
            queue: Queue::new(memory, features),
            pieces: Pieces::default(),
            notify,
            buffers: Vec::new(),
        }
    }

    /// Adds a piece of memory; at most [`MOST`] can be added.
    pub(crate) fn add(&mut self, buffer: Buffer<'static>) {
        self.pieces.add(self.buffers.len());
        self.buffers.push(buffer);
    }

    /// Gives the device a free piece that it may write. Returns whether there was one.
    pub(crate) fn give_input(&mut self) -> Result<bool, Error> {
        let Some(piece) = self.pieces.free() else { return Ok(false) };
        let buffer = &self.buffers[piece];
        let request = self.queue.give(&[], &[buffer.piece(buffer.length())])?;
        self.pieces.give(piece, request);
        Ok(true)
    }

    /// Lets `fill` write to a free piece, and gives the device what it has written. `fill` returns
    /// the number of bytes. The result is that number; 0: there was no free piece, or nothing to
    /// give.
    pub(crate) fn give_output(
        &mut self,
        fill: impl FnOnce(&Buffer<'static>) -> usize,
    ) -> Result<usize, Error> {
        let Some(piece) = self.pieces.free() else { return Ok(0) };
        let length = fill(&self.buffers[piece]);
        if length > 0 {
            self.give_piece(piece, length)?;
        }
        Ok(length)
    }

    /// Gives the device the first `length` bytes of a piece that it does not have.
    pub(crate) fn give_piece(&mut self, piece: usize, length: usize) -> Result<(), Error> {
        let request = self.queue.give(&[self.buffers[piece].piece(length)], &[])?;
        self.pieces.give(piece, request);
        Ok(())
    }

    /// The requests that an earlier driver has left: for each the number of its piece, and how many
    /// bytes `count` says that are in it. The pieces are not free until they are given or added.
    pub(crate) fn keep(
        &mut self,
        left: &[Left],
        count: impl Fn(&Left) -> Option<u32>,
    ) -> VecDeque<(usize, usize)> {
        let mut kept = VecDeque::new();
        for left in left {
            let is_it = |buffer: &Buffer<'static>| buffer.piece(0).address == left.address;
            if let (Some(count), Some(piece)) = (count(left), self.buffers.iter().position(is_it)) {
                self.pieces.keep(piece);
                kept.push_back((piece, count as usize));
            }
        }
        kept
    }

    /// Copies the first `count` bytes of a piece to `bytes`, as far as they fit. Returns how many.
    pub(crate) fn read(&self, piece: usize, count: usize, bytes: &mut [u8]) -> usize {
        let count = count.min(bytes.len());
        let mut places = bytes.iter_mut();
        self.buffers[piece].read_each(count, |byte| {
            if let Some(place) = places.next() {
                *place = byte;
            }
        });
        count
    }

    /// Notifies the device of what it was given, if it waits.
    pub(crate) fn notify(&mut self, device: &mut Device<Mapped>) {
        if self.queue.must_notify() {
            device.notify(self.notify);
        }
    }
}
