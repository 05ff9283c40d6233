//! Threads with their resources, and the operations that concern all of them: clone, exec, exit,
//! faults.
//!
//! [`System`] holds everything that processes share. [`Resources`] are a thread's: its address
//! space, descriptors and directories, each of which it may share with others; they are a part of
//! its Mach thread ([`Thread`]). Families of processes and signals are in
//! [`crate::process::Processes`]. The [`Host`] runs the threads.

mod by_tid;
mod clone;
mod context;
mod debug_registers;
mod exec;
mod exit;
mod inspect;
mod namespaces;
mod oom;
mod parts;
mod storage;

pub use crate::personality::{Task, Thread};
pub use clone::{CloneRequest, Unstarted};
pub use context::CallContext;
use debug_registers::DebugRegisters;
pub use exec::{ExecRequest, Executed, ProgramInformation};
pub use namespaces::{Namespace, NewNamespaces};

use crate::account::Capacity;
use crate::credentials::Credentials;
use crate::descriptor::DescriptorTable;
use crate::devfs::Terminals;
use crate::exec::Layout;
use crate::front_end::{FrontEndNumber, FrontEndWords, Programs};
use crate::log::Log;
use crate::memory::{Memory, ObjectProvider, PAGE};
use crate::message_queue::MessageQueues;
use crate::process::{ExactPid, Limit, Limits, OwnNumbers, Pid, Resource};
use crate::signal::{Fault, Signal, SignalInformation};
use crate::swap::{SwapSpace, SwapUse};
use crate::sync::SpinLock;
use crate::tmpfs::{Tmpfs, TmpfsOptions};
use crate::vfs::{Directories, MemoryProvider, Vfs};
use crate::{Environment, Error, Result};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::fmt::Arguments;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use mach::machine::{ExecutionContext, ThreadState};
use mach::thread::ExceptionState;
use mach::vm::{OomKiller, Vm, VmStatistics};
use mach::{KernError, Machine};
use parts::{Files, Life, Platform};

/// How the machine is stopped by reboot(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The machine stops.
    Halt,
    /// The machine is switched off.
    PowerOff,
    /// The machine is restarted.
    Restart,
}

/// What the memory of programs and files is used for, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// Pages that are not used.
    pub free: u64,
    /// Pages that were used recently.
    pub active: u64,
    /// Pages that were not used recently.
    pub inactive: u64,
    /// Pages that are never paged out.
    pub wired: u64,
    /// Pages of the server's own structures.
    pub server: u64,
    /// Pages of files that are only in memory, and of memory that programs share. They are active,
    /// inactive or wired, as the next two are.
    pub memory_files: u64,
    /// Pages of files that are kept elsewhere, too.
    pub files: u64,
    /// Pages of disks.
    pub disks: u64,
    /// The swap space.
    pub swap: SwapUse,
    /// Pages in memory that are in swap space, too.
    pub swap_cached: u64,
}

impl MemoryUse {
    /// All pages of the machine, a number that never changes.
    pub fn total(&self) -> u64 {
        self.free + self.active + self.inactive + self.wired + self.server
    }
}

/// How short of memory the server itself is. What one program can make the server keep
/// (descriptors, names, regions, requests) is limited for each process or user. All programs
/// together could still use the memory up, so requests are refused early, before an allocation in
/// the middle of a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shortage {
    /// The server has so much memory that a few calls cannot make it short.
    Far,
    /// The server has enough memory.
    None,
    /// A program without privileges gets nothing new if its user has more than a small amount.
    Low,
    /// No program gets anything new, and a process that cannot go on without memory is ended.
    Critical,
}

/// A page that every program finds in its memory, which it can read.
#[derive(Clone, Copy, Debug)]
pub struct SystemPage {
    /// The name under which it is shown.
    pub name: &'static str,
    /// Where it is.
    pub address: u64,
    /// Whether the program can execute it.
    pub execute: bool,
}

