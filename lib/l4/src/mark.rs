//! Marks for the plugin that counts (docs, "Measuring"): NOPs that it knows, and that mean nothing
//! otherwise.

use core::arch::asm;

/// Begins what the plugin counts.
#[inline(always)]
pub fn begin() {
    // SAFETY: the instruction does nothing.
    unsafe { asm!(".byte 0x0f, 0x1f, 0x80, 0x00, 0x01, 0x4c, 0x4d", options(nostack, preserves_flags)) }
}

/// Ends what the plugin counts. The program then names it by a line of JSON.
#[inline(always)]
pub fn end() {
    // SAFETY: the instruction does nothing.
    unsafe { asm!(".byte 0x0f, 0x1f, 0x80, 0x00, 0x02, 0x4c, 0x4d", options(nostack, preserves_flags)) }
}

/// Pauses the count: nothing counts until [`go_on`].
#[inline(always)]
pub fn pause() {
    // SAFETY: the instruction does nothing.
    unsafe { asm!(".byte 0x0f, 0x1f, 0x80, 0x00, 0x03, 0x4c, 0x4d", options(nostack, preserves_flags)) }
}

/// The plugin counts again.
#[inline(always)]
pub fn go_on() {
    // SAFETY: the instruction does nothing.
    unsafe { asm!(".byte 0x0f, 0x1f, 0x80, 0x00, 0x04, 0x4c, 0x4d", options(nostack, preserves_flags)) }
}
