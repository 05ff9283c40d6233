//! Telling programs what happens to files (inotify(7)).
//!
//! A [`Watch`] belongs to a [`Notifier`], which is what a program holds; the watched vnode's
//! [`Hooks`] have a weak reference to it. Code that does something to a file calls `happened` (or
//! one of its relatives) afterwards. While there is no watch in the system, that costs one load.

mod notifier;

#[cfg(test)]
mod tests;

pub use notifier::{Event, Notifier, WatchHow};

use crate::account::Charge;
use crate::vfs::{FileType, VnodeRef};
use alloc::sync::{Arc, Weak};
use bitflags::bitflags;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

#[cfg(doc)]
use crate::vfs::Hooks;

bitflags! {
    /// The events that inotify reports.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Events: u32 {
        /// The watched file was read.
        const ACCESS = 1;
        /// The contents of the file changed.
        const MODIFY = 2;
        /// The attributes of the file changed.
        const ATTRIBUTES = 4;
        /// It was closed after it had been open for writing.
        const CLOSE_WRITE = 8;
        /// It was closed after it had been open for reading only.
        const CLOSE_OTHER = 0x10;
        /// The file was opened.
        const OPEN = 0x20;
        /// A file was moved out of the watched directory.
        const MOVED_FROM = 0x40;
        /// A file was moved into the watched directory.
        const MOVED_TO = 0x80;
        /// A file was made in the watched directory.
        const CREATE = 0x100;
        /// A file was removed from the watched directory.
        const DELETE = 0x200;
        /// The watched file itself was removed.
        const DELETE_SELF = 0x400;
        /// The watched file itself was moved.
        const MOVE_SELF = 0x800;
        /// Events were lost.
        const OVERFLOW = 0x1000;
        /// The watch was removed.
        const IGNORED = 0x2000;
        /// The event concerns a directory.
        const DIRECTORY = 0x4000;
    }
}

/// The number of watches in the whole system.
static WATCHES: AtomicUsize = AtomicUsize::new(0);

/// One file that a notifier watches.
pub struct Watch {
    notifier: Weak<Notifier>,
    id: i32,
    /// [`Events`]; relaxed: an event that races with a change of the mask may be told by either.
    mask: AtomicU32,
    once: bool,
    _charge: Charge,
}

impl Watch {
    fn new(notifier: Weak<Notifier>, id: i32, mask: Events, once: bool, charge: Charge) -> Arc<Watch> {
        // Relaxed: adding a watch and causing an event are ordered by the hooks' lock only.
        WATCHES.fetch_add(1, Ordering::Relaxed);
        let mask = AtomicU32::new(mask.bits());
        Arc::new(Watch { notifier, id, mask, once, _charge: charge })
    }

    fn mask(&self) -> Events {
        Events::from_bits_retain(self.mask.load(Ordering::Relaxed))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        WATCHES.fetch_sub(1, Ordering::Relaxed);
    }
}

fn is_watched() -> bool {
    WATCHES.load(Ordering::Relaxed) > 0
}

/// Something happened to `file`: its own watches and those of the directory that it was found in
/// (or else has a name in) are told.
pub(crate) fn happened(file: &VnodeRef, entry: Option<(&VnodeRef, &[u8])>, events: Events) {
    if !is_watched() {
        return;
    }
    let kind = kind_of(file);
    tell(file, events | kind, None, 0);
    match entry {
        Some((directory, name)) => tell(directory, events | kind, Some(name), 0),
        None => {
            if let Some((directory, name)) = file.place() {
                tell(&directory, events | kind, Some(&name), 0);
            }
        }
    }
}

/// `file` was given the name `name` in `directory`.
pub(crate) fn created(directory: &VnodeRef, name: &[u8], file: &VnodeRef) {
    if is_watched() {
        tell(directory, Events::CREATE | kind_of(file), Some(name), 0);
    }
}

/// `file` has lost its name in `directory`.
pub(crate) fn removed(directory: &VnodeRef, name: &[u8], file: &VnodeRef) {
    if !is_watched() {
        return;
    }
    lost_name(file);
    tell(directory, Events::DELETE | kind_of(file), Some(name), 0);
}

/// A file has one name less: perhaps its last.
pub(crate) fn lost_name(file: &VnodeRef) {
    if !is_watched() {
        return;
    }
    let kind = kind_of(file);
    if kind.is_empty() {
        tell(file, Events::ATTRIBUTES, None, 0);
    }
    if kind.contains(Events::DIRECTORY) || file.metadata().links == 0 {
        tell(file, Events::DELETE_SELF | kind, None, 0);
        let watches = file.hooks().map(|hooks| core::mem::take(&mut *hooks.watches.lock()));
        for watch in watches.iter().flatten().filter_map(Weak::upgrade) {
            if let Some(notifier) = watch.notifier.upgrade() {
                notifier.forget(watch.id);
            }
        }
    }
}

/// `file` was moved.
pub(crate) fn moved(from: (&VnodeRef, &[u8]), to: (&VnodeRef, &[u8]), file: &VnodeRef) {
    static COOKIE: AtomicU32 = AtomicU32::new(1);
    if !is_watched() {
        return;
    }
    let (kind, cookie) = (kind_of(file), COOKIE.fetch_add(1, Ordering::Relaxed));
    tell(from.0, Events::MOVED_FROM | kind, Some(from.1), cookie);
    tell(to.0, Events::MOVED_TO | kind, Some(to.1), cookie);
    tell(file, Events::MOVE_SELF | kind, None, 0);
}

fn kind_of(file: &VnodeRef) -> Events {
    if file.file_type() == FileType::Directory { Events::DIRECTORY } else { Events::empty() }
}

/// Reports the events to all watches of `file`.
fn tell(file: &VnodeRef, events: Events, name: Option<&[u8]>, cookie: u32) {
    let Some(hooks) = file.hooks() else { return };
    let watches: alloc::vec::Vec<Arc<Watch>> = {
        let mut watches = hooks.watches.lock();
        if watches.is_empty() {
            return;
        }
        watches.retain(|watch| watch.strong_count() > 0);
        watches.iter().filter_map(Weak::upgrade).collect()
    };
    for watch in watches {
        let wanted = events & (watch.mask() | Events::DIRECTORY);
        if wanted == events & Events::DIRECTORY {
            continue;
        }
        if let Some(notifier) = watch.notifier.upgrade() {
            notifier.add(Event {
                watch: watch.id,
                events: wanted,
                cookie,
                name: name.unwrap_or_default().to_vec(),
            });
            if watch.once {
                notifier.forget(watch.id);
            }
        }
    }
}
