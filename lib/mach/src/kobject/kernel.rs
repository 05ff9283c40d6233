//! The ports of a host, and the tasks and threads that programs make.

use alloc::collections::BTreeMap;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use macadamia_sync::SpinLock;
use mach_interfaces::task_notify;

use super::client::Caller;
use super::clock::Clock;
use super::gsync::Waiters;
use super::memory_object::MemoryObject;
use super::object_cache::ObjectCache;
use super::ports::copy;
use super::serve::Buffer;
use super::{Environment, Object, PortPersonality, TaskPorts, ThreadPorts};
use crate::host::Host;
use crate::ipc::{Ipc, KernelPort, KernelServer, Name, Right, Space};
use crate::machine::Machine;
use crate::processor_set::ProcessorSet;
use crate::task::Task;
use crate::thread::Thread;
use crate::{KernError, KernResult};

/// The two ports of a processor set.
struct SetPorts<M: Machine> {
    set: Arc<ProcessorSet<M>>,
    control: KernelPort<M>,
    name: KernelPort<M>,
}

/// The two ports of a processor.
struct ProcessorPorts<M: Machine> {
    control: KernelPort<M>,
    name: KernelPort<M>,
}

/// The ports of the host and of what it has.
struct HostPorts<M: Machine> {
    host: KernelPort<M>,
    control: KernelPort<M>,
    processors: Vec<ProcessorPorts<M>>,
    sets: Vec<SetPorts<M>>,
}

/// How long an access waits for a pager unless it is set, in microseconds.
const PAGER_PATIENCE: u64 = 30_000_000;

/// How many messages wait for a pager unless it is set.
const PAGER_QUEUE: usize = 256;

/// A host whose tasks, threads, processors and processor sets are reached by ports.
pub struct Kernel<M: Machine, P: PortPersonality<M>> {
    host: Arc<Host<M, P>>,
    ipc: Arc<Ipc<M>>,
    /// Pays for the ports of the host.
    space: Arc<Space<M>>,
    own: Weak<Self>,
    /// `None` only while the kernel is being made.
    ports: SpinLock<Option<HostPorts<M>>>,
    environment: SpinLock<Option<Weak<dyn Environment<M, P>>>>,
    pub(super) clock: SpinLock<Clock>,
    pub(super) buffers: SpinLock<Vec<Buffer>>,
    pub(super) waiters: Waiters,
    /// The memory objects of programs, by the numbers of their pagers' ports.
    pub(super) memory_objects: SpinLock<BTreeMap<u64, Weak<MemoryObject<M, P>>>>,
    /// The memory objects that stay when nothing maps them.
    pub(super) object_cache: ObjectCache<M>,
    /// How many pages of all memory objects are requested of their pagers and not answered.
    pub(super) requested_pages: AtomicU64,
    /// How long an access waits for a pager, in microseconds.
    pager_patience: AtomicU64,
    /// How many messages wait for a pager before pages are held back.
    pager_queue: AtomicUsize,
    /// The port that is told of new tasks.
    pub(super) new_tasks: SpinLock<Right<M>>,
}

impl<M: Machine, P: PortPersonality<M>> Kernel<M, P> {
    /// Makes the ports of a host. The machine started at the time of day `started`, in microseconds
    /// since 1970.
    ///
    /// # Errors
    /// `ResourceShortage`: memory is short.
    pub fn new(host: &Arc<Host<M, P>>, ipc: &Arc<Ipc<M>>, started: u64) -> KernResult<Arc<Self>> {
        let kernel = Arc::new_cyclic(|own| Self {
            host: host.clone(),
            ipc: ipc.clone(),
            space: Space::new(ipc),
            own: own.clone(),
            ports: SpinLock::new(None),
            environment: SpinLock::new(None),
            clock: SpinLock::new(Clock::new(started)),
            buffers: SpinLock::new(Vec::new()),
            waiters: Waiters::new(),
            memory_objects: SpinLock::new(BTreeMap::new()),
            object_cache: ObjectCache::new(),
            requested_pages: AtomicU64::new(0),
            pager_patience: AtomicU64::new(PAGER_PATIENCE),
            pager_queue: AtomicUsize::new(PAGER_QUEUE),
            new_tasks: SpinLock::new(Right::Null),
        });
        let processors = host.machine().processors();
        let processors = (0..processors).map(|processor| {
            let control = kernel.port(Object::Processor(processor))?;
            Ok(ProcessorPorts { control, name: kernel.port(Object::ProcessorName(processor))? })
        });
        let ports = HostPorts {
            host: kernel.port(Object::Host)?,
            control: kernel.port(Object::HostControl)?,
            processors: processors.collect::<KernResult<_>>()?,
            sets: Vec::from([kernel.set_ports(host.default_set())?]),
        };
        *kernel.ports.lock() = Some(ports);
        Ok(kernel)
    }

