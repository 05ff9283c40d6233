//! Finds the frame for an access to a page of an object: walks the chain of shadow objects, and
//! copies and clears pages as needed. All functions are synchronous; if something must be waited
//! for, they return [`Blocked`].

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;

use macadamia_sync::{OwnedSpinGuard, SpinGuard};

use super::object::{Backing, ObjectState, VmObject};
use super::page_index::{PageIndex, Slot, SlotFlags};
use super::pager::{LONGEST_RUN, PageIn};
use super::{Vm, control, copy, swap};
use crate::machine::{Frame, Machine, PAGE_SHIFT, PhysicalPage, Protection};
use crate::{KernError, KernResult};

/// The page that the fault needs, as the map's entry describes it.
pub(super) struct Target<'a, M: Machine> {
    pub(super) object: &'a Arc<VmObject<M>>,
    pub(super) index: u64,
    /// The rights that the map's entry allows.
    pub(super) protection: Protection,
    /// The object is shared with a copy, and must not be written. (A write fault first puts a
    /// shadow over it.)
    pub(super) needs_copy: bool,
    /// The entry is wired: when a page replaces another one, it is wired as often.
    pub(super) wired: bool,
    /// How many pages are requested from a pager at a time.
    pub(super) cluster: u64,
    /// The large page around this one lies in the entry, aligned in the object as it is in the
    /// address space.
    pub(super) large: bool,
    /// The page is for an address space, not for the server alone: it may be mapped.
    pub(super) maps: bool,
    /// The address space is one that page-out waits for. If no memory is free, it may use the
    /// reserve.
    pub(super) privileged: bool,
}

impl<'a, M: Machine> Target<'a, M> {
    /// A page of an object that is accessed without a map.
    pub(super) fn of_object(object: &'a Arc<VmObject<M>>, index: u64) -> Self {
        let cluster = object.vm().settings.cluster;
        Self {
            object,
            index,
            protection: Protection::ALL,
            needs_copy: false,
            wired: false,
            cluster,
            large: false,
            maps: false,
            privileged: false,
        }
    }
}

/// A page that may be used while the caller's closure runs, since its object is locked.
pub(super) struct Found<'a, M: Machine> {
    pub(super) page: PhysicalPage,
    /// The large page around the page, and the frames around its frame, may be mapped as one.
    pub(super) large: bool,
    /// The rights with which the page may be mapped now.
    pub(super) rights: Protection,
    /// The page has replaced another page that may be mapped at the address.
    pub(super) replaces: bool,
    /// The object that has the neighbouring pages, if these may be mapped, too.
    pub(super) around: Option<Around<'a, M>>,
}

/// The object in which a page was found, for mapping its neighbours.
pub(super) struct Around<'a, M: Machine> {
    state: &'a mut ObjectState<M>,
    index: u64,
    /// Set if the page was found below the top object: the top object's pages, and the number of
    /// the found page among them. A page of the top object hides that of the object below.
    hidden_by: Option<(&'a PageIndex, u64)>,
    /// The rights with which a clean neighbour, and a dirty one, may be mapped. A dirty one whose
    /// next write is to be noted counts as clean.
    clean: Protection,
    dirty: Protection,
}

impl<M: Machine> Around<'_, M> {
    /// The frame and rights of the page `distance` pages away from the one found, if it can be
    /// mapped now.
    pub(super) fn neighbour(&mut self, distance: i64) -> Option<(Frame, Protection)> {
        let index = self.index.checked_add_signed(distance)?;
        if index >= self.state.limit() {
            return None;
        }
        if let Some((pages, at)) = self.hidden_by
            && at.checked_add_signed(distance).is_none_or(|at| pages.get(at).is_some())
        {
            return None;
        }
        let slot = self.state.pages.get_mut(index)?;
        if slot.has(SlotFlags::BUSY | SlotFlags::PAGED_OUT) {
            return None;
        }
        // A page that is mapped to be written stays so: an access to both pages needs both.
        let noted = self.state.mapped_writes.is_none() || slot.has(SlotFlags::WRITABLE);
        let may_write = noted && slot.has(SlotFlags::DIRTY);
        let rights = if may_write { self.dirty } else { self.clean } - slot.prohibited();
        if rights.is_empty() {
            return None;
        }
        slot.flags |= mapped_with(rights);
        Some((slot.frame, rights))
    }
}

