//! Copies of ranges of a map, and whole maps for children: `vm_copy`, `vm_read`, `vm_write`,
//! `vm_remap`, fork.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::super::object::{Backing, CopyStrategy, VmObject};
use super::super::{Vm, copy, fault};
use super::entry::{Behavior, Entry, Inheritance};
use super::{EntryId, MapState, Placement, VmMap, page_range};
use crate::machine::{Frame, Machine, PAGE_SIZE, PmapChange, Protection};
use crate::{KernError, KernResult};

/// The object to map for a private mapping of `object`. The entry that maps it must shadow it
/// before a write.
///
/// # Errors
/// `NotSupported`: device memory. `ResourceShortage`: memory is short.
pub(super) fn copy_of<M: Machine>(
    vm: &Arc<Vm<M>>,
    object: &Arc<VmObject<M>>,
) -> KernResult<Arc<VmObject<M>>> {
    let symmetric = {
        let state = object.state.lock();
        if matches!(state.backing, Backing::Device(..)) {
            return Err(KernError::NotSupported);
        }
        state.strategy == CopyStrategy::Symmetric && !(state.shared && state.is_internal())
    };
    if symmetric { Ok(object.clone()) } else { copy::copy_delayed(vm, object) }
}

/// Ranges whose translation must lose write access. Adjacent ones are joined, and they are passed
/// to the machine in batches.
struct Revocation<'a, M: Machine> {
    map: &'a VmMap<M>,
    ranges: [PmapChange; 32],
    count: usize,
}

const READ_ONLY: Protection = Protection::ALL.difference(Protection::WRITE);

impl<'a, M: Machine> Revocation<'a, M> {
    fn new(map: &'a VmMap<M>) -> Self {
        let none = PmapChange::Protect { address: 0, length: 0, protection: READ_ONLY };
        Self { map, ranges: [none; 32], count: 0 }
    }

    fn add(&mut self, start: u64, end: u64) {
        if let Some(PmapChange::Protect { address, length, .. }) =
            self.ranges[..self.count].last_mut().filter(|_| self.count > 0)
            && *address + *length == start
        {
            *length += end - start;
            return;
        }
        if self.count == self.ranges.len() {
            self.flush();
        }
        self.ranges[self.count] =
            PmapChange::Protect { address: start, length: end - start, protection: READ_ONLY };
        self.count += 1;
    }

    fn flush(&mut self) {
        if self.count > 0 {
            self.map.pmap_change(&self.ranges[..self.count]);
            self.count = 0;
        }
    }
}

impl<M: Machine> Drop for Revocation<'_, M> {
    fn drop(&mut self) {
        self.flush();
    }
}

/// A range of memory that is in no address space: the result of `vm_read`, and the out-of-line
/// memory of a message.
pub struct MapCopy<M: Machine> {
    /// The pieces in order, each with its length in bytes.
    pieces: Vec<(u64, Entry<M>)>,
    size: u64,
}

impl<M: Machine> MapCopy<M> {
    /// The size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Reads `buffer.len()` bytes from the offset `at` on. Waits for pagers.
    ///
    /// # Errors
    /// `InvalidAddress`: the copy ends before. What a pager returns.
    pub(crate) async fn read(&self, mut at: u64, mut buffer: &mut [u8]) -> KernResult {
        for (length, piece) in &self.pieces {
            if at >= *length {
                at -= length;
                continue;
            }
            let count = usize::try_from(length - at).map_or(buffer.len(), |left| left.min(buffer.len()));
            let (now, rest) = core::mem::take(&mut buffer).split_at_mut(count);
            match &piece.object {
                Some(object) => {
                    let done = object.read(piece.offset + at, now).await?;
                    // The object ends before the page does, and the rest of the page is zeros.
                    now[done..].fill(0);
                }
                None => now.fill(0),
            }
            (at, buffer) = (0, rest);
            if buffer.is_empty() {
                break;
            }
        }
        if buffer.is_empty() { Ok(()) } else { Err(KernError::InvalidAddress) }
    }

