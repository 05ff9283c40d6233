//! What a native Mach task and its threads have in addition to Mach's own part of them.

use alloc::sync::Arc;

use mach::ipc::{Disposition, Interruption, Ipc, Name, PortRight, Right, SendRight, Space};
use mach::machine::Machine;
use mach::thread::{Exception, Handled};
use mach::{KernError, KernResult, Personality, Thread};

/// The personality of tasks that run native Mach programs.
pub struct Native;

impl<M: Machine> Personality<M> for Native {
    type Task = NativeTask<M>;
    type Thread = NativeThread<M>;

    async fn raise(_thread: &Arc<Thread<M, Self>>, _exception: &Exception) -> Handled {
        Handled::Pass
    }
}

/// A task's names for ports, and the task's own port.
pub struct NativeTask<M: Machine> {
    pub(crate) space: Arc<Space<M>>,
    pub(crate) port: KernelPort<M>,
}

impl<M: Machine> NativeTask<M> {
    pub(crate) fn new(ipc: &Arc<Ipc<M>>, kernel: &Arc<Space<M>>) -> KernResult<Self> {
        Ok(Self { space: Space::new(ipc), port: KernelPort::new(kernel)? })
    }

    /// The names of the task.
    pub fn space(&self) -> &Arc<Space<M>> {
        &self.space
    }
}

/// The port of a thread, and what ends the thread's waits.
pub struct NativeThread<M: Machine> {
    pub(crate) port: KernelPort<M>,
    pub(crate) interruption: Interruption,
}

impl<M: Machine> NativeThread<M> {
    pub(crate) fn new(kernel: &Arc<Space<M>>) -> KernResult<Self> {
        Ok(Self { port: KernelPort::new(kernel)?, interruption: Interruption::new() })
    }
}

/// A port whose receive right the server has, in a space of its own.
pub(crate) struct KernelPort<M: Machine> {
    kernel: Arc<Space<M>>,
    name: Name,
    right: SendRight<M>,
}

impl<M: Machine> KernelPort<M> {
    /// Makes a port.
    ///
    /// # Errors
    /// `NoSpace`, `ResourceShortage`: there are too many ports, or no memory.
    pub(crate) fn new(kernel: &Arc<Space<M>>) -> KernResult<Self> {
        let name = kernel.allocate(PortRight::Receive)?;
        match kernel.extract_right(name, Disposition::MakeSend)? {
            Right::Send(right) => Ok(Self { kernel: kernel.clone(), name, right }),
            _ => Err(KernError::Failure),
        }
    }

    /// A send right to the port.
    pub(crate) fn send(&self) -> Right<M> {
        self.right.copy().map_or(Right::Dead, Right::Send)
    }

    /// Whether `right` is a send right to the port.
    pub(crate) fn is_of(&self, right: &Right<M>) -> bool {
        matches!(right, Right::Send(right) if right.is_of_same_port(&self.right))
    }
}

impl<M: Machine> Drop for KernelPort<M> {
    fn drop(&mut self) {
        // The name is this port's alone, so that only a kernel that has ended knows it no more.
        let _ = self.kernel.destroy(self.name);
    }
}
