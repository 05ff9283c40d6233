//! The driver of a virtio 9P device as a program: a server that root has started with the device's
//! PCI function and 2 MiB of memory for devices. The device has one queue of requests; each is a
//! message for it to read, and room for the reply.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use core::sync::atomic::AtomicU64;
use direct::Reply;
use driver::Interrupts;
use driver::client::{Attachment, Client};
use interfaces::file_channel::{Server, serve};
use l4::direct::Direct;
use l4::x2::{MessageTag, ThreadId};
use rt::root::{Status, memory, pci};
use virtio::Error;
use virtio::mapped::Mapped;
use virtio::memory::{Layout, QueueMemory};
use virtio::queue::{Completed, Piece, Queue, Token};
use virtio::setup::{Device, Notify, Setup};
use virtio_9p::area::{self, Area, LEAST, MESSAGE, REFUSED, REPLY, REQUEST, SLOTS, Words};

l4::program!(run, kip = rt::start_page::KIP);

rt::heap!(32 << 10);

/// The address at which the client's area is mapped.
const AREA: u64 = 0x4000_0000;
/// The address of the memory that the device uses: a queue, then for each slot room for a request
/// and room for its reply.
const DMA: u64 = 0x5000_0000;
const DMA_SIZE: u64 = 2 << 20;
const FIRST: u64 = 4096;
/// The address from which on the device's registers are mapped.
const REGISTERS: u64 = 0x100_0000_0000;
/// The queue of requests. Each is a piece to read and a piece to write.
const REQUESTS: u16 = 0;
const LAYOUT: Layout = match Layout::new(16, 0) {
    Some(layout) => layout,
    None => panic!("the size is no power of two"),
};
const _: () = assert!(LAYOUT.bytes() <= FIRST as usize && 2 * SLOTS <= LAYOUT.size() as usize);
const _: () = assert!(FIRST + (2 * SLOTS * MESSAGE) as u64 <= DMA_SIZE);
/// The function's message that the queue's interrupts are.
const MESSAGE_INTERRUPT: u16 = 0;
/// The device has a tag: a length of 16 bits at the start of its configuration, then the bytes.
const HAS_TAG: u64 = 1 << 0;

/// Room for a message that the device reads or writes.
#[derive(Clone, Copy)]
struct Room {
    words: &'static Words,
    physical: u64,
}

struct Driver {
    device: Device<Mapped>,
    queue: Queue<'static>,
    notify: Notify,
    /// For each slot, room for a request and for a reply.
    rooms: [(Room, Room); SLOTS],
    /// For each slot, the request that the device has.
    given: [Option<Token>; SLOTS],
    tag: [u8; 32],
    /// The server that sends requests.
    client: Option<Client<Area>>,
    interrupt: ThreadId,
}

fn run() -> ! {
    driver::start("9P device", start)
}

/// Starts the device, whose interrupts are to come to `thread`.
fn start(thread: ThreadId) -> Result<Driver, Error> {
    let function = pci::function(0)?;
    let registers = virtio::function::open(function, REGISTERS)?;
    let physical = memory::allocate_dma(DMA, DMA_SIZE, 64)?;
    // SAFETY: root has mapped this zeroed memory for this program, which never frees it, and the
    // rooms begin after the queue.
    let queue = unsafe { QueueMemory::at(DMA, physical, LAYOUT) };
    let room = |number: usize| {
        let offset = FIRST + (number * MESSAGE) as u64;
        // SAFETY: as above; all words are atomic, and different rooms do not overlap.
        let words = unsafe { core::slice::from_raw_parts((DMA + offset) as *const AtomicU64, MESSAGE / 8) };
        Room { words, physical: physical + offset }
    };
    // The device is reset before the function may write memory: what it did for an earlier driver
    // is over.
    let mut setup = Setup::begin(registers, virtio::features::EVENT_INDEX | HAS_TAG)?;
    let interrupt = function.attach(MESSAGE_INTERRUPT.into(), thread)?;
    let notify = setup.set_queue(REQUESTS, &queue, Some(MESSAGE_INTERRUPT))?;
    let has_tag = setup.features() & HAS_TAG != 0;
    let queue = Queue::new(queue, setup.features());
    let mut device = setup.start();
    let tag = if has_tag { tag(&mut device)? } else { [0; 32] };
    let rooms = core::array::from_fn(|slot| (room(2 * slot), room(2 * slot + 1)));
    Ok(Driver { device, queue, notify, rooms, given: [None; SLOTS], tag, client: None, interrupt })
}