    /// Calls `with` with the frame of the page at the offset `at`, a multiple of the page size;
    /// `None`: the page is zeros. Waits for pagers. `with` is as for [`VmObject::with_page`].
    ///
    /// # Errors
    /// `InvalidAddress`: the copy ends before. What a pager returns.
    pub(crate) async fn with_page(
        &self,
        mut at: u64,
        mut with: impl FnMut(&M, Option<Frame>),
        machine: &M,
    ) -> KernResult {
        for (length, piece) in &self.pieces {
            if at >= *length {
                at -= length;
                continue;
            }
            let Some(object) = &piece.object else {
                with(machine, None);
                return Ok(());
            };
            return object.with_page(piece.offset + at, |machine, frame| with(machine, Some(frame))).await;
        }
        Err(KernError::InvalidAddress)
    }

    /// Pages of an anonymous object, which nothing else maps, as memory.
    ///
    /// # Errors
    /// `ResourceShortage`: memory is short.
    pub(crate) fn of_pages(object: &Arc<VmObject<M>>, first: u64, pages: u64) -> KernResult<Self> {
        let size = pages * PAGE_SIZE;
        let mut pieces = Vec::new();
        pieces.try_reserve_exact(1).map_err(|_| KernError::ResourceShortage)?;
        let entry = Entry {
            object: Some(object.clone()),
            offset: first * PAGE_SIZE,
            protection: Protection::DEFAULT,
            max_protection: Protection::ALL,
            inheritance: Inheritance::Copy,
            behavior: Behavior::Default,
            needs_copy: false,
            shared: false,
            wired: 0,
        };
        pieces.push((size, entry));
        Ok(Self { pieces, size })
    }

    /// Bytes of server memory that the copy itself takes.
    pub(crate) fn bytes(&self) -> usize {
        self.pieces.len() * size_of::<(u64, Entry<M>)>()
    }

    /// The same memory with the rights and the inheritance of fresh memory, whatever it had where
    /// it comes from. It must be a copy: memory that is shared keeps its limits.
    pub(crate) fn into_fresh(mut self) -> Self {
        for (_, entry) in &mut self.pieces {
            debug_assert!(!entry.shared);
            entry.protection = Protection::DEFAULT;
            entry.max_protection = Protection::ALL;
            (entry.inheritance, entry.behavior) = (Inheritance::Copy, Behavior::Default);
        }
        self
    }
}

impl<M: Machine> Drop for MapCopy<M> {
    fn drop(&mut self) {
        // The range was wired when it was taken out of its map, and is dropped without having been
        // inserted again. Shared pages of it remain in memory for others, so the wiring must be
        // ended.
        for (length, entry) in self.pieces.iter().filter(|(_, entry)| entry.wired > 0) {
            if let Some(object) = &entry.object {
                let pages = entry.index(0)..entry.index(*length);
                pages.for_each(|index| fault::end_wiring(object.vm(), object, index));
            }
        }
    }
}

impl<M: Machine> VmMap<M> {
    /// Makes a child's map: of each range it gets what the range's inheritance says. No page is
    /// copied; a few system calls remove write access from the memory that both share now.
    ///
    /// # Errors
    /// `ResourceShortage`: memory is short. `Terminated`: the map has ended. After an error nothing
    /// has changed for the parent's program.
    pub async fn fork(&self) -> KernResult<Arc<Self>> {
        let child = Self::new(&self.vm, self.lowest, self.highest).await?;
        {
            let state = &mut *self.change().await?;
            let child_state = &mut *child.change().await?;
            let mut revocation = Revocation::new(self);
            let mut next = state.entries.first();
            let mut spare = state.entries.len();
            child.reserve_entries(child_state, spare)?;
            while let Some(id) = next {
                next = state.entries.next(id);
                let (start, end) = (state.entries.start(id), state.entries.end(id));
                let inherited = match state.entries.get(id).inheritance {
                    Inheritance::None => continue,
                    Inheritance::Share => self.share_entry(state, id),
                    Inheritance::Copy => self.copy_entry(state, id, &mut revocation),
                };
                // The child's entries unreserve their own memory.
                let inherited = inherited.inspect_err(|_| child.unreserve_entries(spare))?;
                child_state.entries.append(start, end, inherited);
                child_state.size += end - start;
                spare -= 1;
            }
            child.unreserve_entries(spare);
            child_state.entries.balance_all();
        }
        Ok(child)
    }

