//! The client's side of an input device. No function but [`open`] waits for the driver.

use crate::area::{Area, RING, SIZE, at};
use crate::event::{self, Event};
use core::sync::atomic::Ordering;
use direct::Error;
use driver::WORK;
use interfaces::input::Client;
use l4::direct::Direct;
use l4::extension;
use l4::x2::ThreadId;
use ring::Reader;
use rt::root::{Status, names, share};

/// The client's end of the ring of events.
#[derive(Debug)]
pub struct Input {
    driver: ThreadId,
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
    let driver = names::lookup_wait(name)?;
    let share = share::create(address, SIZE, driver)?;
    let mut source = Client { transport: &mut Direct::default(), to: driver };
    source.input_attach(share.word(), thread.raw(), bits).map_err(|error| match error {
        Error::Status(refused) => refused.into(),
        Error::Ipc(_) | Error::Malformed => Status::NotFound,
    })?;
    #[allow(unsafe_code, reason = "the shared memory is root's, not a Rust object")]
    // SAFETY: root has mapped the memory there for these two servers, as long as this one lives.
    let area = unsafe { at(address) };
    Ok(Input { driver, area, ring: Reader::new(&area.events) })
}

impl Input {
    /// The next event, if there is one.
    pub fn read(&mut self) -> Option<Event> {
        let event = next(&mut self.ring);
        if event.is_some() && self.ring.take_waiting() {
            self.notify();
        }
        event
    }

    /// Turns the lights in `lights` on, and the others off: bits of [`event`]. A
    /// light that the keyboard does not have is ignored.
    pub fn set_lights(&self, lights: u32) {
        if self.area.lights.swap(lights, Ordering::Relaxed) != lights {
            self.notify();
        }
    }

    /// Whether the driver has ended: then no more events come, and all keys count as released.
    pub fn has_ended(&self) -> bool {
        extension::notify(self.driver, 0).is_err()
    }

    /// Notifies the driver. This fails only if the driver has ended; then nothing is left to do.
    fn notify(&self) {
        let _ = extension::notify(self.driver, WORK);
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