/// What a fault must wait for.
pub(super) enum Pause<M: Machine> {
    /// The end of a page-in that another fault has begun.
    Busy(Arc<VmObject<M>>, u64),
    /// The pager's permission for an access to a page.
    Locked(Arc<VmObject<M>>, u64, Protection),
    /// A page-in that this fault has to begin. It is boxed so that the result of a step is small.
    PageIn(Box<PageIn<M>>),
    /// A free frame; with `true`, one of the reserve may be used.
    Memory(bool),
    /// A lock that may not be waited for, because of the lock order.
    Contended,
}

/// Why a step did not end in success.
pub(super) enum Blocked<M: Machine> {
    Error(KernError),
    Wait(Pause<M>),
}

impl<M: Machine> From<KernError> for Blocked<M> {
    fn from(error: KernError) -> Self {
        Self::Error(error)
    }
}

/// The outcome of a synchronous step.
pub(super) type Step<M, T> = Result<T, Blocked<M>>;

impl<M: Machine> Blocked<M> {
    /// Whether there is no frame.
    pub(super) fn is_shortage(&self) -> bool {
        matches!(self, Self::Wait(Pause::Memory(_)))
    }

    /// Waits until another attempt is worthwhile. No lock may be held.
    pub(super) async fn wait(self, vm: &Arc<Vm<M>>) -> KernResult {
        match self {
            Self::Error(error) => Err(error),
            Self::Wait(Pause::PageIn(page_in)) => vm.beside_laundry(page_in.run()).await,
            Self::Wait(Pause::Memory(privileged)) => vm.wait_for_memory(privileged).await,
            Self::Wait(Pause::Busy(object, index)) => {
                let ready = || {
                    let slot = object.state.lock().pages.get(index);
                    slot.is_none_or(|slot| !slot.has(SlotFlags::BUSY)).then_some(())
                };
                vm.beside_laundry(object.changed.wait_until(ready)).await;
                Ok(())
            }
            Self::Wait(Pause::Locked(object, index, access)) => {
                vm.beside_laundry(control::unlock(object, index, access)).await
            }
            Self::Wait(Pause::Contended) => {
                core::hint::spin_loop();
                Ok(())
            }
        }
    }
}

/// The flags of a slot whose frame may be mapped from now on.
fn mapped_with(rights: Protection) -> SlotFlags {
    if rights.contains(Protection::WRITE) {
        SlotFlags::MAPPED | SlotFlags::WRITABLE
    } else {
        SlotFlags::MAPPED
    }
}

