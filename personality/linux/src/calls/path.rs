//! Calls on path names and attributes: stat, access, directories, links, owners, times, extended
//! attributes, mounts.

use super::descriptor::{file, named_file};
use crate::call::{Call, Done};
use crate::layout::Fields;
use crate::layout::file::{device, file_type, to_stat, to_statfs, to_statx};
use alloc::vec::Vec;
use mach::Machine;
use unix::namespace::IdKind;
use unix::vfs::{
    Access, AccessList, At, AttributeCondition, FileType, ListKind, Location, Metadata, Mode, RenameHow,
    SetTime, Tag,
};
use unix::{Error, Result, Timestamp};

const SYMLINK_NOFOLLOW: u32 = 0x100;
const REMOVEDIR: u32 = 0x200;
const EACCESS: u32 = 0x200;
const SYMLINK_FOLLOW: u32 = 0x400;
const NO_AUTOMOUNT: u32 = 0x800;
const EMPTY_PATH: u32 = 0x1000;

/// The metadata of the file that a path names, or of `at` itself if the path is empty and that is
/// allowed.
async fn metadata<M: Machine>(
    call: &Call<'_, M>,
    at: At,
    path: &[u8],
    follow: bool,
    empty: bool,
) -> Result<Metadata> {
    if let (true, true, At::File(file)) = (path.is_empty(), empty, &at) {
        return Ok(file.metadata());
    }
    call.thread.context().caller().status(&at, path, follow, empty).await
}

pub(crate) async fn stat<M: Machine>(call: &Call<'_, M>, follow: bool) -> Done {
    let found = metadata(call, At::Current, &call.path(0).await?, follow, false).await?;
    call.write(call.arg(1), &to_stat(&call.shown(found))).await?;
    Ok(0)
}

pub(crate) async fn fstat<M: Machine>(call: &Call<'_, M>) -> Done {
    let found = named_file(call, 0)?.metadata();
    call.write(call.arg(1), &to_stat(&call.shown(found))).await?;
    Ok(0)
}

pub(crate) async fn newfstatat<M: Machine>(call: &Call<'_, M>) -> Done {
    let flags = call.uint(3);
    if flags & !(SYMLINK_NOFOLLOW | EMPTY_PATH | NO_AUTOMOUNT) != 0 {
        return Err(Error::EINVAL.into());
    }
    let path = call.path(1).await?;
    let at = call.at_for(0, &path)?;
    let found = metadata(call, at, &path, flags & SYMLINK_NOFOLLOW == 0, flags & EMPTY_PATH != 0).await?;
    call.write(call.arg(2), &to_stat(&call.shown(found))).await?;
    Ok(0)
}

pub(crate) async fn statx<M: Machine>(call: &Call<'_, M>) -> Done {
    const SYNC_TYPES: u32 = 0x6000;
    const RESERVED: u32 = 0x8000_0000;
    let flags = call.uint(2);
    let known = SYMLINK_NOFOLLOW | EMPTY_PATH | NO_AUTOMOUNT | SYNC_TYPES;
    if flags & !known != 0 || flags & SYNC_TYPES == SYNC_TYPES || call.uint(3) & RESERVED != 0 {
        return Err(Error::EINVAL.into());
    }
    let path = call.path(1).await?;
    let at = call.at_for(0, &path)?;
    let (follow, empty) = (flags & SYMLINK_NOFOLLOW == 0, flags & EMPTY_PATH != 0);
    let found = metadata(call, at.clone(), &path, follow, empty).await?;
    let place = call.thread.context().caller().find_or_self(&at, &path, follow, empty).await;
    let mount = place.map_or(0, |found| found.location.mount.id());
    call.write(call.arg(4), &to_statx(&call.shown(found), mount)).await?;
    Ok(0)
}

pub(crate) async fn access<M: Machine>(call: &Call<'_, M>) -> Done {
    check_access(call, At::Current, call.path(0).await?, call.uint(1), 0).await
}

pub(crate) async fn faccessat<M: Machine>(call: &Call<'_, M>, flags: u32) -> Done {
    if flags & !(EACCESS | SYMLINK_NOFOLLOW | EMPTY_PATH) != 0 {
        return Err(Error::EINVAL.into());
    }
    let path = call.path(1).await?;
    check_access(call, call.at_for(0, &path)?, path, call.uint(2), flags).await
}

