//! Keys, ids and permissions of System V objects.

use super::User;
use crate::{Error, Privilege, Result};
use alloc::collections::BTreeMap;

/// The key of objects that no other process finds by a key (IPC_PRIVATE).
pub const PRIVATE: i32 = 0;
/// Bits of an id for the index; those above tell apart the objects that had the index.
const INDEX_BITS: u32 = 15;
const SEQUENCES: u32 = 1 << (31 - INDEX_BITS);

/// A kind of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Read,
    /// Writing, or changing.
    Write,
    /// Both.
    ReadWrite,
}

impl Access {
    fn bits(self) -> u32 {
        match self {
            Access::Read => 4,
            Access::Write => 2,
            Access::ReadWrite => 6,
        }
    }
}

/// The owner of an object, and the users that may use it (struct ipc_perm).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permission {
    /// The key by which processes find the object.
    pub key: i32,
    /// The owner's user id.
    pub user: u32,
    /// The owner's group id.
    pub group: u32,
    /// The user id of the process that made the object.
    pub creator: u32,
    /// The group id of that process.
    pub creator_group: u32,
    /// The permission bits.
    pub mode: u32,
    /// The part of the id that tells apart objects with one index.
    pub sequence: u32,
}

impl Permission {
    /// Checks that `user` may use the object with all permissions in `wanted`, bits of a mode of
    /// which it does not matter whether they are the owner's, the group's or the others'. `EACCES`.
    pub fn check_bits(&self, user: &User, wanted: u32) -> Result<()> {
        let wanted = (wanted >> 6 | wanted >> 3 | wanted) & 7;
        let identity = &user.identity;
        let granted = match () {
            () if identity.user == self.user || identity.user == self.creator => self.mode >> 6,
            () if identity.in_group(self.group) || identity.in_group(self.creator_group) => self.mode >> 3,
            () => self.mode,
        };
        let allowed = wanted & !granted & 7 == 0 || identity.has_in(&user.owner, Privilege::OwnObjects);
        if allowed { Ok(()) } else { Err(Error::EACCES) }
    }

    /// Checks that `user` may access the object. `EACCES`.
    pub fn check(&self, user: &User, access: Access) -> Result<()> {
        self.check_bits(user, access.bits())
    }

    /// Checks that `user` may change or remove the object. `EPERM`.
    pub fn check_owner(&self, user: &User) -> Result<()> {
        let identity = &user.identity;
        let owns = identity.user == self.user || identity.user == self.creator;
        if owns || identity.has_in(&user.owner, Privilege::Administrator) {
            Ok(())
        } else {
            Err(Error::EPERM)
        }
    }

    /// Sets owner and mode (IPC_SET).
    pub fn set(&mut self, owner: (u32, u32), mode: u32) {
        (self.user, self.group) = owner;
        self.mode = self.mode & !0o777 | mode & 0o777;
    }
}

/// An object of a [`Registry`].
pub trait Object {
    /// The owner of the object, and what others may do with it.
    fn permission(&self) -> &Permission;
}

/// The objects of one kind.
#[derive(Debug)]
pub struct Registry<T> {
    objects: BTreeMap<u32, T>,
    sequence: u32,
    limit: u32,
}

/// How an object is looked for by its key (IPC_CREAT, IPC_EXCL).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Find {
    /// The key; with [`PRIVATE`] a new object is made.
    pub key: i32,
    /// Whether an object is made if there is none.
    pub create: bool,
    /// Whether it is an error if there is one.
    pub exclusive: bool,
    /// The permissions that a new object gives and an old one has to give.
    pub mode: u32,
}

impl<T: Object> Registry<T> {
    /// A registry of up to `limit` objects.
    pub const fn new(limit: u32) -> Registry<T> {
        Registry { objects: BTreeMap::new(), sequence: 0, limit }
    }

    /// The id of the object that `find` describes, after `check` has looked at it; `None` if it has
    /// to be made. `EACCES`, `EEXIST`, `ENOENT`, and the errors of `check`.
    pub fn find(&self, user: &User, find: Find, check: impl FnOnce(&T) -> Result<()>) -> Result<Option<i32>> {
        if find.key == PRIVATE {
            return Ok(None);
        }
        let mut objects = self.objects.iter();
        match objects.find(|(_, object)| object.permission().key == find.key) {
            None if find.create => Ok(None),
            None => Err(Error::ENOENT),
            Some(_) if find.create && find.exclusive => Err(Error::EEXIST),
            Some((index, object)) => {
                check(object)?;
                object.permission().check_bits(user, find.mode)?;
                Ok(Some(id_of(*index, object.permission().sequence)))
            }
        }
    }

    /// Adds an object that `make` makes with its permission; returns its id. `ENOSPC`.
    pub fn add(&mut self, user: &User, find: Find, make: impl FnOnce(Permission) -> T) -> Result<i32> {
        let index = (0..self.limit).find(|index| !self.objects.contains_key(index)).ok_or(Error::ENOSPC)?;
        let identity = &user.identity;
        let permission = Permission {
            key: find.key,
            user: identity.user,
            group: identity.group,
            creator: identity.user,
            creator_group: identity.group,
            mode: find.mode & 0o777,
            sequence: self.sequence,
        };
        self.objects.insert(index, make(permission));
        Ok(id_of(index, permission.sequence))
    }

    /// The object with this id. `EINVAL`.
    pub fn get(&self, id: i32) -> Result<&T> {
        let (index, sequence) = parts(id)?;
        self.objects
            .get(&index)
            .filter(|object| object.permission().sequence == sequence)
            .ok_or(Error::EINVAL)
    }

    /// The object with this id, to be changed. `EINVAL`.
    pub fn get_mut(&mut self, id: i32) -> Result<&mut T> {
        let (index, sequence) = parts(id)?;
        let found = self.objects.get_mut(&index);
        found.filter(|object| object.permission().sequence == sequence).ok_or(Error::EINVAL)
    }

    /// The object with this index, whatever its id, and its id. `EINVAL`.
    pub fn at(&self, index: i32) -> Result<(i32, &T)> {
        let index = u32::try_from(index).map_err(|_| Error::EINVAL)?;
        let object = self.objects.get(&index).ok_or(Error::EINVAL)?;
        Ok((id_of(index, object.permission().sequence), object))
    }

    /// Removes the object with this id. `EINVAL`.
    pub fn remove(&mut self, id: i32) -> Result<T> {
        self.get(id)?;
        let (index, _) = parts(id)?;
        self.sequence = (self.sequence + 1) % SEQUENCES;
        self.objects.remove(&index).ok_or(Error::EINVAL)
    }

    /// Removes the objects that `keep` does not keep.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let before = self.objects.len();
        self.objects.retain(|_, object| keep(object));
        if self.objects.len() < before {
            self.sequence = (self.sequence + 1) % SEQUENCES;
        }
    }

    /// All objects with their ids, in the order of their indexes.
    pub fn iter(&self) -> impl Iterator<Item = (i32, &T)> {
        self.objects.iter().map(|(index, object)| (id_of(*index, object.permission().sequence), object))
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The largest index in use; 0 if there are no objects.
    pub fn largest_index(&self) -> u32 {
        self.objects.last_key_value().map_or(0, |(index, _)| *index)
    }
}

fn id_of(index: u32, sequence: u32) -> i32 {
    (sequence << INDEX_BITS | index) as i32
}

fn parts(id: i32) -> Result<(u32, u32)> {
    let id = u32::try_from(id).map_err(|_| Error::EINVAL)?;
    Ok((id & ((1 << INDEX_BITS) - 1), id >> INDEX_BITS))
}
