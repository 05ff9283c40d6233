//! A line from the serial console, with echo and backspace.
use crate::arch::serial;
use crate::console;

/// Longest line.
pub(super) const LENGTH: usize = 80;

const BACKSPACE: u8 = 8;
const DELETE: u8 = 0x7f;

/// Waits for a line. Characters that are not printable ASCII, or too many, are ignored.
pub(super) fn read(buffer: &mut [u8; LENGTH]) -> &str {
    let mut length = 0;
    loop {
        // The serial port's interrupt is off while the debugger runs, so that the port is polled.
        let Some(byte) = console::read_byte().or_else(serial::read_byte) else {
            core::hint::spin_loop();
            continue;
        };
        match byte {
            b'\r' | b'\n' => break,
            BACKSPACE | DELETE if length > 0 => {
                length -= 1;
                console::write_bytes(b"\x08 \x08");
            }
            b' '..=b'~' if length < LENGTH => {
                buffer[length] = byte;
                length += 1;
                console::write_bytes(&[byte]);
            }
            _ => {}
        }
    }
    console::write_bytes(b"\n");
    core::str::from_utf8(&buffer[..length]).unwrap_or("")
}
