//! Extended attributes: names with their prefixes, and values that come in parts.

use crate::failure::{Failure, number};
use alloc::borrow::Cow;
use alloc::vec::Vec;
use rsext4::{XattrName, XattrNamespace, XattrSetMode};

/// The prefixes of names, and what the file system keeps in their place. A longer prefix comes
/// before its own beginning.
const PREFIXES: [(&[u8], XattrNamespace); 6] = [
    (b"system.posix_acl_access", XattrNamespace::PosixAclAccess),
    (b"system.posix_acl_default", XattrNamespace::PosixAclDefault),
    (b"user.", XattrNamespace::User),
    (b"trusted.", XattrNamespace::Trusted),
    (b"security.", XattrNamespace::Security),
    (b"system.", XattrNamespace::System),
];
/// The longest name without its prefix.
const NAME_MAXIMUM: usize = 255;
/// The largest value.
pub(crate) const VALUE_MAXIMUM: u64 = 65536;

/// The parts of a name.
pub(crate) fn parse(name: &[u8]) -> Result<(XattrNamespace, &[u8]), Failure> {
    let found = PREFIXES.iter().find_map(|(prefix, space)| Some((*space, name.strip_prefix(*prefix)?)));
    let (space, rest) = found.ok_or(Failure(number::EOPNOTSUPP))?;
    let is_whole = matches!(space, XattrNamespace::PosixAclAccess | XattrNamespace::PosixAclDefault);
    if rest.is_empty() != is_whole || rest.len() > NAME_MAXIMUM {
        return Err(Failure(number::EINVAL));
    }
    Ok((space, rest))
}

/// Whether attributes of this kind are access control lists.
pub(crate) fn is_list(space: XattrNamespace) -> bool {
    matches!(space, XattrNamespace::PosixAclAccess | XattrNamespace::PosixAclDefault)
}

/// The version of access control lists in messages, where each entry has an id, and on the disk,
/// where only those of users and groups have one.
const LIST_VERSION: u32 = 2;
const DISK_LIST_VERSION: u32 = 1;
/// The tags of entries for users and groups.
const NAMED: [u16; 2] = [2, 8];

/// A value as it is kept on the disk.
pub(crate) fn to_disk(space: XattrNamespace, value: &[u8]) -> Result<Cow<'_, [u8]>, Failure> {
    if !is_list(space) {
        return Ok(value.into());
    }
    let wrong = Failure(number::EINVAL);
    let (version, entries) = value.split_first_chunk().ok_or(wrong)?;
    let (entries, rest) = entries.as_chunks::<8>();
    if u32::from_le_bytes(*version) != LIST_VERSION || !rest.is_empty() {
        return Err(wrong);
    }
    let mut disk = DISK_LIST_VERSION.to_le_bytes().to_vec();
    for entry in entries {
        let is_named = NAMED.contains(&u16::from_le_bytes([entry[0], entry[1]]));
        disk.extend_from_slice(&entry[..if is_named { 8 } else { 4 }]);
    }
    Ok(disk.into())
}

/// A value of the disk as messages have it.
pub(crate) fn from_disk(space: XattrNamespace, value: Vec<u8>) -> Result<Vec<u8>, Failure> {
    if !is_list(space) {
        return Ok(value);
    }
    let damaged = Failure(number::EIO);
    let (version, mut rest) = value.split_first_chunk().ok_or(damaged)?;
    if u32::from_le_bytes(*version) != DISK_LIST_VERSION {
        return Err(damaged);
    }
    let mut list = LIST_VERSION.to_le_bytes().to_vec();
    while !rest.is_empty() {
        let (entry, others) = rest.split_first_chunk::<4>().ok_or(damaged)?;
        list.extend_from_slice(entry);
        rest = others;
        let id = match NAMED.contains(&u16::from_le_bytes([entry[0], entry[1]])) {
            true => {
                let (id, others) = rest.split_first_chunk::<4>().ok_or(damaged)?;
                rest = others;
                *id
            }
            false => [0xff; 4],
        };
        list.extend_from_slice(&id);
    }
    Ok(list)
}

/// The names, each with a zero after it. Those that programs cannot have are left out.
pub(crate) fn list(names: &[XattrName]) -> Vec<u8> {
    let mut list = Vec::new();
    for name in names {
        let prefix = PREFIXES.iter().find(|(_, space)| *space == name.namespace);
        if let Some((prefix, _)) = prefix {
            list.extend_from_slice(prefix);
            list.extend_from_slice(&name.name);
            list.push(0);
        }
    }
    list
}

/// What a file number of the client's is while it is an extended attribute.
#[derive(Debug)]
pub(crate) enum Value {
    /// The value, or the list of names, which the client reads.
    Read(Vec<u8>),
    /// The attribute that is set when the client forgets the number.
    Write {
        /// The name with its prefix.
        name: Vec<u8>,
        /// The value so far.
        value: Vec<u8>,
        /// How many bytes it will have.
        size: usize,
        /// Whether it may or must exist.
        mode: XattrSetMode,
    },
    /// The attribute with this name is removed when the client forgets the number.
    Remove(Vec<u8>),
}

impl Value {
    /// The attribute that is to be set, as a request says it.
    pub(crate) fn begin(name: &[u8], size: u64, flags: u32) -> Result<Value, Failure> {
        parse(name)?;
        if size > VALUE_MAXIMUM {
            return Err(Failure(number::ENOSPC));
        }
        let mode = match flags {
            ninep::XATTR_REMOVE => return Ok(Value::Remove(name.to_vec())),
            0 => XattrSetMode::Upsert,
            1 => XattrSetMode::Create,
            2 => XattrSetMode::Replace,
            _ => return Err(Failure(number::EINVAL)),
        };
        Ok(Value::Write { name: name.to_vec(), value: Vec::new(), size: size as usize, mode })
    }

    /// Takes the next bytes of a value.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> Result<u32, Failure> {
        let Value::Write { value, size, .. } = self else { return Err(Failure(number::EBADF)) };
        if offset != value.len() as u64 || data.len() > *size - value.len() {
            return Err(Failure(number::EINVAL));
        }
        value.extend_from_slice(data);
        Ok(data.len() as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_short_entries_on_the_disk() {
        const SPACE: XattrNamespace = XattrNamespace::PosixAclAccess;
        let entry = |tag: u8, rights: u8, id: u32| {
            let [a, b, c, d] = id.to_le_bytes();
            [tag, 0, rights, 0, a, b, c, d]
        };
        let none = u32::MAX;
        let entries = [
            entry(1, 7, none),
            entry(2, 6, 1000),
            entry(4, 5, none),
            entry(8, 4, 7),
            entry(16, 7, none),
            entry(32, 0, none),
        ];
        let list = [&LIST_VERSION.to_le_bytes()[..], &entries.concat()].concat();
        let disk = to_disk(SPACE, &list).unwrap().into_owned();
        assert_eq!(disk.len(), 4 + 4 * 4 + 2 * 8);
        assert_eq!(disk[..12], [1, 0, 0, 0, 1, 0, 7, 0, 2, 0, 6, 0]);
        assert_eq!(from_disk(SPACE, disk.clone()).unwrap(), list);
        for length in [0, 3, 5, 10, 15] {
            assert!(from_disk(SPACE, disk[..length].to_vec()).is_err(), "{length} bytes");
            assert!(to_disk(SPACE, &list[..length]).is_err(), "{length} bytes");
        }
        assert!(from_disk(SPACE, list).is_err(), "another version");
        assert_eq!(&*to_disk(XattrNamespace::User, b"text").unwrap(), b"text");
    }
}
