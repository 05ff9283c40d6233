//! A port: bytes between the device and a client.

use crate::channel::Channel;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use driver::client::{Attachment, Client};
use driver::end;
use ring::{Reader, Writer};
use rt::root::Status;
use virtio::Error;
use virtio::left::Left;
use virtio::mapped::Mapped;
use virtio::memory::Buffer;
use virtio::setup::Device;
use virtio_console::area::{self, Area, Host, RING};
use virtio_console::notes::{Notes, Progress};
use virtio_console::pieces::more_input;

/// The address at which the area of the first port's client is mapped, and the distance to the next
/// one.
const AREA: u64 = 0x4000_0000;
const AREA_DISTANCE: u64 = 1 << 20;
/// The size of the memory for the bytes of a port.
pub(crate) const BYTES: u64 = 128 << 10;
/// The pieces for bytes from the host, which the device fills with up to 4 KiB each, and those for
/// bytes to the host.
const INPUT_PIECE: usize = 4096;
const INPUT_PIECES: usize = 16;
const OUTPUT_PIECE: usize = 16384;
const OUTPUT_PIECES: usize = 4;
const _: () = assert!(INPUT_PIECE * INPUT_PIECES + OUTPUT_PIECE * OUTPUT_PIECES == BYTES as usize);

/// The driver's end of the memory that it shares with a client.
struct Shared {
    area: &'static Area,
    output: Reader<'static, RING>,
    input: Writer<'static, RING>,
    /// What the client was told last: the state of the host's end, and how many pieces of output
    /// the device has.
    host: Host,
    unsent: u32,
    /// Whether the client has yet to be notified of a change.
    news: bool,
}

/// What an earlier driver has left of a port.
pub(crate) struct Remains {
    /// The requests for input from the one of the note on, and the note.
    pub(crate) input: Vec<Left>,
    pub(crate) input_note: Progress,
    /// The requests of output that the device has not completed, how many it was given in all, the
    /// length of the last one of these, and the note.
    pub(crate) output: Vec<Left>,
    pub(crate) given: u16,
    pub(crate) last: usize,
    pub(crate) output_note: Progress,
}

/// What there is of it until a client attaches.
struct Kept {
    input: VecDeque<(usize, usize)>,
    remains: Remains,
}

/// A port of the device.
pub(crate) struct Line {
    port: u64,
    input: Channel,
    output: Channel,
    client: Option<Client<Shared>>,
    /// Whether the device has said that the host's end is open.
    is_open: bool,
    /// Bytes on their way between a ring and a piece.
    bytes: Box<[u8]>,
    notes: &'static Notes,
    kept: Option<Kept>,
    /// Pieces of output that an earlier driver has taken out of the ring, and the device has not
    /// got.
    unsent: VecDeque<(usize, usize)>,
}

impl Line {
    /// A port that has no client. The [`BYTES`] at `address`, which the device reaches at
    /// `physical`, are for its bytes; `remains` is what an earlier driver has left there.
    ///
    /// # Safety
    /// The memory stays mapped as long as the program runs, and only this value and the device use
    /// it.
    pub(crate) unsafe fn new(
        port: usize,
        [mut input, mut output]: [Channel; 2],
        [address, physical]: [u64; 2],
        notes: &'static Notes,
        remains: Remains,
    ) -> Line {
        let mut at = 0;
        for (channel, length, count) in
            [(&mut input, INPUT_PIECE, INPUT_PIECES), (&mut output, OUTPUT_PIECE, OUTPUT_PIECES)]
        {
            for _ in 0..count {
                // SAFETY: the caller promises that nothing else uses the memory; each piece is
                // another part of it.
                channel.add(unsafe { Buffer::at(address + at, physical + at, length) });
                at += length as u64;
            }
        }
        let kept = input.keep(&remains.input, |left| left.written);
        let unsent = output.keep(&remains.output, |left| Some(left.length));
        let bytes = vec![0; INPUT_PIECE.max(OUTPUT_PIECE)].into_boxed_slice();
        let (port, kept) = (port as u64, Some(Kept { input: kept, remains }));
        Line { port, input, output, client: None, is_open: false, bytes, notes, kept, unsent }
    }

    /// Makes the server that sends this request the client of the port.
    pub(crate) fn attach(&mut self, attachment: Attachment) -> Result<(), Status> {
        let address = AREA + self.port * AREA_DISTANCE;
        let open = || {
            // SAFETY: the client's memory is mapped there as long as this value is used.
            let area = unsafe { area::at(address) };
            let (output, input) = (Reader::new(&area.output), Writer::new(&area.input));
            Shared { area, output, input, host: area.host(), unsent: 0, news: false }
        };
        // SAFETY: the memory there is for clients of this port.
        unsafe { Client::attach(&mut self.client, attachment, address, area::SIZE, open)? };
        self.go_on();
        Ok(())
    }

