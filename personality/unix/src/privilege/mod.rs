//! Privileges (POSIX: "appropriate privileges"): what single ones allow, the sets of them that a
//! thread has, and how these change with user ids and by exec.

mod file;

pub use file::{FilePrivileges, PrivilegeAttribute};

use crate::credentials::Ids;
use crate::{Error, Result};

/// A privilege that an operation needs, named by what it allows. The numbers are those of a front
/// end, which so has nothing to translate. Sets also hold numbers that no operation asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Privilege {
    /// May change the owner of files.
    Chown = 0,
    /// May ignore read, write and search permission.
    Override = 1,
    /// May ignore read permission of files, and read and search permission of directories.
    ReadSearch = 2,
    /// May act as the owner of any file.
    Owner = 3,
    /// May keep set-user-id and set-group-id bits of files.
    SetId = 4,
    /// May send signals to any process.
    Kill = 5,
    /// May take any group ids.
    SetGroup = 6,
    /// May take any user ids, and send any in credentials.
    SetUser = 7,
    /// May add to what exec gives, and lock how ids give privileges.
    SetPrivileges = 8,
    /// May bind sockets to ports below 1024.
    LowPorts = 10,
    /// May set options of sockets that affect others, and configure interfaces and routes.
    Network = 12,
    /// May make sockets that send and receive packets of any kind.
    RawNetwork = 13,
    /// May lock any amount of memory.
    LockMemory = 14,
    /// May use System V objects of others.
    OwnObjects = 15,
    /// May change the root directory.
    ChangeRoot = 18,
    /// May inspect any process.
    Inspect = 19,
    /// May mount file systems, set trusted attributes and similar.
    Administrator = 21,
    /// May end and restart the system.
    Restart = 22,
    /// May raise priorities and schedule any process.
    Schedule = 23,
    /// May exceed resource limits.
    Resource = 24,
    /// May set the clock of the day.
    Clock = 25,
    /// May hang terminals up.
    Terminal = 26,
    /// May make device nodes.
    MakeNode = 27,
    /// May set the privileges that files give.
    SetFilePrivileges = 31,
    /// May read the system's log.
    Log = 34,
}

/// A set of privileges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Privileges(u64);

impl Privileges {
    /// How many privileges there are.
    pub const COUNT: u32 = 41;
    /// The empty set.
    pub const NONE: Privileges = Privileges(0);
    /// Every privilege.
    pub const ALL: Privileges = Privileges((1 << Privileges::COUNT) - 1);
    /// Those that follow the file-system user id: about owners and permissions of files, making
    /// nodes, and two that no operation asks for (9: immutable files, 32: mandatory labels).
    const OF_FILES: Privileges = Privileges(0b1_1111 | 1 << 9 | 1 << 27 | 1 << 32);

    /// The set with these bits; bits that are no privileges are dropped.
    pub fn from_bits(bits: u64) -> Privileges {
        Privileges(bits & Privileges::ALL.0)
    }

    /// The set that has number `number` alone. `EINVAL` if there is no such privilege.
    pub fn numbered(number: u64) -> Result<Privileges> {
        if number < Privileges::COUNT.into() { Ok(Privileges(1 << number)) } else { Err(Error::EINVAL) }
    }

    /// The set as bits.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Whether `privilege` is in the set.
    pub fn has(self, privilege: Privilege) -> bool {
        self.0 & (1 << privilege as u8) != 0
    }

    /// This set with `privilege` added.
    pub fn with(self, privilege: Privilege) -> Privileges {
        Privileges(self.0 | 1 << privilege as u8)
    }

    /// What is in this set or in `other`.
    pub fn or(self, other: Privileges) -> Privileges {
        Privileges(self.0 | other.0)
    }

    /// What is in both sets.
    pub fn and(self, other: Privileges) -> Privileges {
        Privileges(self.0 & other.0)
    }

    /// What is in this set and not in `other`.
    pub fn without(self, other: Privileges) -> Privileges {
        Privileges(self.0 & !other.0)
    }

    /// Whether everything in this set is in `other`.
    pub fn is_within(self, other: Privileges) -> bool {
        self.without(other) == Privileges::NONE
    }
}

bitflags::bitflags! {
    /// How user ids give and take privileges (prctl(2), PR_SET_SECUREBITS). Each bit has a lock
    /// next to it, after which it does not change any more.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SecureBits: u32 {
        /// Exec gives the user id 0 nothing.
        const NO_ROOT = 1;
        /// A change of user ids changes no privileges.
        const NO_FIXUP = 1 << 2;
        /// Privileges stay permitted when no user id is 0 any more; exec clears this.
        const KEEP = 1 << 4;
        /// No privilege becomes ambient.
        const NO_AMBIENT_RAISE = 1 << 6;
        /// The locks of these four.
        const LOCKS = 0b1010_1010;
    }
}

