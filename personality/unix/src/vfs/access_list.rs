//! Access control lists (acl(5)): what users and groups other than a file's own may do, and what
//! new files of a directory get.

use super::Mode;
use super::permission::Access;
use crate::{Error, Identity, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A list, in the layout that programs and file systems agree on: a version, and entries of a tag,
/// rights and an id. The ids are those of the system. The entries are in order and complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessList(Arc<[u8]>);

/// Which list of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// The list that says what may be done with the file.
    Access,
    /// The list of a directory that new files in it get.
    Default,
}

impl ListKind {
    /// The extended attribute as which programs and file systems know the list.
    pub fn attribute(self) -> &'static [u8] {
        match self {
            ListKind::Access => b"system.posix_acl_access",
            ListKind::Default => b"system.posix_acl_default",
        }
    }

    /// The kind of the list that is known as this extended attribute.
    pub fn of_attribute(name: &[u8]) -> Option<ListKind> {
        [ListKind::Access, ListKind::Default].into_iter().find(|kind| kind.attribute() == name)
    }
}

/// The users that an entry gives rights to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// The owner of the file.
    Owner,
    /// The user with this id.
    User(u32),
    /// The group of the file.
    OwnGroup,
    /// The group with this id.
    Group(u32),
    /// What all but the owner and the others have at most.
    Mask,
    /// All that no other entry names.
    Others,
}

/// An entry of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The users that it gives rights to.
    pub tag: Tag,
    /// The rights, as three bits of a mode.
    pub rights: u16,
}

const VERSION: u32 = 2;
const HEADER: usize = 4;
const ENTRY: usize = 8;
/// The id of an entry that needs none.
const NO_ID: u32 = u32::MAX;

impl Entry {
    fn read(bytes: &[u8; ENTRY]) -> Result<Entry> {
        let [a, b, c, d, e, f, g, h] = *bytes;
        let id = u32::from_le_bytes([e, f, g, h]);
        let tag = match u16::from_le_bytes([a, b]) {
            1 => Tag::Owner,
            2 => Tag::User(id),
            4 => Tag::OwnGroup,
            8 => Tag::Group(id),
            16 => Tag::Mask,
            32 => Tag::Others,
            _ => return Err(Error::EINVAL),
        };
        let rights = u16::from_le_bytes([c, d]);
        if rights > 7 { Err(Error::EINVAL) } else { Ok(Entry { tag, rights }) }
    }

    fn number_and_id(self) -> (u16, u32) {
        match self.tag {
            Tag::Owner => (1, NO_ID),
            Tag::User(id) => (2, id),
            Tag::OwnGroup => (4, NO_ID),
            Tag::Group(id) => (8, id),
            Tag::Mask => (16, NO_ID),
            Tag::Others => (32, NO_ID),
        }
    }
}

impl AccessList {
    /// Reads a list; `None` if it has no entries. `EINVAL` if it is malformed, `EOPNOTSUPP` if it
    /// is of another version.
    pub fn read(bytes: &[u8]) -> Result<Option<AccessList>> {
        let (header, entries) = bytes.split_first_chunk::<HEADER>().ok_or(Error::EINVAL)?;
        if u32::from_le_bytes(*header) != VERSION {
            return Err(Error::EOPNOTSUPP);
        }
        let (entries, rest) = entries.as_chunks::<ENTRY>();
        if !rest.is_empty() {
            return Err(Error::EINVAL);
        }
        let entries: Vec<Entry> = entries.iter().map(Entry::read).collect::<Result<_>>()?;
        if entries.is_empty() { Ok(None) } else { AccessList::of(&entries).map(Some) }
    }

    /// Makes a list. `EINVAL` unless the entries are in order and complete.
    pub fn of(entries: &[Entry]) -> Result<AccessList> {
        let mut place = 0;
        let (mut names, mut has_mask) = (false, false);
        for entry in entries {
            // Each entry but those of named users and groups stands once, after those before it.
            let (at, next) = match entry.tag {
                Tag::Owner => (0, 1),
                Tag::User(_) => (1, 1),
                Tag::OwnGroup => (1, 2),
                Tag::Group(_) => (2, 2),
                Tag::Mask => (2, 3),
                Tag::Others => (if place == 2 { 2 } else { 3 }, 4),
            };
            if place != at {
                return Err(Error::EINVAL);
            }
            place = next;
            names |= matches!(entry.tag, Tag::User(_) | Tag::Group(_));
            has_mask |= entry.tag == Tag::Mask;
        }
        if place != 4 || (names && !has_mask) {
            return Err(Error::EINVAL);
        }
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(HEADER + ENTRY * entries.len()).map_err(|_| Error::ENOMEM)?;
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        for entry in entries {
            let (number, id) = entry.number_and_id();
            bytes.extend_from_slice(&number.to_le_bytes());
            bytes.extend_from_slice(&entry.rights.to_le_bytes());
            bytes.extend_from_slice(&id.to_le_bytes());
        }
        Ok(AccessList(bytes.into()))
    }

