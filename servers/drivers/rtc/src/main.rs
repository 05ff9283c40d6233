//! The driver of a PC's real-time clock as a program: a server that root has started with the
//! clock's two I/O ports, the index of a register and its value.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use core::convert::Infallible;
use direct::Reply;
use driver::{Interrupts, end};
use interfaces::rtc::{Server, serve};
use l4::direct::Direct;
use l4::x2::{self, MessageTag, ThreadId};
use l4::{ipc, port};
use rt::root::{Status, device};
use rtc::clock::{self, Registers, Time};

l4::program!(run, kip = rt::start_page::KIP);

rt::heap!(16 << 10);

/// How long the driver waits for the end of a change, at a time.
const PAUSE: x2::Time = x2::Time::period(100);

struct Ports {
    index: u16,
    value: u16,
}

impl Registers for Ports {
    fn read(&mut self, index: u8) -> u8 {
        // SAFETY: the ports of a real-time clock do not affect memory. Bit 7 of the index is 0, so
        // non-maskable interrupts stay enabled.
        unsafe {
            port::write8(self.index, index);
            port::read8(self.value)
        }
    }

    fn write(&mut self, index: u8, value: u8) {
        // SAFETY: as for a read.
        unsafe {
            port::write8(self.index, index);
            port::write8(self.value, value);
        }
    }

    fn pause(&mut self) {
        ipc::sleep(PAUSE);
    }
}

fn run() -> ! {
    driver::start("real-time clock", open)
}

fn open(_: ThreadId) -> Result<Ports, Infallible> {
    let ports = device::ports(0).expect("the configuration gives the driver two I/O ports");
    let mut ports = Ports { index: *ports.start(), value: *ports.end() };
    clock::start(&mut ports);
    Ok(ports)
}

impl driver::Driver for Ports {
    fn interrupts(&self) -> Interrupts<'_> {
        Interrupts::None
    }

    fn serve(&mut self) {}

    fn answer(&mut self, from: ThreadId, tag: MessageTag, registers: &mut Direct) -> Option<Reply<'static>> {
        end::step();
        serve(self, from, tag, registers, &[], &mut [])
    }
}

impl Server for Ports {
    fn rtc_read(&mut self, _: ThreadId) -> Result<(u32, u32, u32, u32, u32, u32), direct::Status> {
        let Time { year, month, day, hour, minute, second } = clock::read(self).ok_or(Status::Unsupported)?;
        Ok((year, month, day, hour, minute, second))
    }

    fn rtc_set(
        &mut self,
        _: ThreadId,
        year: u32,
        month: u32,
        day: u32,
        hour: u32,
        minute: u32,
        second: u32,
    ) -> Result<(), direct::Status> {
        let is_set = clock::set(self, &Time { year, month, day, hour, minute, second });
        Ok(is_set.then_some(()).ok_or(Status::InvalidArgument)?)
    }
}
