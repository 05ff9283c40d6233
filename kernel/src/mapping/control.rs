//! MapControl (K8): a space's owner arranges its memory, without the space's cooperation.
use core::pin::Pin;

use x2::extension::{MapAnswer, MapItem, MapOperation};
use x2::{ErrorCode, Fpage, Region, Rights};

use super::cursor::{Cursor, Progress};
use super::map::{self, Kind, Transfer};
use super::space::SpaceMemory;
use super::spare;
use super::unmap::{self, Revocation, Seen};
use super::walk::Revoke;
use crate::arch;
use crate::arch::page_entry::page_bits;
use crate::memory::VirtAddr;

/// log2 of the largest page that an item can name: 1 GiB.
const LARGEST_ITEM: u32 = 30;

/// A checked range of pages.
struct Run {
    start: u64,
    /// Offset of the range's last byte.
    last: u64,
    page_bits: u32,
}

/// Carries out one item of a MapControl batch by `owner` on `space`, which it owns, and returns the
/// item's answer word (reference, "MapControl"). The caller holds [`super::lock()`]. `physical`:
/// the caller may see physical addresses. Preemption point.
///
/// The space must have been declared owned ([`SpaceMemory::set_owned`]), or be the caller's own. In
/// the caller's own space nothing can be mapped; the other operations concern what any space has
/// derived from its pages. These pages themselves stay, and the caller's use of them does not
/// count. Referenced and dirty are kept per page of the space, apart from what the owner sees by
/// Unmap of its own pages.
///
/// Errors: invalid parameter (before any change); no memory (what is mapped so far stays).
pub fn control(
    cursor: Pin<&mut Cursor>,
    owner: SpaceMemory,
    space: SpaceMemory,
    item: &MapItem,
    physical: bool,
) -> Progress<Result<u64, ErrorCode>> {
    let cursor = cursor.project();
    if cursor.finish_left_over() == Progress::Preempted {
        return Progress::Preempted;
    }
    let target = Fpage::from_raw(item.target);
    let Some(run) = check(space, target, item) else {
        return cursor.finish(Err(ErrorCode::InvalidParameter));
    };
    match revocation(item, owner == space) {
        Some(what) => revoke_run(cursor, space, &run, what, physical),
        None if owner == space => cursor.finish(Err(ErrorCode::InvalidParameter)),
        None => map_run(cursor, owner, space, &run, item.source, target.rights()),
    }
}

/// The revocation that an item asks for, on the caller's `own` space or on another. `None`: the
/// item maps.
#[inline]
fn revocation(item: &MapItem, own: bool) -> Option<Revoke> {
    // An item on the caller's own space concerns what is derived from its pages; these stay.
    let (flush, own_use) = (!own, !own);
    let mut forget = Rights::NONE;
    if item.control & MapItem::CLEAR_REFERENCED != 0 {
        forget = forget.or(Rights::READ);
    }
    if item.control & MapItem::CLEAR_DIRTY != 0 {
        forget = forget.or(Rights::WRITE);
    }
    match item.operation() {
        MapOperation::Map => None,
        MapOperation::Query => Some(Revoke { rights: Rights::NONE, flush: false, forget, own_use }),
        MapOperation::Protect => {
            let rights = Rights::ALL.without(Fpage::from_raw(item.target).rights());
            Some(Revoke { rights, flush, forget, own_use })
        }
        MapOperation::Unmap => Some(Revoke { flush, own_use, ..Revoke::ALL }),
    }
}

