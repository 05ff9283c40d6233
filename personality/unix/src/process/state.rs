//! The part of a process's state on which its relatives and its group depend, and the indexes of
//! it. Fork, exit, wait and job control use the indexes, so that their cost does not depend on the
//! number of processes.
//!
//! [`Table::change_state`] is the only way to change a [`ProcessState`], and moves the process in
//! every index.

use super::children::ChildState;
use super::records::{Phase, Process, Stop};
use super::table::Table;
use super::{ExactPid, Pid};
use crate::signal::{ChildEvent, Signal};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::Deref;

/// The part of a process's state on which its relatives and its group depend: its family, job
/// control, and whether it runs, ends or is a zombie.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessState {
    pub(super) parent: Option<Pid>,
    pub(super) group: Pid,
    pub(super) session: Pid,
    pub(super) phase: Phase,
    pub(super) stop: Stop,
    /// A stop or continuation that wait has not reported yet.
    pub(super) unreported: Option<ChildEvent>,
    /// The signal that the parent gets when the process ends.
    pub(super) exit_signal: Option<Signal>,
    /// The parent does not learn of the end yet, because a tracer has to learn of it first.
    pub(super) is_held: bool,
}

impl ProcessState {
    pub(super) fn is_living(&self) -> bool {
        !matches!(self.phase, Phase::Zombie(_))
    }

    /// Whether process `pid`, in this state, keeps a child's `group` in `session` from being
    /// orphaned.
    fn supports(&self, pid: Pid, group: Pid, session: Pid) -> bool {
        pid != Pid::INIT && self.is_living() && self.group != group && self.session == session
    }
}

/// The state of a process in the table, as the indexes have it: only [`Table::change_state`]
/// changes it.
#[derive(Debug)]
pub(super) struct IndexedState(ProcessState);

impl IndexedState {
    /// The state of a process that [`Table::enter_process`] will add to the table.
    pub(super) fn new(state: ProcessState) -> IndexedState {
        IndexedState(state)
    }
}

impl Deref for IndexedState {
    type Target = ProcessState;

    fn deref(&self) -> &ProcessState {
        &self.0
    }
}

/// A process group.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) session: Pid,
    /// The process that made the group, which had its id.
    pub(super) leader: ExactPid,
    /// The member processes, zombies included.
    pub(super) members: BTreeSet<Pid>,
    /// How many living members have a parent that is outside the group and in its session. If it is
    /// 0, the group is orphaned.
    pub(super) supported: usize,
    /// How many members are stopped, or are about to stop.
    pub(super) stopped: usize,
}

/// What the counters of a process group say about one member.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Counted {
    supported: bool,
    stopped: bool,
}

impl Table {
    /// Adds a new process to the table and the indexes.
    pub(super) fn enter_process(&mut self, process: Process) {
        let (pid, state) = (process.pid, *process.state);
        self.processes.insert(pid, process);
        self.join_group(pid, &state, self.counted(&state));
        self.join_family(pid, &state);
    }

    /// Removes a process that has no threads. Its id becomes free unless a group or session has it.
    pub(super) fn take_process(&mut self, pid: Pid) -> Option<Process> {
        let state = *self.processes.get(&pid)?.state;
        self.leave_family(pid, &state);
        self.leave_group(pid, &state, self.counted(&state));
        let process = self.processes.remove(&pid);
        self.release_id(pid);
        process
    }

