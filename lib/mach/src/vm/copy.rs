//! Copy-on-write by shadow objects: making copies, and taking chains apart when they are no longer
//! needed.
//!
//! - *Symmetric*: both sides keep the same object and mark their entries `needs_copy`; the side
//!   that writes first puts a shadow object over it. The object below never changes again.
//! - *Delayed*: the copy is a new object over the original, which goes on changing and first gives
//!   each page that is about to change to its newest copy. It is used for objects that others write
//!   to as well.
//! - *Collapse*: an object referenced only by the one above it is merged into that. *Bypass*: an
//!   object all of whose pages are hidden by the one above is left out of that one's chain.

use alloc::sync::{Arc, Weak};

use macadamia_sync::OwnedSpinGuard;

use super::Vm;
use super::object::{Backing, ObjectState, Shadow, VmObject};
use super::page_index::SlotFlags;
use crate::KernResult;
use crate::machine::{Frame, Machine, PAGE_SHIFT, Protection};

/// How many pages one step of a collapse moves, since it holds spin locks. The next fault continues
/// the collapse.
const COLLAPSE_STEP: usize = 256;

/// A new object over `length` pages of `object` from page `offset` on.
pub(super) fn shadow<M: Machine>(
    vm: &Arc<Vm<M>>,
    object: Arc<VmObject<M>>,
    offset: u64,
    length: u64,
) -> KernResult<Arc<VmObject<M>>> {
    let shadow = VmObject::anonymous(vm)?;
    shadow.state.lock().shadow = Some(Shadow { object, offset, length });
    Ok(shadow)
}

/// A delayed copy of the whole of `object` as it is now. One that has not been used yet is shared,
/// so the caller's entry needs a copy itself before it writes.
pub(super) fn copy_delayed<M: Machine>(
    vm: &Arc<Vm<M>>,
    object: &Arc<VmObject<M>>,
) -> KernResult<Arc<VmObject<M>>> {
    let mut new = None;
    loop {
        let existing = object.state.lock().copy.as_ref().and_then(Weak::upgrade);
        let is_unused = |copy: &Arc<VmObject<M>>| {
            let state = copy.state.lock();
            state.pages.len() == 0 && matches!(state.backing, Backing::Anonymous)
        };
        if new.is_none() && !existing.as_ref().is_some_and(is_unused) {
            let copy = shadow(vm, object.clone(), 0, u64::MAX)?;
            copy.state.lock().is_copy = true;
            new = Some(copy);
        }
        // The copy is locked first, since it is above its original. The original may have got
        // another copy before its own lock was taken.
        let mut copy_state = existing.as_ref().map(|copy| copy.state.lock());
        let mut state = object.state.lock();
        let current = state.copy.as_ref().map_or(core::ptr::null(), Weak::as_ptr);
        if let Some(existing) = &existing {
            if current != Arc::as_ptr(existing) {
                continue;
            }
        } else if state.copy.as_ref().is_some_and(|copy| copy.strong_count() > 0) {
            continue;
        }
        if let Some(copy) = new.take() {
            // The older copy sees the object as it was before, through the newer copy, which is
            // given the pages that change.
            if let Some(shadow) = copy_state.as_mut().and_then(|state| state.shadow.as_mut()) {
                shadow.object = copy.clone();
            }
            state.copy = Some(Arc::downgrade(&copy));
            protect(vm, &mut state);
            return Ok(copy);
        }
        if let (Some(existing), Some(copy_state)) = (&existing, &copy_state)
            && copy_state.pages.len() == 0
        {
            return Ok(existing.clone());
        }
    }
}

/// Removes write access to the object's pages from every mapping.
fn protect<M: Machine>(vm: &Arc<Vm<M>>, state: &mut ObjectState<M>) {
    let mut frames = [Frame(0); 64];
    let mut count = 0;
    let mut at = 0;
    while let Some((index, slot)) = state.pages.next(at) {
        at = index + 1;
        if slot.has(SlotFlags::WRITABLE) {
            if let Some(slot) = state.pages.get_mut(index) {
                slot.flags.remove(SlotFlags::WRITABLE);
            }
            frames[count] = slot.frame;
            count += 1;
        }
        if count == frames.len() {
            vm.machine().frames_protect(&frames, Protection::ALL - Protection::WRITE);
            count = 0;
        }
    }
    if count > 0 {
        vm.machine().frames_protect(&frames[..count], Protection::ALL - Protection::WRITE);
    }
}

/// Merges objects below `object`, whose locked state is `top`, into it as long as nothing else
/// refers to them.
pub(super) fn collapse<M: Machine>(vm: &Arc<Vm<M>>, object: &Arc<VmObject<M>>, top: &mut ObjectState<M>) {
    while let Some(shadow) = &top.shadow
        && Arc::strong_count(&shadow.object) == 1
    {
        let below = OwnedSpinGuard::lock(shadow.object.clone(), |object| &object.state);
        if !merge(vm, object, top, below) {
            return;
        }
    }
}

