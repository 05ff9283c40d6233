//! Memory objects of programs: external pagers after Mach 3. A program maps the memory that stands
//! for a port; the kernel asks the port's receiver for its pages by messages, and the receiver
//! answers by calls on the object's control port.
//!
//! `page_requests` has the requests that are open. A pager that does not answer in time
//! ([`Kernel::set_pager_patience`]), or whose port dies, gives the users of its object a memory
//! error.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::future::Future;
use core::pin::pin;
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};

use macadamia_sync::{SpinLock, WaitQueue};
use mach_interfaces::memory_object::Client;
use message::{Error, Memory};

use super::client::Caller;
use super::held_pages::{Held, Run};
use super::page_requests::{Open, Requests};
use super::{Kernel, Object, PortPersonality};
use crate::ipc::{Interruption, Item, KernelPort, Right, SendRight, Space};
use crate::machine::{Machine, PAGE_SHIFT, PAGE_SIZE, Protection};
use crate::vm::{BoxFuture, CopyStrategy, DataRequest, DataReturn, LeftPage, Pager, VmObject};
use crate::{KernError, KernResult};

/// How often it is looked whether the pager's port has died, and whether the object is still used,
/// in microseconds. A pager that was silent for too long before has as much time for an answer.
const LOOK: u64 = 100_000;
/// How many pages of an object are requested at a time at most, except for one for each access
/// that waits.
const MOST_REQUESTED: u64 = 64;
/// How many of the pages that an object has at its end are in one message.
const RUN: usize = 16;

/// The places of an object's ports.
const CONTROL: usize = 0;
const NAME: usize = 1;

pub(super) struct State<M: Machine> {
    /// The pager has said that it is ready.
    ready: bool,
    /// The pager has given up the object.
    destroyed: bool,
    /// The pager has let the time for an answer pass, and called nothing since.
    silent: bool,
    may_cache: bool,
    /// The number of the strategy that the pager has chosen. Whatever it is, a copy shows the
    /// object as it was when it was made.
    strategy: u32,
    /// How many pages one request is for at most.
    cluster: u64,
    pub(super) requests: Requests,
    pub(super) held: Held<M>,
    /// How often the pager has changed prohibitions.
    unlocks: u64,
    object: Weak<VmObject<M>>,
}

/// A memory object that has just been made, and its object if there is memory for it.
type Made<M, P> = (Arc<MemoryObject<M, P>>, KernResult<Arc<VmObject<M>>>);

/// A memory object whose pages a program has. It is its object's pager, and ends with that object.
pub(super) struct MemoryObject<M: Machine, P: PortPersonality<M>> {
    pub(super) kernel: Weak<Kernel<M, P>>,
    own: Weak<Self>,
    /// Pays for messages and ports: the task that mapped the object first.
    payer: Arc<Space<M>>,
    /// The port of the pager.
    pub(super) pager: SendRight<M>,
    /// The control and the name port; `None` only when the object ends.
    ports: Option<[KernelPort<M>; 2]>,
    /// The pager has been told of the object.
    told: AtomicBool,
    /// Comes after the locks of objects in the order of locks.
    pub(super) state: SpinLock<State<M>>,
    pub(super) changed: WaitQueue,
}

