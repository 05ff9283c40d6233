//! Namespaces of users (user_namespaces(7)): which ids of the system a program has under other
//! numbers, and where its privileges apply.
//!
//! Credentials and files have the ids of the system. Only what a program says and sees is
//! translated, by the map of its namespace.

use super::{LEVEL_MAXIMUM, NAMESPACE_BYTES, USER, new_number};
use crate::account::{Account, Charge};
use crate::credentials::Credentials;
use crate::sync::SpinLock;
use crate::{Error, Privilege, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A range of ids that has other numbers in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first number in the namespace.
    pub inside: u32,
    /// The first number outside.
    pub outside: u32,
    /// How many ids there are.
    pub count: u32,
}

/// The ids that a namespace has. The numbers outside are those of the system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdMap(Vec<Range>);

impl IdMap {
    /// The most ranges of a map.
    pub const RANGES_MAXIMUM: usize = 340;

    /// A map of these ranges. `EINVAL` if there is none, or there are too many, or one is empty,
    /// ends after the last id, or overlaps another on either side.
    pub fn new(ranges: Vec<Range>) -> Result<IdMap> {
        if ranges.is_empty() || ranges.len() > IdMap::RANGES_MAXIMUM {
            return Err(Error::EINVAL);
        }
        let ends = |start: u32, count: u32| start.checked_add(count - 1).is_some_and(|last| last < u32::MAX);
        if ranges.iter().any(|r| r.count == 0 || !ends(r.inside, r.count) || !ends(r.outside, r.count)) {
            return Err(Error::EINVAL);
        }
        for start in [|range: &Range| range.inside, |range: &Range| range.outside] {
            let mut spans: Vec<_> = ranges.iter().map(|range| (start(range), range.count)).collect();
            spans.sort_unstable();
            if spans.windows(2).any(|pair| pair[0].0 + (pair[0].1 - 1) >= pair[1].0) {
                return Err(Error::EINVAL);
            }
        }
        Ok(IdMap(ranges))
    }

    /// The ranges of the map.
    pub fn ranges(&self) -> &[Range] {
        &self.0
    }

    fn moved(id: u32, from: u32, to: u32, count: u32) -> Option<u32> {
        id.checked_sub(from).filter(|distance| *distance < count).map(|distance| to + distance)
    }

    fn outside(&self, id: u32) -> Option<u32> {
        self.0.iter().find_map(|range| IdMap::moved(id, range.inside, range.outside, range.count))
    }

    fn inside(&self, id: u32) -> Option<u32> {
        self.0.iter().find_map(|range| IdMap::moved(id, range.outside, range.inside, range.count))
    }
}

/// Whether ids are those of users or of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdKind {
    /// Users.
    User,
    /// Groups.
    Group,
}

/// A namespace of users. The first one has all ids under their own numbers.
#[derive(Clone, Debug, Default)]
pub struct UserNamespace(Option<Arc<Inner>>);

struct Inner {
    number: u64,
    parent: UserNamespace,
    level: u32,
    /// The effective user and group of the process that made the namespace.
    owner: (u32, u32),
    /// Whether that process could have set privileges of files.
    may_set_file_privileges: bool,
    state: SpinLock<State>,
    _charge: Charge,
}

#[derive(Debug)]
struct State {
    users: IdMap,
    groups: IdMap,
    /// Whether setgroups(2) is allowed once there is a map of groups.
    allows_groups: bool,
}

/// A process that has opened the file of a map, which it then writes. What it may write follows
/// from what it was when it opened the file, and from what the writer is.
pub struct MapWriter<'a> {
    /// The credentials with which the file was opened.
    pub opener: &'a Credentials,
    /// The credentials of the process that writes.
    pub writer: &'a Credentials,
}

impl core::fmt::Debug for Inner {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}", self.number)
    }
}

impl PartialEq for UserNamespace {
    fn eq(&self, other: &UserNamespace) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Eq for UserNamespace {}

impl UserNamespace {
    /// The first namespace of the system.
    pub const FIRST: UserNamespace = UserNamespace(None);
    /// The number of ids that have no number in a namespace.
    pub const OVERFLOW: u32 = 65534;