async fn check_access<M: Machine>(call: &Call<'_, M>, at: At, path: Vec<u8>, mode: u32, flags: u32) -> Done {
    if mode & !7 != 0 {
        return Err(Error::EINVAL.into());
    }
    let credentials = call.thread.credentials();
    let identity = if flags & EACCESS != 0 { credentials.identity() } else { credentials.real_identity() };
    let (follow, empty) = (flags & SYMLINK_NOFOLLOW == 0, flags & EMPTY_PATH != 0);
    let (context, access) = (call.thread.context(), Access::from_bits_retain(mode as u8));
    context.caller().access(&identity, &at, &path, follow, empty, access).await?;
    Ok(0)
}

pub(crate) async fn getcwd<M: Machine>(call: &Call<'_, M>) -> Done {
    let mut path = call.thread.context().caller().current_path()?;
    path.push(0);
    if path.len() as u64 > call.arg(1) {
        return Err(Error::ERANGE.into());
    }
    call.write(call.arg(0), &path).await?;
    Ok(path.len() as u64)
}

pub(crate) async fn chdir<M: Machine>(call: &Call<'_, M>) -> Done {
    let path = call.path(0).await?;
    call.thread.context().caller().change_directory(&At::Current, &path, false).await?;
    Ok(0)
}

pub(crate) async fn fchdir<M: Machine>(call: &Call<'_, M>) -> Done {
    let at = At::File(named_file(call, 0)?);
    call.thread.context().caller().change_directory(&at, b"", true).await?;
    Ok(0)
}

pub(crate) async fn chroot<M: Machine>(call: &Call<'_, M>) -> Done {
    let path = call.path(0).await?;
    call.thread.context().caller().change_root(&path).await?;
    Ok(0)
}

fn mode(bits: u64) -> Mode {
    Mode::new((bits & 0o7777) as u16)
}

/// The directory and path of an `*at` call whose directory is argument `index`, or of its older
/// form, whose path is argument `index`.
async fn place<M: Machine>(
    call: &Call<'_, M>,
    index: usize,
    has_directory: bool,
) -> Result<(At, Vec<u8>, usize)> {
    let at = if has_directory { index + 1 } else { index };
    let path = call.path(at).await?;
    let directory = if has_directory { call.at_for(index, &path)? } else { At::Current };
    Ok((directory, path, at + 1))
}

pub(crate) async fn mkdir<M: Machine>(call: &Call<'_, M>, has_directory: bool) -> Done {
    let (at, path, next) = place(call, 0, has_directory).await?;
    call.thread.context().caller().make_directory(&at, &path, mode(call.arg(next))).await?;
    Ok(0)
}

pub(crate) async fn rmdir<M: Machine>(call: &Call<'_, M>) -> Done {
    let path = call.path(0).await?;
    call.thread.context().caller().remove_directory(&At::Current, &path).await?;
    Ok(0)
}

pub(crate) async fn unlink<M: Machine>(call: &Call<'_, M>) -> Done {
    let path = call.path(0).await?;
    call.thread.context().caller().unlink(&At::Current, &path).await?;
    Ok(0)
}

pub(crate) async fn unlinkat<M: Machine>(call: &Call<'_, M>) -> Done {
    let (at, path, _) = place(call, 0, true).await?;
    let context = call.thread.context();
    match call.uint(2) {
        0 => context.caller().unlink(&at, &path).await?,
        REMOVEDIR => context.caller().remove_directory(&at, &path).await?,
        _ => return Err(Error::EINVAL.into()),
    }
    Ok(0)
}

pub(crate) async fn mknod<M: Machine>(call: &Call<'_, M>, has_directory: bool) -> Done {
    let (at, path, next) = place(call, 0, has_directory).await?;
    let bits = call.uint(next);
    let (kind, number) = (file_type(bits)?, device(u64::from(call.uint(next + 1))));
    call.thread.context().caller().make_node(&at, &path, kind, mode(bits.into()), number).await?;
    Ok(0)
}

pub(crate) async fn symlink<M: Machine>(call: &Call<'_, M>, has_directory: bool) -> Done {
    let target = call.path(0).await?;
    let (at, path, _) = place(call, 1, has_directory).await?;
    call.thread.context().caller().make_link(&target, &at, &path).await?;
    Ok(0)
}

pub(crate) async fn readlink<M: Machine>(call: &Call<'_, M>, has_directory: bool) -> Done {
    let (at, path, next) = place(call, 0, has_directory).await?;
    let size = usize::try_from(call.int(next + 1)).ok().filter(|size| *size > 0).ok_or(Error::EINVAL)?;
    let target = call.thread.context().caller().read_link(&at, &path).await?;
    let shown = &target[..target.len().min(size)];
    call.write(call.arg(next), shown).await?;
    Ok(shown.len() as u64)
}

