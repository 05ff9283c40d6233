//! With the boot option `kdb=break` the kernel takes the first serial port's interrupt: a break on
//! the line, or Escape, enters the debugger whatever runs. Other bytes wait for a program that
//! reads the console.
use core::sync::atomic::{AtomicBool, Ordering};

use super::breakpoints;
use super::{Stopped, enter_debugger};
use crate::arch::serial::{self, Received};
use crate::sync::SpinLock;
use crate::{arch, config, console, interrupt, processor};

/// The interrupt line of the first serial port.
const LINE: u32 = 4;
const ESCAPE: u8 = 0x1b;
/// The most bytes that wait to be read; later ones are lost.
const LENGTH: usize = 64;

/// Whether the kernel itself handles the line's interrupt.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// Whether a break enters the debugger (INT3 operation 3 switches that).
static HEEDED: AtomicBool = AtomicBool::new(true);

/// Bytes that wait: the port interrupts the first processor, and programs read on any.
struct Waiting {
    bytes: [u8; LENGTH],
    first: usize,
    count: usize,
}

static WAITING: SpinLock<Waiting> = SpinLock::new(Waiting { bytes: [0; LENGTH], first: 0, count: 0 });

/// Takes the line if the boot options say so. Called once, at the end of boot.
pub(super) fn init() {
    if !config::get().break_key || config::get().no_kdb || LINE >= interrupt::system_base() {
        return;
    }
    TAKEN.store(true, Ordering::Relaxed);
    serial::enable_receive_interrupt();
    arch::unmask_interrupt(LINE);
}

/// Whether `line` is the kernel's own: no thread can be its handler.
pub fn takes(line: u32) -> bool {
    line == LINE && serves_serial_port()
}

/// Whether the serial port interrupts, so that no other code may ask it for bytes.
pub fn serves_serial_port() -> bool {
    TAKEN.load(Ordering::Relaxed)
}

/// The serial port has interrupted; its line is masked.
pub fn occurred() {
    let mut received = serial::receive();
    while received.is_some() {
        let mut entered = false;
        while let Some(what) = received {
            match what {
                Received::Break | Received::Byte(ESCAPE) if HEEDED.load(Ordering::Relaxed) => entered = true,
                Received::Break => {}
                Received::Byte(byte) => push(byte),
            }
            received = serial::receive();
        }
        if entered {
            console::print(format_args!("break\n"));
            match processor::this().current.get() {
                Some(thread) => breakpoints::stop_thread(thread),
                None => _ = enter_debugger(Stopped::Idle),
            }
        }
        arch::unmask_interrupt(LINE);
        // A byte that came while the line was masked does not interrupt again.
        received = serial::receive();
    }
    arch::unmask_interrupt(LINE);
}

/// Lets breaks enter the debugger no more, or again.
pub(super) fn toggle() {
    HEEDED.fetch_xor(true, Ordering::Relaxed);
}

/// A byte that came with the interrupt. `None` while another processor holds the lock: the caller
/// asks again later.
pub fn take() -> Option<u8> {
    let mut waiting = WAITING.try_lock()?;
    if waiting.count == 0 {
        return None;
    }
    let byte = waiting.bytes[waiting.first];
    waiting.first = (waiting.first + 1) % LENGTH;
    waiting.count -= 1;
    Some(byte)
}

fn push(byte: u8) {
    let mut waiting = WAITING.lock();
    if waiting.count < LENGTH {
        let last = (waiting.first + waiting.count) % LENGTH;
        waiting.bytes[last] = byte;
        waiting.count += 1;
    }
}
