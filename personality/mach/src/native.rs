//! What a native Mach task and its threads have in addition to Mach's own part of them.

use alloc::sync::Arc;

use mach::ipc::{HeldReceiver, Space};
use mach::kobject::{self, PortPersonality, TaskPorts, ThreadPorts};
use mach::machine::Machine;
use mach::thread::{Exception, Handled};
use mach::vm::VmMap;
use mach::{Personality, Task, Thread};

/// The personality of tasks that run native Mach programs.
pub struct Native;

impl<M: Machine> Personality<M> for Native {
    type Task = NativeTask<M>;
    type Thread = NativeThread<M>;

    async fn raise(thread: &Arc<Thread<M, Self>>, exception: &Exception) -> Handled {
        kobject::raise(thread, exception).await
    }

    fn task_ended(task: &NativeTask<M>) {
        task.ports.end();
    }

    fn thread_ended(thread: &NativeThread<M>) {
        thread.receiver.leave();
        thread.ports.end();
    }
}

impl<M: Machine> PortPersonality<M> for Native {
    fn task_ports(task: &NativeTask<M>) -> &TaskPorts<M> {
        &task.ports
    }

    fn thread_ports(thread: &NativeThread<M>) -> &ThreadPorts<M> {
        &thread.ports
    }

    fn interrupt(thread: &NativeThread<M>) -> bool {
        thread.receiver.interrupt() || thread.ports.interruption.interrupt()
    }

    fn new_task(_: &Arc<Task<M, Self>>, _: &Arc<VmMap<M>>, ports: TaskPorts<M>) -> NativeTask<M> {
        NativeTask { ports }
    }

    fn new_thread(task: &Arc<Task<M, Self>>, context: &M::Thread, ports: ThreadPorts<M>) -> NativeThread<M> {
        NativeThread { ports, receiver: HeldReceiver::new(context, task.ports.space(), task.map()) }
    }
}

/// The ports of a task.
pub struct NativeTask<M: Machine> {
    pub(crate) ports: TaskPorts<M>,
}

impl<M: Machine> NativeTask<M> {
    /// The task's names for rights.
    pub fn space(&self) -> &Arc<Space<M>> {
        self.ports.space()
    }
}

/// The ports of a thread, and its waits.
pub struct NativeThread<M: Machine> {
    pub(crate) ports: ThreadPorts<M>,
    /// Where the thread waits for messages without its task.
    pub(crate) receiver: Arc<HeldReceiver<M>>,
}
