//! The end of tracers and of tracees.

use super::Tracer;
use crate::process::records::ExitStatus;
use crate::process::table::Table;
use crate::process::{Pid, Process};
use crate::signal::{ChildEvent, Disposition, Signal, SignalInformation};
use alloc::vec::Vec;

impl Table {
    /// Tells process `tracer` that its tracee `tid` has stopped or ended.
    pub(super) fn tell_process(&mut self, tracer: Pid, tid: Pid, event: ChildEvent) {
        let wanted = self.processes.get(&tracer).is_some_and(|process| {
            let action = process.actions.lock().get(Signal::CHLD);
            let is_end = !matches!(event, ChildEvent::Traced { .. });
            action.disposition != Disposition::Ignore && (is_end || !action.flags.no_child_stop)
        });
        if wanted {
            let pid = self.thread(tid).map_or(tid, |thread| thread.pid);
            let mut information = self.child_information(Signal::CHLD, pid, event);
            if let crate::signal::Cause::Child { process, .. } = &mut information.cause {
                *process = tid.number();
            }
            self.generate_for_process(tracer, information);
        }
        self.wake_child_waiters(tracer);
    }

    /// To be called when thread `tid` of process `pid` has been removed because it ended, with what
    /// was recorded of it as a tracee: its tracer learns that. The end of a first thread is
    /// reported when its process ends.
    pub(in crate::process) fn tracee_ended(
        &mut self,
        tid: Pid,
        pid: Pid,
        tracer: Tracer,
        status: ExitStatus,
    ) {
        if tid == pid {
            let is_child = self.processes.get(&pid).and_then(|p| p.state.parent) == Some(tracer.process);
            if let Some(process) = self.processes.get_mut(&pid).filter(|_| !is_child) {
                process.tracer = Some(tracer);
                return;
            }
            if let Some(process) = self.processes.get_mut(&tracer.process) {
                process.tracees.remove(&tid);
            }
            return;
        }
        let Some(process) = self.processes.get_mut(&tracer.process) else { return };
        process.tracees.remove(&tid);
        process.ended_tracees.insert(tid, status);
        self.held_ids.insert(tid);
        self.tell_process(tracer.process, tid, status.event());
    }

    /// Whether the parent of zombie `pid` has to wait: for its tracer, which this tells, or for the
    /// end of other processes of its namespace.
    pub(in crate::process) fn zombie_is_held(&mut self, pid: Pid, event: ChildEvent) -> bool {
        let Some(tracer) = self.processes.get(&pid).and_then(|process| process.tracer) else {
            return self.waits_for_namespace(pid);
        };
        self.tell_process(tracer.process, pid, event);
        true
    }

    /// Lets the parent of zombie `pid` learn of its end, after the tracer has.
    pub(super) fn give_zombie_back(&mut self, pid: Pid) {
        let tracer = self.processes.get_mut(&pid).and_then(|process| process.tracer.take());
        if let Some(process) = tracer.and_then(|tracer| self.processes.get_mut(&tracer.process)) {
            process.tracees.remove(&pid);
        }
        let is_held = self.waits_for_namespace(pid);
        self.change_state(pid, |state| state.is_held = is_held);
        if self.processes.get(&pid).is_some_and(Process::is_zombie) {
            self.notify_parent_of_exit(pid);
        }
    }

    /// Ends all tracing by thread `tid` of process `pid`, because the thread ends. The tracees go
    /// on, or are killed if the tracer has asked for that.
    pub(in crate::process) fn tracer_ended(&mut self, tid: Pid, pid: Pid) {
        let Some(process) = self.processes.get(&pid) else { return };
        let is_last = process.threads.is_empty();
        let tracees: Vec<Pid> = process.tracees.iter().copied().collect();
        for tracee in tracees {
            match self.tracing(tracee) {
                Some(tracing) if tracing.tracer.thread != tid => {}
                Some(tracing) => {
                    let kills = tracing.options.kills_at_exit;
                    self.forget_tracing(tracee);
                    if kills {
                        self.generate_for_thread(tracee, SignalInformation::system(Signal::KILL));
                    }
                }
                None => {
                    let tracer = self.processes.get(&tracee).and_then(|process| process.tracer);
                    if tracer.is_some_and(|tracer| tracer.thread == tid) {
                        self.give_zombie_back(tracee);
                    }
                }
            }
        }
        if is_last {
            let ended = self.processes.get_mut(&pid).map(|p| core::mem::take(&mut p.ended_tracees));
            for tracee in ended.unwrap_or_default().into_keys() {
                self.held_ids.remove(&tracee);
                self.release_id(tracee);
            }
        }
    }

    /// Records that thread `old` has the id `new` now, because it executes a program: as a tracer
    /// and as a tracee.
    pub(in crate::process) fn traced_id_changed(&mut self, old: Pid, new: Pid) {
        if let Some(tracer) = self.tracing(new).map(|tracing| tracing.tracer.process)
            && let Some(process) = self.processes.get_mut(&tracer)
        {
            process.tracees.remove(&old);
            process.tracees.insert(new);
        }
        let tracees: Vec<Pid> =
            self.processes.get(&new).map_or(Vec::new(), |process| process.tracees.iter().copied().collect());
        for tracee in tracees {
            if let Some(tracing) = self.tracing_mut(tracee)
                && tracing.tracer.thread == old
            {
                tracing.tracer.thread = new;
            }
        }
    }
}
