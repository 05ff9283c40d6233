//! What relatives and groups of a process depend on, and the indexes of that. Fork, exit, wait and
//! job control ask the indexes; so what they cost does not depend on how many processes there are.
//!
//! [`Table::change_state`] is the only way to change a [`ProcessState`], and moves the process in
//! every index.

use super::Pid;
use super::children::ChildState;
use super::records::{Phase, Process, Stop};
use super::table::Table;
use crate::signal::{ChildEvent, Signal};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::Deref;

/// The part of a process on which its relatives and its group depend: family, job control, and how
/// far it has come.
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
}

impl ProcessState {
    pub(super) fn is_living(&self) -> bool {
        !matches!(self.phase, Phase::Zombie(_))
    }

    /// Whether process `pid`, in this state, keeps `group` of `session` from being orphaned if a
    /// child of it is in there.
    fn supports(&self, pid: Pid, group: Pid, session: Pid) -> bool {
        pid != Pid::INIT && self.is_living() && self.group != group && self.session == session
    }
}

/// The state of a process in the table, which the indexes show: only [`Table::change_state`]
/// changes it.
#[derive(Debug)]
pub(super) struct IndexedState(ProcessState);

impl IndexedState {
    /// The state of a process that is about to be entered by [`Table::enter_process`].
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
    /// Zombies included.
    pub(super) members: BTreeSet<Pid>,
    /// How many members live that have a parent outside the group but in its session. If it is 0,
    /// the group is orphaned.
    pub(super) supported: usize,
    /// How many members are stopped, or are about to.
    pub(super) stopped: usize,
}

/// The states of a member for which its process group has counters.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Counted {
    supported: bool,
    stopped: bool,
}

impl Table {
    /// Enters a new process.
    pub(super) fn enter_process(&mut self, process: Process) {
        let (pid, state) = (process.pid, *process.state);
        self.processes.insert(pid, process);
        self.join_group(pid, &state, self.counted(&state));
        self.join_family(pid, &state);
    }

    /// Takes out a process that has no threads: its id is free unless a group or session has it.
    pub(super) fn take_process(&mut self, pid: Pid) -> Option<Process> {
        let state = *self.processes.get(&pid)?.state;
        self.leave_family(pid, &state);
        self.leave_group(pid, &state, self.counted(&state));
        let process = self.processes.remove(&pid);
        self.release_id(pid);
        process
    }

    /// Changes the state of process `pid`, and the indexes with it. Groups that this may orphan are
    /// noted for [`Table::telling_orphans`].
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
            // Join the new group first. So the session does not disappear if its only member
            // changes its group.
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

    /// Does `work`, and tells the groups with stopped members that it orphaned.
    pub(super) fn telling_orphans<R>(&mut self, work: impl FnOnce(&mut Table) -> R) -> R {
        self.orphaned.clear();
        let result = work(self);
        for group in core::mem::take(&mut self.orphaned) {
            self.tell_if_orphaned(group);
        }
        result
    }

    /// What the group of a process in this state counts of it.
    fn counted(&self, state: &ProcessState) -> Counted {
        let parent = state.parent.and_then(|parent| self.processes.get(&parent));
        let supports = |parent: &Process| parent.state.supports(parent.pid, state.group, state.session);
        Counted {
            supported: state.is_living() && parent.is_some_and(supports),
            stopped: state.stop != Stop::Running,
        }
    }

    /// Adds what `group` counts of a member, or takes it away.
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

    /// The state of process `pid` has changed: so its children's groups may have its support, or
    /// have it no longer.
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
            self.groups.insert(group, Group { session, members: BTreeSet::new(), supported: 0, stopped: 0 });
        }
        if let Some(group) = self.groups.get_mut(&group) {
            group.members.insert(pid);
        }
        self.count(group, counts, 1);
    }

    /// A group without members and a session without groups disappear.
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
