//! Changes of a map: allocate, map, deallocate, protect, inherit, behavior; and queries about
//! regions.

use alloc::sync::Arc;

use super::super::fault;
use super::super::object::{Backing, VmObject};
use super::cached::Recent;
use super::entry::{Behavior, Entry, Inheritance};
use super::inherit;
use super::{MapRequest, MapState, Placement, VmMap, page_range};
use crate::machine::{Machine, PAGE_SHIFT, PAGE_SIZE, PmapChange, Protection};
use crate::{KernError, KernResult};

/// One region of a map: `vm_region`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionInfo {
    /// The first address of the region.
    pub start: u64,
    /// The size of the region in bytes.
    pub size: u64,
    /// The present rights.
    pub protection: Protection,
    /// The most rights that the region can be given.
    pub max_protection: Protection,
    /// What a child task gets of the region.
    pub inheritance: Inheritance,
    /// How the program says that it will use the region.
    pub behavior: Behavior,
    /// Whether other maps see what is written to the region.
    pub shared: bool,
    /// How often the region is wired.
    pub wired: u16,
    /// The object at the bottom of the chain (for a private file mapping, the file's) and the byte
    /// offset in it; `None` for memory that was not accessed yet.
    pub object: Option<(u64, u64)>,
}

impl<M: Machine> VmMap<M> {
    /// Maps `size` bytes of zeros: `vm_allocate`. Returns their address.
    ///
    /// # Errors
    /// Those of [`map`](Self::map).
    pub async fn allocate(&self, placement: Placement, size: u64) -> KernResult<u64> {
        self.map(&MapRequest::anonymous(size).at(placement)).await
    }

    /// Maps an object, a copy of one, or zeros: `vm_map`. Returns the address.
    ///
    /// # Errors
    /// `InvalidArgument`: size zero, unaligned address or offset, an alignment that is not a power
    /// of two, more rights than the maximum. `InvalidAddress`: the range wraps or leaves the map.
    /// `NoSpace`: the range is in use, or there is no free range. `NotSupported`: a copy of device
    /// memory. `ResourceShortage`: memory is short. After an error nothing has changed.
    pub async fn map(&self, request: &MapRequest<M>) -> KernResult<u64> {
        let (_, size) = page_range(0, request.size)?;
        let offset = request.object.as_ref().map_or(0, |(_, offset)| *offset);
        let valid = request.alignment.is_power_of_two()
            && offset.is_multiple_of(PAGE_SIZE)
            && request.max_protection.contains(request.protection);
        if !valid {
            return Err(KernError::InvalidArgument);
        }
        offset.checked_add(size).ok_or(KernError::InvalidArgument)?;
        if request.object.is_some() {
            // The entry is made before the map is locked, since that may copy an object.
            let entry = self.new_entry(request, offset)?;
            let state = &mut *self.change().await?;
            return self.map_entry(state, request, size, entry, true);
        }
        let state = &mut *self.open().await?;
        self.map_zeros(state, request, size)
    }

    /// Maps zeros like [`map`](Self::map), if the map is not locked. Otherwise returns `None`, and
    /// nothing has changed.
    pub fn try_allocate(&self, placement: Placement, size: u64) -> Option<KernResult<u64>> {
        let request = MapRequest::anonymous(size).at(placement);
        let now = || {
            let (_, size) = page_range(0, request.size)?;
            let Some(mut state) = self.try_open()? else { return Ok(None) };
            self.map_zeros(&mut state, &request, size).map(Some)
        };
        now().transpose()
    }

    /// Maps zeros for a request that has been checked.
    fn map_zeros(&self, state: &mut MapState<M>, request: &MapRequest<M>, size: u64) -> KernResult<u64> {
        if let Some(start) = self.take_up(state, request, size) {
            return Ok(start);
        }
        let joins = !Self::was_returned(state, request, size);
        self.prepare_change(state);
        self.map_entry(state, request, size, self.new_entry(request, 0)?, joins)
    }

