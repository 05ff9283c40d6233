//! What a pager asks of the library about the pages of its object: Mach's
//! `memory_object_lock_request`.

use alloc::sync::Arc;

use super::fault::{self, Blocked, Step};
use super::object::{Backing, ObjectState, VmObject};
use super::page_index::{Slot, SlotFlags};
use super::pageout::Purpose;
use crate::machine::{Frame, Machine, PAGE_SHIFT, PAGE_SIZE, Protection};
use crate::{KernError, KernResult};

/// Pages that are locked with one call of the machine, under the object's lock.
const BATCH: usize = 32;

/// Which pages are given to the pager (Mach's `memory_object_return_t`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum ReturnPages {
    /// No pages are written; with `flush`, what was written to them is lost.
    #[default]
    None = 0,
    /// The pages that were written to.
    Dirty = 1,
    /// All pages that are in memory.
    All = 2,
}

/// What a pager asks about a range of its object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockRequest {
    /// The pages that the caller wants to have.
    pub returned: ReturnPages,
    /// Whether memory is to forget the pages then, and ask for them again. Wired ones stay.
    pub flush: bool,
    /// What programs may not do with the pages in memory until the pager
    /// [allows](super::Pager::data_unlock) it; `None`: as before. Without `READ` nothing is
    /// allowed.
    pub prohibited: Option<Protection>,
}

impl<M: Machine> VmObject<M> {
    /// Does what the object's pager asks about a byte range, and ends when it is done: Mach's
    /// `memory_object_lock_request`, and `memory_object_lock_completed`. What is forbidden holds
    /// before the first page is returned. A lock is a page's, and goes with it when it leaves
    /// memory.
    ///
    /// Dropped before its end, a part of it is done.
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
        let mut next = first;
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
        // Each page that was in transit is waited for once only: other users of the object may
        // begin further transfers, and those could keep this loop going for ever.
        next = first;
        while let Some(page) = self.first_in_transit(next, end) {
            self.page_settles(page).await;
            next = page + 1;
        }
        if self.state.lock().write_errors == errors { Ok(()) } else { Err(KernError::MemoryError) }
    }

    /// Forbids what is asked for pages from `next` on, a batch of them; moves `next` on. The page
    /// that must be waited for.
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
                slot.flags.insert(SlotFlags::DIRTY);
            }
        }
        if count > 0 && rights != Protection::ALL {
            self.vm().machine().frames_protect(&frames[..count], rights);
        }
        in_transit
    }

    /// Gives the pager a run of pages, or forgets one, from `next` on; moves `next` on. The page
    /// that must be waited for.
    fn return_pages(
        self: &Arc<Self>,
        next: &mut u64,
        end: u64,
        request: LockRequest,
    ) -> Step<M, Option<u64>> {
        let state = &mut *self.state.lock();
        let Some((index, slot)) = state.pages.next(*next).filter(|(index, _)| *index < end) else {
            *next = end;
            return Ok(None);
        };
        *next = index;
        if slot.has(SlotFlags::BUSY | SlotFlags::CLEANING) {
            return Ok(Some(index));
        }
        let flush = request.flush && slot.wired == 0;
        if flush && state.copy.is_some() {
            fault::push_to_copy(self.vm(), state, index)?;
        }
        *next = index + 1;
        if slot.has(SlotFlags::DIRTY) && request.returned != ReturnPages::None {
            let purpose = if flush { Purpose::Flush } else { Purpose::Clean };
            // A wired page among those that go is written alone.
            let end = if request.flush && !flush { index + 1 } else { end };
            let Some(pager) = state.pager() else { return Err(Blocked::Error(KernError::InvalidObject)) };
            let count = self.vm().write_run(self, state, pager, index..end, purpose);
            *next = index + count.max(1);
        } else if flush {
            self.forget_page(state, index);
        }
        Ok(None)
    }

    /// Frees a page that is not in transit, unwritten.
    fn forget_page(&self, state: &mut ObjectState<M>, index: u64) {
        let machine = self.vm().machine();
        let Some(slot) = state.pages.get(index) else { return };
        if slot.has(SlotFlags::MAPPED) {
            machine.frames_protect(&[slot.frame], Protection::NONE);
        }
        state.pages.remove(machine, index);
        self.vm().free_frame(slot.frame, false);
    }

    /// The first page in a range that its pager works on.
    fn first_in_transit(&self, first: u64, end: u64) -> Option<u64> {
        let state = self.state.lock();
        let in_transit = |slot: &Slot| slot.has(SlotFlags::BUSY | SlotFlags::CLEANING);
        state.pages.range(first, end).find(|(_, slot)| in_transit(slot)).map(|(index, _)| index)
    }

    /// Waits until no pager reads or writes a page.
    async fn page_settles(&self, page: u64) {
        let settled = || self.first_in_transit(page, page + 1).is_none().then_some(());
        self.vm().beside_laundry(self.changed.wait_until(settled)).await
    }
}

/// Adds write and execute to what is prohibited if read is: a page that cannot be read can be
/// neither written nor executed.
fn all_without_read(prohibited: Protection) -> Protection {
    if prohibited.contains(Protection::READ) { Protection::ALL } else { prohibited }
}

/// Asks the pager to allow an access to a page that it has forbidden, and takes note that it does.
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
