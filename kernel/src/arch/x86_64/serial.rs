//! The first serial port (16550 at 0x3f8), polled, and the emulator's debug port 0xe9: the kernel's
//! console devices.
//!
//! Nothing here waits for ever: a port that is absent or stuck loses characters instead of stopping
//! the kernel.
use core::sync::atomic::{AtomicBool, Ordering};

use super::instructions::{in8, out8};

const PORT: u16 = 0x3f8;
const INTERRUPT_ENABLE: u16 = PORT + 1;
const FIFO_CONTROL: u16 = PORT + 2;
const LINE_CONTROL: u16 = PORT + 3;
const MODEM_CONTROL: u16 = PORT + 4;
const LINE_STATUS: u16 = PORT + 5;
const SCRATCH: u16 = PORT + 7;
const DEBUG_PORT: u16 = 0xe9;

const DATA_READY: u8 = 1 << 0;
const BREAK: u8 = 1 << 4;
const TRANSMITTER_EMPTY: u8 = 1 << 5;

/// Polls of the line status before a character is given up: above the time of 16 characters at
/// 115200 baud on any bus.
const PATIENCE: u32 = 200_000;

static PRESENT: AtomicBool = AtomicBool::new(false);
static DEBUG_PRESENT: AtomicBool = AtomicBool::new(false);

/// Finds the devices and sets the port to 115200 baud, 8 bits, no parity, no interrupts.
pub fn init() {
    // SAFETY: until user programs are given the port, it belongs to the kernel; these are its
    // documented registers. A machine without one reads all ones.
    unsafe {
        out8(SCRATCH, 0x5a);
        let present = in8(SCRATCH) == 0x5a;
        if present {
            out8(LINE_CONTROL, 0x80);
            out8(PORT, 1);
            out8(PORT + 1, 0);
            out8(LINE_CONTROL, 0x03);
            out8(INTERRUPT_ENABLE, 0);
            out8(FIFO_CONTROL, 0x07);
            out8(MODEM_CONTROL, 0x0b);
        }
        PRESENT.store(present, Ordering::Relaxed);
        // The emulator's debug port reads as its own number; elsewhere the port is not decoded.
        DEBUG_PRESENT.store(in8(DEBUG_PORT) == 0xe9, Ordering::Relaxed);
    }
}

/// Writes one byte to each device there is, a carriage return before a line feed on the serial
/// port.
pub fn write_byte(byte: u8) {
    if DEBUG_PRESENT.load(Ordering::Relaxed) {
        // SAFETY: the port exists and takes any byte at any time.
        unsafe { out8(DEBUG_PORT, byte) }
    }
    if PRESENT.load(Ordering::Relaxed) {
        if byte == b'\n' {
            send(b'\r');
        }
        send(byte);
    }
}

fn send(byte: u8) {
    for _ in 0..PATIENCE {
        // SAFETY: reading the line status of a present port only clears its error bits.
        if unsafe { in8(LINE_STATUS) } & TRANSMITTER_EMPTY != 0 {
            // SAFETY: the transmitter is empty, so that it takes the byte.
            unsafe { out8(PORT, byte) }
            return;
        }
        core::hint::spin_loop();
    }
}

/// What came over the serial line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    /// A byte.
    Byte(u8),
    /// The other side held the line for longer than any byte.
    Break,
}

/// Lets the serial port interrupt when bytes arrive.
pub fn enable_receive_interrupt() {
    if PRESENT.load(Ordering::Relaxed) {
        // SAFETY: the port is present; its interrupt goes to a line that the caller serves.
        unsafe { out8(INTERRUPT_ENABLE, 1) }
    }
}

/// The oldest byte or break that has arrived, if any. Does not wait.
pub fn receive() -> Option<Received> {
    if !PRESENT.load(Ordering::Relaxed) {
        return None;
    }
    // SAFETY: the port is present; the data register is read only when it holds a byte, a zero for
    // a break.
    unsafe {
        match in8(LINE_STATUS) {
            status if status & DATA_READY == 0 => None,
            status if status & BREAK != 0 => {
                in8(PORT);
                Some(Received::Break)
            }
            _ => Some(Received::Byte(in8(PORT))),
        }
    }
}

/// A byte from the serial port, if one has arrived. Does not wait.
pub fn read_byte() -> Option<u8> {
    loop {
        match receive()? {
            Received::Byte(byte) => return Some(byte),
            Received::Break => {}
        }
    }
}
