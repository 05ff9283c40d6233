//! The calls of pagers on the control ports of their memory objects, and those on the names of
//! memory objects.

use alloc::sync::Arc;
use alloc::vec::Vec;

use mach_interfaces::memory_object::Client;
use message::{Error, Memory};

use super::call::{Answer, Call};
use super::error::INVALID_ARGUMENT;
use super::memory::{protection, read_copy};
use super::memory_object::MemoryObject;
use super::{Object, PortPersonality};
use crate::ipc::{Item, Right};
use crate::machine::{Frame, Machine, PAGE_SHIFT, PAGE_SIZE, Protection};
use crate::vm::{LockRequest, PageAnswer, ReturnPages, VmObject};
use crate::{KernError, KernResult};

/// The `lock_value` that changes no prohibition.
const NO_CHANGE: u32 = 8;
/// How many pages a pager can ask to be requested together.
const LONGEST_CLUSTER: u64 = 32;
/// How many pages that were not requested are taken of one message.
const MOST_UNASKED: usize = 256;

/// The arguments of `memory_object_lock_request`.
pub(super) fn lock_request(should_return: u32, flush: bool, lock_value: u32) -> Answer<LockRequest> {
    let returned = match should_return {
        0 => ReturnPages::None,
        1 => ReturnPages::Dirty,
        2 => ReturnPages::All,
        _ => return Err(INVALID_ARGUMENT),
    };
    let prohibited = if lock_value == NO_CHANGE { None } else { Some(protection(lock_value)?) };
    Ok(LockRequest { returned, flush, prohibited })
}

/// Mach's number for the kind of a right to reply.
fn kind<M: Machine>(right: &Right<M>) -> u32 {
    match right {
        Right::SendOnce(_) => 18,
        _ => 17,
    }
}

/// What a pager supplies.
pub(super) struct Supply {
    pub(super) control: u64,
    pub(super) offset: u64,
    pub(super) data: Memory,
    pub(super) lock_value: u32,
    pub(super) precious: bool,
    pub(super) reply_to: u64,
}

/// Checks that a range consists of whole pages.
fn check_pages(offset: u64, size: u64) -> Answer {
    let is_whole = (offset | size).is_multiple_of(PAGE_SIZE) && offset.checked_add(size).is_some();
    if is_whole { Ok(()) } else { Err(INVALID_ARGUMENT) }
}

/// Ends a message whose receiver may have gone, which is none of the caller's business.
fn ignore(_sent: Result<(), Error>) {}

