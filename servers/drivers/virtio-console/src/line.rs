//! A port: bytes between the device and a client.

use crate::channel::Channel;
use alloc::boxed::Box;
use alloc::vec;
use driver::client::{Attachment, Client};
use ring::{Reader, Writer};
use rt::root::{Status, memory};
use virtio::Error;
use virtio::mapped::Mapped;
use virtio::memory::Buffer;
use virtio::setup::Device;
use virtio_console::area::{self, Area, Host, RING};
use virtio_console::pieces::more_input;

/// The address at which the area of the first port's client is mapped, and the distance to the next
/// one.
const AREA: u64 = 0x4000_0000;
const AREA_DISTANCE: u64 = 1 << 20;
/// The address of the memory for the bytes of the first port, the distance to that of the next one,
/// and its size.
const DMA: u64 = 0x6000_0000;
const DMA_DISTANCE: u64 = 1 << 20;
const DMA_SIZE: u64 = 128 << 10;
/// The pieces for bytes from the host, which the device fills with up to 4 KiB each, and those for
/// bytes to the host.
const INPUT_PIECE: usize = 4096;
const INPUT_PIECES: usize = 16;
const OUTPUT_PIECE: usize = 16384;
const OUTPUT_PIECES: usize = 4;
const _: () = assert!(INPUT_PIECE * INPUT_PIECES + OUTPUT_PIECE * OUTPUT_PIECES == DMA_SIZE as usize);

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

/// A port of the device.
pub(crate) struct Line {
    port: u64,
    input: Channel,
    output: Channel,
    client: Option<Client<Shared>>,
    /// Bytes on their way between a ring and a piece.
    bytes: Box<[u8]>,
}

impl Line {
    /// A port that has no client.
    pub(crate) fn new(port: usize, input: Channel, output: Channel) -> Line {
        let bytes = vec![0; INPUT_PIECE.max(OUTPUT_PIECE)].into_boxed_slice();
        Line { port: port as u64, input, output, client: None, bytes }
    }

    /// Makes the server that sends this request the client of the port.
    pub(crate) fn attach(&mut self, attachment: Attachment) -> Result<(), Status> {
        self.allocate()?;
        let address = AREA + self.port * AREA_DISTANCE;
        let open = || {
            // SAFETY: the client's memory is mapped there as long as this value is used.
            let area = unsafe { area::at(address) };
            let (output, input) = (Reader::new(&area.output), Writer::new(&area.input));
            Shared { area, output, input, host: Host::default(), unsent: 0, news: false }
        };
        // SAFETY: the memory there is for clients of this port.
        unsafe { Client::attach(&mut self.client, attachment, address, area::SIZE, open) }
    }

    /// Allocates the memory for the port's bytes, unless it was allocated before.
    fn allocate(&mut self) -> Result<(), Status> {
        if !self.input.is_empty() {
            return Ok(());
        }
        let address = DMA + self.port * DMA_DISTANCE;
        let physical = memory::allocate_dma(address, DMA_SIZE, 64)?;
        let mut at = 0;
        for (channel, length, count) in
            [(&mut self.input, INPUT_PIECE, INPUT_PIECES), (&mut self.output, OUTPUT_PIECE, OUTPUT_PIECES)]
        {
            for _ in 0..count {
                // SAFETY: root has mapped this memory for this program, which never frees it; each
                // piece is another part of it.
                channel.add(unsafe { Buffer::at(address + at, physical + at, length) });
                at += length as u64;
            }
        }
        Ok(())
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
            if let Some(Client { shared, .. }) = &mut self.client {
                let count = self.input.read(piece, completed.written as usize, &mut self.bytes);
                shared.input.write(&self.bytes[..count]);
                shared.news = true;
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
    /// ring.
    pub(crate) fn set_host(&mut self, host: Host) {
        if let Some(Client { shared, .. }) = &mut self.client
            && shared.host != host
        {
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
        while shared.host == Host::Open && shared.output.available() > 0 {
            let unsent = u32::from(self.output.queue.outstanding());
            shared.area.set_unsent(unsent + 1);
            let given = self.output.give_output(|buffer| {
                let count = shared.output.read(&mut self.bytes[..OUTPUT_PIECE]);
                buffer.write(self.bytes[..count].iter().copied())
            })?;
            if !given {
                break;
            }
        }
        let unsent = u32::from(self.output.queue.outstanding());
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
