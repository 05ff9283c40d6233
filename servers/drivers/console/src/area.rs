//! The memory that driver and client share.

use core::sync::atomic::AtomicU32;
use ring::Ring;

/// Bytes on their way to the serial port.
pub const OUTPUT: usize = 8192;
/// Bytes that have come from the serial port.
pub const INPUT: usize = 4096;

/// The shared memory.
#[repr(C)]
#[derive(Debug)]
pub struct Area {
    /// From client to driver.
    pub output: Ring<OUTPUT>,
    /// From driver to client.
    pub input: Ring<INPUT>,
    /// Bytes of input that were lost because the program had not taken those before.
    pub lost: AtomicU32,
}

/// How much memory an area takes, as root gives it.
pub const SIZE: u64 = 16 << 10;

const _: () = assert!(size_of::<Area>() <= SIZE as usize);

/// Notification to the driver: there is output, or room for input.
pub const WORK: u64 = 1;

/// The area in memory that root shares between the two.
///
/// # Safety
/// At `address`, a multiple of 4096, are [`SIZE`] bytes of memory that stay there and that programs
/// use as an area only. All of it is atomic, and every content is valid: the other side need not be
/// trusted.
#[allow(unsafe_code, reason = "the memory is root's, not a Rust object")]
pub unsafe fn at(address: u64) -> &'static Area {
    // SAFETY: the caller of this function promises that the area is mapped there.
    unsafe { &*(address as *const Area) }
}
