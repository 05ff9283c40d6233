//! What pages of anonymous objects have with the default pager.
//!
//! The pager of an object has the contents of a page exactly if the page is paged out, is being
//! paged in or paged out, or is in memory unchanged since it was paged in ([`Slot::is_swapped`]).
//! Whatever else happens to the page, the pager is told to forget it.

use alloc::sync::Arc;

use super::copy;
use super::fault::{self, Blocked, Want};
use super::object::{Backing, ObjectState, VmObject};
use super::page_index::{Slot, SlotFlags};
use crate::KernResult;
use crate::machine::{Machine, PAGE_SHIFT, Protection};

/// The pager of an object with this backing, if it has one of the default pager's, need not have
/// the page any more.
pub(super) fn forget<M: Machine>(backing: &Backing<M>, index: u64) {
    if let Backing::Swap(pager, at) = backing {
        pager.forget(at + (index << PAGE_SHIFT));
    }
}

impl<M: Machine> ObjectState<M> {
    /// The default pager need not have the page any more.
    pub(super) fn forget_swapped(&self, index: u64) {
        forget(&self.backing, index);
    }
}

impl<M: Machine> VmObject<M> {
    /// How many pages from `first` up to `end` only the default pager has, in this object or one
    /// below it. A page that both have may count twice, but the result is at most `end - first`.
    pub(crate) fn paged_out_in(self: &Arc<Self>, first: u64, end: u64) -> u64 {
        let (mut total, mut start) = (0, first);
        let mut next = Some(self.clone());
        while let Some(object) = next {
            let state = object.state.lock();
            if let Backing::Swap(..) = &state.backing {
                let pages = state.pages.range(start, start + (end - first));
                total += pages.filter(|(_, slot)| !slot.is_resident()).count() as u64;
            }
            next = state.shadow.as_ref().map(|shadow| {
                start += shadow.offset;
                shadow.object.clone()
            });
        }
        total.min(end - first)
    }

    /// Brings a page back from the default pager, which is told to forget it. Nothing happens if
    /// the object itself does not have the page. If the future is dropped before its end, nothing
    /// is lost.
    ///
    /// # Errors
    /// `ResourceShortage`: page-out finds no memory for it. The OOM killer is not asked.
    /// `MemoryError`: the default pager cannot read the page.
    pub async fn take_back(self: &Arc<Self>, index: u64) -> KernResult {
        let vm = self.vm();
        let want = Want { access: Protection::READ, cluster: vm.settings.cluster, privileged: false };
        loop {
            let blocked = {
                let state = &mut *self.state.lock();
                if state.shadow.is_some() {
                    // An object below may have the page, which this one gets, or which is freed.
                    copy::collapse(vm, self, state);
                }
                match state.pages.get(index) {
                    None => return Ok(()),
                    Some(slot) if slot.has(SlotFlags::BUSY | SlotFlags::CLEANING) => None,
                    Some(slot) if slot.is_resident() => {
                        if slot.is_swapped() && matches!(state.backing, Backing::Swap(..)) {
                            state.forget_swapped(index);
                            if let Some(slot) = state.pages.get_mut(index) {
                                slot.flags.insert(SlotFlags::DIRTY);
                            }
                        }
                        return Ok(());
                    }
                    // Others must find memory meanwhile.
                    Some(_) if vm.free_count() <= vm.settings.free_target / 2 => {
                        Some(Blocked::Wait(fault::Pause::Memory(false)))
                    }
                    Some(_) => fault::page_in(vm, self, state, index, want).err(),
                }
            };
            match blocked {
                Some(Blocked::Wait(fault::Pause::Memory(_))) => {
                    vm.wait_for_page(false, vm.settings.free_target / 2).await?;
                }
                Some(blocked) => blocked.wait(vm).await?,
                None => self.page_settles(index).await,
            }
        }
    }
}

impl Slot {
    /// Whether the default pager has the page of an anonymous object with such a pager, and no copy
    /// of it is being written.
    pub(super) fn is_swapped(&self) -> bool {
        !self.has(SlotFlags::DIRTY | SlotFlags::CLEANING)
    }
}
