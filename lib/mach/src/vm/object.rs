//! VM objects: the memory that can be mapped. An object holds the pages that are in memory, and
//! knows where the others are.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use macadamia_sync::{SpinLock, WaitQueue};

use super::Vm;
use super::fault::{self, Target};
use super::page_index::{PageIndex, Slot, SlotFlags};
use super::pager::{LeftPage, Pager, SwapPager};
use crate::machine::{Caching, Frame, Machine, PAGE_SHIFT, PAGE_SIZE, PhysicalPage, Protection};
use crate::{KernError, KernResult};

/// How private mappings of an object are made (after Mach's memory-object copy strategies).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyStrategy {
    /// A private mapping sees the object as it was when it was made: the first write to a page of
    /// the object first saves the page in a copy object.
    Delay,
    /// A private mapping shares the object's pages until it writes them itself, and until then sees
    /// what is written to the object. Unix requires this of private file mappings, and it costs
    /// less.
    Symmetric,
}

/// What the pages of an object are, for statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageKind {
    /// Memory of programs.
    Anonymous,
    /// Files that are only in memory, and memory that programs share.
    Memory,
    /// Files whose contents a pager has.
    File,
    /// Disks.
    Disk,
}

impl PageKind {
    /// How many kinds there are.
    pub(super) const COUNT: u64 = 4;
}

/// The source of the pages that are not in memory.
pub(super) enum Backing<M: Machine> {
    /// The object's pages are zeros, or those of the object below it.
    Anonymous,
    /// The object is anonymous, but the pages whose slots are marked `PAGED_OUT` are with this
    /// pager, page 0 at this byte offset.
    Swap(Arc<dyn SwapPager<M>>, u64),
    /// A pager has the object's pages.
    Pager(Arc<dyn Pager<M>>),
    /// Device memory from this physical address on. The object has no pages.
    Device(u64, Caching),
}

/// The object below in a chain of copies, which has the pages that the upper object does not have.
pub(super) struct Shadow<M: Machine> {
    pub(super) object: Arc<VmObject<M>>,
    /// The number of the lower object's page that is page 0 of the upper object.
    pub(super) offset: u64,
    /// The pages of the upper object from this number on are not in the lower one: they are zeros.
    pub(super) length: u64,
}

/// The state that the object's lock protects.
pub(super) struct ObjectState<M: Machine> {
    pub(super) pages: PageIndex,
    pub(super) backing: Backing<M>,
    pub(super) shadow: Option<Shadow<M>>,
    /// The newest delayed copy of this object. Before a page changes in this object, the copy must
    /// be given it.
    pub(super) copy: Option<Weak<VmObject<M>>>,
    /// The size in bytes; there are no pages beyond it. `u64::MAX`: no limit.
    pub(super) size: u64,
    pub(super) strategy: CopyStrategy,
    /// Several entries write to this object, so it may not be copied symmetrically.
    pub(super) shared: bool,
    /// This object is, or was, the delayed copy of the object that it shadows.
    pub(super) is_copy: bool,
    /// Page-out may wait for operations on this object, so its pages may get frames of the reserve.
    pub(super) privileged: bool,
    /// The number of page-ins and page-outs in progress.
    pub(super) paging: u32,
    /// The number of page-outs that have failed.
    pub(super) write_errors: u32,
    /// What programs write through mappings; `None` if that is not of interest.
    pub(super) mapped_writes: Option<Box<MappedWrites>>,
    /// The page-in that was begun last.
    pub(super) last_page_in: LastPageIn,
}

/// The page-in of an object that was begun last.
#[derive(Clone, Copy, Default)]
pub(super) struct LastPageIn {
    /// The low bits of the number of the page after its last.
    next: u32,
    /// How many pages it was for.
    pages: u32,
}

impl LastPageIn {
    /// How many times as many pages as usual a page-in is for at most.
    const MOST: u64 = 4;

    /// How many pages are requested with page `index`, if that is usually `cluster`: twice as many
    /// as the last time if that ended just before it, since the object is read from its start to
    /// its end.
    pub(super) fn pages_from(self, index: u64, cluster: u64) -> u64 {
        match self.pages > 0 && self.next == index as u32 && cluster > 1 {
            true => (2 * u64::from(self.pages)).clamp(cluster, LastPageIn::MOST * cluster),
            false => cluster,
        }
    }