/// The device's tag, of which the first 32 bytes are kept.
fn tag(device: &mut Device<Mapped>) -> Result<[u8; 32], Error> {
    let (mut length, mut tag) = ([0; 2], [0; 32]);
    device.configuration(0, &mut length)?;
    let length = usize::from(u16::from_le_bytes(length)).min(tag.len());
    device.configuration(2, &mut tag[..length])?;
    Ok(tag)
}

impl driver::Driver for Driver {
    fn interrupts(&self) -> Interrupts<'_> {
        Interrupts::Messages(core::slice::from_ref(&self.interrupt))
    }

    /// A device that breaks the rules ends the driver, so that root starts it again.
    fn serve(&mut self) {
        if let Err(error) = self.pass_messages() {
            panic!("the 9P device has failed: {error:?}");
        }
    }

    fn answer(&mut self, from: ThreadId, tag: MessageTag, registers: &mut Direct) -> Option<Reply<'static>> {
        serve(self, from, tag, registers, &[], &mut [])
    }
}

impl Driver {
    /// Passes replies to the client and requests to the device, as long as there are any.
    fn pass_messages(&mut self) -> Result<(), Error> {
        loop {
            let mut has_news = false;
            while let Some(completed) = self.queue.take()? {
                self.deliver(completed)?;
                has_news = true;
            }
            for number in 0..SLOTS {
                has_news |= self.submit(number)?;
            }
            if self.queue.must_notify() {
                self.device.notify(self.notify);
            }
            if has_news && self.client.as_ref().is_some_and(|client| !client.notify()) {
                self.client = None;
            }
            if !self.queue.expect_interrupt() {
                return Ok(());
            }
        }
    }

    /// Gives the device the request in a slot, if there is one. Returns whether the request was
    /// refused instead.
    fn submit(&mut self, number: usize) -> Result<bool, Error> {
        let Some(client) = &self.client else { return Ok(false) };
        let slot = client.shared.slot(number);
        if self.given[number].is_some() || slot.state() != REQUEST {
            return Ok(false);
        }
        let length = slot.length();
        if length < LEAST {
            slot.pass(REFUSED, 0);
            return Ok(true);
        }
        let (request, reply) = self.rooms[number];
        area::copy(slot.words, request.words, length);
        let piece = |room: Room, length: usize| Piece { address: room.physical, length: length as u32 };
        self.given[number] = Some(self.queue.give(&[piece(request, length)], &[piece(reply, MESSAGE)])?);
        Ok(false)
    }

    /// Puts a reply of the device into its slot, unless the client that has asked has ended.
    fn deliver(&mut self, completed: Completed) -> Result<(), Error> {
        let is_it = |given: &Option<Token>| *given == Some(completed.token);
        let number = self.given.iter().position(is_it).ok_or(Error::Broken)?;
        self.given[number] = None;
        if let Some(client) = &self.client {
            let slot = client.shared.slot(number);
            if slot.state() == REQUEST {
                let length = completed.written as usize;
                area::copy(self.rooms[number].1.words, slot.words, length);
                slot.pass(REPLY, length);
            }
        }
        Ok(())
    }
}

impl Server for Driver {
    fn file_channel_attach(
        &mut self,
        _: ThreadId,
        share: u64,
        thread: u64,
        bits: u64,
    ) -> Result<(u64, u64, u64, u64), direct::Status> {
        // The replies to what an earlier client has asked come first.
        if self.queue.outstanding() > 0 {
            return Err(Status::InUse.into());
        }
        let attachment = Attachment { share, thread, bits };
        // SAFETY: root has mapped the area when the end of it is made, and unmaps it only when that
        // end is gone. Nothing else is at this address.
        unsafe {
            Client::attach(&mut self.client, attachment, AREA, area::SIZE, || Area::at(AREA))?;
        }
        driver::Driver::serve(self);
        let word = |index: usize| {
            let bytes = self.tag[8 * index..8 * index + 8].first_chunk();
            bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        Ok((word(0), word(1), word(2), word(3)))
    }
}
