//! Printing through root, and what a server does when it panics.

use super::{ask, exit, request, with_text};
use core::fmt::{self, Write};
use l4::ipc::Message;

/// Bytes that one request can carry.
const TEXT: usize = 61 * 8;

/// The console, through root: each piece of up to 488 bytes is printed in one go.
#[derive(Clone, Copy, Debug)]
pub struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for piece in text.as_bytes().chunks(TEXT) {
            ask(with_text(Message::new(request::PRINT), piece)).map_err(|_| fmt::Error)?;
        }
        Ok(())
    }
}

/// What a server does on a panic: the message goes to the console, then it exits with this status.
pub const PANIC_STATUS: u64 = 101;

/// From now on a panic is printed through root and ends the server. Call it first in a server.
pub fn report_panics() {
    l4::start::set_panic_hook(|info| {
        // The console cannot be told if it does not work.
        let _ = writeln!(Console, "{}: {info}", crate::start_page::read().map_or("?", |(name, _)| name));
        exit(PANIC_STATUS)
    });
}
