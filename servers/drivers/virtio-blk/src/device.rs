//! The device: its queues, and the commands that it has.

use alloc::vec::Vec;
use block::Error as BlockError;
use block::description::Description;
use block::service::{self, Ended, Running};
use block::work::{Command, Limits};
use l4::ipc::{self, Message};
use l4::x2::{ThreadId, Time};
use rt::root::memory;
use rt::root::pci::{self, Function};
use virtio::Error;
use virtio::mapped::Mapped;
use virtio::memory::{Buffer, Layout, QueueMemory};
use virtio::queue::{Piece, Queue};
use virtio::setup::{Device, Notify, Setup};
use virtio_blk::configuration::{LENGTH, SHORTEST, features, read};

/// The address of the memory that the device uses, and how much of it each queue has: the queue,
/// then the header and the status of each command.
const DMA: u64 = 0x5000_0000;
const DMA_SIZE: u64 = 64 << 10;
/// The address from which on the device's registers are mapped.
const REGISTERS: u64 = 0x100_0000_0000;
/// How many commands a queue holds, and how many pieces of memory each of them has at most.
const COMMANDS: u16 = 64;
const PIECES: usize = 38;
/// The table of a command also has its header and its status.
const LAYOUT: Layout = match Layout::new(COMMANDS, PIECES as u16 + 2) {
    Some(layout) => layout,
    None => panic!("the size is no power of two"),
};
/// The offset of the headers, and the room for header and status of one command. The status is at
/// `STATUS` there.
const HEADERS: u64 = (LAYOUT.bytes() as u64).next_multiple_of(64);
const HEADER: u64 = 64;
const STATUS: u64 = 48;
const _: () = assert!(HEADERS + HEADER * COMMANDS as u64 <= DMA_SIZE);
/// The most queues that the driver uses.
const MOST_QUEUES: u16 = 4;
/// The types of commands.
const READ: u32 = 0;
const WRITE: u32 = 1;
const FLUSH: u32 = 4;
const IDENTIFY: u32 = 8;
const DISCARD: u32 = 11;
/// How many bytes the device's serial number has.
const IDENTITY: usize = 20;
/// How long the device has time for telling its serial number.
const PATIENCE: Time = Time::period(5_000_000);
/// A status that no device writes.
const NO_STATUS: u8 = 0xff;

/// The device's function and registers, while it is stopped or runs.
pub(crate) struct Disk {
    function: Function,
    registers: Option<Mapped>,
    /// The thread that gets the interrupts.
    thread: ThreadId,
}

/// A device that runs.
pub(crate) struct Started {
    device: Device<Mapped>,
    queues: Vec<Ring>,
    interrupts: Vec<ThreadId>,
    description: Description,
    limits: Limits,
    identity: Vec<u8>,
}

/// A queue, and the headers and owners of the commands in it, by their tokens.
struct Ring {
    queue: Queue<'static>,
    notify: Notify,
    commands: Vec<Slot>,
    /// The numbers of the places that no command has.
    free: Vec<usize>,
    /// For each token, the place of its command.
    places: Vec<usize>,
}

/// Where the header and the status of a command are, and the request that it belongs to.
struct Slot {
    header: Buffer<'static>,
    status: Buffer<'static>,
    owner: usize,
}

impl Disk {
    /// Finds the device.
    pub(crate) fn open(thread: ThreadId) -> Result<Disk, Error> {
        let function = pci::function(0)?;
        let registers = Some(virtio::function::open(function, REGISTERS)?);
        Ok(Disk { function, registers, thread })
    }
}

impl service::Device for Disk {
    type Running = Started;

    fn start(&mut self) -> Result<Started, Error> {
        let registers = self.registers.take().ok_or(Error::Broken)?;
        // The device is reset before the function may write memory: what it did for an earlier
        // driver is over.
        let mut setup = Setup::begin(registers, features::ALL)?;
        let agreed = setup.features();
        let mut bytes = [0; LENGTH];
        let has_all = agreed & features::DISCARD != 0;
        setup.configuration(0, &mut bytes[..if has_all { LENGTH } else { SHORTEST }])?;
        let (description, mut limits, count) = read(agreed, &bytes).ok_or(Error::Configuration)?;
        limits.pieces = limits.pieces.min(PIECES);
        let count = count.min(MOST_QUEUES).min(self.function.messages as u16).max(1);
        let (mut queues, mut interrupts) = (Vec::new(), Vec::new());
        for number in 0..count {
            let address = DMA + u64::from(number) * DMA_SIZE;
            // A configuration with less memory for devices means fewer queues.
            let physical = match memory::allocate_dma(address, DMA_SIZE, 64) {
                Err(_) if number > 0 => break,
                physical => physical?,
            };
            interrupts.push(self.function.attach(number.into(), self.thread)?);
            // SAFETY: root has mapped this zeroed memory for this program, which frees it only when
            // the device was reset and these values are gone; the parts do not overlap.
            let (memory, commands) = unsafe {
                let slot = |index: u64| {
                    let offset = HEADERS + index * HEADER;
                    let (at, for_device) = (address + offset, physical + offset);
                    let header = Buffer::at(at, for_device, STATUS as usize);
                    Slot { header, status: Buffer::at(at + STATUS, for_device + STATUS, 1), owner: 0 }
                };
                (QueueMemory::at(address, physical, LAYOUT), (0..COMMANDS.into()).map(slot).collect())
            };
            let notify = setup.set_queue(number, &memory, Some(number))?;
            let (free, places) = ((0..COMMANDS.into()).collect(), alloc::vec![0; COMMANDS.into()]);
            queues.push(Ring { queue: Queue::new(memory, agreed), notify, commands, free, places });
        }
        let device = setup.start();
        let mut started = Started { device, queues, interrupts, description, limits, identity: Vec::new() };
        started.identity = started.identify()?;
        Ok(started)
    }