/// The sets of privileges of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrivilegeSets {
    /// What the thread can make effective.
    pub permitted: Privileges,
    /// What operations check.
    pub effective: Privileges,
    /// What exec of a file that names them as inheritable keeps.
    pub inheritable: Privileges,
    /// What exec gives at most.
    pub bounding: Privileges,
    /// What exec of a file without privileges keeps.
    pub ambient: Privileges,
    /// How these change with user ids.
    pub secure: SecureBits,
}

impl PrivilegeSets {
    /// The sets of the first process.
    pub const ALL: PrivilegeSets = PrivilegeSets {
        permitted: Privileges::ALL,
        effective: Privileges::ALL,
        inheritable: Privileges::NONE,
        bounding: Privileges::ALL,
        ambient: Privileges::NONE,
        secure: SecureBits::empty(),
    };

    /// The sets after the user ids have changed from `old` to `new`.
    pub(crate) fn after_user_change(mut self, old: Ids, new: Ids) -> PrivilegeSets {
        if self.secure.contains(SecureBits::NO_FIXUP) {
            return self;
        }
        if old.include_superuser() && !new.include_superuser() {
            if !self.secure.contains(SecureBits::KEEP) {
                self.permitted = Privileges::NONE;
                self.effective = Privileges::NONE;
            }
            self.ambient = Privileges::NONE;
        }
        match (old.effective, new.effective) {
            (0, 1..) => self.effective = Privileges::NONE,
            (1.., 0) => self.effective = self.permitted,
            _ => {}
        }
        self
    }

    /// The sets after the file-system user id alone has changed from `old` to `new`.
    pub(crate) fn after_file_user_change(mut self, old: u32, new: u32) -> PrivilegeSets {
        if self.secure.contains(SecureBits::NO_FIXUP) {
            return self;
        }
        match (old, new) {
            (0, 1..) => self.effective = self.effective.without(Privileges::OF_FILES),
            (1.., 0) => self.effective = self.effective.or(self.permitted.and(Privileges::OF_FILES)),
            _ => {}
        }
        self
    }

    /// The sets after exec with the user ids `user`, and whether they all begin as effective.
    /// `gains_ids` says that the file's set-id bits gave other ids than the real ones, `file` what
    /// privileges the file gives itself.
    pub(crate) fn for_exec(
        mut self,
        user: Ids,
        gains_ids: bool,
        file: Option<FilePrivileges>,
    ) -> (PrivilegeSets, bool) {
        if gains_ids || file.is_some() {
            self.ambient = Privileges::NONE;
        }
        let mut given = file.map_or(Privileges::NONE, |file| file.given_to(&self));
        let mut all_effective = file.is_some_and(|file| file.effective);
        // A file that names its privileges has only these, though it is the superuser's with the
        // set-user-id bit.
        let named = file.is_some() && user.effective == 0 && user.real != 0;
        if !self.secure.contains(SecureBits::NO_ROOT) && !named {
            if user.real == 0 || user.effective == 0 {
                given = self.inheritable.or(self.bounding);
            }
            all_effective |= user.effective == 0;
        }
        self.permitted = given.or(self.ambient);
        self.effective = if all_effective { self.permitted } else { self.ambient };
        self.secure.remove(SecureBits::KEEP);
        (self, all_effective)
    }

    /// The sets after capset(2). `EPERM` for privileges that the thread may not have.
    pub fn set(
        mut self,
        effective: Privileges,
        permitted: Privileges,
        inheritable: Privileges,
    ) -> Result<PrivilegeSets> {
        let any_inheritable = self.effective.has(Privilege::SetPrivileges);
        let allowed = (any_inheritable || inheritable.is_within(self.inheritable.or(self.permitted)))
            && inheritable.is_within(self.inheritable.or(self.bounding))
            && permitted.is_within(self.permitted)
            && effective.is_within(permitted);
        if !allowed {
            return Err(Error::EPERM);
        }
        (self.effective, self.permitted, self.inheritable) = (effective, permitted, inheritable);
        self.ambient = self.ambient.and(permitted).and(inheritable);
        Ok(self)
    }

    /// The sets after `privilege` is taken from what exec gives. `EPERM`.
    pub fn drop_bounding(self, privilege: Privileges) -> Result<PrivilegeSets> {
        if !self.effective.has(Privilege::SetPrivileges) {
            return Err(Error::EPERM);
        }
        Ok(PrivilegeSets { bounding: self.bounding.without(privilege), ..self })
    }

