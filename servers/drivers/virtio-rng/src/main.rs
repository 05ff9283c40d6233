//! The driver of a virtio entropy device as a program: a server that root has started with the
//! device's PCI function and 4 KiB of memory for devices.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use direct::Registers as _;
use interfaces::entropy::{Server, serve};
use l4::direct::Direct;
use l4::ipc::{self, Message};
use l4::x2::ThreadId;
use l4::x2::extension::{ACCEPT_NOTIFICATION, NOTIFICATION_LABEL};
use l4::{extension, utcb};
use ring::Writer;
use rt::root::{self, Status, memory, names, pci, share};
use virtio::Error;
use virtio::mapped::Mapped;
use virtio::memory::{Buffer, Layout, QueueMemory};
use virtio::queue::{Completed, Queue};
use virtio::setup::{Device, Notify, Setup};
use virtio_rng::area::{self, RING, WORK};

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

/// The server that uses the random bytes.
struct Client {
    thread: ThreadId,
    bits: u64,
    ring: Writer<'static, RING>,
}

struct Driver {
    device: Device<Mapped>,
    queue: Queue<'static>,
    notify: Notify,
    buffer: Buffer<'static>,
    client: Option<Client>,
}

fn run() -> ! {
    root::report_panics();
    let me = utcb::my_global_id();
    // A driver that has no device does not register, so that no client finds it.
    let (mut driver, interrupt) = start(me).unwrap_or_else(|error| panic!("no entropy device: {error:?}"));
    names::register(me).expect("it is a thread of this server");
    // SAFETY: the acceptor takes no mappings or strings.
    unsafe { utcb::set_buffer_register(0, ACCEPT_NOTIFICATION) };
    let (mut registers, mut answer) = (Direct::default(), None);
    loop {
        let received = match answer.take() {
            Some((to, reply)) => registers.reply_wait(to, &reply, &mut []),
            None => registers.wait(&mut []),
        };
        // An error needs no action: the receiver of the answer has ended.
        let Ok((from, tag)) = received else { continue };
        if from == interrupt {
            // The interrupt belongs to this thread and its message was delivered: the reply cannot
            // fail. What the device does after the reply interrupts again.
            let _ = ipc::reply(interrupt, Message::new(0));
            driver.serve();
        } else if from.is_nil() && tag.label() == NOTIFICATION_LABEL {
            if registers.register(1) & WORK != 0 {
                driver.serve();
            }
        } else {
            let reply = serve(&mut driver, from, tag, &mut registers, &[], &mut []);
            answer = reply.map(|reply| (from, reply));
        }
    }
}

/// Starts the device. Returns its driver and the thread id from which its interrupts come to
/// `thread`.
fn start(thread: ThreadId) -> Result<(Driver, ThreadId), Error> {
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
    Ok((Driver { device: setup.start(), queue, notify, buffer, client: None }, interrupt))
}

impl Driver {
    /// Does what there is to do. A device that breaks the rules ends the driver, so that root
    /// starts it again.
    fn serve(&mut self) {
        if let Err(error) = self.pass_bytes() {
            panic!("the entropy device has failed: {error:?}");
        }
    }

    /// Passes random bytes from the device to the client, as long as there are bytes and room.
    fn pass_bytes(&mut self) -> Result<(), Error> {
        loop {
            while let Some(completed) = self.queue.take()? {
                self.deliver(completed)?;
            }
            let wants = self.client.as_ref().is_some_and(Client::has_room);
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
                client.ring.write(&[byte]);
            });
            if extension::notify(client.thread, client.bits).is_err() {
                self.client = None;
            }
        }
        // No byte may stay, so that none is given to two clients.
        self.buffer.write(core::iter::repeat(0));
        Ok(())
    }

    fn attach(&mut self, share: u64, thread: u64, bits: u64) -> Result<(), Status> {
        // A client that cannot be notified has ended, and a new one may take its place.
        if self.client.as_ref().is_some_and(|client| extension::notify(client.thread, 0).is_ok()) {
            return Err(Status::InUse);
        }
        self.client = None;
        // SAFETY: the earlier client has ended, and there are no references to its area any more.
        let _ = unsafe { memory::free(AREA, area::SIZE) };
        let size = share::map(share::Share::from_word(share), AREA)?;
        if size != area::SIZE {
            // SAFETY: the share was mapped just now, and there are no references to it.
            let _ = unsafe { memory::free(AREA, size) };
            return Err(Status::InvalidArgument);
        }
        // SAFETY: root has mapped the memory there, and it is unmapped only above, when there is no
        // client.
        let ring = Writer::new(unsafe { area::at(AREA) });
        self.client = Some(Client { thread: ThreadId::from_raw(thread), bits, ring });
        self.serve();
        Ok(())
    }
}

impl Client {
    /// Whether the ring has room for what a request asks for. If it has not, the driver will be
    /// notified when the client has read something.
    fn has_room(&self) -> bool {
        if self.ring.room() < PIECE {
            self.ring.wait_for_reader();
        }
        self.ring.room() >= PIECE
    }
}

impl Server for Driver {
    fn entropy_attach(
        &mut self,
        _: ThreadId,
        share: u64,
        thread: u64,
        bits: u64,
    ) -> Result<(), direct::Status> {
        Ok(self.attach(share, thread, bits)?)
    }
}
