//! The server as the Unix library sees it: what makes and runs threads.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use core::fmt::Arguments;
use core::future::Future;
use core::marker::PhantomData;
use core::time::Duration;
use mach::Machine;
use mach::machine::ThreadState;
use unix::front_end::{FrontEndNumber, FrontEnds, Programs};
use unix::log::Log;
use unix::process::Pid;
use unix::thread::{End, Host, Shortage, Task, Thread};
use unix::{Error, Result};

/// What the server needs of the system below it, in addition to [`Machine`].
pub trait Driver<M: Machine>: Send + Sync + 'static {
    /// What identifies a spawned task.
    type Task;

    /// Puts what every program finds in its address space into a new one. `ENOMEM`.
    fn prepare(&self, task: &Task<M>) -> Result<()> {
        let _ = task;
        Ok(())
    }

    /// Says which Unix thread `thread` is, before it runs for the first time: for what the program
    /// can find out by itself.
    fn identify(&self, thread: &M::Thread, pid: Pid, tid: Pid);

    /// Says which task runs `thread`: the two may be served together. May do nothing.
    fn set_task(&self, thread: &M::Thread, task: Self::Task) {
        let _ = (thread, task);
    }

    /// Runs `task` concurrently with all others. `ENOMEM`.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Result<Self::Task>;

    /// Shows bytes on the console, after those of earlier calls.
    fn show(&self, bytes: &[u8]) -> impl Future<Output = ()> + Send;

    /// Takes bytes that were typed on the console, at least one; waits for them. At most one such
    /// future exists.
    fn typed(&self, buffer: &mut [u8]) -> impl Future<Output = usize> + Send;

    /// Writes a line to the system's log.
    fn log(&self, line: Arguments<'_>);

    /// How short the Unix server is of memory for itself.
    fn shortage(&self) -> Shortage {
        Shortage::None
    }

    /// Bytes of programs' memory that the server has borrowed for itself.
    fn borrowed_memory(&self) -> u64 {
        0
    }

    /// Gives back what it has borrowed and does not need.
    fn give_memory_back(&self) {}

    /// Time since the start.
    fn now(&self) -> Duration;

    /// Begins to end the system, after what the console still has to show. `ENOSYS` where that
    /// cannot be done.
    fn end(&self, how: End) -> Result<()> {
        let _ = how;
        Err(Error::ENOSYS)
    }

    /// What this system runs on: see [`Host::description`].
    fn description(&self) -> String {
        String::new()
    }

    /// Processors that threads may run on.
    fn processors(&self) -> usize;

    /// What a processor has been used for: see [`Host::processor_times`].
    fn processor_times(&self, processor: usize) -> Option<(Duration, Duration)> {
        let _ = processor;
        None
    }
}

/// The server around the Unix library: its [`Host`].
pub struct Server<M: Machine, D: Driver<M>, F: FrontEnds<M>> {
    me: Weak<Self>,
    pub(crate) front_ends: F,
    pub(crate) driver: D,
    /// Whether each system call is written to the log.
    pub(crate) trace: bool,
    /// The newest messages of the log, which programs read as `/dev/kmsg`.
    pub(crate) log: Arc<Log>,
    machine: PhantomData<fn(M)>,
}

impl<M: Machine, D: Driver<M>, F: FrontEnds<M>> Server<M, D, F> {
    /// A server for programs of these front ends. With `trace`, system calls are written to the
    /// log.
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

    /// Has `thread` served by a task of its own.
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