/// The most frequent items of MapControl, on a `space` that `owner` owns: one small page of
/// `owner`'s comes to an empty place, or from one there, from which nothing is derived, rights are
/// revoked. Returns the answer word; with anything else, also what is wrong, `None`, and nothing is
/// done.
///
/// Errors: no memory.
#[inline]
pub fn try_control_page(
    owner: SpaceMemory,
    space: SpaceMemory,
    item: &MapItem,
) -> Option<Result<u64, ErrorCode>> {
    const SMALL: u32 = page_bits(1);
    let target = Fpage::from_raw(item.target);
    if target.size_field() != SMALL || !item.is_well_formed() || item.count() != 1 || owner == space {
        return None;
    }
    let base = VirtAddr::new(item.target).align_down(SMALL);
    if let Some(what) = revocation(item, false) {
        return unmap::plain_page(space, base, what).map(|seen| Ok(answer(seen, 0)));
    }
    if !VirtAddr::new(item.source).is_aligned(SMALL) {
        return None;
    }
    let map = || map::plain_page(owner, space, VirtAddr::new(item.source), base, target.rights());
    let mut result = map();
    if let Some(Err(_)) = result
        && spare::give_back()
    {
        result = map();
    }
    result.map(|result| result.map(|_| 1 << 32).map_err(|_| ErrorCode::NoMemory))
}

/// The run that an item names, if it lies in the user area and meets no KIP or UTCB area, and the
/// item is well formed.
fn check(space: SpaceMemory, target: Fpage, item: &MapItem) -> Option<Run> {
    let Region { base, size_log2 } = target.region()?;
    if !item.is_well_formed() || size_log2 > LARGEST_ITEM {
        return None;
    }
    let is_map = item.operation() == MapOperation::Map;
    if is_map && (target.rights().is_none() || item.source & ((1 << 12) - 1) != 0) {
        return None;
    }
    let size = u64::from(item.count()) << size_log2;
    let end = base.checked_add(size)?;
    if end > arch::USER_END || (is_map && item.source.checked_add(size)? > arch::USER_END) {
        return None;
    }
    if space.areas().any(|area| area.base < end && base <= area.last()) {
        return None;
    }
    Some(Run { start: base, last: size - 1, page_bits: size_log2 })
}

fn map_run(
    cursor: &mut Cursor,
    owner: SpaceMemory,
    space: SpaceMemory,
    run: &Run,
    source: u64,
    rights: Rights,
) -> Progress<Result<u64, ErrorCode>> {
    let Run { start: target, last, page_bits } = *run;
    let transfer = Transfer { from: owner, to: space, source, target, last, rights, kind: Kind::Replace };
    match transfer.run(cursor) {
        Progress::Preempted => Progress::Preempted,
        Progress::Done(Ok(done)) => Progress::Done(Ok(done.bytes >> page_bits << 32)),
        Progress::Done(Err(_)) => Progress::Done(Err(ErrorCode::NoMemory)),
    }
}

fn revoke_run(
    cursor: &mut Cursor,
    space: SpaceMemory,
    run: &Run,
    what: Revoke,
    physical: bool,
) -> Progress<Result<u64, ErrorCode>> {
    let one_page = run.last >> run.page_bits == 0;
    if physical && one_page && !cursor.is_active() {
        let translation = space.lookup(VirtAddr::new(run.start));
        cursor.value = translation.map_or(0, |translation| translation.address.value());
    }
    let address = cursor.value;
    let (start, last) = (run.start, run.start + run.last);
    match (Revocation { space, start, last, what, everything: false }).run(cursor) {
        Progress::Preempted => Progress::Preempted,
        Progress::Done(seen) => Progress::Done(Ok(answer(seen, address))),
    }
}

/// The answer word of an item that revokes; `address`: where the first page is, if the caller may
/// see that.
#[inline]
fn answer(seen: Seen, address: u64) -> u64 {
    let mut answer = address | seen.held.bits();
    for (set, bit) in [
        (!seen.held.is_none(), MapAnswer::MAPPED),
        (seen.status.contains(Rights::READ), MapAnswer::REFERENCED),
        (seen.status.contains(Rights::WRITE), MapAnswer::DIRTY),
    ] {
        answer |= if set { bit } else { 0 };
    }
    answer
}
