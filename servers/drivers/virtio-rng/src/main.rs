//! The driver of a virtio entropy device as a program: a server that root has started with the
//! device's PCI function and 4 KiB of memory for devices.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use direct::Reply;
use driver::client::{Attachment, Client};
use driver::{Interrupts, end};
use interfaces::entropy::{Server, serve};
use l4::direct::Direct;
use l4::x2::{MessageTag, ThreadId};
use ring::Writer;
use rt::root::{memory, pci};
use virtio::Error;
use virtio::mapped::Mapped;
use virtio::memory::{Buffer, Layout, QueueMemory};
use virtio::queue::{Completed, Queue};
use virtio::setup::{Device, Notify, Setup};
use virtio_rng::area::{self, RING};

l4::program!(run, kip = rt::start_page::KIP);

rt::heap!(32 << 10);

/// The address at which the client's area is mapped.
const AREA: u64 = 0x4000_0000;
/// The address of the memory that the device uses: a queue, and a buffer at `BUFFER`.
const DMA: u64 = 0x5000_0000;
const DMA_SIZE: u64 = 4096;
const BUFFER: u64 = 2048;
/// The address from which on the device's registers are mapped.
const REGISTERS: u64 = 0x100_0000_0000;
/// The queue of requests for random bytes, and how many it holds; one is given at a time.
const REQUESTS: u16 = 0;
const LAYOUT: Layout = match Layout::new(2, 0) {
    Some(layout) => layout,
    None => panic!("the size is no power of two"),
};
const _: () = assert!(LAYOUT.bytes() <= BUFFER as usize);
/// How many bytes a request asks for.
const PIECE: usize = RING / 2;
/// The function's message that the queue's interrupts are.
const MESSAGE: u16 = 0;

struct Driver {
    device: Device<Mapped>,
    queue: Queue<'static>,
    notify: Notify,
    buffer: Buffer<'static>,
    /// The server that uses the random bytes, and the driver's end of its ring.
    client: Option<Client<Writer<'static, RING>>>,
    interrupt: ThreadId,
}

fn run() -> ! {
    driver::start("entropy device", start)
}

/// Starts the device, whose interrupts are to come to `thread`.
fn start(thread: ThreadId) -> Result<Driver, Error> {
    let function = pci::function(0)?;
    let registers = virtio::function::open(function, REGISTERS)?;
    let physical = memory::allocate_dma(DMA, DMA_SIZE, 64)?;
    // SAFETY: root has mapped this zeroed memory for this program, which never frees it; the two
    // values are given different parts of it.
    let (queue, buffer) = unsafe {
        let queue = QueueMemory::at(DMA, physical, LAYOUT);
        (queue, Buffer::at(DMA + BUFFER, physical + BUFFER, PIECE))
    };
    // The device is reset before the function may write memory: what it did for an earlier driver
    // is over.
    let mut setup = Setup::begin(registers, virtio::features::EVENT_INDEX)?;
    let interrupt = function.attach(MESSAGE.into(), thread)?;
    let notify = setup.set_queue(REQUESTS, &queue, Some(MESSAGE))?;
    let queue = Queue::new(queue, setup.features());
    Ok(Driver { device: setup.start(), queue, notify, buffer, client: None, interrupt })
}

impl driver::Driver for Driver {
    fn interrupts(&self) -> Interrupts<'_> {
        Interrupts::Messages(core::slice::from_ref(&self.interrupt))
    }

    /// A device that breaks the rules ends the driver, so that root starts it again.
    fn serve(&mut self) {
        if let Err(error) = self.pass_bytes() {
            panic!("the entropy device has failed: {error:?}");
        }
    }

    fn answer(&mut self, from: ThreadId, tag: MessageTag, registers: &mut Direct) -> Option<Reply<'static>> {
        serve(self, from, tag, registers, &[], &mut [])
    }
}

impl Driver {
    /// Passes random bytes from the device to the client, as long as there are bytes and room.
    fn pass_bytes(&mut self) -> Result<(), Error> {
        loop {
            while let Some(completed) = self.queue.take()? {
                end::step();
                self.deliver(completed)?;
            }
            let wants = self.client.as_ref().is_some_and(|client| has_room(&client.shared));
            if wants && self.queue.outstanding() == 0 {
                self.queue.give(&[], &[self.buffer.piece(PIECE)])?;
                if self.queue.must_notify() {
                    self.device.notify(self.notify);
                }
            }
            if !self.queue.expect_interrupt() {
                return Ok(());
            }
        }
    }

    /// Gives the client the bytes that the device has written, and notifies it.
    fn deliver(&mut self, completed: Completed) -> Result<(), Error> {
        // A device that writes nothing would be asked again without end.
        if completed.written == 0 {
            return Err(Error::Broken);
        }
        if let Some(client) = &mut self.client {
            self.buffer.read_each(completed.written as usize, |byte| {
                client.shared.write(&[byte]);
            });
            if !client.notify() {
                self.client = None;
            }
        }
        // No byte may stay, so that none is given to two clients.
        self.buffer.write(core::iter::repeat(0));
        Ok(())
    }
}

/// Whether the ring has room for what a request asks for. If it has not, the driver will be
/// notified when the client has read something.
fn has_room(ring: &Writer<'_, RING>) -> bool {
    if ring.room() < PIECE {
        ring.wait_for_reader();
    }
    ring.room() >= PIECE
}

impl Server for Driver {
    fn entropy_attach(
        &mut self,
        _: ThreadId,
        share: u64,
        thread: u64,
        bits: u64,
    ) -> Result<(), direct::Status> {
        let attachment = Attachment { share, thread, bits };
        // SAFETY: root has mapped the area when the end of it is made, and unmaps it only when that
        // end is gone. Nothing else is at this address.
        unsafe {
            Client::attach(&mut self.client, attachment, AREA, area::SIZE, || Writer::new(area::at(AREA)))?;
        }
        driver::Driver::serve(self);
        Ok(())
    }
}
