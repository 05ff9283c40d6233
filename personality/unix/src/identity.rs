//! The identity with which a file operation is checked: its user, groups and privileges.

use alloc::sync::Arc;

/// A privilege that operations ask for: what POSIX calls appropriate privileges, each by what it
/// allows. Which of its own privileges these are is a front end's matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Privilege {
    /// Change the owner of files.
    Chown = 0,
    /// Ignore read, write and search permission.
    Override = 1,
    /// Ignore read permission of files, read and search permission of directories.
    ReadSearch = 2,
    /// Act as owner of any file.
    Owner = 3,
    /// Keep set-user-id and set-group-id bits.
    SetId = 4,
    /// Make device nodes.
    MakeNode = 5,
    /// Mount, set trusted attributes and the like.
    Administrator = 6,
    /// Change the root directory.
    ChangeRoot = 7,
    /// Use terminals that belong to others.
    Terminal = 8,
    /// Exceed resource limits.
    Resource = 9,
    /// Send any process and user id in credentials.
    SetUser = 10,
}

/// The ids and privileges that permission checks use: the file-system ids of credentials, or the
/// real ones for access(2). A snapshot; cheap to clone.
#[derive(Clone, Debug)]
pub struct Identity {
    /// User id.
    pub user: u32,
    /// Group id.
    pub group: u32,
    /// Supplementary groups.
    pub groups: Arc<[u32]>,
    privileges: u32,
}

impl Identity {
    /// An identity without privileges.
    pub fn new(user: u32, group: u32, groups: Arc<[u32]>) -> Identity {
        Identity { user, group, groups, privileges: 0 }
    }

    /// The superuser: user and group 0 with every privilege.
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

    /// Whether it has `privilege`.
    pub fn has(&self, privilege: Privilege) -> bool {
        self.privileges & (1 << privilege as u32) != 0
    }

    /// Whether it is in `group`.
    pub fn in_group(&self, group: u32) -> bool {
        self.group == group || self.groups.contains(&group)
    }
}