    /// Sets the server in which the kernel runs.
    pub fn set_environment(&self, environment: Weak<dyn Environment<M, P>>) {
        *self.environment.lock() = Some(environment);
    }

    /// Sets how long an access to the memory of a pager that is a program waits for the pager, in
    /// microseconds. Afterwards it fails with a memory error. Until the pager calls again, other
    /// accesses wait a tenth of a second at most.
    pub fn set_pager_patience(&self, patience: u64) {
        self.pager_patience.store(patience, Ordering::Relaxed);
    }

    /// Sets how many messages wait for a pager that is a program. Beyond that it is asked for
    /// nothing, and pages that leave memory are held until it receives again.
    pub fn set_pager_queue(&self, messages: usize) {
        self.pager_queue.store(messages, Ordering::Relaxed);
    }

    pub(super) fn pager_queue(&self) -> usize {
        self.pager_queue.load(Ordering::Relaxed)
    }

    pub(super) fn pager_patience(&self) -> u64 {
        self.pager_patience.load(Ordering::Relaxed)
    }

    /// The server in which the kernel runs.
    ///
    /// # Errors
    /// `Failure`: there is none.
    pub(super) fn environment(&self) -> KernResult<Arc<dyn Environment<M, P>>> {
        self.environment.lock().as_ref().and_then(Weak::upgrade).ok_or(KernError::Failure)
    }

    /// The host.
    pub fn host(&self) -> &Arc<Host<M, P>> {
        &self.host
    }

    /// The ports of the system.
    pub fn ipc(&self) -> &Arc<Ipc<M>> {
        &self.ipc
    }

    /// What carries out messages to the ports of this kernel.
    pub(super) fn server(&self) -> Weak<dyn KernelServer<M>> {
        self.own.clone()
    }

    /// Makes a port of the host that stands for an object.
    fn port(&self, object: Object<M, P>) -> KernResult<KernelPort<M>> {
        let port = KernelPort::new(&self.space, self.server())?;
        port.enable(Arc::new(object));
        Ok(port)
    }

    fn set_ports(&self, set: &Arc<ProcessorSet<M>>) -> KernResult<SetPorts<M>> {
        let control = self.port(Object::Set(set.clone()))?;
        Ok(SetPorts { set: set.clone(), control, name: self.port(Object::SetName(set.clone()))? })
    }

    fn with_ports(&self, with: impl FnOnce(&HostPorts<M>) -> Right<M>) -> Right<M> {
        self.ports.lock().as_ref().map_or(Right::Null, with)
    }

    /// A send right to the host's port, which every task may have: `mach_host_self`.
    pub fn host_right(&self) -> Right<M> {
        self.with_ports(|ports| ports.host.send_right())
    }

    /// Gives a task a send right to the host's port, and returns the name.
    ///
    /// # Errors
    /// Those of [`Space::copyout_right`].
    pub fn name_host(&self, space: &Space<M>) -> KernResult<Name> {
        let named = self.ports.lock().as_ref().and_then(|ports| ports.host.add_reference(space));
        named.map_or_else(|| space.copyout_right(self.host_right()), Ok)
    }

    /// A send right to the port that controls the host, for privileged tasks.
    pub fn host_control_right(&self) -> Right<M> {
        self.with_ports(|ports| ports.control.send_right())
    }

    /// Send rights to the control ports of all processors.
    pub(super) fn processor_rights(&self) -> Vec<Right<M>> {
        let ports = self.ports.lock();
        let all = ports.iter().flat_map(|ports| &ports.processors);
        all.map(|processor| processor.control.send_right()).collect()
    }

    /// A send right to the name port of a processor.
    pub(super) fn processor_name(&self, processor: usize) -> Right<M> {
        self.with_ports(|ports| {
            ports.processors.get(processor).map_or(Right::Null, |ports| ports.name.send_right())
        })
    }

    fn set_right(&self, set: &Arc<ProcessorSet<M>>, of: fn(&SetPorts<M>) -> &KernelPort<M>) -> Right<M> {
        self.with_ports(|ports| {
            let found = ports.sets.iter().find(|ports| Arc::ptr_eq(&ports.set, set));
            found.map_or(Right::Null, |ports| of(ports).send_right())
        })
    }

