//! The console's driver as a program: a server that root has started with the ports and the
//! interrupt of one serial port. With the argument `loopback`, the port receives what it sends, for
//! tests.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use console::area::{self, Area, INPUT, OUTPUT, WORK};
use console::uart::{Line, Registers, Uart};
use core::sync::atomic::Ordering;
use direct::Registers as _;
use interfaces::console::{Server, serve};
use l4::direct::Direct;
use l4::ipc::{self, Message};
use l4::x2::ThreadId;
use l4::x2::extension::{ACCEPT_NOTIFICATION, NOTIFICATION_LABEL};
use l4::{extension, port, utcb};
use ring::{Reader, Writer};
use rt::root::{self, Status, device, memory, names, share};
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

/// The server that uses the console.
struct Client {
    thread: ThreadId,
    bits: u64,
    area: &'static Area,
    output: Reader<'static, OUTPUT>,
    input: Writer<'static, INPUT>,
    /// Whether the client has yet to be notified of a change.
    news: bool,
}

impl Line for Client {
    fn can_receive(&mut self) -> bool {
        if self.input.room() == 0 {
            self.input.wait_for_reader();
        }
        self.input.room() > 0
    }

    fn receive(&mut self, byte: u8) {
        if self.input.write(&[byte]) == 0 {
            self.area.lost.fetch_add(1, Ordering::Relaxed);
        }
        self.news = true;
    }

    fn send(&mut self, most: usize, send: &mut dyn FnMut(u8)) -> usize {
        self.output.read_each(most, send)
    }

    fn has_more(&self) -> bool {
        self.output.available() > 0
    }
}

impl Client {
    /// Notifies the client if there is a change. Returns false if the client has ended.
    fn tell(&mut self) -> bool {
        let has_room = self.output.available() <= OUTPUT / 2;
        if !(self.news || has_room && self.output.take_waiting()) {
            return true;
        }
        self.news = false;
        extension::notify(self.thread, self.bits).is_ok()
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
    client: Option<Client>,
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
                self.uart.serve(client);
                if !client.tell() {
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
        share: u64,
        thread: u64,
        bits: u64,
    ) -> Result<(), direct::Status> {
        Ok(self.attach(share, thread, bits)?)
    }
}

impl Driver {
    /// Gives the console to the server to which `thread` belongs.
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
        let area = unsafe { area::at(AREA) };
        let thread = ThreadId::from_raw(thread);
        let (output, input) = (Reader::new(&area.output), Writer::new(&area.input));
        self.client = Some(Client { thread, bits, area, output, input, news: false });
        Ok(())
    }
}
