//! Access to mapped memory: page faults, and the server's own reads and writes of a task's memory
//! (copyin, copyout).

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use super::super::copy;
use super::super::fault::{self, Blocked, Found, Step, Target};
use super::super::object::{CopyStrategy, VmObject};
use super::entry::{Behavior, Entry};
use super::hint::Hint;
use super::{EntryId, MapState, Translation, VmMap};
use crate::machine::{
    Frame, Machine, NonblockingHandler, PAGE_SHIFT, PAGE_SIZE, PhysicalPage, PmapChange, Protection,
};
use crate::{KernError, KernResult};

/// The most pages that one fault maps.
const AROUND_LIMIT: usize = 16;

/// Why a copy to or from a task's memory stopped, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyFault {
    /// How many bytes were copied.
    pub copied: usize,
    /// Why the next byte could not be copied.
    pub error: KernError,
}

/// How often one access waits for a frame before that counts as a lack of memory.
const SHORTAGES: u32 = 256;

/// A use of a page of a map. The page stays in memory meanwhile.
trait PageUse<M: Machine> {
    /// The result of a use.
    type Output;

    /// Uses the page at the page-aligned `address`, which the range `start..end` of one entry
    /// contains.
    fn use_page(
        &mut self,
        map: &VmMap<M>,
        translation: &Translation<M>,
        place: Place,
        found: Found<'_, M>,
    ) -> KernResult<Self::Output>;
}

/// A page's address, and the bounds of the entry that contains it.
#[derive(Clone, Copy)]
struct Place {
    address: u64,
    start: u64,
    end: u64,
}

/// The use of a page by a fault: maps it, and neighbours that are in memory.
struct Enter;

impl<M: Machine> PageUse<M> for Enter {
    type Output = ();

    #[inline(always)]
    fn use_page(
        &mut self,
        map: &VmMap<M>,
        translation: &Translation<M>,
        place: Place,
        found: Found<'_, M>,
    ) -> KernResult {
        let Some(pmap) = &translation.pmap else { return Err(KernError::Terminated) };
        if found.large || found.around.is_some() && map.vm.settings.fault_around > 1 {
            return enter_many(map, pmap, place, found);
        }
        map.vm
            .machine()
            .pmap_change(pmap, &[enter(place.address, found.page, found.rights)])
            .map_err(|_| KernError::ResourceShortage)
    }
}

/// The change that maps a base page at an address.
fn enter(address: u64, page: PhysicalPage, protection: Protection) -> PmapChange {
    PmapChange::Enter { address, page, shift: PAGE_SHIFT, protection }
}

/// Maps the page: as a part of a large page, or with the pages around it.
#[inline(never)]
fn enter_many<M: Machine>(map: &VmMap<M>, pmap: &M::Pmap, place: Place, found: Found<'_, M>) -> KernResult {
    if found.large {
        let change = PmapChange::Enter {
            address: place.address & !((1 << map.vm.large_shift) - 1),
            page: first_of_large(found.page, map.vm.large_pages()),
            shift: map.vm.large_shift,
            protection: found.rights,
        };
        // If there is no kernel memory for the large page, the base page is tried.
        if map.vm.machine().pmap_change(pmap, &[change]).is_ok() {
            return Ok(());
        }
    }
    let mut changes = [enter(place.address, found.page, found.rights); AROUND_LIMIT];
    let mut count = 1;
    if let Some(mut around) = found.around {
        let window = map.vm.settings.fault_around.clamp(1, AROUND_LIMIT as u64) * PAGE_SIZE;
        let first = (place.address & !(window - 1)).max(place.start);
        let end = (place.address | (window - 1)).saturating_add(1).min(place.end);
        for address in (first..end).step_by(PAGE_SIZE as usize) {
            let distance = (address as i64 - place.address as i64) >> PAGE_SHIFT;
            if distance != 0
                && let Some((frame, rights)) = around.neighbour(distance)
            {
                changes[count] = enter(address, PhysicalPage::Frame(frame), rights);
                count += 1;
            }
        }
    }
    match map.vm.machine().pmap_change(pmap, &changes[..count]) {
        // The first change is the page that the fault needs, and it has been made.
        Err(full) if full.index == 0 => Err(KernError::ResourceShortage),
        _ => Ok(()),
    }
}

