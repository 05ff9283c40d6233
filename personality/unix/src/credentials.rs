//! User and group ids of a process and the rules for changing them (credentials(7), setuid(2),
//! setresuid(2)).
//!
//! Changes of user ids change the privileges, too ([`crate::privilege`]). The file-system ids are
//! the effective ones unless setfsuid changed them. Credentials are immutable: a change makes a new
//! value, so that a check sees one consistent set.
//!
//! All ids are those of the system. What they are in the namespace of the process is said by
//! [`UserNamespace`]; there the privileges apply, and in the namespaces in it.

use crate::namespace::{IdKind, UserNamespace};
use crate::privilege::{FilePrivileges, PrivilegeSets, SecureBits};
use crate::process::InspectAs;
use crate::{Error, Identity, Privilege, Privileges, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The real, effective, saved and file-system ids of a user or of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ids {
    /// The id of the user or group that started the process (the real id).
    pub real: u32,
    /// The id whose privileges the process has (the effective id).
    pub effective: u32,
    /// The id that the effective id may be set back to (the saved id).
    pub saved: u32,
    /// The id that file operations check (the file-system id).
    pub file: u32,
}

impl Ids {
    /// Ids that are all `id`.
    pub fn all(id: u32) -> Ids {
        Ids { real: id, effective: id, saved: id, file: id }
    }

    /// Whether the real, effective and saved ids are all `id`.
    fn are(&self, id: u32) -> bool {
        [self.real, self.effective, self.saved] == [id; 3]
    }

    /// Whether the real, the effective or the saved id is the superuser's.
    pub(crate) fn include_superuser(&self) -> bool {
        self.holds(0)
    }

    fn holds(&self, id: u32) -> bool {
        id == self.real || id == self.effective || id == self.saved
    }

    /// The ids after setuid(2): with privilege all become `id`, otherwise only the effective one,
    /// which may become the real or the saved id. `EPERM`.
    fn set(mut self, id: u32, privileged: bool) -> Result<Ids> {
        if privileged {
            return Ok(Ids::all(id));
        }
        if id != self.real && id != self.saved {
            return Err(Error::EPERM);
        }
        self.effective = id;
        self.file = id;
        Ok(self)
    }

    /// The ids after setreuid(2). The saved id becomes the effective one if the real id is set, or
    /// if the effective one is set to another than the real id. `EPERM`.
    fn set_two(mut self, real: Option<u32>, effective: Option<u32>, privileged: bool) -> Result<Ids> {
        let old = self;
        if !privileged {
            let real_allowed = real.is_none_or(|id| id == old.real || id == old.effective);
            if !real_allowed || effective.is_some_and(|id| !old.holds(id)) {
                return Err(Error::EPERM);
            }
        }
        self.real = real.unwrap_or(old.real);
        self.effective = effective.unwrap_or(old.effective);
        if real.is_some() || effective.is_some_and(|id| id != old.real) {
            self.saved = self.effective;
        }
        self.file = self.effective;
        Ok(self)
    }

    /// The ids after setresuid(2). `EPERM`.
    fn set_three(mut self, new: [Option<u32>; 3], privileged: bool) -> Result<Ids> {
        if !privileged && new.iter().flatten().any(|id| !self.holds(*id)) {
            return Err(Error::EPERM);
        }
        self.real = new[0].unwrap_or(self.real);
        self.effective = new[1].unwrap_or(self.effective);
        self.saved = new[2].unwrap_or(self.saved);
        self.file = self.effective;
        Ok(self)
    }
}

/// The user and group ids with whose rights a thread acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The user ids of the thread.
    pub user: Ids,
    /// The group ids of the thread.
    pub group: Ids,
    /// The supplementary groups of the thread.
    pub groups: Arc<[u32]>,
    /// Whether exec gives no privileges any more (PR_SET_NO_NEW_PRIVS); never cleared.
    pub no_new_privileges: bool,
    /// The privileges of the thread, in its namespace.
    pub privileges: PrivilegeSets,
    /// The namespace of users in which the thread is.
    pub namespace: UserNamespace,
}

