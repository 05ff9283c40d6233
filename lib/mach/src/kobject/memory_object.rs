//! Memory objects of programs: external pagers after Mach 3. A program maps the memory that stands
//! for a port; the kernel asks the port's receiver for its pages by messages, and the receiver
//! answers by calls on the object's control port.
//!
//! A page is asked for when it is needed, one page by a message. What a pager supplies without
//! having been asked is dropped. A pager that does not answer within [`PATIENCE`], or whose port
//! dies, gives the users of its object a memory error.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use macadamia_sync::{SpinLock, WaitQueue};
use mach_interfaces::memory_object::Client;
use message::{Error, Memory};

use super::client::Caller;
use super::{Kernel, Object, PortPersonality};
use crate::ipc::{Interruption, Item, KernelPort, Right, SendRight, Space};
use crate::machine::{Frame, Machine, PAGE_SIZE, Protection};
use crate::vm::{BoxFuture, CopyStrategy, DataRequest, DataReturn, Pager, VmObject};
use crate::{KernError, KernResult};

/// How long the users of an object wait for an answer of its pager, in microseconds.
const PATIENCE: u64 = 30_000_000;
/// How often it is looked whether the pager's port has died meanwhile, in microseconds.
const LOOK: u64 = 100_000;

/// The places of an object's ports.
const CONTROL: usize = 0;
const NAME: usize = 1;

/// What a pager has answered about a page.
pub(super) enum PageAnswer {
    /// The contents, and the accesses that the pager prohibits for now.
    Data(Vec<u8>, Protection),
    /// There are none: the page is zeros.
    Nothing,
    /// The pager has failed.
    Failed,
}

/// A fault that waits for a page.
struct Request {
    number: u64,
    offset: u64,
    answer: Option<PageAnswer>,
}

struct State<M: Machine> {
    /// The pager has said that it is ready.
    ready: bool,
    /// The pager has given up the object.
    destroyed: bool,
    may_cache: bool,
    /// The number of the strategy that the pager has chosen. Whatever it is, a copy shows the
    /// object as it was when it was made.
    strategy: u32,
    requests: Vec<Request>,
    next_request: u64,
    /// How often the pager has changed prohibitions.
    unlocks: u64,
    object: Weak<VmObject<M>>,
}

/// A memory object whose pages a program has. It is its object's pager, and ends with that object.
pub(super) struct MemoryObject<M: Machine, P: PortPersonality<M>> {
    kernel: Weak<Kernel<M, P>>,
    own: Weak<Self>,
    /// Pays for messages and ports: the task that mapped the object first.
    payer: Arc<Space<M>>,
    /// The port of the pager.
    pager: SendRight<M>,
    /// The control and the name port; `None` only when the object ends.
    ports: Option<[KernelPort<M>; 2]>,
    state: SpinLock<State<M>>,
    changed: WaitQueue,
}

impl<M: Machine, P: PortPersonality<M>> MemoryObject<M, P> {
    /// The memory that a port stands for. If it is mapped nowhere yet, its pager is told of it.
    ///
    /// # Errors
    /// `ResourceShortage`: memory is short. `InvalidArgument`: the port has died, or it stands for
    /// an object of the kernel.
    pub(super) async fn find(
        kernel: &Arc<Kernel<M, P>>,
        payer: &Arc<Space<M>>,
        pager: SendRight<M>,
    ) -> KernResult<Arc<VmObject<M>>> {
        if pager.is_dead() || pager.is_of_kernel() {
            return Err(KernError::InvalidArgument);
        }
        let number = pager.port_number();
        let (own, object) = {
            let mut objects = kernel.memory_objects.lock();
            if let Some(own) = objects.get(&number).and_then(Weak::upgrade)
                && let Some(object) = own.object()
            {
                return Ok(object);
            }
            let (own, object) = Self::new(kernel, payer, pager)?;
            objects.insert(number, own.own.clone());
            (own, object)
        };
        let (mut caller, control) = own.caller()?;
        let name = caller.give(own.port(NAME));
        let mut client = Client { transport: &mut caller, to: 0 };
        let sent = client.memory_object_init(control, name, PAGE_SIZE).await;
        sent.map_err(|_| KernError::ResourceShortage)?;
        Ok(object)
    }