impl<M: Machine, P: PortPersonality<M>> Call<'_, M, P> {
    /// The memory object that a number controls, whose pager calls.
    pub(super) fn memory_control(&self, number: u64) -> Answer<Arc<MemoryObject<M, P>>> {
        match self.object(number).as_deref() {
            Some(Object::MemoryControl(object)) => {
                let object = object.upgrade().ok_or(INVALID_ARGUMENT)?;
                object.is_heard();
                Ok(object)
            }
            _ => Err(INVALID_ARGUMENT),
        }
    }

    /// The memory of which `vm_map` is to map `size` bytes at `offset`: that of the pager at a
    /// port.
    pub(super) async fn mapped_object(
        &mut self,
        task: u64,
        number: u64,
        offset: u64,
        size: u64,
    ) -> Answer<Arc<VmObject<M>>> {
        let end = offset.checked_add(size).and_then(|end| end.checked_next_multiple_of(PAGE_SIZE));
        let end = end.ok_or(INVALID_ARGUMENT)?;
        let payer = self.space(task).map_err(|_| INVALID_ARGUMENT)?;
        let Right::Send(pager) = self.right(number) else { return Err(INVALID_ARGUMENT) };
        Ok(MemoryObject::find(&self.kernel, &payer, pager, end).await?)
    }

    /// `memory_object_data_unavailable` and `memory_object_data_error`.
    pub(super) fn without_data(&self, control: u64, offset: u64, size: u64, answer: PageAnswer) -> Answer {
        let object = self.memory_control(control)?;
        check_pages(offset, size)?;
        {
            let requests = &mut object.state.lock().requests;
            let open = requests.open_in(offset, size);
            open.iter().for_each(|&at| {
                requests.answer(at, answer, |_| true);
            });
            let pages = (offset..offset + size).step_by(PAGE_SIZE as usize).take(MOST_UNASKED);
            pages.filter(|at| !open.contains(at)).for_each(|at| {
                requests.take_owed(at);
            });
        }
        object.changed.wake_all();
        object.catch_up();
        Ok(())
    }

    /// `memory_object_data_supply` and `memory_object_data_provided`.
    pub(super) async fn supply(&mut self, supply: Supply) -> Answer {
        let Supply { control, offset, data, lock_value, precious, reply_to } = supply;
        let object = self.memory_control(control)?;
        let (size, item, reply) = (u64::from(data.count), self.take(data.address), self.right(reply_to));
        let supplied = match (check_pages(offset, size), protection(lock_value)) {
            (Ok(()), Ok(prohibited)) => {
                supply_pages(&object, (offset, size), &item, (prohibited, precious)).await
            }
            _ => Err((KernError::InvalidArgument, offset)),
        };
        // The memory goes before the reply.
        drop(item);
        object.catch_up();
        let (result, error_offset) = supplied.err().map_or((0, 0), |(error, at)| (error.code(), at));
        if !matches!(reply, Right::Null) {
            let kind = kind(&reply);
            let (mut caller, control) = object.caller_to(reply);
            let mut client = Client { transport: &mut caller, to: 0 };
            let (result, at) = (result as u32, error_offset);
            ignore(client.memory_object_supply_completed(kind, control, offset, size, result, at).await);
        }
        Ok(())
    }

    /// `memory_object_set_cluster_size`.
    pub(super) fn set_cluster(&self, control: u64, size: u64) -> Answer {
        let object = self.memory_control(control)?;
        object.set_cluster((size >> PAGE_SHIFT).clamp(1, LONGEST_CLUSTER));
        Ok(())
    }

    /// `memory_object_change_attributes`.
    pub(super) async fn change_attributes(
        &mut self,
        control: u64,
        may_cache: u32,
        strategy: u32,
        reply_to: u64,
    ) -> Answer {
        let object = self.memory_control(control)?;
        object.set_attributes(true, may_cache != 0, strategy);
        let reply = self.right(reply_to);
        if !matches!(reply, Right::Null) {
            let kind = kind(&reply);
            let (mut caller, _) = object.caller_to(reply);
            let mut client = Client { transport: &mut caller, to: 0 };
            ignore(client.memory_object_change_completed(kind, may_cache, strategy).await);
        }
        Ok(())
    }

    /// `memory_object_lock_request`.
    pub(super) async fn lock_memory(
        &mut self,
        control: u64,
        offset: u64,
        size: u64,
        request: LockRequest,
        reply_to: u64,
    ) -> Answer {
        let object = self.memory_control(control)?;
        check_pages(offset, size)?;
        let reply = self.right(reply_to);
        let memory = object.object().ok_or(INVALID_ARGUMENT)?;
        let done = memory.lock_request(offset, offset + size, request).await;
        // What is held is no longer the object's, and what has become of it is the pager's.
        object.send_held(offset, size, request.returned != ReturnPages::None).await;
        object.unlocked();
        if !matches!(reply, Right::Null) {
            let kind = kind(&reply);
            let (mut caller, control) = object.caller_to(reply);
            let mut client = Client { transport: &mut caller, to: 0 };
            ignore(client.memory_object_lock_completed(kind, control, offset, size).await);
        }
        Ok(done?)
    }

    /// `vm_object_sync`.
    pub(super) async fn sync_memory(
        &mut self,
        name: u64,
        offset: u64,
        size: u64,
        flush: bool,
        returns: bool,
    ) -> Answer {
        let object = match self.object(name).as_deref() {
            Some(Object::MemoryName(object)) => object.upgrade(),
            _ => None,
        };
        let object = object.ok_or(INVALID_ARGUMENT)?;
        let memory = object.object().ok_or(INVALID_ARGUMENT)?;
        check_pages(offset, size)?;
        let returned = if returns { ReturnPages::Dirty } else { ReturnPages::None };
        let request = LockRequest { returned, flush, prohibited: None };
        memory.lock_request(offset, offset + size, request).await?;
        object.send_held(offset, size, returns).await;
        Ok(())
    }
}