impl<M: Machine, P: PortPersonality<M>> MemoryObject<M, P> {
    /// The memory that a port stands for, which is to be mapped up to byte `end`: nothing beyond
    /// what is mapped is requested. If it is mapped nowhere yet, its pager is told of it.
    ///
    /// # Errors
    /// `ResourceShortage`: memory is short. `InvalidArgument`: the port has died, or it stands for
    /// an object of the kernel.
    pub(super) async fn find(
        kernel: &Arc<Kernel<M, P>>,
        payer: &Arc<Space<M>>,
        pager: SendRight<M>,
        end: u64,
    ) -> KernResult<Arc<VmObject<M>>> {
        if pager.is_dead() || pager.is_of_kernel() {
            return Err(KernError::InvalidArgument);
        }
        let number = pager.port_number();
        // What is dropped here takes the lock of the list.
        let before;
        let made = {
            let mut objects = kernel.memory_objects.lock();
            before = objects.get(&number).and_then(Weak::upgrade);
            if let Some(object) = before.as_ref().and_then(|own| own.object()) {
                drop(objects);
                kernel.object_cache.used(number);
                object.extend(end);
                return Ok(object);
            }
            let made = Self::new(kernel, payer, pager)?;
            if made.1.is_ok() {
                objects.insert(number, made.0.own.clone());
            }
            made
        };
        let (own, object) = (made.0, made.1?);
        object.extend(end);
        let (mut caller, control) = own.caller()?;
        let name = caller.give(own.port(NAME));
        let mut client = Client { transport: &mut caller, to: 0 };
        let sent = client.memory_object_init(control, name, PAGE_SIZE).await;
        sent.map_err(|_| KernError::ResourceShortage)?;
        own.told.store(true, Ordering::Relaxed);
        Ok(object)
    }

    fn new(kernel: &Arc<Kernel<M, P>>, payer: &Arc<Space<M>>, pager: SendRight<M>) -> KernResult<Made<M, P>> {
        let ports = [KernelPort::new(payer, kernel.server())?, KernelPort::new(payer, kernel.server())?];
        let state = State {
            ready: false,
            destroyed: false,
            silent: false,
            may_cache: false,
            strategy: 0,
            cluster: 1,
            requests: Requests::default(),
            held: Held::new(),
            unlocks: 0,
            object: Weak::new(),
        };
        let own = Arc::new_cyclic(|own: &Weak<Self>| Self {
            kernel: Arc::downgrade(kernel),
            own: own.clone(),
            payer: payer.clone(),
            pager,
            ports: Some(ports),
            told: AtomicBool::new(false),
            state: SpinLock::new(state),
            changed: WaitQueue::new(),
        });
        let object = VmObject::paged(kernel.host().vm(), own.clone(), 0, CopyStrategy::Delay);
        let Ok(object) = object else { return Ok((own, object)) };
        own.state.lock().object = Arc::downgrade(&object);
        if let Some([control, name]) = &own.ports {
            control.enable(Arc::new(Object::<M, P>::MemoryControl(own.own.clone())));
            name.enable(Arc::new(Object::<M, P>::MemoryName(own.own.clone())));
        }
        Ok((own, Ok(object)))
    }

    /// The object whose pages the pager has, unless it is ending.
    pub(super) fn object(&self) -> Option<Arc<VmObject<M>>> {
        self.state.lock().object.upgrade()
    }

