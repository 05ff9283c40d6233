//! The client's half of the way to a network interface.

#[cfg(not(loom))]
use core::sync::atomic::Ordering;
#[cfg(loom)]
use loom::sync::atomic::Ordering;

use crate::area::Area;
use crate::buffers::Buffers;
use crate::head::{HEAD, Head};
use crate::words::{Set, Word};
use crate::{BUFFER, BUFFERS, LONGEST, MOST_PIECES, SHORTEST};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use ring::lane::{Receiver, Sender};

/// Why a frame is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There are no free buffers now: earlier frames must be sent first.
    Full,
    /// The frame is shorter than [`SHORTEST`] or longer than [`LONGEST`].
    Length,
    /// There is no driver any more.
    Gone,
}

/// The client's ends of the lanes.
#[derive(Debug)]
struct Ends<'a> {
    area: &'a Area,
    to_send: Sender<'a, BUFFERS>,
    sent: Receiver<'a, BUFFERS>,
    to_fill: Sender<'a, BUFFERS>,
    filled: Receiver<'a, BUFFERS>,
    /// The buffers for received frames that the driver has.
    given: Set,
}

impl Ends<'_> {
    /// Gives the driver an empty buffer.
    fn give(&mut self, buffer: usize) {
        self.given.insert(buffer);
        self.to_fill.send(Word { buffer, length: BUFFER, more: false }.raw());
    }
}

/// The client's half. No function blocks.
#[derive(Debug)]
pub struct Client<'a> {
    buffers: Buffers<'a>,
    /// The ends of the lanes that the client shares with the present driver.
    ends: Option<Ends<'a>>,
    /// Whether there will be no driver any more.
    is_gone: bool,
    /// The free buffers for frames to send.
    free: Vec<usize>,
    /// The buffers of frames that were not sent yet, in their order.
    outstanding: VecDeque<Word>,
    /// The received buffers of a frame that is not complete, each with its length, and how many
    /// buffers the frame has.
    begun: Vec<(usize, usize)>,
    pieces: usize,
}

