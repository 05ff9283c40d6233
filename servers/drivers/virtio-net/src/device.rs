//! The device: its queues, and the buffers that it has.

use alloc::vec::Vec;
use l4::x2::ThreadId;
use net::BUFFERS;
use net::driver::{Frame, Piece as Memory};
use net::interface::Description;
use net::offload::Offload;
use rt::root::memory;
use rt::root::pci::{self, Function};
use virtio::Error;
use virtio::mapped::Mapped;
use virtio::memory::{Layout, QueueMemory};
use virtio::queue::{Piece, Queue};
use virtio::setup::{Device, Notify, Setup};
use virtio_net::configuration::{self, Configuration, LENGTH};

/// The address of the memory that the device uses, and how much of it each queue has.
const DMA: u64 = 0x5000_0000;
const DMA_SIZE: u64 = 8 << 10;
/// The address from which on the device's registers are mapped.
const REGISTERS: u64 = 0x100_0000_0000;
/// The queues: of received frames, and of frames to send.
const RECEIVE: u16 = 0;
const SEND: u16 = 1;
const QUEUES: u16 = 2;
/// The function's message for changes of the configuration; the queues have their numbers.
const CHANGES: u16 = 2;
/// Each buffer has a descriptor.
const LAYOUT: Layout = match Layout::new(BUFFERS as u16, 0) {
    Some(layout) => layout,
    None => panic!("the size is no power of two"),
};
const _: () = assert!(LAYOUT.bytes() as u64 <= DMA_SIZE);
/// If the device has so many buffers of frames to send, it interrupts when it has sent one. A
/// client without room for another frame has given it at least as many.
const MANY: usize = BUFFERS / 8;
const _: () = assert!(BUFFERS - MANY >= net::MOST_PIECES);

/// The device's function and registers, while it is stopped or runs.
pub(crate) struct Card {
    function: Function,
    registers: Option<Mapped>,
    /// The thread that gets the interrupts.
    thread: ThreadId,
    /// Whether the device puts a received frame into several buffers, as it said when it was
    /// started last.
    merges: bool,
}

/// A device that runs.
pub(crate) struct Started {
    device: Device<Mapped>,
    receive: Ring<usize>,
    send: Ring<Frame>,
    /// How many buffers the frames have that the device is to send.
    sending: usize,
    pub(crate) interrupts: Vec<ThreadId>,
    pub(crate) description: Description,
    features: u64,
}

/// A queue, and what the requests in it belong to, by their tokens.
struct Ring<T> {
    queue: Queue<'static>,
    notify: Notify,
    owners: Vec<Option<T>>,
}

impl Card {
    /// Finds the device.
    pub(crate) fn open(thread: ThreadId) -> Result<Card, Error> {
        let function = pci::function(0)?;
        let registers = Some(virtio::function::open(function, REGISTERS)?);
        Ok(Card { function, registers, thread, merges: false })
    }

    /// Starts the device, which must be stopped, so that it does this work for the client as far as
    /// it can. It has to be started without such work first, which tells what it can.
    pub(crate) fn start(&mut self, offload: Offload) -> Result<Started, Error> {
        let registers = self.registers.take().ok_or(Error::Broken)?;
        // The device is reset before the function may write memory: what it did for an earlier
        // driver is over.
        let mut setup = Setup::begin(registers, configuration::wanted(offload, self.merges))?;
        let features = setup.features();
        self.merges = configuration::merges(features);
        if !configuration::is_possible(features) {
            return Err(Error::Features);
        }
        let mut bytes = [0; LENGTH];
        setup.configuration(0, &mut bytes[..configuration::length(features)])?;
        let read = configuration::read(features, &bytes).ok_or(Error::Configuration)?;
        let Configuration { address, mtu, .. } = read;
        let description = Description { address, mtu, offload: configuration::agreed(features) };
        // A function with few messages has one for all.
        let own = self.function.messages > u64::from(CHANGES);
        let message = |number: u16| if own { number } else { 0 };
        let mut interrupts = Vec::new();
        for number in 0..if own { QUEUES + 1 } else { 1 } {
            interrupts.push(self.function.attach(number.into(), self.thread)?);
        }
        setup.set_configuration_vector(message(CHANGES))?;
        let receive = ring(&mut setup, RECEIVE, message(RECEIVE))?;
        let send = ring(&mut setup, SEND, message(SEND))?;
        let device = setup.start();
        Ok(Started { device, receive, send, sending: 0, interrupts, description, features })
    }

