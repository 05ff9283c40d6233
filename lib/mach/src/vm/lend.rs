//! Frames lent for a moment, without waiting: what a copy from page to page is made of.
//!
//! A copy between a program's memory and a page of a file needs both frames at the same time, and
//! neither may go away meanwhile. So it happens under both objects' locks:
//! [`VmMap::try_with_frame`](super::VmMap::try_with_frame) lends the program's frame, and inside it
//! [`VmObject::try_with_frame`] lends the file's. Always in this order; the second lock is tried
//! and never waited for, whatever object it is of. So no two copies can wait for each other, and
//! one whose two pages are of the same object does not wait for itself: it is refused, and goes
//! through a buffer of its own instead.

use alloc::sync::Arc;

use super::fault::{self, Target};
use super::object::{ObjectState, VmObject};
use super::page_index::SlotFlags;
use crate::machine::{Frame, Machine, PAGE_SHIFT, Protection};

impl<M: Machine> ObjectState<M> {
    /// The frame of a page that the object itself has in memory, if nothing stands in the way of
    /// the access. From then on the page counts as used, and by a write as changed.
    #[inline]
    pub(super) fn ready_frame(&mut self, index: u64, access: Protection) -> Option<Frame> {
        let write = access.contains(Protection::WRITE);
        // The page cannot be lent now: a copy has to be given it first, or it is beyond the end, or
        // it is on its way and is waited for.
        if write && self.copy.is_some() || index >= self.limit() {
            return None;
        }
        let slot = self.pages.get_mut(index)?;
        if slot.has(SlotFlags::BUSY | SlotFlags::PAGED_OUT) || slot.prohibited().intersects(access) {
            return None;
        }
        slot.flags |= if write { SlotFlags::REFERENCED | SlotFlags::DIRTY } else { SlotFlags::REFERENCED };
        Some(slot.frame)
    }

    /// Whether a page that has no slot is zeros, and nothing but a frame is needed to make it.
    fn makes_zeros(&self) -> bool {
        self.is_internal() && self.shadow.is_none() && self.copy.is_none()
    }
}

impl<M: Machine> VmObject<M> {
    /// Lends the frame of the page at byte `offset` to `with`, and says how many bytes from
    /// `offset` on belong to the object. `None`: it cannot be had without waiting, or the object is
    /// locked, be it by the caller; nothing has been begun. A page of zeros that is not there is
    /// made for a write only. `with` runs under the object's lock: it is short, and takes no lock
    /// of memory.
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
}
