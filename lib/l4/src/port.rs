//! Access to I/O ports, one instruction each.
//!
//! If the space does not have a port, the access raises a fault that is sent to the thread's pager
//! (X.2 rule 12.8).
use core::arch::asm;

macro_rules! port {
    ($read:ident, $write:ident, $type:ty, $register:tt, $bits:literal) => {
        #[doc = concat!("Reads ", $bits, " bits from the ports from `port` on.")]
        ///
        /// # Safety
        /// The device must allow the access, and must not change memory that Rust code relies on.
        pub unsafe fn $read(port: u16) -> $type {
            let value: $type;
            // SAFETY: the caller keeps this function's contract.
            unsafe {
                asm!(concat!("in ", $register, ", dx"), out($register) value, in("dx") port,
                    options(nostack, preserves_flags))
            };
            value
        }

        #[doc = concat!("Writes ", $bits, " bits to the ports from `port` on.")]
        ///
        /// # Safety
        /// The device must allow the access, and must not change memory that Rust code relies on.
        pub unsafe fn $write(port: u16, value: $type) {
            // SAFETY: the caller keeps this function's contract.
            unsafe {
                asm!(concat!("out dx, ", $register), in($register) value, in("dx") port,
                    options(nostack, preserves_flags))
            };
        }
    };
}

port!(read8, write8, u8, "al", "8");
port!(read16, write16, u16, "ax", "16");
port!(read32, write32, u32, "eax", "32");