impl Credentials {
    /// The most supplementary groups that a process may have.
    pub const MAX_GROUPS: usize = 65536;

    /// The superuser's credentials.
    pub fn superuser() -> Credentials {
        Credentials {
            user: Ids::all(0),
            group: Ids::all(0),
            groups: Arc::new([]),
            no_new_privileges: false,
            privileges: PrivilegeSets::ALL,
            namespace: UserNamespace::default(),
        }
    }

    /// The credentials of the user `nobody` (65534), which owns no file and no process.
    pub fn nobody() -> Credentials {
        Credentials::executed_as(Ids::all(65534), Ids::all(65534))
    }

    /// The credentials of a program that was executed with these ids.
    pub(crate) fn executed_as(user: Ids, group: Ids) -> Credentials {
        let (privileges, _) = PrivilegeSets::ALL.for_exec(user, false, None);
        Credentials { user, group, privileges, ..Credentials::superuser() }
    }

    /// These credentials in another namespace, where they have all privileges: that of a thread
    /// that has made the namespace, or has joined it with the privilege to do so.
    pub fn in_namespace(&self, namespace: UserNamespace) -> Credentials {
        Credentials { privileges: PrivilegeSets::ALL, namespace, ..self.clone() }
    }

    /// Whether the thread has `privilege` over the whole system.
    pub fn has(&self, privilege: Privilege) -> bool {
        self.namespace.is_first() && self.has_own(privilege)
    }

    /// Whether the thread has `privilege` in its namespace: over itself, and over what belongs to
    /// the namespace.
    pub fn has_own(&self, privilege: Privilege) -> bool {
        self.privileges.effective.has(privilege)
    }

    /// Whether the thread has `privilege` over what belongs to `namespace`.
    pub fn has_in(&self, namespace: &UserNamespace, privilege: Privilege) -> bool {
        self.namespace.gives_in(namespace, self.user.effective, || self.has_own(privilege))
    }

    /// The identity that file operations check.
    pub fn identity(&self) -> Identity {
        let identity = Identity::new(self.user.file, self.group.file, self.groups.clone());
        identity.with_privileges(self.privileges.effective).in_namespace(self.namespace.clone())
    }

    /// The identity that operations on System V objects check: the effective ids.
    pub fn effective_identity(&self) -> Identity {
        let identity = Identity::new(self.user.effective, self.group.effective, self.groups.clone());
        identity.with_privileges(self.privileges.effective).in_namespace(self.namespace.clone())
    }

    /// The identity that access(2) checks: the real ids, with the privileges that a program of the
    /// real user would have.
    pub fn real_identity(&self) -> Identity {
        let PrivilegeSets { permitted, effective, secure, .. } = self.privileges;
        let privileges = match self.user.real {
            _ if secure.contains(SecureBits::NO_FIXUP) => effective,
            real if self.namespace.number_of(IdKind::User, real) == Some(0) => permitted,
            _ => Privileges::NONE,
        };
        let identity = Identity::new(self.user.real, self.group.real, self.groups.clone());
        identity.with_privileges(privileges).in_namespace(self.namespace.clone())
    }

    /// User ids as the namespace numbers them, in which the superuser is 0.
    fn numbered(&self, ids: Ids) -> Ids {
        let number = |id| self.namespace.number_of(IdKind::User, id).unwrap_or(u32::MAX);
        Ids {
            real: number(ids.real),
            effective: number(ids.effective),
            saved: number(ids.saved),
            file: number(ids.file),
        }
    }

    /// These credentials with other user ids, and the privileges that follow from the change.
    fn with_user(&self, user: Ids) -> Credentials {
        let (old, new) = (self.numbered(self.user), self.numbered(user));
        let privileges = self.privileges.after_user_change(old, new);
        Credentials { user, privileges, ..self.clone() }
    }