    /// A send right to the control port of a processor set.
    pub(super) fn set_control(&self, set: &Arc<ProcessorSet<M>>) -> Right<M> {
        self.set_right(set, |ports| &ports.control)
    }

    /// A send right to the name port of a processor set.
    pub(super) fn set_name(&self, set: &Arc<ProcessorSet<M>>) -> Right<M> {
        self.set_right(set, |ports| &ports.name)
    }

    /// Makes a processor set and its ports.
    ///
    /// # Errors
    /// `ResourceShortage`: memory is short.
    pub(super) fn create_set(&self) -> KernResult<Arc<ProcessorSet<M>>> {
        let set = self.host.create_processor_set();
        let made = self.set_ports(&set);
        match made {
            Ok(made) => {
                if let Some(ports) = &mut *self.ports.lock() {
                    ports.sets.push(made);
                }
                Ok(set)
            }
            Err(error) => {
                self.host.destroy_processor_set(&set)?;
                Err(error)
            }
        }
    }

    /// Ends a processor set and its ports.
    ///
    /// # Errors
    /// Those of [`Host::destroy_processor_set`].
    pub(super) fn destroy_set(&self, set: &Arc<ProcessorSet<M>>) -> KernResult {
        self.host.destroy_processor_set(set)?;
        let ended = {
            let mut ports = self.ports.lock();
            let sets = ports.as_mut().map(|ports| &mut ports.sets);
            sets.and_then(|sets| {
                let place = sets.iter().position(|ports| Arc::ptr_eq(&ports.set, set))?;
                Some(sets.swap_remove(place))
            })
        };
        drop(ended);
        Ok(())
    }

    /// The time of day, in microseconds since 1970.
    pub(super) fn time_of_day(&self) -> u64 {
        self.clock.lock().time(self.host.machine().now())
    }

    /// Makes a task without a parent, whose port stands for it. Its address space has the addresses
    /// from `lowest` to before `highest`.
    ///
    /// # Errors
    /// Those of [`Host::create_task_of`].
    pub async fn create_first_task(
        self: &Arc<Self>,
        lowest: u64,
        highest: u64,
        personality: impl FnOnce(TaskPorts<M>) -> P::Task,
    ) -> KernResult<Arc<Task<M, P>>> {
        let ports = TaskPorts::new(self)?;
        let task = self.host.create_task_of(lowest, highest, |_| personality(ports)).await?;
        P::task_ports(&task).enable(&task);
        Ok(task)
    }

    /// Makes a child task, whose port stands for it: `task_create`.
    ///
    /// # Errors
    /// Those of [`Task::create_child`].
    pub async fn create_task(
        self: &Arc<Self>,
        parent: &Arc<Task<M, P>>,
        inherit: bool,
    ) -> KernResult<Arc<Task<M, P>>> {
        let ports = TaskPorts::of_child(self, P::task_ports(parent))?;
        let task = parent.create_child(inherit, |map| P::new_task(parent, map, ports)).await?;
        P::task_ports(&task).enable(&task);
        self.tell_new_task(&task, parent).await;
        Ok(task)
    }

    /// Tells the port for new tasks, if there is one, of a task.
    async fn tell_new_task(&self, task: &Arc<Task<M, P>>, parent: &Arc<Task<M, P>>) {
        let Right::Send(port) = copy(&self.new_tasks.lock()) else { return };
        let mut caller = Caller::new(&self.space, port, None);
        let task = caller.give(P::task_ports(task).port());
        let parent = caller.give(P::task_ports(parent).port());
        let mut client = task_notify::Client { transport: &mut caller, to: 0 };
        // Without memory for the message, the port is not told.
        let _ = client.mach_notify_new_task(task, parent).await;
    }

    /// Makes a thread that is suspended once, whose port stands for it: `thread_create`. Its events
    /// are served from now on.
    ///
    /// # Errors
    /// Those of [`Task::create_thread_of`]. `Failure`: the kernel has no environment.
    pub async fn create_thread(self: &Arc<Self>, task: &Arc<Task<M, P>>) -> KernResult<Arc<Thread<M, P>>> {
        let environment = self.environment()?;
        let ports = ThreadPorts::new(self, P::task_ports(task))?;
        let thread = task.create_thread_of(1, |context| P::new_thread(task, context, ports)).await?;
        P::thread_ports(&thread).enable(&thread);
        if let Err(error) = environment.begin(&thread) {
            thread.terminate();
            return Err(error);
        }
        Ok(thread)
    }
}
