//! The client's side of a port. No function but [`open`] waits for the driver.

use crate::area::{Area, Host, RING, SIZE, at};
use direct::Error;
use driver::WORK;
use interfaces::streams::Client;
use l4::direct::Direct;
use l4::extension;
use l4::x2::ThreadId;
use ring::{Reader, Writer};
use rt::root::{Status, names, share};

/// The client's end of a port.
#[derive(Debug)]
pub struct Stream {
    driver: ThreadId,
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
    let driver = names::lookup_wait(name)?;
    let share = share::create(address, SIZE, driver)?;
    let mut streams = Client { transport: &mut Direct::default(), to: driver };
    streams.streams_attach(port.into(), share.word(), thread.raw(), bits).map_err(|error| match error {
        Error::Status(refused) => refused.into(),
        Error::Ipc(_) | Error::Malformed => Status::NotFound,
    })?;
    #[allow(unsafe_code, reason = "the shared memory is root's, not a Rust object")]
    // SAFETY: root has mapped the memory there for these two servers, as long as this one lives.
    let area = unsafe { at(address) };
    Ok(Stream { driver, output: Writer::new(&area.output), input: Reader::new(&area.input), area })
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
            self.notify();
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
            self.notify();
        }
        if count > 0 || is_closed { Some(count) } else { None }
    }

    /// Whether everything that was written is passed on to the host, or has no reader there.
    pub fn is_drained(&self) -> bool {
        self.output.is_drained() && self.area.unsent() == 0 || self.area.host() == Host::Closed
    }

    /// Whether the driver has ended: then nothing is passed on any more.
    pub fn has_ended(&self) -> bool {
        extension::notify(self.driver, 0).is_err()
    }

    /// Notifies the driver. This fails only if the driver has ended, which
    /// [`has_ended`](Stream::has_ended) tells.
    fn notify(&self) {
        let _ = extension::notify(self.driver, WORK);
    }
}