    /// Makes an entry that shares the memory of another one.
    fn share_entry(&self, state: &mut MapState<M>, id: EntryId) -> KernResult<Entry<M>> {
        let start = state.entries.start(id);
        let size = state.entries.end(id) - start;
        let entry = state.entries.get_mut(id);
        if entry.needs_copy {
            self.end_needs_copy(entry, size)?;
        }
        let object = self.ensure_object(entry, start)?;
        object.state.lock().shared = true;
        entry.shared = true;
        Ok(Entry { wired: 0, ..entry.clone() })
    }

    /// Makes an entry that has a copy of another one's memory.
    fn copy_entry(
        &self,
        state: &mut MapState<M>,
        id: EntryId,
        revocation: &mut Revocation<'_, M>,
    ) -> KernResult<Entry<M>> {
        let (start, end) = (state.entries.start(id), state.entries.end(id));
        let entry = state.entries.get_mut(id);
        let Some(object) = &entry.object else { return Ok(Entry { wired: 0, ..entry.clone() }) };
        if matches!(object.state.lock().backing, Backing::Device(..)) {
            // Device memory cannot be copied: the child shares it.
            return Ok(Entry { wired: 0, ..entry.clone() });
        }
        let copied = if entry.shared {
            // Other maps write to the object, so the copy must show its present contents, whatever
            // strategy the object has for private mappings.
            copy::copy_delayed(&self.vm, object)?
        } else {
            if !entry.needs_copy {
                entry.needs_copy = true;
                // Only pages that may be written can be mapped writable.
                if entry.protection.contains(Protection::WRITE) {
                    revocation.add(start, end);
                }
            }
            object.clone()
        };
        Ok(Entry { object: Some(copied), needs_copy: true, shared: false, wired: 0, ..entry.clone() })
    }

    /// Copies a range as it is now: `vm_read`.
    ///
    /// # Errors
    /// `InvalidArgument`, `InvalidAddress`: the range, or a part of it is not mapped.
    /// `ProtectionFailure`: a part may not be read. `NotSupported`: device memory.
    /// `ResourceShortage`: memory is short.
    pub async fn read(&self, start: u64, size: u64) -> KernResult<MapCopy<M>> {
        let (start, end) = page_range(start, size)?;
        let state = &mut *self.change().await?;
        let mut revocation = Revocation::new(self);
        self.extract(state, start, end, |state, id| {
            let entry = state.entries.get(id);
            let device =
                |object: &Arc<VmObject<M>>| matches!(object.state.lock().backing, Backing::Device(..));
            if !entry.protection.contains(Protection::READ) {
                return Err(KernError::ProtectionFailure);
            }
            if entry.object.as_ref().is_some_and(device) {
                return Err(KernError::NotSupported);
            }
            self.copy_entry(state, id, &mut revocation)
        })
    }

    /// Makes a further mapping of a range of this map, to be added elsewhere by
    /// [`insert`](Self::insert): `vm_remap`.
    ///
    /// # Errors
    /// `InvalidArgument`, `InvalidAddress`: the range, or a part of it is not mapped.
    /// `ResourceShortage`: memory is short.
    pub async fn share(&self, start: u64, size: u64) -> KernResult<MapCopy<M>> {
        let (start, end) = page_range(start, size)?;
        let state = &mut *self.change().await?;
        self.extract(state, start, end, |state, id| self.share_entry(state, id))
    }

    /// The object that is mapped shared at `address`, and the offset in it, so that more of the
    /// object can be mapped.
    ///
    /// # Errors
    /// `InvalidAddress`: nothing is mapped there. `ResourceShortage`: memory is short.
    pub async fn shared_object(&self, address: u64) -> KernResult<(Arc<VmObject<M>>, u64)> {
        let state = &mut *self.change().await?;
        let id = state.entries.find(address).ok_or(KernError::InvalidAddress)?;
        let start = state.entries.start(id);
        let entry = self.share_entry(state, id)?;
        let object = entry.object.ok_or(KernError::InvalidAddress)?;
        Ok((object, entry.offset + (address - start)))
    }