/// The server that uses this library, and runs threads.
pub trait Host<M: Machine>: Send + Sync {
    /// Prepares a new address space: maps what every program finds there. `ENOMEM`.
    fn prepare(&self, task: &Task<M>) -> Result<()> {
        let _ = task;
        Ok(())
    }

    /// The pages that every program finds in its memory beyond the addresses that it may use.
    fn system_pages(&self) -> &[SystemPage] {
        &[]
    }

    /// Makes every system call of the programs in an address space come to the server.
    fn observe(&self, task: &Task<M>) {
        let _ = task;
    }

    /// Starts to serve `thread` as if a request of it had just been answered: first
    /// [`Processes::return_to_user`](crate::process::Processes::return_to_user), then its program
    /// with the registers `state`.
    fn start_thread(&self, thread: Arc<Thread<M>>, state: Box<ThreadState>);

    /// The front end of the program file that begins with `start` (the first
    /// [`START_SIZE`](crate::exec::image::START_SIZE) bytes, or all), and how its programs are
    /// loaded. `None` if no front end recognises it.
    fn programs(&self, start: &[u8]) -> Option<(FrontEndNumber, &dyn Programs)>;

    /// Writes a line to the system's log.
    fn log(&self, line: Arguments<'_>);

    /// The recent lines of the log, if the server keeps them.
    fn kept_log(&self) -> Option<&Arc<Log>> {
        None
    }

    /// How short the server's own memory is.
    fn shortage(&self) -> Shortage {
        Shortage::None
    }

    /// How many bytes of the memory for programs and files the server uses for itself.
    fn borrowed_memory(&self) -> u64 {
        0
    }

    /// Gives back memory for programs and files that the server has taken and does not need. Called
    /// about once a second.
    fn give_memory_back(&self) {}

    /// Ends the system (reboot(2)), or begins to; `ENOSYS` if that is not possible.
    fn end(&self, how: End) -> Result<()> {
        let _ = how;
        Err(Error::ENOSYS)
    }

    /// A description of what this system runs on, to be read by users. Each line
    /// has a name, a tabulator and a text.
    fn description(&self) -> String {
        String::new()
    }

    /// How many processors threads may run on.
    fn processors(&self) -> usize {
        1
    }

    /// For how long programs have used `processor`, and for how long the system has used it for
    /// them. `None` if the times are not known for each processor: they are then all shown as the
    /// first one's.
    fn processor_times(&self, processor: usize) -> Option<(Duration, Duration)> {
        let _ = processor;
        None
    }
}

/// Everything that the processes of a system share, in three parts.
pub struct System<M: Machine> {
    life: Life<M>,
    files: Files,
    platform: Platform<M>,
}

/// The resources of a Unix thread, which are kept in its Mach thread.
pub struct Resources<M: Machine> {
    system: Arc<System<M>>,
    /// The underlying thread, as the machine library has it.
    context: M::Thread,
    /// The thread's address space.
    memory: Arc<Task<M>>,
    front_end_words: FrontEndWords,
    /// Whether a tracer or a filter may want to see the thread's system calls.
    is_observed: AtomicBool,
    inner: SpinLock<Inner>,
}

/// An error of the underlying thread as an error of Unix.
pub fn context_error(error: KernError) -> Error {
    match error {
        KernError::ResourceShortage => Error::ENOMEM,
        KernError::InvalidArgument => Error::EINVAL,
        _ => Error::ESRCH,
    }
}

struct Inner {
    tid: Pid,
    pid: Pid,
    /// What the thread and its process are called in their namespace, unless it is the first one.
    numbers: Option<OwnNumbers>,
    descriptors: Arc<DescriptorTable>,
    directories: Arc<Directories>,
    trap: ExceptionState,
    /// None as long as no tracer has written one and no debug exception has come.
    debug_registers: Option<Box<DebugRegisters>>,
}

impl<M: Machine> System<M> {
    /// Makes a system without processes.
    pub fn new(
        vm: Arc<Vm<M>>,
        vfs: Arc<Vfs>,
        environment: Arc<dyn Environment>,
        layout: Layout,
        host: Arc<dyn Host<M>>,
        capacity: Capacity,
    ) -> Arc<System<M>> {
        let system = Arc::new(System {
            life: Life::new(capacity),
            files: Files::new(vfs),
            platform: Platform::new(vm, environment, layout, host),
        });
        let killer: Weak<dyn OomKiller> = Arc::downgrade(&system) as Weak<_>;
        system.vm().set_oom_killer(killer);
        system.vm().set_default_pager(Arc::new(SwapSpace(system.vfs().swap.clone())));
        system.register_file_systems();
        system
    }

