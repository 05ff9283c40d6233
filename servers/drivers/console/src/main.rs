//! The console's driver as a program: a server that root has started with the ports and the
//! interrupt of one serial port. With the argument `loopback`, the port receives what it sends, for
//! tests.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use console::area::WORK;
use console::attached::{self, Ends};
use console::client::SERIAL;
use console::uart::{Line, Registers, Uart};
use direct::Registers as _;
use driver::client::{Attachment, Client};
use interfaces::console::{Server, serve};
use l4::direct::Direct;
use l4::ipc::{self, Message};
use l4::x2::ThreadId;
use l4::x2::extension::{ACCEPT_NOTIFICATION, NOTIFICATION_LABEL};
use l4::{port, utcb};
use rt::root::{self, Status, device, names};
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
        self.0.take_each(most, send)
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
    client: Option<Client<Ends>>,
}

fn run() -> ! {
    root::report_panics();
    let loopback = start_page::read().is_some_and(|(_, arguments)| arguments == "loopback");
    let ports = device::ports(0).expect("the configuration gives the driver a serial port's I/O ports");
    let line = device::interrupt(0).expect("the configuration gives the driver the port's interrupt");
    let interrupt = ThreadId::interrupt(line);
    let uart = Uart::new(Ports { first: *ports.start() }, loopback);
    let uart = uart.unwrap_or_else(|| panic!("there is no serial port at {:#x}", ports.start()));
    let me = utcb::my_global_id();
    device::attach_interrupt(line, me).expect("the interrupt is free");
    names::register(me).expect("it is a thread of this server");
    // SAFETY: the acceptor takes no mappings or strings.
    unsafe { utcb::set_buffer_register(0, ACCEPT_NOTIFICATION) };
    let mut driver = Driver { uart, client: None };
    driver.serve();
    let (mut registers, mut answer) = (Direct::default(), None);
    loop {
        let received = match answer.take() {
            Some((to, reply)) => registers.reply_wait(to, &reply, &mut []),
            None => registers.wait(&mut []),
        };
        // An error needs no action: the receiver of the answer has ended.
        let Ok((from, tag)) = received else { continue };
        if from == interrupt {
            driver.serve();
            // The interrupt belongs to this thread and its message was delivered: the reply cannot
            // fail.
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

impl Driver {
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
