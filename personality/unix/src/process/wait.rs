//! Waiting for children (wait4(2), waitid(2)).

use super::records::Phase;
use super::table::Table;
use super::{Pid, Usage};
use crate::signal::ChildEvent;
use crate::{Error, Result};

/// The children for which a call of wait waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// Any child of the process.
    Any,
    /// The child with this id.
    Process(Pid),
    /// The children in this process group.
    Group(Pid),
}

/// Which changes of children wait reports, and how it waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitOptions {
    /// Report children that ended (WEXITED).
    pub ended: bool,
    /// Report children that stopped (WSTOPPED, WUNTRACED).
    pub stopped: bool,
    /// Report children that were continued (WCONTINUED).
    pub continued: bool,
    /// Return without blocking if there is nothing to report (WNOHANG).
    pub no_hang: bool,
    /// Leave the report, so that another wait gets it, too (WNOWAIT).
    pub keep: bool,
    /// Wait only for children that at their end send another signal than SIGCHLD, or none
    /// (__WCLONE).
    pub only_clones: bool,
    /// Wait for children of both kinds, whatever signal they send at their end (__WALL).
    pub all_kinds: bool,
    /// Wait only for tracees of the calling thread, not of others of its process (__WNOTHREAD).
    pub own_only: bool,
}

/// The change of a child or tracee that wait reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildReport {
    /// The child's process id, or the id of the traced thread.
    pub pid: Pid,
    /// The number that this id has for the process that waits.
    pub number: u32,
    /// The child's real user id.
    pub user: u32,
    /// How the state of the child changed.
    pub event: ChildEvent,
    /// Resources that the child and the children it waited for used.
    pub usage: Usage,
}

impl Table {
    /// The next report of a child of `parent` that `which` and `options` allow; `None` if there is
    /// none now. `ECHILD` if there is no child to wait for.
    pub(super) fn wait_child(
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
        let number = self.number_for(parent, pid);
        let report = ChildReport { pid, number, user: child.credentials.user.real, event, usage };
        if options.keep {
            return Ok(Some(report));
        }
        if child.is_zombie() {
            let share = child.share;
            self.remove_process(pid);
            self.leave_share(parent, share, own.user_time + own.system_time);
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
