//! A backtrace of the calling thread: its own instruction pointer and the return addresses on its
//! stack. Every native program is compiled with frame pointers, and the chain of a thread that root
//! or the kernel has started ends with 0.

use core::arch::asm;

/// Upper bound of the size of a function's frame. A frame pointer that leads further is not valid.
const LARGEST_FRAME: u64 = 2 << 20;

/// The frames of the calling thread, the innermost first.
#[derive(Clone, Copy, Debug)]
pub struct Frames {
    /// The address of the next frame. The word there is the caller's frame pointer, the following
    /// word the return address.
    frame: u64,
    /// The address of the frame that the iterator returns next.
    address: u64,
}

/// The frames of the calling function and its callers.
#[inline(always)]
pub fn frames() -> Frames {
    let (frame, address);
    #[allow(unsafe_code, reason = "frame pointers are no Rust values")]
    // SAFETY: both instructions only read registers.
    unsafe {
        asm!("mov {}, rbp", "lea {}, [rip]", out(reg) frame, out(reg) address,
            options(nomem, nostack, preserves_flags));
    }
    Frames { frame, address }
}

impl Iterator for Frames {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let address = core::mem::take(&mut self.address);
        let frame = self.frame;
        if address == 0 {
            return None;
        }
        if frame != 0 && frame.is_multiple_of(8) {
            #[allow(unsafe_code, reason = "the stack's words are no Rust values")]
            // SAFETY: the frame pointers are those of this thread, so the two words lie in its
            // stack. If the stack has been overwritten the load may fault, which ends a server that
            // is ending anyway.
            let [caller, back] = unsafe { (frame as *const [u64; 2]).read_volatile() };
            self.address = back;
            let is_outer = caller > frame && caller - frame <= LARGEST_FRAME;
            self.frame = if is_outer { caller } else { 0 };
        }
        Some(address)
    }
}