    /// Makes a namespace as a process with these credentials may: it has no ids yet. `ENOSPC` if it
    /// would be too deep, `EPERM` if the process has ids that its own namespace has not, `ENOMEM`.
    pub fn make(credentials: &Credentials, account: &Arc<Account>) -> Result<UserNamespace> {
        let parent = credentials.namespace.clone();
        let owner = (credentials.user.effective, credentials.group.effective);
        if parent.level() >= LEVEL_MAXIMUM {
            return Err(Error::ENOSPC);
        }
        if !parent.has(IdKind::User, owner.0) || !parent.has(IdKind::Group, owner.1) {
            return Err(Error::EPERM);
        }
        let charge = account.charge_memory(NAMESPACE_BYTES).ok_or(Error::ENOMEM)?;
        let state = State {
            users: IdMap::default(),
            groups: IdMap::default(),
            allows_groups: parent.allows_groups(),
        };
        Ok(UserNamespace(Some(Arc::new(Inner {
            number: new_number(),
            level: parent.level() + 1,
            may_set_file_privileges: credentials.privileges.effective.has(Privilege::SetFilePrivileges),
            parent,
            owner,
            state: SpinLock::new(state),
            _charge: charge,
        }))))
    }

    /// Whether this is the first namespace of the system.
    pub fn is_first(&self) -> bool {
        self.0.is_none()
    }

    /// The number of the namespace, which no other one has.
    pub fn number(&self) -> u64 {
        self.0.as_ref().map_or(USER, |inner| inner.number)
    }

    /// How many namespaces this one is in.
    pub fn level(&self) -> u32 {
        self.0.as_ref().map_or(0, |inner| inner.level)
    }

    /// The namespace in which this one is; `None` for the first one.
    pub fn parent(&self) -> Option<&UserNamespace> {
        self.0.as_ref().map(|inner| &inner.parent)
    }

    /// The user that made the namespace.
    pub fn owner(&self) -> u32 {
        self.0.as_ref().map_or(0, |inner| inner.owner.0)
    }

    /// Whether this is `other`, or is in it, directly or through others.
    pub fn is_within(&self, other: &UserNamespace) -> bool {
        let mut here = Some(self);
        while let Some(namespace) = here {
            if namespace == other {
                return true;
            }
            here = namespace.parent();
        }
        false
    }

    /// Whether a thread of this namespace with the effective user `user` has a privilege over what
    /// belongs to `other`: if `has_own` says that it has the privilege, over this namespace and
    /// those in it; if it has made a namespace from this one, over that in any case.
    pub fn gives_in(&self, other: &UserNamespace, user: u32, has_own: impl FnOnce() -> bool) -> bool {
        let mut here = other;
        loop {
            if here == self {
                return has_own();
            }
            match &here.0 {
                Some(inner) if inner.parent == *self && inner.owner.0 == user => return true,
                Some(inner) => here = &inner.parent,
                None => return false,
            }
        }
    }

    /// The id of the system that has a number in the namespace.
    pub fn id(&self, kind: IdKind, number: u32) -> Option<u32> {
        match &self.0 {
            None => Some(number),
            Some(inner) => inner.state.lock().map(kind).outside(number),
        }
    }

    /// The number that an id of the system has in the namespace.
    pub fn number_of(&self, kind: IdKind, id: u32) -> Option<u32> {
        match &self.0 {
            None => Some(id),
            Some(inner) => inner.state.lock().map(kind).inside(id),
        }
    }

    /// Whether an id of the system has a number in the namespace.
    pub fn has(&self, kind: IdKind, id: u32) -> bool {
        self.number_of(kind, id).is_some()
    }

    /// The number under which programs of the namespace see a user of the system.
    pub fn shown_user(&self, id: u32) -> u32 {
        self.number_of(IdKind::User, id).unwrap_or(UserNamespace::OVERFLOW)
    }

    /// The number under which programs of the namespace see a group of the system.
    pub fn shown_group(&self, id: u32) -> u32 {
        self.number_of(IdKind::Group, id).unwrap_or(UserNamespace::OVERFLOW)
    }

    /// The ranges of ids that the namespace has, as those of `viewer` see them: with the numbers
    /// outside of the namespace in which it is if they are in it themselves. Numbers that `viewer`
    /// has not are the largest.
    pub fn ranges(&self, kind: IdKind, viewer: &UserNamespace) -> Vec<Range> {
        let Some(inner) = &self.0 else {
            return alloc::vec![Range { inside: 0, outside: 0, count: u32::MAX }];
        };
        let lower = if viewer == self { &inner.parent } else { viewer };
        let ranges = inner.state.lock().map(kind).0.clone();
        let shown = |range: Range| Range {
            outside: lower.number_of(kind, range.outside).unwrap_or(u32::MAX),
            ..range
        };
        ranges.into_iter().map(shown).collect()
    }

