//! What a system whose root lasts does at its start and at its end.

use super::{CallContext, End, System};
use crate::{Result, seed};
use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use mach::Machine;

impl<M: Machine> System<M> {
    /// Mixes the seed that the root file system keeps into the random source, and keeps another
    /// one, now and when the system ends. To be called before programs run.
    pub async fn load_seed(self: &Arc<Self>) {
        self.files.keeps_seed.store(true, Ordering::Relaxed);
        let context = CallContext::of_system(self);
        let log = |line: core::fmt::Arguments<'_>| self.host().log(line);
        seed::load(&context.caller(), &**self.environment(), &log).await;
    }

    /// Brings what programs have written to where it is kept (sync(2)).
    ///
    /// # Errors
    /// A file system could not write everything; all that can be was written. What a disk has
    /// refused is reported by fsync(2) to the programs that have written it.
    pub async fn synchronize(&self) -> Result<()> {
        let written = self.vfs().synchronize().await;
        let _ = self.vfs().disks.synchronize().await;
        written
    }

    /// Brings what programs have written to where it is kept, and unmounts all file systems, since
    /// the system ends. What cannot be written is lost; the log says so.
    pub async fn end_storage(self: &Arc<Self>) {
        if self.files.keeps_seed.swap(false, Ordering::Relaxed) {
            // If it cannot be kept, that of the start is there, which was not used.
            let _ = seed::keep(&CallContext::of_system(self).caller(), &**self.environment()).await;
        }
        let written = self.vfs().synchronize().await;
        if let Err(error) = written.and(self.vfs().end_file_systems().await) {
            self.host().log(format_args!("not all files could be written: {error:?}"));
        }
        // The errors of disks have been reported to the programs that have written there.
        let _ = self.vfs().disks.synchronize().await;
    }

    /// Ends the system: first its file systems, then the machine.
    ///
    /// # Errors
    /// `ENOSYS`: the machine cannot be ended.
    pub async fn end(self: &Arc<Self>, how: End) -> Result<()> {
        self.end_storage().await;
        self.host().end(how)
    }
}
