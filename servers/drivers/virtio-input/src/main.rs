//! The driver of a virtio keyboard as a program: a server that root has started with the PCI
//! functions of input devices, of which it drives the first keyboard, and 4 KiB of memory for
//! devices.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{Display, Formatter};
use direct::Reply;
use driver::client::Attachment;
use driver::{Interrupts, end};
use input::event::{self, Event};
use input::keyboard::Keyboard;
use interfaces::input::{Server, serve};
use l4::direct::Direct;
use l4::x2::{MessageTag, ThreadId};
use rt::root::{Status, memory, pci};
use virtio::mapped::Mapped;
use virtio::memory::{Buffer, Layout, QueueMemory};
use virtio::queue::Queue;
use virtio::setup::{Device, Notify, Setup};
use virtio::{Error, features};
use virtio_input::description;

l4::program!(run, kip = rt::start_page::KIP);

rt::heap!(32 << 10);

/// The address from which on the registers of devices are mapped, and the distance of those of two
/// devices.
const REGISTERS: u64 = 0x100_0000_0000;
const DISTANCE: u64 = 1 << 35;
/// The address of the memory that the device uses: the queue of events, the queue of lights, the
/// buffers of events, and those of lights.
const DMA: u64 = 0x5000_0000;
const DMA_SIZE: u64 = 4096;
const LIGHTS_QUEUE: u64 = 2048;
const EVENT_BUFFERS: u64 = 2560;
const LIGHT_BUFFERS: u64 = 3072;
/// The numbers of the queues, and how many requests each can have.
const EVENTS: u16 = 0;
const LIGHTS: u16 = 1;
const EVENTS_LAYOUT: Layout = match Layout::new(64, 0) {
    Some(layout) => layout,
    None => panic!("the size is no power of two"),
};
const LIGHTS_LAYOUT: Layout = match Layout::new(4, 0) {
    Some(layout) => layout,
    None => panic!("the size is no power of two"),
};
const _: () = assert!(EVENTS_LAYOUT.bytes() <= LIGHTS_QUEUE as usize);
const _: () = assert!(LIGHTS_LAYOUT.bytes() <= (EVENT_BUFFERS - LIGHTS_QUEUE) as usize);
const _: () = assert!(EVENTS_LAYOUT.size() as u64 * event::SIZE as u64 <= LIGHT_BUFFERS - EVENT_BUFFERS);
/// The number of lights of a keyboard: Num Lock, Caps Lock and Scroll Lock.
const LIGHT_COUNT: u16 = 3;
/// The type of events that turn lights on and off.
const LIGHT_EVENT: u16 = 0x11;
/// The function's message that interrupts of both queues are.
const MESSAGE: u16 = 0;

struct Driver {
    device: Device<Mapped>,
    events: Queue<'static>,
    notify_events: Notify,
    /// The buffers of events, each at the number of its request.
    buffers: Vec<Buffer<'static>>,
    /// The queue of lights, if the device has lights.
    lights: Option<Lights>,
    keyboard: Keyboard,
    interrupt: ThreadId,
}

struct Lights {
    queue: Queue<'static>,
    notify: Notify,
    buffers: Vec<Buffer<'static>>,
    /// The lights that are to be on, if the device has not been told.
    wanted: Option<u32>,
}

/// Why there is no keyboard.
enum Missing {
    Failed(Error),
    /// The functions are other devices, with these names.
    Others(String),
}

impl From<Error> for Missing {
    fn from(error: Error) -> Missing {
        Missing::Failed(error)
    }
}

impl From<Status> for Missing {
    fn from(status: Status) -> Missing {
        Missing::Failed(status.into())
    }
}

impl Display for Missing {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> core::fmt::Result {
        match self {
            Missing::Failed(error) => write!(formatter, "{error:?}"),
            Missing::Others(names) => write!(formatter, "there are only {names}"),
        }
    }
}

fn run() -> ! {
    driver::start("virtio keyboard", start)
}

/// Finds the first keyboard among the functions. The devices before it are left without queues.
fn find() -> Result<(pci::Function, Setup<Mapped>), Missing> {
    let mut others = String::new();
    for index in 0.. {
        let function = match pci::function(index) {
            Err(Status::NotFound) if index > 0 => break,
            function => function?,
        };
        let registers = virtio::function::open(function, REGISTERS + index as u64 * DISTANCE)?;
        let mut setup = Setup::begin(registers, features::EVENT_INDEX)?;
        if description::is_keyboard(&mut setup)? {
            return Ok((function, setup));
        }
        let separator = if others.is_empty() { "" } else { ", " };
        description::name(&mut setup, |name| others.extend([separator, name]))?;
    }
    Err(Missing::Others(others))
}