    /// Resets the device, and frees what it used.
    fn stop(&mut self, started: Started) -> Result<(), Error> {
        let Started { device, queues, interrupts, .. } = started;
        let count = queues.len() as u64;
        drop(queues);
        self.registers = Some(device.reset()?);
        for interrupt in interrupts {
            pci::detach(interrupt)?;
        }
        for number in 0..count {
            // SAFETY: the queues and buffers in this memory have been dropped above, and the device
            // uses none after the reset.
            unsafe { memory::free(DMA + number * DMA_SIZE, DMA_SIZE)? };
        }
        Ok(())
    }
}

impl Running for Started {
    type Error = Error;

    fn interrupts(&self) -> &[ThreadId] {
        &self.interrupts
    }

    fn description(&self) -> &Description {
        &self.description
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn identity(&self) -> &[u8] {
        &self.identity
    }

    fn take(&mut self) -> Result<Option<Ended>, Error> {
        for ring in &mut self.queues {
            if let Some(completed) = ring.queue.take()? {
                let place = ring.places[completed.token.index()];
                let command = &ring.commands[place];
                let mut status = NO_STATUS;
                command.status.read_each(1, |byte| status = byte);
                ring.free.push(place);
                return Ok(Some((command.owner, result(status))));
            }
        }
        Ok(None)
    }

    fn give(&mut self, command: Command<'_>, owner: usize) -> Result<bool, Error> {
        let (kind, sector, pieces, discarded) = match command {
            Command::Read(sector, pieces) => (READ, sector, pieces, 0),
            Command::Write(sector, pieces) => (WRITE, sector, pieces, 0),
            Command::Flush => (FLUSH, 0, &[][..], 0),
            Command::Discard(sector, sectors) => (DISCARD, sector, &[][..], sectors),
        };
        // The queue with the fewest commands: they are ended in parallel.
        let ring = self.queues.iter_mut().min_by_key(|ring| ring.queue.outstanding());
        let ring = ring.ok_or(Error::NoQueue)?;
        let Some(&place) = ring.free.last() else { return Ok(false) };
        let slot = &mut ring.commands[place];
        let discard = kind == DISCARD;
        let first = if discard { 0 } else { sector };
        let header = kind.to_le_bytes().into_iter().chain([0; 4]).chain(first.to_le_bytes());
        let segment = sector.to_le_bytes().into_iter().chain(discarded.to_le_bytes()).chain([0; 4]);
        slot.header.write(header.chain(segment));
        slot.status.write([NO_STATUS].into_iter());
        slot.owner = owner;
        let (header, status) = (slot.header.piece(if discard { 32 } else { 16 }), slot.status.piece(1));
        let data = pieces.iter().map(|piece| Piece { address: piece.address, length: piece.length as u32 });
        let mut list = [Piece { address: 0, length: 0 }; PIECES + 2];
        let count = pieces.len() + 1;
        list[..count].iter_mut().zip(core::iter::once(header).chain(data)).for_each(|(to, from)| *to = from);
        let given = if kind == READ {
            list[count] = status;
            ring.queue.give(&list[..1], &list[1..=count])
        } else {
            ring.queue.give(&list[..count], &[status])
        };
        match given {
            Ok(token) => {
                ring.free.pop();
                ring.places[token.index()] = place;
                Ok(true)
            }
            Err(Error::Full) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn notify(&mut self) {
        for ring in &mut self.queues {
            if ring.queue.must_notify() {
                self.device.notify(ring.notify);
            }
        }
    }

    fn sleep(&mut self) -> bool {
        // Every queue has to interrupt, so all are asked.
        self.queues.iter_mut().filter_map(|ring| ring.queue.expect_interrupt().then_some(())).count() > 0
    }
}

/// The result of a command whose status byte is this (5.2.6).
fn result(status: u8) -> Result<(), BlockError> {
    match status {
        0 => Ok(()),
        2 => Err(BlockError::Unsupported),
        _ => Err(BlockError::Device),
    }
}

impl Started {
    /// Asks the device for its serial number, which may be empty.
    fn identify(&mut self) -> Result<Vec<u8>, Error> {
        let interrupt = *self.interrupts.first().ok_or(Error::NoVector)?;
        let ring = self.queues.first_mut().ok_or(Error::NoQueue)?;
        let slot = &ring.commands[0];
        slot.header.write(IDENTIFY.to_le_bytes().into_iter().chain([0; 44]));
        slot.status.write([NO_STATUS].into_iter());
        let all = slot.header.piece(STATUS as usize);
        // The number comes after the header, in the room of the same command.
        let number = Piece { address: all.address + 16, length: IDENTITY as u32 };
        ring.queue.give(&[slot.header.piece(16)], &[number, slot.status.piece(1)])?;
        if ring.queue.must_notify() {
            self.device.notify(ring.notify);
        }
        while ring.queue.take()?.is_none() {
            if !ring.queue.expect_interrupt() {
                ipc::receive_timeout(interrupt, PATIENCE).map_err(|_| Error::Broken)?;
                let _ = ipc::reply(interrupt, Message::new(0));
            }
        }
        let (mut bytes, mut status) = (Vec::new(), NO_STATUS);
        slot.header.read_each(16 + IDENTITY, |byte| bytes.push(byte));
        slot.status.read_each(1, |byte| status = byte);
        // A device need not have a number.
        let number = if status == 0 { &bytes[16..] } else { &[] };
        Ok(number.iter().copied().take_while(|&byte| byte != 0).collect())
    }
}