    /// Compares the processor time of processes with their limits, and counts the threads that run
    /// for the load average. To be called every second.
    pub fn check_periodically(&self) {
        let running = self.processes().with(|table| {
            table.check_time_limits();
            table.thread_counts().1
        });
        self.life.load.lock().note(self.environment().monotonic(), running);
        self.host().give_memory_back();
    }

    /// Lowers and raises the priorities of threads by what their processes have used lately.
    /// Returns after how long it has to be called again.
    pub fn share_processors(&self) -> Duration {
        let (now, processors) = (self.environment().monotonic(), self.host().processors());
        let (changed, next) = self
            .processes()
            .with(|table| (table.share_processors(now, processors), table.until_next_sharing()));
        for tid in changed {
            // A thread that has ended meanwhile has no priority.
            if let Some(thread) = self.thread(tid) {
                let _ = thread.apply_schedule(tid);
            }
        }
        next
    }

    /// What all memory for programs and files is used for.
    pub fn memory_use(&self) -> MemoryUse {
        let VmStatistics { free, active, inactive, wired, paged_out, memory_files, files, disks } =
            self.vm().statistics();
        let [free, active, inactive, wired, memory_files, files, disks] =
            [free, active, inactive, wired, memory_files, files, disks].map(u64::from);
        let (server, swap) = (self.host().borrowed_memory() / PAGE, self.vfs().swap.usage());
        let swap_cached = (swap.total - swap.free).saturating_sub(paged_out);
        MemoryUse { free, active, inactive, wired, server, memory_files, files, disks, swap, swap_cached }
    }

    /// Registers the file systems that need nothing but the system.
    fn register_file_systems(self: &Arc<Self>) {
        let memory: Arc<dyn MemoryProvider> = Arc::new(ObjectProvider(self.vm().clone()));
        let environment = self.environment().clone();
        let statistics = self.vm().statistics();
        let used = statistics.active + statistics.inactive + statistics.wired;
        let defaults = TmpfsOptions::for_memory(u64::from(statistics.free + used));
        // If this fails, there is no file system for memory files, and making one of them fails
        // later.
        let unlimited = TmpfsOptions { pages: defaults.memory_pages, ..defaults.clone() };
        if let Ok(root) = Tmpfs::new(&unlimited, memory.clone(), environment.clone()) {
            self.vfs().set_memory_files(root);
        }
        // Without them, mq_open(2) fails.
        let _ = MessageQueues::register(self.vfs(), memory.clone(), environment.clone());
        self.vfs().register_file_system(
            "tmpfs",
            Arc::new(move |options: &[u8]| {
                let options = defaults.clone().parse(options, defaults.memory_pages)?;
                Tmpfs::new(&options, memory.clone(), environment.clone())
            }),
        );
    }

    /// Sets the terminals of the system, when there are some.
    pub fn set_terminals(&self, terminals: Arc<Terminals>) {
        *self.files.devices.lock() = Some(terminals);
    }

    /// The terminals of the system, if there are some.
    pub fn terminals(&self) -> Option<Arc<Terminals>> {
        self.files.devices.lock().clone()
    }

