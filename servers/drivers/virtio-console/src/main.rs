//! The driver of the ports of a virtio console as a program: a server that root has started with
//! the device's PCI function and memory for devices: 8 KiB, and 128 KiB for each port. A driver
//! that is started again goes on where the last one has ended ([`notes`](virtio_console::notes)).
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

mod channel;
mod line;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use channel::{Channel, QUEUE_BYTES, QUEUE_LAYOUT};
use direct::Reply;
use driver::Interrupts;
use driver::client::Attachment;
use interfaces::streams::{Server, serve};
use l4::direct::Direct;
use l4::x2::{MessageTag, ThreadId};
use line::{BYTES, Line, Remains};
use rt::root::{Status, memory, pci};
use virtio::Error;
use virtio::mapped::Mapped;
use virtio::memory::{Buffer, QueueMemory};
use virtio::setup::{Device, Setup};
use virtio_console::control::{LENGTH, Message, PORTS, Ports};
use virtio_console::notes::Notes;
use virtio_console::pieces::MOST;

l4::program!(run, kip = rt::start_page::KIP);

rt::heap!(128 << 10);

/// The address from which on the device's registers are mapped.
const REGISTERS: u64 = 0x100_0000_0000;
/// The address of the memory that the device uses for queues and for messages about ports: for each
/// queue [`QUEUE_BYTES`], then the pieces for messages. The notes of each port are at `NOTES`.
const DMA: u64 = 0x5000_0000;
const DMA_SIZE: u64 = 8192;
const NOTES: usize = DMA_SIZE as usize - PORTS * size_of::<Notes>();
/// The address of the memory for the bytes of ports.
const PIECES: u64 = 0x6000_0000;
/// The feature that the device has several ports.
const MULTIPORT: u64 = 1 << 1;
/// The queue of messages from the device, and that of messages to it.
const FROM_DEVICE: u16 = 2;
const TO_DEVICE: u16 = 3;
/// How many queues there are in all: two for each port, and two for messages.
const QUEUES: usize = 2 * PORTS + 2;
/// The length of a piece for a message; longer messages carry names, and are cut.
const MESSAGE_ROOM: usize = 64;
const _: () = assert!(LENGTH <= MESSAGE_ROOM);
const _: () = assert!(QUEUES * QUEUE_BYTES + 2 * MOST * MESSAGE_ROOM <= NOTES);
/// The function's message that all interrupts are.
const INTERRUPT: u16 = 0;

struct Driver {
    device: Device<Mapped>,
    from_device: Channel,
    to_device: Channel,
    /// Messages that the device has not got yet.
    answers: VecDeque<Message>,
    ports: Ports,
    lines: Vec<Line>,
    interrupt: ThreadId,
}

fn run() -> ! {
    driver::start("console device", start)
}

/// Starts the device, whose interrupts are to come to `thread`.
fn start(thread: ThreadId) -> Result<Driver, Error> {
    let function = pci::function(0)?;
    let registers = virtio::function::open(function, REGISTERS)?;
    let physical = memory::allocate_kept_dma(DMA, DMA_SIZE, 64)?;
    let pieces = memory::allocate_kept_dma(PIECES, PORTS as u64 * BYTES, 64)?;
    // The device is reset before the function may write memory: what it did for an earlier driver
    // is over.
    let mut setup = Setup::begin(registers, MULTIPORT | virtio::features::EVENT_INDEX)?;
    if setup.features() & MULTIPORT == 0 {
        return Err(Error::Features);
    }
    let interrupt = function.attach(INTERRUPT.into(), thread)?;
    let at = |queue: u16| {
        let at = u64::from(queue) * QUEUE_BYTES as u64;
        // SAFETY: root has mapped this memory for this program, which never frees it; each queue
        // has its own part.
        unsafe { QueueMemory::at(DMA + at, physical + at, QUEUE_LAYOUT) }
    };
    let channel = |setup: &mut Setup<Mapped>, queue: u16| {
        let memory = at(queue);
        memory.clear();
        let notify = setup.set_queue(queue, &memory, Some(INTERRUPT))?;
        Ok::<_, Error>(Channel::new(memory, notify, setup.features()))
    };
    // The device has two queues for messages, and two for each port: those of the first port come
    // before the queues for messages, those of the others after.
    let ports = usize::from(setup.queues() / 2).saturating_sub(1).min(PORTS);
    let (mut from_device, mut to_device) =
        (channel(&mut setup, FROM_DEVICE)?, channel(&mut setup, TO_DEVICE)?);
    let mut lines = Vec::new();
    for port in 0..ports {
        let first = if port == 0 { 0 } else { 2 * port as u16 + 2 };
        let place = DMA + (NOTES + port * size_of::<Notes>()) as u64;
        // SAFETY: as above; the notes are after everything else, all their words are atomic, and
        // every content is valid.
        let notes = unsafe { &*(place as *const Notes) };
        let remains = remains(&at(first), &at(first + 1), notes);
        let channels = [channel(&mut setup, first)?, channel(&mut setup, first + 1)?];
        let bytes = [PIECES, pieces].map(|start| start + port as u64 * BYTES);
        // SAFETY: root has mapped this memory for this program, which never frees it; each port has
        // its own part.
        lines.push(unsafe { Line::new(port, channels, bytes, notes, remains) });
    }
    for (channel, first) in [(&mut from_device, 0), (&mut to_device, MOST)] {
        for piece in first..first + MOST {
            let at = (QUEUES * QUEUE_BYTES + piece * MESSAGE_ROOM) as u64;
            // SAFETY: as above; the pieces lie after the queues, each at its own place.
            channel.add(unsafe { Buffer::at(DMA + at, physical + at, MESSAGE_ROOM) });
        }
    }
    let device = setup.start();
    let answers = [Message::DEVICE_READY].into();
    let ports = Ports::default();
    Ok(Driver { device, from_device, to_device, answers, ports, lines, interrupt })
}