    /// The credentials after setuid(2). `EPERM`.
    pub fn set_user(&self, id: u32) -> Result<Credentials> {
        Ok(self.with_user(self.user.set(id, self.has_own(Privilege::SetUser))?))
    }

    /// The credentials after setgid(2). `EPERM`.
    pub fn set_group(&self, id: u32) -> Result<Credentials> {
        let group = self.group.set(id, self.has_own(Privilege::SetGroup))?;
        Ok(Credentials { group, ..self.clone() })
    }

    /// The credentials after setreuid(2); `None` leaves an id as it is. `EPERM`.
    pub fn set_real_effective_user(&self, real: Option<u32>, effective: Option<u32>) -> Result<Credentials> {
        Ok(self.with_user(self.user.set_two(real, effective, self.has_own(Privilege::SetUser))?))
    }

    /// The credentials after setregid(2); `None` leaves an id as it is. `EPERM`.
    pub fn set_real_effective_group(&self, real: Option<u32>, effective: Option<u32>) -> Result<Credentials> {
        let group = self.group.set_two(real, effective, self.has_own(Privilege::SetGroup))?;
        Ok(Credentials { group, ..self.clone() })
    }

    /// The credentials after setresuid(2) with real, effective and saved user id; `None` leaves an
    /// id as it is. `EPERM`.
    pub fn set_users(&self, new: [Option<u32>; 3]) -> Result<Credentials> {
        Ok(self.with_user(self.user.set_three(new, self.has_own(Privilege::SetUser))?))
    }

    /// The credentials after setresgid(2) with real, effective and saved group id; `None` leaves an
    /// id as it is. `EPERM`.
    pub fn set_groups_ids(&self, new: [Option<u32>; 3]) -> Result<Credentials> {
        let group = self.group.set_three(new, self.has_own(Privilege::SetGroup))?;
        Ok(Credentials { group, ..self.clone() })
    }

    /// The credentials after setfsuid(2), which never fails: an id that is not allowed changes
    /// nothing.
    pub fn set_file_user(&self, id: u32) -> Credentials {
        let allowed = self.has_own(Privilege::SetUser) || self.user.holds(id) || id == self.user.file;
        let file = if allowed { id } else { self.user.file };
        let user = Ids { file, ..self.user };
        let (old, new) = (self.numbered(self.user).file, self.numbered(user).file);
        let privileges = self.privileges.after_file_user_change(old, new);
        Credentials { user, privileges, ..self.clone() }
    }

    /// The credentials after setfsgid(2), which never fails: an id that is not allowed changes
    /// nothing.
    pub fn set_file_group(&self, id: u32) -> Credentials {
        let allowed = self.has_own(Privilege::SetGroup) || self.group.holds(id) || id == self.group.file;
        let file = if allowed { id } else { self.group.file };
        Credentials { group: Ids { file, ..self.group }, ..self.clone() }
    }

    /// The credentials after setgroups(2). `EPERM` without privilege, `EINVAL` for too many groups,
    /// `ENOMEM`.
    pub fn set_groups(&self, groups: &[u32]) -> Result<Credentials> {
        if !self.has_own(Privilege::SetGroup) || !self.namespace.may_set_groups() {
            return Err(Error::EPERM);
        }
        if groups.len() > Credentials::MAX_GROUPS {
            return Err(Error::EINVAL);
        }
        let mut copy = Vec::new();
        copy.try_reserve_exact(groups.len()).map_err(|_| Error::ENOMEM)?;
        copy.extend_from_slice(groups);
        Ok(Credentials { groups: copy.into(), ..self.clone() })
    }