/// Does one step of a collapse. Returns true if the object below is gone.
fn merge<M: Machine>(
    vm: &Arc<Vm<M>>,
    object: &Arc<VmObject<M>>,
    top: &mut ObjectState<M>,
    mut below: OwnedSpinGuard<VmObject<M>, ObjectState<M>>,
) -> bool {
    let Some(Shadow { offset, length, .. }) = top.shadow else { return false };
    // If the upper object has no pager, it gets that of the object below, and pages that are in
    // swap space belong to it from now on, at the same offsets. Until all pages have been moved,
    // both objects refer to the pager. Otherwise the pager of the upper object takes them over.
    let (mut adopted, mut taken_from) = (None, None);
    match (&below.backing, &top.backing) {
        (Backing::Anonymous, Backing::Anonymous | Backing::Swap(..)) => {}
        (Backing::Swap(pager, at), Backing::Anonymous) => {
            adopted = Some((pager.clone(), at + (offset << PAGE_SHIFT)));
        }
        (Backing::Swap(pager, at), Backing::Swap(ours, our_at)) => {
            if !Arc::ptr_eq(pager, ours) {
                taken_from = Some((pager.clone(), *at));
            } else if *our_at != at + (offset << PAGE_SHIFT) {
                return false;
            }
        }
        _ => return false,
    }
    let other_copy = below
        .copy
        .as_ref()
        .is_some_and(|copy| copy.strong_count() > 0 && copy.as_ptr() != Arc::as_ptr(object));
    if top.paging > 0 || below.paging > 0 || below.is_copy || other_copy {
        return false;
    }
    if let Some((pager, at)) = adopted {
        pager.moved(Arc::downgrade(object), at);
        top.backing = Backing::Swap(pager, at);
    }
    let machine = vm.machine();
    for _ in 0..COLLAPSE_STEP {
        let Some((index, slot)) = below.pages.next(0) else { break };
        let over = index.checked_sub(offset);
        let hidden = over.and_then(|place| top.pages.get(place));
        let place = over.filter(|&place| place < length && hidden.is_none());
        if let Some(place) = place {
            if top.pages.insert(machine, place, slot).is_err() {
                return false;
            }
            if let (Some((pager, at)), Backing::Swap(ours, our_at)) = (&taken_from, &top.backing)
                && slot.is_swapped()
            {
                let (from, to) = (at + (index << PAGE_SHIFT), our_at + (place << PAGE_SHIFT));
                if !ours.take_over(&**pager, from, to) {
                    top.pages.remove(machine, place);
                    return false;
                }
            }
            if slot.is_resident() {
                vm.queues.lock().give(slot.frame, Arc::downgrade(object), object.kind(), place);
            }
        } else {
            // If both objects have one pager, it has one page at this offset: that of the upper
            // object, if it has one there.
            let is_ours = taken_from.is_none() && hidden.is_some_and(|slot| slot.is_swapped());
            if slot.is_swapped() && !is_ours {
                below.forget_swapped(index);
            }
            match slot.is_resident() {
                true => vm.free_frame(slot.frame, slot.wired > 0),
                false => vm.count_paged_out(-1),
            }
        }
        below.pages.remove(machine, index);
    }
    if below.pages.len() > 0 {
        return false;
    }
    let next = below.shadow.take().map(|next| Shadow {
        object: next.object,
        offset: next.offset + offset,
        length: length.min(next.length.saturating_sub(offset)),
    });
    let gone = core::mem::replace(&mut top.shadow, next);
    // The lock is released before the last reference to the object is dropped.
    drop(below);
    drop(gone);
    true
}

/// Leaves the object below out of the chain if the top object hides every page that it would see
/// there.
pub(super) fn bypass<M: Machine>(top: &mut ObjectState<M>) {
    let Some(Shadow { object, offset, length }) = &top.shadow else { return };
    let (offset, length) = (*offset, *length);
    let below = OwnedSpinGuard::lock(object.clone(), |object| &object.state);
    let hides_all = || {
        let end = offset.saturating_add(length);
        below.pages.range(offset, end).all(|(index, _)| top.pages.get(index - offset).is_some())
    };
    // A copy object stays, because pages that its original gives it must be seen. An object that
    // other maps write to stays as well.
    let may_go = below.is_internal()
        && !below.is_copy
        && !below.shared
        && below.paging == 0
        && below.pages.len() <= top.pages.len();
    if !may_go || !hides_all() {
        return;
    }
    let next = below.shadow.as_ref().map(|next| Shadow {
        object: next.object.clone(),
        offset: next.offset + offset,
        length: length.min(next.length.saturating_sub(offset)),
    });
    let gone = core::mem::replace(&mut top.shadow, next);
    drop(below);
    drop(gone);
}