    /// So many pages are requested from page `index` on.
    pub(super) fn begins(&mut self, index: u64, pages: u64) {
        *self = LastPageIn { next: (index + pages) as u32, pages: pages as u32 };
    }

    /// Of so many pages from page `index` on only the first were filled.
    pub(super) fn ended(&mut self, index: u64, pages: u64, filled: u64) {
        if self.next == (index + pages) as u32 {
            self.next = (index + filled) as u32;
        }
    }
}

/// Which pages of an object programs may write through mappings without a fault, since they were
/// last asked for.
#[derive(Default)]
pub(super) struct MappedWrites {
    /// When the first of them was written, as [`Machine::now`] has it.
    first: Option<u64>,
    /// The numbers of the pages, unless `any` is set.
    pages: Vec<u64>,
    /// Any page may be one of them.
    any: bool,
}

impl MappedWrites {
    /// The most numbers that are kept. So many faults cost more than to look at all pages.
    const MOST: usize = 1024;

    /// Notes that a page is mapped to be written, and with `large` those around it.
    pub(super) fn note(&mut self, page: u64, large: bool, now: impl FnOnce() -> u64) {
        self.first.get_or_insert_with(now);
        if large || self.pages.len() == MappedWrites::MOST || self.pages.try_reserve(1).is_err() {
            self.any = true;
        }
        if self.any {
            self.pages.clear();
        } else {
            self.pages.push(page);
        }
    }
}

/// Memory that can be mapped: a sequence of pages.
///
/// References are `Arc`s; when the last goes, the pages are freed. Anonymous objects have no fixed
/// size.
pub struct VmObject<M: Machine> {
    vm: Arc<Vm<M>>,
    /// A number of its own, whose lowest bits are the kind of the pages.
    id: u64,
    pub(super) state: SpinLock<ObjectState<M>>,
    /// Woken when a page is not busy any more, or paging of the object has ended.
    pub(super) changed: WaitQueue,
}

impl<M: Machine> ObjectState<M> {
    /// The number of pages that the size allows.
    pub(super) fn limit(&self) -> u64 {
        self.size.div_ceil(PAGE_SIZE)
    }

    /// Whether the library made this object for itself, so that pages that do not exist are zeros.
    pub(super) fn is_internal(&self) -> bool {
        matches!(self.backing, Backing::Anonymous | Backing::Swap(..))
    }

    /// The pager that has the pages which have no frames, and the byte offset of page 0 there.
    pub(super) fn pager(&self) -> Option<(Arc<dyn Pager<M>>, u64)> {
        match &self.backing {
            Backing::Swap(pager, offset) => Some((pager.clone(), *offset)),
            Backing::Pager(pager) => Some((pager.clone(), 0)),
            Backing::Anonymous | Backing::Device(..) => None,
        }
    }
}

impl<M: Machine> VmObject<M> {
    /// The size in bytes that is accounted for an object, its reference counts included.
    pub(super) const BYTES: usize = size_of::<Self>() + 2 * size_of::<usize>();

    /// Makes an anonymous object, which is zeros until it is written.
    ///
    /// # Errors
    /// `ResourceShortage`: memory is short.
    pub fn anonymous(vm: &Arc<Vm<M>>) -> KernResult<Arc<Self>> {
        Self::with_backing(vm, Backing::Anonymous, PageKind::Anonymous, u64::MAX, CopyStrategy::Symmetric)
    }

    /// Makes an object of `size` bytes whose pages a pager has, such as a file.
    ///
    /// # Errors
    /// `ResourceShortage`: memory is short.
    pub fn paged(
        vm: &Arc<Vm<M>>,
        pager: Arc<dyn Pager<M>>,
        size: u64,
        strategy: CopyStrategy,
    ) -> KernResult<Arc<Self>> {
        let kind = pager.kind();
        Self::with_backing(vm, Backing::Pager(pager), kind, size, strategy)
    }

    /// Makes an object for device memory from the physical `address` on. It cannot be copied, only
    /// shared.
    ///
    /// # Errors
    /// `InvalidArgument`: address or size is not a multiple of the page size, or they wrap.
    /// `ResourceShortage`: memory is short.
    pub fn device(vm: &Arc<Vm<M>>, address: u64, size: u64, caching: Caching) -> KernResult<Arc<Self>> {
        if !(address | size).is_multiple_of(PAGE_SIZE) || address.checked_add(size).is_none() {
            return Err(KernError::InvalidArgument);
        }
        let backing = Backing::Device(address, caching);
        // There are no pages.
        Self::with_backing(vm, backing, PageKind::Memory, size, CopyStrategy::Delay)
    }

