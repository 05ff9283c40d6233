//! The client's side of the way to a driver: how a client finds the driver and shares memory with
//! it, and does so again when the driver has ended and another one was started in its place.

use crate::WORK;
use core::sync::atomic::{AtomicU64, Ordering};
use direct::Error;
use l4::extension;
use l4::x2::ThreadId;
use rt::root::share::{self, Share};
use rt::root::{Status, names};

/// A connection to a driver.
#[derive(Debug)]
pub struct Connection {
    share: Share,
    /// The id of the driver's thread.
    driver: AtomicU64,
}

impl Connection {
    /// Finds the driver that is the server `name`, and shares `size` bytes with it, which are
    /// mapped at `address`, a multiple of 4096. `attach` makes the driver's request to attach a
    /// client, of the driver's thread and the share's number. Returns the driver's answer, too.
    /// Blocks until the driver has registered and has answered.
    ///
    /// # Errors
    /// `NotFound`: there is no such server, it has ended for good, or it is no driver of this kind.
    /// `InvalidArgument`, `QuotaExceeded`, `NoMemory`: root's status for the shared memory.
    /// Otherwise the driver's.
    pub fn open<T>(
        name: &str,
        address: u64,
        size: u64,
        attach: impl FnOnce(ThreadId, u64) -> Result<T, Error>,
    ) -> Result<(Connection, T), Status> {
        let driver = names::lookup_wait(name)?;
        let share = share::create(address, size, driver)?;
        let answer = attach(driver, share.word()).map_err(status)?;
        Ok((Connection { share, driver: AtomicU64::new(driver.raw()) }, answer))
    }

    /// Shares the memory with the driver that was started as the server `name` after the last one
    /// had ended. What is in the memory stays. Blocks until the driver has answered `attach`.
    ///
    /// # Errors
    /// `NotFound`: the driver has not registered yet, or has ended again. `InUse`: the last one has
    /// not ended. Otherwise as for [`open`](Self::open).
    pub fn open_again<T>(
        &self,
        name: &str,
        attach: impl FnOnce(ThreadId, u64) -> Result<T, Error>,
    ) -> Result<T, Status> {
        let driver = names::lookup(name)?;
        share::renew(self.share, driver)?;
        let answer = attach(driver, self.share.word()).map_err(status)?;
        // Relaxed ordering: the id is all that there is to know.
        self.driver.store(driver.raw(), Ordering::Relaxed);
        // For what was left when the last driver ended, this one gets no other notification.
        self.notify();
        Ok(answer)
    }

    /// The thread of the driver.
    fn driver(&self) -> ThreadId {
        ThreadId::from_raw(self.driver.load(Ordering::Relaxed))
    }

    /// Notifies the driver that there is work. This fails only if the driver has ended, which
    /// [`has_ended`](Self::has_ended) tells.
    pub fn notify(&self) {
        let _ = extension::notify(self.driver(), WORK);
    }

    /// Whether the driver has ended.
    pub fn has_ended(&self) -> bool {
        extension::notify(self.driver(), 0).is_err()
    }
}

/// Why a driver's request has failed.
fn status(error: Error) -> Status {
    match error {
        Error::Status(refused) => refused.into(),
        Error::Ipc(_) | Error::Malformed => Status::NotFound,
    }
}