    /// Adds `entry` for a request that has been checked. If `joins`, it may become a part of its
    /// neighbours.
    fn map_entry(
        &self,
        state: &mut MapState<M>,
        request: &MapRequest<M>,
        size: u64,
        entry: Entry<M>,
        joins: bool,
    ) -> KernResult<u64> {
        let start = if matches!(request.placement, Placement::Replace(_)) {
            self.make_room(state, request.placement, size, request.alignment, 1)?
        } else {
            let start = self.place(state, request.placement, size, request.alignment)?;
            if joins && self.extend_previous(state, start, size, &entry) {
                Self::remember_extension(state, request, (start, start + size));
                return Ok(start);
            }
            self.reserve_entries(state, 1)?;
            start
        };
        let id = self.add_entry(state, start, start + size, entry);
        if joins {
            self.simplify(state, start, start + size);
        }
        self.remember(state, id, request, (start, start + size));
        Ok(start)
    }

    fn new_entry(&self, request: &MapRequest<M>, offset: u64) -> KernResult<Entry<M>> {
        let mut entry = Entry {
            object: None,
            offset,
            protection: request.protection,
            max_protection: request.max_protection,
            inheritance: request.inheritance,
            behavior: Behavior::Default,
            needs_copy: false,
            shared: false,
            wired: 0,
        };
        let Some((object, _)) = &request.object else { return Ok(entry) };
        if request.copy {
            entry.object = Some(inherit::copy_of(&self.vm, object)?);
            entry.needs_copy = true;
        } else {
            object.state.lock().shared = true;
            entry.object = Some(object.clone());
            entry.shared = true;
        }
        Ok(entry)
    }

    /// Finds a place for a new range, reserves memory for `count` entries there, and unmaps what
    /// they replace.
    pub(super) fn make_room(
        &self,
        state: &mut MapState<M>,
        placement: Placement,
        size: u64,
        alignment: u64,
        count: usize,
    ) -> KernResult<u64> {
        let start = self.place(state, placement, size, alignment)?;
        self.reserve_entries(state, count)?;
        if let Placement::Replace(_) = placement {
            let cut = self.cut_range(state, start, start + size);
            cut.inspect_err(|_| self.unreserve_entries(count))?;
            self.remove_range(state, start, start + size);
        }
        Ok(start)
    }

    /// Chooses the address of a new range.
    fn place(&self, state: &MapState<M>, placement: Placement, size: u64, alignment: u64) -> KernResult<u64> {
        let alignment = alignment.max(PAGE_SIZE);
        match placement {
            Placement::Fixed(address) | Placement::Replace(address) => {
                let (start, end) = page_range(address, size)?;
                if start < self.lowest || end > self.highest {
                    return Err(KernError::InvalidAddress);
                }
                let next = state.entries.find_at_or_after(start);
                let taken = next.is_some_and(|id| state.entries.start(id) < end);
                if taken && matches!(placement, Placement::Fixed(_)) {
                    return Err(KernError::NoSpace);
                }
                Ok(start)
            }
            Placement::Above(address) => {
                state.entries.find_gap_above(address, self.highest, size, alignment).ok_or(KernError::NoSpace)
            }
            Placement::Below(address) => {
                state.entries.find_gap_below(self.lowest, address, size, alignment).ok_or(KernError::NoSpace)
            }
        }
    }

