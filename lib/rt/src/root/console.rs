//! Printing through root, and the report of a server's panic.

use super::{ask, exit};
use core::fmt::{self, Write};

/// How many bytes of text fit into one request.
const TEXT: usize = 61 * 8;

/// The console, through root. Up to 488 bytes are printed by one request, without other servers'
/// text in between.
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

/// The status with which a server exits after a panic.
pub const PANIC_STATUS: u64 = 101;

/// How many frames of a backtrace are printed at most.
const FRAMES: usize = 16;

/// Makes a panic print its message and a backtrace through root, and end the server. A server
/// should call this first.
pub fn report_panics() {
    l4::start::set_panic_hook(|info| {
        let name = crate::start_page::read().map_or("?", |(name, _)| name);
        let mut text = Text::new();
        // Text that does not fit is left out. If the console does not work, that cannot be
        // reported.
        let _ = text.write_str("backtrace:\n");
        for address in crate::backtrace::frames().take(FRAMES) {
            let _ = writeln!(text, "  at {address:#x}");
        }
        let _ = writeln!(Console, "{name}: {info}");
        let _ = Console.write_str(text.as_str());
        exit(PANIC_STATUS)
    });
}

/// The text of one request. It is sent in one piece, so that no other server's text comes in
/// between, and has a fixed size, since a panic must not allocate.
struct Text {
    bytes: [u8; TEXT],
    length: usize,
}

impl Text {
    const fn new() -> Text {
        Text { bytes: [0; TEXT], length: 0 }
    }

    fn as_str(&self) -> &str {
        // The text never ends within a character.
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