    /// Moves a range with its contents to `target`, and replaces what is mapped there: Linux'
    /// `mremap`. The two ranges must not overlap.
    ///
    /// # Errors
    /// `InvalidArgument`, `InvalidAddress`: the ranges, or a part of the first is not mapped.
    /// `ResourceShortage`. Nothing has changed then.
    pub async fn relocate(&self, start: u64, size: u64, target: u64) -> KernResult {
        let (start, end) = page_range(start, size)?;
        let (to, to_end) = page_range(target, end - start)?;
        if to < end && start < to_end {
            return Err(KernError::InvalidArgument);
        }
        let state = &mut *self.change().await?;
        if !Self::is_mapped(state, start, end) {
            return Err(KernError::InvalidAddress);
        }
        self.cut_range(state, start, end)?;
        let count = Self::entries_in(state, start, end).count();
        let mut moved = Vec::new();
        moved.try_reserve_exact(count).map_err(|_| KernError::ResourceShortage)?;
        self.make_room(state, Placement::Replace(to), end - start, PAGE_SIZE, count)?;

        // From here on no step can fail.
        self.pmap_change(&[PmapChange::Remove { address: start, length: end - start }]);
        while let Some(id) = state.entries.find_at_or_after(start).filter(|&id| state.entries.start(id) < end)
        {
            let place = to + (state.entries.start(id) - start)..to + (state.entries.end(id) - start);
            moved.push((place, self.remove_entry(state, id)));
        }
        for (place, entry) in moved {
            self.add_entry(state, place.start, place.end, entry);
        }
        self.simplify(state, to, to_end);
        Ok(())
    }

    /// Removes a range from this map with its contents, to be added elsewhere by
    /// [`insert`](Self::insert).
    ///
    /// # Errors
    /// `InvalidArgument`, `InvalidAddress`: the range, or a part of it is not mapped.
    /// `ResourceShortage`: memory is short. After an error nothing has changed.
    pub async fn take(&self, start: u64, size: u64) -> KernResult<MapCopy<M>> {
        let (start, end) = page_range(start, size)?;
        let state = &mut *self.change().await?;
        let taken = self.extract(state, start, end, |state, id| Ok(state.entries.get(id).clone()))?;
        self.pmap_change(&[PmapChange::Remove { address: start, length: end - start }]);
        while let Some(id) = state.entries.find_at_or_after(start).filter(|&id| state.entries.start(id) < end)
        {
            self.remove_entry(state, id);
        }
        Ok(taken)
    }

    /// Collects the results of `take` for each entry of a range, which must be mapped completely.
    fn extract(
        &self,
        state: &mut MapState<M>,
        start: u64,
        end: u64,
        mut take: impl FnMut(&mut MapState<M>, EntryId) -> KernResult<Entry<M>>,
    ) -> KernResult<MapCopy<M>> {
        if !Self::is_mapped(state, start, end) {
            return Err(KernError::InvalidAddress);
        }
        self.cut_range(state, start, end)?;
        let mut pieces = Vec::new();
        let count = Self::entries_in(state, start, end).count();
        pieces.try_reserve_exact(count).map_err(|_| KernError::ResourceShortage)?;
        let mut next = state.entries.find_at_or_after(start);
        while let Some(id) = next.filter(|&id| state.entries.start(id) < end) {
            next = state.entries.next(id);
            let length = state.entries.end(id) - state.entries.start(id);
            pieces.push((length, take(state, id)?));
        }
        Ok(MapCopy { pieces, size: end - start })
    }

