//! Reports of changes of files to observers.
//!
//! An [`Observer`] belongs to a front end; the observed vnode's [`Hooks`](super::Hooks) have a weak
//! reference to it. Code that changes or uses a file calls [`happened`], [`created`], [`removed`]
//! or [`moved`] afterwards. While no file in the system is observed, such a call costs one load.

use super::{FileType, VnodeRef};
use crate::sync::SpinLock;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use bitflags::bitflags;
use core::any::Any;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

bitflags! {
    /// The kinds of changes of files that observers learn of.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct Changes: u16 {
        /// The file was read.
        const ACCESS = 1;
        /// The contents of the file changed.
        const MODIFY = 2;
        /// The attributes of the file changed.
        const ATTRIBUTES = 4;
        /// A file that was open for writing was closed.
        const CLOSE_WRITE = 8;
        /// A file that was open for reading only was closed.
        const CLOSE_OTHER = 0x10;
        /// The file was opened.
        const OPEN = 0x20;
        /// A file was moved out of the directory.
        const MOVED_FROM = 0x40;
        /// A file was moved into the directory.
        const MOVED_TO = 0x80;
        /// A file was made in the directory.
        const CREATE = 0x100;
        /// A file was removed from the directory.
        const DELETE = 0x200;
        /// The file itself was removed.
        const DELETE_SELF = 0x400;
        /// The file itself was moved.
        const MOVE_SELF = 0x800;
        /// A file got another name in the same directory. Told before both parts of the move.
        const RENAMED = 0x1000;
    }
}

/// A change of a file, as its observers learn of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'a> {
    /// What kinds of changes happened.
    pub kinds: Changes,
    /// Whether the changed file is a directory.
    pub directory: bool,
    /// The name of the changed file, if it is a file in the observed directory.
    pub name: Option<&'a [u8]>,
    /// A number that the two reports of one move share; 0 for other changes.
    pub cookie: u32,
}

/// An observer, which learns of all changes of a file.
pub trait Observer: Any + Send + Sync {
    /// Called after a change of the file, or of a file in the directory. Must not block; may add
    /// and remove observers.
    fn changed(&self, change: &Change<'_>);

    /// Called after the file has lost its last name. The observer has been removed from the file's
    /// list.
    fn deleted(&self);
}

/// How many [`Observing`] objects there are.
static OBSERVING: AtomicUsize = AtomicUsize::new(0);

/// While one of these exists, changes are reported. An observer has to have one before it is added
/// to a list.
#[derive(Debug)]
pub struct Observing(());

impl Observing {
    /// Changes are reported from now on, until the result is dropped.
    #[expect(clippy::new_without_default, reason = "it has an effect")]
    pub fn new() -> Observing {
        // Relaxed ordering: only the list's lock orders the adding of an observer with a change of
        // the file.
        OBSERVING.fetch_add(1, Ordering::Relaxed);
        Observing(())
    }
}

impl Drop for Observing {
    fn drop(&mut self) {
        OBSERVING.fetch_sub(1, Ordering::Relaxed);
    }
}

fn is_anything_observed() -> bool {
    OBSERVING.load(Ordering::Relaxed) > 0
}

/// The observers of one file.
#[derive(Default)]
pub struct Observers(SpinLock<Vec<Weak<dyn Observer>>>);

impl Observers {
    /// Calls `work` with the list of the file's observers, which is locked meanwhile. `work` must
    /// be short, and must not change the file.
    pub fn with<R>(&self, work: impl FnOnce(&mut Vec<Weak<dyn Observer>>) -> R) -> R {
        let mut list = self.0.lock();
        list.retain(|observer| observer.strong_count() > 0);
        work(&mut list)
    }
}

/// Reports changes of `file` to its own observers, and to those of the directory in which it was
/// found (or else has a name).
pub(crate) fn happened(file: &VnodeRef, entry: Option<(&VnodeRef, &[u8])>, kinds: Changes) {
    if !is_anything_observed() {
        return;
    }
    let directory = is_directory(file);
    notify(file, Change { kinds, directory, name: None, cookie: 0 });
    match entry {
        Some((above, name)) => notify(above, Change { kinds, directory, name: Some(name), cookie: 0 }),
        None => {
            if let Some((above, name)) = file.place() {
                notify(&above, Change { kinds, directory, name: Some(&name), cookie: 0 });
            }
        }
    }
}

/// Reports that `file` was given the name `name` in `directory`.
pub(crate) fn created(directory: &VnodeRef, name: &[u8], file: &VnodeRef) {
    if is_anything_observed() {
        tell_of_name(directory, name, file, Changes::CREATE, 0);
    }
}

/// Reports that `file` has lost its name in `directory`.
pub(crate) fn removed(directory: &VnodeRef, name: &[u8], file: &VnodeRef) {
    if is_anything_observed() {
        lost_name(file);
        tell_of_name(directory, name, file, Changes::DELETE, 0);
    }
}

/// Reports that a file has lost a name, and tells its observers if that was the last one.
pub(crate) fn lost_name(file: &VnodeRef) {
    if !is_anything_observed() {
        return;
    }
    let directory = is_directory(file);
    let own = |kinds| Change { kinds, directory, name: None, cookie: 0 };
    if !directory {
        notify(file, own(Changes::ATTRIBUTES));
    }
    if directory || file.metadata().links == 0 {
        notify(file, own(Changes::DELETE_SELF));
        let observers = file.hooks().map(|hooks| hooks.observers.with(core::mem::take));
        observers.iter().flatten().filter_map(Weak::upgrade).for_each(|observer| observer.deleted());
    }
}

/// Reports that `file` was moved.
pub(crate) fn moved(from: (&VnodeRef, &[u8]), to: (&VnodeRef, &[u8]), file: &VnodeRef) {
    static COOKIE: AtomicU32 = AtomicU32::new(1);
    if !is_anything_observed() {
        return;
    }
    let cookie = COOKIE.fetch_add(1, Ordering::Relaxed);
    if Arc::ptr_eq(from.0, to.0) {
        tell_of_name(from.0, from.1, file, Changes::RENAMED, 0);
    }
    tell_of_name(from.0, from.1, file, Changes::MOVED_FROM, cookie);
    tell_of_name(to.0, to.1, file, Changes::MOVED_TO, cookie);
    let directory = is_directory(file);
    notify(file, Change { kinds: Changes::MOVE_SELF, directory, name: None, cookie: 0 });
}

fn is_directory(file: &VnodeRef) -> bool {
    file.file_type() == FileType::Directory
}

fn tell_of_name(directory: &VnodeRef, name: &[u8], file: &VnodeRef, kinds: Changes, cookie: u32) {
    notify(directory, Change { kinds, directory: is_directory(file), name: Some(name), cookie });
}

/// Reports a change to all observers of `file`. The list is not locked while they are called.
fn notify(file: &VnodeRef, change: Change<'_>) {
    let Some(hooks) = file.hooks() else { return };
    let observers: Vec<Arc<dyn Observer>> =
        hooks.observers.with(|list| list.iter().filter_map(Weak::upgrade).collect());
    observers.iter().for_each(|observer| observer.changed(&change));
}