    /// Extends the entry that ends at `start` by fresh zeros, if that is possible, instead of
    /// adding an entry.
    fn extend_previous(&self, state: &mut MapState<M>, start: u64, size: u64, entry: &Entry<M>) -> bool {
        let next = state.entries.find_at_or_after(start);
        let previous = match next {
            Some(next) => state.entries.previous(next),
            None => state.entries.last(),
        };
        let Some(id) = previous.filter(|&id| state.entries.end(id) == start) else { return false };
        let previous = state.entries.get(id);
        if entry.object.is_some() || !previous.is_mapped_as(entry) {
            return false;
        }
        let from = state.entries.start(id);
        if let Some(object) = &previous.object {
            // Where the range grows, the object may still have pages of an earlier, longer range.
            // No other map may have them; they are removed.
            let sole = Arc::strong_count(object) == 1 && {
                let state = object.state.lock();
                state.is_internal() && state.shadow.is_none() && !state.is_copy
            };
            let first = previous.index(start - from);
            if !sole || !object.discard_pages(first, first + (size >> PAGE_SHIFT), true) {
                return false;
            }
        }
        state.entries.resize(id, from, start + size);
        state.size += size;
        true
    }

    /// Joins neighbouring entries in and around a range where possible.
    pub(super) fn simplify(&self, state: &mut MapState<M>, start: u64, end: u64) {
        let Some(mut id) = state.entries.find_at_or_after(start.saturating_sub(1)) else { return };
        while let Some(next) = state.entries.next(id) {
            let (from, to, next_end) =
                (state.entries.start(id), state.entries.end(id), state.entries.end(next));
            if from > end {
                return;
            }
            let joins = to == state.entries.start(next)
                && state.entries.get(id).continues_in(to - from, state.entries.get(next));
            if joins {
                self.remove_entry(state, next);
                state.entries.resize(id, from, next_end);
                state.size += next_end - to;
            } else {
                id = next;
            }
        }
    }

    /// Unmaps a range: `vm_deallocate`. Parts of it that are not mapped are ignored.
    ///
    /// # Errors
    /// `InvalidArgument`, `InvalidAddress`: the range. `ResourceShortage`: an entry had to be split
    /// and there is no memory for that.
    pub async fn deallocate(&self, start: u64, size: u64) -> KernResult {
        let (start, end) = page_range(start, size)?;
        let state = &mut *self.open().await?;
        self.deallocate_range(state, start, end)
    }

    /// Unmaps a range like [`deallocate`](Self::deallocate), if the map is not locked. Otherwise
    /// returns `None`, and nothing has changed.
    pub fn try_deallocate(&self, start: u64, size: u64) -> Option<KernResult> {
        let now = || {
            let (start, end) = page_range(start, size)?;
            let Some(mut state) = self.try_open()? else { return Ok(None) };
            self.deallocate_range(&mut state, start, end).map(Some)
        };
        now().transpose()
    }

    fn deallocate_range(&self, state: &mut MapState<M>, start: u64, end: u64) -> KernResult {
        if self.cache_entry(state, start, end) {
            return Ok(());
        }
        let extension = Self::extension(state, (start, end));
        self.prepare_change(state);
        if let Some(id) = state.entries.find_at_or_after(start)
            && (state.entries.start(id), state.entries.end(id)) == (start, end)
        {
            // The range is a single entry, as it was allocated. Only an entry with an object has
            // pages mapped.
            if state.entries.get(id).object.is_some() {
                self.pmap_change(&[PmapChange::Remove { address: start, length: end - start }]);
            }
            let entry = self.remove_entry(state, id);
            self.discard(&entry, end - start);
            return Ok(());
        }
        self.cut_range(state, start, end)?;
        self.remove_range(state, start, end);
        if let Some(extension) = extension {
            state.recent = Recent::Returned(extension);
        }
        Ok(())
    }

    /// Unmaps the entries that lie in a range.
    fn remove_range(&self, state: &mut MapState<M>, start: u64, end: u64) {
        let Some(mut id) = state.entries.find_at_or_after(start).filter(|&id| state.entries.start(id) < end)
        else {
            return;
        };
        self.pmap_change(&[PmapChange::Remove { address: start, length: end - start }]);
        loop {
            let next = state.entries.next(id);
            let size = state.entries.end(id) - state.entries.start(id);
            let entry = self.remove_entry(state, id);
            self.discard(&entry, size);
            match next.filter(|&next| state.entries.start(next) < end) {
                Some(next) => id = next,
                None => return,
            }
        }
    }

