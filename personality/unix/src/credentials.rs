//! User and group ids of a process and the rules for changing them (credentials(7), setuid(2),
//! setresuid(2)).
//!
//! Privilege goes with the effective user id 0; the file-system ids follow the effective ones
//! unless setfsuid changed them. Credentials are immutable: a change makes a new value, so that a
//! check sees one consistent set.

use crate::process::InspectAs;
use crate::{Error, Identity, Privilege, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Real, effective, saved and file-system id, for users or for groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ids {
    /// The user or group that started the process.
    pub real: u32,
    /// The user or group whose privileges the process has (the effective id).
    pub effective: u32,
    /// The id that the effective id may be set back to (the saved id).
    pub saved: u32,
    /// The user or group that file operations check.
    pub file: u32,
}

impl Ids {
    /// The same id in all four places.
    pub fn all(id: u32) -> Ids {
        Ids { real: id, effective: id, saved: id, file: id }
    }

    /// Whether real, effective and saved id are this one.
    fn are(&self, id: u32) -> bool {
        [self.real, self.effective, self.saved] == [id; 3]
    }

    fn holds(&self, id: u32) -> bool {
        id == self.real || id == self.effective || id == self.saved
    }

    /// setuid(2): with privilege all ids, otherwise the effective one, to the real or saved id.
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

    /// setreuid(2): the saved id follows if the real id is set or the effective one is set to
    /// another than the real.
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

    /// setresuid(2).
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

/// The users and groups with whose rights a thread acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// User ids.
    pub user: Ids,
    /// Group ids.
    pub group: Ids,
    /// Supplementary groups.
    pub groups: Arc<[u32]>,
    /// Exec gives no privileges any more (PR_SET_NO_NEW_PRIVS); never cleared.
    pub no_new_privileges: bool,
}

impl Credentials {
    /// Most supplementary groups that a process may have.
    pub const MAX_GROUPS: usize = 65536;

    /// The superuser's credentials.
    pub fn superuser() -> Credentials {
        Credentials { user: Ids::all(0), group: Ids::all(0), groups: Arc::new([]), no_new_privileges: false }
    }

    /// The credentials of the user `nobody` (65534), which owns no file and no process.
    pub fn nobody() -> Credentials {
        Credentials { user: Ids::all(65534), group: Ids::all(65534), ..Credentials::superuser() }
    }

    /// Whether the process has the superuser's privileges.
    pub fn is_privileged(&self) -> bool {
        self.user.effective == 0
    }

    /// The identity that file operations check.
    pub fn identity(&self) -> Identity {
        let identity = Identity::new(self.user.file, self.group.file, self.groups.clone());
        match (self.user.file == 0, self.is_privileged()) {
            (true, true) => identity.with_all(),
            (true, false) => {
                use Privilege::{Chown, Override, Owner, ReadSearch, SetId};
                [Chown, Override, ReadSearch, Owner, SetId].into_iter().fold(identity, Identity::with)
            }
            (false, true) => {
                use Privilege::{Administrator, ChangeRoot, Resource, SetUser, Terminal};
                [Administrator, ChangeRoot, Resource, SetUser, Terminal]
                    .into_iter()
                    .fold(identity, Identity::with)
            }
            (false, false) => identity,
        }
    }

    /// The identity that access(2) checks: the real ids.
    pub fn real_identity(&self) -> Identity {
        let identity = Identity::new(self.user.real, self.group.real, self.groups.clone());
        if self.user.real == 0 { identity.with_all() } else { identity }
    }

    /// setuid(2). `EPERM`.
    pub fn set_user(&self, id: u32) -> Result<Credentials> {
        Ok(Credentials { user: self.user.set(id, self.is_privileged())?, ..self.clone() })
    }

    /// setgid(2). `EPERM`.
    pub fn set_group(&self, id: u32) -> Result<Credentials> {
        Ok(Credentials { group: self.group.set(id, self.is_privileged())?, ..self.clone() })
    }

    /// setreuid(2); with `None` an id stays as it is. `EPERM`.
    pub fn set_real_effective_user(&self, real: Option<u32>, effective: Option<u32>) -> Result<Credentials> {
        Ok(Credentials { user: self.user.set_two(real, effective, self.is_privileged())?, ..self.clone() })
    }

    /// setregid(2); with `None` an id stays as it is. `EPERM`.
    pub fn set_real_effective_group(&self, real: Option<u32>, effective: Option<u32>) -> Result<Credentials> {
        Ok(Credentials { group: self.group.set_two(real, effective, self.is_privileged())?, ..self.clone() })
    }

    /// setresuid(2): real, effective, saved; `None` leaves an id. `EPERM`.
    pub fn set_users(&self, new: [Option<u32>; 3]) -> Result<Credentials> {
        Ok(Credentials { user: self.user.set_three(new, self.is_privileged())?, ..self.clone() })
    }

    /// setresgid(2): real, effective, saved; `None` leaves an id. `EPERM`.
    pub fn set_groups_ids(&self, new: [Option<u32>; 3]) -> Result<Credentials> {
        Ok(Credentials { group: self.group.set_three(new, self.is_privileged())?, ..self.clone() })
    }

    /// setfsuid(2): never fails; an id that is not allowed changes nothing.
    pub fn set_file_user(&self, id: u32) -> Credentials {
        let allowed = self.is_privileged() || self.user.holds(id) || id == self.user.file;
        let file = if allowed { id } else { self.user.file };
        Credentials { user: Ids { file, ..self.user }, ..self.clone() }
    }

    /// setfsgid(2): never fails; an id that is not allowed changes nothing.
    pub fn set_file_group(&self, id: u32) -> Credentials {
        let allowed = self.is_privileged() || self.group.holds(id) || id == self.group.file;
        let file = if allowed { id } else { self.group.file };
        Credentials { group: Ids { file, ..self.group }, ..self.clone() }
    }

    /// setgroups(2). `EPERM` without privilege, `EINVAL` for too many, `ENOMEM`.
    pub fn set_groups(&self, groups: &[u32]) -> Result<Credentials> {
        if !self.is_privileged() {
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

    /// What exec of a program makes of them: `user` and `group` are the file's owners where it has
    /// the set-user-id or set-group-id bit (and its file system honours them). `is_shared` says
    /// whether another process could change what the program relies on: then it acts for the real
    /// ids, as one that may not get privileges does. The second value says whether privileges grew,
    /// so that the program must not trust its environment (AT_SECURE).
    pub fn for_exec(
        &self,
        user: Option<u32>,
        group: Option<u32>,
        is_shared: impl FnOnce() -> bool,
    ) -> (Credentials, bool) {
        let mut new = self.clone();
        if !self.no_new_privileges {
            new.user.effective = user.unwrap_or(self.user.effective);
            new.group.effective = group.unwrap_or(self.group.effective);
        }
        let gains = !new.acts_for_itself();
        if gains && (self.no_new_privileges || (!self.is_privileged() && is_shared())) {
            new.user.effective = new.user.real;
            new.group.effective = new.group.real;
        }
        new.user = Ids { saved: new.user.effective, file: new.user.effective, ..new.user };
        new.group = Ids { saved: new.group.effective, file: new.group.effective, ..new.group };
        let secure = new.user.real != new.user.effective || new.group.real != new.group.effective;
        (new, secure)
    }

    /// Whether real and effective ids are the same.
    pub fn acts_for_itself(&self) -> bool {
        self.user.real == self.user.effective && self.group.real == self.group.effective
    }

    /// Whether the ids that permissions are checked with are those of `other`.
    pub fn acts_as(&self, other: &Credentials) -> bool {
        let ids = |ids: Ids| (ids.effective, ids.file);
        ids(self.user) == ids(other.user) && ids(self.group) == ids(other.group)
    }

    /// Whether a process with these credentials may inspect another that has `target`'s
    /// ([`crate::process::Table::may_inspect`]).
    pub fn may_inspect(&self, target: &Credentials, is_dumpable: bool, inspect_as: InspectAs) -> bool {
        let (user, group) = match inspect_as {
            InspectAs::FileUser => (self.user.file, self.group.file),
            InspectAs::RealUser => (self.user.real, self.group.real),
        };
        // The superuser's id for files alone is less than what the superuser's processes have.
        let less = inspect_as == InspectAs::FileUser && user == 0;
        self.is_privileged() || (is_dumpable && !less && target.user.are(user) && target.group.are(group))
    }

    /// Whether a process with these credentials may see and set the limits of one with `target`'s
    /// (prlimit(2)).
    pub fn may_limit(&self, target: &Credentials) -> bool {
        self.is_privileged() || (target.user.are(self.user.real) && target.group.are(self.group.real))
    }

    /// Whether a process with these credentials may set the priority and the processors of one with
    /// `target`'s (setpriority(2), sched_setaffinity(2)).
    pub fn may_schedule(&self, target: &Credentials) -> bool {
        let ours = self.user.effective;
        let same_user = ours == target.user.real || ours == target.user.effective;
        // One that has or can get back privileges that the caller cannot get is out of its reach.
        let reached = self.may_be_privileged() || !target.may_be_privileged();
        self.is_privileged() || (same_user && reached)
    }

    /// Whether the process has privileges, or may get them back.
    fn may_be_privileged(&self) -> bool {
        [self.user.real, self.user.effective, self.user.saved].contains(&0)
    }

    /// Whether a process with these credentials may signal one with `target`'s (kill(2)).
    pub fn may_signal(&self, target: &Credentials) -> bool {
        let ours = [self.user.real, self.user.effective];
        self.is_privileged() || ours.contains(&target.user.real) || ours.contains(&target.user.saved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(real: u32, effective: u32, saved: u32) -> Credentials {
        let user = Ids { real, effective, saved, file: effective };
        Credentials { user, group: Ids::all(50), groups: Arc::new([]), no_new_privileges: false }
    }

    #[test]
    fn setuid_drops_all_of_a_superusers_ids() {
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
    fn setreuid_moves_the_saved_id() {
        let start = user(1000, 500, 500);
        let swapped = start.set_real_effective_user(Some(500), Some(1000)).unwrap();
        assert_eq!(swapped.user, Ids { real: 500, effective: 1000, saved: 1000, file: 1000 });
        let to_real = user(1000, 500, 500).set_real_effective_user(None, Some(1000)).unwrap();
        assert_eq!(to_real.user.saved, 500);
        assert_eq!(user(1, 2, 3).set_real_effective_user(Some(3), None), Err(Error::EPERM));
        assert!(user(1, 2, 3).set_real_effective_user(None, Some(3)).is_ok());
    }

    #[test]
    fn setresuid_permutes() {
        let new = user(1, 2, 3).set_users([Some(3), Some(1), Some(2)]).unwrap();
        assert_eq!(new.user, Ids { real: 3, effective: 1, saved: 2, file: 1 });
        assert_eq!(user(1, 2, 3).set_users([None, Some(4), None]), Err(Error::EPERM));
        assert_eq!(user(1, 2, 3).set_users([None; 3]).unwrap().user, user(1, 2, 3).user);
    }

    #[test]
    fn exec_of_a_set_user_id_file() {
        let (new, secure) = user(1000, 1000, 1000).for_exec(Some(0), None, || false);
        assert_eq!(new.user, Ids { real: 1000, effective: 0, saved: 0, file: 0 });
        assert!(secure && new.is_privileged());
        let bound = Credentials { no_new_privileges: true, ..user(1000, 1000, 1000) };
        assert!(!bound.for_exec(Some(0), None, || false).0.is_privileged());
        assert!(!user(1, 1, 1).for_exec(None, None, || false).1);
        let (shared, secure) = user(1000, 1000, 1000).for_exec(Some(0), Some(0), || true);
        assert_eq!((shared, secure), (user(1000, 1000, 1000), false));
        let root = Credentials { user: Ids { real: 1000, ..Ids::all(0) }, ..Credentials::superuser() };
        assert!(root.for_exec(Some(0), None, || true).0.is_privileged(), "it could take them anyway");
        let bound = Credentials { no_new_privileges: true, ..root };
        assert!(!bound.for_exec(None, None, || false).0.is_privileged(), "what it had is given up, too");
    }

    #[test]
    fn signal_permission() {
        assert!(user(1000, 1000, 1000).may_signal(&user(1000, 0, 0)));
        assert!(user(1000, 1000, 1000).may_signal(&user(0, 0, 1000)));
        assert!(!user(1000, 1000, 1000).may_signal(&user(0, 1000, 0)));
        assert!(user(1000, 0, 0).may_signal(&user(7, 7, 7)));
    }

    #[test]
    fn file_ids_and_groups() {
        assert_eq!(user(1, 2, 3).set_file_user(3).user.file, 3);
        assert_eq!(user(1, 2, 3).set_file_user(9).user.file, 2);
        assert_eq!(user(1, 2, 3).set_groups(&[1]), Err(Error::EPERM));
        assert_eq!(&*Credentials::superuser().set_groups(&[4, 5]).unwrap().groups, &[4, 5]);
        assert_eq!(Credentials::superuser().set_groups(&[0; 65537]), Err(Error::EINVAL));
    }
}
