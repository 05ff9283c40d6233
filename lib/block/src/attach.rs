//! How a client finds the driver of a block device and shares memory with it.

use crate::area::{self, Area, SIZE};
use crate::description::Description;
use alloc::vec::Vec;
use direct::Error;
use interfaces::block;
use l4::direct::Direct;
use l4::extension;
use l4::x2::ThreadId;
use rt::root::{Status, names, pool, share};

/// What a client has of a driver.
#[derive(Debug)]
pub struct Attached {
    /// The thread to which the driver's notifications go.
    pub driver: ThreadId,
    /// The shared memory, which is zero.
    pub area: &'static Area,
    /// What the device is and can do.
    pub description: Description,
    /// The serial number of the device, without zeros at its end.
    pub identity: Vec<u8>,
}

/// A region of the client's memory that is a pool: its address and its size in bytes.
pub type PoolRegion = (u64, u64);

/// Attaches to the driver that is the server `name`. The shared memory of 32 KiB is mapped at
/// `address`, a multiple of 4096. `thread`, a thread of this server, is notified by `bits` when
/// there are answers. The pools get the numbers 0, 1 and so on. Blocks until the driver has
/// answered; with `wait` also until it has registered. Overwrites the message registers.
///
/// # Errors
/// `NotFound`: there is no such server, it has not registered or has ended, or it does not drive a
/// block device. `InUse`: another server has it. Otherwise root's status for the shared memory and
/// the pools, or the driver's for the device.
pub fn attach(
    name: &str,
    wait: bool,
    address: u64,
    thread: ThreadId,
    bits: u64,
    pools: &[PoolRegion],
) -> Result<Attached, Status> {
    let driver = if wait { names::lookup_wait(name)? } else { names::lookup(name)? };
    let share = share::create(address, SIZE, driver)?;
    let mut transport = Direct::default();
    let mut device = block::Client { transport: &mut transport, to: driver };
    device.block_attach(share.word(), thread.raw(), bits).map_err(status)?;
    for (number, &(address, size)) in (0..).zip(pools) {
        let pool = pool::create(address, size, driver)?;
        let mut device = block::Client { transport: &mut transport, to: driver };
        if device.block_pool(pool.word(), size).map_err(status)? != number {
            return Err(Status::NotFound);
        }
    }
    let mut device = block::Client { transport: &mut transport, to: driver };
    let (sectors, logical, physical, abilities, discard, geometry, identity) =
        device.block_describe().map_err(status)?;
    let words = [sectors, logical, physical, abilities, discard, geometry];
    let description = Description::from_words(words).ok_or(Status::NotFound)?;
    let end = identity.iter().position(|&byte| byte == 0).unwrap_or(identity.len());
    let identity = identity[..end].to_vec();
    #[allow(unsafe_code, reason = "the shared memory is root's, not a Rust object")]
    // SAFETY: root has mapped the memory there for these two servers, as long as this one lives.
    let area = unsafe { area::at(address) };
    Ok(Attached { driver, area, description, identity })
}

fn status(error: Error) -> Status {
    match error {
        Error::Status(refused) => refused.into(),
        Error::Ipc(_) | Error::Malformed => Status::NotFound,
    }
}

/// Whether the driver has ended.
pub fn has_ended(driver: ThreadId) -> bool {
    extension::notify(driver, 0).is_err()
}

/// Notifies the driver that there are requests.
pub fn notify(driver: ThreadId) {
    // An error needs no action: the driver has ended, which its client finds out by `has_ended`.
    let _ = extension::notify(driver, crate::WORK);
}
