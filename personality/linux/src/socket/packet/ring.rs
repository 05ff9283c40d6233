//! The ring of a packet socket: memory that a program maps, and into which frames are written as
//! they arrive (version 2 of Linux' layout, TPACKET_V2). Each frame of the ring begins with a word
//! that says whose it is: 0 the system's, with bit 0 the program's.

use super::{ADDRESS_SIZE, PacketAddress};
use crate::layout::{Fields, Writer};
use crate::socket::inet::arrival;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};
use unix::socket::InetReceived;
use unix::sync::{Turns, poll_once};
use unix::vfs::{Caller, FileMemory, SealFlags};
use unix::{Bytes, Environment, Error, Result, UserBuffer};

/// The layout that there is (TPACKET_V2).
pub(crate) const VERSION: u32 = 1;
/// Bytes of struct tpacket2_hdr, which the source's address follows.
pub(crate) const HEADER: u32 = 32;
/// Frames and their parts begin at multiples of this (TPACKET_ALIGNMENT).
const ALIGNMENT: u32 = 16;
/// Room that is left for the header of a link (16 bytes at least, as Linux does).
const LINK: u32 = 16;
const PAGE: u32 = 4096;
/// The most bytes of a ring.
const LARGEST: u64 = 64 << 20;
/// After this many pages of a ring that is made, other tasks run.
const TURN: u32 = 64;

const FOR_USER: u32 = 1;
const NO_CHECKSUM: u32 = 8;

/// What a program asks for (struct tpacket_req): blocks of whole pages, of which each has as many
/// frames as fit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingRequest {
    block_size: u32,
    blocks: u32,
    frame_size: u32,
    frames: u32,
}

impl RingRequest {
    /// Reads a struct tpacket_req. `EINVAL` if it is too short.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<RingRequest> {
        Ok(RingRequest {
            block_size: bytes.u32_at(0)?,
            blocks: bytes.u32_at(4)?,
            frame_size: bytes.u32_at(8)?,
            frames: bytes.u32_at(12)?,
        })
    }

    /// Whether no ring is asked for.
    pub(super) fn is_none(&self) -> bool {
        self.blocks == 0
    }

    /// `EINVAL` unless no frames are asked for, either.
    pub(super) fn check_none(&self) -> Result<()> {
        if self.frames == 0 { Ok(()) } else { Err(Error::EINVAL) }
    }

    /// How many frames each block has. `EINVAL` if the numbers do not fit together, `ENOMEM` if the
    /// ring would be too large.
    fn check(&self, reserve: u32) -> Result<u32> {
        let least = (HEADER + ADDRESS_SIZE as u32).checked_add(reserve);
        let least = least.filter(|least| self.frame_size >= *least);
        if self.block_size == 0
            || !self.block_size.is_multiple_of(PAGE)
            || least.is_none()
            || !self.frame_size.is_multiple_of(ALIGNMENT)
        {
            return Err(Error::EINVAL);
        }
        let each = self.block_size / self.frame_size;
        if each == 0 || each.checked_mul(self.blocks) != Some(self.frames) {
            return Err(Error::EINVAL);
        }
        if u64::from(self.block_size) * u64::from(self.blocks) > LARGEST {
            return Err(Error::ENOMEM);
        }
        Ok(each)
    }
}

/// A ring.
pub(super) struct Ring {
    memory: Arc<dyn FileMemory>,
    request: RingRequest,
    /// Frames of each block.
    each: u32,
    /// Where the received bytes begin in a frame of the ring, and where the network's header does.
    start: u32,
    network: u32,
    /// The next frame that is written.
    next: AtomicU32,
}

