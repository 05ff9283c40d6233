//! The system calls inotify_init, inotify_add_watch, inotify_rm_watch.

use super::descriptor::{file, insert};
use crate::call::{Call, Done};
use crate::inotify::{Event, Events, Notifier, WatchHow};
use crate::layout::file::{CLOSE_ON_EXEC, open_flags};
use alloc::sync::Arc;
use alloc::vec::Vec;
use mach::Machine;
use unix::vfs::{Access, At, FileType, OpenFlags, permitted_at};
use unix::{Error, Result};

const ONLY_DIRECTORY: u32 = 0x0100_0000;
const DONT_FOLLOW: u32 = 0x0200_0000;
const EXCLUDE_UNLINKED: u32 = 0x0400_0000;
const MASK_CREATE: u32 = 0x1000_0000;
const MASK_ADD: u32 = 0x2000_0000;
const ONE_SHOT: u32 = 0x8000_0000;

/// An event as struct inotify_event, its name padded to a multiple of the size of that structure.
fn encode(event: &Event) -> Vec<u8> {
    let length = if event.name.is_empty() { 0 } else { (event.name.len() + 1).next_multiple_of(16) };
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&event.watch.to_le_bytes());
    for word in [event.events.bits(), event.cookie, length as u32] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.extend_from_slice(&event.name);
    bytes.resize(16 + length, 0);
    bytes
}

pub(crate) fn inotify_init<M: Machine>(call: &Call<'_, M>, flags: u32) -> Done {
    const NONBLOCK: u32 = 0o4000;
    if flags & !(CLOSE_ON_EXEC | NONBLOCK) != 0 {
        return Err(Error::EINVAL.into());
    }
    let status = open_flags(flags).intersection(OpenFlags::NONBLOCK);
    insert(call, Notifier::create(&call.account(), encode, status)?, flags & CLOSE_ON_EXEC != 0)
}

fn notifier<M: Machine>(call: &Call<'_, M>) -> Result<Arc<Notifier>> {
    file(call, 0)?.object_as().ok_or(Error::EINVAL)
}

pub(crate) async fn inotify_add_watch<M: Machine>(call: &Call<'_, M>) -> Done {
    const ASKED: u32 = Events::ASKED.bits();
    let mask = call.uint(2);
    let flags = ONLY_DIRECTORY | DONT_FOLLOW | EXCLUDE_UNLINKED | MASK_CREATE | MASK_ADD | ONE_SHOT;
    if mask & ASKED == 0
        || mask & !(ASKED | flags) != 0
        || mask & (MASK_ADD | MASK_CREATE) == MASK_ADD | MASK_CREATE
    {
        return Err(Error::EINVAL.into());
    }
    let notifier = notifier(call)?;
    let path = call.path(1).await?;
    let context = call.thread.context();
    let caller = context.caller();
    let place = caller.find(&At::Current, &path, mask & DONT_FOLLOW == 0).await?.location;
    if mask & ONLY_DIRECTORY != 0 && place.vnode.file_type() != FileType::Directory {
        return Err(Error::ENOTDIR.into());
    }
    permitted_at(&place, &call.thread.credentials().identity(), Access::READ)?;
    let events = Events::from_bits_retain(mask) & Events::ASKED;
    let how = match mask {
        mask if mask & MASK_ADD != 0 => WatchHow::Add,
        mask if mask & MASK_CREATE != 0 => WatchHow::New,
        _ => WatchHow::Replace,
    };
    Ok(notifier.watch(&place.vnode, events, mask & ONE_SHOT != 0, how)? as u64)
}

pub(crate) fn inotify_rm_watch<M: Machine>(call: &Call<'_, M>) -> Done {
    notifier(call)?.unwatch(call.int(1))?;
    Ok(0)
}