    fn new(
        kernel: &Arc<Kernel<M, P>>,
        payer: &Arc<Space<M>>,
        pager: SendRight<M>,
    ) -> KernResult<(Arc<Self>, Arc<VmObject<M>>)> {
        let ports = [KernelPort::new(payer, kernel.server())?, KernelPort::new(payer, kernel.server())?];
        let state = State {
            ready: false,
            destroyed: false,
            may_cache: false,
            strategy: 0,
            requests: Vec::new(),
            next_request: 0,
            unlocks: 0,
            object: Weak::new(),
        };
        let own = Arc::new_cyclic(|own: &Weak<Self>| Self {
            kernel: Arc::downgrade(kernel),
            own: own.clone(),
            payer: payer.clone(),
            pager,
            ports: Some(ports),
            state: SpinLock::new(state),
            changed: WaitQueue::new(),
        });
        let object = VmObject::paged(kernel.host().vm(), own.clone(), !(PAGE_SIZE - 1), CopyStrategy::Delay)?;
        own.state.lock().object = Arc::downgrade(&object);
        if let Some([control, name]) = &own.ports {
            control.enable(Arc::new(Object::<M, P>::MemoryControl(own.own.clone())));
            name.enable(Arc::new(Object::<M, P>::MemoryName(own.own.clone())));
        }
        Ok((own, object))
    }

    /// The object whose pages the pager has, unless it is ending.
    pub(super) fn object(&self) -> Option<Arc<VmObject<M>>> {
        self.state.lock().object.upgrade()
    }

    /// A send right to the control or the name port.
    fn port(&self, which: usize) -> Right<M> {
        self.ports.as_ref().map_or(Right::Dead, |ports| ports[which].send_right())
    }

    /// What sends one message to the pager, and the number of a send right to the control port in
    /// that message.
    fn caller(&self) -> KernResult<(Caller<'_, M>, u64)> {
        let to = self.pager.copy().ok_or(KernError::MemoryFailure)?;
        Ok(self.caller_to(Right::Send(to)))
    }

    /// The same, to another port.
    pub(super) fn caller_to(&self, to: Right<M>) -> (Caller<'_, M>, u64) {
        let mut caller = Caller::to(&self.payer, to);
        let control = caller.give(self.port(CONTROL));
        (caller, control)
    }

    /// The pager is ready, or has changed its attributes.
    pub(super) fn set_attributes(&self, may_cache: bool, strategy: u32) {
        {
            let mut state = self.state.lock();
            (state.ready, state.may_cache, state.strategy) = (true, may_cache, strategy);
        }
        self.changed.wake_all();
    }

    /// Whether the pager is ready, whether it allows that the object is kept when it is not mapped,
    /// and its strategy for copies.
    pub(super) fn attributes(&self) -> (bool, bool, u32) {
        let state = self.state.lock();
        (state.ready, state.may_cache, state.strategy)
    }

    /// The pager has given up the object: all requests fail from now on.
    pub(super) fn destroy(&self) {
        self.state.lock().destroyed = true;
        self.changed.wake_all();
    }

    /// The pager has changed its prohibitions.
    pub(super) fn unlocked(&self) {
        self.state.lock().unlocks += 1;
        self.changed.wake_all();
    }

    /// The offsets of the pages in a range that faults wait for.
    pub(super) fn requested(&self, offset: u64, size: u64) -> Vec<u64> {
        let state = self.state.lock();
        let open = state.requests.iter().filter(|request| request.answer.is_none());
        open.map(|request| request.offset).filter(|at| at.wrapping_sub(offset) < size).collect()
    }

    /// Answers the request for a page, if a fault still waits for it.
    pub(super) fn answer(&self, offset: u64, answer: PageAnswer) {
        {
            let mut state = self.state.lock();
            let mut open = state.requests.iter_mut();
            let request = open.find(|request| request.offset == offset && request.answer.is_none());
            if let Some(request) = request {
                request.answer = Some(answer);
            }
        }
        self.changed.wake_all();
    }

    /// Waits until `look` returns a value.
    ///
    /// # Errors
    /// `MemoryError`: the pager has given up the object, has died, or is silent.
    async fn until<T>(&self, mut look: impl FnMut(&mut State<M>) -> Option<T> + Unpin) -> KernResult<T> {
        let machine = self.payer.ipc().machine();
        let end = machine.now() + PATIENCE;
        let interruption = Interruption::new();
        loop {
            let found = self.changed.wait_until(|| {
                let mut state = self.state.lock();
                if state.destroyed {
                    return Some(Err(KernError::MemoryError));
                }
                look(&mut state).map(Ok)
            });
            let now = machine.now();
            if let Ok(found) = interruption.wait(machine, Some(now + LOOK), found).await {
                return found;
            }
            if self.pager.is_dead() || now >= end {
                return Err(KernError::MemoryError);
            }
        }
    }