impl Ring {
    /// Makes a ring, whose memory is charged to the caller. `network` is the offset of the
    /// network's header in what is received.
    pub(super) async fn new(
        caller: &Caller<'_>,
        request: RingRequest,
        reserve: u32,
        network: u16,
    ) -> Result<Ring> {
        let each = request.check(reserve)?;
        let file = caller.make_memory_file(b"packet ring".to_vec(), SealFlags::empty()).await?;
        let memory = file.memory(true)?;
        let zeros = [0; PAGE as usize];
        let size = u64::from(request.block_size) * u64::from(request.blocks);
        // With all pages there, frames can be written without waiting.
        let mut turns = Turns::every(TURN);
        for at in (0..size).step_by(zeros.len()) {
            turns.step().await;
            let written = memory.write(at, zeros.len(), &mut Bytes::of(&zeros)).await;
            if written != Ok(zeros.len()) {
                return Err(Error::ENOMEM);
            }
        }
        let headers = (HEADER + ADDRESS_SIZE as u32).next_multiple_of(ALIGNMENT);
        let after = match network {
            0 => headers + LINK,
            length => (HEADER + ADDRESS_SIZE as u32 + LINK.max(length.into())).next_multiple_of(ALIGNMENT),
        };
        let place = after.checked_add(reserve).filter(|place| *place <= u16::MAX.into());
        let place = place.ok_or(Error::EINVAL)?;
        let (start, next) = (place - u32::from(network), AtomicU32::new(0));
        Ok(Ring { memory, request, each, start, network: place, next })
    }

    /// The memory that the program maps.
    pub(super) fn memory(&self) -> Arc<dyn FileMemory> {
        self.memory.clone()
    }

    /// How many received bytes fit in a frame of the ring.
    pub(super) fn room(&self) -> usize {
        self.request.frame_size.saturating_sub(self.start) as usize
    }

    /// Where a frame is in the memory.
    fn place(&self, frame: u32) -> u64 {
        let (block, rest) = (frame / self.each, frame % self.each);
        u64::from(block) * u64::from(self.request.block_size)
            + u64::from(rest) * u64::from(self.request.frame_size)
    }

    /// The word that says whose a frame is; `None` if it cannot be read without waiting.
    fn status(&self, frame: u32) -> Option<u32> {
        let mut word = Bytes::empty(4);
        match poll_once(self.memory.read(self.place(frame), 4, &mut word)) {
            Some(Ok(4)) => word.done().u32_at(0).ok(),
            _ => None,
        }
    }

    fn write(&self, mut at: u64, bytes: &[u8]) -> bool {
        let mut bytes = Bytes::of(bytes);
        while bytes.remaining() > 0 {
            let length = bytes.remaining();
            match poll_once(self.memory.write(at, length, &mut bytes)) {
                Some(Ok(count)) if count > 0 => at += count as u64,
                _ => return false,
            }
        }
        true
    }

    /// Whether the next frame belongs to the system.
    pub(super) fn has_room(&self) -> bool {
        self.status(self.next.load(Ordering::Relaxed)) == Some(0)
    }

    /// Whether the frame that was written last belongs to the program still.
    pub(super) fn has_frame(&self) -> bool {
        let last = self.next.load(Ordering::Relaxed).checked_sub(1).unwrap_or(self.request.frames - 1);
        self.status(last).is_some_and(|status| status != 0)
    }

    /// Writes what was received to the next frame, which becomes the program's. False if it could
    /// not be written without waiting. Only one call writes at a time.
    pub(super) fn put(&self, environment: &dyn Environment, received: &InetReceived, bytes: &[u8]) -> bool {
        let (Some(header), Some(interface)) = (received.link, received.interface) else { return false };
        let frame = self.next.load(Ordering::Relaxed);
        let at = self.place(frame);
        let status = FOR_USER | if interface.0 == 1 { NO_CHECKSUM } else { 0 };
        let (seconds, nanoseconds) = arrival(environment, received);
        let head =
            Writer::<{ HEADER as usize }>::new().u32(4, header.whole as u32).u32(8, bytes.len() as u32);
        let head = head.u16(12, self.start as u16).u16(14, self.network as u16);
        let head = head.u32(16, seconds as u32).u32(20, nanoseconds).done();
        let head = [&head[..], &PacketAddress::of(&header, interface).to_bytes()].concat();
        // The program sees the frame when its first word changes, which is after all others.
        let is_written = self.write(at, &head)
            && self.write(at + u64::from(self.start), bytes)
            && self.write(at, &status.to_le_bytes());
        if is_written {
            self.next.store((frame + 1) % self.request.frames, Ordering::Relaxed);
        }
        is_written
    }
}
