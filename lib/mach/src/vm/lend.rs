//! Frames that are lent for a short time, without waiting, to copy from page to page.
//!
//! A copy between a program's memory and a page of a file needs both frames at the same time, and
//! neither may be freed meanwhile. So it is made under the locks of both objects:
//! [`VmMap::try_with_frame`](super::VmMap::try_with_frame) lends the program's frame, and inside it
//! [`VmObject::try_with_frame`] lends the file's. The order is always this one, and the second lock
//! is only tried. So no two copies can wait for each other. If both pages belong to one object, the
//! second lock is refused, and the caller copies through a buffer.

use alloc::sync::Arc;

use super::fault::{self, Target};
use super::object::{Backing, ObjectState, VmObject};
use super::page_index::SlotFlags;
use super::swap;
use crate::machine::{Frame, Machine, PAGE_SHIFT, PAGE_SIZE, Protection};

impl<M: Machine> ObjectState<M> {
    /// The frame of a page that the object itself has in memory, if the access is possible now. The
    /// page counts as used afterwards, and after a write access as changed.
    #[inline]
    pub(super) fn ready_frame(&mut self, index: u64, access: Protection) -> Option<Frame> {
        let write = access.contains(Protection::WRITE);
        // The page cannot be lent if a delayed copy must be given it first, if it is beyond the
        // end, or if a pager is working on it.
        if write && self.copy.is_some() || index << PAGE_SHIFT >= self.size {
            return None;
        }
        let slot = self.pages.get_mut(index)?;
        if slot.has(SlotFlags::BUSY | SlotFlags::PAGED_OUT) || slot.prohibited().intersects(access) {
            return None;
        }
        slot.flags |= SlotFlags::REFERENCED;
        let frame = slot.frame;
        if write && !slot.has(SlotFlags::DIRTY) {
            let was_swapped = slot.is_swapped();
            slot.flags |= SlotFlags::DIRTY;
            if was_swapped {
                swap::forget(&self.backing, index);
            }
        }
        Some(frame)
    }

    /// Whether a page without a slot is zeros, and only a frame is needed to make it.
    fn makes_zeros(&self) -> bool {
        self.is_internal() && self.shadow.is_none() && self.copy.is_none()
    }
}

impl<M: Machine> VmObject<M> {
    /// Lends the frame of the page at byte `offset` to `with`, together with the number of bytes
    /// from `offset` on that belong to the object. `None`: this is not possible without waiting, or
    /// the object is locked, perhaps by the caller; nothing has been begun. A page of zeros is made
    /// only for a write. `with` runs under the object's lock: it must be short, and take no lock of
    /// the memory system.
    pub fn try_with_frame<R>(
        self: &Arc<Self>,
        offset: u64,
        access: Protection,
        with: impl FnOnce(Frame, u64) -> R,
    ) -> Option<R> {
        let index = offset >> PAGE_SHIFT;
        let mut state = self.state.try_lock()?;
        let rest = state.size.checked_sub(offset).filter(|rest| *rest > 0)?;
        let frame = match state.ready_frame(index, access) {
            Some(frame) => frame,
            None if access.contains(Protection::WRITE)
                && state.makes_zeros()
                && state.pages.get(index).is_none() =>
            {
                let target = Target::of_object(self, index);
                let frame = fault::new_page(self.vm(), &target, &mut state).ok()?;
                self.vm().machine().zero_frame(frame);
                state.ready_frame(index, access)?
            }
            None => return None,
        };
        Some(with(frame, rest))
    }

    /// Lends the frame of the page at byte `offset`, a multiple of the page size, to `with`, which
    /// overwrites all of it. A page that is not in memory is not requested from the pager. `None`:
    /// this is not possible without waiting, or the page reaches beyond the object's end. `with` is
    /// as for [`try_with_frame`](Self::try_with_frame).
    pub fn try_overwrite<R>(self: &Arc<Self>, offset: u64, with: impl FnOnce(Frame) -> R) -> Option<R> {
        let index = offset >> PAGE_SHIFT;
        let mut state = self.state.try_lock()?;
        let is_whole = state.size.checked_sub(offset).is_some_and(|rest| rest >= PAGE_SIZE);
        let has_pager = matches!(state.backing, Backing::Pager(_)) && state.copy.is_none();
        if is_whole && (has_pager || state.makes_zeros()) && state.pages.get(index).is_none() {
            let target = Target::of_object(self, index);
            fault::new_page(self.vm(), &target, &mut state).ok()?;
        }
        let frame = state.ready_frame(index, Protection::WRITE).filter(|_| is_whole)?;
        Some(with(frame))
    }

    /// Makes the object longer, to `length` bytes from `offset` on, which lie in one page. Lends
    /// the frame of that page to `with`, which writes these bytes. A page that is beyond the
    /// present end is made here, of zeros: its pager has nothing for it. `None`: this is not
    /// possible without waiting, or the object is as long already; its size has not changed. `with`
    /// is as for [`try_with_frame`](Self::try_with_frame).
    pub fn try_extend<R>(
        self: &Arc<Self>,
        offset: u64,
        length: u64,
        with: impl FnOnce(Frame) -> R,
    ) -> Option<R> {
        let index = offset >> PAGE_SHIFT;
        let page = index << PAGE_SHIFT;
        let end = offset.checked_add(length).filter(|end| end - page <= PAGE_SIZE)?;
        let mut state = self.state.try_lock()?;
        let before = state.size;
        // Pages after the end are those of a size that is being made smaller.
        if end <= before || state.pages.next(index + 1).is_some() {
            return None;
        }
        if page >= before {
            let has_pager = matches!(state.backing, Backing::Pager(_)) && state.copy.is_none();
            if !(has_pager || state.makes_zeros()) || state.pages.get(index).is_some() {
                return None;
            }
            let target = Target::of_object(self, index);
            let frame = fault::new_page(self.vm(), &target, &mut state).ok()?;
            if length < PAGE_SIZE {
                self.vm().machine().zero_frame(frame);
            }
        }
        state.size = end;
        let frame = state.ready_frame(index, Protection::WRITE);
        if frame.is_none() {
            state.size = before;
        }
        frame.map(with)
    }
}