    /// The sets after `privilege` has become ambient. `EPERM` unless it is permitted and
    /// inheritable, or if that is locked out.
    pub fn raise_ambient(self, privilege: Privileges) -> Result<PrivilegeSets> {
        let possible = privilege.is_within(self.permitted.and(self.inheritable));
        if !possible || self.secure.contains(SecureBits::NO_AMBIENT_RAISE) {
            return Err(Error::EPERM);
        }
        Ok(PrivilegeSets { ambient: self.ambient.or(privilege), ..self })
    }

    /// The sets after PR_SET_KEEPCAPS. `EPERM` if the bit is locked.
    pub fn set_keep(mut self, keep: bool) -> Result<PrivilegeSets> {
        if self.secure.bits() & SecureBits::KEEP.bits() << 1 != 0 {
            return Err(Error::EPERM);
        }
        self.secure.set(SecureBits::KEEP, keep);
        Ok(self)
    }

    /// The sets after PR_SET_SECUREBITS. `EPERM` for a locked bit, for a lock that is to open, for
    /// bits that are not known, and without privilege.
    pub fn set_secure(self, bits: u32) -> Result<PrivilegeSets> {
        let secure = SecureBits::from_bits(bits).ok_or(Error::EPERM)?;
        let locks = self.secure & SecureBits::LOCKS;
        let changed = (secure ^ self.secure).bits();
        let is_locked = changed & locks.bits() >> 1 != 0 || !secure.contains(locks);
        if is_locked || !self.effective.has(Privilege::SetPrivileges) {
            return Err(Error::EPERM);
        }
        Ok(PrivilegeSets { secure, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: Ids = Ids { real: 1000, effective: 1000, saved: 1000, file: 1000 };

    fn ids(real: u32, effective: u32, saved: u32) -> Ids {
        Ids { real, effective, saved, file: effective }
    }

    fn after_exec(
        sets: PrivilegeSets,
        user: Ids,
        gains_ids: bool,
        file: Option<FilePrivileges>,
    ) -> PrivilegeSets {
        sets.for_exec(user, gains_ids, file).0
    }

    fn only(privilege: Privilege) -> Privileges {
        Privileges::NONE.with(privilege)
    }

    #[test]
    fn leaving_the_superusers_ids_takes_privileges_unless_they_are_kept() {
        let root = Ids::all(0);
        let left = PrivilegeSets::ALL.after_user_change(root, USER);
        assert_eq!((left.permitted, left.effective), (Privileges::NONE, Privileges::NONE));
        let kept = PrivilegeSets::ALL.set_keep(true).unwrap().after_user_change(root, USER);
        assert_eq!((kept.permitted, kept.effective), (Privileges::ALL, Privileges::NONE));
        let fixed = PrivilegeSets::ALL.set_secure(SecureBits::NO_FIXUP.bits()).unwrap();
        assert_eq!(fixed.after_user_change(root, USER), fixed);
        // With a saved id of 0 they stay permitted, and come back with the effective id.
        let away = PrivilegeSets::ALL.after_user_change(root, ids(1000, 1000, 0));
        assert_eq!((away.permitted, away.effective), (Privileges::ALL, Privileges::NONE));
        let back = away.after_user_change(ids(1000, 1000, 0), ids(1000, 0, 0));
        assert_eq!(back.effective, Privileges::ALL);
    }

    #[test]
    fn the_file_system_id_has_the_privileges_about_files() {
        let away = PrivilegeSets::ALL.after_file_user_change(0, 1000);
        assert!(!away.effective.has(Privilege::Override) && away.effective.has(Privilege::Kill));
        assert!(!away.effective.has(Privilege::MakeNode));
        assert_eq!(away.after_file_user_change(1000, 0), PrivilegeSets::ALL);
    }

    #[test]
    fn exec_gives_the_superuser_what_is_in_the_bounding_set() {
        let bound = PrivilegeSets::ALL.drop_bounding(only(Privilege::Kill)).unwrap();
        assert!(bound.effective.has(Privilege::Kill), "until exec");
        let root = after_exec(bound, Ids::all(0), false, None);
        assert!(!root.effective.has(Privilege::Kill) && root.effective.has(Privilege::Chown));
        // The real id alone makes them permitted only.
        let real = after_exec(bound, ids(0, 1000, 1000), false, None);
        assert_eq!((real.permitted, real.effective), (root.permitted, Privileges::NONE));
        let user = after_exec(bound, USER, false, None);
        assert_eq!((user.permitted, user.effective), (Privileges::NONE, Privileges::NONE));
        let plain = PrivilegeSets::ALL.set_secure(SecureBits::NO_ROOT.bits()).unwrap();
        assert_eq!(after_exec(plain, Ids::all(0), false, None).permitted, Privileges::NONE);
    }

    #[test]
    fn ambient_privileges_pass_exec_of_a_file_without_set_id_bits() {
        let kill = only(Privilege::Kill);
        assert_eq!(PrivilegeSets::ALL.raise_ambient(kill), Err(Error::EPERM), "it is not inheritable");
        let sets = PrivilegeSets::ALL.set(Privileges::ALL, Privileges::ALL, kill).unwrap();
        let sets = sets.set_keep(true).unwrap().after_user_change(Ids::all(0), USER);
        let raised = sets.raise_ambient(kill).unwrap();
        let executed = after_exec(raised, USER, false, None);
        assert_eq!((executed.permitted, executed.effective, executed.ambient), (kill, kill, kill));
        assert!(!executed.secure.contains(SecureBits::KEEP));
        assert_eq!(after_exec(raised, ids(1000, 1001, 1001), true, None).effective, Privileges::NONE);
        // What is no longer permitted is no longer ambient.
        assert_eq!(executed.set(Privileges::NONE, Privileges::NONE, kill).unwrap().ambient, Privileges::NONE);
        let locked = sets.set(Privileges::ALL, Privileges::ALL, kill).unwrap();
        let locked = locked.set_secure(SecureBits::NO_AMBIENT_RAISE.bits()).unwrap();
        assert_eq!(locked.raise_ambient(kill), Err(Error::EPERM));
    }

    #[test]
    fn a_file_gives_the_privileges_that_it_names() {
        let (kill, chown, none) = (only(Privilege::Kill), only(Privilege::Chown), Privileges::NONE);
        let user = PrivilegeSets::ALL.after_user_change(Ids::all(0), USER);
        let file = FilePrivileges { permitted: kill, inheritable: chown, effective: true };
        let (new, effective) = user.for_exec(USER, false, Some(file));
        assert_eq!((new.permitted, new.effective, effective), (kill, kill, true));
        let waiting = FilePrivileges { effective: false, ..file };
        assert_eq!(after_exec(user, USER, false, Some(waiting)).effective, none, "the program makes them so");
        let inheriting = PrivilegeSets { inheritable: chown, ..user };
        assert_eq!(after_exec(inheriting, USER, false, Some(file)).effective, kill.or(chown));
        let bound = PrivilegeSets { bounding: chown, ..user };
        assert_eq!(after_exec(bound, USER, false, Some(file)).permitted, none);
    }

    #[test]
    fn a_file_that_names_its_privileges_ends_ambient_ones_and_limits_a_superusers_program() {
        let (kill, chown) = (only(Privilege::Kill), only(Privilege::Chown));
        let file = FilePrivileges { permitted: kill, inheritable: Privileges::NONE, effective: true };
        let ambient =
            PrivilegeSets { permitted: chown, inheritable: chown, ambient: chown, ..PrivilegeSets::ALL };
        let new = after_exec(ambient, USER, false, Some(file));
        assert_eq!((new.permitted, new.ambient), (kill, Privileges::NONE));
        assert_eq!(after_exec(PrivilegeSets::ALL, ids(1000, 0, 0), true, Some(file)).permitted, kill);
        assert_eq!(after_exec(PrivilegeSets::ALL, Ids::all(0), false, Some(file)).permitted, Privileges::ALL);
    }

    #[test]
    fn sets_shrink_and_do_not_grow() {
        let (none, kill) = (Privileges::NONE, only(Privilege::Kill));
        let less = PrivilegeSets::ALL.set(kill, kill, none).unwrap();
        assert_eq!(less.set(Privileges::ALL, Privileges::ALL, none), Err(Error::EPERM));
        assert_eq!(less.set(none, none, none).unwrap().set(kill, none, none), Err(Error::EPERM));
        assert!(less.set(none, kill, kill).is_ok(), "what is permitted can become inheritable");
        assert_eq!(less.set(kill, kill, only(Privilege::Chown)), Err(Error::EPERM));
        assert_eq!(less.drop_bounding(kill), Err(Error::EPERM));
        let bound = PrivilegeSets::ALL.drop_bounding(kill).unwrap();
        assert_eq!(bound.set(none, none, kill), Err(Error::EPERM));
    }

    #[test]
    fn a_locked_bit_stays_as_it_is() {
        let lock = SecureBits::KEEP.bits() << 1;
        let locked = PrivilegeSets::ALL.set_secure(lock).unwrap();
        assert_eq!(locked.set_keep(true), Err(Error::EPERM));
        assert_eq!(locked.set_secure(lock | SecureBits::KEEP.bits()), Err(Error::EPERM));
        assert_eq!(locked.set_secure(0), Err(Error::EPERM));
        assert!(locked.set_secure(lock | SecureBits::NO_ROOT.bits()).is_ok());
        assert_eq!(locked.set_secure(1 << 8), Err(Error::EPERM));
    }
}
