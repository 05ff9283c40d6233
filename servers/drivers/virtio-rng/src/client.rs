//! The client's side of a source of random bytes. No function but [`open`] waits for the driver.

use crate::area::{RING, SIZE, at};
use direct::Error;
use driver::WORK;
use interfaces::entropy::Client;
use l4::direct::Direct;
use l4::extension;
use l4::x2::ThreadId;
use ring::Reader;
use rt::root::{Status, names, share};

/// The client's end of the ring of random bytes.
#[derive(Debug)]
pub struct Entropy {
    driver: ThreadId,
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
    let driver = names::lookup_wait(name)?;
    let share = share::create(address, SIZE, driver)?;
    let mut source = Client { transport: &mut Direct::default(), to: driver };
    source.entropy_attach(share.word(), thread.raw(), bits).map_err(|error| match error {
        Error::Status(refused) => refused.into(),
        Error::Ipc(_) | Error::Malformed => Status::NotFound,
    })?;
    #[allow(unsafe_code, reason = "the shared memory is root's, not a Rust object")]
    // SAFETY: root has mapped the memory there for these two servers, as long as this one lives.
    let area = unsafe { at(address) };
    Ok(Entropy { driver, ring: Reader::new(area) })
}

impl Entropy {
    /// Reads as many random bytes as `buffer` can hold, if there are so many; none otherwise.
    /// Returns whether it has.
    pub fn read(&mut self, buffer: &mut [u8]) -> bool {
        let is_there = self.ring.available() >= buffer.len();
        if is_there {
            self.ring.read(buffer);
            if self.ring.take_waiting() {
                let _ = extension::notify(self.driver, WORK);
            }
        }
        is_there
    }

    /// Whether the driver has ended: then no more bytes come.
    pub fn has_ended(&self) -> bool {
        extension::notify(self.driver, 0).is_err()
    }
}