impl<'a> Client<'a> {
    /// A client without a driver, with these buffers.
    pub fn new(buffers: Buffers<'a>) -> Client<'a> {
        Client {
            buffers,
            ends: None,
            is_gone: false,
            free: (0..BUFFERS).rev().collect(),
            outstanding: VecDeque::with_capacity(BUFFERS),
            begun: Vec::with_capacity(MOST_PIECES),
            pieces: 0,
        }
    }

    /// Gives the driver that has attached to `area` all empty buffers, and the frames that were not
    /// sent yet. The area must be zero. Afterwards the caller must ask
    /// [`must_notify`](Client::must_notify).
    pub fn restart(&mut self, area: &'a Area) {
        self.begun.clear();
        let mut ends = Ends {
            area,
            to_send: Sender::new(&area.to_send),
            sent: Receiver::new(&area.sent),
            to_fill: Sender::new(&area.to_fill),
            filled: Receiver::new(&area.filled),
            given: Set::EMPTY,
        };
        (0..BUFFERS).for_each(|buffer| ends.give(buffer));
        self.outstanding.iter().for_each(|word| ends.to_send.send(word.raw()));
        self.ends = Some(ends);
    }

    /// The driver has ended: its lanes are not used any more. Frames that it has not sent wait for
    /// the next driver.
    pub fn detach(&mut self) {
        // If it has ended because of a fault, what it says last may be wrong. The next driver shall
        // not suffer for it: then more frames are sent again.
        let _ = self.collect();
        self.ends = None;
    }

    /// From now on there is no driver: nothing is sent or received.
    pub fn fail(&mut self) {
        self.ends = None;
        self.is_gone = true;
    }

    /// Whether there will be no driver any more: the last one has broken the rules, or the caller
    /// has said so.
    pub fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Sends a frame, which is copied. Afterwards the caller must ask
    /// [`must_notify`](Client::must_notify), once for any number of frames.
    ///
    /// # Errors
    /// The frame is not sent, with the reason.
    pub fn send(&mut self, head: &Head, frame: &[u8]) -> Result<(), Refused> {
        if self.is_gone {
            return Err(Refused::Gone);
        }
        if !(SHORTEST..=LONGEST).contains(&frame.len()) {
            return Err(Refused::Length);
        }
        let pieces = (HEAD + frame.len()).div_ceil(BUFFER);
        if self.free.len() < pieces && self.collect().is_none() {
            self.fail();
        }
        if self.free.len() < pieces || self.ends.is_none() {
            return Err(if self.is_gone { Refused::Gone } else { Refused::Full });
        }
        let (mut rest, mut at) = (frame, HEAD);
        for piece in 0..pieces {
            let Some(buffer) = self.free.pop() else { break };
            if piece == 0 {
                self.buffers.write(buffer, 0, &head.bytes());
            }
            let (part, after) = rest.split_at(rest.len().min(BUFFER - at));
            self.buffers.write(buffer, at, part);
            let word = Word { buffer, length: at + part.len(), more: piece + 1 < pieces };
            self.outstanding.push_back(word);
            if let Some(ends) = &mut self.ends {
                ends.to_send.send(word.raw());
            }
            (rest, at) = (after, 0);
        }
        Ok(())
    }

    /// Takes back the buffers of frames that were sent. `None`: the driver has broken the rules.
    fn collect(&mut self) -> Option<()> {
        while let Some(ends) = &mut self.ends {
            let Some(word) = ends.sent.receive().ok()? else { break };
            // The driver names the first buffer of a frame.
            let first = Word::read(word).map(|word| word.buffer);
            let mut begins = true;
            let at = self.outstanding.iter().position(|word| {
                let is_first = begins && Some(word.buffer) == first;
                begins = !word.more;
                is_first
            });
            let at = at?;
            while let Some(word) = self.outstanding.remove(at) {
                self.free.push(word.buffer);
                if !word.more {
                    break;
                }
            }
        }
        Some(())
    }

    /// Takes the next received frame, if there is one: its bytes replace those in `frame`. The head
    /// says what the device says of it. Afterwards the caller must ask
    /// [`must_notify`](Client::must_notify), once for any number of frames.
    pub fn receive(&mut self, frame: &mut Vec<u8>) -> Option<Head> {
        while let Some(ends) = &mut self.ends {
            let Ok(word) = ends.filled.receive() else {
                self.fail();
                return None;
            };
            let word = Word::read(word?).filter(|word| ends.given.remove(word.buffer));
            let Some(Word { buffer, length, .. }) = word else {
                self.fail();
                return None;
            };
            if let Some(head) = self.fill(buffer, length, frame) {
                return Some(head);
            }
        }
        None
    }

    /// Takes a filled buffer. Returns the head of the frame that it completes, if it does.
    fn fill(&mut self, buffer: usize, length: usize, frame: &mut Vec<u8>) -> Option<Head> {
        if self.begun.is_empty() {
            self.pieces = self.head(buffer, length).map_or(0, |(_, pieces)| pieces);
        }
        self.begun.push((buffer, length));
        if self.begun.len() < self.pieces {
            return None;
        }
        frame.clear();
        let head = self.begun.first().and_then(|&(buffer, length)| self.head(buffer, length));
        let mut from = HEAD;
        for &(buffer, length) in &self.begun {
            // What the device says is no frame is not copied, but its buffers are used again.
            if self.pieces > 0 {
                self.buffers.read(buffer, from, length, frame);
            }
            from = 0;
            if let Some(ends) = &mut self.ends {
                ends.give(buffer);
            }
        }
        self.begun.clear();
        let is_frame = self.pieces > 0 && (SHORTEST..=LONGEST).contains(&frame.len());
        head.map(|(head, _)| head).filter(|_| is_frame)
    }

    /// The head of the frame that begins in a buffer, and in how many buffers the frame is. `None`:
    /// no frame is like this.
    fn head(&self, buffer: usize, length: usize) -> Option<(Head, usize)> {
        let mut bytes = Vec::with_capacity(HEAD);
        self.buffers.read(buffer, 0, HEAD.min(length), &mut bytes);
        let (head, pieces) = Head::read(bytes.as_slice().try_into().ok()?);
        (1..=MOST_PIECES).contains(&pieces).then_some((head, pieces))
    }

    /// Whether the driver sleeps and must be notified of frames or of empty buffers.
    pub fn must_notify(&mut self) -> bool {
        // Both lanes are asked.
        self.ends.as_mut().is_some_and(|ends| ends.to_send.must_notify() | ends.to_fill.must_notify())
    }

    /// Says that the client sleeps until the driver notifies it of a received frame. Returns
    /// whether there is one already: the client must take it, since there may be no notification.
    pub fn sleep_to_receive(&self) -> bool {
        self.ends.as_ref().is_some_and(|ends| ends.filled.sleep())
    }

    /// Says that the client sleeps until the driver notifies it of a frame that was sent. Returns
    /// whether there is one already: then [`send`](Client::send) finds its buffers.
    pub fn sleep_to_send(&self) -> bool {
        self.ends.as_ref().is_some_and(|ends| ends.sent.sleep())
    }

    /// Whether the link is up, as the driver says. The driver notifies the client of a change.
    pub fn link(&self) -> bool {
        self.ends.as_ref().is_some_and(|ends| ends.area.link.load(Ordering::Acquire) != 0)
    }
}
