//! Kernel objects: hosts, processors, processor sets, tasks and threads as ports.
//!
//! A program has a task only by a right to the task's port. A message to such a port is a call of
//! the library. It is not queued: while it is sent, the generated server of its interface
//! (`lib/mach-interfaces`) decodes it and calls the library, and the reply goes to the reply port.
//!
//! | module | what it holds |
//! |---|---|
//! | [`Kernel`] | the ports of the host, its processors and sets; makes tasks and threads |
//! | [`TaskPorts`], [`ThreadPorts`] | the ports of a task and of a thread, which keep them |
//! | `serve` | from a message to its server, and from there to the reply |
//! | `call` | rights and memory of a message as the generated servers see them |
//! | `form` | the form in which the kernel's stubs see messages |
//! | `client` | the kernel as the client of a program |
//! | `memory_object`, `page_requests`, `held_pages`, `object_cache` | external pagers |
//! | [`raise`] | exceptions by port |
//! | `names`, `tasks`, `memory`, `state`, `hosts`, `gnu`, `gsync`, `debug`, `machine` | the calls |
//! | `pager_calls` | the calls of pagers |
//!
//! An object is alive while its port stands for it. The end of a task or thread ends its port, as
//! the system's personality tells ([`Personality::task_ended`]): the rights to the port become dead
//! names, and the notifications that were asked for are sent.
mod call;
mod client;
mod clock;
mod debug;
mod error;
mod exception;
mod form;
mod gnu;
mod gsync;
mod held_pages;
mod hosts;
mod info;
mod kernel;
mod machine;
mod memory;
mod memory_object;
mod names;
mod object_cache;
mod page_requests;
mod pager_calls;
mod ports;
mod serve;
mod state;
mod tasks;

use alloc::sync::{Arc, Weak};

use crate::machine::Machine;
use crate::personality::Personality;
use crate::processor_set::ProcessorSet;
use crate::task::Task;
use crate::thread::Thread;
use crate::vm::VmMap;
use crate::{KernError, KernResult, ipc};
use memory_object::MemoryObject;

pub use exception::raise;
pub use kernel::Kernel;
pub use ports::{TaskPorts, ThreadPorts};

/// A personality whose tasks and threads are reached by ports.
pub trait PortPersonality<M: Machine>: Personality<M> {
    /// The ports of a task.
    fn task_ports(task: &Self::Task) -> &TaskPorts<M>;

    /// The ports of a thread.
    fn thread_ports(thread: &Self::Thread) -> &ThreadPorts<M>;

    /// Ends the thread's wait for a message or for room in a queue: `thread_abort`. Returns false
    /// if the thread is not in such a wait.
    fn interrupt(thread: &Self::Thread) -> bool {
        Self::thread_ports(thread).interruption.interrupt()
    }

    /// The data of a task that `task_create` makes.
    fn new_task(parent: &Arc<Task<M, Self>>, map: &Arc<VmMap<M>>, ports: TaskPorts<M>) -> Self::Task;

    /// The data of a thread that `thread_create` makes.
    fn new_thread(task: &Arc<Task<M, Self>>, context: &M::Thread, ports: ThreadPorts<M>) -> Self::Thread;
}

/// What the kernel needs of the server in which it runs.
pub trait Environment<M: Machine, P: PortPersonality<M>>: Send + Sync {
    /// Begins to serve a thread, which is suspended once.
    ///
    /// # Errors
    /// `ResourceShortage`: memory is short. The thread is then ended.
    fn begin(&self, thread: &Arc<Thread<M, P>>) -> KernResult;

    /// Halts or restarts the machine, or what the server has of it.
    ///
    /// # Errors
    /// `NotSupported`: the server cannot do that.
    fn reboot(&self, options: u32) -> KernResult {
        let _ = options;
        Err(KernError::NotSupported)
    }
}

/// What a kernel port stands for.
enum Object<M: Machine, P: PortPersonality<M>> {
    /// What every task may do with the host.
    Host,
    /// The control of the host.
    HostControl,
    Task(Arc<Task<M, P>>),
    Thread(Arc<Thread<M, P>>),
    /// The control of a processor.
    Processor(usize),
    ProcessorName(usize),
    /// The control of a processor set.
    Set(Arc<ProcessorSet<M>>),
    SetName(Arc<ProcessorSet<M>>),
    /// What the pager of a memory object may do with it.
    MemoryControl(Weak<MemoryObject<M, P>>),
    /// What tells a memory object from others.
    MemoryName(Weak<MemoryObject<M, P>>),
}

impl<M: Machine, P: PortPersonality<M>> Object<M, P> {
    /// The object for which a port stands; `None` if it is no object of this system.
    fn of(object: ipc::KernelObject) -> Option<Arc<Self>> {
        object.downcast().ok()
    }

    /// The type of the object in Mach's interfaces, and a number that identifies the object among
    /// those of the type.
    fn identity(&self) -> (u32, u64) {
        match self {
            Self::Thread(thread) => (1, thread.id()),
            Self::Task(task) => (2, task.id()),
            Self::Host => (3, 0),
            Self::HostControl => (4, 0),
            Self::Processor(processor) | Self::ProcessorName(processor) => (5, *processor as u64),
            Self::Set(set) => (6, set.id()),
            Self::SetName(set) => (7, set.id()),
            Self::MemoryControl(object) | Self::MemoryName(object) => (9, object_number(object)),
        }
    }
}

/// The number of the memory of a memory object that has not ended.
fn object_number<M: Machine, P: PortPersonality<M>>(object: &Weak<MemoryObject<M, P>>) -> u64 {
    object.upgrade().and_then(|object| object.object()).map_or(0, |object| object.id())
}
