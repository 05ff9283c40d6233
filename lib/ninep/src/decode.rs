//! Requests as a server reads them.

use crate::body::Failure;
use crate::call::{AttributeChange, Call, REMOVE_DIRECTORY, Resume, SetTime, SpaceChange};
use crate::wire::Reader;
use crate::{HEADER, WALK_MAXIMUM, kind};

impl<'a> Call<'a> {
    /// Reads a request: its tag, and what is asked for. `names` is room for the names that are
    /// walked. What is not asked for by this library's client (a user's name, authentication) is
    /// not read.
    ///
    /// # Errors
    /// The message is no request.
    pub fn decode(
        message: &'a [u8],
        names: &'a mut [&'a [u8]; WALK_MAXIMUM],
    ) -> Result<(u16, Call<'a>), Failure> {
        let mut reader = Reader::new(message);
        let header = (|| Some((reader.word()?, reader.byte()?, reader.half()?)))();
        let (size, kind, tag) = header.ok_or(Failure::Malformed)?;
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let body = message.get(HEADER..size).ok_or(Failure::Malformed)?;
        let mut reader = Reader::new(body);
        let call = content(kind, &mut reader, names).ok_or(Failure::Malformed)?;
        if reader.is_empty() { Ok((tag, call)) } else { Err(Failure::Malformed) }
    }
}

fn content<'a>(kind: u8, from: &mut Reader<'a>, names: &'a mut [&'a [u8]; WALK_MAXIMUM]) -> Option<Call<'a>> {
    Some(match kind {
        kind::VERSION => {
            let size = from.word()?;
            from.string()?;
            Call::Version { size }
        }
        kind::ATTACH => {
            let fid = from.word()?;
            from.word()?;
            from.string()?;
            let name = from.string()?;
            Call::Attach { fid, name, user: from.word()? }
        }
        kind::WALK => {
            let (fid, new, count) = (from.word()?, from.word()?, usize::from(from.half()?));
            let names = names.get_mut(..count)?;
            for name in names.iter_mut() {
                *name = from.string()?;
            }
            Call::Walk { fid, new, names }
        }
        kind::OPEN => Call::Open { fid: from.word()?, flags: from.word()? },
        kind::CREATE => {
            let (fid, name) = (from.word()?, from.string()?);
            Call::Create { fid, name, flags: from.word()?, mode: from.word()?, group: from.word()? }
        }
        kind::SYMLINK => {
            let (directory, name, target) = (from.word()?, from.string()?, from.string()?);
            Call::Symlink { directory, name, target, group: from.word()? }
        }
        kind::MKNOD => {
            let (directory, name, mode) = (from.word()?, from.string()?, from.word()?);
            let device = (from.word()?, from.word()?);
            Call::Mknod { directory, name, mode, device, group: from.word()? }
        }
        kind::MKDIR => {
            let (directory, name) = (from.word()?, from.string()?);
            Call::Mkdir { directory, name, mode: from.word()?, group: from.word()? }
        }
        kind::LINK => Call::Link { directory: from.word()?, fid: from.word()?, name: from.string()? },
        kind::RENAMEAT | kind::EXCHANGE => {
            let (ends, new) = ((from.word()?, from.string()?, from.word()?), from.string()?);
            let (from, old, to) = ends;
            match kind {
                kind::RENAMEAT => Call::RenameAt { from, old, to, new },
                _ => Call::Exchange { from, old, to, new },
            }
        }
        kind::UNLINKAT => {
            let (fid, name) = (from.word()?, from.string()?);
            Call::UnlinkAt { fid, name, directory: from.word()? & REMOVE_DIRECTORY != 0 }
        }
        kind::READLINK => Call::ReadLink { fid: from.word()? },
        kind::GETATTR => {
            let fid = from.word()?;
            from.long()?;
            Call::GetAttributes { fid }
        }
        kind::SETATTR => {
            let fid = from.word()?;
            Call::SetAttributes { fid, change: change(from)? }
        }
        kind::READDIR => Call::ReadDirectory { fid: from.word()?, offset: from.long()?, count: from.word()? },
        kind::READ => Call::Read { fid: from.word()?, offset: from.long()?, count: from.word()? },
        kind::WRITE => Call::Write { fid: from.word()?, offset: from.long()?, data: from.data()? },
        kind::FSYNC => Call::Synchronize { fid: from.word()?, data_only: from.word()? != 0 },
        kind::STATFS => Call::Statfs { fid: from.word()? },
        kind::XATTRWALK => Call::XattrWalk { fid: from.word()?, new: from.word()?, name: from.string()? },
        kind::XATTRCREATE => {
            let (fid, name) = (from.word()?, from.string()?);
            Call::XattrCreate { fid, name, size: from.long()?, flags: from.word()? }
        }
        kind::CLUNK => Call::Clunk { fid: from.word()? },
        kind::MOUNT => {
            let (fid, flags) = (from.word()?, from.word()?);
            Call::Mount { fid, read_only: flags & 1 != 0, resume: flags & 2 != 0, time: from.long()? }
        }
        kind::RESUME => Call::Resume { step: step(from)? },
        kind::UNMOUNT => Call::Unmount,
        kind::REMOUNT => Call::Remount { read_only: from.word()? != 0 },
        kind::FIND => Call::Find { fid: from.word()?, new: from.word()?, name: from.string()? },
        kind::MAKE => {
            let (fid, new, name, mode) = (from.word()?, from.word()?, from.string()?, from.word()?);
            let (owner, device) = ((from.word()?, from.word()?), (from.word()?, from.word()?));
            Call::Make { fid, new, name, mode, owner, device, target: from.string()? }
        }
        kind::ALLOCATE => {
            let (fid, offset, length) = (from.word()?, from.long()?, from.long()?);
            let change = match from.word()? {
                0 => SpaceChange::Grow,
                1 => SpaceChange::Keep,
                2 => SpaceChange::Punch,
                _ => return None,
            };
            Call::Allocate { fid, offset, length, change }
        }
        kind::MAP => Call::Map { fid: from.word()?, offset: from.long()?, length: from.long()? },
        kind::PLACE => Call::Place { fid: from.word()?, offset: from.long()?, length: from.long()? },
        kind::WRITTEN => {
            let (fid, offset, length) = (from.word()?, from.long()?, from.long()?);
            Call::Written { fid, offset, length, size: from.long()? }
        }
        _ => return None,
    })
}

