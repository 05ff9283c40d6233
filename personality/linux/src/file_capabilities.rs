//! Capabilities of files (capabilities(7)): the extended attribute in which they are kept, in the
//! layout that is on disks.

use crate::layout::{Fields, Writer};
use alloc::vec::Vec;
use unix::privilege::{FilePrivileges, PrivilegeAttribute};
use unix::{Error, Privileges, Result};

/// The attribute.
pub(crate) const ATTRIBUTE: PrivilegeAttribute =
    PrivilegeAttribute { name: b"security.capability", decode, kept };

/// The effective set is the permitted one: a flag next to the version.
const EFFECTIVE: u32 = 1;
/// Sets of 32 capabilities each. They are read, and not set any more.
const VERSION_1: u32 = 0x0100_0000;
/// Sets of 64 capabilities each.
const VERSION_2: u32 = 0x0200_0000;
/// As version 2, and the user id that is the superuser of the name space in which they count.
const VERSION_3: u32 = 0x0300_0000;

/// `None`: the value counts only in a name space of users, and there are none but the first.
fn decode(value: &[u8]) -> Result<Option<FilePrivileges>> {
    let word = |index: usize| value.u32_at(4 * index).map_err(|_| Error::EINVAL);
    let version = word(0)? & !EFFECTIVE;
    let (high, superuser) = match (version, value.len()) {
        (VERSION_1, 12) => (false, 0),
        (VERSION_2, 20) => (true, 0),
        (VERSION_3, 24) => (true, word(5)?),
        _ => return Err(Error::EINVAL),
    };
    let set = |low: usize| {
        let upper = if high { word(low + 2)? } else { 0 };
        Ok::<_, Error>(Privileges::from_bits(u64::from(word(low)?) | u64::from(upper) << 32))
    };
    let (permitted, inheritable) = (set(1)?, set(2)?);
    let effective = word(0)? & EFFECTIVE != 0;
    Ok((superuser == 0).then_some(FilePrivileges { permitted, inheritable, effective }))
}

/// The value without the user id if that is 0. `EINVAL` for version 1.
fn kept(value: &[u8]) -> Result<Vec<u8>> {
    let counts = decode(value)?.is_some();
    match value.len() {
        24 if counts => {
            let version = VERSION_2 | value.u32_at(0)? & EFFECTIVE;
            let start: [u8; 4] = Writer::new().u32(0, version).done();
            Ok([&start, &value[4..20]].concat())
        }
        20 | 24 => Ok(value.to_vec()),
        _ => Err(Error::EINVAL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unix::Privilege;

    fn value(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn each_version_is_decoded() {
        let kill = Privileges::NONE.with(Privilege::Kill);
        let log = Privileges::NONE.with(Privilege::Log);
        let first = FilePrivileges { permitted: kill, inheritable: Privileges::NONE, effective: true };
        assert_eq!(decode(&value(&[VERSION_1 | 1, 1 << 5, 0])), Ok(Some(first)));
        let second = FilePrivileges { permitted: kill.or(log), inheritable: log, effective: false };
        assert_eq!(decode(&value(&[VERSION_2, 1 << 5, 0, 1 << 2, 1 << 2])), Ok(Some(second)));
        let third = |user| value(&[VERSION_3, 1 << 5, 0, 1 << 2, 1 << 2, user]);
        assert_eq!(decode(&third(0)), Ok(Some(second)));
        assert_eq!(decode(&third(1000)), Ok(None));
    }

    #[test]
    fn what_is_malformed_is_refused() {
        for words in [&[][..], &[VERSION_2], &[VERSION_1, 0, 0, 0, 0], &[VERSION_3, 0, 0, 0, 0], &[7, 0, 0]] {
            assert_eq!(decode(&value(words)), Err(Error::EINVAL), "{words:?}");
            assert_eq!(kept(&value(words)), Err(Error::EINVAL), "{words:?}");
        }
        assert_eq!(decode(&value(&[VERSION_2, 0, 0, 0, 0])[..19]), Err(Error::EINVAL));
        assert_eq!(kept(&value(&[VERSION_1, 1, 1])), Err(Error::EINVAL), "nothing sets version 1");
    }

    #[test]
    fn the_first_name_space_is_not_named() {
        let plain = value(&[VERSION_2 | 1, 1, 2, 3, 4]);
        assert_eq!(kept(&plain), Ok(plain.clone()));
        assert_eq!(kept(&value(&[VERSION_3 | 1, 1, 2, 3, 4, 0])), Ok(plain));
        let other = value(&[VERSION_3, 1, 2, 3, 4, 1000]);
        assert_eq!(kept(&other), Ok(other));
    }
}