    /// Changes the state of process `pid`, and the indexes with it. Groups that this may orphan are
    /// noted for [`Table::hanging_up_orphans`].
    pub(super) fn change_state(&mut self, pid: Pid, change: impl FnOnce(&mut ProcessState)) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let old = *process.state;
        change(&mut process.state.0);
        let new = *process.state;
        let moves = (old.group, old.session) != (new.group, new.session);
        if moves || old.is_living() != new.is_living() {
            self.move_support(pid, &old, &new);
        }
        let (counted, counts) = (self.counted(&old), self.counted(&new));
        if moves {
            // Join the new group before leaving the old one, so that the session does not disappear
            // if this is its only process.
            self.join_group(pid, &new, counts);
            self.leave_group(pid, &old, counted);
        } else if counted != counts {
            self.count(new.group, counts, 1);
            self.count(new.group, counted, -1);
        }
        if (old.parent, ChildState::of(&old)) != (new.parent, ChildState::of(&new)) {
            self.leave_family(pid, &old);
            self.join_family(pid, &new);
        }
    }

    /// Does `work`, and then sends SIGHUP and SIGCONT to the groups with stopped members that it
    /// orphaned.
    pub(super) fn hanging_up_orphans<R>(&mut self, work: impl FnOnce(&mut Table) -> R) -> R {
        self.orphaned.clear();
        let result = work(self);
        for group in core::mem::take(&mut self.orphaned) {
            self.hang_up_if_orphaned(group);
        }
        result
    }

    /// What the counters of a process group include for a member in this state.
    fn counted(&self, state: &ProcessState) -> Counted {
        let parent = state.parent.and_then(|parent| self.processes.get(&parent));
        let supports = |parent: &Process| parent.state.supports(parent.pid, state.group, state.session);
        Counted {
            supported: state.is_living() && parent.is_some_and(supports),
            stopped: state.stop != Stop::Running,
        }
    }

    /// Adds a member to the counters of `group` (`by` is 1) or removes it (-1).
    fn count(&mut self, group: Pid, counted: Counted, by: isize) {
        let Some(found) = self.groups.get_mut(&group) else { return };
        found.stopped = found.stopped.saturating_add_signed(isize::from(counted.stopped) * by);
        if counted.supported {
            self.support(group, by);
        }
    }

    fn support(&mut self, group: Pid, by: isize) {
        let Some(found) = self.groups.get_mut(&group) else { return };
        found.supported = found.supported.saturating_add_signed(by);
        if found.supported == 0 {
            self.orphaned.push(group);
        }
    }

    /// Updates the groups of the children after process `pid` has changed its state: it may now
    /// keep them from being orphaned, or do so no longer.
    fn move_support(&mut self, pid: Pid, old: &ProcessState, new: &ProcessState) {
        let Some(process) = self.processes.get(&pid) else { return };
        let in_group = |group| (group, process.children.living_in(group));
        let affected: Vec<(Pid, usize)> = match old.session == new.session
            && old.is_living() == new.is_living()
        {
            true => {
                [old.group, new.group].map(in_group).into_iter().filter(|(_, living)| *living > 0).collect()
            }
            false => process.children.living_groups().collect(),
        };
        for (group, living) in affected {
            let Some(session) = self.group_session(group) else { continue };
            let before = old.supports(pid, group, session);
            let after = new.supports(pid, group, session);
            if before != after {
                let living = isize::try_from(living).unwrap_or(isize::MAX);
                self.support(group, if after { living } else { -living });
            }
        }
    }

    fn join_group(&mut self, pid: Pid, state: &ProcessState, counts: Counted) {
        let (group, session) = (state.group, state.session);
        if !self.groups.contains_key(&group) {
            *self.sessions.entry(session).or_default() += 1;
            let leader = self.processes.get(&group).map_or(ExactPid::new(group, 0), Process::exact_pid);
            let new = Group { session, leader, members: BTreeSet::new(), supported: 0, stopped: 0 };
            self.groups.insert(group, new);
        }
        if let Some(group) = self.groups.get_mut(&group) {
            group.members.insert(pid);
        }
        self.count(group, counts, 1);
    }

    /// Removes process `pid` from its group. A group without members and a session without groups
    /// are removed.
    fn leave_group(&mut self, pid: Pid, state: &ProcessState, counted: Counted) {
        let (id, session) = (state.group, state.session);
        self.count(id, counted, -1);
        let Some(group) = self.groups.get_mut(&id) else { return };
        group.members.remove(&pid);
        if !group.members.is_empty() {
            return;
        }
        self.groups.remove(&id);
        self.release_id(id);
        if let Some(count) = self.sessions.get_mut(&session) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.sessions.remove(&session);
                self.release_id(session);
            }
        }
    }

    fn join_family(&mut self, pid: Pid, state: &ProcessState) {
        if let Some(parent) = state.parent.and_then(|parent| self.processes.get_mut(&parent)) {
            parent.children.insert(pid, ChildState::of(state));
        }
    }

    fn leave_family(&mut self, pid: Pid, state: &ProcessState) {
        if let Some(parent) = state.parent.and_then(|parent| self.processes.get_mut(&parent)) {
            parent.children.remove(pid, ChildState::of(state));
        }
    }
}
