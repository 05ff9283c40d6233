//! The bits that a thread has: facts about it ([`flag`]), facts that any processor may note
//! ([`mark`]), and what it attends to before it returns to user level ([`pending`]).

use core::sync::atomic::{AtomicU8, Ordering};

use super::Tcb;
use crate::sync::SEVERAL;

/// Facts about a thread that are neither its continuation nor a register. Written where the thread
/// is located.
pub mod flag {
    /// Does not run at user level until ExchangeRegisters resumes it (X.2 rule 5.30). Its IPC goes
    /// on.
    pub const HALTED: u8 = 1 << 0;
    /// The pending send is propagated: its originator is `virtual_sender`.
    pub const PROPAGATED: u8 = 1 << 1;
    /// The thread's send has found the receiver not waiting, where that is located: the thread now
    /// goes to wait at the receiver's home.
    pub const WAITS_AT_HOME: u8 = 1 << 2;
    /// The thread's propagated send has set out for where the originator is located. Threads that
    /// have met it there read this.
    pub const SAW_ORIGINATOR: u8 = 1 << 5;
    /// The propagated send need not look for its originator any more: it has been at the
    /// originator, or at the originator's home processor.
    pub const SAW_ITS_HOME: u8 = 1 << 7;
    /// Some thread in the queue of senders may be propagating: a closed receive must look through
    /// the queue.
    pub const PROPAGATED_SENDERS: u8 = 1 << 4;
    /// The owner wants a full exception message at the next user boundary (K15).
    pub const RECALLED: u8 = 1 << 3;
    /// The pending send goes to a redirector instead of `partner` (X.2 rule 6.8).
    pub const REDIRECTED: u8 = 1 << 6;
}

/// Facts about a thread that any processor may note.
pub mod mark {
    /// Another thread may hold this one's id, as the partner of a closed receive or as its
    /// scheduler: when the id ends, such threads must be looked for. Set for ever.
    pub const NAMED: u8 = 1 << 0;
    /// The thread is or was the handler of an interrupt.
    pub const HANDLES_INTERRUPTS: u8 = 1 << 1;
}

/// What a thread has to attend to before it returns to user level.
pub mod pending {
    /// The thread's total quantum is used up: it tells its scheduler and stops (X.2 rule 3.19).
    pub const OUT_OF_QUANTUM: u8 = 1 << 0;
    /// The total quantum is used up, and the thread has told its scheduler: it waits for a new one.
    pub const STOPPED: u8 = 1 << 1;
    /// The thread has lost the processor, and tells its exception handler (X.2 rule 4.9).
    pub const PREEMPTED: u8 = 1 << 2;
}

impl Tcb {
    /// Whether a [`flag`] is set.
    #[inline]
    pub fn has(&self, flag: u8) -> bool {
        self.flags.get() & flag != 0
    }

    /// Sets or clears a [`flag`].
    #[inline]
    pub fn set_flag(&self, flag: u8, value: bool) {
        if flag & (flag::HALTED | flag::RECALLED) != 0 {
            self.withdraw_offer();
        }
        self.flags.set(if value { self.flags.get() | flag } else { self.flags.get() & !flag });
    }

    /// Clears a [`flag`], and says whether it was set.
    pub fn take_flag(&self, flag: u8) -> bool {
        let found = self.has(flag);
        if found {
            self.set_flag(flag, false);
        }
        found
    }

    /// Notes a [`mark`].
    #[inline]
    pub fn mark(&self, mark: u8) {
        // Relaxed: a processor that acts on it has an order with the thread's own processor. Most
        // often it is set already.
        let marks = self.marks_with(mark);
        if !SEVERAL {
            marks.store(marks.load(Ordering::Relaxed) | mark, Ordering::Relaxed);
        } else if marks.load(Ordering::Relaxed) & mark == 0 {
            marks.fetch_or(mark, Ordering::Relaxed);
        }
    }

    #[inline]
    fn marks_with(&self, mark: u8) -> &AtomicU8 {
        if mark == mark::NAMED { &self.named } else { &self.marks }
    }

    /// Whether a [`mark`] was noted.
    #[inline]
    pub fn is_marked(&self, mark: u8) -> bool {
        self.marks_with(mark).load(Ordering::Relaxed) & mark != 0
    }

    /// Whether one of these [`pending`] bits is set.
    #[inline]
    pub fn is_pending(&self, what: u8) -> bool {
        self.pending.get() & what != 0
    }

    /// Sets or clears these [`pending`] bits.
    pub fn set_pending(&self, what: u8, value: bool) {
        self.pending.set(if value { self.pending.get() | what } else { self.pending.get() & !what });
    }
}
