//! The entry of the range that was deallocated last, which is cached for the next allocation of the
//! same kind.
//!
//! Programs often allocate memory, use it, free it, and allocate as much again. Then the entry,
//! with its object and its place in the tree, is *cached*: it is not in the map any more, and its
//! pages are unmapped and freed. An allocation of the same size, at the same place or by the same
//! placement rule, puts it back into the map if nothing has changed meanwhile. Before any other
//! change of the map, and before its entries are looked at, the cached entry is removed from the
//! tree ([`VmMap::settle`]).
//!
//! A request next to an entry of the same kind extends that entry, so that there is none to cache.
//! If its range is deallocated again, the next such request gets an entry of its own instead.

use alloc::sync::Arc;

use super::super::object::{Backing, ObjectState};
use super::entry::Behavior;
use super::{EntryId, MapRequest, MapState, Placement, VmMap};
use crate::machine::{Machine, PmapChange};

/// The maximum number of pages that are freed under the locks of the translation and the object.
const MOST_PAGES: usize = 64;

/// The state of the entry that was added last.
#[derive(Clone, Copy)]
pub(super) enum Recent {
    /// There is none, or the map has changed since it was added.
    Nothing,
    /// The entry is in the map as it was added.
    Added(Added),
    /// The entry was unmapped and is cached.
    Cached(Added),
    /// The request has extended another entry.
    Extended(Extension),
    /// The request had extended another entry, and its range was unmapped.
    Returned(Extension),
}

/// A range that has extended an entry, and the placement rule of the request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Extension {
    start: u64,
    end: u64,
    placement: Placement,
    alignment: u64,
}

/// An entry that was added, and the placement rule of the request.
#[derive(Clone, Copy)]
pub(super) struct Added {
    pub(super) id: EntryId,
    pub(super) placement: Placement,
    pub(super) alignment: u64,
}

impl<M: Machine> MapState<M> {
    /// Whether an entry is the cached one, and so not in the map.
    #[inline]
    pub(super) fn is_cached(&self, id: EntryId) -> bool {
        matches!(self.recent, Recent::Cached(added) if added.id == id)
    }
}

impl<M: Machine> VmMap<M> {
    /// Called before the map changes or is looked at: removes the cached entry, if there is one.
    #[inline]
    pub(super) fn settle(&self, state: &mut MapState<M>) {
        if let Recent::Cached(added) = core::mem::replace(&mut state.recent, Recent::Nothing) {
            self.take_out(state, added);
        }
    }

    #[cold]
    fn take_out(&self, state: &mut MapState<M>, added: Added) {
        // The size of the cached entry was not counted; removing the entry subtracts it.
        state.size += state.entries.end(added.id) - state.entries.start(added.id);
        self.remove_entry(state, added.id);
    }

    /// Puts the cached entry back into the map if it fits a request of `size` bytes, a whole number
    /// of pages. Returns its address.
    pub(super) fn take_up(&self, state: &mut MapState<M>, request: &MapRequest<M>, size: u64) -> Option<u64> {
        let Recent::Cached(added) = state.recent else { return None };
        let (start, end) = (state.entries.start(added.id), state.entries.end(added.id));
        let entry = state.entries.get(added.id);
        let fits = end - start == size
            && added.placement == request.placement
            && added.alignment == request.alignment
            && request.object.is_none()
            && entry.protection == request.protection
            && entry.max_protection == request.max_protection
            && entry.inheritance == request.inheritance;
        if !fits {
            return None;
        }
        self.translation.lock().hints.take_up();
        state.recent = Recent::Added(added);
        state.size += size;
        Some(start)
    }

    /// Caches the entry that was added last, if `start..end` is exactly that entry and its memory
    /// cannot be visible to another map.
    pub(super) fn cache_entry(&self, state: &mut MapState<M>, start: u64, end: u64) -> bool {
        let Recent::Added(added) = state.recent else { return false };
        if (state.entries.start(added.id), state.entries.end(added.id)) != (start, end) {
            return false;
        }
        let entry = state.entries.get(added.id);
        if entry.shared || entry.needs_copy || entry.wired > 0 || entry.behavior != Behavior::Default {
            return false;
        }
        {
            let mut translation = self.translation.lock();
            translation.hints.cache(start, end);
            if let Some(object) = &entry.object {
                if Arc::strong_count(object) > 1 {
                    return false;
                }
                let mut state = object.state.lock();
                if !is_plain(&state) {
                    return false;
                }
                if let Some(pmap) = &translation.pmap {
                    // Only a change that maps pages can fail.
                    let remove = PmapChange::Remove { address: start, length: end - start };
                    let _ = self.vm.machine().pmap_change(pmap, &[remove]);
                }
                self.vm.free_frames(&mut state.pages);
            }
        }
        state.size -= end - start;
        state.recent = Recent::Cached(added);
        true
    }

    /// Whether the last change was that a request as this one had extended an entry and was taken
    /// back.
    pub(super) fn was_returned(state: &MapState<M>, request: &MapRequest<M>, size: u64) -> bool {
        matches!(state.recent, Recent::Returned(Extension { start, end, placement, alignment })
            if end - start == size && placement == request.placement && alignment == request.alignment)
    }

    /// Records that a request has extended an entry.
    pub(super) fn remember_extension(
        state: &mut MapState<M>,
        request: &MapRequest<M>,
        (start, end): (u64, u64),
    ) {
        let MapRequest { placement, alignment, .. } = *request;
        state.recent = Recent::Extended(Extension { start, end, placement, alignment });
    }

    /// The last request, if it has extended an entry by this range.
    pub(super) fn extension(state: &MapState<M>, range: (u64, u64)) -> Option<Extension> {
        match state.recent {
            Recent::Extended(extension) if (extension.start, extension.end) == range => Some(extension),
            _ => None,
        }
    }

    /// Records the entry that a request has added, unless an existing entry was extended.
    pub(super) fn remember(
        &self,
        state: &mut MapState<M>,
        id: EntryId,
        request: &MapRequest<M>,
        (start, end): (u64, u64),
    ) {
        let whole = (state.entries.start(id), state.entries.end(id)) == (start, end);
        if whole && request.object.is_none() && !matches!(request.placement, Placement::Replace(_)) {
            let MapRequest { placement, alignment, .. } = *request;
            state.recent = Recent::Added(Added { id, placement, alignment });
        }
    }
}

/// Whether an object with a single reference is nothing but a few pages in memory.
fn is_plain<M: Machine>(state: &ObjectState<M>) -> bool {
    matches!(state.backing, Backing::Anonymous)
        && state.shadow.is_none()
        && state.copy.is_none()
        && !state.is_copy
        && !state.shared
        && state.paging == 0
        && state.pages.len() <= MOST_PAGES
}