    /// Sets which ids the namespace has, once: the numbers outside of `ranges` are those of the
    /// namespace in which it is (user_namespaces(7)). `EPERM`, `EINVAL`.
    pub fn set_map(&self, kind: IdKind, ranges: Vec<Range>, by: &MapWriter<'_>) -> Result<()> {
        let inner = self.0.as_ref().ok_or(Error::EPERM)?;
        let is_near = by.opener.namespace == *self || by.opener.namespace == inner.parent;
        if !is_near || !by.opener.has_in(self, Privilege::Administrator) {
            return Err(Error::EPERM);
        }
        let is_set = |state: &State| !state.map(kind).0.is_empty();
        if is_set(&inner.state.lock()) {
            return Err(Error::EPERM);
        }
        let map = IdMap::new(ranges)?;
        if !self.may_map(inner, kind, &map, by) {
            return Err(Error::EPERM);
        }
        let mut translated = Vec::new();
        translated.try_reserve_exact(map.0.len()).map_err(|_| Error::ENOMEM)?;
        for range in &map.0 {
            let outside = inner.parent.whole(kind, range).ok_or(Error::EPERM)?;
            translated.push(Range { outside, ..*range });
        }
        let mut state = inner.state.lock();
        // Another thread may have set it meanwhile.
        if is_set(&state) {
            return Err(Error::EPERM);
        }
        *state.map_mut(kind) = IdMap(translated);
        Ok(())
    }

    /// The first id of the system of a range of numbers of this namespace, if it has them all and
    /// they are adjacent.
    fn whole(&self, kind: IdKind, range: &Range) -> Option<u32> {
        let first = self.id(kind, range.outside)?;
        match &self.0 {
            None => Some(first),
            Some(inner) => {
                let state = inner.state.lock();
                let holds = |own: &&Range| {
                    IdMap::moved(range.outside, own.inside, 0, own.count)
                        .is_some_and(|distance| own.count - distance >= range.count)
                };
                state.map(kind).0.iter().find(holds).map(|_| first)
            }
        }
    }

    fn may_map(&self, inner: &Inner, kind: IdKind, map: &IdMap, by: &MapWriter<'_>) -> bool {
        // A process that maps the superuser could give files privileges that count outside.
        let maps_superuser = map.outside_includes(0);
        if kind == IdKind::User && maps_superuser {
            let may = match by.opener.namespace == *self {
                true => inner.may_set_file_privileges,
                false => by.opener.has_in(&inner.parent, Privilege::SetFilePrivileges),
            };
            if !may {
                return false;
            }
        }
        // The owner may have its own id in the namespace, under any number.
        if let [Range { outside, count: 1, .. }] = map.0[..]
            && inner.owner.0 == by.opener.user.effective
        {
            let own = inner.parent.id(kind, outside);
            match kind {
                IdKind::User if own == Some(by.opener.user.effective) => return true,
                IdKind::Group if !self.allows_groups() && own == Some(by.opener.group.effective) => {
                    return true;
                }
                _ => {}
            }
        }
        let needed = match kind {
            IdKind::User => Privilege::SetUser,
            IdKind::Group => Privilege::SetGroup,
        };
        by.writer.has_in(&inner.parent, needed) && by.opener.has_in(&inner.parent, needed)
    }

    /// Whether programs of the namespace may change their supplementary groups, as far as they have
    /// the privilege.
    pub fn allows_groups(&self) -> bool {
        self.0.as_ref().is_none_or(|inner| inner.state.lock().allows_groups)
    }

    /// The same, and the namespace has groups.
    pub fn may_set_groups(&self) -> bool {
        self.0.as_ref().is_none_or(|inner| {
            let state = inner.state.lock();
            state.allows_groups && !state.groups.0.is_empty()
        })
    }

    /// Allows or forbids changes of supplementary groups in the namespace. They cannot be allowed
    /// again, nor forbidden once the namespace has groups. `EPERM`.
    pub fn set_allows_groups(&self, allows: bool) -> Result<()> {
        let Some(inner) = &self.0 else {
            return if allows { Ok(()) } else { Err(Error::EPERM) };
        };
        let mut state = inner.state.lock();
        let may = if allows { state.allows_groups } else { state.groups.0.is_empty() };
        if !may {
            return Err(Error::EPERM);
        }
        state.allows_groups = allows;
        Ok(())
    }
}

impl IdMap {
    fn outside_includes(&self, id: u32) -> bool {
        self.inside(id).is_some()
    }
}

impl State {
    fn map(&self, kind: IdKind) -> &IdMap {
        match kind {
            IdKind::User => &self.users,
            IdKind::Group => &self.groups,
        }
    }

