//! The children of a process, indexed by what wait and job control ask about them, so that no such
//! question looks at every child.

use super::Pid;
use super::records::{Phase, Stop};
use super::state::ProcessState;
use super::wait::{WaitFor, WaitOptions};
use crate::signal::{ChildEvent, Signal};
use alloc::collections::{BTreeMap, BTreeSet};

/// The part of a child's state that its parent's indexes depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChildState {
    group: Pid,
    is_living: bool,
    kind: Kind,
    event: Option<Event>,
}

/// The two kinds of children that wait(2) distinguishes (__WCLONE): by the signal that the child
/// sends at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// A child whose end sends SIGCHLD.
    Usual,
    /// A child whose end sends another signal than SIGCHLD, or none.
    Clone,
}

/// A change of a child that wait can report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Ended,
    Stopped,
    Continued,
}

impl ChildState {
    /// The state of a child whose process is in `state`.
    pub(super) fn of(state: &ProcessState) -> ChildState {
        let event = match (state.phase, state.unreported, state.stop) {
            (Phase::Zombie(_), ..) => (!state.is_held).then_some(Event::Ended),
            (_, Some(ChildEvent::Stopped(_)), Stop::Stopped(_)) => Some(Event::Stopped),
            (_, Some(ChildEvent::Continued), _) => Some(Event::Continued),
            _ => None,
        };
        let kind = if state.exit_signal == Some(Signal::CHLD) { Kind::Usual } else { Kind::Clone };
        ChildState { group: state.group, is_living: state.is_living(), kind, event }
    }
}

/// How many children of one kind there are, zombies included, and how many of them live.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    usual: usize,
    clones: usize,
    living: usize,
}

impl Count {
    fn add(&mut self, state: ChildState, by: isize) {
        let of_kind = match state.kind {
            Kind::Usual => &mut self.usual,
            Kind::Clone => &mut self.clones,
        };
        *of_kind = of_kind.saturating_add_signed(by);
        self.living = self.living.saturating_add_signed(isize::from(state.is_living) * by);
    }

    fn is_none(&self) -> bool {
        self.usual == 0 && self.clones == 0
    }

    fn any(&self, kinds: &[Kind]) -> bool {
        kinds.iter().any(|kind| match kind {
            Kind::Usual => self.usual > 0,
            Kind::Clone => self.clones > 0,
        })
    }
}

/// A change of a child that wait can report. It is entered twice, with `None` and with the child's
/// group, so that wait finds it among all children and among those of a group.
type Report = (Option<Pid>, Kind, Event, Pid);

/// All children of a process.
#[derive(Debug, Default)]
pub(super) struct Children {
    all: BTreeMap<Pid, ChildState>,
    count: Count,
    by_group: BTreeMap<Pid, Count>,
    reports: BTreeSet<Report>,
}

impl Children {
    /// The ids of the process's children.
    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = Pid> + '_ {
        self.all.keys().copied()
    }

    /// The child with the lowest id.
    pub(super) fn first(&self) -> Option<Pid> {
        self.all.first_key_value().map(|(pid, _)| *pid)
    }

    /// Adds a child to the index.
    pub(super) fn insert(&mut self, pid: Pid, state: ChildState) {
        self.all.insert(pid, state);
        self.count.add(state, 1);
        self.by_group.entry(state.group).or_default().add(state, 1);
        if let Some(event) = state.event {
            self.reports.extend([None, Some(state.group)].map(|group| (group, state.kind, event, pid)));
        }
    }

    /// Removes a child. `state` must be the state with which the index has it.
    pub(super) fn remove(&mut self, pid: Pid, state: ChildState) {
        self.all.remove(&pid);
        self.count.add(state, -1);
        if let Some(count) = self.by_group.get_mut(&state.group) {
            count.add(state, -1);
            if count.is_none() {
                self.by_group.remove(&state.group);
            }
        }
        if let Some(event) = state.event {
            for group in [None, Some(state.group)] {
                self.reports.remove(&(group, state.kind, event, pid));
            }
        }
    }

    /// How many living children are in `group`.
    pub(super) fn living_in(&self, group: Pid) -> usize {
        self.by_group.get(&group).map_or(0, |count| count.living)
    }

    /// The process groups of the living children, and how many of them each has.
    pub(super) fn living_groups(&self) -> impl Iterator<Item = (Pid, usize)> + '_ {
        self.by_group.iter().map(|(group, count)| (*group, count.living)).filter(|(_, living)| *living > 0)
    }

    /// Whether wait can ever report a child that `which` and `options` allow.
    pub(super) fn is_eligible(&self, which: WaitFor, options: WaitOptions) -> bool {
        let kinds = kinds(options);
        match which {
            WaitFor::Any => self.count.any(kinds),
            WaitFor::Group(group) => self.by_group.get(&group).is_some_and(|count| count.any(kinds)),
            WaitFor::Process(pid) => self.all.get(&pid).is_some_and(|state| kinds.contains(&state.kind)),
        }
    }

    /// The child with the lowest id that `which` and `options` allow and that has a change to
    /// report now.
    pub(super) fn with_event(&self, which: WaitFor, options: WaitOptions) -> Option<Pid> {
        let wanted = [
            (options.ended, Event::Ended),
            (options.stopped, Event::Stopped),
            (options.continued, Event::Continued),
        ];
        let wanted = wanted.into_iter().filter_map(|(wanted, event)| wanted.then_some(event));
        let group = match which {
            WaitFor::Any => None,
            WaitFor::Group(group) => Some(group),
            WaitFor::Process(pid) => {
                let state = self.all.get(&pid).filter(|state| kinds(options).contains(&state.kind))?;
                return wanted.into_iter().any(|event| state.event == Some(event)).then_some(pid);
            }
        };
        let first = |kind, event| {
            let found = self.reports.range((group, kind, event, Pid::INIT)..).next().copied();
            found.filter(|found| (found.0, found.1, found.2) == (group, kind, event)).map(|found| found.3)
        };
        wanted.flat_map(|event| kinds(options).iter().filter_map(move |kind| first(*kind, event))).min()
    }
}

/// The kinds of children that wait looks at.
fn kinds(options: WaitOptions) -> &'static [Kind] {
    match (options.all_kinds, options.only_clones) {
        (true, _) => &[Kind::Usual, Kind::Clone],
        (false, false) => &[Kind::Usual],
        (false, true) => &[Kind::Clone],
    }
}