    async fn page(&self, request: &DataRequest<'_, M>) -> KernResult<usize> {
        self.until(|state| state.ready.then_some(())).await?;
        let waiting = Waiting::new(self, request.offset);
        let (offset, access) = (request.offset, u32::from(request.access.bits()));
        {
            let (mut caller, control) = self.caller()?;
            let mut client = Client { transport: &mut caller, to: 0 };
            let sent = client.memory_object_data_request(control, offset, PAGE_SIZE, access).await;
            sent.map_err(|_| KernError::ResourceShortage)?;
        }
        let number = waiting.number;
        match self.until(|state| state.take_answer(number)).await? {
            PageAnswer::Data(bytes, prohibited) => {
                request.lock(prohibited);
                request.write(0, &bytes);
                Ok(PAGE_SIZE as usize)
            }
            PageAnswer::Nothing => Ok(0),
            PageAnswer::Failed => Err(KernError::MemoryError),
        }
    }

    /// Gives the pager changed pages. A message that is only sent needs no wait.
    async fn give(&self, data: &DataReturn<'_, M>) -> KernResult {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(data.length()).map_err(|_| KernError::ResourceShortage)?;
        bytes.resize(data.length(), 0);
        data.read(0, &mut bytes);
        let (mut caller, control) = self.caller()?;
        let (address, count) = (caller.add(Item::Bytes(bytes)), data.length() as u32);
        let memory = Memory { address, count, deallocate: true };
        let mut client = Client { transport: &mut caller, to: 0 };
        let kept = u32::from(data.kept);
        let sent = client.memory_object_data_return(control, data.offset, memory, 1, kept).await;
        sent.map_err(|_| KernError::ResourceShortage)
    }

    async fn ask_to_unlock(&self, offset: u64, access: Protection) -> KernResult {
        let before = self.state.lock().unlocks;
        let access = u32::from(access.bits());
        {
            let (mut caller, control) = self.caller()?;
            let mut client = Client { transport: &mut caller, to: 0 };
            let sent = client.memory_object_data_unlock(control, offset, PAGE_SIZE, access).await;
            sent.map_err(|_| KernError::ResourceShortage)?;
        }
        self.until(|state| (state.unlocks != before).then_some(())).await
    }
}

impl<M: Machine> State<M> {
    fn take_answer(&mut self, number: u64) -> Option<PageAnswer> {
        self.requests.iter_mut().find(|request| request.number == number)?.answer.take()
    }
}

/// A request while its fault waits.
struct Waiting<'a, M: Machine, P: PortPersonality<M>> {
    object: &'a MemoryObject<M, P>,
    number: u64,
}

impl<'a, M: Machine, P: PortPersonality<M>> Waiting<'a, M, P> {
    fn new(object: &'a MemoryObject<M, P>, offset: u64) -> Self {
        let mut state = object.state.lock();
        let number = state.next_request;
        state.next_request += 1;
        state.requests.push(Request { number, offset, answer: None });
        Self { object, number }
    }
}

impl<M: Machine, P: PortPersonality<M>> Drop for Waiting<'_, M, P> {
    fn drop(&mut self) {
        self.object.state.lock().requests.retain(|request| request.number != self.number);
    }
}

impl<M: Machine, P: PortPersonality<M>> Pager<M> for MemoryObject<M, P> {
    fn data_request<'a>(&'a self, request: DataRequest<'a, M>) -> BoxFuture<'a, KernResult<usize>> {
        Box::pin(async move { self.page(&request).await })
    }

    fn data_return<'a>(&'a self, data: DataReturn<'a, M>) -> BoxFuture<'a, KernResult> {
        Box::pin(async move { self.give(&data).await })
    }

    fn ended(&self, machine: &M, changed: &mut dyn Iterator<Item = (u64, Frame)>) {
        for (offset, frame) in changed {
            // Without memory for the message the page is lost, as if the pager had died.
            let _ = now(self.give(&DataReturn { machine, offset, frames: &[frame], kept: false }));
        }
    }

    fn data_unlock<'a>(&'a self, offset: u64, access: Protection) -> BoxFuture<'a, KernResult> {
        Box::pin(self.ask_to_unlock(offset, access))
    }
}

impl<M: Machine, P: PortPersonality<M>> Drop for MemoryObject<M, P> {
    /// Forgets the object, and gives the pager the receive rights of its ports.
    fn drop(&mut self) {
        if let Some(kernel) = self.kernel.upgrade() {
            let number = self.pager.port_number();
            let mut objects = kernel.memory_objects.lock();
            if objects.get(&number).is_some_and(|object| Weak::ptr_eq(object, &self.own)) {
                objects.remove(&number);
            }
        }
        let (Some(to), Some(ports)) = (self.pager.copy(), self.ports.take()) else { return };
        let mut caller = Caller::to(&self.payer, Right::Send(to));
        let [control, name] = ports.map(|port| caller.give(port.into_right()));
        let mut client = Client { transport: &mut caller, to: 0 };
        // Without memory for the message the pager is not told.
        let _: Option<Result<(), Error>> = now(client.memory_object_terminate(control, name));
    }
}

/// The result of a future that does not wait.
fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}
