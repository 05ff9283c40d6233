//! The identity with which a file operation is checked: its user, groups and privileges.

use alloc::sync::Arc;

/// A privilege that file operations ask for (capabilities(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Capability {
    /// Change the owner of files (CAP_CHOWN).
    Chown = 0,
    /// Ignore read, write and search permission (CAP_DAC_OVERRIDE).
    Override = 1,
    /// Ignore read permission of files, read and search permission of directories
    /// (CAP_DAC_READ_SEARCH).
    ReadSearch = 2,
    /// Act as owner of any file (CAP_FOWNER).
    Owner = 3,
    /// Keep set-user-id and set-group-id bits (CAP_FSETID).
    SetId = 4,
    /// Make device nodes (CAP_MKNOD).
    MakeNode = 5,
    /// Mount, set trusted attributes and the like (CAP_SYS_ADMIN).
    Administrator = 6,
    /// Change the root directory (CAP_SYS_CHROOT).
    ChangeRoot = 7,
    /// Use terminals that belong to others (CAP_SYS_TTY_CONFIG).
    Terminal = 8,
    /// Exceed resource limits (CAP_SYS_RESOURCE).
    Resource = 9,
    /// Send any process and user id in credentials (CAP_SETUID).
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
    capabilities: u32,
}

impl Identity {
    /// An identity without privileges.
    pub fn new(user: u32, group: u32, groups: Arc<[u32]>) -> Identity {
        Identity { user, group, groups, capabilities: 0 }
    }

    /// The superuser: user and group 0 with every privilege.
    pub fn superuser() -> Identity {
        Identity { user: 0, group: 0, groups: Arc::new([]), capabilities: u32::MAX }
    }

    /// This identity with `capability` added.
    pub fn with(mut self, capability: Capability) -> Identity {
        self.capabilities |= 1 << capability as u32;
        self
    }

    /// This identity with every privilege.
    pub fn with_all(mut self) -> Identity {
        self.capabilities = u32::MAX;
        self
    }

    /// Whether it has `capability`.
    pub fn has(&self, capability: Capability) -> bool {
        self.capabilities & (1 << capability as u32) != 0
    }

    /// Whether it is in `group`.
    pub fn in_group(&self, group: u32) -> bool {
        self.group == group || self.groups.contains(&group)
    }
}