    /// Frees the pages that only `entry`, which has been unmapped, could access.
    pub(super) fn discard(&self, entry: &Entry<M>, size: u64) {
        let Some(object) = &entry.object else { return };
        if entry.wired > 0 {
            self.unwire_pages(entry, size);
        }
        // If the entry is the object's only user, the pages are freed with the object; if it is
        // shared, other maps use them.
        if !entry.shared && !entry.needs_copy && Arc::strong_count(object) > 1 {
            let exclusive = {
                let state = object.state.lock();
                state.is_internal() && !state.shared && !state.is_copy
            };
            if exclusive {
                let first = entry.index(0);
                object.discard_pages(first, first + (size >> PAGE_SHIFT), false);
            }
        }
    }

    /// Ends one wiring of the pages of a wired entry.
    pub(super) fn unwire_pages(&self, entry: &Entry<M>, size: u64) {
        let Some(object) = &entry.object else { return };
        for index in entry.index(0)..entry.index(size) {
            fault::end_wiring(&self.vm, object, index);
        }
    }

    /// Changes the rights of a range, or with `set_maximum` the maximum that it can be given:
    /// `vm_protect`. The maximum can only be reduced, and the present rights are reduced with it.
    ///
    /// # Errors
    /// `InvalidArgument`, `InvalidAddress`: the range, or a part of it is not mapped.
    /// `ProtectionFailure`: more rights than the maximum. `ResourceShortage`: memory is short.
    /// After an error nothing has changed.
    pub async fn protect(
        &self,
        start: u64,
        size: u64,
        protection: Protection,
        set_maximum: bool,
    ) -> KernResult {
        let (start, end) = page_range(start, size)?;
        let state = &mut *self.change().await?;
        if !Self::is_mapped(state, start, end) {
            return Err(KernError::InvalidAddress);
        }
        let allowed = Self::entries_in(state, start, end)
            .all(|id| state.entries.get(id).max_protection.contains(protection));
        if !allowed {
            return Err(KernError::ProtectionFailure);
        }
        self.cut_range(state, start, end)?;
        let mut lost = false;
        let mut next = state.entries.find_at_or_after(start);
        while let Some(id) = next.filter(|&id| state.entries.start(id) < end) {
            let entry = state.entries.get_mut(id);
            let old = entry.protection;
            if set_maximum {
                entry.max_protection = protection;
                entry.protection &= protection;
            } else {
                entry.protection = protection;
            }
            lost |= !entry.protection.contains(old) && entry.object.is_some();
            next = state.entries.next(id);
        }
        if lost {
            self.pmap_change(&[PmapChange::Protect { address: start, length: end - start, protection }]);
        }
        self.simplify(state, start, end);
        Ok(())
    }

    /// Sets what a child gets of a range: `vm_inherit`.
    ///
    /// # Errors
    /// Those of [`protect`](Self::protect), without `ProtectionFailure`.
    pub async fn inherit(&self, start: u64, size: u64, inheritance: Inheritance) -> KernResult {
        self.set(start, size, |entry| entry.inheritance = inheritance).await
    }

    /// Sets how a range will be used: `vm_behavior_set`.
    ///
    /// # Errors
    /// Those of [`inherit`](Self::inherit).
    pub async fn behavior(&self, start: u64, size: u64, behavior: Behavior) -> KernResult {
        self.set(start, size, |entry| entry.behavior = behavior).await
    }

    async fn set(&self, start: u64, size: u64, mut set: impl FnMut(&mut Entry<M>)) -> KernResult {
        let (start, end) = page_range(start, size)?;
        let state = &mut *self.change().await?;
        if !Self::is_mapped(state, start, end) {
            return Err(KernError::InvalidAddress);
        }
        self.cut_range(state, start, end)?;
        let mut next = state.entries.find_at_or_after(start);
        while let Some(id) = next.filter(|&id| state.entries.start(id) < end) {
            set(state.entries.get_mut(id));
            next = state.entries.next(id);
        }
        self.simplify(state, start, end);
        Ok(())
    }

