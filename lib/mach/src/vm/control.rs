//! Requests of a pager to the library about the pages of its object: Mach's
//! `memory_object_lock_request`.

use alloc::sync::Arc;

use super::fault::{self, Blocked, Step};
use super::object::{Backing, ObjectState, VmObject};
use super::page_index::{Slot, SlotFlags};
use super::pageout::Purpose;
use crate::machine::{Frame, Machine, PAGE_SHIFT, PAGE_SIZE, Protection};
use crate::{KernError, KernResult};

/// How many pages are locked by one call of the machine, under the object's lock.
const BATCH: usize = 32;

/// Which pages are given to the pager (Mach's `memory_object_return_t`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum ReturnPages {
    /// No pages are written. With `flush`, changes of them are lost.
    #[default]
    None = 0,
    /// The pages that were written to.
    Dirty = 1,
    /// All pages that are in memory.
    All = 2,
}

/// The arguments of a pager's request about a range of its object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockRequest {
    /// Which pages are written to the pager.
    pub returned: ReturnPages,
    /// Whether the pages are freed afterwards, so that they are requested again when they are used.
    /// Wired pages stay.
    pub flush: bool,
    /// Which accesses programs may not make to pages in memory until the pager
    /// [allows](super::Pager::data_unlock) them; `None`: no change. If `READ` is prohibited, all
    /// accesses are.
    pub prohibited: Option<Protection>,
}

impl<M: Machine> VmObject<M> {
    /// Carries out a pager's request about a byte range of its object, and ends when that is done:
    /// Mach's `memory_object_lock_request`, and `memory_object_lock_completed`. Prohibitions are in
    /// force before the first page is returned. They end when the page leaves memory.
    ///
    /// If the future is dropped before its end, the request is carried out in part.
    ///
    /// # Errors
    /// `InvalidObject`: the object has no pager of its own. `MemoryError`: the pager refused a
    /// page, which stays. `ResourceShortage`: no memory for a page that a delayed copy must keep
    /// before it is forgotten here.
    pub async fn lock_request(self: &Arc<Self>, start: u64, end: u64, request: LockRequest) -> KernResult {
        let (first, end) = (start >> PAGE_SHIFT, end.div_ceil(PAGE_SIZE));
        let errors = {
            let state = self.state.lock();
            if !matches!(state.backing, Backing::Pager(_)) {
                return Err(KernError::InvalidObject);
            }
            state.write_errors
        };
        // Otherwise nothing changes before pages are returned.
        let locks = request.prohibited.is_some() || request.returned == ReturnPages::All;
        let mut next = if locks { first } else { end };
        while next < end {
            if let Some(page) = self.lock_pages(&mut next, end, request) {
                self.page_settles(page).await;
            }
        }
        next = first;
        while next < end {
            match self.return_pages(&mut next, end, request) {
                Ok(None) => {}
                Ok(Some(page)) => self.page_settles(page).await,
                Err(blocked) => blocked.wait(self.vm()).await?,
            }
        }
        // Each page in transit is waited for only once: other users of the object may begin further
        // transfers, which could keep this loop going for ever.
        next = first;
        while let Some(page) = self.first_in_transit(next, end) {
            self.page_settles(page).await;
            next = page + 1;
        }
        if self.state.lock().write_errors == errors { Ok(()) } else { Err(KernError::MemoryError) }
    }

    /// Prohibits accesses to a batch of pages from `next` on, and advances `next`. Returns a page
    /// that must be waited for, if any.
    fn lock_pages(&self, next: &mut u64, end: u64, request: LockRequest) -> Option<u64> {
        let (mut frames, mut count) = ([Frame(0); BATCH], 0);
        let mut state = self.state.lock();
        let mut in_transit = None;
        let prohibited = request.prohibited.map(all_without_read);
        let rights = Protection::ALL - prohibited.unwrap_or_default();
        while count < frames.len() {
            let Some((index, slot)) = state.pages.next(*next).filter(|(index, _)| *index < end) else {
                *next = end;
                break;
            };
            if slot.has(SlotFlags::BUSY) {
                in_transit = Some(index);
                break;
            }
            *next = index + 1;
            let Some(slot) = state.pages.get_mut(index) else { continue };
            if let Some(prohibited) = prohibited {
                slot.prohibit(prohibited);
                if slot.has(SlotFlags::MAPPED) {
                    frames[count] = slot.frame;
                    count += 1;
                }
                if prohibited.contains(Protection::WRITE) {
                    slot.flags.remove(SlotFlags::WRITABLE);
                }
                if rights.is_empty() {
                    slot.flags.remove(SlotFlags::MAPPED);
                }
            }
            if request.returned == ReturnPages::All {
                slot.flags.insert(SlotFlags::PRECIOUS);
            }
        }
        if count > 0 && rights != Protection::ALL {
            self.vm().machine().frames_protect(&frames[..count], rights);
        }
        in_transit
    }

