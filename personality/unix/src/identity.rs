//! The identity with which a file operation is checked: its user, groups and privileges.

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
}

impl Identity {
    /// An identity without privileges.
    pub fn new(user: u32, group: u32, groups: Arc<[u32]>) -> Identity {
        Identity { user, group, groups, privileges: Privileges::NONE }
    }

    /// The identity of the superuser: user and group 0 with every privilege.
    pub fn superuser() -> Identity {
        Identity { user: 0, group: 0, groups: Arc::new([]), privileges: Privileges::ALL }
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

    /// Whether the identity has `privilege`.
    pub fn has(&self, privilege: Privilege) -> bool {
        self.privileges.has(privilege)
    }

    /// Whether the identity is in `group`.
    pub fn in_group(&self, group: u32) -> bool {
        self.group == group || self.groups.contains(&group)
    }
}