    /// The credentials after exec of a program. `user` and `group` own the file if it has the
    /// set-user-id or set-group-id bit (and its file system honours these), otherwise they are
    /// `None`; `file` is what privileges it gives itself. An id that the namespace of the thread
    /// has not is never gained, since the thread would then be outside of what it can say.
    /// `is_shared` says that another process could change what the program relies on: the program
    /// then acts with the real ids, and so does one that may not get privileges. The second value
    /// says whether privileges grew, so that the program must not trust its environment
    /// (AT_SECURE). `EPERM` if the program needs privileges that it cannot get.
    pub fn for_exec(
        &self,
        user: Option<u32>,
        group: Option<u32>,
        file: Option<FilePrivileges>,
        is_shared: impl FnOnce() -> bool,
    ) -> Result<(Credentials, bool)> {
        let mut new = self.clone();
        // The bits mean nothing unless the namespace has both ids of the file.
        let has = |kind, id: Option<u32>| id.is_none_or(|id| self.namespace.has(kind, id));
        if !self.no_new_privileges && has(IdKind::User, user) && has(IdKind::Group, group) {
            new.user.effective = user.unwrap_or(self.user.effective);
            new.group.effective = group.unwrap_or(self.group.effective);
        }
        let gains_ids = !new.acts_for_itself();
        file.map_or(Ok(()), |file| file.check(&self.privileges))?;
        let all_effective;
        (new.privileges, all_effective) = self.privileges.for_exec(self.numbered(new.user), gains_ids, file);
        let grows = gains_ids || !new.privileges.permitted.is_within(self.privileges.permitted);
        if grows && (self.no_new_privileges || is_shared()) {
            if self.no_new_privileges || !self.has_own(Privilege::SetUser) {
                new.user.effective = new.user.real;
                new.group.effective = new.group.real;
            }
            let PrivilegeSets { permitted, effective, .. } = new.privileges;
            new.privileges.permitted = permitted.and(self.privileges.permitted);
            new.privileges.effective = effective.and(new.privileges.permitted);
        }
        new.user = Ids { saved: new.user.effective, file: new.user.effective, ..new.user };
        new.group = Ids { saved: new.group.effective, file: new.group.effective, ..new.group };
        let PrivilegeSets { permitted, ambient, .. } = new.privileges;
        let given = all_effective || !permitted.is_within(ambient);
        // A program whose file would have given it something is careful also if it gets nothing.
        let secure = gains_ids || (self.numbered(new.user).real != 0 && given);
        Ok((new, secure))
    }

    /// Whether the effective ids are the real ones.
    pub fn acts_for_itself(&self) -> bool {
        self.user.real == self.user.effective && self.group.real == self.group.effective
    }

    /// Whether the ids with which permissions are checked are those of `new`, and `new` may have no
    /// privileges in addition.
    pub fn acts_as(&self, new: &Credentials) -> bool {
        let ids = |ids: Ids| (ids.effective, ids.file);
        ids(self.user) == ids(new.user) && ids(self.group) == ids(new.group) && self.reaches(new)
    }

    /// Whether the thread could have the privileges of `other`: they are among those that it may
    /// have, or it made the namespace in which they apply.
    fn reaches(&self, other: &Credentials) -> bool {
        if self.namespace == other.namespace {
            return other.privileges.permitted.is_within(self.privileges.permitted);
        }
        self.namespace.gives_in(&other.namespace, self.user.effective, || false)
    }

    /// Whether a process with these credentials may inspect another that has the credentials
    /// `target` ([`crate::process::Table::may_inspect`]). `owner` is the namespace to which the
    /// memory of the other belongs: unless the process is dumpable, the caller needs the privilege
    /// over that, too.
    pub fn may_inspect(
        &self,
        target: &Credentials,
        is_dumpable: bool,
        owner: &UserNamespace,
        inspect_as: InspectAs,
    ) -> bool {
        let (user, group, own) = match inspect_as {
            InspectAs::FileUser => (self.user.file, self.group.file, self.privileges.effective),
            InspectAs::RealUser => (self.user.real, self.group.real, self.privileges.permitted),
        };
        let any = self.has_in(&target.namespace, Privilege::Inspect);
        let same_user = target.user.are(user) && target.group.are(group);
        let is_near = self.namespace == target.namespace && target.privileges.permitted.is_within(own);
        (any || (same_user && is_near)) && (is_dumpable || self.has_in(owner, Privilege::Inspect))
    }

