//! The path of an interrupt from a device to its driver, a program. The device is the old interval
//! timer (8254), which every machine has.

use crate::count_over_phases;
use l4::{ipc, port, sigma0, thread, utcb};
use x2::{Fpage, MessageTag, ThreadId, Timeouts};

/// The timer's line at the interrupt controller: 2 on all machines that we know (the firmware's
/// table says so).
const LINE: u32 = 2;
const COUNTER: u16 = 0x40;
const COMMAND: u16 = 0x43;
/// Counter 0, low byte then high byte, one interrupt when it has counted down.
const ONE_INTERRUPT: u8 = 0x30;
/// Ticks until then: 50 microseconds.
const TICKS: u16 = 60;

/// Lets the timer interrupt once.
fn start_timer() {
    let [low, high] = TICKS.to_le_bytes();
    // SAFETY: the kernel has used this device at boot alone.
    unsafe {
        port::write8(COMMAND, ONE_INTERRUPT);
        port::write8(COUNTER, low);
        port::write8(COUNTER, high);
    }
}

pub(crate) fn run() {
    let given = sigma0::request_ports(Fpage::io(COUNTER, 2));
    assert_eq!(given, Ok(true), "sigma0 gives the root task all ports");
    let line = ThreadId::interrupt(LINE);
    thread::associate_interrupt(line, utcb::my_global_id()).expect("nobody else has it");
    start_timer();
    ipc::receive(line).expect("it comes");
    count_over_phases("interrupt-to-driver", || {
        start_timer();
        // Acknowledges the interrupt before, and waits for this one.
        ipc::ipc(line, line, Timeouts::NEVER, MessageTag::new(0, 0, 0)).expect("it comes");
    });
    thread::disassociate_interrupt(line).expect("this thread has it");
}
