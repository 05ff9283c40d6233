//! Printing through root, and what a server does when it panics.

use super::{ask, exit};
use core::fmt::{self, Write};

/// Bytes that one request can carry.
const TEXT: usize = 61 * 8;

/// The console, through root: each piece of up to 488 bytes is printed in one go.
#[derive(Clone, Copy, Debug)]
pub struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for piece in text.as_bytes().chunks(TEXT) {
            ask(|root| root.root_print(piece)).map_err(|_| fmt::Error)?;
        }
        Ok(())
    }
}

/// What a server does on a panic: message and backtrace go to the console, then it exits with this
/// status.
pub const PANIC_STATUS: u64 = 101;

/// Frames of a backtrace that are printed.
const FRAMES: usize = 16;

/// From now on a panic is printed through root and ends the server. Call it first in a server.
pub fn report_panics() {
    l4::start::set_panic_hook(|info| {
        let name = crate::start_page::read().map_or("?", |(name, _)| name);
        let mut text = Text::new();
        // Text that does not fit is left out. There is no way to report a console that does not
        // work.
        let _ = text.write_str("backtrace:\n");
        for address in crate::backtrace::frames().take(FRAMES) {
            let _ = writeln!(text, "  at {address:#x}");
        }
        let _ = writeln!(Console, "{name}: {info}");
        let _ = Console.write_str(text.as_str());
        exit(PANIC_STATUS)
    });
}

/// Text of one request, so that no other server's comes in between: a panic must not allocate.
struct Text {
    bytes: [u8; TEXT],
    length: usize,
}

impl Text {
    const fn new() -> Text {
        Text { bytes: [0; TEXT], length: 0 }
    }

    fn as_str(&self) -> &str {
        // The buffer never ends within a character.
        core::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let place = self.bytes.get_mut(self.length..self.length + text.len()).ok_or(fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.length += text.len();
        Ok(())
    }
}
