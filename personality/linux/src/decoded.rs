//! What a read or write that was tried without blocking leaves for the same call when it is served.

use alloc::boxed::Box;
use alloc::sync::Arc;
use mach::Machine;
use unix::file::OpenFile;
use unix::memory::UserRanges;
use unix::sync::SpinLock;

/// What a read or write needs: looked up once, however often it is tried.
pub(crate) struct Transfer<M: Machine> {
    pub(crate) file: Arc<OpenFile>,
    pub(crate) buffer: UserRanges<M>,
}

/// Where a read or write of one thread that was tried without blocking, and has to wait, leaves
/// what it has looked up. The same call takes it when it is served. Each attempt that does not end
/// its call replaces it, with nothing if it has nothing to leave; if another event comes first, it
/// is cleared. So nothing in it is ever older than the call.
pub(crate) struct Decoded<M: Machine>(SpinLock<Option<Box<Transfer<M>>>>);

impl<M: Machine> Default for Decoded<M> {
    fn default() -> Self {
        Self(SpinLock::new(None))
    }
}

impl<M: Machine> Decoded<M> {
    /// Drops what an earlier call left here.
    pub(crate) fn clear(&self) {
        // The old value is dropped after the lock is released.
        let _old = self.0.lock().take();
    }

    /// Leaves this, or nothing, for the call.
    pub(crate) fn leave(&self, transfer: Option<Transfer<M>>) {
        let transfer = transfer.map(Box::new);
        // The old value is dropped after the lock is released.
        let _old = core::mem::replace(&mut *self.0.lock(), transfer);
    }

    /// Takes what was left, if there is something.
    pub(crate) fn take(&self) -> Option<Box<Transfer<M>>> {
        self.0.lock().take()
    }
}
