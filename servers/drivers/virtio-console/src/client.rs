//! The client's side of a port. No function but [`open`] waits for the driver.

use crate::area::{Area, Host, RING, SIZE, at};
use direct::Error;
use driver::connection::Connection;
use interfaces::streams::Client;
use l4::direct::Direct;
use l4::x2::ThreadId;
use ring::{Reader, Writer};
use rt::root::Status;

/// The client's end of a port.
#[derive(Debug)]
pub struct Stream {
    connection: Connection,
    output: Writer<'static, RING>,
    input: Reader<'static, RING>,
    area: &'static Area,
}

/// Opens a port of the device that the server `name` drives. The shared area of 256 KiB is mapped
/// at `address`, a multiple of 4096. `thread`, a thread of this server, will be notified by `bits`
/// when there is input, when there is the room for output that [`Stream::wait`] has asked for, when
/// all output is passed on, and when the host has opened or closed its end. Blocks until the driver
/// has registered and has answered; overwrites the message registers.
///
/// # Errors
/// `NotFound`: there is no such server, it has ended for good, or its device has no such port.
/// `InUse`: another server has the port. `InvalidArgument`, `QuotaExceeded`, `NoMemory`: root's
/// status for the shared memory.
pub fn open(name: &str, port: u32, address: u64, thread: ThreadId, bits: u64) -> Result<Stream, Status> {
    let (connection, ()) = Connection::open(name, address, SIZE, attach(port, thread, bits))?;
    #[allow(unsafe_code, reason = "the shared memory is root's, not a Rust object")]
    // SAFETY: root has mapped the memory there for these two servers, as long as this one lives.
    let area = unsafe { at(address) };
    Ok(Stream { connection, output: Writer::new(&area.output), input: Reader::new(&area.input), area })
}

/// The request to attach a client to a port.
fn attach(port: u32, thread: ThreadId, bits: u64) -> impl FnOnce(ThreadId, u64) -> Result<(), Error> {
    move |to, share| {
        Client { transport: &mut Direct::default(), to }.streams_attach(
            port.into(),
            share,
            thread.raw(),
            bits,
        )
    }
}

impl Stream {
    /// Sends as many of `bytes` as there is room for. Returns how many; `None`: the host has closed
    /// its end.
    pub fn write(&mut self, bytes: &[u8]) -> Option<usize> {
        if self.area.host() == Host::Closed {
            return None;
        }
        let count = self.output.write(bytes);
        if count > 0 {
            self.connection.notify();
        }
        Some(count)
    }

    /// Asks for a notification when there is more room for output. The caller has to try once more
    /// after this: for room that there was before, there is no notification.
    pub fn wait(&self) {
        self.output.wait_for_reader();
    }

    /// Reads as many bytes as there are and `buffer` can hold. Returns how many; `None`: there are
    /// none yet. `Some(0)`: the host has closed its end, and everything was read.
    pub fn read(&mut self, buffer: &mut [u8]) -> Option<usize> {
        // The driver closes the stream after it has written the last bytes.
        let is_closed = self.area.host() == Host::Closed;
        let count = self.input.read(buffer);
        if count > 0 && self.input.take_waiting() {
            self.connection.notify();
        }
        if count > 0 || is_closed { Some(count) } else { None }
    }

    /// Whether everything that was written is passed on to the host, or has no reader there.
    pub fn is_drained(&self) -> bool {
        self.output.is_drained() && self.area.unsent() == 0 || self.area.host() == Host::Closed
    }

    /// Whether the driver has ended: then nothing is passed on until the next one is there.
    pub fn has_ended(&self) -> bool {
        self.connection.has_ended()
    }

    /// Connects the stream with the driver that was started in place of one that has ended. Bytes
    /// in the rings are there still. The arguments are those of [`open`]. Blocks until the driver
    /// has answered; overwrites the message registers.
    ///
    /// # Errors
    /// Those of [`Connection::open_again`].
    pub fn open_again(&self, name: &str, port: u32, thread: ThreadId, bits: u64) -> Result<(), Status> {
        self.connection.open_again(name, attach(port, thread, bits))
    }
}