pub(crate) async fn link<M: Machine>(call: &Call<'_, M>) -> Done {
    let (old, new) = (call.path(0).await?, call.path(1).await?);
    let context = call.thread.context();
    context.caller().link(&At::Current, &old, false, false, &At::Current, &new).await?;
    Ok(0)
}

pub(crate) async fn linkat<M: Machine>(call: &Call<'_, M>) -> Done {
    let flags = call.uint(4);
    if flags & !(SYMLINK_FOLLOW | EMPTY_PATH) != 0 {
        return Err(Error::EINVAL.into());
    }
    let (old_at, old, _) = place(call, 0, true).await?;
    let (new_at, new, _) = place(call, 2, true).await?;
    let (follow, empty) = (flags & SYMLINK_FOLLOW != 0, flags & EMPTY_PATH != 0);
    call.thread.context().caller().link(&old_at, &old, follow, empty, &new_at, &new).await?;
    Ok(0)
}

pub(crate) async fn rename<M: Machine>(call: &Call<'_, M>) -> Done {
    let (old, new) = (call.path(0).await?, call.path(1).await?);
    let context = call.thread.context();
    context.caller().rename(&At::Current, &old, &At::Current, &new, RenameHow::Replace).await?;
    Ok(0)
}

pub(crate) async fn renameat<M: Machine>(call: &Call<'_, M>, flags: u32) -> Done {
    let how = match flags {
        0 => RenameHow::Replace,
        1 => RenameHow::NoReplace,
        2 => RenameHow::Exchange,
        _ => return Err(Error::EINVAL.into()),
    };
    let (old_at, old, _) = place(call, 0, true).await?;
    let (new_at, new, _) = place(call, 2, true).await?;
    call.thread.context().caller().rename(&old_at, &old, &new_at, &new, how).await?;
    Ok(0)
}

/// The location of the open file whose descriptor is argument `index`.
fn open_place<M: Machine>(call: &Call<'_, M>, index: usize) -> Result<Location> {
    file(call, index)?.location().cloned().ok_or(Error::EINVAL)
}

/// The file that a path argument names.
async fn found<M: Machine>(
    call: &Call<'_, M>,
    at: &At,
    path: &[u8],
    follow: bool,
    empty: bool,
) -> Result<Location> {
    Ok(call.thread.context().caller().find_or_self(at, path, follow, empty).await?.location)
}

pub(crate) async fn chmod<M: Machine>(call: &Call<'_, M>) -> Done {
    let place = found(call, &At::Current, &call.path(0).await?, true, false).await?;
    call.thread.context().caller().change_mode(&place, mode(call.arg(1))).await?;
    Ok(0)
}

pub(crate) async fn fchmod<M: Machine>(call: &Call<'_, M>) -> Done {
    let place = open_place(call, 0)?;
    call.thread.context().caller().change_mode(&place, mode(call.arg(1))).await?;
    Ok(0)
}

pub(crate) async fn fchmodat<M: Machine>(call: &Call<'_, M>, flags: u32) -> Done {
    if flags & !(SYMLINK_NOFOLLOW | EMPTY_PATH) != 0 {
        return Err(Error::EINVAL.into());
    }
    let (at, path, next) = place(call, 0, true).await?;
    let place = found(call, &at, &path, flags & SYMLINK_NOFOLLOW == 0, flags & EMPTY_PATH != 0).await?;
    if place.vnode.file_type() == FileType::SymbolicLink {
        return Err(Error::EOPNOTSUPP.into());
    }
    call.thread.context().caller().change_mode(&place, mode(call.arg(next))).await?;
    Ok(0)
}

fn optional_id(id: u32) -> Option<u32> {
    (id != u32::MAX).then_some(id)
}

async fn change_owner<M: Machine>(call: &Call<'_, M>, place: Location, user: usize) -> Done {
    let (user, group) = (optional_id(call.uint(user)), optional_id(call.uint(user + 1)));
    let user = user.map(|user| call.user(user)).transpose()?;
    let group = group.map(|group| call.group(group)).transpose()?;
    call.thread.context().caller().change_owner(&place, user, group).await?;
    Ok(0)
}

pub(crate) async fn chown<M: Machine>(call: &Call<'_, M>, follow: bool) -> Done {
    let place = found(call, &At::Current, &call.path(0).await?, follow, false).await?;
    change_owner(call, place, 1).await
}

pub(crate) async fn fchown<M: Machine>(call: &Call<'_, M>) -> Done {
    change_owner(call, open_place(call, 0)?, 1).await
}