/// Gives the pages of a range to the object: first those that were requested. Of the others at most
/// [`MOST_UNASKED`] are taken.
///
/// # Errors
/// Why a page was not taken, and the byte offset of the first such page.
async fn supply_pages<M: Machine, P: PortPersonality<M>>(
    object: &MemoryObject<M, P>,
    (offset, size): (u64, u64),
    data: &Item<M>,
    (prohibited, precious): (Protection, bool),
) -> Result<(), (KernError, u64)> {
    let answer = PageAnswer::Filled { prohibited, precious };
    let requested = object.state.lock().requests.open_in(offset, size);
    let mut failed = None;
    for &at in &requested {
        match answer_page(object, at, data, (at - offset) as usize, answer).await {
            Ok(()) => {}
            Err(error) => failed = failed.or(Some((error, at))),
        }
        object.changed.wake_all();
    }
    let others = (offset..offset + size).step_by(PAGE_SIZE as usize).filter(|at| !requested.contains(at));
    let mut page = Vec::new();
    for (number, at) in others.enumerate() {
        let taken = match object.object() {
            Some(_) if object.state.lock().requests.take_owed(at) => Err(KernError::MemoryPresent),
            Some(memory) if number < MOST_UNASKED => {
                let read = read_page(data, (at - offset) as usize, &mut page).await;
                let rights = (prohibited, precious);
                let is_held = || object.state.lock().held.has(at);
                read.and_then(|()| memory.accept_page(at >> PAGE_SHIFT, &page, rights, is_held))
            }
            Some(_) => Err(KernError::ResourceShortage),
            None => Err(KernError::MemoryFailure),
        };
        if let Err(error) = taken {
            failed = failed.filter(|(_, before)| *before < at).or(Some((error, at)));
            // The other pages would have the same fate.
            if error == KernError::ResourceShortage {
                break;
            }
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Fills the frame of a page that was requested, unless there is an answer meanwhile.
async fn answer_page<M: Machine, P: PortPersonality<M>>(
    object: &MemoryObject<M, P>,
    at: u64,
    data: &Item<M>,
    from: usize,
    answer: PageAnswer,
) -> KernResult {
    let fill = |write: &mut dyn FnMut(Frame)| {
        object.state.lock().requests.answer(at, answer, |frame| {
            write(frame);
            true
        });
    };
    match data {
        Item::Pages(copy, start) if (start + from).is_multiple_of(PAGE_SIZE as usize) => {
            let with = |machine: &M, source: Option<Frame>| {
                fill(&mut |frame| match source {
                    Some(source) => machine.copy_frame(source, frame),
                    None => machine.zero_frame(frame),
                });
            };
            copy.with_page((start + from) as u64, with, object.machine()).await
        }
        data => {
            let mut page = Vec::new();
            read_page(data, from, &mut page).await?;
            fill(&mut |frame| object.machine().write_frame(frame, 0, &page));
            Ok(())
        }
    }
}

/// Reads a page of what a pager supplies into a buffer.
async fn read_page<M: Machine>(data: &Item<M>, from: usize, page: &mut Vec<u8>) -> KernResult {
    let size = PAGE_SIZE as usize;
    page.try_reserve_exact(size.saturating_sub(page.len())).map_err(|_| KernError::ResourceShortage)?;
    page.resize(size, 0);
    match data {
        Item::Pages(copy, start) => read_copy(copy, start + from, page).await,
        Item::Bytes(bytes) => {
            page.copy_from_slice(bytes.get(from..from + size).ok_or(KernError::InvalidArgument)?);
            Ok(())
        }
        _ => Err(KernError::InvalidArgument),
    }
}
