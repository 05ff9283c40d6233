//! Maps: the address space of a task as an ordered set of entries.

mod access;
mod attribute;
mod cached;
mod change;
mod entry;
mod hint;
mod immediate;
mod inherit;
mod wire;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use macadamia_sync::{Mutex, MutexGuard, SpinLock};

pub use access::CopyFault;
pub use attribute::{AttributeValue, MachineAttribute};
pub use change::RegionInfo;
pub use entry::{Behavior, Inheritance};
pub use inherit::MapCopy;

use super::Vm;
use super::entry_tree::{EntryId, EntryTree};
use super::object::VmObject;
use super::oom::{EndMark, MapEnd};
use crate::machine::{Machine, PAGE_SIZE, PmapChange, Protection};
use crate::{KernError, KernResult};
use cached::Recent;
use entry::Entry;
use hint::Hints;

/// Where in the address space a new range is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// At this address; an error if something is mapped there.
    Fixed(u64),
    /// At this address. What is mapped there is replaced.
    Replace(u64),
    /// In the lowest free range at or above this address.
    Above(u64),
    /// In the highest free range that ends at or below this address.
    Below(u64),
}

/// What to map, and how: the arguments of `vm_map`.
pub struct MapRequest<M: Machine> {
    /// Where the range is placed.
    pub placement: Placement,
    /// The size in bytes; it is rounded up to whole pages.
    pub size: u64,
    /// For `Above` and `Below`: the address is a multiple of this, a power of two.
    pub alignment: u64,
    /// An object and a byte offset in it, a multiple of the page size; `None`: fresh zeros.
    pub object: Option<(Arc<VmObject<M>>, u64)>,
    /// Map a copy of the object's memory rather than the object.
    pub copy: bool,
    /// The rights at the start.
    pub protection: Protection,
    /// The most that [`VmMap::protect`] may give later.
    pub max_protection: Protection,
    /// What a child task gets of the range.
    pub inheritance: Inheritance,
}

impl<M: Machine> MapRequest<M> {
    /// A request for `size` bytes of private zeros at any address: `vm_allocate`.
    pub fn anonymous(size: u64) -> Self {
        Self {
            placement: Placement::Above(0),
            size,
            alignment: PAGE_SIZE,
            object: None,
            copy: false,
            protection: Protection::DEFAULT,
            max_protection: Protection::ALL,
            inheritance: Inheritance::Copy,
        }
    }

    /// A request for `size` bytes of `object` from `offset` on, shared with all maps that show
    /// them.
    pub fn shared(object: Arc<VmObject<M>>, offset: u64, size: u64) -> Self {
        Self { object: Some((object, offset)), inheritance: Inheritance::Share, ..Self::anonymous(size) }
    }

    /// A request for a private copy of `size` bytes of `object` from `offset` on.
    pub fn private(object: Arc<VmObject<M>>, offset: u64, size: u64) -> Self {
        Self { object: Some((object, offset)), copy: true, ..Self::anonymous(size) }
    }

    /// This request with another placement.
    pub fn at(self, placement: Placement) -> Self {
        Self { placement, ..self }
    }

    /// This request with these rights at the start.
    pub fn protection(self, protection: Protection) -> Self {
        Self { protection, ..self }
    }
}

/// The state that the map's mutex protects.
pub(super) struct MapState<M: Machine> {
    entries: EntryTree<Entry<M>>,
    /// How many bytes are mapped.
    size: u64,
    /// False after the map was terminated.
    alive: bool,
    /// The entry that was added last.
    recent: Recent,
}

impl<M: Machine> MapState<M> {
    fn new(lowest: u64, highest: u64, alive: bool) -> Self {
        Self { entries: EntryTree::new(lowest, highest), size: 0, alive, recent: Recent::Nothing }
    }
}

/// The state that the map's translation lock protects. In the lock order it comes after the map's
/// mutex and before the objects.
pub(super) struct Translation<M: Machine> {
    /// `None` after the map was terminated.
    pmap: Option<M::Pmap>,
    /// Entries of the last faults, so that the next needs no look-up in the map.
    hints: Hints<M>,
}