fn step(from: &mut Reader<'_>) -> Option<Resume> {
    let (number, fid) = (from.word()?, from.word()?);
    let [first, second, third] = [from.long()?, from.long()?, from.long()?];
    Some(match number {
        0 => Resume::Reserve { place: first, length: second },
        1 => Resume::Name { fid, inode: first },
        2 => Resume::Choose { inode: first },
        3 => Resume::Time { time: first },
        4 => Resume::Place { fid, offset: first, length: second, place: third },
        5 => Resume::End,
        _ => return None,
    })
}

fn change(from: &mut Reader<'_>) -> Option<AttributeChange> {
    let valid = from.word()?;
    let has = |bit: u32| valid & 1 << bit != 0;
    let [mode, user, group] = [from.word()?, from.word()?, from.word()?];
    let size = from.long()?;
    let mut time = |set: bool, explicit: bool| {
        let (seconds, nanoseconds) = (from.long()?, from.long()?);
        Some(set.then_some(if explicit { SetTime::To(seconds, nanoseconds) } else { SetTime::Now }))
    };
    let accessed = time(has(4), has(7))?;
    let modified = time(has(5), has(8))?;
    Some(AttributeChange {
        mode: has(0).then_some(mode),
        user: has(1).then_some(user),
        group: has(2).then_some(group),
        size: has(3).then_some(size),
        accessed,
        modified,
        changed: has(6),
    })
}
