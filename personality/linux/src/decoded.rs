//! The decoded arguments of a read or write that was tried without blocking, kept for the same call
//! when it is served.

use alloc::boxed::Box;
use alloc::sync::Arc;
use mach::Machine;
use unix::file::OpenFile;
use unix::memory::UserRanges;
use unix::sync::SpinLock;

/// The decoded arguments of a read or write, which are looked up only once, however often the call
/// is tried.
pub(crate) struct Transfer<M: Machine> {
    pub(crate) file: Arc<OpenFile>,
    pub(crate) buffer: UserRanges<M>,
}

/// Decoded arguments of one thread's call: a read or write that was tried without blocking, and
/// would block, leaves them here. The same call takes them when it is served. Each attempt that
/// does not complete its call replaces them (with nothing, if the call is no read or write), and
/// any other event of the thread clears them. So no call ever finds the arguments of an earlier
/// one.
pub(crate) struct Decoded<M: Machine>(SpinLock<Option<Box<Transfer<M>>>>);

impl<M: Machine> Default for Decoded<M> {
    fn default() -> Self {
        Self(SpinLock::new(None))
    }
}

impl<M: Machine> Decoded<M> {
    /// Drops the arguments that an earlier call left.
    pub(crate) fn clear(&self) {
        // The old value is dropped after the lock is released.
        let _old = self.0.lock().take();
    }

    /// Leaves these arguments, or none, for the call when it is served.
    pub(crate) fn leave(&self, transfer: Option<Transfer<M>>) {
        let transfer = transfer.map(Box::new);
        // The old value is dropped after the lock is released.
        let _old = core::mem::replace(&mut *self.0.lock(), transfer);
    }

    /// Takes the arguments that were left, if there are any.
    pub(crate) fn take(&self) -> Option<Box<Transfer<M>>> {
        self.0.lock().take()
    }
}