/// Finds or makes the page for an access that the entry allows, and hands it to `use_page`.
///
/// With write access the page is one of the object itself, and the object's delayed copy has been
/// given the old one.
pub(super) fn resolve<M: Machine, R>(
    vm: &Arc<Vm<M>>,
    target: &Target<'_, M>,
    access: Protection,
    use_page: impl FnOnce(Found<'_, M>) -> KernResult<R>,
) -> Step<M, R> {
    debug_assert!(
        !(access.contains(Protection::WRITE) && target.needs_copy),
        "a write to an object that needs a copy"
    );
    let mut top = target.object.state.lock();
    if let Some(found) = fresh_page(vm, target, &mut top)? {
        return Ok(use_page(found)?);
    }
    resolve_other(vm, target, access, top, use_page)
}

/// Finds or makes pages like [`resolve`], in the cases that [`fresh_page`] does not handle. The
/// object is locked.
#[inline(never)]
pub(super) fn resolve_other<M: Machine, R>(
    vm: &Arc<Vm<M>>,
    target: &Target<'_, M>,
    access: Protection,
    mut top: SpinGuard<'_, ObjectState<M>>,
    use_page: impl FnOnce(Found<'_, M>) -> KernResult<R>,
) -> Step<M, R> {
    let write = access.contains(Protection::WRITE);
    if let Backing::Device(address, caching) = top.backing {
        if target.index >= top.limit() {
            return Err(KernError::MemoryFailure.into());
        }
        let page = PhysicalPage::Device(address + (target.index << PAGE_SHIFT), caching);
        let pages = vm.large_pages();
        let large = target.large
            && (address >> PAGE_SHIFT).is_multiple_of(pages)
            && (target.index & !(pages - 1)) + pages <= top.limit();
        return Ok(use_page(Found {
            page,
            large,
            rights: target.protection,
            replaces: false,
            around: None,
        })?);
    }
    if top.shadow.is_some() {
        copy::collapse(vm, target.object, &mut top);
    }
    let want = Want { access, cluster: target.cluster, privileged: target.privileged };
    if resident(vm, target.object, &mut top, target.index, want)?.is_some() {
        return use_top(vm, target, top, write, Origin::Resident, use_page);
    }

    // The objects below: each is locked before the one above it is unlocked, so that no page moves
    // past this walk to the object above.
    let mut below: Option<OwnedSpinGuard<VmObject<M>, ObjectState<M>>> = None;
    let mut index = target.index;
    let mut between_is_empty = true;
    // If the copy is written, the page itself is only read.
    let want = if write { Want { access: Protection::READ, ..want } } else { want };
    loop {
        let state = below.as_deref().unwrap_or(&top);
        let Some(shadow) = state.shadow.as_ref().filter(|shadow| index < shadow.length) else { break };
        between_is_empty &= state.pages.len() == 0 || below.is_none();
        index += shadow.offset;
        let next = OwnedSpinGuard::lock(shadow.object.clone(), |object| &object.state);
        let state = below.insert(next);
        let object = state.owner().clone();
        let Some(slot) = resident(vm, &object, state, index, want)? else { continue };
        if !write {
            let readable = target.protection - Protection::WRITE;
            let rights = readable - slot.prohibited();
            if let Some(slot) = state.pages.get_mut(index) {
                slot.flags |= SlotFlags::REFERENCED;
                if target.maps {
                    slot.flags |= SlotFlags::MAPPED;
                }
            }
            let hidden_by = Some((&top.pages, target.index));
            let around = Around { state, index, hidden_by, clean: readable, dirty: readable };
            let page = PhysicalPage::Frame(slot.frame);
            let around = between_is_empty.then_some(around);
            return Ok(use_page(Found { page, large: false, rights, replaces: false, around })?);
        }
        let frame = new_page(vm, target, &mut top)?;
        vm.machine().copy_frame(slot.frame, frame);
        if top.shared && slot.has(SlotFlags::MAPPED) {
            // Other maps that write to this object may still have the old page.
            vm.machine().frames_protect(&[slot.frame], Protection::NONE);
        }
        if target.wired {
            unwire(vm, state, index);
        }
        // If this object has fewer pages than the object directly below it, it cannot hide all of
        // them. For an object further down, the pages must be compared one by one.
        let is_next = top.shadow.as_ref().is_some_and(|shadow| Arc::ptr_eq(&shadow.object, &object));
        let may_hide = !is_next || state.pages.len() <= top.pages.len();
        drop(below);
        if may_hide {
            copy::bypass(&mut top);
        }
        return use_top(vm, target, top, write, Origin::Copied, use_page);
    }

    drop(below);
    // Where writes are noted, no page is mapped to be written before it is.
    let may_be_large = target.large && (write || top.mapped_writes.is_none());
    if may_be_large && new_large_page(vm, target, &mut top) {
        return use_top(vm, target, top, write, Origin::ClearedLarge, use_page);
    }
    let frame = new_page(vm, target, &mut top)?;
    vm.machine().zero_frame(frame);
    use_top(vm, target, top, write, Origin::Cleared, use_page)
}

/// The most frequent fault: the page is of an anonymous object and not there yet, and the object
/// has no shadow, copy or pager that would have a say in it. If the target is of this kind, its
/// page is allocated, cleared and returned. The object is locked.
#[inline(always)]
pub(super) fn fresh_page<M: Machine>(
    vm: &Arc<Vm<M>>,
    target: &Target<'_, M>,
    top: &mut ObjectState<M>,
) -> Step<M, Option<Found<'static, M>>> {
    let alone = matches!(top.backing, Backing::Anonymous)
        && top.size == u64::MAX
        && top.shadow.is_none()
        && top.copy.is_none()
        && !target.large
        && !target.wired;
    if !alone {
        return Ok(None);
    }
    let Some(vacancy) = top.pages.vacancy(target.index) else { return Ok(None) };
    let frame = frame_for(vm, target.object, target.index, target.privileged || top.privileged)?;
    let rights = if target.needs_copy { target.protection - Protection::WRITE } else { target.protection };
    let mapped = if target.maps { mapped_with(rights) } else { SlotFlags::empty() };
    vacancy.fill(Slot::new(frame, SlotFlags::DIRTY | SlotFlags::REFERENCED | mapped));
    vm.machine().zero_frame(frame);
    let page = PhysicalPage::Frame(frame);
    Ok(Some(Found { page, large: false, rights, replaces: false, around: None }))
}

/// The purpose for which a page is looked up.
#[derive(Clone, Copy)]
pub(super) struct Want {
    pub(super) access: Protection,
    /// How many pages are requested from a pager at a time.
    pub(super) cluster: u64,
    pub(super) privileged: bool,
}

/// The slot of a page if it can be used now. `None` if the object does not have the page, which may
/// be in its shadow.
#[inline]
fn resident<M: Machine>(
    vm: &Arc<Vm<M>>,
    object: &Arc<VmObject<M>>,
    state: &mut ObjectState<M>,
    index: u64,
    want: Want,
) -> Step<M, Option<Slot>> {
    if index >= state.limit() {
        return Err(KernError::MemoryFailure.into());
    }
    match state.pages.get(index) {
        Some(slot) if slot.has(SlotFlags::BUSY) => Err(Blocked::Wait(Pause::Busy(object.clone(), index))),
        Some(slot) if slot.prohibited().intersects(want.access) => {
            Err(Blocked::Wait(Pause::Locked(object.clone(), index, want.access)))
        }
        Some(slot) if slot.is_resident() => Ok(Some(slot)),
        Some(_) => page_in(vm, object, state, index, want),
        None if matches!(state.backing, Backing::Pager(_)) => page_in(vm, object, state, index, want),
        None => Ok(None),
    }
}

/// Begins a page-in of `index`, and of pages after it that the pager has as well: if a device or a
/// program fills them, of more and more pages while the object is read from its start to its end.
pub(super) fn page_in<M: Machine>(
    vm: &Arc<Vm<M>>,
    object: &Arc<VmObject<M>>,
    state: &mut ObjectState<M>,
    index: u64,
    want: Want,
) -> Step<M, Option<Slot>> {
    let Some(pager) = state.pager() else { return Err(KernError::MemoryFailure.into()) };
    let was_paged_out = state.is_internal();
    let privileged = want.privileged || state.privileged;
    let in_parts = pager.0.answers_in_parts();
    let cluster = match in_parts || pager.0.fills_by_device() {
        true => state.last_page_in.pages_from(index, want.cluster),
        false => want.cluster,
    };
    let (most, longest) = (pager.0.most_pages(), if in_parts { LONGEST_RUN } else { u64::MAX });
    let cluster = cluster.min(most).min(longest);
    let end = index.saturating_add(cluster.max(1)).min(state.limit());
    let mut frames = Vec::new();
    if frames.try_reserve_exact((end - index) as usize).is_err() {
        return Err(KernError::ResourceShortage.into());
    }
    for at in index..end {
        let wanted = match state.pages.get(at) {
            Some(slot) => was_paged_out && !slot.is_resident(),
            None => !was_paged_out,
        };
        if !wanted {
            break;
        }
        let frame = match vm.allocate_frame(object, at) {
            Some(frame) => frame,
            None if privileged && at == index => no_frame(vm, object, at, true)?,
            None => break,
        };
        let busy = Slot::new(frame, SlotFlags::BUSY);
        match state.pages.get_mut(at) {
            Some(slot) => *slot = busy,
            None => {
                if let Err(error) = state.pages.insert(vm.machine(), at, busy) {
                    vm.free_frame(frame, false);
                    if at == index {
                        return Err(error.into());
                    }
                    break;
                }
            }
        }
        frames.push(frame);
    }
    if frames.is_empty() {
        return Err(Blocked::Wait(Pause::Memory(privileged)));
    }
    if was_paged_out {
        vm.count_paged_out(-(frames.len() as i64));
    }
    state.paging += 1;
    state.last_page_in.begins(index, frames.len() as u64);
    Err(Blocked::Wait(Pause::PageIn(Box::new(PageIn::new(
        vm.clone(),
        object.clone(),
        pager,
        index,
        frames,
        (was_paged_out, want.access),
        most > 0,
    )))))
}

/// A frame for page `index` of `object`. It comes from the reserve if there is no other and
/// page-out waits for the object.
#[inline(always)]
fn frame_for<M: Machine>(
    vm: &Arc<Vm<M>>,
    object: &Arc<VmObject<M>>,
    index: u64,
    privileged: bool,
) -> Step<M, Frame> {
    match vm.allocate_frame(object, index) {
        Some(frame) => Ok(frame),
        None => no_frame(vm, object, index, privileged),
    }
}

#[cold]
fn no_frame<M: Machine>(
    vm: &Arc<Vm<M>>,
    object: &Arc<VmObject<M>>,
    index: u64,
    privileged: bool,
) -> Step<M, Frame> {
    let reserved = if privileged { vm.allocate_reserved(object, index) } else { None };
    reserved.ok_or(Blocked::Wait(Pause::Memory(privileged)))
}

/// Makes a new page at the target's place in the top object. Its contents are undefined, and it is
/// dirty.
pub(super) fn new_page<M: Machine>(
    vm: &Arc<Vm<M>>,
    target: &Target<'_, M>,
    top: &mut ObjectState<M>,
) -> Step<M, Frame> {
    let frame = frame_for(vm, target.object, target.index, target.privileged || top.privileged)?;
    let mut slot = Slot::new(frame, SlotFlags::DIRTY);
    slot.wired = u16::from(target.wired);
    if let Err(error) = top.pages.insert(vm.machine(), target.index, slot) {
        vm.free_frame(frame, false);
        return Err(error.into());
    }
    if target.wired {
        vm.queues.lock().wire(frame);
    }
    Ok(frame)
}

/// Makes all pages of the large page around the target, cleared, in one run of frames, if none of
/// them exists and there is such a run. Otherwise returns false, and nothing has changed.
#[cold]
fn new_large_page<M: Machine>(vm: &Arc<Vm<M>>, target: &Target<'_, M>, top: &mut ObjectState<M>) -> bool {
    let machine = vm.machine();
    let pages = vm.large_pages();
    let first = target.index & !(pages - 1);
    let end = first + pages;
    let fits = top.shadow.is_none()
        && top.copy.is_none()
        && !target.needs_copy
        && !target.wired
        && target.protection.contains(Protection::WRITE)
        && top.pages.next(first).is_none_or(|(index, _)| index >= end);
    if !fits {
        return false;
    }
    let owner = Arc::downgrade(target.object);
    let run = vm.queues.lock().allocate_run(
        machine,
        &owner,
        target.object.kind(),
        first,
        vm.large_shift - PAGE_SHIFT,
    );
    let Some(run) = run else { return false };
    let flags = SlotFlags::DIRTY | SlotFlags::MAPPED | SlotFlags::WRITABLE;
    let frame = |index: u64| Frame(run.0 + (index - first) as u32);
    let inserted =
        (first..end).find(|&at| top.pages.insert(machine, at, Slot::new(frame(at), flags)).is_err());
    if let Some(failed) = inserted {
        (first..failed).for_each(|at| {
            top.pages.remove(machine, at);
        });
        (first..end).for_each(|at| vm.free_frame(frame(at), false));
        return false;
    }
    (first..end).for_each(|at| machine.zero_frame(frame(at)));
    true
}

/// Calls `with` for the object in the chain that has the page, with the page's number in it. `None`
/// if no object has it.
fn with_owner<M: Machine, R>(
    object: &Arc<VmObject<M>>,
    index: u64,
    with: impl FnOnce(&mut ObjectState<M>, u64) -> R,
) -> Option<R> {
    let mut index = index;
    let mut guard = OwnedSpinGuard::lock(object.clone(), |object| &object.state);
    loop {
        if guard.pages.get(index).is_some() {
            return Some(with(&mut guard, index));
        }
        let shadow = guard.shadow.as_ref().filter(|shadow| index < shadow.length)?;
        index += shadow.offset;
        guard = OwnedSpinGuard::lock(shadow.object.clone(), |object| &object.state);
    }
}

/// Wires the page that `object` shows at `index`. Returns false if the page is not in memory, or
/// belongs to an object below although it must be `object`'s own.
pub(super) fn wire<M: Machine>(vm: &Arc<Vm<M>>, object: &Arc<VmObject<M>>, index: u64, own: bool) -> bool {
    let wire = |state: &mut ObjectState<M>, index| match state.pages.get_mut(index) {
        Some(slot) if !slot.has(SlotFlags::BUSY | SlotFlags::PAGED_OUT) => {
            slot.wired += 1;
            if slot.wired == 1 {
                vm.queues.lock().wire(slot.frame);
            }
            true
        }
        _ => false,
    };
    if own { wire(&mut object.state.lock(), index) } else { with_owner(object, index, wire).unwrap_or(false) }
}

/// Ends one wiring of the page that `object` shows at `index`.
pub(super) fn end_wiring<M: Machine>(vm: &Arc<Vm<M>>, object: &Arc<VmObject<M>>, index: u64) {
    with_owner(object, index, |state, index| unwire(vm, state, index));
}

/// Ends one wiring of a resident page.
fn unwire<M: Machine>(vm: &Arc<Vm<M>>, state: &mut ObjectState<M>, index: u64) {
    if let Some(slot) = state.pages.get_mut(index)
        && slot.wired > 0
    {
        slot.wired -= 1;
        if slot.wired == 0 {
            vm.queues.lock().unwire(slot.frame);
        }
    }
}

/// How a page got into the top object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Resident,
    Cleared,
    /// The page was cleared together with all the others of its large page, in neighbouring frames.
    ClearedLarge,
    /// The page was copied from an object below, whose page may be mapped at the address.
    Copied,
}