    pub(super) fn machine(&self) -> &M {
        self.payer.ipc().machine()
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

    /// The pager has changed its attributes. It is ready if it was, or with `ready`.
    pub(super) fn set_attributes(&self, ready: bool, may_cache: bool, strategy: u32) {
        {
            let mut state = self.state.lock();
            state.ready |= ready;
            (state.may_cache, state.strategy) = (may_cache, strategy);
        }
        self.changed.wake_all();
        self.keep(may_cache);
        self.catch_up();
    }

    /// Has the object stay when nothing maps it any more, or not.
    fn keep(&self, may_cache: bool) {
        let Some(kernel) = self.kernel.upgrade() else { return };
        let number = self.pager.port_number();
        let gone = match self.object().filter(|_| may_cache) {
            Some(object) => kernel.object_cache.keep(number, &self.payer, object),
            None => kernel.object_cache.forget(number),
        };
        drop(gone);
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
        self.keep(false);
    }

    /// The pager has changed its prohibitions.
    pub(super) fn unlocked(&self) {
        self.state.lock().unlocks += 1;
        self.changed.wake_all();
    }

    /// The pager has called: it is not silent.
    pub(super) fn is_heard(&self) {
        self.state.lock().silent = false;
    }

    /// A call of the pager has been carried out: it gets pages that are held. Not before, since it
    /// does not know of them when it calls.
    pub(super) fn catch_up(&self) {
        if !self.state.lock().held.is_empty() {
            let _: Option<()> = now(self.send_held(0, u64::MAX, false));
        }
    }

    /// Sets how many pages one request is for at most.
    pub(super) fn set_cluster(&self, pages: u64) {
        self.state.lock().cluster = pages;
    }

    /// When an access that begins to wait now gives up.
    fn deadline(&self) -> u64 {
        let patience = self.kernel.upgrade().map_or(0, |kernel| kernel.pager_patience());
        let patience = if self.state.lock().silent { patience.min(LOOK) } else { patience };
        self.machine().now().saturating_add(patience)
    }

    /// Waits until `look` returns a value, at most until `end`.
    ///
    /// # Errors
    /// `MemoryError`: the pager has given up the object, has died, or is silent; or the object is
    /// not used any more.
    async fn until<T>(
        &self,
        end: u64,
        mut look: impl FnMut(&mut State<M>) -> Option<T> + Unpin,
    ) -> KernResult<T> {
        let machine = self.machine();
        let interruption = Interruption::new();
        loop {
            let found = self.changed.wait_until(|| {
                let mut state = self.state.lock();
                if state.destroyed {
                    return Some(Err(KernError::MemoryError));
                }
                look(&mut state).map(Ok)
            });
            let next = machine.now().saturating_add(LOOK).min(end);
            if let Ok(found) = interruption.wait(machine, Some(next), found).await {
                return found;
            }
            if machine.now() >= end {
                self.state.lock().silent = true;
                return Err(KernError::MemoryError);
            }
            let is_used = self.object().is_some_and(|object| !object.is_only_paged());
            if self.pager.is_dead() || !is_used {
                return Err(KernError::MemoryError);
            }
        }
    }

    /// Asks for the pages of a request, and passes the answers on as they come.
    async fn request(&self, request: &DataRequest<'_, M>) -> KernResult {
        let Some(pages) = self.answer_held(request).await? else { return Ok(()) };
        let end = self.deadline();
        let mut answers = Vec::new();
        answers.try_reserve_exact(pages).map_err(|_| KernError::ResourceShortage)?;
        let open = Open::new(self, request.offset, &request.frames[..pages])?;
        self.until(end, |state| (state.ready && !self.is_full()).then_some(())).await?;
        // The pager may have answered before it was asked. It is not asked for these pages: when it
        // is, they may have been changed and be on their way to it.
        let mut next = 0;
        while let Some((first, after)) = { self.state.lock().requests.next_to_send(&open, next) } {
            next = after;
            let (mut caller, control) = self.caller()?;
            let mut client = Client { transport: &mut caller, to: 0 };
            let offset = request.offset + ((first as u64) << PAGE_SHIFT);
            let (length, access) = (((after - first) as u64) << PAGE_SHIFT, u32::from(request.access.bits()));
            let sent = client.memory_object_data_request(control, offset, length, access).await;
            sent.map_err(|_| KernError::ResourceShortage)?;
        }
        loop {
            let left = self.until(end, |state| state.requests.take_answers(&open, &mut answers)).await?;
            request.settle(answers.drain(..));
            if left == 0 {
                return Ok(());
            }
        }
    }

    /// Gives the pager pages that leave memory: they are held, and sent if they can be.
    async fn give(&self, data: &DataReturn<'_, M>) -> KernResult {
        self.state.lock().held.reserve()?;
        data.take(|pages, count| {
            self.state.lock().held.push(Run::new(data.offset, pages, count, data.dirty));
        })?;
        self.send_held(0, u64::MAX, false).await;
        Ok(())
    }

    /// Gives the pager the bytes of pages that stay in memory, or of an object that ends.
    async fn give_bytes(&self, data: &DataReturn<'_, M>) -> KernResult {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(data.length()).map_err(|_| KernError::ResourceShortage)?;
        bytes.resize(data.length(), 0);
        data.read(0, &mut bytes);
        let size = data.length() as u64;
        self.return_data(data.offset, Item::Bytes(bytes), size, (data.dirty, data.kept)).await
    }

    /// Sends the pager data. A message that is only sent needs no wait.
    pub(super) async fn return_data(
        &self,
        offset: u64,
        item: Item<M>,
        size: u64,
        (dirty, kept): (bool, bool),
    ) -> KernResult {
        let (mut caller, control) = self.caller()?;
        let memory = Memory { address: caller.add(item), count: size as u32, deallocate: true };
        let mut client = Client { transport: &mut caller, to: 0 };
        let (dirty, kept) = (u32::from(dirty), u32::from(kept));
        let sent = client.memory_object_data_return(control, offset, memory, dirty, kept).await;
        sent.map_err(|_| KernError::ResourceShortage)
    }

    async fn ask_to_unlock(&self, offset: u64, access: Protection) -> KernResult {
        let end = self.deadline();
        let before = self.state.lock().unlocks;
        let access = u32::from(access.bits());
        {
            let (mut caller, control) = self.caller()?;
            let mut client = Client { transport: &mut caller, to: 0 };
            let sent = client.memory_object_data_unlock(control, offset, PAGE_SIZE, access).await;
            sent.map_err(|_| KernError::ResourceShortage)?;
        }
        self.until(end, |state| (state.unlocks != before).then_some(())).await
    }

    /// Counts pages that are requested and not answered, or with `false` that are not any more.
    pub(super) fn count_requested(&self, pages: usize, more: bool) {
        let Some(kernel) = self.kernel.upgrade() else { return };
        let pages = pages as u64;
        // Relaxed: the count is a bound, and protects nothing.
        match more {
            true => kernel.requested_pages.fetch_add(pages, Ordering::Relaxed),
            false => kernel.requested_pages.fetch_sub(pages, Ordering::Relaxed),
        };
    }
}

impl<M: Machine, P: PortPersonality<M>> Pager<M> for MemoryObject<M, P> {
    fn data_request<'a>(&'a self, request: DataRequest<'a, M>) -> BoxFuture<'a, KernResult<usize>> {
        Box::pin(async move { self.request(&request).await.map(|()| request.length()) })
    }

