//! Spare page tables: empty ones that stay where they are.
//!
//! A program that gets a page, uses it and gives it back often has nothing else in that page's
//! table. So the last table of a space that has become empty stays in place, with those above that
//! only lead to it, still paid by the space (K4): the next page there finds it. At most [`MOST`]
//! spaces have one. It goes when another table of the space becomes empty, when a larger page is to
//! be mapped in its place, with the space, and when any allocation of kernel memory fails otherwise
//! ([`or_from_spare`]).
//!
//! Spare tables are never ports' or sigma0's.
use super::changes::Changes;
use super::lock;
use super::space::SpaceMemory;
use super::table::{self, EntryRef, Table};
use crate::memory::OutOfMemory;
use crate::sync::SpinLock;

/// The maximum number of spaces that have a spare table.
const MOST: usize = 16;

/// All spaces that have a spare table, and perhaps some that had one.
struct Spaces {
    spaces: [Option<SpaceMemory>; MOST],
    /// The place that the next space gets if all are taken.
    next: usize,
}

static SPACES: SpinLock<Spaces> = SpinLock::new(Spaces { spaces: [None; MOST], next: 0 });

impl Spaces {
    /// Enters `space` in the table. Returns the space that it replaces.
    fn insert(&mut self, space: SpaceMemory) -> Option<SpaceMemory> {
        if self.spaces.contains(&Some(space)) {
            return None;
        }
        let place = self.spaces.iter().position(|place| place.is_none_or(|space| space.spare().is_none()));
        let place = place.unwrap_or_else(|| {
            let oldest = self.next;
            self.next = (oldest + 1) % MOST;
            oldest
        });
        self.spaces[place].replace(space)
    }
}

/// Forgets the spare tables of an earlier machine.
pub(super) fn init() {
    *SPACES.lock() = Spaces { spaces: [None; MOST], next: 0 };
}

/// `table` of `space`, which keeps one, has become empty and is not its spare table: now it is. The
/// one before goes.
#[cold]
pub(super) fn keep(space: SpaceMemory, table: Table) {
    debug_assert!(table.used() == 0 && table != space.root());
    match space.replace_spare(Some(table)) {
        Some(before) => _ = release_table(space, before),
        None => {
            let other = SPACES.lock().insert(space);
            if let Some(other) = other {
                release(other);
            }
        }
    }
}

/// Frees the spare table of `space`, and those that only led to it. Whether there was one.
#[cold]
pub(super) fn release(space: SpaceMemory) -> bool {
    space.replace_spare(None).is_some_and(|table| release_table(space, table))
}

/// A page will come to `at` of `space`: its table is spare no more.
pub(super) fn claim(space: SpaceMemory, at: EntryRef) {
    if space.spare() == Some(at.table()) {
        space.replace_spare(None);
    }
}

/// Frees `table`, which is a spare table no more, if it is empty.
fn release_table(space: SpaceMemory, table: Table) -> bool {
    let empty = table.used() == 0;
    if empty {
        table::release(space, table, &mut Changes::new());
    }
    empty
}

/// Takes the spare table of `space`, which ends, and keeps none for it from now on.
pub(super) fn end_space(space: SpaceMemory) {
    if space.keeps_spare() {
        release(space);
        space.keep_no_spare();
        SPACES
            .lock()
            .spaces
            .iter_mut()
            .filter(|place| **place == Some(space))
            .for_each(|place| *place = None);
    }
}

/// Kernel memory is short: frees all spare tables. Whether there were any. Under [`lock::lock`].
pub(super) fn give_back() -> bool {
    let spaces = core::mem::replace(&mut SPACES.lock().spaces, [None; MOST]);
    spaces.into_iter().flatten().filter(|&space| release(space)).count() > 0
}

/// The result of `allocate`, which leaves nothing when it fails. If it lacks memory, it is called a
/// second time without spare tables. Under [`lock::lock`].
#[inline]
pub(super) fn or_give_back<T>(
    mut allocate: impl FnMut() -> Result<T, OutOfMemory>,
) -> Result<T, OutOfMemory> {
    allocate().or_else(|error| if give_back() { allocate() } else { Err(error) })
}

/// Like [`or_give_back`], not under [`lock::lock`].
#[inline]
pub fn or_from_spare<T>(mut allocate: impl FnMut() -> Result<T, OutOfMemory>) -> Result<T, OutOfMemory> {
    allocate().or_else(|error| if lock::give_back() { allocate() } else { Err(error) })
}