/// Starts the keyboard, whose interrupts are to come to `thread`.
fn start(thread: ThreadId) -> Result<Driver, Missing> {
    let (function, mut setup) = find()?;
    let physical = memory::allocate_dma(DMA, DMA_SIZE, 64)?;
    // SAFETY: root has mapped this zeroed memory for this program, which never frees it; the values
    // are given different parts of it.
    let (events, lights) = unsafe {
        let events = QueueMemory::at(DMA, physical, EVENTS_LAYOUT);
        (events, QueueMemory::at(DMA + LIGHTS_QUEUE, physical + LIGHTS_QUEUE, LIGHTS_LAYOUT))
    };
    let buffers = |first: u64, count: u16| -> Vec<Buffer<'static>> {
        let places = (0..u64::from(count)).map(|index| first + index * event::SIZE as u64);
        // SAFETY: as above.
        places.map(|place| unsafe { Buffer::at(DMA + place, physical + place, event::SIZE) }).collect()
    };
    // The device was reset before the function may write memory: what it did for an earlier driver
    // is over.
    let interrupt = function.attach(MESSAGE.into(), thread)?;
    let notify_events = setup.set_queue(EVENTS, &events, Some(MESSAGE))?;
    let lights = match description::has_lights(&mut setup)? {
        true => {
            let notify = setup.set_queue(LIGHTS, &lights, Some(MESSAGE))?;
            let queue = Queue::new(lights, setup.features());
            Some(Lights { queue, notify, buffers: buffers(LIGHT_BUFFERS, LIGHT_COUNT), wanted: None })
        }
        false => None,
    };
    let mut events = Queue::new(events, setup.features());
    let mut device = setup.start();
    let free = buffers(EVENT_BUFFERS, EVENTS_LAYOUT.size());
    let mut given = Vec::new();
    for buffer in free {
        let token = events.give(&[], &[buffer.piece(event::SIZE)])?;
        given.push((token, buffer));
    }
    given.sort_by_key(|&(token, _)| token);
    if events.must_notify() {
        device.notify(notify_events);
    }
    let buffers = given.into_iter().map(|(_, buffer)| buffer).collect();
    // SAFETY: this is the only keyboard of the program, and nothing else is at its address.
    let keyboard = unsafe { Keyboard::new() };
    Ok(Driver { device, events, notify_events, buffers, lights, keyboard, interrupt })
}

impl Driver {
    /// Passes events from the device to the client, and lights to the device.
    fn pass(&mut self) -> Result<(), Error> {
        loop {
            while let Some(completed) = self.events.take()? {
                let index = completed.token.index();
                end::step();
                self.deliver(index, completed.written as usize)?;
                let piece = self.buffers[index].piece(event::SIZE);
                // The request gets the number that has become free last, so its buffer stays at its
                // place.
                if self.events.give(&[], &[piece])?.index() != index {
                    return Err(Error::Broken);
                }
            }
            if self.events.must_notify() {
                self.device.notify(self.notify_events);
            }
            if !self.events.expect_interrupt() {
                break;
            }
        }
        self.keyboard.finish();
        let wanted = self.keyboard.changed_lights();
        match &mut self.lights {
            Some(lights) => lights.pass(&mut self.device, wanted),
            None => Ok(()),
        }
    }

    /// Gives the client the event in a buffer, if it is one of a key.
    fn deliver(&mut self, buffer: usize, written: usize) -> Result<(), Error> {
        let mut bytes = [0; event::SIZE];
        if written != bytes.len() {
            return Err(Error::Broken);
        }
        let mut places = bytes.iter_mut();
        self.buffers[buffer].read_each(written, |byte| {
            if let Some(place) = places.next() {
                *place = byte;
            }
        });
        let event = Event::from_bytes(bytes);
        if event.kind == event::KEY {
            self.keyboard.key(event.code, event.value != event::RELEASED);
        }
        Ok(())
    }
}

impl Lights {
    /// Tells the device which lights are to be on: those in `changed`, if that is given. While the
    /// device has not completed an earlier change, the new one waits.
    fn pass(&mut self, device: &mut Device<Mapped>, changed: Option<u32>) -> Result<(), Error> {
        self.wanted = changed.or(self.wanted);
        loop {
            while self.queue.take()?.is_some() {}
            if self.queue.outstanding() == 0
                && let Some(wanted) = self.wanted.take()
            {
                for (light, buffer) in (0..LIGHT_COUNT).zip(&self.buffers) {
                    let value = i32::from(wanted & 1 << light != 0);
                    let event = Event { kind: LIGHT_EVENT, code: light, value };
                    buffer.write(event.bytes().into_iter());
                    self.queue.give(&[buffer.piece(event::SIZE)], &[])?;
                }
                if self.queue.must_notify() {
                    device.notify(self.notify);
                }
            }
            if !self.queue.expect_interrupt() {
                return Ok(());
            }
        }
    }
}

impl driver::Driver for Driver {
    fn interrupts(&self) -> Interrupts<'_> {
        Interrupts::Messages(core::slice::from_ref(&self.interrupt))
    }

    /// A device that breaks the rules ends the driver, so that root starts it again.
    fn serve(&mut self) {
        if let Err(error) = self.pass() {
            panic!("the keyboard has failed: {error:?}");
        }
    }

    fn answer(&mut self, from: ThreadId, tag: MessageTag, registers: &mut Direct) -> Option<Reply<'static>> {
        serve(self, from, tag, registers, &[], &mut [])
    }
}

impl Server for Driver {
    fn input_attach(
        &mut self,
        _: ThreadId,
        share: u64,
        thread: u64,
        bits: u64,
    ) -> Result<(), direct::Status> {
        Ok(self.keyboard.attach(Attachment { share, thread, bits })?)
    }
}
