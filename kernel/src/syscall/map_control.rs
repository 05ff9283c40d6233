//! MapControl(RDI space, RSI items, RDX number, R8 begin): an owner maps, protects, unmaps and
//! queries pages of its space in a batch, or what is derived from its own pages (K8). Result in
//! RAX, items done in R8.
//!
//! MapControl(RDI space, RSI target, RDX 2^63 + control, R8 source): the same with one item, in
//! registers. Result in RAX, the item's answer in R8.

use core::ptr::eq;

use x2::extension::{MAX_MAP_ITEMS, MapItem, ONE_MAP_ITEM};
use x2::{ErrorCode, Rights, ThreadId};

use super::{arguments, return_result};
use crate::arch;
use crate::mapping::{self, Progress};
use crate::scheduler::Next;
use crate::space::{Space, SpaceRef};
use crate::thread::table::threads;
use crate::thread::{Found, ThreadRef, Work, lifecycle, user_memory};
use crate::trace::{self, Event};

/// Bytes of an item in the caller's memory.
const ITEM: u64 = size_of::<MapItem>() as u64;
/// Offset of an item's answer word.
const ANSWER: u64 = 24;

/// A batch whose caller may make it, and whose items can be read and answered.
struct Request {
    own: SpaceRef,
    space: SpaceRef,
    items: u64,
    number: u64,
    begin: u64,
}

pub(super) fn system_call(current: ThreadRef) -> Next {
    if has_one_item(current) { one_item(current, None) } else { batch(current, None) }
}

/// Goes on with a call that gave way to an interrupt; a part of the present item is done if
/// `interrupted` names the space.
pub(super) fn resume_map_control(current: ThreadRef, interrupted: Option<SpaceRef>) -> Next {
    if has_one_item(current) { one_item(current, interrupted) } else { batch(current, interrupted) }
}

fn has_one_item(current: ThreadRef) -> bool {
    arguments::MapControlOfOne::of(current).control() & ONE_MAP_ITEM != 0
}

/// Applies one item of the current thread's to the space of `thread`, if that needs no preemption
/// point ([`mapping::try_control_page`]). Returns the answer, or that there is no memory for it.
/// `None`: nothing was done. Entry code tries this first.
#[inline]
pub fn try_one(current: ThreadRef, thread: ThreadId, item: &MapItem) -> Option<Result<u64, ErrorCode>> {
    // The space that the call names stays as long as the lock is held.
    let _alone = mapping::lock();
    let (own, space) = spaces(current, thread).ok()?;
    if own.ownership.sees_physical() {
        return None;
    }
    mapping::try_control_page(own.memory, space.memory, item)
}

/// Carries out the item in the registers, which stay as they are until it is done.
///
/// Preemption point, within the item.
fn one_item(current: ThreadRef, interrupted: Option<SpaceRef>) -> Next {
    let arguments = arguments::MapControlOfOne::of(current);
    let item = MapItem {
        target: arguments.target(),
        control: arguments.control() & !ONE_MAP_ITEM,
        source: arguments.source(),
        answer: 0,
    };
    trace::event(Event::MapControl, named(current).raw(), 1);
    let (own, space) = match decode_spaces(current) {
        Ok((own, space)) if interrupted.is_none_or(|before| eq(before, space)) => (own, space),
        decoded => {
            // The space was deleted meanwhile, or its owner changed.
            cancel(current);
            return end_call(current, 0, Err(decoded.err().unwrap_or(ErrorCode::InvalidSpace)));
        }
    };
    match perform(current, own, space, &item) {
        Progress::Done(Ok(answer)) => end_call(current, answer, Ok(())),
        Progress::Done(Err(error)) => end_call(current, 0, Err(error)),
        Progress::Preempted => {
            lifecycle::save_work(current, Work::MapControl(Some(space)));
            Next::Interrupted
        }
    }
}

/// Carries a batch on from item R8.
///
/// Preemption point: between items and within them.
fn batch(current: ThreadRef, interrupted: Option<SpaceRef>) -> Next {
    let request = match decode(current) {
        Ok(request) if interrupted.is_none_or(|space| eq(space, request.space)) => request,
        decoded => {
            // The space was deleted meanwhile, or its owner changed.
            cancel(current);
            let error = decoded.err().unwrap_or(ErrorCode::InvalidSpace);
            return end_call(current, arguments::MapControl::of(current).begin(), Err(error));
        }
    };
    trace::event(Event::MapControl, named(current).raw(), request.number - request.begin);
    let mut interrupted = interrupted;
    for index in request.begin..request.number {
        let item = match interrupted.take() {
            Some(_) => kept_item(current),
            None if index > request.begin && arch::interrupt_pending() => return pause(current, index, None),
            None => read_item(request.own, request.items + index * ITEM),
        };
        match perform(current, request.own, request.space, &item) {
            Progress::Done(Ok(answer)) => {
                let address = request.items + index * ITEM + ANSWER;
                user_memory::write_word(request.own, address, answer);
            }
            Progress::Done(Err(error)) => return end_call(current, index, Err(error)),
            Progress::Preempted => {
                keep_item(current, &item);
                return pause(current, index, Some(request.space));
            }
        }
    }
    end_call(current, request.number, Ok(()))
}