    /// Maps a range that was copied or taken from a map. Returns its address.
    ///
    /// # Errors
    /// Those of [`map`](Self::map); the range is returned with the error.
    pub async fn insert(
        &self,
        mut copy: MapCopy<M>,
        placement: Placement,
    ) -> Result<u64, (KernError, MapCopy<M>)> {
        let state = &mut *match self.change().await {
            Ok(state) => state,
            Err(error) => return Err((error, copy)),
        };
        let count = copy.pieces.len();
        let start = match self.make_room(state, placement, copy.size, PAGE_SIZE, count) {
            Ok(start) => start,
            Err(error) => return Err((error, copy)),
        };
        let mut at = start;
        for (length, entry) in core::mem::take(&mut copy.pieces) {
            self.add_entry(state, at, at + length, entry);
            at += length;
        }
        self.simplify(state, start, at);
        Ok(start)
    }

    /// Replaces the contents of a mapped, writable range by those of a copy: `vm_write`. Private
    /// memory takes the copy's pages over; shared memory is written byte for byte.
    ///
    /// # Errors
    /// `InvalidArgument`: unaligned address. `InvalidAddress`: a part is not mapped.
    /// `ProtectionFailure`: a part may not be written. What [`fault`](Self::fault) returns, for
    /// shared memory; a part may have been written then.
    pub async fn write(&self, start: u64, copy: MapCopy<M>) -> KernResult {
        let (start, end) = page_range(start, copy.size)?;
        let all_private = {
            let state = &mut *self.change().await?;
            if !Self::is_mapped(state, start, end) {
                return Err(KernError::InvalidAddress);
            }
            let writable = |id| state.entries.get(id).protection.contains(Protection::WRITE);
            if !Self::entries_in(state, start, end).all(writable) {
                return Err(KernError::ProtectionFailure);
            }
            let private = |id| {
                let entry = state.entries.get(id);
                !entry.shared && entry.wired == 0
            };
            let all_private = Self::entries_in(state, start, end).all(private);
            if all_private {
                self.replace_contents(state, start, end, &copy)?;
            }
            all_private
        };
        if !all_private {
            self.write_bytes(start, &copy).await?;
        }
        Ok(())
    }

    /// Copies a range onto another of the same map, which must be mapped: `vm_copy`.
    ///
    /// # Errors
    /// Those of [`read`](Self::read) for the source and of [`write`](Self::write) for the
    /// destination.
    pub async fn copy(&self, source: u64, size: u64, destination: u64) -> KernResult {
        let copy = self.read(source, size).await?;
        self.write(destination, copy).await
    }

    /// Replaces the memory of private entries by that of a copy. The rights stay.
    fn replace_contents(
        &self,
        state: &mut MapState<M>,
        start: u64,
        end: u64,
        copy: &MapCopy<M>,
    ) -> KernResult {
        self.cut_range(state, start, end)?;
        let mut at = start;
        for (length, _) in &copy.pieces {
            at += length;
            self.cut(state, at)?;
        }
        self.pmap_change(&[PmapChange::Remove { address: start, length: end - start }]);
        let mut at = start;
        for (length, piece) in &copy.pieces {
            let piece_end = at + length;
            let mut next = state.entries.find_at_or_after(at);
            while let Some(id) = next.filter(|&id| state.entries.start(id) < piece_end) {
                let entry_start = state.entries.start(id);
                let size = state.entries.end(id) - entry_start;
                let new = piece.split(entry_start - at);
                let entry = state.entries.get_mut(id);
                let old = entry.clone();
                (entry.object, entry.offset, entry.needs_copy) = (new.object, new.offset, new.needs_copy);
                self.discard(&old, size);
                next = state.entries.next(id);
            }
            at = piece_end;
        }
        Ok(())
    }

    /// Writes the bytes of a copy, page by page.
    async fn write_bytes(&self, start: u64, copy: &MapCopy<M>) -> KernResult {
        let mut page = [0; PAGE_SIZE as usize];
        let mut at = start;
        for (length, piece) in &copy.pieces {
            for distance in (0..*length).step_by(PAGE_SIZE as usize) {
                match &piece.object {
                    Some(object) => {
                        object.read(piece.offset + distance, &mut page).await?;
                    }
                    None => page.fill(0),
                }
                self.copyout(at + distance, &page).await.map_err(|fault| fault.error)?;
            }
            at += length;
        }
        Ok(())
    }
}