    fn with_backing(
        vm: &Arc<Vm<M>>,
        backing: Backing<M>,
        kind: PageKind,
        size: u64,
        strategy: CopyStrategy,
    ) -> KernResult<Arc<Self>> {
        if !vm.machine().reserve_memory(Self::BYTES) {
            return Err(KernError::ResourceShortage);
        }
        let state = ObjectState {
            pages: PageIndex::new(),
            backing,
            shadow: None,
            copy: None,
            size,
            strategy,
            shared: false,
            is_copy: false,
            privileged: false,
            paging: 0,
            write_errors: 0,
            mapped_writes: None,
            last_page_in: LastPageIn::default(),
        };
        Ok(Arc::new(Self {
            vm: vm.clone(),
            id: vm.new_id() | kind as u64,
            state: SpinLock::new(state),
            changed: WaitQueue::new(),
        }))
    }

    /// Makes the memory of a file of `size` bytes, which is zeros until it is written, and has no
    /// pager.
    ///
    /// # Errors
    /// `ResourceShortage`: memory is short.
    pub fn anonymous_of_size(vm: &Arc<Vm<M>>, size: u64) -> KernResult<Arc<Self>> {
        Self::with_backing(vm, Backing::Anonymous, PageKind::Memory, size, CopyStrategy::Symmetric)
    }

    /// What the pages are.
    #[inline]
    pub(super) fn kind(&self) -> PageKind {
        match self.id % PageKind::COUNT {
            0 => PageKind::Anonymous,
            1 => PageKind::Memory,
            2 => PageKind::File,
            _ => PageKind::Disk,
        }
    }

    /// Calls `with` for each page from byte `start` on that was changed and is not with the pager
    /// yet: with its offset, and whether it is being written. What programs have changed through
    /// mappings is known where that is [noted](Self::note_mapped_writes). The object is locked
    /// meanwhile, though not for all pages together.
    pub fn each_unwritten(&self, start: u64, with: &mut dyn FnMut(u64, bool)) {
        const TOGETHER: usize = 4096;
        let mut next = Some(start >> PAGE_SHIFT);
        while let Some(first) = next {
            let state = self.state.lock();
            let mut slots = state.pages.range(first, u64::MAX);
            for (index, slot) in slots.by_ref().take(TOGETHER) {
                if slot.is_resident() && slot.has(SlotFlags::DIRTY | SlotFlags::CLEANING) {
                    with(index << PAGE_SHIFT, slot.has(SlotFlags::CLEANING));
                }
            }
            next = slots.next().map(|(index, _)| index);
        }
    }

    /// Notes from now on when programs write through mappings ([`VmObject::take_mapped_writes`]).
    /// The object must have a size, and not be mapped yet.
    pub fn note_mapped_writes(&self) {
        let mut state = self.state.lock();
        debug_assert!(state.size != u64::MAX, "the commonest fault notes nothing");
        state.mapped_writes.get_or_insert_default();
    }

    /// When a program first wrote through a mapping since the last call, as [`Machine::now`] has
    /// it; `None` if none did. The next write counts again: pages that were written cannot be
    /// written without a fault any more.
    pub fn take_mapped_writes(&self) -> Option<u64> {
        let mut state = self.state.lock();
        let writes = state.mapped_writes.as_mut().filter(|writes| writes.first.is_some())?;
        let MappedWrites { first, pages, any } = core::mem::take(&mut **writes);
        drop(state);
        if any {
            self.protect_from_writes(|state, from| state.pages.next(from).map(|(page, _)| page));
        } else {
            let mut pages = pages.into_iter();
            self.protect_from_writes(|_, _| pages.next());
        }
        first
    }