    /// Discards what was written to private memory in a range: it shows again what was mapped
    /// there, zeros or the file. Shared memory only loses its translation. (Linux `MADV_DONTNEED`.)
    ///
    /// # Errors
    /// Those of [`inherit`](Self::inherit).
    pub async fn forget(&self, start: u64, size: u64) -> KernResult {
        let (start, end) = page_range(start, size)?;
        let state = &mut *self.change().await?;
        if !Self::is_mapped(state, start, end) {
            return Err(KernError::InvalidAddress);
        }
        self.cut_range(state, start, end)?;
        self.pmap_change(&[PmapChange::Remove { address: start, length: end - start }]);
        let mut next = state.entries.find_at_or_after(start);
        while let Some(id) = next.filter(|&id| state.entries.start(id) < end) {
            let size = state.entries.end(id) - state.entries.start(id);
            let entry = state.entries.get_mut(id);
            if !entry.shared
                && entry.wired == 0
                && let Some(object) = &entry.object
            {
                let original = original(object, entry.offset);
                let old = entry.clone();
                (entry.object, entry.offset) =
                    original.map_or((None, 0), |(object, offset)| (Some(object), offset));
                entry.needs_copy = entry.object.is_some();
                self.discard(&old, size);
            }
            next = state.entries.next(id);
        }
        self.simplify(state, start, end);
        Ok(())
    }

    /// The region that contains `address`, or the next region above it: `vm_region`.
    ///
    /// # Errors
    /// `NoSpace`: there is none. `Terminated`: the map has ended.
    pub async fn region(&self, address: u64) -> KernResult<RegionInfo> {
        let state = self.look().await?;
        let id = state.entries.find_at_or_after(address).ok_or(KernError::NoSpace)?;
        let entry = state.entries.get(id);
        let start = state.entries.start(id);
        Ok(RegionInfo {
            start,
            size: state.entries.end(id) - start,
            protection: entry.protection,
            max_protection: entry.max_protection,
            inheritance: entry.inheritance,
            behavior: entry.behavior,
            shared: entry.shared,
            wired: entry.wired,
            object: entry.object.as_ref().map(|object| bottom(object, entry.offset)),
        })
    }
}

/// Walks to the bottom of a chain of objects. Returns the number of the last object, and the offset
/// in it.
fn bottom<M: Machine>(object: &Arc<VmObject<M>>, offset: u64) -> (u64, u64) {
    let (mut object, mut offset) = (object.clone(), offset);
    loop {
        let next = {
            let state = object.state.lock();
            state.shadow.as_ref().map(|shadow| (shadow.object.clone(), shadow.offset << PAGE_SHIFT))
        };
        match next {
            Some((below, distance)) => (object, offset) = (below, offset + distance),
            None => return (object.id(), offset),
        }
    }
}

/// The object that was mapped before anything was written: the first in the chain that has a pager
/// of its own or is a delayed copy of such an object, and the offset in it; `None` if zeros were
/// mapped.
fn original<M: Machine>(object: &Arc<VmObject<M>>, offset: u64) -> Option<(Arc<VmObject<M>>, u64)> {
    let (mut object, mut offset) = (object.clone(), offset);
    loop {
        let next = {
            let state = object.state.lock();
            if state.is_copy || matches!(state.backing, Backing::Pager(_) | Backing::Device(..)) {
                None
            } else {
                let shadow = state.shadow.as_ref()?;
                Some((shadow.object.clone(), shadow.offset << PAGE_SHIFT))
            }
        };
        match next {
            Some((below, distance)) => (object, offset) = (below, offset + distance),
            None => return Some((object, offset)),
        }
    }
}
