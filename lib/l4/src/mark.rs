//! Marks for the counting plugin (docs/src/measuring.md): NOPs that the plugin recognises.

use core::arch::asm;

/// Makes the plugin begin to count a region.
#[inline(always)]
pub fn begin() {
    // SAFETY: the instruction does nothing.
    unsafe { asm!(".byte 0x0f, 0x1f, 0x80, 0x00, 0x01, 0x4c, 0x4d", options(nostack, preserves_flags)) }
}

/// Makes the plugin end the region. Afterwards the program prints the region's name as a line of
/// JSON.
#[inline(always)]
pub fn end() {
    // SAFETY: the instruction does nothing.
    unsafe { asm!(".byte 0x0f, 0x1f, 0x80, 0x00, 0x02, 0x4c, 0x4d", options(nostack, preserves_flags)) }
}

/// Makes the plugin stop counting until [`go_on`].
#[inline(always)]
pub fn pause() {
    // SAFETY: the instruction does nothing.
    unsafe { asm!(".byte 0x0f, 0x1f, 0x80, 0x00, 0x03, 0x4c, 0x4d", options(nostack, preserves_flags)) }
}

/// Makes the plugin count again after [`pause`].
#[inline(always)]
pub fn go_on() {
    // SAFETY: the instruction does nothing.
    unsafe { asm!(".byte 0x0f, 0x1f, 0x80, 0x00, 0x04, 0x4c, 0x4d", options(nostack, preserves_flags)) }
}