    /// Takes from all mappings the right to write to the pages that `next` names. It gets the
    /// number from which on pages are left.
    fn protect_from_writes(&self, mut next: impl FnMut(&ObjectState<M>, u64) -> Option<u64>) {
        const BATCH: usize = 32;
        let mut from = 0;
        loop {
            let (mut frames, mut count) = ([Frame(0); BATCH], 0);
            let mut state = self.state.lock();
            let mut ended = false;
            // Under one lock a bounded number of pages is looked at.
            for _ in 0..BATCH {
                let Some(page) = next(&state, from) else {
                    ended = true;
                    break;
                };
                from = page + 1;
                if let Some(slot) = state.pages.get_mut(page).filter(|slot| slot.has(SlotFlags::WRITABLE)) {
                    slot.flags.remove(SlotFlags::WRITABLE);
                    frames[count] = slot.frame;
                    count += 1;
                }
            }
            if count > 0 {
                self.vm.machine().frames_protect(&frames[..count], Protection::ALL - Protection::WRITE);
            }
            if ended {
                return;
            }
        }
    }

    /// Sets whether page-out depends on this object: a pager needs the object's pages in order to
    /// write pages of other objects, as a file system needs its own blocks. When no memory is free,
    /// the object gets frames of a [small reserve](super::Settings::free_reserve) (Mach's privilege
    /// of the default pager).
    pub fn set_privileged(&self, privileged: bool) {
        self.state.lock().privileged = privileged;
    }

    /// How many page-outs of this object have failed so far. A file system compares it with an
    /// earlier count to report each failure once.
    pub fn write_errors(&self) -> u32 {
        self.state.lock().write_errors
    }

    /// Extends the object to at least `size` bytes. Nothing needs to be paged for it.
    pub(crate) fn extend(&self, size: u64) {
        let mut state = self.state.lock();
        state.size = state.size.max(size);
    }

    /// Whether nothing refers to the object but the caller and the paging in progress.
    pub(crate) fn is_only_paged(self: &Arc<Self>) -> bool {
        let paging = self.state.lock().paging as usize;
        Arc::strong_count(self) <= paging + 1
    }

    /// Puts a page into the object that its pager gives without having been asked. It is taken only
    /// if it is not there, if it lies within the object, and if more frames are free than page-out
    /// keeps free. `is_there` says, under the object's lock, whether the pager has not got yet what
    /// it was given of the page.
    ///
    /// # Errors
    /// `MemoryPresent`: the page is there, or was asked for. `ResourceShortage`: memory is short.
    /// `InvalidArgument`: the page lies beyond the end.
    pub(crate) fn accept_page(
        self: &Arc<Self>,
        index: u64,
        contents: &[u8],
        (prohibited, precious): (Protection, bool),
        is_there: impl FnOnce() -> bool,
    ) -> KernResult {
        let vm = &self.vm;
        let mut state = self.state.lock();
        if index >= state.limit() {
            return Err(KernError::InvalidArgument);
        }
        if state.pages.get(index).is_some() || is_there() {
            return Err(KernError::MemoryPresent);
        }
        let spare = vm.free_count() > vm.settings.free_target;
        let frame = if spare { vm.allocate_frame(self, index) } else { None };
        let frame = frame.ok_or(KernError::ResourceShortage)?;
        vm.machine().write_frame(frame, 0, contents);
        let flags = if precious { SlotFlags::PRECIOUS } else { SlotFlags::empty() };
        let mut slot = Slot::new(frame, flags);
        slot.prohibit(prohibited - Protection::READ);
        let inserted = state.pages.insert(vm.machine(), index, slot);
        inserted.inspect_err(|_| vm.free_frame(frame, false))
    }

    /// A number that no other object or map of the memory system has or had.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The memory system that this object belongs to.
    pub fn vm(&self) -> &Arc<Vm<M>> {
        &self.vm
    }

    /// How many pages the object has in memory, without those of objects below it.
    pub fn resident_pages(&self) -> usize {
        let state = self.state.lock();
        state.pages.range(0, u64::MAX).filter(|(_, slot)| slot.is_resident()).count()
    }

    /// Whether the object has a page in memory.
    pub fn has_resident_pages(&self) -> bool {
        let state = self.state.lock();
        state.pages.range(0, u64::MAX).any(|(_, slot)| slot.is_resident())
    }

