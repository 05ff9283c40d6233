//! Extended attributes: names with their prefixes, and values that come in parts.

use crate::failure::{Failure, number};
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
