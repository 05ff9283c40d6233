//! Waiting for children (wait4(2), waitid(2)).

use super::records::{Phase, Process, Stop};
use super::table::Table;
use super::{Pid, Usage};
use crate::signal::{ChildEvent, Signal};
use crate::{Error, Result};

/// Which children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// Every one.
    Any,
    /// This one.
    Process(Pid),
    /// Those of this group.
    Group(Pid),
}

/// Which of their changes, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitOptions {
    /// Report those that ended (WEXITED).
    pub ended: bool,
    /// Report those that stopped (WSTOPPED, WUNTRACED).
    pub stopped: bool,
    /// Report those that were continued (WCONTINUED).
    pub continued: bool,
    /// Do not wait (WNOHANG).
    pub no_hang: bool,
    /// Leave the child in the state it was in (WNOWAIT).
    pub keep: bool,
    /// Children that send another signal than SIGCHLD, or none, at their end: only those (__WCLONE).
    pub only_clones: bool,
    /// Children of both kinds (__WALL).
    pub all_kinds: bool,
}

/// What wait reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildReport {
    /// The child.
    pub pid: Pid,
    /// Its real user id.
    pub user: u32,
    /// What it did.
    pub event: ChildEvent,
    /// What it and its own waited-for children used.
    pub usage: Usage,
}

impl Table {
    /// A child of `parent` that has something to report, which is then reported, or `None` if none has. `ECHILD` if
    /// there is no child to wait for.
    pub fn wait_child(
        &mut self,
        parent: Pid,
        which: WaitFor,
        options: WaitOptions,
    ) -> Result<Option<ChildReport>> {
        let mut eligible = false;
        let mut found = None;
        for child in self.process(parent)?.children.iter().filter_map(|pid| self.processes.get(pid)) {
            if !matches(child, which, options) {
                continue;
            }
            eligible = true;
            if let Some(event) = reportable(child, options) {
                found = Some((child.pid, event));
                break;
            }
        }
        let Some((pid, event)) = found else {
            return if eligible { Ok(None) } else { Err(Error::ECHILD) };
        };
        let child = self.process(pid)?;
        let own = self.usage(child);
        let mut usage = own;
        usage += child.children_usage;
        let report = ChildReport { pid, user: child.credentials.user.real, event, usage };
        if options.keep {
            return Ok(Some(report));
        }
        if child.is_zombie() {
            self.remove_process(pid);
            self.process_mut(parent)?.children_usage += usage;
        } else {
            self.process_mut(pid)?.unreported = None;
        }
        Ok(Some(report))
    }

    /// Records that thread `tid` of process `pid` waits for children.
    pub(super) fn add_child_waiter(&mut self, pid: Pid, tid: Pid) {
        if let Some(process) = self.processes.get_mut(&pid)
            && !process.child_waiters.contains(&tid)
        {
            process.child_waiters.push(tid);
        }
    }
}

fn matches(child: &Process, which: WaitFor, options: WaitOptions) -> bool {
    let chosen = match which {
        WaitFor::Any => true,
        WaitFor::Process(pid) => child.pid == pid,
        WaitFor::Group(group) => child.group == group,
    };
    let is_clone = child.exit_signal != Some(Signal::CHLD);
    chosen && (options.all_kinds || is_clone == options.only_clones)
}

fn reportable(child: &Process, options: WaitOptions) -> Option<ChildEvent> {
    if let Phase::Zombie(status) = child.phase {
        return options.ended.then(|| status.event());
    }
    match (child.unreported?, child.stop) {
        (event @ ChildEvent::Stopped(_), Stop::Stopped(_)) => options.stopped.then_some(event),
        (ChildEvent::Continued, _) => options.continued.then_some(ChildEvent::Continued),
        _ => None,
    }
}