    /// The list in its layout.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The entries of the list.
    pub fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        // All entries were read when the list was made.
        self.0[HEADER..].as_chunks::<ENTRY>().0.iter().filter_map(|bytes| Entry::read(bytes).ok())
    }

    /// The list with other ids. `EINVAL` if an id has no other one.
    pub fn with_ids(&self, other: impl Fn(Tag) -> Option<Tag>) -> Result<AccessList> {
        let changed = self.entries().map(|entry| {
            let tag = match entry.tag {
                tag @ (Tag::User(_) | Tag::Group(_)) => other(tag).ok_or(Error::EINVAL)?,
                tag => tag,
            };
            Ok(Entry { tag, ..entry })
        });
        AccessList::of(&changed.collect::<Result<Vec<_>>>()?)
    }

    /// The permission bits that stand for the list in the mode of its file: those of the owner, of
    /// the mask or else the group, and of others.
    pub fn mode(&self) -> Mode {
        let mut mode = 0;
        for Entry { tag, rights } in self.entries() {
            match tag {
                Tag::Owner => mode |= rights << 6,
                Tag::OwnGroup => mode |= rights << 3,
                Tag::Mask => mode = mode & !0o070 | rights << 3,
                Tag::Others => mode |= rights,
                Tag::User(_) | Tag::Group(_) => {}
            }
        }
        Mode::new(mode)
    }

    /// Whether the mode says all that the list says.
    pub fn is_mode(&self) -> bool {
        self.entries().all(|entry| matches!(entry.tag, Tag::Owner | Tag::OwnGroup | Tag::Others))
    }

    /// The list after the mode of its file was changed (chmod(2)).
    pub fn with_mode(&self, mode: Mode) -> Result<AccessList> {
        self.changed(|class, _| mode.bits() >> class & 7)
    }

    /// Changes the rights of the three classes of the mode. `change` gets how far the class is
    /// shifted in the mode, and its rights.
    fn changed(&self, change: impl Fn(u32, u16) -> u16) -> Result<AccessList> {
        let has_mask = self.entries().any(|entry| entry.tag == Tag::Mask);
        let entries: Vec<Entry> = self
            .entries()
            .map(|Entry { tag, rights }| {
                let rights = match tag {
                    Tag::Owner => change(6, rights),
                    Tag::Mask => change(3, rights),
                    Tag::OwnGroup if !has_mask => change(3, rights),
                    Tag::Others => change(0, rights),
                    Tag::OwnGroup | Tag::User(_) | Tag::Group(_) => rights,
                };
                Entry { tag, rights }
            })
            .collect();
        AccessList::of(&entries)
    }

    /// What a new file gets of this default list of its directory, if it is to be made with `mode`:
    /// its mode, and its list unless the mode says all.
    pub fn for_new(&self, mode: Mode) -> Result<(Mode, Option<AccessList>)> {
        let list = self.changed(|class, rights| rights & (mode.bits() >> class & 7))?;
        let all = Mode::new(0o777);
        let mode = mode.difference(all) | list.mode();
        let says_more = !list.is_mode();
        Ok((mode, says_more.then_some(list)))
    }

    /// Whether the list gives `identity` this access to a file of another user and of `group`.
    pub(super) fn gives(&self, group: u32, identity: &Identity, access: Access) -> bool {
        let wanted = u16::from(access.bits());
        let mask = self.entries().find(|entry| entry.tag == Tag::Mask).map_or(7, |entry| entry.rights);
        let gives = |rights: u16| rights & wanted == wanted;
        let mut is_member = false;
        for Entry { tag, rights } in self.entries() {
            match tag {
                Tag::User(user) if user == identity.user => return gives(rights & mask),
                Tag::OwnGroup | Tag::Group(_) => {
                    let group = if let Tag::Group(named) = tag { named } else { group };
                    if identity.in_group(group) {
                        is_member = true;
                        if gives(rights) {
                            return gives(rights & mask);
                        }
                    }
                }
                Tag::Others => return !is_member && gives(rights),
                Tag::Owner | Tag::User(_) | Tag::Mask => {}
            }
        }
        false
    }
}

/// The lists that a new file gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewLists {
    /// What may be done with it.
    pub access: Option<AccessList>,
    /// For a directory: what its new files get.
    pub default: Option<AccessList>,
}