/// An address space.
pub struct VmMap<M: Machine> {
    vm: Arc<Vm<M>>,
    id: u64,
    lowest: u64,
    highest: u64,
    /// Whether faults in this map may take frames of the reserve, because page-out waits for its
    /// programs.
    privileged: AtomicBool,
    state: Mutex<MapState<M>>,
    translation: SpinLock<Translation<M>>,
    /// A mark that is dropped when all memory of the map has been freed. It exists only if a task
    /// [waits](Self::end) for that.
    end: SpinLock<Option<Arc<EndMark<M>>>>,
}

/// Checks a range and rounds it: the start must be page-aligned, the size is rounded up to whole
/// pages. Returns start and end.
fn page_range(start: u64, size: u64) -> KernResult<(u64, u64)> {
    if !start.is_multiple_of(PAGE_SIZE) || size == 0 {
        return Err(KernError::InvalidArgument);
    }
    let size = size.checked_next_multiple_of(PAGE_SIZE).ok_or(KernError::InvalidAddress)?;
    Ok((start, start.checked_add(size).ok_or(KernError::InvalidAddress)?))
}

impl<M: Machine> VmMap<M> {
    /// An empty address space for addresses from `lowest` to before `highest`, with a translation
    /// of its own.
    ///
    /// # Errors
    /// `InvalidArgument`: the bounds are not aligned or in order. `ResourceShortage`.
    pub async fn new(vm: &Arc<Vm<M>>, lowest: u64, highest: u64) -> KernResult<Arc<Self>> {
        if !(lowest | highest).is_multiple_of(PAGE_SIZE) || lowest >= highest {
            return Err(KernError::InvalidArgument);
        }
        let pmap = vm.machine().pmap_create().await?;
        if !vm.machine().reserve_memory(size_of::<Self>()) {
            vm.machine().pmap_destroy(pmap);
            return Err(KernError::ResourceShortage);
        }
        Ok(Arc::new(Self {
            vm: vm.clone(),
            id: vm.new_id(),
            lowest,
            highest,
            privileged: AtomicBool::new(false),
            state: Mutex::new(MapState::new(lowest, highest, true)),
            translation: SpinLock::new(Translation { pmap: Some(pmap), hints: Hints::new() }),
            end: SpinLock::new(None),
        }))
    }

    /// A number that no other map or object of the memory system has or had.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The memory system that this map belongs to.
    pub fn vm(&self) -> &Arc<Vm<M>> {
        &self.vm
    }

    /// The lowest address, and the first beyond the highest.
    pub fn bounds(&self) -> (u64, u64) {
        (self.lowest, self.highest)
    }

    /// Sets whether page-out depends on the programs in this map, because they are pagers. When no
    /// memory is free, their pages get frames of a reserve, as those of [privileged
    /// objects](VmObject::set_privileged). A child's map does not inherit it.
    pub fn set_privileged(&self, privileged: bool) {
        // Relaxed: the flag orders no other accesses.
        self.privileged.store(privileged, Ordering::Relaxed);
    }

    /// The reference to the address space by which threads are made in it; `None` if the map is
    /// terminated.
    pub fn space(&self) -> Option<M::Space> {
        self.with_pmap(|pmap| self.vm.machine().space(pmap))
    }

    /// Calls `with` with the map's translation, under the translation lock; `None` if the map is
    /// terminated.
    pub fn with_pmap<R>(&self, with: impl FnOnce(&M::Pmap) -> R) -> Option<R> {
        self.translation.lock().pmap.as_ref().map(with)
    }

    /// How many bytes are mapped, accessed or not.
    pub async fn size(&self) -> u64 {
        self.state.lock().await.size
    }

    /// How many pages of the memory that is mapped from `start` up to `end` are resident, whether
    /// translations exist or not.
    pub async fn resident_pages(&self, start: u64, end: u64) -> u64 {
        self.count_pages(start, end, VmObject::resident_in).await
    }

    /// How many pages of the memory that is mapped from `start` up to `end` only the default pager
    /// has.
    pub async fn paged_out_pages(&self, start: u64, end: u64) -> u64 {
        self.count_pages(start, end, VmObject::paged_out_in).await
    }