/// The first base page of the large page around `page`, which has `pages` base pages.
fn first_of_large(page: PhysicalPage, pages: u64) -> PhysicalPage {
    match page {
        PhysicalPage::Frame(frame) => PhysicalPage::Frame(Frame(frame.0 & !(pages as u32 - 1))),
        PhysicalPage::Device(address, caching) => {
            PhysicalPage::Device(address & !((pages << PAGE_SHIFT) - 1), caching)
        }
    }
}

/// The use of a page by the server: reads or writes its frame.
struct Touch<F>(F);

impl<M: Machine, R, F: FnMut(&M, Frame) -> R> PageUse<M> for Touch<F> {
    type Output = R;

    fn use_page(
        &mut self,
        map: &VmMap<M>,
        translation: &Translation<M>,
        place: Place,
        found: Found<'_, M>,
    ) -> KernResult<R> {
        let PhysicalPage::Frame(frame) = found.page else { return Err(KernError::NotSupported) };
        if found.replaces {
            // The old page, from which this one was copied, must be unmapped from the task.
            let around = None;
            Enter.use_page(map, translation, place, Found { around, ..found })?;
        }
        Ok((self.0)(map.vm.machine(), frame))
    }
}

impl<M: Machine> NonblockingHandler for VmMap<M> {
    fn fault(&self, address: u64, access: Protection) -> bool {
        self.try_fault(address, access) == Some(Ok(()))
    }
}

impl<M: Machine> VmMap<M> {
    /// Serves a page fault: after it, the access succeeds (unless the translation is dropped
    /// again).
    ///
    /// # Errors
    /// `InvalidAddress`: nothing is mapped there. `ProtectionFailure`: the mapping does not allow
    /// the access. `MemoryFailure`, `MemoryError`: the pager does not provide the page.
    /// `ResourceShortage`: memory is short. `Terminated`: the map has ended.
    pub async fn fault(&self, address: u64, access: Protection) -> KernResult {
        self.page(address, access, Enter).await
    }

    /// Serves a page fault like [`fault`](Self::fault), if that is possible without waiting.
    /// Otherwise returns `None`, and nothing has been begun.
    pub fn try_fault(&self, address: u64, access: Protection) -> Option<KernResult> {
        self.try_page(address, access, &mut Enter)
    }

    /// Lends the frame of the page at `address` to `with`, if that is possible without waiting.
    /// Otherwise returns `None`, and nothing has been begun. The access is checked as in
    /// [`copyin`](Self::copyin) and [`copyout`](Self::copyout). `with` runs under the locks of the
    /// page's object and of the translation: it must be short, and may take another object's lock
    /// only by [`VmObject::try_with_frame`].
    ///
    /// # Errors
    /// Those of [`fault`](Self::fault).
    pub fn try_with_frame<R>(
        &self,
        address: u64,
        access: Protection,
        mut with: impl FnMut(Frame) -> R,
    ) -> Option<KernResult<R>> {
        if let Some(output) = self.ready_path(address, access, &mut with) {
            return Some(Ok(output));
        }
        self.try_other_page(address, access, with)
    }

    /// Lends a page that is not on the ready path: its code is kept out of the callers of that.
    #[inline(never)]
    pub(super) fn try_other_page<R>(
        &self,
        address: u64,
        access: Protection,
        mut with: impl FnMut(Frame) -> R,
    ) -> Option<KernResult<R>> {
        self.try_page(address, access, &mut Touch(|_: &M, frame| with(frame)))
    }

