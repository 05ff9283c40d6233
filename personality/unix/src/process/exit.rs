//! The end of threads and processes (_exit(2), exit_group(2)), orphans, zombies.

use super::records::{ExitStatus, Phase, Stop};
use super::table::{Table, Wake};
use super::{Limit, Pid, Process, Resource};
use crate::signal::{Cause, ChildEvent, Disposition, Signal, SignalInformation};
use crate::{Error, Result};
use alloc::sync::Weak;
use alloc::vec::Vec;
#[cfg(any(test, feature = "testing"))]
use core::time::Duration;

/// The unit of a process's memory adjustment: 1000 of them are all memory.
pub const ADJUSTMENT_UNIT: i64 = 1000;

/// What the end of a thread means for its process and session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadExit {
    /// The process that has ended, if this was its last thread.
    pub ended_process: Option<Pid>,
    /// The session that has lost its leader, if the process led one: its controlling terminal has
    /// to be hung up.
    pub ended_session: Option<Pid>,
}

impl Table {
    /// Begins to end process `pid` with `status`, unless it is ending already: every thread of it
    /// then has to exit.
    pub fn begin_exit(&mut self, pid: Pid, status: ExitStatus) {
        if self.processes.get(&pid).is_some_and(|process| process.state.phase == Phase::Running) {
            self.change_state(pid, |state| {
                state.phase = Phase::Ending(status);
                state.stop = Stop::Running;
            });
            self.wake_all_threads(pid);
        }
    }

