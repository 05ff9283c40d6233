//! A thread of the L4 machine as the Unix library and the server's loop want it.

use crate::bounce;
use abi_linux::Request;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::time::Duration;
use mach::machine::ThreadState;
use mach::{KernError, KernResult};
use machine::{CallHandler, L4Machine, SystemCall};
use rt::executor::TaskHome;
use unix::memory::Memory;
use unix::process::{Control, Pid};
use unix::{BoxFuture, Error, Result};
use unix_server::{CallsAtOnce, Event, Resume};

/// A thread of a program. It ends when this is dropped.
pub(crate) struct ProgramThread {
    thread: machine::UserThread,
    /// Dropped after the thread: a space ends after its threads.
    _memory: Arc<Memory<L4Machine>>,
    /// Bytes of its extended state, at most.
    extended_size: usize,
    /// Whether system calls go to the emulation library first.
    bounces: bool,
}

impl ProgramThread {
    pub(crate) fn new(
        thread: machine::UserThread,
        memory: &Arc<Memory<L4Machine>>,
        extended_size: usize,
        bounces: bool,
    ) -> ProgramThread {
        // Faults that need not wait are served without the thread's task.
        thread.set_fault_handler(Some(memory.map().clone()));
        ProgramThread { thread, _memory: memory.clone(), extended_size, bounces }
    }
}

/// The server's handler as the machine has it.
struct Calls<C>(C);

impl<C: CallsAtOnce> CallHandler for Calls<C> {
    fn call(&self, call: &SystemCall) -> Option<u64> {
        self.0.call(&Request { number: call.number, arguments: call.arguments })
    }
}

/// Errors of the machine as Unix has them.
pub(crate) fn error(error: KernError) -> Error {
    match error {
        KernError::ResourceShortage => Error::ENOMEM,
        KernError::InvalidArgument => Error::EINVAL,
        _ => Error::ESRCH,
    }
}

impl Control for ProgramThread {
    fn recall(&self) {
        // One that has ended needs no recall.
        let _ = self.thread.recall();
    }

    fn times(&self) -> (Duration, Duration) {
        let times = self.thread.times();
        (Duration::from_micros(times.program), Duration::from_micros(times.server))
    }
}

impl unix::thread::UserThread for ProgramThread {
    fn registers(&self) -> Result<ThreadState> {
        self.thread.state().map_err(error)
    }

    fn extended_state(&self) -> BoxFuture<'_, Result<Vec<u8>>> {
        Box::pin(core::future::ready(self.read_extended_state()))
    }

    fn set_extended_state<'a>(&'a self, image: &'a [u8]) -> BoxFuture<'a, Result<()>> {
        Box::pin(core::future::ready(self.write_extended_state(image).map_err(error)))
    }

    fn processor(&self) -> usize {
        self.thread.processor()
    }

    fn affinity(&self) -> u64 {
        self.thread.affinity()
    }

    fn set_affinity(&self, mask: u64) -> Result<()> {
        self.thread.set_affinity(mask).map_err(error)
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl ProgramThread {
    fn read_extended_state(&self) -> Result<Vec<u8>> {
        let mut image = Vec::new();
        image.try_reserve_exact(self.extended_size).map_err(|_| Error::ENOMEM)?;
        image.resize(self.extended_size, 0);
        let size = self.thread.extended_state(&mut image).map_err(error)?;
        image.truncate(size);
        Ok(image)
    }

    fn write_extended_state(&self, image: &[u8]) -> KernResult {
        self.thread.set_extended_state(image)
    }
}

impl unix_server::UserThread for ProgramThread {
    type Task = TaskHome;

    fn set_ids(&self, pid: Pid, tid: Pid) {
        if self.bounces {
            bounce::set_ids(self.thread.id(), pid.number(), tid.number());
        }
    }

    fn serve_at_once(&self, calls: impl CallsAtOnce + 'static) {
        self.thread.set_call_handler(Arc::new(Calls(calls)));
    }

    fn set_task(&self, task: TaskHome) {
        self.thread.set_task(task);
    }

    fn take_task_of(&self, other: &ProgramThread) {
        self.thread.set_task_of(&other.thread);
    }

    async fn run(&self, resume: Resume) -> Event {
        let mut resume = match resume {
            Resume::Return(value) => machine::Resume::Return(value),
            Resume::Unchanged => machine::Resume::Continue,
            Resume::Registers(state) => machine::Resume::Registers(state),
        };
        loop {
            return match self.thread.run(resume).await {
                machine::Event::SystemCall(call) => {
                    Event::SystemCall(Request { number: call.number, arguments: call.arguments })
                }
                machine::Event::PageFault(fault) => {
                    Event::PageFault { address: fault.address, access: fault.access }
                }
                machine::Event::Exception(exception) => {
                    Event::Exception { vector: exception.vector, error: exception.error }
                }
                machine::Event::Recalled => Event::Recalled,
                machine::Event::Message(_) => {
                    // Nothing that a program may send itself means anything here.
                    resume = machine::Resume::Continue;
                    continue;
                }
                machine::Event::Ended => Event::Lost,
            };
        }
    }
}
