//! A block device as its client has it: the driver, and the memory shared with it.

use crate::area::{self, Area, SIZE};
use crate::client::Client;
use crate::description::Description;
use alloc::vec::Vec;
use direct::Error;
use driver::connection::Connection;
use interfaces::block;
use l4::direct::Direct;
use l4::x2::ThreadId;
use rt::root::{Status, pool};

/// A region of the client's memory that is a pool: its address and its size in bytes.
pub type PoolRegion = (u64, u64);

/// What the client gives to a driver.
#[derive(Debug)]
pub struct Attachment {
    /// The thread of this server that is notified when there are answers.
    pub thread: ThreadId,
    /// The bits by which it is notified.
    pub bits: u64,
    /// The pools, which get the numbers 0, 1 and so on.
    pub pools: Vec<PoolRegion>,
}

/// A block device.
#[derive(Debug)]
pub struct Device {
    connection: Connection,
    area: &'static Area,
    attachment: Attachment,
    description: Description,
    identity: Vec<u8>,
}

impl Device {
    /// Opens the device that the server `name` drives. The shared memory of 32 KiB is mapped at
    /// `address`, a multiple of 4096. Returns the client's half of the ring, too. Blocks until the
    /// driver has registered and has answered; overwrites the message registers.
    ///
    /// # Errors
    /// `NotFound`: there is no such server, it has ended for good, or it does not drive a block
    /// device. `InUse`: another server has it. Otherwise root's status for the shared memory and
    /// the pools, or the driver's for the device.
    pub fn open(
        name: &str,
        address: u64,
        attachment: Attachment,
    ) -> Result<(Device, Client<'static>), Status> {
        let attach = |driver, share| attach(driver, share, &attachment);
        let (connection, (description, identity)) = Connection::open(name, address, SIZE, attach)?;
        #[allow(unsafe_code, reason = "the shared memory is root's, not a Rust object")]
        // SAFETY: root has mapped the memory there for these two servers, as long as this one
        // lives.
        let area = unsafe { area::at(address) };
        Ok((Device { connection, area, attachment, description, identity }, Client::new(area)))
    }

    /// Connects with the driver that was started as the server `name` in place of one that has
    /// ended. Returns the area, without requests, for [`Client::restart`]; the client must have
    /// [detached](Client::detach) itself before. Blocks until the driver has answered; overwrites
    /// the message registers.
    ///
    /// # Errors
    /// Those of [`Connection::open_again`]; `Unsupported`: it is another device.
    pub fn open_again(&self, name: &str) -> Result<&'static Area, Status> {
        let (description, identity) = self.connection.open_again(name, |driver, share| {
            self.area.clear();
            attach(driver, share, &self.attachment)
        })?;
        // Another device has other contents.
        let is_same = (description, identity) == (self.description, self.identity.clone());
        if is_same { Ok(self.area) } else { Err(Status::Unsupported) }
    }

    /// What the device is and can do.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// The serial number of the device, without zeros at its end.
    pub fn identity(&self) -> &[u8] {
        &self.identity
    }

    /// Notifies the driver that there are requests.
    pub fn notify(&self) {
        self.connection.notify();
    }

    /// Whether the driver has ended.
    pub fn has_ended(&self) -> bool {
        self.connection.has_ended()
    }
}

/// The requests to attach a client with its pools. Returns what the device is.
fn attach(driver: ThreadId, share: u64, attachment: &Attachment) -> Result<(Description, Vec<u8>), Error> {
    let mut device = block::Client { transport: &mut Direct::default(), to: driver };
    device.block_attach(share, attachment.thread.raw(), attachment.bits)?;
    for (number, &(address, size)) in (0..).zip(&attachment.pools) {
        let pool = pool::create(address, size, driver).map_err(|status| Error::Status(status.into()))?;
        if device.block_pool(pool.word(), size)? != number {
            return Err(Error::Malformed);
        }
    }
    let (sectors, logical, physical, abilities, discard, geometry, identity) = device.block_describe()?;
    let words = [sectors, logical, physical, abilities, discard, geometry];
    let description = Description::from_words(words).ok_or(Error::Malformed)?;
    let end = identity.iter().position(|&byte| byte == 0).unwrap_or(identity.len());
    Ok((description, identity[..end].to_vec()))
}