impl NewLists {
    /// The lists, with the attributes in which they are kept.
    pub(crate) fn kept(&self) -> impl Iterator<Item = (ListKind, &AccessList)> {
        let access = self.access.iter().map(|list| (ListKind::Access, list));
        access.chain(self.default.iter().map(|list| (ListKind::Default, list)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Result<AccessList> {
        let entries: Vec<Entry> = text
            .split_whitespace()
            .map(|entry| {
                let (tag, rights) = entry.split_once('=').unwrap();
                let id = || tag[1..].parse::<u32>();
                let tag = match &tag[..1] {
                    "o" => Tag::Owner,
                    "u" => Tag::User(id().unwrap()),
                    "g" => id().map_or(Tag::OwnGroup, Tag::Group),
                    "m" => Tag::Mask,
                    _ => Tag::Others,
                };
                Entry { tag, rights: rights.parse().unwrap() }
            })
            .collect();
        AccessList::of(&entries)
    }

    #[test]
    fn entries_are_in_order_and_complete() {
        for right in ["o=7 g=5 x=0", "o=7 g=5 m=1 x=0", "o=7 u1=3 u2=0 g=5 g7=1 g8=2 m=7 x=4"] {
            let list = list(right).unwrap();
            assert_eq!(AccessList::read(list.bytes()), Ok(Some(list.clone())));
        }
        for wrong in [
            "",
            "o=7",
            "o=7 g=5",
            "o=7 x=0",
            "g=5 x=0",
            "o=7 g=5 x=0 x=0",
            "o=7 g=5 u1=7 m=7 x=0",
            "o=7 u1=7 g=5 x=0",
            "o=7 g=5 g1=7 x=0",
            "o=7 o=7 g=5 x=0",
            "o=7 g=5 m=7",
            "o=7 g=5 m=7 m=7 x=0",
            "o=7 g=5 x=0 m=7",
            "o=7 m=7 x=0",
        ] {
            assert_eq!(list(wrong), Err(Error::EINVAL), "{wrong}");
        }
        let whole = list("o=7 g=5 x=0").unwrap().bytes().to_vec();
        for length in 0..whole.len() {
            let read = AccessList::read(&whole[..length]);
            assert_eq!(read, if length == 4 { Ok(None) } else { Err(Error::EINVAL) }, "{length} bytes");
        }
        let changed = |at: usize, byte: u8| {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            AccessList::read(&bytes)
        };
        assert_eq!(changed(0, 1), Err(Error::EOPNOTSUPP), "another version");
        assert_eq!(changed(6, 8), Err(Error::EINVAL), "rights that there are not");
        assert_eq!(changed(4, 64), Err(Error::EINVAL), "a tag that there is not");
    }

    #[test]
    fn the_mode_shows_and_sets_owner_mask_and_others() {
        let full = list("o=6 u1=7 g=5 m=3 x=4").unwrap();
        assert_eq!((full.mode().bits(), full.is_mode()), (0o634, false));
        assert_eq!(full.with_mode(Mode::new(0o4751)), list("o=7 u1=7 g=5 m=5 x=1"));
        let plain = list("o=6 g=5 x=4").unwrap();
        assert_eq!((plain.mode().bits(), plain.is_mode()), (0o654, true));
        assert_eq!(plain.with_mode(Mode::new(0o751)), list("o=7 g=5 x=1"));
    }

    #[test]
    fn a_new_file_gets_what_its_mode_and_the_default_list_allow() {
        let default = list("o=7 u1=7 g=5 m=7 x=5").unwrap();
        let (mode, access) = default.for_new(Mode::new(0o2640)).unwrap();
        assert_eq!((mode.bits(), access), (0o2640, Some(list("o=6 u1=7 g=5 m=4 x=0").unwrap())));
        let (mode, access) = list("o=7 g=5 x=5").unwrap().for_new(Mode::new(0o666)).unwrap();
        assert_eq!((mode.bits(), access), (0o644, None));
    }

    #[test]
    fn the_first_entry_for_a_user_or_any_of_its_groups_decides() {
        let list = list("o=7 u1=6 u2=7 g=4 g7=2 g8=6 m=6 x=5").unwrap();
        let gives = |user, groups: &[u32], access| {
            let identity = Identity::new(user, 0, groups.to_vec().into());
            list.gives(20, &identity, Access::from_bits_retain(access))
        };
        assert!(gives(1, &[], 6) && !gives(1, &[], 1));
        assert!(gives(2, &[], 6) && !gives(2, &[], 1), "the mask has no execute");
        assert!(gives(1, &[20], 6), "a user is no member then");
        assert!(gives(3, &[20], 4) && !gives(3, &[20], 2) && !gives(3, &[20], 1));
        assert!(gives(3, &[7], 2) && !gives(3, &[7], 4));
        assert!(!gives(3, &[7, 20], 6), "one group must give all");
        assert!(gives(3, &[7, 8, 20], 6));
        assert!(gives(3, &[9], 5) && !gives(3, &[9], 2));
        assert!(!gives(3, &[20], 5), "a member gets nothing as another");
    }
}