    /// Whether a process with these credentials may read and set the limits of one with the
    /// credentials `target` (prlimit(2)).
    pub fn may_limit(&self, target: &Credentials) -> bool {
        let same = target.user.are(self.user.real) && target.group.are(self.group.real);
        same || self.has_in(&target.namespace, Privilege::Resource)
    }

    /// Whether a process with these credentials may set the priority and the affinity of one with
    /// the credentials `target` (setpriority(2), sched_setaffinity(2)).
    pub fn may_schedule(&self, target: &Credentials) -> bool {
        let ours = self.user.effective;
        let same_user = ours == target.user.real || ours == target.user.effective;
        same_user && self.reaches(target) || self.has_in(&target.namespace, Privilege::Schedule)
    }

    /// Whether a file whose owner was set with these credentials may signal a process with the
    /// credentials `target` (F_SETOWN of fcntl(2)).
    pub fn may_signal_for_file(&self, target: &Credentials) -> bool {
        let ours = [self.user.real, self.user.effective];
        let same = ours.contains(&target.user.real) || ours.contains(&target.user.saved);
        self.user.effective == 0 || same
    }

    /// Whether a process with these credentials may signal one with the credentials `target`
    /// (kill(2)).
    pub fn may_signal(&self, target: &Credentials) -> bool {
        let ours = [self.user.real, self.user.effective];
        let same = ours.contains(&target.user.real) || ours.contains(&target.user.saved);
        same || self.has_in(&target.namespace, Privilege::Kill)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(real: u32, effective: u32, saved: u32) -> Credentials {
        let user = Ids { real, effective, saved, file: effective };
        Credentials::executed_as(user, Ids::all(50))
    }

    #[test]
    fn setuid_by_the_superuser_changes_all_ids() {
        let root = Credentials::superuser();
        let dropped = root.set_user(1000).unwrap();
        assert_eq!(dropped.user, Ids::all(1000));
        assert_eq!(dropped.set_user(0), Err(Error::EPERM));
        assert!(root.identity().has(Privilege::Override) && !dropped.identity().has(Privilege::Override));
    }

    #[test]
    fn a_set_user_id_program_can_switch_back_and_forth() {
        let start = user(1000, 500, 500);
        let back = start.set_user(1000).unwrap();
        assert_eq!((back.user.effective, back.user.saved), (1000, 500));
        assert_eq!(back.set_user(500).unwrap().user.effective, 500);
        assert_eq!(back.set_user(501), Err(Error::EPERM));
    }

    #[test]
    fn setreuid_sets_the_saved_id() {
        let start = user(1000, 500, 500);
        let swapped = start.set_real_effective_user(Some(500), Some(1000)).unwrap();
        assert_eq!(swapped.user, Ids { real: 500, effective: 1000, saved: 1000, file: 1000 });
        let to_real = user(1000, 500, 500).set_real_effective_user(None, Some(1000)).unwrap();
        assert_eq!(to_real.user.saved, 500);
        assert_eq!(user(1, 2, 3).set_real_effective_user(Some(3), None), Err(Error::EPERM));
        assert!(user(1, 2, 3).set_real_effective_user(None, Some(3)).is_ok());
    }

    #[test]
    fn setresuid_permits_any_of_the_three_ids() {
        let new = user(1, 2, 3).set_users([Some(3), Some(1), Some(2)]).unwrap();
        assert_eq!(new.user, Ids { real: 3, effective: 1, saved: 2, file: 1 });
        assert_eq!(user(1, 2, 3).set_users([None, Some(4), None]), Err(Error::EPERM));
        assert_eq!(user(1, 2, 3).set_users([None; 3]).unwrap().user, user(1, 2, 3).user);
    }

    #[test]
    fn exec_of_a_set_user_id_file_changes_the_effective_id() {
        let (new, secure) = user(1000, 1000, 1000).for_exec(Some(0), None, None, || false).unwrap();
        assert_eq!(new.user, Ids { real: 1000, effective: 0, saved: 0, file: 0 });
        assert!(secure && new.has(Privilege::Kill));
        let bound = Credentials { no_new_privileges: true, ..user(1000, 1000, 1000) };
        assert!(!bound.for_exec(Some(0), None, None, || false).unwrap().0.has(Privilege::Kill));
        assert!(!user(1, 1, 1).for_exec(None, None, None, || false).unwrap().1);
        let (shared, secure) = user(1000, 1000, 1000).for_exec(Some(0), Some(0), None, || true).unwrap();
        assert_eq!((shared, secure), (user(1000, 1000, 1000), true));
        let root = Credentials { user: Ids { real: 1000, ..Ids::all(0) }, ..Credentials::superuser() };
        assert!(
            root.for_exec(Some(0), None, None, || true).unwrap().0.has(Privilege::Kill),
            "it could take them anyway"
        );
        let bound = Credentials { no_new_privileges: true, ..root };
        assert_eq!(
            bound.for_exec(None, None, None, || false).unwrap().0.user.effective,
            1000,
            "what it had is given up, too"
        );
    }

    #[test]
    fn a_file_gives_privileges_and_no_ids() {
        let permitted = Privileges::NONE.with(Privilege::Kill);
        let file = FilePrivileges { permitted, inheritable: Privileges::NONE, effective: true };
        let caller = user(1000, 1000, 1000);
        let (new, secure) = caller.for_exec(None, None, Some(file), || false).unwrap();
        assert!(secure && new.user == caller.user && new.privileges.effective == permitted);
        // What could not be trusted with other ids cannot be trusted with privileges.
        let (shared, _) = caller.for_exec(None, None, Some(file), || true).unwrap();
        assert_eq!(shared.privileges.permitted, Privileges::NONE);
        let bound = Credentials { no_new_privileges: true, ..caller.clone() };
        let (bound, _) = bound.for_exec(None, None, Some(file), || false).unwrap();
        assert_eq!(bound.privileges.effective, Privileges::NONE);
        let root = Credentials::superuser();
        assert!(!root.for_exec(None, None, Some(file), || false).unwrap().1);
        // What is to have them from its beginning does not run with less.
        let less = Credentials { privileges: root.privileges.drop_bounding(permitted).unwrap(), ..caller };
        assert_eq!(less.for_exec(None, None, Some(file), || false), Err(Error::EPERM));
        let waiting = FilePrivileges { effective: false, ..file };
        assert!(less.for_exec(None, None, Some(waiting), || false).is_ok());
    }

    #[test]
    fn a_signal_needs_a_matching_user_id_or_privilege() {
        assert!(user(1000, 1000, 1000).may_signal(&user(1000, 0, 0)));
        assert!(user(1000, 1000, 1000).may_signal(&user(0, 0, 1000)));
        assert!(!user(1000, 1000, 1000).may_signal(&user(0, 1000, 0)));
        assert!(user(1000, 0, 0).may_signal(&user(7, 7, 7)));
    }

    #[test]
    fn setfsuid_and_setgroups_check_permission() {
        assert_eq!(user(1, 2, 3).set_file_user(3).user.file, 3);
        assert_eq!(user(1, 2, 3).set_file_user(9).user.file, 2);
        assert_eq!(user(1, 2, 3).set_groups(&[1]), Err(Error::EPERM));
        assert_eq!(&*Credentials::superuser().set_groups(&[4, 5]).unwrap().groups, &[4, 5]);
        assert_eq!(Credentials::superuser().set_groups(&[0; 65537]), Err(Error::EINVAL));
    }
}
