//! What a thread's program sets in its UTCB for the kernel: the threads that its faults and
//! exceptions are reported to, and its preemption flags.

use core::cell::Cell;

use x2::{ThreadId, utcb};

use super::Tcb;
use crate::space::Space;

impl Tcb {
    /// The program's preemption flags ([`utcb::preempt_flags`]) now.
    pub fn preempt_flags(&self) -> u8 {
        self.utcb.get().map_or(0, |block| block.read(utcb::FLAGS) as u8)
    }

    /// Sets some of the program's preemption flags.
    pub fn add_preempt_flags(&self, flags: u8) {
        self.utcb.get().inspect(|block| block.write(utcb::FLAGS, block.read(utcb::FLAGS) | u64::from(flags)));
    }

    /// Clears some of the program's preemption flags.
    pub fn clear_preempt_flags(&self, flags: u8) {
        self.utcb
            .get()
            .inspect(|block| block.write(utcb::FLAGS, block.read(utcb::FLAGS) & !u64::from(flags)));
    }

    /// The thread that page faults are reported to. In an owned space the program cannot choose it
    /// (K13).
    pub fn pager(&self) -> ThreadId {
        self.kernel_copy(&self.owned_pager, utcb::PAGER)
    }

    /// The thread that exceptions and foreign system calls are reported to.
    pub fn exception_handler(&self) -> ThreadId {
        self.kernel_copy(&self.owned_exception_handler, utcb::EXCEPTION_HANDLER)
    }

    fn kernel_copy(&self, copy: &Cell<ThreadId>, word: isize) -> ThreadId {
        if self.space.get().is_some_and(Space::is_owned) {
            return copy.get();
        }
        self.utcb.get().map_or(ThreadId::NIL, |block| block.read_id(word))
    }

    /// Sets the pager: the kernel's copy and the program's word.
    pub fn set_pager(&self, pager: ThreadId) {
        self.owned_pager.set(pager);
        if let Some(block) = self.utcb.get() {
            block.write(utcb::PAGER, pager.raw());
        }
    }

    /// Sets the exception handler: the kernel's copy and the program's word.
    pub fn set_exception_handler(&self, handler: ThreadId) {
        self.owned_exception_handler.set(handler);
        if let Some(block) = self.utcb.get() {
            block.write(utcb::EXCEPTION_HANDLER, handler.raw());
        }
    }
}
