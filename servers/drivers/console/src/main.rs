//! The console's driver as a program: a server that root has started with the ports and the
//! interrupt of one serial port. With the argument `loopback`, the port receives what it sends, for
//! tests.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use console::attached::{self, Ends};
use console::client::SERIAL;
use console::uart::{Line, Registers, Uart};
use direct::Reply;
use driver::client::{Attachment, Client};
use driver::{Interrupts, end};
use interfaces::console::{Server, serve};
use l4::direct::Direct;
use l4::port;
use l4::x2::{MessageTag, ThreadId};
use rt::root::{Status, device};
use rt::start_page;

l4::program!(run, kip = start_page::KIP);

rt::heap!(32 << 10);

/// The address at which the client's area is mapped.
const AREA: u64 = 0x4000_0000;

/// The registers of a serial port, accessed by I/O instructions.
struct Ports {
    first: u16,
}

impl Registers for Ports {
    fn read(&mut self, register: u8) -> u8 {
        // SAFETY: the registers of a serial port do not affect memory.
        unsafe { port::read8(self.first + u16::from(register)) }
    }

    fn write(&mut self, register: u8, value: u8) {
        // SAFETY: the registers of a serial port do not affect memory.
        unsafe { port::write8(self.first + u16::from(register), value) }
    }
}

/// The client's side of the port.
struct Port<'a>(&'a mut Ends);

impl Line for Port<'_> {
    fn can_receive(&mut self) -> bool {
        self.0.room() > 0
    }

    fn receive(&mut self, byte: u8) {
        self.0.receive(&[byte]);
    }

    fn send(&mut self, most: usize, send: &mut dyn FnMut(u8)) -> usize {
        // The ring is told of each byte before the next one is sent: if the driver ends, the next
        // one goes on there.
        let mut sent = 0;
        while sent < most && self.0.take_each(1, &mut *send) == 1 {
            sent += 1;
            end::step();
        }
        sent
    }

    fn has_more(&self) -> bool {
        self.0.available() > 0
    }
}

/// The other end of the line when no client has attached: what comes in is lost.
struct Nobody;

impl Line for Nobody {
    fn can_receive(&mut self) -> bool {
        true
    }

    fn receive(&mut self, _: u8) {}

    fn send(&mut self, _: usize, _: &mut dyn FnMut(u8)) -> usize {
        0
    }

    fn has_more(&self) -> bool {
        false
    }
}

struct Driver {
    uart: Uart<Ports>,
    interrupt: ThreadId,
    client: Option<Client<Ends>>,
}

fn run() -> ! {
    driver::start("serial port", open)
}

/// Sets up the port, whose interrupts are to come to `thread`.
fn open(thread: ThreadId) -> Result<Driver, &'static str> {
    let (_, arguments) = start_page::read().unwrap_or_default();
    let loopback = arguments.split_whitespace().any(|word| word == "loopback");
    let ports = device::ports(0).ok_or("the configuration gives the driver no I/O ports")?;
    let line = device::interrupt(0).ok_or("the configuration gives the driver no interrupt")?;
    let uart = Uart::new(Ports { first: *ports.start() }, loopback).ok_or("nothing is at its I/O ports")?;
    device::attach_interrupt(line, thread).map_err(|_| "its interrupt is another driver's")?;
    Ok(Driver { uart, interrupt: ThreadId::interrupt(line), client: None })
}

impl driver::Driver for Driver {
    fn interrupts(&self) -> Interrupts<'_> {
        Interrupts::Line(self.interrupt)
    }

    /// Moves bytes between the serial port and the client's rings, as long as there are bytes and
    /// room.
    fn serve(&mut self) {
        match &mut self.client {
            Some(client) => {
                self.uart.serve(&mut Port(&mut client.shared));
                if !attached::tell(client) {
                    self.client = None;
                }
            }
            None => self.uart.serve(&mut Nobody),
        }
    }

    fn answer(&mut self, from: ThreadId, tag: MessageTag, registers: &mut Direct) -> Option<Reply<'static>> {
        serve(self, from, tag, registers, &[], &mut [])
    }
}

impl Server for Driver {
    fn console_attach(
        &mut self,
        _: ThreadId,
        number: u64,
        share: u64,
        thread: u64,
        bits: u64,
    ) -> Result<(u64, u64), direct::Status> {
        if number != SERIAL {
            return Err(Status::NotFound.into());
        }
        // SAFETY: nothing else is at this address, and the client is always this field.
        unsafe { attached::attach(&mut self.client, Attachment { share, thread, bits }, AREA)? };
        // The port does not tell the size of the terminal at its other end.
        Ok((0, 0))
    }
}
