//! The client's side of an input device. No function but [`open`] waits for the driver.

use crate::area::{Area, RING, SIZE, at};
use crate::event::{self, Event};
use core::sync::atomic::Ordering;
use direct::Error;
use driver::connection::Connection;
use interfaces::input::Client;
use l4::direct::Direct;
use l4::x2::ThreadId;
use ring::Reader;
use rt::root::Status;

/// The client's end of the ring of events.
#[derive(Debug)]
pub struct Input {
    connection: Connection,
    area: &'static Area,
    ring: Reader<'static, RING>,
}

/// Opens the input device that the server `name` drives. The shared area of 4 KiB is mapped at
/// `address`, a multiple of 4096. `thread`, a thread of this server, will be notified by `bits`
/// when there are events. Blocks until the driver has registered and has answered; overwrites the
/// message registers.
///
/// # Errors
/// `NotFound`: there is no such server, it has ended for good, or it drives no input device.
/// `InUse`: another server has it. `InvalidArgument`, `QuotaExceeded`, `NoMemory`: root's status
/// for the shared memory.
pub fn open(name: &str, address: u64, thread: ThreadId, bits: u64) -> Result<Input, Status> {
    let (connection, ()) = Connection::open(name, address, SIZE, attach(thread, bits))?;
    #[allow(unsafe_code, reason = "the shared memory is root's, not a Rust object")]
    // SAFETY: root has mapped the memory there for these two servers, as long as this one lives.
    let area = unsafe { at(address) };
    Ok(Input { connection, area, ring: Reader::new(&area.events) })
}

/// The request to attach a client.
fn attach(thread: ThreadId, bits: u64) -> impl FnOnce(ThreadId, u64) -> Result<(), Error> {
    move |to, share| Client { transport: &mut Direct::default(), to }.input_attach(share, thread.raw(), bits)
}

impl Input {
    /// The next event, if there is one.
    pub fn read(&mut self) -> Option<Event> {
        let event = next(&mut self.ring);
        if event.is_some() && self.ring.take_waiting() {
            self.connection.notify();
        }
        event
    }

    /// Turns the lights in `lights` on, and the others off: bits of [`event`]. A
    /// light that the keyboard does not have is ignored.
    pub fn set_lights(&self, lights: u32) {
        if self.area.lights.swap(lights, Ordering::Relaxed) != lights {
            self.connection.notify();
        }
    }

    /// Whether the driver has ended: then no more events come until the next one is there, and all
    /// keys count as released.
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

/// The next event in a ring, if a whole one is there.
pub(crate) fn next(ring: &mut Reader<'_, RING>) -> Option<Event> {
    let mut bytes = [0; event::SIZE];
    (ring.available() >= bytes.len()).then(|| {
        ring.read(&mut bytes);
        Event::from_bytes(bytes)
    })
}
