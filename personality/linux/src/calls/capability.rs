//! Capabilities: capget, capset, and what prctl does with them (capabilities(7)).

use super::process::change_credentials;
use crate::call::{Call, Done, Stop};
use crate::layout::{Fields, Writer};
use mach::Machine;
use unix::credentials::Credentials;
use unix::privilege::{PrivilegeSets, SecureBits};
use unix::{Error, Privilege, Privileges, Result};

/// The versions of the calls' layout: one word for each set, and two. Programs were to leave the
/// first of the two with two words out of headers.
const ONE_WORD: u32 = 0x1998_0330;
const TWO_WORDS: [u32; 2] = [0x2007_1026, 0x2008_0522];

/// Reads the header of capget and capset: how many words each set has, and which thread is meant.
/// If its version is unknown, stores the newest one.
async fn header<M: Machine>(call: &Call<'_, M>) -> Result<Option<(usize, i32)>, Stop> {
    let header = call.read::<8>(call.arg(0)).await?;
    let words = match header.u32_at(0)? {
        ONE_WORD => 1,
        version if TWO_WORDS.contains(&version) => 2,
        _ => {
            call.write(call.arg(0), &TWO_WORDS[1].to_le_bytes()).await?;
            return if call.arg(1) == 0 { Ok(None) } else { Err(Error::EINVAL.into()) };
        }
    };
    Ok(Some((words, header.u32_at(4)? as i32)))
}

/// The sets in the layout of the calls: for each word the effective, the permitted and the
/// inheritable set.
fn to_sets(sets: &PrivilegeSets) -> [u8; 24] {
    let all = [sets.effective, sets.permitted, sets.inheritable].map(Privileges::bits);
    let mut writer = Writer::new();
    for (index, bits) in all.into_iter().enumerate() {
        writer = writer.u32(4 * index, bits as u32).u32(12 + 4 * index, (bits >> 32) as u32);
    }
    writer.done()
}

pub(crate) async fn capget<M: Machine>(call: &Call<'_, M>) -> Done {
    let Some((words, target)) = header(call).await? else { return Ok(0) };
    let sets = match target {
        0 => call.thread.credentials().privileges,
        ..0 => return Err(Error::EINVAL.into()),
        target => {
            let tid = call.id(target)?;
            call.table(|table| table.thread(tid).map(|thread| thread.credentials().privileges))?
        }
    };
    if call.arg(1) != 0 {
        call.write(call.arg(1), &to_sets(&sets)[..12 * words]).await?;
    }
    Ok(0)
}

pub(crate) async fn capset<M: Machine>(call: &Call<'_, M>) -> Done {
    let Some((words, target)) = header(call).await? else { return Err(Error::EINVAL.into()) };
    if target != 0 && u32::try_from(target) != Ok(call.thread.own_numbers().thread) {
        return Err(Error::EPERM.into());
    }
    let mut wanted = [0; 24];
    let bytes = call.memory().read_bytes(call.arg(1), 12 * words).await?;
    wanted[..bytes.len()].copy_from_slice(&bytes);
    let set = |index: usize| {
        let (low, high) = (wanted.u32_at(4 * index)?, wanted.u32_at(12 + 4 * index)?);
        Ok::<_, Error>(Privileges::from_bits(u64::from(low) | u64::from(high) << 32))
    };
    let [effective, permitted, inheritable] = [set(0)?, set(1)?, set(2)?];
    change(call, |sets| sets.set(effective, permitted, inheritable))
}

/// The requests of prctl(2) about capabilities. `EINVAL` for others.
pub(crate) fn control<M: Machine>(call: &Call<'_, M>) -> Done {
    const GET_KEEP: u32 = 7;
    const SET_KEEP: u32 = 8;
    const READ_BOUNDING: u32 = 23;
    const DROP_BOUNDING: u32 = 24;
    const GET_SECURE_BITS: u32 = 27;
    const SET_SECURE_BITS: u32 = 28;
    const AMBIENT: u32 = 47;
    let (sets, argument) = (call.thread.credentials().privileges, call.arg(1));
    match call.uint(0) {
        GET_KEEP => Ok(sets.secure.contains(SecureBits::KEEP).into()),
        SET_KEEP if argument <= 1 => change(call, |sets| sets.set_keep(argument == 1)),
        READ_BOUNDING => Ok(Privileges::numbered(argument)?.is_within(sets.bounding).into()),
        DROP_BOUNDING => match sets.effective.has(Privilege::SetPrivileges) {
            true => {
                let dropped = Privileges::numbered(argument)?;
                change(call, |sets| sets.drop_bounding(dropped))
            }
            false => Err(Error::EPERM.into()),
        },
        GET_SECURE_BITS => Ok(sets.secure.bits().into()),
        SET_SECURE_BITS => {
            let bits = u32::try_from(argument).map_err(|_| Error::EPERM)?;
            change(call, |sets| sets.set_secure(bits))
        }
        AMBIENT => ambient(call, sets),
        _ => Err(Error::EINVAL.into()),
    }
}

/// PR_CAP_AMBIENT.
fn ambient<M: Machine>(call: &Call<'_, M>, sets: PrivilegeSets) -> Done {
    const IS_SET: u64 = 1;
    const RAISE: u64 = 2;
    const LOWER: u64 = 3;
    const CLEAR_ALL: u64 = 4;
    if call.arg(3) != 0 || call.arg(4) != 0 {
        return Err(Error::EINVAL.into());
    }
    let (request, argument) = (call.arg(1), call.arg(2));
    if request == CLEAR_ALL && argument == 0 {
        return change(call, |sets| Ok(PrivilegeSets { ambient: Privileges::NONE, ..sets }));
    }
    let one = Privileges::numbered(argument)?;
    match request {
        IS_SET => Ok(one.is_within(sets.ambient).into()),
        RAISE => change(call, |sets| sets.raise_ambient(one)),
        LOWER => change(call, |sets| Ok(PrivilegeSets { ambient: sets.ambient.without(one), ..sets })),
        _ => Err(Error::EINVAL.into()),
    }
}

/// Replaces the caller's sets by the result of `change`.
fn change<M: Machine>(
    call: &Call<'_, M>,
    change: impl FnOnce(PrivilegeSets) -> Result<PrivilegeSets>,
) -> Done {
    change_credentials(call, |old| Ok(Credentials { privileges: change(old.privileges)?, ..old.clone() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_laid_out_in_words() {
        let sets = PrivilegeSets::ALL.set(Privileges::NONE, Privileges::ALL, Privileges::NONE).unwrap();
        let bytes = to_sets(&sets);
        assert_eq!((bytes.u32_at(0), bytes.u32_at(4), bytes.u32_at(8)), (Ok(0), Ok(u32::MAX), Ok(0)));
        assert_eq!((bytes.u32_at(12), bytes.u32_at(16), bytes.u32_at(20)), (Ok(0), Ok(0x1ff), Ok(0)));
    }
}
