//! The identity with which a file operation is checked: its user, groups and privileges.

use crate::namespace::{IdKind, UserNamespace};
use crate::vfs::Metadata;
use crate::{Privilege, Privileges};
use alloc::sync::Arc;

/// The ids and privileges that permission checks use: the file-system ids of credentials, or the
/// real ones for access(2). It is a snapshot, which is cheap to clone.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The user id that is checked.
    pub user: u32,
    /// The group id that is checked.
    pub group: u32,
    /// The supplementary groups that are checked.
    pub groups: Arc<[u32]>,
    privileges: Privileges,
    namespace: UserNamespace,
}

impl Identity {
    /// An identity without privileges.
    pub fn new(user: u32, group: u32, groups: Arc<[u32]>) -> Identity {
        Identity { user, group, groups, privileges: Privileges::NONE, namespace: UserNamespace::default() }
    }

    /// The identity of the superuser: user and group 0 with every privilege.
    pub fn superuser() -> Identity {
        Identity::new(0, 0, Arc::new([])).with_privileges(Privileges::ALL)
    }

    /// This identity with `privilege` added.
    pub fn with(mut self, privilege: Privilege) -> Identity {
        self.privileges = self.privileges.with(privilege);
        self
    }

    /// This identity with exactly these privileges.
    pub fn with_privileges(self, privileges: Privileges) -> Identity {
        Identity { privileges, ..self }
    }

    /// This identity in a namespace of users, where its privileges apply.
    pub fn in_namespace(self, namespace: UserNamespace) -> Identity {
        Identity { namespace, ..self }
    }

    /// The namespace of users in which the privileges apply.
    pub fn namespace(&self) -> &UserNamespace {
        &self.namespace
    }

    /// Whether the identity has `privilege` over the whole system.
    pub fn has(&self, privilege: Privilege) -> bool {
        self.namespace.is_first() && self.privileges.has(privilege)
    }

    /// Whether the identity has `privilege` in its namespace.
    pub fn has_own(&self, privilege: Privilege) -> bool {
        self.privileges.has(privilege)
    }

    /// Whether the identity has `privilege` over what belongs to `namespace`.
    pub fn has_in(&self, namespace: &UserNamespace, privilege: Privilege) -> bool {
        self.namespace.gives_in(namespace, self.user, || self.has_own(privilege))
    }

    /// Whether the identity has `privilege` over a file: it needs to have its owner and its group
    /// in its namespace.
    pub fn has_over(&self, file: &Metadata, privilege: Privilege) -> bool {
        let is_inside =
            self.namespace.has(IdKind::User, file.user) && self.namespace.has(IdKind::Group, file.group);
        self.privileges.has(privilege) && is_inside
    }

    /// Whether the identity may act as the owner of a file whose owner is in its namespace.
    pub fn owns(&self, file: &Metadata) -> bool {
        let may = || self.privileges.has(Privilege::Owner) && self.namespace.has(IdKind::User, file.user);
        self.user == file.user || may()
    }

    /// Whether the identity is in `group`.
    pub fn in_group(&self, group: u32) -> bool {
        self.group == group || self.groups.contains(&group)
    }
}
