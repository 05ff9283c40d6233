//! A client of a driver: the thread that is notified, and the memory that the two share.
#![allow(unsafe_code, reason = "that the memory of an earlier client is not used is a promise")]

use l4::extension;
use l4::x2::ThreadId;
use rt::root::share::{self, Share};
use rt::root::{Status, memory};

/// The client of a driver, and what the driver has in the memory that they share.
#[derive(Debug)]
pub struct Client<T> {
    thread: ThreadId,
    bits: u64,
    /// The driver's end of the shared memory.
    pub shared: T,
}

/// What a request to attach a client says: the share, the thread to notify, and the bits.
#[derive(Clone, Copy, Debug)]
pub struct Attachment {
    /// The number of the share.
    pub share: u64,
    /// The id of the client's thread.
    pub thread: u64,
    /// The bits by which it is notified.
    pub bits: u64,
}

impl<T> Client<T> {
    /// Notifies the client. Returns false if it has ended.
    pub fn notify(&self) -> bool {
        extension::notify(self.thread, self.bits).is_ok()
    }

    /// Whether the client has ended.
    pub fn has_ended(&self) -> bool {
        extension::notify(self.thread, 0).is_err()
    }

    /// Makes the server that sends this request the client in `place`, instead of an earlier one,
    /// which must have ended. Its `size` bytes of shared memory are mapped at `address`, and `open`
    /// makes the driver's end of them. Blocks until root has answered.
    ///
    /// # Errors
    /// `InUse`: the earlier client has not ended. `InvalidArgument`: the share has another size.
    /// Root's status, if the share cannot be mapped.
    ///
    /// # Safety
    /// Only clients in this `place` may use the memory at `address`: nothing else of the program is
    /// there, and `T` is its only user.
    pub unsafe fn attach(
        place: &mut Option<Client<T>>,
        attachment: Attachment,
        address: u64,
        size: u64,
        open: impl FnOnce() -> T,
    ) -> Result<(), Status> {
        // A client that cannot be notified has ended, and a new one may take its place.
        if place.as_ref().is_some_and(|client| !client.has_ended()) {
            return Err(Status::InUse);
        }
        *place = None;
        // SAFETY: the earlier client was the only user of the memory.
        let _ = unsafe { memory::free(address, size) };
        let mapped = share::map(Share::from_word(attachment.share), address)?;
        if mapped != size {
            // SAFETY: the share was mapped just now, and there are no references to it.
            let _ = unsafe { memory::free(address, mapped) };
            return Err(Status::InvalidArgument);
        }
        let (thread, bits) = (ThreadId::from_raw(attachment.thread), attachment.bits);
        *place = Some(Client { thread, bits, shared: open() });
        Ok(())
    }
}