    fn answers_in_parts(&self) -> bool {
        true
    }

    fn most_pages(&self) -> u64 {
        let has_room = self.kernel.upgrade().is_some_and(|kernel| {
            // Pagers that do not answer could otherwise keep all memory for as long as they may.
            let most = u64::from(kernel.host().machine().frame_limit()) / 16;
            kernel.requested_pages.load(Ordering::Relaxed) < most.max(MOST_REQUESTED)
        });
        let state = self.state.lock();
        let left = MOST_REQUESTED.saturating_sub(state.requests.pages() as u64);
        if has_room { state.cluster.min(left) } else { 0 }
    }

    fn data_return<'a>(&'a self, data: DataReturn<'a, M>) -> BoxFuture<'a, KernResult> {
        Box::pin(async move { if data.kept { self.give_bytes(&data).await } else { self.give(&data).await } })
    }

    fn ended(&self, machine: &M, left: &mut dyn Iterator<Item = LeftPage>) {
        let _: Option<()> = now(self.send_held(0, u64::MAX, true));
        let mut left = left.peekable();
        while let Some(LeftPage { offset, frame, dirty }) = left.next() {
            let (mut frames, mut count) = ([frame; RUN], 1);
            while count < RUN
                && let Some(next) = left.next_if(|page| {
                    page.dirty == dirty && page.offset == offset + ((count as u64) << PAGE_SHIFT)
                })
            {
                frames[count] = next.frame;
                count += 1;
            }
            let data = DataReturn::of_left_pages(machine, offset, &frames[..count], dirty);
            // Without memory for the message the pages are lost, as if the pager had died.
            let _ = now(self.give_bytes(&data));
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
        if !*self.told.get_mut() {
            return;
        }
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
