//! The client's side of a source of random bytes. No function but [`open`] waits for the driver.

use crate::area::{RING, SIZE, at};
use direct::Error;
use driver::connection::Connection;
use interfaces::entropy::Client;
use l4::direct::Direct;
use l4::x2::ThreadId;
use ring::Reader;
use rt::root::Status;

/// The client's end of the ring of random bytes.
#[derive(Debug)]
pub struct Entropy {
    connection: Connection,
    ring: Reader<'static, RING>,
}

/// Opens the source that the server `name` drives. The shared area of 4 KiB is mapped at `address`,
/// a multiple of 4096. `thread`, a thread of this server, will be notified by `bits` when there are
/// random bytes. Blocks until the driver has registered and has answered; overwrites the message
/// registers.
///
/// # Errors
/// `NotFound`: there is no such server, it has ended for good, or it is no source of random bytes.
/// `InUse`: another server has it. `InvalidArgument`, `QuotaExceeded`, `NoMemory`: root's status
/// for the shared memory.
pub fn open(name: &str, address: u64, thread: ThreadId, bits: u64) -> Result<Entropy, Status> {
    let (connection, ()) = Connection::open(name, address, SIZE, attach(thread, bits))?;
    #[allow(unsafe_code, reason = "the shared memory is root's, not a Rust object")]
    // SAFETY: root has mapped the memory there for these two servers, as long as this one lives.
    let area = unsafe { at(address) };
    Ok(Entropy { connection, ring: Reader::new(area) })
}

/// The request to attach a client.
fn attach(thread: ThreadId, bits: u64) -> impl FnOnce(ThreadId, u64) -> Result<(), Error> {
    move |to, share| {
        Client { transport: &mut Direct::default(), to }.entropy_attach(share, thread.raw(), bits)
    }
}

impl Entropy {
    /// Reads as many random bytes as `buffer` can hold, if there are so many; none otherwise.
    /// Returns whether it has.
    pub fn read(&mut self, buffer: &mut [u8]) -> bool {
        let is_there = self.ring.available() >= buffer.len();
        if is_there {
            self.ring.read(buffer);
            if self.ring.take_waiting() {
                self.connection.notify();
            }
        }
        is_there
    }

    /// Whether the driver has ended: then no more bytes come until the next one is there.
    pub fn has_ended(&self) -> bool {
        self.connection.has_ended()
    }

    /// Connects the client with the driver that was started in place of one that has ended. The
    /// arguments are those of [`open`]. Blocks until the driver has answered; overwrites the
    /// message registers.
    ///
    /// # Errors
    /// Those of [`Connection::open_again`].
    pub fn open_again(&self, name: &str, thread: ThreadId, bits: u64) -> Result<(), Status> {
        self.connection.open_again(name, attach(thread, bits))
    }
}
