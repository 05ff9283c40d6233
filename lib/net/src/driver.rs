//! The driver's half of the way to a network interface.

#[cfg(not(loom))]
use core::sync::atomic::Ordering;
#[cfg(loom)]
use loom::sync::atomic::Ordering;

use crate::area::Area;
use crate::head::HEAD;
use crate::words::{Set, Word};
use crate::{BUFFER, BUFFERS, MOST_PIECES, POOL, SHORTEST};
use alloc::vec::Vec;
use ring::lane::{Receiver, Sender};

/// The unit of the client's memory in bytes.
const PAGE: u64 = 4096;

/// A piece of memory, as the device reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The address of the first byte.
    pub address: u64,
    /// The number of bytes, at most [`BUFFER`].
    pub length: usize,
}

/// A frame to send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The numbers of the buffers.
    buffers: Vec<usize>,
    /// The memory of the head and the frame. The first piece has the whole head.
    pub pieces: Vec<Piece>,
}

/// The addresses of the pages of the client's memory for frames.
#[derive(Clone, Debug)]
pub struct Pages(Vec<u64>);

impl Pages {
    /// Asks `find` for the address of the byte at an offset of the pool, and how many bytes are
    /// contiguous from there on. `None`: no memory for frames is like this.
    ///
    /// # Errors
    /// The first error of `find`.
    pub fn find<E>(mut find: impl FnMut(u64) -> Result<(u64, u64), E>) -> Result<Option<Pages>, E> {
        let mut pages = Vec::with_capacity(POOL.div_ceil(PAGE) as usize);
        while (pages.len() as u64) < POOL.div_ceil(PAGE) {
            let (address, length) = find(pages.len() as u64 * PAGE)?;
            if length < PAGE || !address.is_multiple_of(PAGE) {
                return Ok(None);
            }
            let count = (length / PAGE).min(POOL.div_ceil(PAGE) - pages.len() as u64);
            pages.extend((0..count).map(|page| address + page * PAGE));
        }
        Ok(Some(Pages(pages)))
    }

    /// Where the buffer of a number is: those for received frames come first.
    pub(crate) fn buffer(&self, number: usize) -> u64 {
        let offset = (number * BUFFER) as u64;
        self.0[(offset / PAGE) as usize] + offset % PAGE
    }
}

/// The driver's half. No function blocks.
#[derive(Debug)]
pub struct Driver<'a> {
    area: &'a Area,
    pages: Pages,
    to_send: Receiver<'a, BUFFERS>,
    sent: Sender<'a, BUFFERS>,
    to_fill: Receiver<'a, BUFFERS>,
    filled: Sender<'a, BUFFERS>,
    /// The buffers of frames that were taken and not sent.
    sending: Set,
    /// The empty buffers that were taken and not filled, and how many these are.
    filling: Set,
    empty: usize,
    /// A frame of which not all buffers have come.
    begun: Frame,
    is_broken: bool,
}

impl<'a> Driver<'a> {
    /// The driver's half of an area that was not used yet, with the memory of the client's buffers.
    pub fn new(area: &'a Area, pages: Pages) -> Driver<'a> {
        Driver {
            area,
            pages,
            to_send: Receiver::new(&area.to_send),
            sent: Sender::new(&area.sent),
            to_fill: Receiver::new(&area.to_fill),
            filled: Sender::new(&area.filled),
            sending: Set::EMPTY,
            filling: Set::EMPTY,
            empty: 0,
            begun: Frame::default(),
            is_broken: false,
        }
    }

    /// The client has broken the rules: nothing is taken from it any more.
    fn fail<T>(&mut self) -> Option<T> {
        self.is_broken = true;
        None
    }

    /// Takes the next frame to send. `None`: there is none now, or none any more, since the client
    /// has broken the rules.
    pub fn take(&mut self) -> Option<Frame> {
        while !self.is_broken {
            let Ok(word) = self.to_send.receive() else { return self.fail() };
            let word = Word::read(word?).filter(|word| self.sending.insert(word.buffer));
            let Some(Word { buffer, length, more }) = word else { return self.fail() };
            let address = self.pages.buffer(BUFFERS + buffer);
            self.begun.buffers.push(buffer);
            self.begun.pieces.push(Piece { address, length });
            // Devices need the head, and the addresses and the type of a frame, in one piece.
            let is_first = self.begun.pieces.len() == 1;
            let shortest = if is_first { HEAD + SHORTEST } else { 1 };
            if length < shortest || (more && self.begun.pieces.len() == MOST_PIECES) {
                return self.fail();
            }
            if !more {
                return Some(core::mem::take(&mut self.begun));
            }
        }
        None
    }

    /// A frame that was taken was sent, or could not be: its buffers are the client's again.
    /// Afterwards the caller must ask [`must_notify`](Driver::must_notify).
    pub fn sent(&mut self, frame: &Frame) {
        for &buffer in &frame.buffers {
            self.sending.remove(buffer);
        }
        if let Some(&buffer) = frame.buffers.first() {
            self.sent.send(Word { buffer, length: 0, more: false }.raw());
        }
    }

    /// Takes the next empty buffer: its number, and its memory. `None`: there is none now, or none
    /// any more, since the client has broken the rules.
    pub fn take_empty(&mut self) -> Option<(usize, Piece)> {
        if self.is_broken {
            return None;
        }
        let Ok(word) = self.to_fill.receive() else { return self.fail() };
        let word = Word::read(word?).filter(|word| self.filling.insert(word.buffer));
        let Some(Word { buffer, .. }) = word else { return self.fail() };
        self.empty += 1;
        Some((buffer, Piece { address: self.pages.buffer(buffer), length: BUFFER }))
    }

    /// The device has written `length` bytes into a buffer that was taken. Afterwards the caller
    /// must ask [`must_notify`](Driver::must_notify).
    ///
    /// # Panics
    /// If no such buffer was taken.
    pub fn filled(&mut self, buffer: usize, length: usize) {
        assert!(self.filling.remove(buffer), "the buffer was taken");
        self.empty -= 1;
        self.filled.send(Word { buffer, length: length.min(BUFFER), more: false }.raw());
    }

    /// Says whether the link is up. Returns whether that is news, of which the caller must notify
    /// the client.
    pub fn set_link(&mut self, up: bool) -> bool {
        self.area.link.swap(u32::from(up), Ordering::AcqRel) != u32::from(up)
    }

    /// Whether the client sleeps and must be notified of frames that were sent or received since
    /// this was asked last.
    pub fn must_notify(&mut self) -> bool {
        // Both lanes are asked.
        self.sent.must_notify() | self.filled.must_notify()
    }

    /// Says that the driver sleeps until the client notifies it of a frame to send, or of an empty
    /// buffer if it has few. Returns whether there is one already.
    ///
    /// With many empty buffers, the device's next frame wakes the driver before they are used up.
    pub fn sleep(&self) -> bool {
        let wants = self.empty <= BUFFERS / 2;
        (self.to_send.sleep() | (wants && self.to_fill.sleep())) && !self.is_broken
    }
}
