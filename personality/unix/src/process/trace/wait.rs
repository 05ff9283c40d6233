//! Waiting for tracees, in addition to children.

use super::Tracing;
use crate::process::records::Phase;
use crate::process::table::Table;
use crate::process::wait::{ChildReport, WaitFor, WaitOptions};
use crate::process::{Pid, Usage};
use crate::signal::ChildEvent;
use crate::{Error, Result};

impl Table {
    /// The next report of a tracee or child of the process of thread `tid` that `which` and
    /// `options` allow; `None` if there is none now. `ECHILD` if there is nothing to wait for.
    pub fn wait_change(
        &mut self,
        tid: Pid,
        which: WaitFor,
        options: WaitOptions,
    ) -> Result<Option<ChildReport>> {
        let parent = self.thread(tid)?.pid;
        if self.process(parent)?.tracees.is_empty() && self.process(parent)?.ended_tracees.is_empty() {
            return self.wait_child(parent, which, options);
        }
        if let Some(report) = self.tracee_report(tid, parent, which, options) {
            return Ok(Some(report));
        }
        match self.wait_child(parent, which, options) {
            Err(Error::ECHILD) if self.has_tracee(tid, parent, which, options) => Ok(None),
            done => done,
        }
    }

    /// Whether tracee `tracee` is one for which a call of wait waits.
    fn waits_for(&self, caller: Pid, tracee: Pid, which: WaitFor, options: WaitOptions) -> bool {
        let process = match self.thread(tracee) {
            Ok(thread) => self.process(thread.pid),
            Err(_) => self.process(tracee),
        };
        let tracer = match (self.tracing(tracee), &process) {
            (Some(tracing), _) => Some(tracing.tracer.thread),
            (None, Ok(process)) => process.tracer.map(|tracer| tracer.thread),
            (None, Err(_)) => None,
        };
        let chosen = match which {
            WaitFor::Any => true,
            WaitFor::Process(pid) => pid == tracee,
            WaitFor::Group(group) => process.is_ok_and(|process| process.state.group == group),
        };
        chosen && (!options.own_only || tracer.is_none_or(|tracer| tracer == caller))
    }

    fn has_tracee(&self, caller: Pid, parent: Pid, which: WaitFor, options: WaitOptions) -> bool {
        self.processes.get(&parent).is_some_and(|process| {
            let ended = process.ended_tracees.keys();
            process.tracees.iter().chain(ended).any(|tid| self.waits_for(caller, *tid, which, options))
        })
    }

    fn tracee_report(
        &mut self,
        caller: Pid,
        parent: Pid,
        which: WaitFor,
        options: WaitOptions,
    ) -> Option<ChildReport> {
        let process = self.processes.get(&parent)?;
        let wanted = |tid: &&Pid| self.waits_for(caller, **tid, which, options);
        let ended = process.ended_tracees.iter().find(|(tid, _)| wanted(tid));
        if let Some((tid, status)) = ended.filter(|_| options.ended) {
            let (pid, event, number) = (*tid, status.event(), self.number_for(parent, *tid));
            if !options.keep {
                self.processes.get_mut(&parent)?.ended_tracees.remove(&pid);
                self.held_ids.remove(&pid);
                self.release_id(pid);
            }
            return Some(ChildReport { pid, number, user: 0, event, usage: Usage::default() });
        }
        let found = process.tracees.iter().filter(wanted).find_map(|tid| {
            let event = match self.tracing(*tid) {
                Some(tracing) => self.stop_report(*tid, tracing),
                None => self.zombie_report(*tid).filter(|_| options.ended),
            };
            event.map(|event| (*tid, event))
        });
        let (tid, event) = found?;
        let number = self.number_for(parent, tid);
        let (user, usage) = match self.thread(tid) {
            Ok(thread) => (thread.credentials.user.real, thread.usage()),
            Err(_) => self.process(tid).map_or((0, Usage::default()), |process| {
                (process.credentials.user.real, self.usage(process))
            }),
        };
        if !options.keep {
            match self.tracing_mut(tid) {
                Some(tracing) => tracing.is_unreported = false,
                None => self.give_zombie_back(tid),
            }
        }
        Some(ChildReport { pid: tid, number, user, event, usage })
    }

    /// The stop of a tracee that wait has not reported yet.
    fn stop_report(&self, tid: Pid, tracing: &Tracing) -> Option<ChildEvent> {
        let stop = tracing.stop.filter(|_| tracing.is_unreported && self.is_in_trace_stop(tid))?;
        Some(tracing.report_of(stop, self.group_stop_of(tid)))
    }

    /// The end of a process that its tracer learns before its parent.
    fn zombie_report(&self, pid: Pid) -> Option<ChildEvent> {
        match self.processes.get(&pid)?.state.phase {
            Phase::Zombie(status) => Some(status.event()),
            _ => None,
        }
    }
}
