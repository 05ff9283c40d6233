//! A call while it is carried out: what the numbers stand for that the generated server sees.
//!
//! In the bytes of a request and a reply, each right and each piece of memory out of line is a
//! number: 0 is no right, [`DEAD`] a right to a dead port, [`TARGET`] the object that the message
//! was sent to, and each other number an item of the call.

use alloc::sync::Arc;
use alloc::vec::Vec;

use message::{Memory, Status};

use super::error::{INVALID_ARGUMENT, INVALID_HOST, INVALID_TASK, RESOURCE_SHORTAGE};
use super::{Kernel, Object, PortPersonality};
use crate::ipc::{Charge, Interruption, Item, Right};
use crate::machine::Machine;
use crate::processor_set::ProcessorSet;
use crate::task::Task;
use crate::thread::Thread;

/// The number of the object that the message was sent to.
pub(super) const TARGET: u64 = 1;
/// The number of a right to a port that has died.
pub(super) const DEAD: u64 = u32::MAX as u64;
/// The number of the first item.
const FIRST: u64 = 2;

/// The result of a call's method.
pub(super) type Answer<T = ()> = Result<T, Status>;

/// A call while it is carried out.
pub(super) struct Call<'a, M: Machine, P: PortPersonality<M>> {
    pub(super) kernel: Arc<Kernel<M, P>>,
    target: Option<Arc<Object<M, P>>>,
    /// The rights and the memory of the request and of the reply.
    items: Vec<Item<M>>,
    /// Ends a wait of the caller's thread.
    pub(super) interruption: &'a Interruption,
    /// The memory of the caller's account for the reply.
    pub(super) charge: Charge<M>,
}

impl<'a, M: Machine, P: PortPersonality<M>> Call<'a, M, P> {
    pub(super) fn new(
        kernel: Arc<Kernel<M, P>>,
        target: Option<Arc<Object<M, P>>>,
        interruption: &'a Interruption,
        charge: Charge<M>,
    ) -> Self {
        Self { kernel, target, items: Vec::new(), interruption, charge }
    }

    /// Adds an item, and returns its number.
    pub(super) fn add(&mut self, item: Item<M>) -> u64 {
        match item {
            Item::Right(Right::Null) | Item::Empty => 0,
            Item::Right(Right::Dead) => DEAD,
            item => {
                self.items.push(item);
                FIRST + self.items.len() as u64 - 1
            }
        }
    }

    /// Whether the call has got and given neither rights nor memory.
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    fn item(&self, number: u64) -> Option<&Item<M>> {
        self.items.get(usize::try_from(number.checked_sub(FIRST)?).ok()?)
    }

    /// Takes an item out of the call.
    pub(super) fn take(&mut self, number: u64) -> Item<M> {
        let place = number.checked_sub(FIRST).and_then(|place| usize::try_from(place).ok());
        match place.and_then(|place| self.items.get_mut(place)) {
            Some(item) => core::mem::replace(item, Item::Empty),
            None if number == DEAD => Item::Right(Right::Dead),
            None => Item::Empty,
        }
    }

    /// Takes a right out of the call. A number that is none of a right gives the null right.
    pub(super) fn right(&mut self, number: u64) -> Right<M> {
        match self.take(number) {
            Item::Right(right) => right,
            _ => Right::Null,
        }
    }

    /// Puts a right into the reply, and returns its number.
    pub(super) fn give(&mut self, right: Right<M>) -> u64 {
        self.add(Item::Right(right))
    }

    /// Puts an array of rights into the reply.
    pub(super) fn give_rights(&mut self, rights: Vec<Right<M>>) -> Answer<Memory> {
        self.pay(rights.len() * size_of::<Right<M>>())?;
        let count = rights.len() as u32;
        let item = if rights.is_empty() { Item::Empty } else { Item::Rights(rights) };
        Ok(Memory { address: self.add(item), count, deallocate: true })
    }

