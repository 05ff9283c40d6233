//! Process groups and sessions (setpgid(2), setsid(2), credentials(7)).

use super::table::Table;
use super::{ExactPid, Pid};
use crate::signal::{Signal, SignalInformation};
use crate::{Error, Result};
use alloc::vec::Vec;

impl Table {
    /// The processes of group `group`, zombies included. The list is empty if there is no such
    /// group.
    pub fn group_members(&self, group: Pid) -> Vec<Pid> {
        self.groups.get(&group).map_or(Vec::new(), |group| group.members.iter().copied().collect())
    }

    /// The process that made group `group`, which distinguishes the group from others that have had
    /// or will have its id. `ESRCH`.
    pub fn group_leader(&self, group: Pid) -> Result<ExactPid> {
        self.groups.get(&group).map(|group| group.leader).ok_or(Error::ESRCH)
    }

    /// The id of the group that `leader` has made, if it has members, zombies included.
    pub fn group_of(&self, leader: ExactPid) -> Option<Pid> {
        (self.group_leader(leader.pid()) == Ok(leader)).then_some(leader.pid())
    }

    /// The session of group `group`.
    pub fn group_session(&self, group: Pid) -> Option<Pid> {
        self.groups.get(&group).map(|group| group.session)
    }

    /// Makes process `pid` the leader of a new session and a new group (setsid(2)). `EPERM` if a
    /// group with its id exists.
    pub fn set_session(&mut self, pid: Pid) -> Result<Pid> {
        if self.groups.contains_key(&pid) {
            return Err(Error::EPERM);
        }
        self.process(pid)?;
        self.move_to_group(pid, pid, pid);
        Ok(pid)
    }

    /// Moves process `pid` (the caller, or a child of the caller that has not executed a program)
    /// to `group`: its own id, which makes a new group, or a group of its session (setpgid(2)).
    /// `ESRCH`, `EACCES`, `EPERM`.
    pub fn set_group(&mut self, caller: Pid, pid: Pid, group: Pid) -> Result<()> {
        let session = self.process(caller)?.state.session;
        let process = self.process(pid)?;
        if pid != caller {
            if process.state.parent != Some(caller) {
                return Err(Error::ESRCH);
            }
            if process.state.session != session {
                return Err(Error::EPERM);
            }
            if process.executions > 0 {
                return Err(Error::EACCES);
            }
        }
        if process.is_zombie() {
            return Err(Error::ESRCH);
        }
        if process.is_session_leader() {
            return Err(Error::EPERM);
        }
        if group != pid && self.group_session(group) != Some(session) {
            return Err(Error::EPERM);
        }
        if process.state.group != group {
            self.move_to_group(pid, group, session);
        }
        Ok(())
    }

    /// Moves process `pid` to `group`, which is made if it does not exist. Groups that this orphans
    /// and that have stopped members get SIGHUP and SIGCONT.
    fn move_to_group(&mut self, pid: Pid, group: Pid, session: Pid) {
        self.hanging_up_orphans(|table| {
            table.change_state(pid, |state| (state.group, state.session) = (group, session));
        });
    }

    /// Whether no member of `group` has a parent that is outside the group and in its session. No
    /// process could then continue the group, and stop signals of the terminal have no effect on
    /// it.
    pub fn is_orphaned(&self, group: Pid) -> bool {
        self.groups.get(&group).is_none_or(|group| group.supported == 0)
    }

    /// If `group` is orphaned and has a stopped member, sends SIGHUP and SIGCONT to the group.
    pub(super) fn hang_up_if_orphaned(&mut self, group: Pid) {
        if self.is_orphaned(group) && self.groups.get(&group).is_some_and(|group| group.stopped > 0) {
            for signal in [Signal::HUP, Signal::CONT] {
                self.generate_for_group(group, SignalInformation::system(signal));
            }
        }
    }
}