    fn map_mut(&mut self, kind: IdKind) -> &mut IdMap {
        match kind {
            IdKind::User => &mut self.users,
            IdKind::Group => &mut self.groups,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Settings;
    use crate::credentials::Ids;

    fn account() -> Arc<Account> {
        Account::new(1000, Settings::new(1 << 20))
    }

    fn user(id: u32) -> Credentials {
        Credentials::executed_as(Ids::all(id), Ids::all(id))
    }

    fn range(inside: u32, outside: u32, count: u32) -> Range {
        Range { inside, outside, count }
    }

    /// A process of user 1000 in a namespace that it has made.
    fn inside(of: &Credentials) -> Credentials {
        let namespace = UserNamespace::make(of, &account()).unwrap();
        of.in_namespace(namespace)
    }

    fn set(by: &Credentials, kind: IdKind, ranges: &[Range]) -> Result<()> {
        by.namespace.set_map(kind, ranges.to_vec(), &MapWriter { opener: by, writer: by })
    }

    #[test]
    fn a_map_is_refused_if_it_is_empty_or_overlaps_or_ends_after_the_last_id() {
        for bad in [
            &[][..],
            &[range(0, 1, 0)],
            &[range(0, 5, 10), range(9, 100, 1)],
            &[range(0, 5, 10), range(100, 14, 1)],
            &[range(u32::MAX, 0, 1)],
            &[range(0, u32::MAX - 1, 2)],
            &[range(0, 0, u32::MAX), range(5, 5, 1)],
        ] {
            assert_eq!(IdMap::new(bad.to_vec()), Err(Error::EINVAL), "{bad:?}");
        }
        let many: Vec<_> = (0..341).map(|n| range(n, n + 1000, 1)).collect();
        assert_eq!(IdMap::new(many.clone()), Err(Error::EINVAL));
        assert!(IdMap::new(many[1..].to_vec()).is_ok());
        assert!(IdMap::new(alloc::vec![range(0, 0, u32::MAX)]).is_ok());
    }

    #[test]
    fn a_user_has_its_own_id_in_its_namespace_and_no_other() {
        let own = inside(&user(1000));
        let namespace = &own.namespace;
        assert_eq!(namespace.shown_user(1000), UserNamespace::OVERFLOW, "there is no map yet");
        for bad in [range(0, 0, 1), range(0, 1001, 1), range(0, 1000, 2)] {
            assert_eq!(set(&own, IdKind::User, &[bad]), Err(Error::EPERM), "{bad:?}");
        }
        assert_eq!(set(&own, IdKind::User, &[range(0, 1000, 1)]), Ok(()));
        assert_eq!(set(&own, IdKind::User, &[range(0, 1000, 1)]), Err(Error::EPERM), "once only");
        assert_eq!((namespace.shown_user(1000), namespace.shown_user(0)), (0, UserNamespace::OVERFLOW));
        assert_eq!((namespace.id(IdKind::User, 0), namespace.id(IdKind::User, 1000)), (Some(1000), None));
    }

    #[test]
    fn groups_are_mapped_by_their_owner_once_setgroups_is_forbidden() {
        let own = inside(&user(1000));
        assert_eq!(set(&own, IdKind::Group, &[range(0, 1000, 1)]), Err(Error::EPERM));
        assert!(own.namespace.allows_groups() && !own.namespace.may_set_groups());
        own.namespace.set_allows_groups(false).unwrap();
        assert_eq!(own.namespace.set_allows_groups(true), Err(Error::EPERM));
        assert_eq!(set(&own, IdKind::Group, &[range(0, 1000, 1)]), Ok(()));
        assert!(!own.namespace.may_set_groups());
        assert_eq!(own.namespace.set_allows_groups(false), Err(Error::EPERM), "there are groups");
    }

    #[test]
    fn the_superuser_maps_any_ids_and_they_nest() {
        let root = Credentials::superuser();
        let namespace = UserNamespace::make(&user(1000), &account()).unwrap();
        let by = MapWriter { opener: &root, writer: &root };
        namespace.set_map(IdKind::User, alloc::vec![range(0, 1000, 1), range(1, 5000, 99)], &by).unwrap();
        namespace.set_map(IdKind::Group, alloc::vec![range(0, 0, 1)], &by).unwrap();
        assert!(namespace.may_set_groups());
        // A user that is the superuser of it makes one in it.
        let own = Credentials { user: Ids::all(1000), group: Ids::all(0), ..root }.in_namespace(namespace);
        let below = inside(&own);
        assert_eq!(set(&below, IdKind::User, &[range(0, 1, 100)]), Err(Error::EPERM), "one of them is not");
        assert_eq!(set(&below, IdKind::User, &[range(0, 0, 2)]), Err(Error::EPERM), "they are not adjacent");
        let parent = MapWriter { opener: &own, writer: &own };
        let ranges = alloc::vec![range(7, 1, 99)];
        assert_eq!(below.namespace.set_map(IdKind::User, ranges, &parent), Ok(()));
        assert_eq!(below.namespace.id(IdKind::User, 8), Some(5001));
        assert_eq!(below.namespace.ranges(IdKind::User, &below.namespace), [range(7, 1, 99)]);
        assert_eq!(below.namespace.ranges(IdKind::User, &Default::default()), [range(7, 5000, 99)]);
    }

    #[test]
    fn the_id_0_is_mapped_only_by_a_process_that_could_set_privileges_of_files() {
        let mut weak = Credentials::superuser();
        let all = weak.privileges.permitted;
        let less = all.without(crate::Privileges::NONE.with(Privilege::SetFilePrivileges));
        weak.privileges.effective = less;
        weak.privileges.permitted = less;
        let own = inside(&weak);
        assert_eq!(set(&own, IdKind::User, &[range(0, 0, 1)]), Err(Error::EPERM));
        assert_eq!(set(&inside(&Credentials::superuser()), IdKind::User, &[range(0, 0, 1)]), Ok(()));
    }

    #[test]
    fn strangers_and_grandchildren_write_no_map() {
        let own = inside(&user(1000));
        let stranger = user(1001);
        let by = MapWriter { opener: &stranger, writer: &stranger };
        let ranges = alloc::vec![range(0, 1001, 1)];
        assert_eq!(own.namespace.set_map(IdKind::User, ranges.clone(), &by), Err(Error::EPERM));
        set(&own, IdKind::User, &[range(0, 1000, 1)]).unwrap();
        own.namespace.set_allows_groups(false).unwrap();
        set(&own, IdKind::Group, &[range(0, 1000, 1)]).unwrap();
        let middle = inside(&own);
        set(&middle, IdKind::User, &[range(0, 0, 1)]).unwrap();
        set(&middle, IdKind::Group, &[range(0, 0, 1)]).unwrap();
        let below = inside(&middle);
        assert_eq!(UserNamespace::default().set_map(IdKind::User, ranges, &by), Err(Error::EPERM));
        let by = MapWriter { opener: &below, writer: &below };
        assert_eq!(
            middle.namespace.set_map(IdKind::User, alloc::vec![range(1, 0, 1)], &by),
            Err(Error::EPERM)
        );
        let other = inside(&own).namespace;
        assert_eq!(other.set_map(IdKind::User, alloc::vec![range(0, 0, 1)], &by), Err(Error::EPERM));
    }

    #[test]
    fn namespaces_have_a_deepest_level_and_are_charged() {
        let root = Credentials::superuser();
        let mut own = root.clone();
        for _ in 0..LEVEL_MAXIMUM {
            own = inside(&own);
            set(&own, IdKind::User, &[range(0, 0, 1)]).unwrap();
            own.namespace.set_allows_groups(false).ok();
            set(&own, IdKind::Group, &[range(0, 0, 1)]).unwrap();
        }
        assert_eq!(UserNamespace::make(&own, &account()).map(drop), Err(Error::ENOSPC));
        assert!(own.namespace.is_within(&root.namespace) && !root.namespace.is_within(&own.namespace));
        let poor = Account::new(1000, Settings::new(2 * NAMESPACE_BYTES));
        let first = UserNamespace::make(&user(1000), &poor).unwrap();
        assert_eq!(UserNamespace::make(&user(1000), &poor).map(drop), Err(Error::ENOMEM));
        drop(first);
        assert!(UserNamespace::make(&user(1000), &poor).is_ok());
    }
}