    /// Writes a run of pages from `next` on to the pager, frees one page, or passes over some for
    /// which nothing is to be done, and advances `next`. Returns a page that must be waited for, if
    /// any.
    fn return_pages(
        self: &Arc<Self>,
        next: &mut u64,
        end: u64,
        request: LockRequest,
    ) -> Step<M, Option<u64>> {
        let state = &mut *self.state.lock();
        let wanted = match request.returned {
            ReturnPages::None => SlotFlags::empty(),
            ReturnPages::Dirty => SlotFlags::DIRTY,
            ReturnPages::All => SlotFlags::DIRTY | SlotFlags::PRECIOUS,
        };
        let idle = |slot: &Slot| {
            let concerned = SlotFlags::BUSY | SlotFlags::CLEANING | wanted;
            !slot.has(concerned) && (!request.flush || slot.wired > 0)
        };
        let (mut passed, mut found) = (0, None);
        for (index, slot) in state.pages.range(*next, end) {
            if passed < BATCH && idle(&slot) {
                passed += 1;
                continue;
            }
            found = Some((index, slot));
            break;
        }
        let Some((index, slot)) = found else {
            *next = end;
            return Ok(None);
        };
        *next = index;
        if idle(&slot) {
            return Ok(None);
        }
        if slot.has(SlotFlags::BUSY | SlotFlags::CLEANING) {
            return Ok(Some(index));
        }
        let flush = request.flush && slot.wired == 0;
        if flush && state.copy.is_some() {
            fault::push_to_copy(self.vm(), state, index)?;
        }
        *next = index + 1;
        if slot.has(wanted) {
            let purpose = if flush { Purpose::Flush } else { Purpose::Clean };
            // A wired page between pages that are to be freed is written alone.
            let end = if request.flush && !flush { index + 1 } else { end };
            let Some(pager) = state.pager() else { return Err(Blocked::Error(KernError::InvalidObject)) };
            let count = self.vm().write_run(self, state, pager, index..end, purpose);
            *next = index + count.max(1);
        } else if flush {
            self.forget_page(state, index);
        }
        Ok(None)
    }

    /// Frees a page that is not in transit, without writing it.
    fn forget_page(&self, state: &mut ObjectState<M>, index: u64) {
        let machine = self.vm().machine();
        let Some(slot) = state.pages.get(index) else { return };
        if slot.has(SlotFlags::MAPPED) {
            machine.frames_protect(&[slot.frame], Protection::NONE);
        }
        if slot.is_swapped() {
            state.forget_swapped(index);
        }
        state.pages.remove(machine, index);
        self.vm().free_frame(slot.frame, false);
    }

    /// The first page in a range that the pager is reading or writing.
    fn first_in_transit(&self, first: u64, end: u64) -> Option<u64> {
        let state = self.state.lock();
        let in_transit = |slot: &Slot| slot.has(SlotFlags::BUSY | SlotFlags::CLEANING);
        state.pages.range(first, end).find(|(_, slot)| in_transit(slot)).map(|(index, _)| index)
    }

    /// Waits until no pager reads or writes the page.
    pub(super) async fn page_settles(&self, page: u64) {
        let settled = || self.first_in_transit(page, page + 1).is_none().then_some(());
        self.vm().beside_laundry(self.changed.wait_until(settled)).await
    }
}

/// Adds write and execute to what is prohibited if read is: a page that cannot be read can be
/// neither written nor executed.
fn all_without_read(prohibited: Protection) -> Protection {
    if prohibited.contains(Protection::READ) { Protection::ALL } else { prohibited }
}

/// Asks the pager to allow an access that it has prohibited, and records that it does.
pub(super) async fn unlock<M: Machine>(
    object: Arc<VmObject<M>>,
    index: u64,
    access: Protection,
) -> KernResult {
    let pager = object.state.lock().pager();
    let Some((pager, base)) = pager else { return Err(KernError::MemoryFailure) };
    let answer = pager.data_unlock(base + (index << PAGE_SHIFT), access).await;
    answer.map_err(|_| KernError::MemoryError)?;
    if let Some(slot) = object.state.lock().pages.get_mut(index) {
        // An access that is allowed implies that reading is allowed.
        slot.prohibit(slot.prohibited() - access - Protection::READ);
    }
    Ok(())
}
