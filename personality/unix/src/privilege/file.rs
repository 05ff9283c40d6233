//! Privileges that a program file gives. A front end says in which extended attribute files keep
//! them, and in what layout.

use super::{PrivilegeSets, Privileges};
use crate::vfs::{AttributeCondition, Vfs, VnodeRef};
use crate::{Error, Result};
use alloc::vec::Vec;

/// What exec of a file gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePrivileges {
    /// What the program gets as far as the bounding set has it.
    pub permitted: Privileges,
    /// What the program keeps of what is inheritable.
    pub inheritable: Privileges,
    /// Whether all of that is effective from the beginning. The program does not run with less.
    pub effective: bool,
}

/// The extended attribute in which files keep the privileges that they give.
#[derive(Debug)]
pub struct PrivilegeAttribute {
    /// Its name.
    pub name: &'static [u8],
    /// What a value of it means: `None` if it gives nothing. `EINVAL` if it is malformed.
    pub decode: fn(&[u8]) -> Result<Option<FilePrivileges>>,
    /// What is kept when a program sets it to a value. `EINVAL` for a value that no program may
    /// set.
    pub kept: fn(&[u8]) -> Result<Vec<u8>>,
}

impl FilePrivileges {
    /// What a program gets of these if the caller has the sets `sets`.
    pub(crate) fn given_to(&self, sets: &PrivilegeSets) -> Privileges {
        self.permitted.and(sets.bounding).or(self.inheritable.and(sets.inheritable))
    }

    /// Checks that a program which begins with its privileges can get all that are permitted.
    /// `EPERM`.
    pub(crate) fn check(&self, sets: &PrivilegeSets) -> Result<()> {
        let complete = self.permitted.is_within(self.given_to(sets));
        if self.effective && !complete { Err(Error::EPERM) } else { Ok(()) }
    }

    /// The privileges that a file gives, if it gives any.
    pub(crate) async fn of(vfs: &Vfs, vnode: &VnodeRef) -> Result<Option<FilePrivileges>> {
        if !vnode.has_attributes() {
            return Ok(None);
        }
        let Some(attribute) = vfs.privilege_attribute() else { return Ok(None) };
        match vnode.attribute(attribute.name).await {
            Ok(value) => (attribute.decode)(&value),
            Err(Error::ENODATA | Error::EOPNOTSUPP) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes from a file the privileges that it gives, since its content or its owner changes.
    pub(crate) async fn drop_from(vfs: &Vfs, vnode: &VnodeRef) -> Result<()> {
        if !vnode.has_attributes() {
            return Ok(());
        }
        let Some(attribute) = vfs.privilege_attribute() else { return Ok(()) };
        match vnode.set_attribute(attribute.name, None, AttributeCondition::Any).await {
            Err(Error::ENODATA | Error::EOPNOTSUPP) => Ok(()),
            done => done,
        }
    }
}
