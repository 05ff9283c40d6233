//! The console devices of the model: what is written is kept for the test to look at, per test
//! thread.
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

/// What came over the serial line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    /// A byte.
    Byte(u8),
    /// The other side held the line for longer than any byte.
    Break,
}

/// The model's port never interrupts.
pub fn enable_receive_interrupt() {}

/// Always `None`: nothing ever arrives.
pub fn receive() -> Option<Received> {
    None
}

/// No byte ever arrives.
pub fn read_byte() -> Option<u8> {
    None
}
