//! The end of a thread with its resources.

use super::Resources;
use crate::descriptor::DescriptorTable;
use crate::futex::{Futexes, RobustList};
use crate::memory::MemoryWords;
use crate::process::ExitStatus;
use alloc::sync::Arc;
use mach::Machine;

impl<M: Machine> Resources<M> {
    /// Ends the thread, which is in its server and will not return to its program: releases its
    /// locks, tells those that wait for its end, closes its files if no other thread shares them.
    /// This future must run to completion. The thread of the machine ends with the last reference
    /// to it.
    pub async fn exit(&self, status: ExitStatus) {
        let system = self.system.clone();
        let tid = self.tid();
        let _ = crate::process::race(self.leave_memory(), self.memory_is_expected()).await;
        let is_last = system.processes().with(|table| {
            table.process_of(tid).is_ok_and(|process| process.is_ending() || process.thread_count() == 1)
        });
        if is_last {
            system.expect_end(self.memory());
        }
        system.futexes().owner_ended(tid.number()).await;
        // Files are closed before the parent is told of the end. So the reader of a pipe sees the
        // pipe's end before that.
        if let Ok(empty) = DescriptorTable::new().copy() {
            let descriptors = core::mem::replace(&mut self.inner.lock().descriptors, Arc::new(empty));
            drop(descriptors);
        }
        let ended = system.processes().with(|table| table.exit_thread(tid, status));
        system.life.threads.lock().remove(tid, |thread| core::ptr::eq::<Self>(&**thread, self));
        if let Some(pid) = ended.ended_process {
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

    /// What a thread does when it leaves its address space, at its end or at exec: robust locks,
    /// and the word that is cleared.
    pub(super) async fn leave_memory(&self) {
        let tid = self.tid();
        let memory = self.memory();
        let words = MemoryWords(memory);
        let (robust, clear) = self.system.processes().with(|table| {
            table.thread(tid).map_or((0, 0), |thread| (thread.robust_list, thread.clear_child_tid))
        });
        if robust != 0 {
            RobustList { head: robust }.release(self.system.futexes(), &words, tid.number()).await;
        }
        if clear != 0 && memory.copy_out(clear, &0u32.to_le_bytes()).await.is_ok() {
            let _ = self.system.futexes().wake(&words, clear, true, 1, Futexes::ANY).await;
        }
    }
}