    /// Makes the first process, with an empty address space: it has to execute a program before it
    /// runs. `ENOMEM`, `EAGAIN`.
    pub async fn create_init(self: &Arc<Self>, descriptors: DescriptorTable) -> Result<Arc<Thread<M>>> {
        let account = self.processes().with(|table| table.account_of(Credentials::superuser().user.real));
        let task = Memory::create(self.mach(), self.layout(), &account, FrontEndNumber::default()).await?;
        self.host().prepare(&task)?;
        let directories = Arc::new(Directories::new(&self.vfs().tree));
        let inner = Inner {
            tid: Pid::INIT,
            pid: Pid::INIT,
            numbers: None,
            descriptors: Arc::new(descriptors),
            directories,
            trap: ExceptionState::default(),
            debug_registers: None,
        };
        let thread = self.create_thread(&task, inner).await?;
        let now = self.environment().monotonic();
        let pid =
            self.processes().with(|table| table.create_init(thread.clone(), Credentials::superuser(), now));
        self.life.threads.lock().insert(pid, thread.clone());
        Ok(thread)
    }

    /// Makes a thread in a task; the thread does not run yet. `EAGAIN`.
    async fn create_thread(self: &Arc<Self>, task: &Arc<Task<M>>, inner: Inner) -> Result<Arc<Thread<M>>> {
        let resources = |context: &M::Thread| Resources {
            system: self.clone(),
            context: context.clone(),
            memory: task.clone(),
            front_end_words: FrontEndWords::default(),
            is_observed: AtomicBool::new(false),
            inner: SpinLock::new(inner),
        };
        task.create_thread_of(0, resources).await.map_err(|error| match error {
            KernError::ResourceShortage => Error::EAGAIN,
            other => context_error(other),
        })
    }

    /// The thread `tid`; `None` if it has ended.
    pub fn thread(&self, tid: Pid) -> Option<Arc<Thread<M>>> {
        self.life.threads.lock().get(tid).cloned()
    }

    /// Any thread of process `pid`; the first one unless that has ended.
    pub fn thread_of_process(&self, pid: Pid) -> Option<Arc<Thread<M>>> {
        let first = self.thread(pid).filter(|thread| thread.pid() == pid);
        first.or_else(|| {
            let other = self.processes().with(|table| table.process(pid).ok()?.threads().next())?;
            self.thread(other)
        })
    }

    /// Any thread of the process that `exact` identifies, which may not be another process with the
    /// same id.
    pub fn thread_of_exact(&self, exact: ExactPid) -> Option<Arc<Thread<M>>> {
        let thread = self.thread_of_process(exact.pid());
        // The order matters: if the process still exists after the thread was looked up, the thread
        // is one of that process.
        thread.filter(|_| self.processes().with(|table| table.exact_process(exact).is_ok()))
    }

    /// Writes to the log which processes signals have ended.
    pub fn log_reports(&self) {
        for report in self.processes().take_reports() {
            let name = alloc::string::String::from_utf8_lossy(&report.name).into_owned();
            let signal = report.information.signal;
            match report.information.cause {
                crate::signal::Cause::Fault { fault, address } => self.log_caused(format_args!(
                    "process {} ({name}): {} in thread {} at {address:#x} ({fault:?})",
                    report.pid,
                    signal.description(),
                    report.tid
                )),
                _ => {
                    self.log_caused(format_args!("process {} ({name}): {}", report.pid, signal.description()))
                }
            }
        }
    }
}

impl<M: Machine> Resources<M> {
    /// The system to which the thread belongs.
    pub fn system(&self) -> &Arc<System<M>> {
        &self.system
    }

    /// The thread's id. Exec may change it.
    pub fn tid(&self) -> Pid {
        self.inner.lock().tid
    }

    /// The id of the thread's process.
    pub fn pid(&self) -> Pid {
        self.inner.lock().pid
    }

    /// The registers of the thread, which must be in the server. If it made a system call, RIP is
    /// after the instruction and RAX is still the call's number. An error means that the underlying
    /// thread has ended.
    pub fn registers(&self) -> Result<ThreadState> {
        self.context.state().map_err(context_error)
    }

    /// Replaces the registers of the thread, which must be in the server. `EINVAL` if no program
    /// can have such registers; another error means that the underlying thread has ended.
    pub fn set_registers(&self, state: &ThreadState) -> Result<()> {
        self.context.set_state(state).map_err(context_error)
    }

