//! Process groups and sessions (setpgid(2), setsid(2), credentials(7)).

use super::records::Stop;
use super::table::{Group, Table};
use super::{Pid, Process};
use crate::signal::{Signal, SignalInformation};
use crate::{Error, Result};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

impl Table {
    /// The processes of group `group`, zombies included. Empty if there is no such group.
    pub fn group_members(&self, group: Pid) -> Vec<Pid> {
        self.groups.get(&group).map_or(Vec::new(), |group| group.members.iter().copied().collect())
    }

    /// The session of group `group`.
    pub fn group_session(&self, group: Pid) -> Option<Pid> {
        self.groups.get(&group).map(|group| group.session)
    }

    /// setsid(2): process `pid` becomes the leader of a new session and a new group. `EPERM` if a group with its id
    /// exists.
    pub fn set_session(&mut self, pid: Pid) -> Result<Pid> {
        if self.groups.contains_key(&pid) {
            return Err(Error::EPERM);
        }
        self.sessions.insert(pid, 0);
        self.move_to_group(pid, pid, pid)?;
        self.process_mut(pid)?.session = pid;
        Ok(pid)
    }

    /// setpgid(2): process `pid` (the caller or a child of it that has not executed) moves to `group`, which is its
    /// own id for a new group, or a group of its session. `ESRCH`, `EACCES`, `EPERM`.
    pub fn set_group(&mut self, caller: Pid, pid: Pid, group: Pid) -> Result<()> {
        let session = self.process(caller)?.session;
        let process = self.process(pid)?;
        if pid != caller {
            if process.parent != Some(caller) {
                return Err(Error::ESRCH);
            }
            if process.session != session {
                return Err(Error::EPERM);
            }
            if process.has_executed {
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
        if process.group != group {
            self.move_to_group(pid, group, session)?;
        }
        Ok(())
    }

    /// Moves process `pid` to `group` (made if need be). Groups that this orphans and that have stopped members are
    /// told.
    fn move_to_group(&mut self, pid: Pid, group: Pid, session: Pid) -> Result<()> {
        // Whether each group that this process keeps from being orphaned was so before.
        let affected = self.supported_groups(pid);
        let before: Vec<bool> = affected.iter().map(|group| self.is_orphaned(*group)).collect();
        self.leave_group(pid);
        let sessions = &mut self.sessions;
        self.groups
            .entry(group)
            .or_insert_with(|| {
                *sessions.entry(session).or_default() += 1;
                Group { session, members: BTreeSet::new() }
            })
            .members
            .insert(pid);
        let process = self.process_mut(pid)?;
        process.group = group;
        process.session = session;
        for (group, was_orphaned) in affected.into_iter().zip(before) {
            if !was_orphaned {
                self.tell_if_orphaned(group);
            }
        }
        Ok(())
    }

    /// Takes `pid` out of its group; a group without members and a session without groups disappear.
    pub(super) fn leave_group(&mut self, pid: Pid) {
        let Some(id) = self.processes.get(&pid).map(|process| process.group) else { return };
        let Some(group) = self.groups.get_mut(&id) else { return };
        group.members.remove(&pid);
        if !group.members.is_empty() {
            return;
        }
        let session = group.session;
        self.groups.remove(&id);
        if let Some(count) = self.sessions.get_mut(&session) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.sessions.remove(&session);
            }
        }
    }

    /// The groups whose being orphaned or not depends on process `pid`: its own and its children's.
    pub(super) fn supported_groups(&self, pid: Pid) -> Vec<Pid> {
        let Some(process) = self.processes.get(&pid) else { return Vec::new() };
        let children =
            process.children.iter().filter_map(|child| self.processes.get(child)).map(|child| child.group);
        let groups: BTreeSet<Pid> = core::iter::once(process.group).chain(children).collect();
        groups.into_iter().collect()
    }

    /// Whether no member of `group` has a parent outside the group but in its session: then nobody could continue it,
    /// and terminal stops do nothing.
    pub fn is_orphaned(&self, group: Pid) -> bool {
        let Some(group) = self.groups.get(&group) else { return true };
        let supported = |member: &Process| {
            let parent = member.parent.filter(|parent| *parent != Pid::INIT);
            let parent = parent.and_then(|parent| self.processes.get(&parent));
            parent.is_some_and(|parent| {
                !parent.is_zombie() && parent.group != member.group && parent.session == member.session
            })
        };
        let mut members = group.members.iter().filter_map(|pid| self.processes.get(pid));
        !members.any(|member| !member.is_zombie() && supported(member))
    }

    /// If `group` is orphaned and has a stopped member, hangs it up and continues it.
    pub(super) fn tell_if_orphaned(&mut self, group: Pid) {
        let members = self.group_members(group);
        let stopped =
            |pid: &Pid| self.processes.get(pid).is_some_and(|process| process.stop != Stop::Running);
        if self.is_orphaned(group) && members.iter().any(stopped) {
            for signal in [Signal::HUP, Signal::CONT] {
                for pid in &members {
                    self.generate_for_process(*pid, SignalInformation::system(signal));
                }
            }
        }
    }
}