    /// Puts words of 32 bits into the reply, as memory out of line.
    pub(super) fn give_words(&mut self, words: impl ExactSizeIterator<Item = u32>) -> Answer<Memory> {
        let count = words.len();
        self.pay(count * 4)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(count * 4).map_err(|_| RESOURCE_SHORTAGE)?;
        words.for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        Ok(self.give_bytes(bytes, count))
    }

    /// Puts bytes, which make `count` elements, into the reply as memory out of line. The caller
    /// has paid for them.
    pub(super) fn give_bytes(&mut self, bytes: Vec<u8>, count: usize) -> Memory {
        let item = if bytes.is_empty() { Item::Empty } else { Item::Bytes(bytes) };
        Memory { address: self.add(item), count: count as u32, deallocate: true }
    }

    /// Charges the caller's account for a part of the reply.
    pub(super) fn pay(&mut self, bytes: usize) -> Answer {
        if self.charge.extend(bytes) { Ok(()) } else { Err(RESOURCE_SHORTAGE) }
    }

    /// The object for which a number stands: the target, or the object of a send right.
    pub(super) fn object(&self, number: u64) -> Option<Arc<Object<M, P>>> {
        if number == TARGET {
            return self.target.clone();
        }
        match self.item(number)? {
            Item::Right(Right::Send(right)) => Object::of(right.kernel_object()?),
            _ => None,
        }
    }

    /// The task for which a number stands.
    pub(super) fn task(&self, number: u64) -> Answer<Arc<Task<M, P>>> {
        match self.object(number).as_deref() {
            Some(Object::Task(task)) => Ok(task.clone()),
            _ => Err(INVALID_ARGUMENT),
        }
    }

    /// The task whose names a call is about.
    pub(super) fn space(&self, number: u64) -> Answer<Arc<crate::ipc::Space<M>>> {
        let task = self.task(number).map_err(|_| INVALID_TASK)?;
        Ok(P::task_ports(&task).space().clone())
    }

    /// The thread for which a number stands.
    pub(super) fn thread(&self, number: u64) -> Answer<Arc<Thread<M, P>>> {
        match self.object(number).as_deref() {
            Some(Object::Thread(thread)) => Ok(thread.clone()),
            _ => Err(INVALID_ARGUMENT),
        }
    }

    /// Checks that a number stands for the host, or for its control.
    pub(super) fn host(&self, number: u64) -> Answer {
        match self.object(number).as_deref() {
            Some(Object::Host | Object::HostControl) => Ok(()),
            _ => Err(INVALID_HOST),
        }
    }

    /// Checks that a number stands for the control of the host.
    pub(super) fn host_control(&self, number: u64) -> Answer {
        match self.object(number).as_deref() {
            Some(Object::HostControl) => Ok(()),
            _ => Err(INVALID_HOST),
        }
    }

    /// The processor that a number names or controls.
    pub(super) fn processor_name(&self, number: u64) -> Answer<usize> {
        match self.object(number).as_deref() {
            Some(Object::Processor(processor) | Object::ProcessorName(processor)) => Ok(*processor),
            _ => Err(INVALID_ARGUMENT),
        }
    }

    /// The processor that a number controls.
    pub(super) fn processor(&self, number: u64) -> Answer<usize> {
        match self.object(number).as_deref() {
            Some(Object::Processor(processor)) => Ok(*processor),
            _ => Err(INVALID_ARGUMENT),
        }
    }

    /// The processor set that a number controls.
    pub(super) fn set(&self, number: u64) -> Answer<Arc<ProcessorSet<M>>> {
        match self.object(number).as_deref() {
            Some(Object::Set(set)) => Ok(set.clone()),
            _ => Err(INVALID_ARGUMENT),
        }
    }

    /// The processor set that a number names or controls.
    pub(super) fn set_name(&self, number: u64) -> Answer<Arc<ProcessorSet<M>>> {
        match self.object(number).as_deref() {
            Some(Object::Set(set) | Object::SetName(set)) => Ok(set.clone()),
            _ => Err(INVALID_ARGUMENT),
        }
    }
}
