//! A system of native Mach programs.

use alloc::sync::Arc;
use core::fmt::Arguments;
use core::future::Future;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mach::ipc::{Ipc, Limits, NameRule, Space};
use mach::machine::Machine;
use mach::thread::{Exception, ExceptionHandler, Handled};
use mach::vm::BoxFuture;
use mach::{Host, KernResult, Task, Thread};

use crate::native::{KernelPort, Native, NativeTask, NativeThread};

/// A task that runs a native program.
pub(crate) type ProgramTask<M> = Task<M, Native>;
/// A thread of such a task.
pub(crate) type ProgramThread<M> = Thread<M, Native>;

/// What a system needs of the server that it runs in.
pub trait Services<M: Machine>: Send + Sync + 'static {
    /// Runs `task`, which serves `thread`, concurrently with all others.
    ///
    /// # Errors
    /// `ResourceShortage`: there is no memory for the task.
    fn spawn(&self, thread: &M::Thread, task: impl Future<Output = ()> + Send + 'static) -> KernResult;

    /// Prints text of a program, after that of earlier calls.
    fn print(&self, text: &[u8]) -> impl Future<Output = ()> + Send;

    /// Writes a line to the system's log.
    fn log(&self, line: Arguments<'_>);

    /// The last thread of the system has ended. `clean`: no exception has ended a task.
    fn ended(&self, clean: bool);
}

/// Native Mach tasks, and the ports that the server itself has.
pub struct System<M: Machine, S> {
    pub(crate) host: Arc<Host<M, Native>>,
    pub(crate) ipc: Arc<Ipc<M>>,
    /// The space of the ports whose receive rights the server has.
    pub(crate) kernel: Arc<Space<M>>,
    pub(crate) host_name: KernelPort<M>,
    pub(crate) host_control: KernelPort<M>,
    pub(crate) device_master: KernelPort<M>,
    pub(crate) services: S,
    /// How many threads are served.
    pub(crate) threads: AtomicUsize,
    clean: AtomicBool,
}

impl<M: Machine, S: Services<M>> System<M, S> {
    /// A system without tasks.
    ///
    /// # Errors
    /// `ResourceShortage`: memory is short.
    pub fn new(host: Arc<Host<M, Native>>, limits: Limits, services: S) -> KernResult<Arc<Self>> {
        let ipc = Ipc::new(host.vm(), NameRule::Lowest, limits)?;
        let kernel = Space::new(&ipc);
        let system = Arc::new(Self {
            host_name: KernelPort::new(&kernel)?,
            host_control: KernelPort::new(&kernel)?,
            device_master: KernelPort::new(&kernel)?,
            host,
            ipc,
            kernel,
            services,
            threads: AtomicUsize::new(0),
            clean: AtomicBool::new(true),
        });
        let reporter: Arc<dyn ExceptionHandler<M, Native>> = Arc::new(Reporter(Arc::downgrade(&system)));
        system.host.set_exception_handler(Some(reporter));
        Ok(system)
    }

    /// The host of the system's tasks.
    pub fn host(&self) -> &Arc<Host<M, Native>> {
        &self.host
    }

    /// The services that the system was made with.
    pub fn services(&self) -> &S {
        &self.services
    }

    pub(crate) fn task_part(&self) -> KernResult<NativeTask<M>> {
        NativeTask::new(&self.ipc, &self.kernel)
    }

    pub(crate) fn thread_part(&self) -> KernResult<NativeThread<M>> {
        NativeThread::new(&self.kernel)
    }

    /// Counts a thread that is not served any more.
    pub(crate) fn thread_ended(&self) {
        // AcqRel: the thread that ends last sees what the others have done.
        if self.threads.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.services.ended(self.clean.load(Ordering::Relaxed));
        }
    }
}

/// Reports the exceptions that end tasks.
struct Reporter<M: Machine, S>(alloc::sync::Weak<System<M, S>>);

impl<M: Machine, S: Services<M>> ExceptionHandler<M, Native> for Reporter<M, S> {
    fn raise<'a>(
        &'a self,
        thread: &'a Arc<ProgramThread<M>>,
        exception: Exception,
    ) -> BoxFuture<'a, Handled> {
        alloc::boxed::Box::pin(async move {
            if let Some(system) = self.0.upgrade() {
                system.clean.store(false, Ordering::Relaxed);
                let Exception { kind, code, subcode, .. } = exception;
                let ip = thread.state().await.map_or(0, |state| state.rip);
                let task = thread.task().id();
                system.services.log(format_args!(
                    "task {task} ends: exception {kind:?}, code {code:#x}, {subcode:#x}, at {ip:#x}"
                ));
            }
            Handled::Pass
        })
    }
}
