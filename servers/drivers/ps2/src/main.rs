//! The driver of a PC's keyboard as a program: a server that root has started with the controller's
//! two I/O ports, that of data first, and its interrupt.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use direct::Reply;
use driver::client::Attachment;
use driver::{Interrupts, end};
use input::keyboard::Keyboard;
use interfaces::input::{Server, serve};
use l4::direct::Direct;
use l4::port;
use l4::x2::{MessageTag, ThreadId};
use ps2::controller::{Controller, Missing, Ports};
use ps2::decoder::{Decoder, Meaning};
use ps2::lights::Lights;
use rt::root::device;

l4::program!(run, kip = rt::start_page::KIP);

rt::heap!(32 << 10);

/// How many bytes are read before the driver looks at other work: a controller that always has one
/// must not keep it busy for ever.
const MOST_BYTES: usize = 1000;

/// The ports of the controller, accessed by I/O instructions.
struct IoPorts {
    data: u16,
    command: u16,
}

impl Ports for IoPorts {
    fn read_data(&mut self) -> u8 {
        // SAFETY: the ports of a keyboard controller do not affect memory.
        unsafe { port::read8(self.data) }
    }

    fn write_data(&mut self, byte: u8) {
        // SAFETY: the ports of a keyboard controller do not affect memory.
        unsafe { port::write8(self.data, byte) }
    }

    fn status(&mut self) -> u8 {
        // SAFETY: the ports of a keyboard controller do not affect memory.
        unsafe { port::read8(self.command) }
    }

    fn command(&mut self, command: u8) {
        // SAFETY: the driver sends no command by which the controller resets the machine.
        unsafe { port::write8(self.command, command) }
    }
}

struct Driver {
    controller: Controller<IoPorts>,
    decoder: Decoder,
    lights: Lights,
    keyboard: Keyboard,
    interrupt: ThreadId,
}

fn run() -> ! {
    driver::start("PS/2 keyboard", open)
}

/// Starts the keyboard, whose interrupts are to come to `thread`.
fn open(thread: ThreadId) -> Result<Driver, Missing> {
    let ports = |index| device::ports(index).expect("the configuration gives the driver two I/O ports");
    let ports = IoPorts { data: *ports(0).start(), command: *ports(1).start() };
    let line = device::interrupt(0).expect("the configuration gives the driver the keyboard's interrupt");
    let (controller, set) = Controller::start(ports)?;
    device::attach_interrupt(line, thread).expect("the interrupt is free");
    // SAFETY: this is the only keyboard of the program, and nothing else is at its address.
    let keyboard = unsafe { Keyboard::new() };
    let (decoder, lights) = (Decoder::new(set), Lights::new());
    Ok(Driver { controller, decoder, lights, keyboard, interrupt: ThreadId::interrupt(line) })
}

impl driver::Driver for Driver {
    fn interrupts(&self) -> Interrupts<'_> {
        Interrupts::Line(self.interrupt)
    }

    fn serve(&mut self) {
        for _ in 0..MOST_BYTES {
            let Some(byte) = self.controller.read() else { break };
            end::step();
            match self.decoder.decode(byte) {
                Some(Meaning::Key { code, is_pressed }) => self.keyboard.key(code, is_pressed),
                Some(Meaning::Lost) => self.keyboard.lost(),
                Some(Meaning::Restarted) => {
                    self.keyboard.lost();
                    self.lights.show_again(&mut self.controller);
                }
                Some(Meaning::Accepted) => self.lights.accepted(&mut self.controller),
                Some(Meaning::Refused) => self.lights.refused(&mut self.controller),
                None => {}
            }
        }
        self.keyboard.finish();
        if let Some(lights) = self.keyboard.changed_lights() {
            self.lights.show(&mut self.controller, lights);
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
