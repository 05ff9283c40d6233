//! The identity with which a file operation is checked: its user, groups and privileges.

use alloc::sync::Arc;

/// A privilege that an operation needs (POSIX: "appropriate privileges"), named by what it allows.
/// Which privileges of a system these are is known to its front end.
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
    /// May make device nodes.
    MakeNode = 5,
    /// May mount file systems, set trusted attributes and similar.
    Administrator = 6,
    /// May change the root directory.
    ChangeRoot = 7,
    /// May use terminals that belong to other sessions.
    Terminal = 8,
    /// May exceed resource limits.
    Resource = 9,
    /// May send any process and user id in credentials.
    SetUser = 10,
}

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
    privileges: u32,
}

impl Identity {
    /// An identity without privileges.
    pub fn new(user: u32, group: u32, groups: Arc<[u32]>) -> Identity {
        Identity { user, group, groups, privileges: 0 }
    }

    /// The identity of the superuser: user and group 0 with every privilege.
    pub fn superuser() -> Identity {
        Identity { user: 0, group: 0, groups: Arc::new([]), privileges: u32::MAX }
    }

    /// This identity with `privilege` added.
    pub fn with(mut self, privilege: Privilege) -> Identity {
        self.privileges |= 1 << privilege as u32;
        self
    }

    /// This identity with every privilege.
    pub fn with_all(mut self) -> Identity {
        self.privileges = u32::MAX;
        self
    }

    /// Whether the identity has `privilege`.
    pub fn has(&self, privilege: Privilege) -> bool {
        self.privileges & (1 << privilege as u32) != 0
    }

    /// Whether the identity is in `group`.
    pub fn in_group(&self, group: u32) -> bool {
        self.group == group || self.groups.contains(&group)
    }
}
