//! The client's side of the console. No function but [`open`] waits for the driver.

use crate::area::{Area, INPUT, OUTPUT, SIZE, at};
use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use direct::Error;
use driver::connection::Connection;
use interfaces::console::Client;
use l4::direct::Direct;
use l4::x2::ThreadId;
use ring::{Reader, Writer};
use rt::root::Status;

/// The client's end of the ring of bytes for the serial port.
#[derive(Debug)]
pub struct Output {
    connection: Arc<Connection>,
    ring: Writer<'static, OUTPUT>,
}

/// The client's end of the ring of bytes that came from the serial port.
#[derive(Debug)]
pub struct Input {
    connection: Arc<Connection>,
    ring: Reader<'static, INPUT>,
    area: &'static Area,
}

/// The number of the console that a serial port is. Those of a screen begin with 1.
pub const SERIAL: u64 = 0;

/// An open console.
#[derive(Debug)]
pub struct Console {
    /// The client's end of the output.
    pub output: Output,
    /// The client's end of the input.
    pub input: Input,
    /// Which of the driver's consoles is visible.
    pub view: View,
    /// The size in columns and rows, if the driver knows it.
    pub size: Option<(u16, u16)>,
}

/// Opens the console `number` of those that the server `name` drives. The shared area of 16 KiB is
/// mapped at `address`, a multiple of 4096. `thread`, a thread of this server, will be notified by
/// `bits` when there is input, and when there is the room for output that [`Output::wait`] has
/// asked for. Blocks until the driver has registered and has answered; overwrites the message
/// registers.
///
/// # Errors
/// `NotFound`: there is no such server, or it has no such console. `InUse`: another server has the
/// console. `InvalidArgument`, `QuotaExceeded`, `NoMemory`: root's status for the shared memory.
pub fn open(name: &str, number: u64, address: u64, thread: ThreadId, bits: u64) -> Result<Console, Status> {
    let attach = attach(number, thread, bits);
    let (connection, (columns, rows)) = Connection::open(name, address, SIZE, attach)?;
    let connection = Arc::new(connection);
    #[allow(unsafe_code, reason = "the shared memory is root's, not a Rust object")]
    // SAFETY: root has mapped the memory there for these two servers, as long as this one lives.
    let area = unsafe { at(address) };
    let (output, input) = (Writer::new(&area.output), Reader::new(&area.input));
    let output = Output { connection: connection.clone(), ring: output };
    let input = Input { connection: connection.clone(), ring: input, area };
    let length = |length: u64| u16::try_from(length).ok().filter(|&length| length > 0);
    let view = View { connection, area };
    Ok(Console { output, input, view, size: length(columns).zip(length(rows)) })
}

/// The request to attach a client to the console of a number.
fn attach(
    number: u64,
    thread: ThreadId,
    bits: u64,
) -> impl FnOnce(ThreadId, u64) -> Result<(u64, u64), Error> {
    move |to, share| {
        Client { transport: &mut Direct::default(), to }.console_attach(number, share, thread.raw(), bits)
    }
}

/// What the client knows of all consoles of the driver.
#[derive(Clone, Debug)]
pub struct View {
    connection: Arc<Connection>,
    area: &'static Area,
}

impl View {
    /// The number of the console that is visible; 0: the driver has only one. The client is
    /// notified when this changes.
    pub fn visible(&self) -> u32 {
        self.area.visible.load(Ordering::Relaxed)
    }

    /// Asks the driver to make a console visible. A number of no console has no effect.
    pub fn show(&self, number: u32) {
        self.area.wanted.store(number, Ordering::Relaxed);
        self.connection.notify();
    }

    /// The locks of the keyboard that are on: bits 0 Scroll Lock, 1 Num Lock, 2 Caps Lock.
    pub fn locks(&self) -> u32 {
        self.area.locks.load(Ordering::Relaxed)
    }

    /// Whether the driver has ended. Output and input then wait for the next one.
    pub fn has_ended(&self) -> bool {
        self.connection.has_ended()
    }

    /// Connects the console with the driver that was started in place of one that has ended. What
    /// was written and not taken, and what has come and was not read, is there still. The arguments
    /// are those of [`open`]. Blocks until the driver has answered; overwrites the message
    /// registers.
    ///
    /// # Errors
    /// Those of [`Connection::open_again`].
    pub fn open_again(&self, name: &str, number: u64, thread: ThreadId, bits: u64) -> Result<(), Status> {
        self.connection.open_again(name, attach(number, thread, bits)).map(drop)
    }
}

impl Output {
    /// Sends as many of `bytes` as there is room for. Returns how many.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let count = self.ring.write(bytes);
        if count > 0 {
            self.connection.notify();
        }
        count
    }

    /// Asks for a notification when the driver has sent something. The caller has to look for room
    /// once more after this: for bytes that were sent before, there is no notification.
    pub fn wait(&self) {
        self.ring.wait_for_reader();
    }

    /// Whether the ring has room for more bytes.
    pub fn has_room(&self) -> bool {
        self.ring.room() > 0
    }

    /// Whether the driver has passed all bytes to the port.
    pub fn is_drained(&self) -> bool {
        self.ring.is_drained()
    }
}

impl Input {
    /// Reads as many bytes as there are and `buffer` can hold. Returns how many.
    pub fn read(&mut self, buffer: &mut [u8]) -> usize {
        let count = self.ring.read(buffer);
        if count > 0 && self.ring.take_waiting() {
            self.connection.notify();
        }
        count
    }

    /// How many bytes have been lost so far because they were not read in time.
    pub fn lost(&self) -> u32 {
        self.area.lost.load(Ordering::Relaxed)
    }
}
