//! The driver's side of a console: the server that has attached to it, and the rings that the two
//! share.

use crate::area::{Area, INPUT, OUTPUT, SIZE, at};
use core::sync::atomic::Ordering;
use l4::extension;
use l4::x2::ThreadId;
use ring::{Reader, Writer};
use rt::root::share::{self, Share};
use rt::root::{Status, memory};

/// The server that uses a console.
#[derive(Debug)]
pub struct Attached {
    thread: ThreadId,
    bits: u64,
    area: &'static Area,
    output: Reader<'static, OUTPUT>,
    input: Writer<'static, INPUT>,
    /// Whether the client has yet to be notified of a change.
    news: bool,
}

impl Attached {
    /// Makes the server of `thread` the client of a console, in place of the one in `client`, which
    /// must have ended. What it shares is mapped at `address`, where each client of this console is
    /// mapped. `bits` notify it.
    ///
    /// # Errors
    /// `InUse`: the earlier client has not ended. `InvalidArgument`: the share has another size.
    /// Root's status, if it cannot be mapped.
    ///
    /// # Safety
    /// Nothing else of this program may be at `address`, and each `client` that is given with this
    /// address must be the result of the call before, or `None` at the first call.
    #[allow(unsafe_code, reason = "the shared memory is root's, not a Rust object")]
    pub unsafe fn replace(
        client: &mut Option<Attached>,
        address: u64,
        share: u64,
        thread: u64,
        bits: u64,
    ) -> Result<(), Status> {
        // A client that cannot be notified has ended, and a new one may take its place.
        if client.as_ref().is_some_and(|client| extension::notify(client.thread, 0).is_ok()) {
            return Err(Status::InUse);
        }
        *client = None;
        // SAFETY: the earlier client has ended, and there are no references to its area any more.
        let _ = unsafe { memory::free(address, SIZE) };
        let size = share::map(Share::from_word(share), address)?;
        if size != SIZE {
            // SAFETY: the share was mapped just now, and there are no references to it.
            let _ = unsafe { memory::free(address, size) };
            return Err(Status::InvalidArgument);
        }
        // SAFETY: root has mapped the memory there, and it is unmapped only above, when there is no
        // client.
        let area = unsafe { at(address) };
        let thread = ThreadId::from_raw(thread);
        let (output, input) = (Reader::new(&area.output), Writer::new(&area.input));
        *client = Some(Attached { thread, bits, area, output, input, news: false });
        Ok(())
    }

    /// How many bytes of input there is room for. If there is none, the driver will be notified
    /// when there is.
    pub fn room(&mut self) -> usize {
        if self.input.room() == 0 {
            self.input.wait_for_reader();
        }
        self.input.room()
    }

    /// Gives the client bytes of input. Those for which there is no room are lost, and counted.
    pub fn receive(&mut self, bytes: &[u8]) {
        let lost = bytes.len() - self.input.write(bytes);
        if lost > 0 {
            self.area.lost.fetch_add(u32::try_from(lost).unwrap_or(u32::MAX), Ordering::Relaxed);
        }
        self.news = true;
    }

    /// Takes up to `most` bytes of the client's output, one by one. Returns how many.
    pub fn take_each(&mut self, most: usize, take: impl FnMut(u8)) -> usize {
        self.output.read_each(most, take)
    }

    /// How many bytes of output there are.
    pub fn available(&self) -> usize {
        self.output.available()
    }

    /// Notifies the client if there is a change. Returns false if the client has ended.
    pub fn tell(&mut self) -> bool {
        let has_room = self.output.available() <= OUTPUT / 2;
        if !(self.news || has_room && self.output.take_waiting()) {
            return true;
        }
        self.news = false;
        extension::notify(self.thread, self.bits).is_ok()
    }
}
