//! What an attempt to do a call without the thread's task leaves for the same call when the task
//! serves it.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use mach::Machine;
use unix::file::OpenFile;
use unix::memory::UserRanges;
use unix::sync::SpinLock;

/// The decoded arguments of a transfer, which are looked up only once, however often the call is
/// tried. What an attempt has moved is no longer in the buffer, so the task moves the rest.
pub(crate) struct Transfer<M: Machine> {
    pub(crate) file: Arc<OpenFile>,
    pub(crate) buffer: UserRanges<M>,
}

/// A call that is done, except that its results have to be copied to the program's memory.
pub(crate) struct Answer {
    /// Address and bytes of each part.
    pub(crate) parts: Vec<(u64, Vec<u8>)>,
    /// What the call returns.
    pub(crate) value: u64,
}

/// What an attempt leaves.
pub(crate) enum Left<M: Machine> {
    Transfer(Transfer<M>),
    Answer(Answer),
}

/// A place for what an attempt to do a thread's call leaves. Each attempt that does not complete
/// its call replaces it (with nothing, if it has nothing to leave), and any other event of the
/// thread clears it. So no call ever finds what an earlier one has left.
pub(crate) struct Decoded<M: Machine>(SpinLock<Option<Box<Left<M>>>>);

impl<M: Machine> Default for Decoded<M> {
    fn default() -> Self {
        Self(SpinLock::new(None))
    }
}

impl<M: Machine> Decoded<M> {
    /// Drops what an earlier call has left.
    pub(crate) fn clear(&self) {
        self.leave(None);
    }

    /// Leaves this, or nothing, for the call when it is served.
    pub(crate) fn leave(&self, left: Option<Left<M>>) {
        let left = left.map(Box::new);
        // The old value is dropped after the lock is released.
        let _old = core::mem::replace(&mut *self.0.lock(), left);
    }

    /// Takes the transfer that was left, if it is one.
    pub(crate) fn take_transfer(&self) -> Option<Transfer<M>> {
        match self.0.lock().take().map(|left| *left) {
            Some(Left::Transfer(transfer)) => Some(transfer),
            _ => None,
        }
    }

    /// Takes the answer that was left, if it is one. A transfer stays.
    pub(crate) fn take_answer(&self) -> Option<Answer> {
        let taken = self.0.lock().take_if(|left| matches!(**left, Left::Answer(_)));
        match taken.map(|left| *left) {
            Some(Left::Answer(answer)) => Some(answer),
            _ => None,
        }
    }
}
