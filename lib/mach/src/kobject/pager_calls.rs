//! The calls of pagers on the control ports of their memory objects, and those on the names of
//! memory objects.

use alloc::sync::Arc;
use alloc::vec::Vec;

use mach_interfaces::memory_object::Client;
use message::{Error, Memory};

use super::call::{Answer, Call};
use super::error::INVALID_ARGUMENT;
use super::memory::{protection, read_copy};
use super::memory_object::{MemoryObject, PageAnswer};
use super::{Object, PortPersonality};
use crate::ipc::{Item, Right};
use crate::machine::{Machine, PAGE_SIZE, Protection};
use crate::vm::{LockRequest, ReturnPages, VmObject};
use crate::{KernError, KernResult};

/// The `lock_value` that changes no prohibition.
const NO_CHANGE: u32 = 8;

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

/// Checks that a range consists of whole pages.
fn check_pages(offset: u64, size: u64) -> Answer {
    let is_whole = (offset | size).is_multiple_of(PAGE_SIZE) && offset.checked_add(size).is_some();
    if is_whole { Ok(()) } else { Err(INVALID_ARGUMENT) }
}

/// Ends a message whose receiver may have gone, which is none of the caller's business.
fn ignore(_sent: Result<(), Error>) {}

impl<M: Machine, P: PortPersonality<M>> Call<'_, M, P> {
    /// The memory object that a number controls.
    pub(super) fn memory_control(&self, number: u64) -> Answer<Arc<MemoryObject<M, P>>> {
        match self.object(number).as_deref() {
            Some(Object::MemoryControl(object)) => object.upgrade().ok_or(INVALID_ARGUMENT),
            _ => Err(INVALID_ARGUMENT),
        }
    }

    /// The memory that `vm_map` is to map: that of the pager at a port.
    pub(super) async fn mapped_object(&mut self, task: u64, number: u64) -> Answer<Arc<VmObject<M>>> {
        let payer = self.space(task).map_err(|_| INVALID_ARGUMENT)?;
        let Right::Send(pager) = self.right(number) else { return Err(INVALID_ARGUMENT) };
        Ok(MemoryObject::find(&self.kernel, &payer, pager).await?)
    }

    /// `memory_object_data_unavailable` and `memory_object_data_error`.
    pub(super) fn without_data(
        &self,
        control: u64,
        offset: u64,
        size: u64,
        answer: impl Fn() -> PageAnswer,
    ) -> Answer {
        let object = self.memory_control(control)?;
        check_pages(offset, size)?;
        object.requested(offset, size).into_iter().for_each(|at| object.answer(at, answer()));
        Ok(())
    }

    /// `memory_object_data_supply`.
    pub(super) async fn supply(
        &mut self,
        control: u64,
        offset: u64,
        data: Memory,
        lock_value: u32,
        reply_to: u64,
    ) -> Answer {
        let object = self.memory_control(control)?;
        let (size, item, reply) = (u64::from(data.count), self.take(data.address), self.right(reply_to));
        let result = match (check_pages(offset, size), protection(lock_value)) {
            (Ok(()), Ok(prohibited)) => supply_pages(&object, offset, size, &item, prohibited).await,
            _ => Err(KernError::InvalidArgument),
        };
        if !matches!(reply, Right::Null) {
            let kind = kind(&reply);
            let (mut caller, control) = object.caller_to(reply);
            let mut client = Client { transport: &mut caller, to: 0 };
            let code = result.map_or_else(|error| error.code() as u32, |()| 0);
            ignore(client.memory_object_supply_completed(kind, control, offset, size, code, 0).await);
        }
        Ok(result?)
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
        object.set_attributes(may_cache != 0, strategy);
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
            Some(Object::MemoryName(object)) => object.upgrade().and_then(|object| object.object()),
            _ => None,
        };
        let object = object.ok_or(INVALID_ARGUMENT)?;
        check_pages(offset, size)?;
        let returned = if returns { ReturnPages::Dirty } else { ReturnPages::None };
        Ok(object
            .lock_request(offset, offset + size, LockRequest { returned, flush, prohibited: None })
            .await?)
    }
}

/// Gives the pages of a range that faults wait for to those faults.
async fn supply_pages<M: Machine, P: PortPersonality<M>>(
    object: &MemoryObject<M, P>,
    offset: u64,
    size: u64,
    data: &Item<M>,
    prohibited: Protection,
) -> KernResult {
    for at in object.requested(offset, size) {
        let from = (at - offset) as usize;
        let page = PAGE_SIZE as usize;
        let bytes = match data {
            Item::Pages(copy, start) => {
                let mut bytes = Vec::new();
                bytes.try_reserve_exact(page).map_err(|_| KernError::ResourceShortage)?;
                bytes.resize(page, 0);
                read_copy(copy, start + from, &mut bytes).await?;
                bytes
            }
            Item::Bytes(bytes) => Vec::from(bytes.get(from..from + page).ok_or(KernError::InvalidArgument)?),
            _ => return Err(KernError::InvalidArgument),
        };
        object.answer(at, PageAnswer::Data(bytes, prohibited));
    }
    Ok(())
}