    async fn count_pages(
        &self,
        start: u64,
        end: u64,
        count: impl Fn(&Arc<VmObject<M>>, u64, u64) -> u64,
    ) -> u64 {
        let mut state = self.state.lock().await;
        self.settle(&mut state);
        let (mut next, mut pages) = (state.entries.find_at_or_after(start), 0);
        while let Some(id) = next {
            let (from, to) = (state.entries.start(id).max(start), state.entries.end(id).min(end));
            if from >= to {
                break;
            }
            let entry = state.entries.get(id);
            if let Some(object) = &entry.object {
                let distance = from - state.entries.start(id);
                let first = entry.index(distance);
                pages += count(object, first, first + ((to - from) / PAGE_SIZE));
            }
            next = state.entries.next(id);
        }
        pages
    }

    /// How many entries the map has.
    pub async fn entry_count(&self) -> usize {
        let mut state = self.state.lock().await;
        self.settle(&mut state);
        state.entries.len()
    }

    /// Ends the address space for all its users: everything is unmapped and released. Faults and
    /// copies that wait in it end with `Terminated`.
    pub async fn terminate(&self) {
        let mut state = self.state.lock().await;
        state.alive = false;
        self.release_all(&mut state);
    }

    /// An object that tells when all memory of the map has been freed.
    pub fn end(&self) -> MapEnd<M> {
        // A terminated map has freed its memory, and would never drop a new mark.
        if self.with_pmap(|_| ()).is_none() {
            return MapEnd::past();
        }
        self.end.lock().get_or_insert_with(|| EndMark::new(&self.vm)).end()
    }

    fn release_all(&self, state: &mut MapState<M>) {
        let pmap = {
            let mut translation = self.translation.lock();
            translation.hints.forget();
            translation.pmap.take()
        };
        // The whole translation is removed first, in one call; then nothing maps what the entries
        // refer to.
        if let Some(pmap) = pmap {
            self.vm.machine().pmap_destroy(pmap);
        }
        self.unreserve_entries(state.entries.len());
        (state.size, state.recent) = (0, Recent::Nothing);
        for (size, entry) in state.entries.drain() {
            if entry.wired > 0 {
                // Shared pages stay in memory for other maps, so this map's wiring of them must
                // end.
                self.unwire_pages(&entry, size);
            }
        }
        drop(self.end.lock().take());
    }

    /// Locks the map in order to change it.
    async fn change(&self) -> KernResult<MutexGuard<'_, MapState<M>>> {
        let mut state = self.open().await?;
        self.prepare_change(&mut state);
        Ok(state)
    }

    /// Prepares a change of the map: disables the short path for faults until the next fault
    /// enables it again.
    fn prepare_change(&self, state: &mut MapState<M>) {
        self.translation.lock().hints.forget();
        self.settle(state);
    }

    /// Locks the map in order to look something up.
    async fn look(&self) -> KernResult<MutexGuard<'_, MapState<M>>> {
        let mut state = self.open().await?;
        self.settle(&mut state);
        Ok(state)
    }

    /// Locks the map. Unlike [`look`](Self::look), this leaves a cached entry ([`cached`]) in the
    /// tree.
    async fn open(&self) -> KernResult<MutexGuard<'_, MapState<M>>> {
        let state = self.state.lock().await;
        if state.alive { Ok(state) } else { Err(KernError::Terminated) }
    }

    /// Locks the map as [`open`](Self::open) does, without waiting; `None` if it is locked.
    fn try_open(&self) -> KernResult<Option<MutexGuard<'_, MapState<M>>>> {
        match self.state.try_lock() {
            Some(state) if !state.alive => Err(KernError::Terminated),
            state => Ok(state),
        }
    }

    /// Makes changes of the translation that cannot fail.
    fn pmap_change(&self, changes: &[PmapChange]) {
        debug_assert!(changes.iter().all(|change| !matches!(change, PmapChange::Enter { .. })));
        if let Some(pmap) = &self.translation.lock().pmap {
            // Only a change that maps pages can fail.
            let _ = self.vm.machine().pmap_change(pmap, changes);
        }
    }

    /// Reserves memory for `count` more entries, so that adding them cannot fail.
    fn reserve_entries(&self, state: &mut MapState<M>, count: usize) -> KernResult {
        // There are two more than `count`, because entries may be split at both ends before these
        // are added.
        state.entries.reserve(count + 2).map_err(|_| KernError::ResourceShortage)?;
        if self.vm.machine().reserve_memory(count * EntryTree::<Entry<M>>::NODE_BYTES) {
            Ok(())
        } else {
            Err(KernError::ResourceShortage)
        }
    }

    /// Unreserves memory that [`reserve_entries`](Self::reserve_entries) has reserved for entries
    /// that were not added.
    fn unreserve_entries(&self, count: usize) {
        self.vm.machine().unreserve_memory(count * EntryTree::<Entry<M>>::NODE_BYTES);
    }

    /// Adds an entry for which memory was reserved.
    fn add_entry(&self, state: &mut MapState<M>, start: u64, end: u64, entry: Entry<M>) -> EntryId {
        state.size += end - start;
        state.entries.insert(start, end, entry)
    }

    /// Removes an entry, which must not be mapped any more.
    fn remove_entry(&self, state: &mut MapState<M>, id: EntryId) -> Entry<M> {
        state.size -= state.entries.end(id) - state.entries.start(id);
        self.unreserve_entries(1);
        state.entries.remove(id)
    }

    /// Splits the entry that contains `address` at this address, unless it begins there.
    fn cut(&self, state: &mut MapState<M>, address: u64) -> KernResult {
        let Some(id) = state.entries.find(address) else { return Ok(()) };
        let (start, end) = (state.entries.start(id), state.entries.end(id));
        if start == address {
            return Ok(());
        }
        self.reserve_entries(state, 1)?;
        let upper = state.entries.get(id).split(address - start);
        state.entries.resize(id, start, address);
        state.entries.insert(address, end, upper);
        Ok(())
    }

    /// Splits entries at both ends of a range, so that each lies inside or outside of it.
    fn cut_range(&self, state: &mut MapState<M>, start: u64, end: u64) -> KernResult {
        self.cut(state, start)?;
        self.cut(state, end)
    }

    /// The entries that lie in a range (after [`cut_range`](Self::cut_range)), from the lowest.
    fn entries_in(state: &MapState<M>, start: u64, end: u64) -> impl Iterator<Item = EntryId> {
        let first = state.entries.find_at_or_after(start);
        core::iter::successors(first, |&id| state.entries.next(id))
            .take_while(move |&id| state.entries.start(id) < end)
    }

    /// Whether every address of a range is mapped.
    fn is_mapped(state: &MapState<M>, start: u64, end: u64) -> bool {
        let mut at = start;
        for id in Self::entries_in(state, start, end) {
            if state.entries.start(id) > at {
                return false;
            }
            at = state.entries.end(id);
        }
        at >= end
    }
}

