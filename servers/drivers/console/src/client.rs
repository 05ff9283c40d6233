//! How a server uses the console. Nothing here waits for the driver, except [`open`].

use crate::area::{Area, INPUT, OUTPUT, SIZE, WORK, at};
use core::sync::atomic::Ordering;
use direct::Error;
use interfaces::console::Client;
use l4::direct::Direct;
use l4::extension;
use l4::x2::ThreadId;
use ring::{Reader, Writer};
use rt::root::{Status, names, share};

/// The client's end of the ring of bytes for the serial port.
#[derive(Debug)]
pub struct Output {
    driver: ThreadId,
    ring: Writer<'static, OUTPUT>,
}

/// The client's end of the ring of bytes that came from the serial port.
#[derive(Debug)]
pub struct Input {
    driver: ThreadId,
    ring: Reader<'static, INPUT>,
    area: &'static Area,
}

/// Opens the console that the server `name` drives. At `address`, a multiple of 4096, 16 KiB become
/// the shared area. From then on `thread`, one of this server's, is notified with `bits` when there
/// is input, and when there is room for output that [`Output::wait`] asked for. Waits until the
/// driver has registered, and for its answer; uses the message registers.
///
/// # Errors
/// `NotFound`: there is no such server, or it is no console. `InUse`: another server has the
/// console. `InvalidArgument`, `QuotaExceeded`, `NoMemory`: as root says of the memory.
pub fn open(name: &str, address: u64, thread: ThreadId, bits: u64) -> Result<(Output, Input), Status> {
    let driver = names::lookup_wait(name)?;
    let share = share::create(address, SIZE, driver)?;
    let mut console = Client { transport: &mut Direct::default(), to: driver };
    console.console_attach(share.word(), thread.raw(), bits).map_err(|error| match error {
        Error::Status(refused) => refused.into(),
        Error::Ipc(_) | Error::Malformed => Status::NotFound,
    })?;
    #[allow(unsafe_code, reason = "the shared memory is root's, not a Rust object")]
    // SAFETY: root has mapped the memory there for these two servers, as long as this one lives.
    let area = unsafe { at(address) };
    let (output, input) = (Writer::new(&area.output), Reader::new(&area.input));
    Ok((Output { driver, ring: output }, Input { driver, ring: input, area }))
}

impl Output {
    /// Sends as many of `bytes` as there is room for. Returns how many.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let count = self.ring.write(bytes);
        if count > 0 {
            notify(self.driver);
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

    /// Whether the driver has handed everything to the port.
    pub fn is_drained(&self) -> bool {
        self.ring.is_drained()
    }
}

impl Input {
    /// Takes what has come, as far as `buffer` holds it. Returns how many bytes; 0: there are none.
    pub fn read(&mut self, buffer: &mut [u8]) -> usize {
        let count = self.ring.read(buffer);
        if count > 0 && self.ring.take_waiting() {
            notify(self.driver);
        }
        count
    }

    /// How many bytes have been lost so far because they were not taken in time.
    pub fn lost(&self) -> u32 {
        self.area.lost.load(Ordering::Relaxed)
    }
}

/// If the driver has ended, the notification fails; the rings stand still then.
fn notify(driver: ThreadId) {
    let _ = extension::notify(driver, WORK);
}
