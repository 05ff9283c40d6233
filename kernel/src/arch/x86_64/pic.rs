//! The two old interrupt controllers (8259): moved away from the exceptions' vectors and closed for
//! good.
use super::instructions::out8;

const FIRST: u16 = 0x20;
const SECOND: u16 = 0xa0;

/// Closes all their lines. `vector` is where the first of their 16 vectors goes: spurious
/// interrupts can come from them even so.
pub(super) fn disable(vector: u8) {
    // SAFETY: the controllers belong to the kernel; this is their documented initialisation
    // (ICW1-ICW4, then the mask). A machine without them ignores it.
    unsafe {
        for (port, vector, wiring) in [(FIRST, vector, 4), (SECOND, vector + 8, 2)] {
            out8(port, 0x11);
            out8(port + 1, vector);
            out8(port + 1, wiring);
            out8(port + 1, 0x01);
            out8(port + 1, 0xff);
        }
    }
}