    /// How many pages from `first` up to `end` are in memory, in this object or one below it. A
    /// page that both have may count twice, but the result is at most `end - first`.
    pub(crate) fn resident_in(self: &Arc<Self>, first: u64, end: u64) -> u64 {
        let count = |state: &ObjectState<M>, first: u64, end: u64| match &state.backing {
            Backing::Swap(..) => {
                state.pages.range(first, end).filter(|(_, slot)| slot.is_resident()).count() as u64
            }
            // Without a place in swap every slot has a frame.
            _ => state.pages.count_in(first, end),
        };
        let (mut total, mut below) = {
            let state = self.state.lock();
            let below = state.shadow.as_ref().map(|shadow| (shadow.object.clone(), first + shadow.offset));
            (count(&state, first, end), below)
        };
        while let Some((object, start)) = below {
            let state = object.state.lock();
            total += count(&state, start, start + (end - first));
            let next = state.shadow.as_ref().map(|shadow| (shadow.object.clone(), start + shadow.offset));
            drop(state);
            below = next;
        }
        total.min(end - first)
    }

    /// The first page from `page` on that the object itself has, in memory or with its pager.
    pub fn next_page(&self, page: u64) -> Option<u64> {
        self.state.lock().pages.next(page).map(|(page, _)| page)
    }

    /// The size in bytes; `u64::MAX` if there is no limit.
    pub fn size(&self) -> u64 {
        self.state.lock().size
    }

    /// Changes the size in bytes, as truncating or extending a file does. Pages that lie beyond a
    /// smaller size are unmapped everywhere and freed, unwritten; the rest of the last page is
    /// cleared. Waits for paging of the pages concerned. If the future is dropped before its end,
    /// the size has changed, and some of the pages beyond it may not be freed yet.
    ///
    /// # Errors
    /// `MemoryError`: the pager could not provide the last page, of which a part remains; the size
    /// has not changed.
    pub async fn set_size(self: &Arc<Self>, size: u64) -> KernResult {
        let old = self.size();
        let tail = (size % PAGE_SIZE) as usize;
        if size < old && tail != 0 {
            const ZEROS: [u8; PAGE_SIZE as usize] = [0; PAGE_SIZE as usize];
            let clear = (PAGE_SIZE as usize - tail).min((old - size).min(PAGE_SIZE) as usize);
            self.access(size, clear, Protection::WRITE, |machine, frame, offset, done, count| {
                machine.write_frame(frame, offset, &ZEROS[done..done + count]);
            })
            .await?;
        }
        self.state.lock().size = size;
        let first = size.div_ceil(PAGE_SIZE);
        let discarded = self.changed.wait_until(|| self.discard_pages(first, u64::MAX, true).then_some(()));
        self.vm.beside_laundry(discarded).await;
        Ok(())
    }

    /// Frees the pages from `start` to before `end`, without writing them. Returns false if some
    /// must be waited for because a pager works on them. They are unmapped everywhere, unless the
    /// caller knows that they are not mapped.
    pub(crate) fn discard_pages(&self, start: u64, end: u64, mapped: bool) -> bool {
        let mut at = start;
        loop {
            let mut slots = [Slot::paged_out(); 32];
            let (mut mapped_frames, mut mapped_count) = ([Frame(0); 32], 0);
            let mut count = 0;
            let mut state = self.state.lock();
            while count < slots.len()
                && let Some((index, slot)) = state.pages.next(at).filter(|(index, _)| *index < end)
            {
                at = index + 1;
                if slot.has(SlotFlags::BUSY | SlotFlags::CLEANING) {
                    continue;
                }
                if mapped && slot.has(SlotFlags::MAPPED) {
                    mapped_frames[mapped_count] = slot.frame;
                    mapped_count += 1;
                }
                slots[count] = slot;
                count += 1;
                if slot.is_swapped() {
                    state.forget_swapped(index);
                }
                state.pages.remove(self.vm.machine(), index);
            }
            if mapped_count > 0 {
                self.vm.machine().frames_protect(&mapped_frames[..mapped_count], Protection::NONE);
            }
            let resident = slots[..count].iter().filter(|slot| slot.is_resident());
            let mut freed = 0;
            resident.for_each(|slot| {
                freed += 1;
                self.vm.free_frame(slot.frame, slot.wired > 0);
            });
            self.vm.count_paged_out(freed - count as i64);
            if count < slots.len() {
                return state.pages.next(start).is_none_or(|(index, _)| index >= end);
            }
        }
    }