/// The caller's space, and the space that it names and may control.
fn decode_spaces(current: ThreadRef) -> Result<(SpaceRef, SpaceRef), ErrorCode> {
    spaces(current, named(current))
}

/// The space of the caller and the space of `thread`, if the caller may control that.
#[inline]
fn spaces(current: ThreadRef, thread: ThreadId) -> Result<(SpaceRef, SpaceRef), ErrorCode> {
    let own = current.space.get().ok_or(ErrorCode::NoPrivilege)?;
    let space = target(thread).ok_or(ErrorCode::InvalidSpace)?;
    if !space.is_owned_by(own) && !eq(space, own) {
        return Err(ErrorCode::NoPrivilege);
    }
    Ok((own, space))
}

fn decode(current: ThreadRef) -> Result<Request, ErrorCode> {
    let arguments = arguments::MapControl::of(current);
    let (own, space) = decode_spaces(current)?;
    let (items, number, begin) = (arguments.items(), arguments.number(), arguments.begin());
    if !(1..=MAX_MAP_ITEMS).contains(&number)
        || begin >= number
        || !items.is_multiple_of(ITEM)
        || !user_memory::is_accessible(own, items, number * ITEM, Rights::READ_WRITE)
    {
        return Err(ErrorCode::InvalidParameter);
    }
    Ok(Request { own, space, items, number, begin })
}

/// The thread that the call names.
fn named(current: ThreadRef) -> ThreadId {
    arguments::MapControl::of(current).space()
}

/// The space that a call is about that names `thread`.
#[inline]
fn target(thread: ThreadId) -> Option<SpaceRef> {
    Some(thread).filter(|id| id.is_global()).and_then(|id| threads().find(id)).and_then(Found::space)
}

/// Reads an item. A page of the array that has gone since it was checked reads as an item that is
/// refused.
fn read_item(own: &Space, address: u64) -> MapItem {
    let [target, control, source, _] = user_memory::read_words(own, address).unwrap_or_default();
    MapItem { target, control, source, answer: 0 }
}

/// Keeps the item that gives way to an interrupt in the registers that the call destroys anyway, as
/// other threads can change what lies in memory.
fn keep_item(current: ThreadRef, item: &MapItem) {
    let kept = arguments::MapControl::of(current);
    kept.keep_target(item.target);
    kept.keep_control(item.control);
    kept.keep_source(item.source);
}

/// The item at which the interrupted call goes on.
fn kept_item(current: ThreadRef) -> MapItem {
    let kept = arguments::MapControl::of(current);
    let (target, control) = (kept.kept_target(), kept.kept_control());
    MapItem { target, control, source: kept.kept_source(), answer: 0 }
}

fn perform(
    current: ThreadRef,
    own: SpaceRef,
    space: SpaceRef,
    item: &MapItem,
) -> Progress<Result<u64, ErrorCode>> {
    let Some(record) = current.transfer_record.get() else {
        return Progress::Done(Err(ErrorCode::NoMemory));
    };
    let _alone = mapping::lock();
    // The spaces are decoded only now, as what is found under the lock holds until it is released.
    // The space cannot end, as that needs the lock, too; and an owner that has been replaced has
    // lost the space when that call returns.
    match decode_spaces(current) {
        Ok((_, target)) if eq(target, space) => {}
        Ok(_) => return Progress::Done(Err(ErrorCode::InvalidSpace)),
        Err(error) => return Progress::Done(Err(error)),
    }
    let physical = own.ownership.sees_physical();
    record.with_cursor(|cursor| mapping::control(cursor, own.memory, space.memory, item, physical))
}

fn cancel(current: ThreadRef) {
    if let Some(record) = current.transfer_record.get() {
        record.cancel();
    }
}

/// Gives way to an interrupt before the rest of item `index`.
fn pause(current: ThreadRef, index: u64, within: Option<SpaceRef>) -> Next {
    arguments::MapControl::of(current).set_done(index);
    lifecycle::save_work(current, Work::MapControl(within));
    Next::Interrupted
}

/// Ends the call; `told` is how many items of a batch are done, or the answer of the one.
fn end_call(current: ThreadRef, told: u64, result: Result<(), ErrorCode>) -> Next {
    return_result(current, result);
    arguments::MapControl::of(current).set_done(told);
    Next::Return
}