/// Passes a resident page of the top object itself to the caller.
fn use_top<M: Machine, R>(
    vm: &Arc<Vm<M>>,
    target: &Target<'_, M>,
    mut top: SpinGuard<'_, ObjectState<M>>,
    write: bool,
    origin: Origin,
    use_page: impl FnOnce(Found<'_, M>) -> KernResult<R>,
) -> Step<M, R> {
    if write && top.copy.is_some() {
        push_to_copy(vm, &mut top, target.index)?;
    }
    let may_write = !target.needs_copy && (write || top.copy.is_none());
    let state = &mut *top;
    let Some(slot) = state.pages.get_mut(target.index) else { return Err(KernError::Failure.into()) };
    if write && !slot.has(SlotFlags::DIRTY) {
        let was_swapped = slot.is_swapped();
        slot.flags |= SlotFlags::DIRTY;
        if was_swapped {
            swap::forget(&state.backing, target.index);
        }
    }
    let clean = target.protection - Protection::WRITE;
    let dirty = if may_write { target.protection } else { clean };
    let mut noted = true;
    if let Some(writes) = &mut state.mapped_writes {
        // A page that is only read is not mapped to be written, unless it is already.
        noted = write || slot.has(SlotFlags::WRITABLE);
        if write && target.maps {
            writes.note(target.index, origin == Origin::ClearedLarge, || vm.machine().now());
        }
    }
    let rights = if noted && slot.has(SlotFlags::DIRTY) { dirty } else { clean } - slot.prohibited();
    slot.flags |= SlotFlags::REFERENCED;
    if target.maps {
        slot.flags |= mapped_with(rights);
    }
    let page = PhysicalPage::Frame(slot.frame);
    let around = (origin == Origin::Resident).then_some(Around {
        dirty: if state.copy.is_none() { dirty } else { clean },
        clean,
        index: target.index,
        hidden_by: None,
        state,
    });
    let large = origin == Origin::ClearedLarge;
    Ok(use_page(Found { page, large, rights, replaces: origin == Origin::Copied, around })?)
}

/// Prepares a change of a page that a delayed copy has not saved: gives the copy a page of its own,
/// and removes the original from every map that may show it through the copy.
pub(super) fn push_to_copy<M: Machine>(vm: &Arc<Vm<M>>, top: &mut ObjectState<M>, index: u64) -> Step<M, ()> {
    let Some(copy) = top.copy.as_ref().and_then(Weak::upgrade) else {
        top.copy = None;
        return Ok(());
    };
    // In the lock order the copy comes before its original, which is locked already: so the lock of
    // the copy is only tried.
    let Some(mut copy_state) = copy.state.try_lock() else { return Err(Blocked::Wait(Pause::Contended)) };
    let covered = copy_state.shadow.as_ref().is_some_and(|shadow| index < shadow.length);
    if !covered || copy_state.pages.get(index).is_some() {
        return Ok(());
    }
    let Some(slot) = top.pages.get_mut(index) else { return Ok(()) };
    let frame = frame_for(vm, &copy, index, top.privileged)?;
    vm.machine().copy_frame(slot.frame, frame);
    if let Err(error) = copy_state.pages.insert(vm.machine(), index, Slot::new(frame, SlotFlags::DIRTY)) {
        vm.free_frame(frame, false);
        return Err(error.into());
    }
    if slot.has(SlotFlags::MAPPED) {
        vm.machine().frames_protect(&[slot.frame], Protection::NONE);
    }
    slot.flags.remove(SlotFlags::MAPPED | SlotFlags::WRITABLE);
    Ok(())
}
