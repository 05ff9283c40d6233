//! The kernel's console: text out to every device there is, bytes in from the serial port.
use core::fmt::{self, Write};

use crate::arch::serial;
use crate::{kdb, screen};

/// Writes text. Never blocks for long: a stuck device loses characters.
pub struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        write_bytes(text.as_bytes());
        Ok(())
    }
}

/// Writes bytes as they are.
pub fn write_bytes(bytes: &[u8]) {
    for &byte in bytes {
        serial::write_byte(byte);
        screen::write_byte(byte);
    }
}

/// A byte from the serial port, if one has arrived. Where the port interrupts, only what the
/// interrupt has brought.
pub fn read_byte() -> Option<u8> {
    if kdb::serves_serial_port() { kdb::take_byte() } else { serial::read_byte() }
}

/// Formats to the console.
pub fn print(arguments: fmt::Arguments<'_>) {
    // Console never returns an error; one from a value's own formatting leaves its text cut off,
    // nothing else.
    let _ = Console.write_fmt(arguments);
}
