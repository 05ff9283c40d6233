//! The memory that the driver and the client of a port share.

use core::sync::atomic::{AtomicU32, Ordering};
use ring::Ring;

/// The size in bytes of each ring.
pub const RING: usize = 65536;

/// The structure of the shared memory.
#[repr(C)]
#[derive(Debug)]
pub struct Area {
    /// The ring from client to driver. Bytes stay in it until the device has passed them on.
    pub output: Ring<RING>,
    /// The ring from driver to client.
    pub input: Ring<RING>,
    /// The state of the host's end, as [`Host`] encodes it.
    host: AtomicU32,
}

/// The size in bytes of the memory that root shares for an area.
pub const SIZE: u64 = 256 << 10;

const _: () = assert!(size_of::<Area>() <= SIZE as usize);

/// The state of the host's end of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Host {
    /// The host has not opened its end yet.
    #[default]
    Absent,
    /// The host has opened its end.
    Open,
    /// The host has closed its end: no more input comes, and output has no reader.
    Closed,
}

impl Area {
    /// The state of the host's end.
    pub fn host(&self) -> Host {
        match self.host.load(Ordering::SeqCst) {
            0 => Host::Absent,
            1 => Host::Open,
            _ => Host::Closed,
        }
    }

    /// Tells the client the state of the host's end. `Closed` must be told after all input that
    /// came before is in its ring.
    pub fn set_host(&self, host: Host) {
        self.host.store(host as u32, Ordering::SeqCst);
    }
}

/// The area in memory that root shares between client and driver.
///
/// # Safety
/// At `address`, a multiple of 4096, there must be [`SIZE`] bytes of memory that stay mapped and
/// that programs use only as an area. All fields are atomic, and every content is valid, so the
/// other side need not be trusted.
#[allow(unsafe_code, reason = "the memory is root's, not a Rust object")]
pub unsafe fn at(address: u64) -> &'static Area {
    // SAFETY: the caller of this function promises that the area is mapped there.
    unsafe { &*(address as *const Area) }
}
