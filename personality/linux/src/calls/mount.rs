//! The system calls mount(2), umount2(2) and pivot_root(2).

use crate::call::{Call, Done};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use mach::Machine;
use unix::vfs::{MountFlags, PATH_MAXIMUM, Propagation};
use unix::{Error, Result};

const REMOUNT: u64 = 0x20;
const BIND: u64 = 0x1000;
const MOVE: u64 = 0x2000;
const RECURSIVE: u64 = 0x4000;
const UNBINDABLE: u64 = 0x2_0000;
const PRIVATE: u64 = 0x4_0000;
const SLAVE: u64 = 0x8_0000;
const SHARED: u64 = 0x10_0000;

/// The flags of a mount, by their numbers in mount(2), which statfs(2) uses, too (except for
/// RELATIME and STRICTATIME).
pub(crate) const FLAGS: [(MountFlags, u64); 6] = [
    (MountFlags::READ_ONLY, 1),
    (MountFlags::NO_SET_ID, 2),
    (MountFlags::NO_DEVICES, 4),
    (MountFlags::NO_EXECUTE, 8),
    (MountFlags::NO_ACCESS_TIME, 1024),
    (MountFlags::NO_DIRECTORY_ACCESS_TIME, 2048),
];

fn mount_flags(bits: u64) -> MountFlags {
    const STRICT_ACCESS_TIME: u64 = 0x100_0000;
    let mut flags = MountFlags::empty();
    FLAGS.iter().for_each(|(flag, bit)| flags.set(*flag, bits & bit != 0));
    flags.set(MountFlags::STRICT_ACCESS_TIME, bits & STRICT_ACCESS_TIME != 0);
    flags
}

/// How a mount is to take part in propagation, by the number in mount(2); `None` unless it is one.
pub(super) fn propagation(bits: u64) -> Option<Propagation> {
    match bits {
        SHARED => Some(Propagation::Shared),
        PRIVATE => Some(Propagation::Private),
        SLAVE => Some(Propagation::Slave),
        UNBINDABLE => Some(Propagation::Unbindable),
        _ => None,
    }
}

/// The options of a new file system with the ids of the system instead of those of the caller's
/// namespace, where these differ. There the caller owns the root directory of a file system in
/// memory. `EINVAL` for an id that the namespace has not.
pub(super) fn known_ids<M: Machine>(call: &Call<'_, M>, kind: &[u8], options: &[u8]) -> Result<Vec<u8>> {
    let credentials = call.thread.credentials();
    let mut known = Vec::new();
    if credentials.namespace.is_first() {
        return Ok(options.to_vec());
    }
    let number =
        |text: &[u8]| core::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or(Error::EINVAL);
    // Of several, the last one counts.
    let (mut user, mut group) = (None, None);
    for option in options.split(|byte| *byte == b',').filter(|option| !option.is_empty()) {
        match (option.strip_prefix(b"uid="), option.strip_prefix(b"gid=")) {
            (Some(text), _) => user = Some(call.user(number(text)?)?),
            (_, Some(text)) => group = Some(call.group(number(text)?)?),
            _ => {
                known.extend_from_slice(option);
                known.push(b',');
            }
        }
    }
    if kind == b"tmpfs" {
        user = user.or(Some(credentials.user.file));
        group = group.or(Some(credentials.group.file));
    }
    for (name, id) in [("uid", user), ("gid", group)] {
        known.extend(id.map(|id| format!("{name}={id},").into_bytes()).into_iter().flatten());
    }
    known.pop();
    Ok(known)
}

/// A string argument; `None` if its address is 0.
async fn optional_string<M: Machine>(call: &Call<'_, M>, index: usize) -> Result<Option<Vec<u8>>> {
    match call.arg(index) {
        0 => Ok(None),
        address => call.memory().read_string(address, PATH_MAXIMUM + 1, Error::EINVAL).await.map(Some),
    }
}

pub(crate) async fn mount<M: Machine>(call: &Call<'_, M>) -> Done {
    /// MS_MGC_VAL, which very old programs have in the upper half of the flags.
    const MAGIC: u64 = 0xc0ed_0000;
    let bits = match call.arg(3) {
        bits if bits & 0xffff_0000 == MAGIC => bits & 0xffff,
        bits => bits,
    };
    let kind = optional_string(call, 2).await?;
    let source = optional_string(call, 0).await?;
    let options = optional_string(call, 4).await?.unwrap_or_default();
    let path = call.path(1).await?;
    let context = call.thread.context();
    let caller = context.caller();
    let from = || source.as_deref().filter(|source| !source.is_empty()).ok_or(Error::EINVAL);
    match bits {
        bits if bits & REMOUNT != 0 => {
            // With BIND it concerns the mount only, and not its file system.
            let options = (bits & BIND == 0).then_some(&options[..]);
            // Without any option about access times they stay.
            const TIMES: u64 = 1024 | 2048 | 0x20_0000 | 0x100_0000;
            caller.remount(&path, mount_flags(bits), bits & TIMES == 0, options).await?;
        }
        bits if bits & BIND != 0 => caller.bind(from()?, &path, bits & RECURSIVE != 0).await?,
        bits if bits & (SHARED | PRIVATE | SLAVE | UNBINDABLE) != 0 => {
            let kind = propagation(bits & (SHARED | PRIVATE | SLAVE | UNBINDABLE)).ok_or(Error::EINVAL)?;
            caller.propagate(&path, kind, bits & RECURSIVE != 0).await?;
        }
        bits if bits & MOVE != 0 => caller.move_mount(from()?, &path).await?,
        bits => {
            caller.check_administrator()?;
            let kind = kind.ok_or(Error::EINVAL)?;
            let from = source.as_deref().unwrap_or_default();
            let flags = mount_flags(bits);
            let read_only = flags.contains(MountFlags::READ_ONLY);
            let options = known_ids(call, &kind, &options)?;
            let root = caller.make_file_system(&kind, from, &options, read_only).await?;
            let source = source.map_or(String::from("none"), |s| String::from_utf8_lossy(&s).into_owned());
            let read_only = root.file_system().is_read_only();
            let flags = if read_only { flags | MountFlags::READ_ONLY } else { flags };
            caller.mount(&path, root, &source, flags).await?;
        }
    }
    Ok(0)
}

pub(crate) async fn umount2<M: Machine>(call: &Call<'_, M>) -> Done {
    const FORCE: u32 = 1;
    const DETACH: u32 = 2;
    const NOFOLLOW: u32 = 8;
    let flags = call.uint(1);
    if flags & !(FORCE | DETACH | NOFOLLOW) != 0 {
        return Err(Error::EINVAL.into());
    }
    let path = call.path(0).await?;
    call.thread.context().caller().unmount(&path, flags & DETACH != 0, flags & NOFOLLOW == 0).await?;
    Ok(0)
}

pub(crate) async fn pivot_root<M: Machine>(call: &Call<'_, M>) -> Done {
    let new = call.path(0).await?;
    let put = call.path(1).await?;
    let (old, new) = call.thread.context().caller().pivot_root(&new, &put).await?;
    call.system().each_directories(|directories| directories.follow_pivot(&old, &new));
    Ok(0)
}
