//! A port: bytes between the device and a client.

use crate::channel::Channel;
use alloc::boxed::Box;
use alloc::vec;
use l4::extension;
use l4::x2::ThreadId;
use ring::{Reader, Writer};
use rt::root::share::{self, Share};
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

/// The server that uses the port.
struct Client {
    thread: ThreadId,
    bits: u64,
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
    client: Option<Client>,
    /// Bytes on their way between a ring and a piece.
    bytes: Box<[u8]>,
}

impl Line {
    /// A port that has no client.
    pub(crate) fn new(port: usize, input: Channel, output: Channel) -> Line {
        let bytes = vec![0; INPUT_PIECE.max(OUTPUT_PIECE)].into_boxed_slice();
        Line { port: port as u64, input, output, client: None, bytes }
    }

    /// Makes `thread`'s server the client. The memory `share` is the area that both use.
    pub(crate) fn attach(&mut self, share: u64, thread: ThreadId, bits: u64) -> Result<(), Status> {
        // A client that cannot be notified has ended, and a new one may take its place.
        if self.client.as_ref().is_some_and(|client| extension::notify(client.thread, 0).is_ok()) {
            return Err(Status::InUse);
        }
        self.client = None;
        self.allocate()?;
        let address = AREA + self.port * AREA_DISTANCE;
        // SAFETY: the earlier client has ended, and there are no references to its area any more.
        let _ = unsafe { memory::free(address, area::SIZE) };
        let size = share::map(Share::from_word(share), address)?;
        if size != area::SIZE {
            // SAFETY: the share was mapped just now, and there are no references to it.
            let _ = unsafe { memory::free(address, size) };
            return Err(Status::InvalidArgument);
        }
        // SAFETY: root has mapped the memory there, and it is unmapped only above, when there is no
        // client.
        let area = unsafe { area::at(address) };
        let (output, input) = (Reader::new(&area.output), Writer::new(&area.input));
        let host = Host::default();
        self.client = Some(Client { thread, bits, area, output, input, host, unsent: 0, news: false });
        Ok(())
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
            if let Some(client) = &mut self.client {
                let count = self.input.read(piece, completed.written as usize, &mut self.bytes);
                client.input.write(&self.bytes[..count]);
                client.news = true;
            }
        }
        let Some(client) = &self.client else { return Ok(()) };
        let given = usize::from(self.input.queue.outstanding());
        let mut more = more_input(client.input.room(), given, INPUT_PIECE);
        if more == 0 {
            client.input.wait_for_reader();
            more = more_input(client.input.room(), given, INPUT_PIECE);
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
        if let Some(client) = &mut self.client
            && client.host != host
        {
            client.host = host;
            client.area.set_host(host);
            client.news = true;
        }
    }

    /// Passes bytes from the client to the device, if the host has opened its end: otherwise the
    /// device would discard them.
    pub(crate) fn send(&mut self, device: &mut Device<Mapped>) -> Result<(), Error> {
        while let Some(completed) = self.output.queue.take()? {
            self.output.pieces.take(completed.token);
        }
        let Some(client) = &mut self.client else { return Ok(()) };
        while client.host == Host::Open && client.output.available() > 0 {
            let unsent = u32::from(self.output.queue.outstanding());
            client.area.set_unsent(unsent + 1);
            let given = self.output.give_output(|buffer| {
                let count = client.output.read(&mut self.bytes[..OUTPUT_PIECE]);
                buffer.write(self.bytes[..count].iter().copied())
            })?;
            if !given {
                break;
            }
        }
        let unsent = u32::from(self.output.queue.outstanding());
        client.area.set_unsent(unsent);
        client.news |= unsent == 0 && client.unsent > 0;
        client.unsent = unsent;
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
        let has_room = client.output.available() <= RING / 2;
        if !(client.news || has_room && client.output.take_waiting()) {
            return true;
        }
        client.news = false;
        let is_there = extension::notify(client.thread, client.bits).is_ok();
        if !is_there {
            self.client = None;
        }
        is_there
    }
}