    /// Has the machine schedule the thread, whose id is `tid`, as its record says. `ESRCH`.
    pub fn apply_schedule(&self, tid: Pid) -> Result<()> {
        let (priority, slice) = self.system.processes().with(|table| table.machine_schedule(tid))?;
        self.context.set_priority(priority, slice).map_err(context_error)
    }

    /// The same for a new thread that gets the record of `tid`. `ESRCH`.
    fn begin_schedule(&self, tid: Pid) -> Result<()> {
        match self.system.processes().with(|table| table.unusual_schedule(tid)) {
            Some((priority, slice)) => self.context.set_priority(priority, slice).map_err(context_error),
            None => Ok(()),
        }
    }

    /// From now on every system call of the thread comes to its async task, so that a tracer or a
    /// filter sees it.
    pub fn observe_calls(&self) {
        self.is_observed.store(true, Ordering::Relaxed);
        self.context.set_handler(self.memory.map().clone());
        self.system.host().observe(&self.memory);
    }

    /// Whether every system call of the thread has to come to its async task.
    pub fn is_observed(&self) -> bool {
        self.is_observed.load(Ordering::Relaxed)
    }

    /// The extended state of the thread (x87, SSE, AVX) in XSAVE's standard format. The thread must
    /// be in the server.
    pub fn extended_state(&self) -> Result<Vec<u8>> {
        self.context.extended_state().map_err(context_error)
    }

    /// Replaces the thread's extended state: by a whole image, by its first 512 bytes (x87 and SSE,
    /// the rest initial), or, with no bytes, by the initial state. The image comes from a program:
    /// one that would make the processor fault is refused with `EINVAL`.
    pub fn set_extended_state(&self, image: &[u8]) -> Result<()> {
        self.context.set_extended_state(image).map_err(context_error)
    }

    /// The registers and the extended state of the thread, which gets the initial extended state: a
    /// signal handler begins. The errors are those of [`registers`](Self::registers), and `ENOMEM`.
    pub fn begin_handler(&self) -> Result<(ThreadState, Vec<u8>)> {
        self.context.begin_handler().map_err(context_error)
    }

    /// Replaces the registers and the extended state, as [`set_registers`](Self::set_registers) and
    /// [`set_extended_state`](Self::set_extended_state) do: a signal handler ends.
    pub fn end_handler(&self, state: &ThreadState, image: &[u8]) -> Result<()> {
        self.context.end_handler(state, image).map_err(context_error)
    }

    /// The thread's address space.
    pub fn memory(&self) -> &Arc<Task<M>> {
        &self.memory
    }

    /// The words that the front end keeps in the thread's record, where other threads find them.
    pub fn front_end_words(&self) -> &FrontEndWords {
        &self.front_end_words
    }

    /// The thread's descriptors.
    pub fn descriptors(&self) -> Arc<DescriptorTable> {
        self.inner.lock().descriptors.clone()
    }

    /// The thread's root directory, working directory and umask.
    pub fn directories(&self) -> Arc<Directories> {
        self.inner.lock().directories.clone()
    }

    /// Gives the thread a descriptor table of its own (unshare, close_range).
    pub fn unshare_descriptors(&self) -> Result<()> {
        let copy = self.descriptors().copy()?;
        let old = core::mem::replace(&mut self.inner.lock().descriptors, Arc::new(copy));
        drop(old);
        Ok(())
    }

    /// Whether ids of processes are their numbers for the thread: its namespace of processes is the
    /// first one.
    pub fn sees_ids(&self) -> bool {
        self.inner.lock().numbers.is_none()
    }

    /// The numbers that the thread and its process have in their namespace of processes.
    pub fn own_numbers(&self) -> OwnNumbers {
        let inner = self.inner.lock();
        let first = || OwnNumbers { process: inner.pid.number(), thread: inner.tid.number(), namespace: 0 };
        inner.numbers.unwrap_or_else(first)
    }

