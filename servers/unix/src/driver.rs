//! The Unix server's [`Driver`] on L4: it provides threads, tasks and the console.

use crate::about;
use crate::bounce::{self, Library};
use crate::environment::TimeScale;
use crate::port::Port;
use crate::report::say;
use crate::shared_object::{self, Clock, SharedObject};
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::future::Future;
use core::time::Duration;
use mach::Machine;
use mach::machine::Protection;
use mach_l4::{L4Machine, UserThread};
use rt::executor::TaskAssignment;
use rt::heap::{Extent, Keeping};
use unix::Result;
use unix::process::Pid;
use unix::thread::{End, Shortage, SystemPage, Task, context_error};
use unix_server::Driver;
use unix_server::options::{Mode, Options};

/// The worker that runs the tasks of the system as a whole; it is the one that has opened the
/// console.
const WORKER: usize = 0;

/// Parts of the server's initial heap that are kept for the server itself. With less free or
/// borrowable memory than one part in `LOW_PART`, programs without privileges get nothing new; with
/// less than one in `CRITICAL_PART`, no program does.
const LOW_PART: usize = 4;
const CRITICAL_PART: usize = 8;

/// The driver of the Unix server on the L4 machine.
pub(crate) struct L4Driver {
    machine: L4Machine,
    port: Arc<Port>,
    /// The server's heap, and its size in bytes when the server began.
    heap: &'static Keeping,
    first_heap: usize,
    /// Whether log messages are kept off the console.
    quiet: bool,
    /// The emulation library; only in bounce mode.
    library: Option<Library>,
    /// The shared object that every program finds in its memory.
    shared_object: SharedObject,
}

impl L4Driver {
    /// Makes the driver. Fails with `ENOMEM` if memory is short.
    pub(crate) fn new(
        machine: L4Machine,
        port: Arc<Port>,
        heap: &'static Keeping,
        options: &Options,
    ) -> Result<L4Driver> {
        let library = match options.mode {
            Mode::Exception => None,
            Mode::Bounce => Some(Library::new(&machine)?),
        };
        let shared_object = SharedObject::new(&machine, TimeScale::of_kernel(), options.time)?;
        let first_heap = heap.extent().free;
        let quiet = options.quiet;
        Ok(L4Driver { machine, port, heap, first_heap, quiet, library, shared_object })
    }

    /// The page from which programs read the clocks.
    pub(crate) fn clock(&self) -> Clock {
        self.shared_object.clock()
    }

    /// Runs a task that serves the system as a whole. Fails with `ENOMEM` if memory is short.
    pub(crate) fn spawn_system_task(&self, task: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        self.machine.spawn(WORKER, task).map(drop).map_err(context_error)
    }
}

impl Driver<L4Machine> for L4Driver {
    type Task = TaskAssignment;

    fn prepare(&self, task: &Task<L4Machine>) -> Result<()> {
        if let Some(library) = &self.library {
            library.install(&self.machine, task)?;
        }
        Ok(())
    }

    fn provide(&self, task: &Task<L4Machine>, address: u64, access: Protection) -> Result<bool> {
        self.shared_object.provide(&self.machine, task, address, access)
    }

    fn system_pages(&self) -> &[SystemPage] {
        &shared_object::PAGES
    }

    fn observe(&self, task: &Task<L4Machine>) {
        if self.library.is_some() {
            bounce::suspend(&self.machine, task);
        }
    }

    fn identify(&self, thread: &UserThread, pid: Pid, tid: Pid) {
        if self.library.is_some() {
            bounce::set_ids(thread.id(), pid.number(), tid.number());
        }
    }

    fn set_task(&self, thread: &UserThread, task: TaskAssignment) {
        thread.set_task(task);
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Result<TaskAssignment> {
        let spawned = self.machine.spawn(self.machine.current_worker(), task);
        spawned.map(|task| task.assignment()).map_err(context_error)
    }

    fn log(&self, line: fmt::Arguments<'_>) {
        if !self.quiet {
            say(format_args!("unix: {line}"));
        }
    }

    fn shortage(&self) -> Shortage {
        let Extent { free, obtainable, .. } = self.heap.extent();
        match free.saturating_add(obtainable) {
            left if left < self.first_heap / CRITICAL_PART => Shortage::Critical,
            left if left < self.first_heap / LOW_PART => Shortage::Low,
            left if left < 2 * (self.first_heap / LOW_PART) => Shortage::None,
            _ => Shortage::Far,
        }
    }

    fn borrowed_memory(&self) -> u64 {
        self.heap.extent().borrowed as u64
    }

    fn give_memory_back(&self) {
        self.heap.trim(self.first_heap / LOW_PART);
    }

    fn now(&self) -> Duration {
        Duration::from_micros(self.machine.now())
    }

    fn end(&self, how: End) -> Result<()> {
        let port = self.port.clone();
        self.spawn_system_task(async move {
            port.drain().await;
            match how {
                End::Restart => crate::restart(),
                End::Halt | End::PowerOff => crate::end(0),
            }
        })
    }

    fn description(&self) -> String {
        let Extent { used, free, .. } = self.heap.extent();
        about::text(self.library.is_some(), (used, used + free))
    }

    fn processors(&self) -> usize {
        self.machine.processors()
    }

    fn processor_times(&self, processor: usize) -> Option<(Duration, Duration)> {
        let times = self.machine.processor_times(processor)?;
        Some((Duration::from_micros(times.program), Duration::from_micros(times.server)))
    }
}