pub(crate) async fn fchownat<M: Machine>(call: &Call<'_, M>) -> Done {
    let flags = call.uint(4);
    if flags & !(SYMLINK_NOFOLLOW | EMPTY_PATH) != 0 {
        return Err(Error::EINVAL.into());
    }
    let (at, path, _) = place(call, 0, true).await?;
    let place = found(call, &at, &path, flags & SYMLINK_NOFOLLOW == 0, flags & EMPTY_PATH != 0).await?;
    change_owner(call, place, 2).await
}

fn set_time(bytes: &[u8]) -> Result<Option<SetTime>> {
    const NOW: i64 = 0x3fff_ffff;
    const OMIT: i64 = 0x3fff_fffe;
    let (seconds, nanoseconds) = (bytes.i64_at(0)?, bytes.i64_at(8)?);
    match nanoseconds {
        NOW => Ok(Some(SetTime::Now)),
        OMIT => Ok(None),
        0..1_000_000_000 => Ok(Some(SetTime::To(Timestamp { seconds, nanoseconds: nanoseconds as u32 }))),
        _ => Err(Error::EINVAL),
    }
}

pub(crate) async fn utimensat<M: Machine>(call: &Call<'_, M>) -> Done {
    let flags = call.uint(3);
    if flags & !(SYMLINK_NOFOLLOW | EMPTY_PATH) != 0 {
        return Err(Error::EINVAL.into());
    }
    let (accessed, modified) = match call.arg(2) {
        0 => (Some(SetTime::Now), Some(SetTime::Now)),
        address => {
            let times = call.read::<32>(address).await?;
            (set_time(&times[..16])?, set_time(&times[16..])?)
        }
    };
    let place = match call.arg(1) {
        0 => open_place(call, 0)?,
        _ => {
            let (at, path, _) = place(call, 0, true).await?;
            found(call, &at, &path, flags & SYMLINK_NOFOLLOW == 0, flags & EMPTY_PATH != 0).await?
        }
    };
    call.thread.context().caller().change_times(&place, accessed, modified).await?;
    Ok(0)
}

/// utime(2), with whole seconds, and utimes(2) and futimesat(2), with microseconds.
pub(crate) async fn utimes<M: Machine>(call: &Call<'_, M>, whole_seconds: bool, has_directory: bool) -> Done {
    let (at, path, next) = place(call, 0, has_directory).await?;
    let time = |seconds: i64, microseconds: i64| match microseconds {
        0..1_000_000 => Ok(Some(SetTime::To(Timestamp { seconds, nanoseconds: microseconds as u32 * 1000 }))),
        _ => Err(Error::EINVAL),
    };
    let (accessed, modified) = match call.arg(next) {
        0 => (Some(SetTime::Now), Some(SetTime::Now)),
        address if whole_seconds => {
            let times = call.read::<16>(address).await?;
            (time(times.i64_at(0)?, 0)?, time(times.i64_at(8)?, 0)?)
        }
        address => {
            let times = call.read::<32>(address).await?;
            (time(times.i64_at(0)?, times.i64_at(8)?)?, time(times.i64_at(16)?, times.i64_at(24)?)?)
        }
    };
    let place = found(call, &at, &path, true, false).await?;
    call.thread.context().caller().change_times(&place, accessed, modified).await?;
    Ok(0)
}

pub(crate) async fn truncate<M: Machine>(call: &Call<'_, M>) -> Done {
    let path = call.path(0).await?;
    let size = u64::try_from(call.arg(1) as i64).map_err(|_| Error::EINVAL)?;
    let done = call.thread.context().caller().truncate(&At::Current, &path, size).await;
    done.inspect_err(|error| call.signal_for(*error))?;
    Ok(0)
}

pub(crate) fn umask<M: Machine>(call: &Call<'_, M>) -> Done {
    let old = call.thread.directories().set_umask(Mode::new((call.arg(0) & 0o777) as u16));
    Ok(old.bits().into())
}

async fn file_system<M: Machine>(call: &Call<'_, M>, place: Location) -> Done {
    let flags = place.mount.flags();
    let bits = super::mount::FLAGS
        .iter()
        .filter(|(flag, _)| flags.contains(*flag))
        .fold(0, |bits, (_, bit)| bits | bit);
    let status = call.thread.context().caller().file_system_status(&place).await?;
    call.write(call.arg(1), &to_statfs(&status, bits)).await?;
    Ok(0)
}

pub(crate) async fn statfs<M: Machine>(call: &Call<'_, M>) -> Done {
    let place = found(call, &At::Current, &call.path(0).await?, true, false).await?;
    file_system(call, place).await
}

pub(crate) async fn fstatfs<M: Machine>(call: &Call<'_, M>) -> Done {
    let place = named_file(call, 0)?.location().cloned().ok_or(Error::EINVAL)?;
    file_system(call, place).await
}