/// What an earlier driver of the device, which has been reset, has left of a port.
fn remains(input: &QueueMemory<'_>, output: &QueueMemory<'_>, notes: &Notes) -> Remains {
    let (input_note, output_note) = (notes.input.get(), notes.output.get());
    let (given, completed) = output.counts();
    let last = output.left(given.wrapping_sub(1)).first().map_or(0, |left| left.length as usize);
    let (input, output) = (input.left(input_note.number), output.left(completed));
    Remains { input, input_note, output, given, last, output_note }
}

impl driver::Driver for Driver {
    fn interrupts(&self) -> Interrupts<'_> {
        Interrupts::Messages(core::slice::from_ref(&self.interrupt))
    }

    /// A device that breaks the rules ends the driver, so that root starts it again.
    fn serve(&mut self) {
        if let Err(error) = self.pass_everything() {
            panic!("the console device has failed: {error:?}");
        }
        for (port, line) in self.lines.iter_mut().enumerate() {
            if !line.tell() {
                self.answers.extend(self.ports.use_port(port, false));
            }
        }
    }

    fn answer(&mut self, from: ThreadId, tag: MessageTag, registers: &mut Direct) -> Option<Reply<'static>> {
        serve(self, from, tag, registers, &[], &mut [])
    }
}

impl Driver {
    /// Passes messages and bytes, as long as there are some and there is room.
    fn pass_everything(&mut self) -> Result<(), Error> {
        loop {
            let is_settled = self.pass_messages()?;
            let mut is_more = false;
            for (port, line) in self.lines.iter_mut().enumerate() {
                line.receive(&mut self.device)?;
                line.set_host(self.ports.host(port), is_settled && self.ports.exists(port));
                line.send(&mut self.device)?;
                is_more |= line.expect_interrupt();
            }
            is_more |= self.from_device.queue.expect_interrupt();
            is_more |= self.to_device.queue.expect_interrupt();
            if !is_more {
                return Ok(());
            }
        }
    }

    /// Takes the device's messages, and answers them. A message is taken only if all earlier ones
    /// are answered, so that a device that takes no answers cannot fill this program's memory.
    /// Returns whether the device has taken all answers, and has no more messages.
    fn pass_messages(&mut self) -> Result<bool, Error> {
        loop {
            // The device gets memory for its messages first: one for which it has none is lost, and
            // an answer may be the reason for more messages.
            while self.from_device.give_input()? {}
            self.from_device.notify(&mut self.device);
            while let Some(completed) = self.to_device.queue.take()? {
                self.to_device.pieces.take(completed.token);
            }
            while let Some(&answer) = self.answers.front()
                && self.to_device.give_output(|buffer| buffer.write(answer.bytes().into_iter()))? > 0
            {
                self.answers.pop_front();
            }
            self.to_device.notify(&mut self.device);
            if !self.answers.is_empty() {
                return Ok(false);
            }
            let is_settled = self.to_device.queue.outstanding() == 0;
            let Some(completed) = self.from_device.queue.take()? else { return Ok(is_settled) };
            let piece = self.from_device.pieces.take(completed.token);
            let mut message = [0; MESSAGE_ROOM];
            let count = self.from_device.read(piece, completed.written as usize, &mut message);
            self.answers.extend(self.ports.take(&message[..count]).into_iter().flatten());
        }
    }
}

impl Server for Driver {
    fn streams_attach(
        &mut self,
        _: ThreadId,
        port: u64,
        share: u64,
        thread: u64,
        bits: u64,
    ) -> Result<(), direct::Status> {
        let port = usize::try_from(port).unwrap_or(usize::MAX);
        let line = self.lines.get_mut(port).ok_or(Status::NotFound)?;
        line.attach(Attachment { share, thread, bits })?;
        // The device is told that the last client has gone, and that there is another.
        self.answers.extend(self.ports.use_port(port, false));
        self.answers.extend(self.ports.use_port(port, true));
        driver::Driver::serve(self);
        Ok(())
    }
}