    /// The page, if it belongs to the entry of the last fault, and is in memory in the entry's own
    /// object. This is so for most pages to which system calls refer.
    #[inline(always)]
    pub(super) fn ready_path<R>(
        &self,
        address: u64,
        access: Protection,
        with: &mut impl FnMut(Frame) -> R,
    ) -> Option<R> {
        let translation = self.translation.lock();
        let hint = translation.hints.find(address, access)?;
        let object = hint.object.upgrade()?;
        let index = hint.index(address);
        let mut state = object.state.lock();
        let frame = state.ready_frame(index, access)?;
        Some(with(frame))
    }

    /// Finds the page at `address` for an access and uses it, if that is possible without waiting.
    #[inline(always)]
    fn try_page<U: PageUse<M>>(
        &self,
        address: u64,
        access: Protection,
        page_use: &mut U,
    ) -> Option<KernResult<U::Output>> {
        let step = match self.short_path(address, access, page_use) {
            Some(step) => step,
            None => {
                let mut state = self.state.try_lock()?;
                if !state.alive {
                    return Some(Err(KernError::Terminated));
                }
                self.long_path(&mut state, address, access, page_use)
            }
        };
        match step {
            Ok(output) => Some(Ok(output)),
            Err(Blocked::Error(error)) => Some(Err(error)),
            Err(Blocked::Wait(_)) => None,
        }
    }

    /// Reads a task's memory. Pages are faulted in as needed; the map's rights are checked,
    /// whatever translations exist.
    ///
    /// # Errors
    /// How many bytes were read before the first that could not be, and why it could not.
    pub async fn copyin(&self, address: u64, buffer: &mut [u8]) -> Result<(), CopyFault> {
        self.each_page(address, buffer.len(), Protection::READ, |machine, frame, offset, done, count| {
            machine.read_frame(frame, offset, &mut buffer[done..done + count]);
        })
        .await
    }

    /// Writes a task's memory, as [`copyin`](Self::copyin) reads it.
    ///
    /// # Errors
    /// How many bytes were written before the first that could not be, and why it could not.
    pub async fn copyout(&self, address: u64, bytes: &[u8]) -> Result<(), CopyFault> {
        self.each_page(address, bytes.len(), Protection::WRITE, |machine, frame, offset, done, count| {
            machine.write_frame(frame, offset, &bytes[done..done + count]);
        })
        .await
    }

    /// Fills a task's memory with zeros.
    ///
    /// # Errors
    /// Those of [`copyout`](Self::copyout).
    pub async fn clear(&self, address: u64, length: usize) -> Result<(), CopyFault> {
        const ZEROS: [u8; PAGE_SIZE as usize] = [0; PAGE_SIZE as usize];
        self.each_page(address, length, Protection::WRITE, |machine, frame, offset, _, count| {
            machine.write_frame(frame, offset, &ZEROS[..count]);
        })
        .await
    }

    /// Atomically loads the word at `address`, a multiple of 4.
    ///
    /// # Errors
    /// Those of [`fault`](Self::fault); `InvalidArgument`: unaligned.
    pub async fn load_u32(&self, address: u64) -> KernResult<u32> {
        let offset = aligned_offset(address)?;
        let load = Touch(|machine: &M, frame| machine.load_u32(frame, offset));
        self.page(address, Protection::READ, load).await
    }

    /// Atomically replaces the word at `address`, a multiple of 4, if it is `current`. The inner
    /// result is the old value, as `Err` if it was not `current`.
    ///
    /// # Errors
    /// Those of [`fault`](Self::fault); `InvalidArgument`: unaligned.
    pub async fn compare_exchange_u32(
        &self,
        address: u64,
        current: u32,
        new: u32,
    ) -> KernResult<Result<u32, u32>> {
        let offset = aligned_offset(address)?;
        let exchange = Touch(|machine: &M, frame| machine.compare_exchange_u32(frame, offset, current, new));
        self.page(address, Protection::WRITE, exchange).await
    }

