//! The server as the Unix library sees it: its [`Host`], which makes and runs threads.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use core::fmt::Arguments;
use core::future::Future;
use core::marker::PhantomData;
use core::time::Duration;
use mach::Machine;
use mach::machine::{Protection, ThreadState};
use unix::front_end::{FrontEndNumber, FrontEnds, Programs};
use unix::log::Log;
use unix::process::Pid;
use unix::thread::{End, Host, Shortage, SystemPage, Task, Thread};
use unix::{Error, Result};

/// The operations of the machine that the server needs in addition to [`Machine`].
pub trait Driver<M: Machine>: Send + Sync + 'static {
    /// The handle of a spawned task.
    type Task;

    /// Maps into a new address space what every program finds there. Fails with `ENOMEM` if memory
    /// is short.
    fn prepare(&self, task: &Task<M>) -> Result<()> {
        let _ = task;
        Ok(())
    }

    /// Maps what every program finds in its memory, if a program has accessed `address`, where it
    /// is. False: it is not there, or the access is not allowed. Fails with `ENOMEM` if memory is
    /// short.
    fn provide(&self, task: &Task<M>, address: u64, access: Protection) -> Result<bool> {
        let _ = (task, address, access);
        Ok(false)
    }

    /// The pages that [`provide`](Self::provide) maps.
    fn system_pages(&self) -> &[SystemPage] {
        &[]
    }

    /// Makes every system call of the programs in an address space come to the server.
    fn observe(&self, task: &Task<M>) {
        let _ = task;
    }

    /// Tells the machine the process and thread id of `thread`, which has not run yet, so that the
    /// program can find them out without a system call.
    fn identify(&self, thread: &M::Thread, pid: Pid, tid: Pid);

    /// Tells the machine which task serves `thread`, so that both can be scheduled together. May do
    /// nothing.
    fn set_task(&self, thread: &M::Thread, task: Self::Task) {
        let _ = (thread, task);
    }

    /// Runs `task` concurrently with all others. Fails with `ENOMEM` if memory is short.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Result<Self::Task>;

    /// Writes a line to the system's log.
    fn log(&self, line: Arguments<'_>);

    /// How short of memory for itself the Unix server is.
    fn shortage(&self) -> Shortage {
        Shortage::None
    }

    /// How many bytes of programs' memory the server has borrowed for itself.
    fn borrowed_memory(&self) -> u64 {
        0
    }

    /// Gives back borrowed memory that the server does not need.
    fn give_memory_back(&self) {}

    /// The time since the system's start.
    fn now(&self) -> Duration;

    /// Begins to end the system, after the console has shown all output. Fails with `ENOSYS` where
    /// the system cannot be ended.
    fn end(&self, how: End) -> Result<()> {
        let _ = how;
        Err(Error::ENOSYS)
    }

    /// Describes the system below the server: see [`Host::description`].
    fn description(&self) -> String {
        String::new()
    }

    /// The number of processors that threads may run on.
    fn processors(&self) -> usize;

    /// How a processor's time was used: see [`Host::processor_times`].
    fn processor_times(&self, processor: usize) -> Option<(Duration, Duration)> {
        let _ = processor;
        None
    }
}

/// The Unix server: the implementation of the Unix library's [`Host`].
pub struct Server<M: Machine, D: Driver<M>, F: FrontEnds<M>> {
    me: Weak<Self>,
    pub(crate) front_ends: F,
    pub(crate) driver: D,
    /// Whether each system call is written to the log.
    pub(crate) trace: bool,
    /// The newest messages of the log, which programs read from `/dev/kmsg`.
    pub(crate) log: Arc<Log>,
    machine: PhantomData<fn(M)>,
}

impl<M: Machine, D: Driver<M>, F: FrontEnds<M>> Server<M, D, F> {
    /// Makes a server for programs of these front ends. With `trace`, system calls are written to
    /// the log.
    pub fn new(driver: D, front_ends: F, trace: bool) -> Arc<Self> {
        Arc::new_cyclic(|me| Server {
            me: me.clone(),
            front_ends,
            driver,
            trace,
            log: Log::new(),
            machine: PhantomData,
        })
    }

    /// Starts a task that serves `thread`.
    pub(crate) fn start(&self, thread: &Arc<Thread<M>>, task: impl Future<Output = ()> + Send + 'static) {
        match self.driver.spawn(task) {
            Ok(task) => self.driver.set_task(thread.machine_thread(), task),
            Err(_) => thread.out_of_memory(),
        }
    }

    /// The driver that the server was made with.
    pub fn driver(&self) -> &D {
        &self.driver
    }
}

impl<M: Machine, D: Driver<M>, F: FrontEnds<M>> Host<M> for Server<M, D, F> {
    fn prepare(&self, task: &Task<M>) -> Result<()> {
        self.driver.prepare(task)
    }

    fn system_pages(&self) -> &[SystemPage] {
        self.driver.system_pages()
    }

    fn observe(&self, task: &Task<M>) {
        self.driver.observe(task);
    }

    fn start_thread(&self, thread: Arc<Thread<M>>, state: Box<ThreadState>) {
        let Some(server) = self.me.upgrade() else { return };
        let running = thread.clone();
        self.start(&thread, server.run(running, state));
    }

    fn programs(&self, start: &[u8]) -> Option<(FrontEndNumber, &dyn Programs)> {
        self.front_ends.programs(start)
    }

    fn log(&self, line: Arguments<'_>) {
        self.log.add(self.driver.now(), &alloc::format!("{line}"));
        self.driver.log(line);
    }

    fn shortage(&self) -> Shortage {
        self.driver.shortage()
    }

    fn borrowed_memory(&self) -> u64 {
        self.driver.borrowed_memory()
    }

    fn give_memory_back(&self) {
        self.driver.give_memory_back();
    }

    fn kept_log(&self) -> Option<&Arc<Log>> {
        Some(&self.log)
    }

    fn end(&self, how: End) -> Result<()> {
        self.driver.end(how)
    }

    fn description(&self) -> String {
        self.driver.description()
    }

    fn processors(&self) -> usize {
        self.driver.processors()
    }

    fn processor_times(&self, processor: usize) -> Option<(Duration, Duration)> {
        self.driver.processor_times(processor)
    }
}