    /// Reads bytes at `offset`, through the page cache: pages that are not in memory are requested
    /// from the pager. Returns how many bytes were read: fewer than asked for at the end of the
    /// object.
    ///
    /// # Errors
    /// `MemoryError`, `ResourceShortage`, `NotSupported` (device memory); some of the buffer may be
    /// filled.
    pub async fn read(self: &Arc<Self>, offset: u64, buffer: &mut [u8]) -> KernResult<usize> {
        let length = (buffer.len() as u64).min(self.size().saturating_sub(offset)) as usize;
        self.access(offset, length, Protection::READ, |machine, frame, within, done, count| {
            machine.read_frame(frame, within, &mut buffer[done..done + count]);
        })
        .await
    }

    /// Calls `with` with the frame of the page at `offset`, a multiple of the page size, which is
    /// requested from the pager if it is not in memory. `with` runs under the object's lock: it
    /// must be short, and take no lock of the memory system.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    pub(crate) async fn with_page(
        self: &Arc<Self>,
        offset: u64,
        mut with: impl FnMut(&M, Frame),
    ) -> KernResult {
        let page = PAGE_SIZE as usize;
        let done = self.access(offset, page, Protection::READ, |machine, frame, _, _, _| {
            with(machine, frame);
        });
        done.await.map(|_| ())
    }

    /// Writes bytes at `offset`, through the page cache. Returns how many were written: fewer than
    /// asked for at the end of the object, which is not extended.
    ///
    /// # Errors
    /// `MemoryError`, `ResourceShortage`, `NotSupported` (device memory); some of the bytes may be
    /// written.
    pub async fn write(self: &Arc<Self>, offset: u64, bytes: &[u8]) -> KernResult<usize> {
        let length = (bytes.len() as u64).min(self.size().saturating_sub(offset)) as usize;
        self.access(offset, length, Protection::WRITE, |machine, frame, within, done, count| {
            machine.write_frame(frame, within, &bytes[done..done + count]);
        })
        .await
    }

    /// Calls `with` for the part of each page in the range, with the machine, the frame, the offset
    /// in it, the bytes done before, and the bytes of this part.
    async fn access(
        self: &Arc<Self>,
        offset: u64,
        length: usize,
        access: Protection,
        mut with: impl FnMut(&M, Frame, usize, usize, usize),
    ) -> KernResult<usize> {
        let mut done = 0;
        while done < length {
            let at = offset + done as u64;
            let within = (at % PAGE_SIZE) as usize;
            let count = (length - done).min(PAGE_SIZE as usize - within);
            let target = Target::of_object(self, at >> PAGE_SHIFT);
            loop {
                let step = fault::resolve(&self.vm, &target, access, |found| match found.page {
                    PhysicalPage::Frame(frame) => {
                        with(self.vm.machine(), frame, within, done, count);
                        Ok(())
                    }
                    PhysicalPage::Device(..) => Err(KernError::NotSupported),
                });
                match step {
                    Ok(()) => break,
                    Err(blocked) => blocked.wait(&self.vm).await?,
                }
            }
            done += count;
        }
        Ok(done)
    }
}

impl<M: Machine> Drop for VmObject<M> {
    fn drop(&mut self) {
        let machine = self.vm.machine();
        let state = self.state.get_mut();
        debug_assert!(state.paging == 0, "paging keeps a reference");
        if let Backing::Pager(pager) = &state.backing {
            let is_left =
                |slot: &Slot| slot.has(SlotFlags::DIRTY | SlotFlags::PRECIOUS) && !slot.has(SlotFlags::BUSY);
            let left = state.pages.range(0, u64::MAX).filter(|(_, slot)| is_left(slot));
            let mut left = left.map(|(index, slot)| LeftPage {
                offset: index << PAGE_SHIFT,
                frame: slot.frame,
                dirty: slot.has(SlotFlags::DIRTY),
            });
            pager.ended(machine, &mut left);
        }
        // No entry refers to the object, so its pages are not mapped (see the rules of `vm`).
        self.vm.free_frames(&mut state.pages);
        machine.unreserve_memory(Self::BYTES);
        // The chain may be long, so it is taken apart in a loop, not by recursion.
        let mut below = state.shadow.take();
        while let Some(shadow) = below {
            below =
                Arc::into_inner(shadow.object).and_then(|mut object| object.state.get_mut().shadow.take());
        }
    }
}
