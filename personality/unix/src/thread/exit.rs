//! The end of a thread with its resources.

use super::Resources;
use crate::descriptor::DescriptorTable;
use crate::process::ExitStatus;
use crate::vfs::Directories;
use alloc::sync::Arc;
use core::future::Future;
use mach::Machine;

impl<M: Machine> Resources<M> {
    /// Ends the thread, which is in the server and will not return to its program: wakes the
    /// threads that wait for its end, and closes its files if no other thread shares them. Its
    /// directories are left.
    /// `leaving` is what its front end has to do before that in the program's memory. This future
    /// must not be dropped before it completes. The underlying thread ends with the last reference
    /// to this one.
    pub async fn exit(&self, status: ExitStatus, leaving: impl Future<Output = ()>) {
        let system = self.system.clone();
        let tid = self.tid();
        leaving.await;
        let is_last = system.processes().with(|table| {
            table.process_of(tid).is_ok_and(|process| process.is_ending() || process.thread_count() == 1)
        });
        if is_last {
            system.expect_end(self.memory());
        }
        // Close the files before the parent learns of the end, so that the reader of a pipe sees
        // the end of the pipe before.
        if let Ok(empty) = DescriptorTable::new().copy() {
            let descriptors = core::mem::replace(&mut self.inner.lock().descriptors, Arc::new(empty));
            drop(descriptors);
        }
        // So is the working directory left, so that its file system can be unmounted after a wait.
        let root = Arc::new(Directories::new(&system.vfs().tree));
        let directories = core::mem::replace(&mut self.inner.lock().directories, root);
        drop(directories);
        let namespaces = self.namespaces();
        let ended = system.processes().with(|table| table.exit_thread(tid, status));
        system.life.threads.lock().remove(tid, |thread| core::ptr::eq::<Self>(&**thread, self));
        if let Some(pid) = ended.ended_process {
            let now = system.environment().realtime().seconds;
            namespaces.objects.system_v.semaphores.process_ended(pid.number(), now);
            system.timers().delete_all(system.processes(), pid, true);
        }
        if let Some(session) = ended.ended_session {
            let terminal = system.files.set_terminal(session, None);
            if let Some(terminal) = terminal {
                terminal.leader_ended();
            }
        }
        system.log_reports();
    }
}