    /// Begins to end process `pid` because the OOM killer has chosen it. From now on its threads do
    /// not wait for memory, even if the process was ending already.
    pub fn end_for_memory(&mut self, pid: Pid) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.gives_memory = true;
        self.generate_for_process(pid, SignalInformation::system(Signal::KILL));
        // Wake all threads, even those that are ending and do not look for signals any more.
        self.wake_all_threads(pid);
    }

    /// Whether the OOM killer has chosen the process of thread `tid`.
    pub fn gives_memory(&self, tid: Pid) -> bool {
        self.process_of(tid).is_ok_and(|process| process.gives_memory)
    }

    /// Sets the process's memory adjustment: the higher it is, the sooner the OOM killer chooses
    /// the process. A value below the one that a privileged process has set needs privilege.
    /// `EACCES`, `EINVAL`, `ESRCH`.
    pub fn set_memory_adjustment(&mut self, pid: Pid, adjustment: i16, privileged: bool) -> Result<()> {
        if !(-ADJUSTMENT_UNIT..=ADJUSTMENT_UNIT).contains(&i64::from(adjustment)) {
            return Err(Error::EINVAL);
        }
        let process = self.process_mut(pid)?;
        if adjustment < process.least_memory_adjustment && !privileged {
            return Err(Error::EACCES);
        }
        process.memory_adjustment = adjustment;
        if privileged {
            process.least_memory_adjustment = adjustment;
        }
        Ok(())
    }

    /// Removes thread `tid`, which is in the server and will not return to its program. `status`
    /// becomes the status of the process if this is its last or first thread and no signal or
    /// exit_group(2) has ended the process. The first thread counts against its user's limit until
    /// the process is removed, so that zombies count, too (setrlimit(2), RLIMIT_NPROC).
    pub fn exit_thread(&mut self, tid: Pid, status: ExitStatus) -> ThreadExit {
        let nothing = ThreadExit { ended_process: None, ended_session: None };
        let Some(thread) = self.threads.remove(&tid) else { return nothing };
        let pid = thread.pid;
        if tid != pid {
            if thread.tracing.is_none() {
                self.release_id(tid);
            }
            self.charge(thread.credentials.user.real, -1, 0);
        }
        if let Some(tracing) = &thread.tracing {
            self.tracee_ended(tid, pid, tracing.tracer, status);
        }
        let Some(process) = self.processes.get_mut(&pid) else { return nothing };
        process.threads.remove(&tid);
        process.ended_usage += thread.usage();
        process.child_waiters.retain(|waiter| *waiter != tid);
        if tid == pid {
            process.leader_status = Some(status);
        }
        let freed = thread.pending.len() as u64;
        if !process.tracees.is_empty() || !process.ended_tracees.is_empty() {
            self.tracer_ended(tid, pid);
        }
        self.uncharge_signals(pid, freed);
        let Some(process) = self.processes.get(&pid) else { return nothing };
        if !process.threads.is_empty() {
            self.thread_exited(pid);
            return nothing;
        }
        let status = match process.state.phase {
            Phase::Ending(status) => status,
            _ => process.leader_status.unwrap_or(status),
        };
        let ended_session = process.is_session_leader().then_some(pid);
        self.end_process(pid, status);
        ThreadExit { ended_process: Some(pid), ended_session }
    }

    /// Does what the end of a thread makes necessary for the remaining threads of process `pid`.
    pub(super) fn thread_exited(&mut self, pid: Pid) {
        // The thread that has ended may have been the one that was chosen to take a signal, or the
        // last one that had not stopped.
        self.wake_takers(pid);
        self.finish_stop(pid);
        let Some(process) = self.processes.get(&pid) else { return };
        let waits = process.executing.or(process.dump.as_ref().map(|dump| dump.collector()));
        waits.into_iter().for_each(|tid| self.wake(tid));
    }

    fn end_process(&mut self, pid: Pid, status: ExitStatus) {
        self.release_vfork(pid);
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let listeners = core::mem::take(&mut process.listeners);
        self.wakes.extend(listeners.iter().filter_map(Weak::upgrade).map(Wake::Notify));
        process.pending.discard(!crate::signal::SignalSet::EMPTY);
        let queued = core::mem::take(&mut process.queued);
        let user = process.credentials.user.real;
        self.charge(user, 0, -(queued as i64));
        self.hanging_up_orphans(|table| {
            table.end_namespace_of(pid);
            let is_traced = table.processes.get(&pid).is_some_and(|process| process.tracer.is_some());
            let is_held = is_traced || table.waits_for_namespace(pid);
            table.change_state(pid, |state| {
                state.is_held = is_held;
                state.phase = Phase::Zombie(status);
                state.stop = Stop::Running;
                state.unreported = None;
            });
            table.give_away_children(pid);
        });
        self.notify_parent_of_exit(pid);
    }

    /// The process that adopts the children of `pid`: the nearest living ancestor that is a
    /// subreaper in its namespace, else the first process of that. `None` if that has ended.
    fn reaper_of(&self, pid: Pid) -> Option<Pid> {
        let process = self.processes.get(&pid)?;
        let mut ancestor = process.state.parent;
        while let Some(candidate) = ancestor.and_then(|id| self.processes.get(&id)) {
            if candidate.pid_namespace != process.pid_namespace {
                break;
            }
            if candidate.is_subreaper && candidate.state.phase == Phase::Running {
                return Some(candidate.pid);
            }
            ancestor = candidate.state.parent;
        }
        self.init_of(process)
    }

    fn give_away_children(&mut self, pid: Pid) {
        let reaper = self.reaper_of(pid);
        while let Some(child) = self.processes.get(&pid).and_then(|process| process.children.first()) {
            self.change_state(child, |state| {
                state.parent = reaper;
                state.exit_signal = Some(Signal::CHLD);
            });
            match self.processes.get(&child).is_some_and(Process::is_zombie) {
                true => self.notify_parent_of_exit(child),
                false => self.send_parent_death(child),
            }
        }
    }

    fn send_parent_death(&mut self, child: Pid) {
        let threads: Vec<Pid> =
            self.processes.get(&child).map_or(Vec::new(), |p| p.threads.iter().copied().collect());
        for tid in threads {
            if let Some(signal) = self.threads.get(&tid).and_then(|thread| thread.parent_death_signal) {
                self.generate_for_thread(tid, SignalInformation::system(signal));
            }
        }
    }

    /// Sends the exit signal of zombie `pid` to its parent and wakes the parent's threads that wait
    /// for it. A zombie for which no process will wait is removed.
    pub(super) fn notify_parent_of_exit(&mut self, pid: Pid) {
        let Some(process) = self.processes.get(&pid) else { return };
        let Phase::Zombie(status) = process.state.phase else { return };
        if self.zombie_is_held(pid, status.event()) {
            return;
        }
        let Some(process) = self.processes.get(&pid) else { return };
        let Some(parent) = process.state.parent.filter(|parent| self.processes.contains_key(parent)) else {
            self.remove_process(pid);
            return;
        };
        let mut signal = process.state.exit_signal;
        let mut autoreap = false;
        // The parent may have executed a new program since the fork. That one has not asked for a
        // signal other than SIGCHLD, and may have more rights than the old one.
        if signal.is_some()
            && self.processes.get(&parent).is_some_and(|p| p.executions != process.parent_executions)
        {
            signal = Some(Signal::CHLD);
        }
        if signal == Some(Signal::CHLD)
            && let Some(parent) = self.processes.get(&parent)
        {
            let action = parent.actions.lock().get(Signal::CHLD);
            autoreap = action.disposition == Disposition::Ignore || action.flags.no_child_wait;
            signal = signal.filter(|_| action.disposition != Disposition::Ignore);
        }
        if let Some(signal) = signal {
            let information = self.child_information(signal, pid, status.event());
            self.generate_for_process(parent, information);
        }
        if autoreap {
            self.remove_process(pid);
        }
        self.wake_child_waiters(parent);
    }

    /// The information of the signal with which the parent of `pid` learns of `event`.
    pub(super) fn child_information(&self, signal: Signal, pid: Pid, event: ChildEvent) -> SignalInformation {
        let (user, usage) = match self.processes.get(&pid) {
            Some(process) => (process.credentials.user.real, self.usage(process)),
            None => (0, super::Usage::default()),
        };
        let cause = Cause::Child {
            process: pid.number(),
            user,
            event,
            user_time: usage.user_time,
            system_time: usage.system_time,
        };
        SignalInformation { signal, error: 0, cause }
    }

    /// The resources that process `process` has used, all its threads together.
    pub fn usage(&self, process: &super::Process) -> super::Usage {
        let mut usage = process.ended_usage;
        for thread in process.threads.iter().filter_map(|tid| self.threads.get(tid)) {
            usage += thread.usage();
        }
        usage
    }

    /// The resources that all processes have used, those that have ended included.
    pub fn usage_of_all(&self) -> super::Usage {
        self.processes.values().fold(self.gone, |mut sum, process| {
            sum += self.usage(process);
            sum
        })
    }

    /// Adds user and system time to the usage of thread `tid`. A process above its soft limit of
    /// processor time gets SIGXCPU each second, and is killed at its hard limit.
    #[cfg(any(test, feature = "testing"))]
    pub fn account(&mut self, tid: Pid, user_time: Duration, system_time: Duration) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        thread.usage.user_time += user_time;
        thread.usage.system_time += system_time;
        let pid = thread.pid;
        self.check_time_limit(pid);
    }

    /// Checks the limit of processor time of each process. To be called about once a second.
    pub fn check_time_limits(&mut self) {
        let pids: Vec<Pid> = self.processes.keys().copied().collect();
        pids.into_iter().for_each(|pid| self.check_time_limit(pid));
    }

    fn check_time_limit(&mut self, pid: Pid) {
        let Some(process) = self.processes.get(&pid).filter(|process| !process.is_zombie()) else { return };
        let limit = process.limits.get(Resource::ProcessorTime);
        if limit.soft == Limit::INFINITE && limit.hard == Limit::INFINITE {
            return;
        }
        let usage = self.usage(process);
        let seconds = (usage.user_time + usage.system_time).as_secs();
        let warn = seconds >= limit.soft.max(1).saturating_add(process.time_warnings);
        if seconds >= limit.hard.max(1) {
            self.generate_for_process(pid, SignalInformation::system(Signal::KILL));
        } else if warn && let Some(process) = self.processes.get_mut(&pid) {
            process.time_warnings += 1;
            self.generate_for_process(pid, SignalInformation::system(Signal::XCPU));
        }
    }

    /// Counts a page fault of thread `tid`.
    pub fn account_fault(&mut self, tid: Pid) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.usage.minor_faults += 1;
        }
    }

    /// Records that process `pid` has `resident` KiB in memory at this moment; the largest value is
    /// kept.
    pub fn note_resident(&mut self, pid: Pid, resident: u64) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.ended_usage.max_resident = process.ended_usage.max_resident.max(resident);
        }
    }

    /// Removes process `pid`, which has no threads, from the table.
    pub(super) fn remove_process(&mut self, pid: Pid) {
        let Some(process) = self.take_process(pid) else { return };
        self.charge(process.credentials.user.real, -1, -(process.queued as i64));
        self.gone += process.ended_usage;
        if let Some(waiter) = process.vfork_parent {
            self.wake(waiter);
        }
    }
}