    /// Goes on where an earlier driver of the client has ended.
    fn go_on(&mut self) {
        let Some(Client { shared, .. }) = &mut self.client else { return };
        if let Some(Kept { input, remains }) = self.kept.take() {
            let first = input.front().map(|&(_, count)| count);
            let delivered = remains.input_note.delivered(shared.input.written(), first);
            for (index, (piece, count)) in input.into_iter().enumerate() {
                if delivered.is_some_and(|delivered| index >= delivered) {
                    let count = self.input.read(piece, count, &mut self.bytes);
                    shared.input.write(&self.bytes[..count]);
                    shared.news = true;
                }
                self.input.pieces.add(piece);
            }
            shared.output.skip(remains.output_note.taken(
                shared.output.position(),
                remains.given,
                remains.last,
            ));
        }
        let (number, position) = (self.input.queue.taken(), shared.input.written());
        self.notes.input.set(Progress { number, position });
        let (number, position) = (self.output.queue.given(), shared.output.position());
        self.notes.output.set(Progress { number, position });
    }

    /// Passes bytes from the device to the client. The device gets only as many pieces as fit into
    /// the client's ring, so that the host waits if the client does not read, and nothing is lost.
    pub(crate) fn receive(&mut self, device: &mut Device<Mapped>) -> Result<(), Error> {
        while let Some(completed) = self.input.queue.take()? {
            // A device that writes nothing would be asked again without end.
            if completed.written == 0 {
                return Err(Error::Broken);
            }
            let piece = self.input.pieces.take(completed.token);
            end::step();
            if let Some(Client { shared, .. }) = &mut self.client {
                let count = self.input.read(piece, completed.written as usize, &mut self.bytes);
                shared.input.write(&self.bytes[..count]);
                shared.news = true;
                end::step();
                let (number, position) = (self.input.queue.taken(), shared.input.written());
                self.notes.input.set(Progress { number, position });
            }
        }
        let Some(Client { shared, .. }) = &self.client else { return Ok(()) };
        let given = usize::from(self.input.queue.outstanding());
        let mut more = more_input(shared.input.room(), given, INPUT_PIECE);
        if more == 0 {
            shared.input.wait_for_reader();
            more = more_input(shared.input.room(), given, INPUT_PIECE);
        }
        for _ in 0..more {
            self.input.give_input()?;
        }
        self.input.notify(device);
        Ok(())
    }

    /// Tells the client the state of the host's end. All input that came before must be in its
    /// ring. `is_settled`: the device has said everything that it has to say. An end that was open
    /// under an earlier driver, and of which the device does not say so then, is closed.
    pub(crate) fn set_host(&mut self, host: Host, is_settled: bool) {
        let Some(Client { shared, .. }) = &mut self.client else { return };
        let host = match host {
            Host::Absent if shared.host == Host::Open && is_settled => Host::Closed,
            Host::Absent => return,
            host => host,
        };
        self.is_open = host == Host::Open;
        if shared.host != host {
            shared.host = host;
            shared.area.set_host(host);
            shared.news = true;
        }
    }

    /// Passes bytes from the client to the device, if the host has opened its end: otherwise the
    /// device would discard them.
    pub(crate) fn send(&mut self, device: &mut Device<Mapped>) -> Result<(), Error> {
        while let Some(completed) = self.output.queue.take()? {
            self.output.pieces.take(completed.token);
        }
        let Some(Client { shared, .. }) = &mut self.client else { return Ok(()) };
        while self.is_open
            && let Some((piece, length)) = self.unsent.pop_front()
        {
            // These bytes are out of the ring already.
            let (number, position) = (self.output.queue.given().wrapping_add(1), shared.output.position());
            self.notes.output.set(Progress { number, position });
            self.output.give_piece(piece, length)?;
            end::step();
        }
        while self.is_open && shared.output.available() > 0 {
            let unsent = u32::from(self.output.queue.outstanding());
            shared.area.set_unsent(unsent + 1);
            let given = self.output.give_output(|buffer| {
                let count = shared.output.peek(&mut self.bytes[..OUTPUT_PIECE]);
                buffer.write(self.bytes[..count].iter().copied())
            })?;
            if given == 0 {
                break;
            }
            end::step();
            shared.output.skip(given);
            let (number, position) = (self.output.queue.given(), shared.output.position());
            self.notes.output.set(Progress { number, position });
        }
        let unsent = u32::from(self.output.queue.outstanding()) + self.unsent.len() as u32;
        shared.area.set_unsent(unsent);
        shared.news |= unsent == 0 && shared.unsent > 0;
        shared.unsent = unsent;
        self.output.notify(device);
        Ok(())
    }

    /// Asks the device for interrupts. Returns whether there is more to do already.
    pub(crate) fn expect_interrupt(&mut self) -> bool {
        let is_more = self.input.queue.expect_interrupt();
        is_more | self.output.queue.expect_interrupt()
    }

    /// Notifies the client if there is a change. Returns false if the client has ended.
    pub(crate) fn tell(&mut self) -> bool {
        let Some(client) = &mut self.client else { return true };
        let shared = &mut client.shared;
        let has_room = shared.output.available() <= RING / 2;
        if !(shared.news || has_room && shared.output.take_waiting()) {
            return true;
        }
        shared.news = false;
        let is_there = client.notify();
        if !is_there {
            self.client = None;
        }
        is_there
    }
}