    /// The exception that the thread's next signal frame shows.
    pub fn trap(&self) -> ExceptionState {
        self.inner.lock().trap
    }

    /// The thread's credentials; those of the user `nobody` if it has ended.
    pub fn credentials(&self) -> Arc<Credentials> {
        let tid = self.tid();
        let found = self
            .system
            .processes()
            .with(|table| table.thread(tid).map(|thread| thread.credentials().clone()));
        found.unwrap_or_else(|_| Arc::new(Credentials::nobody()))
    }

    /// The resource limits of the thread's process.
    pub fn limits(&self) -> Limits {
        let pid = self.pid();
        self.system
            .processes()
            .with(|table| table.process(pid).map(|process| process.limits.clone()))
            .unwrap_or_default()
    }

    /// A soft limit of the thread's process.
    pub fn soft_limit(&self, resource: Resource) -> u64 {
        let pid = self.pid();
        let limit = self
            .system
            .processes()
            .with(|table| table.process(pid).map(|process| process.limits.soft(resource)));
        limit.unwrap_or(Limit::INFINITE)
    }

    /// What debug register `number` of the thread holds, 0 to 7.
    pub fn debug_register(&self, number: usize) -> u64 {
        self.debug_registers().get(number)
    }

    fn debug_registers(&self) -> DebugRegisters {
        self.inner.lock().debug_registers.as_deref().copied().unwrap_or_default()
    }

    /// Sets debug register `number` of the thread, which must be in the server, as its tracer
    /// wants. `EINVAL` and `EPERM` for a breakpoint that is impossible, `EIO` for a register that
    /// cannot be written, `ENOMEM`.
    pub fn set_debug_register(&self, number: usize, value: u64) -> Result<()> {
        let old = self.debug_registers();
        let new = old.with(number, value)?;
        if new.breakpoints() != old.breakpoints() {
            self.context.set_breakpoints(&new.breakpoints()).map_err(context_error)?;
        }
        self.note_debug_registers(new);
        Ok(())
    }

    fn note_debug_registers(&self, new: DebugRegisters) {
        let mut room = None;
        loop {
            let mut inner = self.inner.lock();
            match (&mut inner.debug_registers, room.take()) {
                (Some(old), _) => return **old = new,
                (none, Some(room)) => return *none = Some(room),
                // Memory is allocated without the lock.
                (None, None) => drop(inner),
            }
            room = Some(Box::new(new));
        }
    }

    /// The thread has raised a debug exception, of which its tracer finds the reason in the status
    /// register. Returns the fault.
    pub(crate) fn debug_exception(&self) -> Fault {
        let mut registers = self.debug_registers();
        let status = match registers.breakpoints().are_enabled() {
            true => self.context.debug_status().unwrap_or(debug_registers::STEP),
            // The kernel tells only threads with breakpoints apart.
            false => debug_registers::STEP,
        };
        registers.status = status;
        self.note_debug_registers(registers);
        match status {
            status if status & debug_registers::STEP != 0 => Fault::Step,
            status if status & debug_registers::REACHED != 0 => Fault::Watchpoint,
            _ => Fault::StepOfCall,
        }
    }

    /// Records the exception that the thread's next signal frame shows; returns the thread's id.
    pub(crate) fn note_exception(&self, state: ExceptionState) -> Pid {
        let mut inner = self.inner.lock();
        inner.trap = state;
        inner.tid
    }

    /// Ends the thread's process. To be called when memory is short, the OOM killer finds no
    /// process to end, and the thread cannot go on without memory.
    pub fn out_of_memory(&self) {
        let pid = self.pid();
        self.system.log_caused(format_args!("process {pid}: killed, because memory ran out"));
        let information = SignalInformation::system(Signal::KILL);
        self.system.processes().with(|table| match pid == Pid::INIT {
            true => table.begin_exit(pid, crate::process::ExitStatus::Killed(Signal::KILL)),
            false => table.generate_for_process(pid, information),
        });
    }
}