    /// Resets a device that runs, and frees what it used.
    pub(crate) fn stop(&mut self, started: Started) -> Result<(), Error> {
        let Started { device, receive, send, interrupts, .. } = started;
        drop((receive, send));
        self.registers = Some(device.reset()?);
        for interrupt in interrupts {
            pci::detach(interrupt)?;
        }
        for number in 0..QUEUES {
            // SAFETY: the queues in this memory have been dropped above, and the device uses none
            // after the reset.
            unsafe { memory::free(DMA + u64::from(number) * DMA_SIZE, DMA_SIZE)? };
        }
        Ok(())
    }
}

/// Makes a queue, with an interrupt message.
fn ring<T>(setup: &mut Setup<Mapped>, number: u16, message: u16) -> Result<Ring<T>, Error> {
    let address = DMA + u64::from(number) * DMA_SIZE;
    let physical = memory::allocate_dma(address, DMA_SIZE, 64)?;
    // SAFETY: root has mapped this zeroed memory for this program, which frees it only when the
    // device was reset and the queue is gone.
    let memory = unsafe { QueueMemory::at(address, physical, LAYOUT) };
    let notify = setup.set_queue(number, &memory, Some(message))?;
    let owners = (0..LAYOUT.size()).map(|_| None).collect();
    Ok(Ring { queue: Queue::new(memory, setup.features()), notify, owners })
}

fn piece(memory: Memory) -> Piece {
    Piece { address: memory.address, length: memory.length as u32 }
}

impl Started {
    /// Whether an interrupt from this thread may be about a change of the configuration.
    pub(crate) fn tells_changes(&self, from: ThreadId) -> bool {
        self.interrupts.last() == Some(&from)
    }

    /// Whether the link is up.
    pub(crate) fn link(&mut self) -> Result<bool, Error> {
        let mut bytes = [0; LENGTH];
        self.device.configuration(0, &mut bytes[..configuration::length(self.features)])?;
        Ok(configuration::read(self.features, &bytes).ok_or(Error::Configuration)?.link)
    }

    /// Gives the device an empty buffer. There is room for all that the client has.
    pub(crate) fn give_empty(&mut self, buffer: usize, memory: Memory) -> Result<(), Error> {
        let token = self.receive.queue.give(&[], &[piece(memory)])?;
        self.receive.owners[token.index()] = Some(buffer);
        Ok(())
    }

    /// Gives the device a frame to send. There is room for all buffers that the client has.
    pub(crate) fn give(&mut self, frame: Frame) -> Result<(), Error> {
        let mut pieces = [Piece { address: 0, length: 0 }; net::MOST_PIECES];
        pieces.iter_mut().zip(&frame.pieces).for_each(|(to, &from)| *to = piece(from));
        let token = self.send.queue.give(&pieces[..frame.pieces.len()], &[])?;
        self.sending += frame.pieces.len();
        self.send.owners[token.index()] = Some(frame);
        Ok(())
    }

    /// Takes a buffer that the device has filled, with how many bytes.
    pub(crate) fn take_filled(&mut self) -> Result<Option<(usize, usize)>, Error> {
        let Some(completed) = self.receive.queue.take()? else { return Ok(None) };
        let buffer = self.receive.owners[completed.token.index()].take().ok_or(Error::Broken)?;
        Ok(Some((buffer, completed.written as usize)))
    }

    /// Takes a frame that the device has sent.
    pub(crate) fn take_sent(&mut self) -> Result<Option<Frame>, Error> {
        let Some(completed) = self.send.queue.take()? else { return Ok(None) };
        let frame = self.send.owners[completed.token.index()].take().ok_or(Error::Broken)?;
        self.sending -= frame.pieces.len();
        Ok(Some(frame))
    }

    /// Notifies the device of what was given.
    pub(crate) fn notify(&mut self) {
        if self.receive.queue.must_notify() {
            self.device.notify(self.receive.notify);
        }
        if self.send.queue.must_notify() {
            self.device.notify(self.send.notify);
        }
    }

    /// Says that the driver waits for interrupts: of received frames, and of sent ones if they have
    /// many buffers, since only then the client may have no room. Returns whether the device has
    /// done something already.
    pub(crate) fn sleep(&mut self) -> bool {
        let has_sent = if self.sending >= MANY {
            self.send.queue.expect_interrupt()
        } else {
            self.send.queue.expect_no_interrupt();
            false
        };
        // Both queues have to interrupt, so both are asked.
        self.receive.queue.expect_interrupt() || has_sent
    }
}
