//! Waiting for children (wait4(2), waitid(2)).

use super::records::Phase;
use super::table::Table;
use super::{Pid, Usage};
use crate::signal::ChildEvent;
use crate::{Error, Result};

/// Which children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// Every one.
    Any,
    /// This one.
    Process(Pid),
    /// Children in this process group.
    Group(Pid),
}

/// Which changes of children wait reports, and how it waits.
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
    /// Children that send another signal than SIGCHLD, or none, at their end: only those
    /// (__WCLONE).
    pub only_clones: bool,
    /// Children of both kinds (__WALL).
    pub all_kinds: bool,
}

/// What wait reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildReport {
    /// The child.
    pub pid: Pid,
    /// The child's real user id.
    pub user: u32,
    /// The change of the child.
    pub event: ChildEvent,
    /// Resources that the child and the children it waited for used.
    pub usage: Usage,
}

impl Table {
    /// A child of `parent` that has something to report, which is then reported, or `None` if none
    /// has. `ECHILD` if there is no child to wait for.
    pub fn wait_child(
        &mut self,
        parent: Pid,
        which: WaitFor,
        options: WaitOptions,
    ) -> Result<Option<ChildReport>> {
        let children = &self.process(parent)?.children;
        let Some(pid) = children.with_event(which, options) else {
            return if children.is_eligible(which, options) { Ok(None) } else { Err(Error::ECHILD) };
        };
        let child = self.process(pid)?;
        let event = match (child.state.phase, child.state.unreported) {
            (Phase::Zombie(status), _) => status.event(),
            (_, Some(event)) => event,
            (_, None) => return Ok(None),
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
            self.change_state(pid, |state| state.unreported = None);
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