/// How the first argument of an extended-attribute call names the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Named {
    Path,
    Link,
    Open,
}

async fn attribute_place<M: Machine>(call: &Call<'_, M>, named: Named) -> Result<Location> {
    match named {
        Named::Open => open_place(call, 0),
        _ => found(call, &At::Current, &call.path(0).await?, named == Named::Path, false).await,
    }
}

async fn attribute_name<M: Machine>(call: &Call<'_, M>) -> Result<Vec<u8>> {
    let name = call.memory().read_string(call.arg(1), 256, Error::ERANGE).await?;
    if name.is_empty() { Err(Error::ERANGE) } else { Ok(name) }
}

/// Copies bytes to the program and returns their size; if the program's size is 0, only returns the
/// size.
async fn return_bytes<M: Machine>(call: &Call<'_, M>, bytes: &[u8], address: usize) -> Done {
    let size = call.arg(address + 1);
    if size != 0 {
        if (bytes.len() as u64) > size {
            return Err(Error::ERANGE.into());
        }
        call.write(call.arg(address), bytes).await?;
    }
    Ok(bytes.len() as u64)
}

/// An access control list with the ids of the system, from the numbers that the caller has of them.
/// `None` if it is to be removed. `EINVAL` for a number that stands for no id.
fn to_list<M: Machine>(call: &Call<'_, M>, value: &[u8]) -> Result<Option<AccessList>> {
    if value.is_empty() {
        return Ok(None);
    }
    let of_system = |list: AccessList| {
        list.with_ids(|tag| match tag {
            Tag::User(number) => call.user(number).ok().map(Tag::User),
            Tag::Group(number) => call.group(number).ok().map(Tag::Group),
            tag => Some(tag),
        })
    };
    AccessList::read(value)?.map(of_system).transpose()
}

/// The list as the caller sees it.
fn shown_list<M: Machine>(call: &Call<'_, M>, list: &AccessList) -> Result<AccessList> {
    let users = call.users();
    let number = |kind, id| users.number_of(kind, id).unwrap_or(u32::MAX);
    list.with_ids(|tag| {
        Some(match tag {
            Tag::User(id) => Tag::User(number(IdKind::User, id)),
            Tag::Group(id) => Tag::Group(number(IdKind::Group, id)),
            tag => tag,
        })
    })
}

pub(crate) async fn getxattr<M: Machine>(call: &Call<'_, M>, named: Named) -> Done {
    let (place, name) = (attribute_place(call, named).await?, attribute_name(call).await?);
    if let Some(kind) = ListKind::of_attribute(&name) {
        let list = call.thread.context().caller().list(&place, kind).await?.ok_or(Error::ENODATA)?;
        return return_bytes(call, shown_list(call, &list)?.bytes(), 2).await;
    }
    let value = call.thread.context().caller().attribute(&place, &name).await?;
    return_bytes(call, &value, 2).await
}

pub(crate) async fn listxattr<M: Machine>(call: &Call<'_, M>, named: Named) -> Done {
    let place = attribute_place(call, named).await?;
    let names = call.thread.context().caller().attributes(&place).await?;
    return_bytes(call, &names, 1).await
}

pub(crate) async fn setxattr<M: Machine>(call: &Call<'_, M>, named: Named) -> Done {
    const LIMIT: u64 = 65536;
    let condition = match call.uint(4) {
        0 => AttributeCondition::Any,
        1 => AttributeCondition::Create,
        2 => AttributeCondition::Replace,
        _ => return Err(Error::EINVAL.into()),
    };
    let (place, name) = (attribute_place(call, named).await?, attribute_name(call).await?);
    if call.arg(3) > LIMIT {
        return Err(Error::E2BIG.into());
    }
    let value = call.memory().read_bytes(call.arg(2), call.arg(3) as usize).await?;
    if let Some(kind) = ListKind::of_attribute(&name) {
        let list = to_list(call, &value)?;
        call.thread.context().caller().set_list(&place, kind, list).await?;
        return Ok(0);
    }
    call.thread.context().caller().set_attribute(&place, &name, Some(&value), condition).await?;
    Ok(0)
}

pub(crate) async fn removexattr<M: Machine>(call: &Call<'_, M>, named: Named) -> Done {
    let (place, name) = (attribute_place(call, named).await?, attribute_name(call).await?);
    let context = call.thread.context();
    if let Some(kind) = ListKind::of_attribute(&name) {
        context.caller().set_list(&place, kind, None).await?;
        return Ok(0);
    }
    context.caller().set_attribute(&place, &name, None, AttributeCondition::Replace).await?;
    Ok(0)
}