impl<M: Machine> Drop for VmMap<M> {
    fn drop(&mut self) {
        let mut state = core::mem::replace(self.state.get_mut(), MapState::new(0, 0, false));
        self.release_all(&mut state);
        self.vm.machine().unreserve_memory(size_of::<Self>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::simulated::Simulated;

    #[test]
    fn an_operation_that_would_wait_for_the_map_is_not_begun() {
        const HERE: Placement = Placement::Above(0x40_0000);
        let machine = Simulated::new(4);
        let vm = Vm::new(machine.clone()).unwrap();
        let map = machine.block_on(VmMap::new(&vm, PAGE_SIZE, 1 << 47)).unwrap();
        let held = map.state.try_lock().unwrap();
        assert_eq!(map.try_allocate(HERE, PAGE_SIZE), None);
        assert_eq!(map.try_deallocate(0x40_0000, PAGE_SIZE), None);
        assert_eq!(map.try_fault(0x40_0000, Protection::READ), None);
        drop(held);
        assert_eq!(map.try_fault(0x40_0000, Protection::READ), Some(Err(KernError::InvalidAddress)));
        assert_eq!(map.try_allocate(HERE, 2 * PAGE_SIZE), Some(Ok(0x40_0000)));
        assert_eq!(map.try_allocate(Placement::Fixed(0x40_0000), 1), Some(Err(KernError::NoSpace)));
        assert_eq!(map.try_fault(0x40_0000, Protection::WRITE), Some(Ok(())));
        assert_eq!(vm.statistics().active, 1);
        assert_eq!(map.try_deallocate(0x40_0000, PAGE_SIZE + 1), Some(Ok(())));
        assert_eq!(map.try_deallocate(0x40_0001, PAGE_SIZE), Some(Err(KernError::InvalidArgument)));
        assert_eq!((vm.statistics().active, machine.block_on(map.size())), (0, 0));
        machine.block_on(map.terminate());
        assert_eq!(map.try_allocate(HERE, PAGE_SIZE), Some(Err(KernError::Terminated)));
    }
}
