//! The console devices of the model: what is written is kept for the test to look at, per test thread.
use std::cell::RefCell;

thread_local! {
    static OUTPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Writes one byte.
pub fn write_byte(byte: u8) {
    OUTPUT.with_borrow_mut(|output| output.push(byte));
}

/// Takes what was written on this thread so far.
pub fn take_output() -> String {
    String::from_utf8_lossy(&OUTPUT.take()).into_owned()
}

/// No byte ever arrives.
pub fn read_byte() -> Option<u8> {
    None
}
