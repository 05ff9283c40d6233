//! Where a thread is: its own instruction pointer and the return addresses on its stack. Every
//! native program is compiled with frame pointers, and the chain of a thread that root or the
//! kernel has started ends with 0.

use core::arch::asm;

/// No function's frame is larger: a pointer that leads further away is none of a frame.
const LARGEST_FRAME: u64 = 2 << 20;

/// The frames of the calling thread, the innermost first.
#[derive(Clone, Copy, Debug)]
pub struct Frames {
    /// Address of the next frame: the word there is the caller's frame pointer, the next one the
    /// return address.
    frame: u64,
    /// The address of the frame that the iterator returns next.
    address: u64,
}

/// The frames from here on.
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
            // SAFETY: the chain of frame pointers is this thread's, so the two words lie in its
            // stack; should the stack have been overwritten, the load may fault, which ends a
            // server that is about to end.
            let [caller, back] = unsafe { (frame as *const [u64; 2]).read_volatile() };
            self.address = back;
            let is_outer = caller > frame && caller - frame <= LARGEST_FRAME;
            self.frame = if is_outer { caller } else { 0 };
        }
        Some(address)
    }
}
