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
    /// The output, in which bytes stay until the device has them, and what was not given yet.
    output: Reader<'static, RING>,
    next: Reader<'static, RING>,
    input: Writer<'static, RING>,
    /// What the client was told last of the host's end.
    host: Host,
    /// Whether the client has yet to be notified of a change.
    news: bool,
}

/// Input that an earlier driver has left: the requests from the one of the note on.
pub(crate) struct Remains {
    pub(crate) input: Vec<Left>,
    pub(crate) note: Progress,
    /// The place of the queue that this driver has.
    pub(crate) place: usize,
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
    /// What an earlier driver has left, and the pieces of it with bytes, until a client attaches.
    remains: Option<(Remains, Vec<(usize, usize)>)>,
    /// The lengths of the requests of output that the device has; 0: it is an earlier client's.
    given: VecDeque<usize>,
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
        let kept = input.keep(&remains.input);
        let bytes = vec![0; INPUT_PIECE.max(OUTPUT_PIECE)].into_boxed_slice();
        let (port, remains, given) = (port as u64, Some((remains, kept)), VecDeque::new());
        Line { port, input, output, client: None, is_open: false, bytes, notes, remains, given }
    }

    /// Makes the server that sends this request the client of the port.
    pub(crate) fn attach(&mut self, attachment: Attachment) -> Result<(), Status> {
        let address = AREA + self.port * AREA_DISTANCE;
        let open = || {
            // SAFETY: the client's memory is mapped there as long as this value is used.
            let area = unsafe { area::at(address) };
            let (output, next) = (Reader::new(&area.output), Reader::new(&area.output));
            Shared { area, output, next, input: Writer::new(&area.input), host: area.host(), news: false }
        };
        // SAFETY: the memory there is for clients of this port.
        unsafe { Client::attach(&mut self.client, attachment, address, area::SIZE, open)? };
        self.go_on();
        Ok(())
    }

    /// Goes on where an earlier driver of the client has ended.
    fn go_on(&mut self) {
        let Some(Client { shared, .. }) = &mut self.client else { return };
        self.given.iter_mut().for_each(|length| *length = 0);
        if let Some((Remains { mut note, place, .. }, kept)) = self.remains.take() {
            let first = kept.first().map(|&(_, count)| count);
            let delivered = note.delivered(shared.input.written(), first);
            for (index, (piece, count)) in kept.into_iter().enumerate() {
                if delivered.is_some_and(|delivered| index >= delivered) {
                    let count = self.input.read(piece, count, &mut self.bytes);
                    shared.input.write(&self.bytes[..count]);
                    shared.news = true;
                    end::step();
                }
                let number = note.number.wrapping_add(1);
                note = Progress { number, position: shared.input.written() };
                self.notes.input.set(note);
                self.input.pieces.add(piece);
                end::step();
            }
            self.notes.set_place(place);
            // The ring may not know of the last request that the device has completed.
            let behind = self.notes.output.get().position.wrapping_sub(shared.output.position()) as usize;
            if behind <= shared.output.available() {
                shared.output.skip(behind);
                shared.next = Reader::new(&shared.area.output);
            }
        }
        let (number, position) = (self.input.queue.taken(), shared.input.written());
        self.notes.input.set(Progress { number, position });
        let (number, position) = (self.output.queue.taken(), shared.output.position());
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
            let length = self.given.pop_front().unwrap_or(0);
            end::step();
            if let Some(Client { shared, .. }) = &mut self.client {
                let number = self.output.queue.taken();
                let position = shared.output.position().wrapping_add(length as u32);
                self.notes.output.set(Progress { number, position });
                end::step();
                shared.output.skip(length);
                shared.news |= length > 0 && shared.output.available() == 0;
            }
        }
        let Some(Client { shared, .. }) = &mut self.client else { return Ok(()) };
        while self.is_open && shared.next.available() > 0 {
            let given = self.output.give_output(|buffer| {
                let mut places = self.bytes[..OUTPUT_PIECE].iter_mut();
                let count = shared.next.read_ahead(OUTPUT_PIECE, |byte| {
                    if let Some(place) = places.next() {
                        *place = byte;
                    }
                });
                buffer.write(self.bytes[..count].iter().copied())
            })?;
            if given == 0 {
                break;
            }
            self.given.push_back(given);
            end::step();
        }
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