    /// A name of the memory at `address`, for futexes. It is equal in all maps that share the
    /// memory: the number of the object (of the map for private memory), and the byte offset in it.
    ///
    /// # Errors
    /// `InvalidAddress`: nothing is mapped there. `Terminated`: the map has ended.
    pub async fn memory_key(&self, address: u64) -> KernResult<(u64, u64)> {
        let mut state = self.look().await?;
        let id = state.entries.find(address).ok_or(KernError::InvalidAddress)?;
        let start = state.entries.start(id);
        let entry = state.entries.get(id);
        Ok(match &entry.object {
            Some(object) if entry.shared => (object.id(), entry.offset + (address - start)),
            _ => (self.id, address),
        })
    }

    /// Calls `with` for the part of each page in the range, with the machine, the frame, the offset
    /// in it, the bytes done before, and the bytes of this part.
    async fn each_page(
        &self,
        address: u64,
        length: usize,
        access: Protection,
        mut with: impl FnMut(&M, Frame, usize, usize, usize),
    ) -> Result<(), CopyFault> {
        let mut done = 0;
        while done < length {
            let fault = |error| CopyFault { copied: done, error };
            let at = address.checked_add(done as u64).ok_or(fault(KernError::InvalidAddress))?;
            let offset = (at % PAGE_SIZE) as usize;
            let count = (length - done).min(PAGE_SIZE as usize - offset);
            let mut with = |machine: &M, frame| with(machine, frame, offset, done, count);
            if self.ready_path(at, access, &mut |frame| with(self.vm.machine(), frame)).is_none() {
                self.page(at, access, Touch(with)).await.map_err(fault)?;
            }
            done += count;
        }
        Ok(())
    }

    /// Finds the page at `address` for an access and uses it.
    async fn page<U: PageUse<M>>(
        &self,
        address: u64,
        access: Protection,
        mut page_use: U,
    ) -> KernResult<U::Output> {
        let mut shortages = 0;
        loop {
            let step = match self.short_path(address, access, &mut page_use) {
                Some(step) => step,
                None => {
                    let mut state = self.open().await?;
                    self.long_path(&mut state, address, access, &mut page_use)
                }
            };
            match step {
                Ok(output) => return Ok(output),
                Err(blocked) => {
                    shortages += u32::from(blocked.is_shortage());
                    if shortages > SHORTAGES {
                        // The frame that this access got was taken again each time before it had
                        // the next one that it needs.
                        shortages = 0;
                        if !self.vm.made_room().await {
                            return Err(KernError::ResourceShortage);
                        }
                    }
                    blocked.wait(&self.vm).await?;
                }
            }
        }
    }

    /// The page, if it belongs to the entry of the last fault: found without a look-up in the map.
    #[inline(always)]
    fn short_path<U: PageUse<M>>(
        &self,
        address: u64,
        access: Protection,
        page_use: &mut U,
    ) -> Option<Step<M, U::Output>> {
        let translation = self.translation.lock();
        let hint = translation.hints.find(address, access)?;
        let object = hint.object.upgrade()?;
        Some(self.use_hint(&translation, hint, &object, address, access, page_use))
    }

    #[inline(always)]
    fn use_hint<U: PageUse<M>>(
        &self,
        translation: &Translation<M>,
        hint: &Hint<M>,
        object: &Arc<VmObject<M>>,
        address: u64,
        access: Protection,
        page_use: &mut U,
    ) -> Step<M, U::Output> {
        let target = Target {
            object,
            index: hint.index(address),
            protection: hint.protection,
            needs_copy: hint.needs_copy,
            wired: hint.wired,
            cluster: hint.cluster,
            large: hint.large && hint.large_page_fits(address, 1 << self.vm.large_shift),
            maps: true,
            privileged: self.privileged.load(Ordering::Relaxed),
        };
        let place = Place { address: address & !(PAGE_SIZE - 1), start: hint.start, end: hint.end };
        let mut top = object.state.lock();
        if let Some(found) = fault::fresh_page(&self.vm, &target, &mut top)? {
            return Ok(page_use.use_page(self, translation, place, found)?);
        }
        fault::resolve_other(&self.vm, &target, access, top, |found| {
            page_use.use_page(self, translation, place, found)
        })
    }

    /// Finds the page by a look-up in the map. Enables the short path for the next fault.
    fn long_path<U: PageUse<M>>(
        &self,
        state: &mut MapState<M>,
        address: u64,
        access: Protection,
        page_use: &mut U,
    ) -> Step<M, U::Output> {
        let id = state.entries.find(address).filter(|&id| !state.is_cached(id));
        let id = id.ok_or(KernError::InvalidAddress)?;
        if !state.entries.get(id).protection.contains(access) {
            return Err(KernError::ProtectionFailure.into());
        }
        let object = self.prepare_object(state, id, access)?;
        let entry = state.entries.get(id);
        let mut translation = self.translation.lock();
        translation.hints.add(Hint {
            start: state.entries.start(id),
            end: state.entries.end(id),
            object: Arc::downgrade(&object),
            offset: entry.offset,
            protection: entry.protection,
            needs_copy: entry.needs_copy,
            wired: entry.wired > 0,
            cluster: match entry.behavior {
                Behavior::Default => self.vm.settings.cluster,
                Behavior::Random => 1,
                Behavior::Sequential | Behavior::LargePages => 2 * self.vm.settings.cluster,
            },
            large: (self.vm.settings.large_pages || entry.behavior == Behavior::LargePages)
                && self.vm.large_shift > PAGE_SHIFT,
        });
        let Some(hint) = translation.hints.last() else { return Err(Blocked::Error(KernError::Failure)) };
        self.use_hint(&translation, hint, &object, address, access, page_use)
    }

    /// The entry's object. If the access needs it, it is made first, or a shadow is put over it.
    fn prepare_object(
        &self,
        state: &mut MapState<M>,
        id: EntryId,
        access: Protection,
    ) -> KernResult<Arc<VmObject<M>>> {
        let start = state.entries.start(id);
        let size = state.entries.end(id) - start;
        let entry = state.entries.get_mut(id);
        if entry.needs_copy && access.contains(Protection::WRITE) {
            self.end_needs_copy(entry, size)?;
        }
        self.ensure_object(entry, start)
    }

    /// The object of the entry at `start`; an anonymous one is made if there is none yet.
    pub(super) fn ensure_object(&self, entry: &mut Entry<M>, start: u64) -> KernResult<Arc<VmObject<M>>> {
        if let Some(object) = &entry.object {
            return Ok(object.clone());
        }
        let object = VmObject::anonymous(&self.vm)?;
        // The object's pages are aligned as in the address space, so that large pages fit.
        entry.offset = start % (1 << self.vm.large_shift);
        entry.needs_copy = false;
        Ok(entry.object.insert(object).clone())
    }

    /// Gives an entry that shares its object with a copy an object of its own, over the shared one.
    pub(super) fn end_needs_copy(&self, entry: &mut Entry<M>, size: u64) -> KernResult {
        if let Some(object) = &entry.object
            && !is_sole_user(object)
        {
            let (offset, length) = (entry.offset >> PAGE_SHIFT, size >> PAGE_SHIFT);
            entry.object = Some(copy::shadow(&self.vm, object.clone(), offset, length)?);
            entry.offset = 0;
        }
        entry.needs_copy = false;
        Ok(())
    }
}

/// Whether the entry is the only user left of an object that was shared for copying, so that it may
/// write to the object directly. The map is locked, so the entry gives out no new reference.
fn is_sole_user<M: Machine>(object: &Arc<VmObject<M>>) -> bool {
    if Arc::strong_count(object) > 1 {
        return false;
    }
    let state = object.state.lock();
    // A copy object can be found through its original, and the object of a pager through its owner:
    // others may use such objects.
    state.is_internal() && !state.is_copy && !state.shared && state.strategy == CopyStrategy::Symmetric
}

/// The offset in its page of a word that may be used atomically.
fn aligned_offset(address: u64) -> KernResult<usize> {
    if address.is_multiple_of(4) {
        Ok((address % PAGE_SIZE) as usize)
    } else {
        Err(KernError::InvalidArgument)
    }
}
