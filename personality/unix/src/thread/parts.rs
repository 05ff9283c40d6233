//! The three parts of a [`System`]: its processes, its files, and the platform that they run on. No
//! part uses another one; operations that need several are methods of the system.

use super::by_tid::ByTid;
use super::oom::Endings;
use super::{Host, System};
use crate::Environment;
use crate::account::Capacity;
use crate::devfs::Terminals;
use crate::exec::Layout;
use crate::load::Load;
use crate::log::Rate;
use crate::personality::{Thread, Unix};
use crate::process::{Pid, Processes};
use crate::sync::SpinLock;
use crate::timer::Timers;
use crate::tty::Terminal;
use crate::vfs::Vfs;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Arguments;
use core::sync::atomic::AtomicBool;
use mach::Machine;
use mach::thread::PriorityRange;
use mach::vm::Vm;

/// Processes and threads with their timers, and the load average.
pub(super) struct Life<M: Machine> {
    pub(super) processes: Processes,
    pub(super) threads: SpinLock<ByTid<Thread<M>>>,
    pub(super) timers: Timers,
    pub(super) load: SpinLock<Load>,
}

impl<M: Machine> Life<M> {
    pub(super) fn new(capacity: Capacity) -> Self {
        Self {
            processes: Processes::new(capacity),
            threads: SpinLock::new(ByTid::new()),
            timers: Timers::new(),
            load: SpinLock::new(Load::default()),
        }
    }
}

/// The file systems, and the controlling terminals of sessions.
pub(super) struct Files {
    pub(super) vfs: Arc<Vfs>,
    terminals: SpinLock<BTreeMap<Pid, Arc<Terminal>>>,
    /// The terminals that have devices, after the start of the system.
    pub(super) devices: SpinLock<Option<Arc<Terminals>>>,
    /// Whether the root file system keeps a seed of the random source.
    pub(super) keeps_seed: AtomicBool,
}

impl Files {
    pub(super) fn new(vfs: Arc<Vfs>) -> Self {
        Self {
            vfs,
            terminals: SpinLock::new(BTreeMap::new()),
            devices: SpinLock::new(None),
            keeps_seed: AtomicBool::new(false),
        }
    }

    /// The controlling terminal of a session.
    pub(super) fn terminal(&self, session: Pid) -> Option<Arc<Terminal>> {
        self.terminals.lock().get(&session).cloned()
    }

    /// Sets the controlling terminal of a session, or removes it; returns the one that it had.
    pub(super) fn set_terminal(
        &self,
        session: Pid,
        terminal: Option<Arc<Terminal>>,
    ) -> Option<Arc<Terminal>> {
        let mut terminals = self.terminals.lock();
        match terminal {
            Some(terminal) => terminals.insert(session, terminal),
            None => terminals.remove(&session),
        }
    }
}

/// The platform of the system: memory, Mach, the server, time.
pub(super) struct Platform<M: Machine> {
    pub(super) vm: Arc<Vm<M>>,
    pub(super) mach: Arc<mach::Host<M, Unix>>,
    pub(super) layout: Layout,
    pub(super) host: Arc<dyn Host<M>>,
    pub(super) environment: Arc<dyn Environment>,
    /// Limits how many lines of the log programs may cause.
    caused_lines: SpinLock<Rate>,
    /// Address spaces whose destruction is under way.
    pub(super) endings: Endings<M>,
}

impl<M: Machine> Platform<M> {
    pub(super) fn new(
        vm: Arc<Vm<M>>,
        environment: Arc<dyn Environment>,
        layout: Layout,
        host: Arc<dyn Host<M>>,
    ) -> Self {
        Self {
            mach: mach::Host::new(vm.clone(), PriorityRange::default(), 0),
            vm,
            layout,
            host,
            environment,
            caused_lines: SpinLock::new(Rate::default()),
            endings: Endings::new(),
        }
    }

    /// Writes a line to the log that a program has caused, unless there have been too many of them.
    pub(super) fn log_caused(&self, line: Arguments<'_>) {
        let admitted = self.caused_lines.lock().admit(self.environment.monotonic());
        let Some(suppressed) = admitted else { return };
        if suppressed > 0 {
            self.host.log(format_args!("{suppressed} lines about programs were suppressed"));
        }
        self.host.log(line);
    }
}

impl<M: Machine> System<M> {
    /// The processes: families, groups, sessions, signals.
    pub fn processes(&self) -> &Processes {
        &self.life.processes
    }

    /// The timers of processes, which send signals.
    pub fn timers(&self) -> &Timers {
        &self.life.timers
    }

    /// Reads the load average with `read`.
    pub fn with_load<R>(&self, read: impl FnOnce(&Load) -> R) -> R {
        read(&self.life.load.lock())
    }

    /// The file systems.
    pub fn vfs(&self) -> &Arc<Vfs> {
        &self.files.vfs
    }

    /// The memory of programs and files.
    pub fn vm(&self) -> &Arc<Vm<M>> {
        &self.platform.vm
    }

    /// The addresses that programs may use.
    pub fn layout(&self) -> &Layout {
        &self.platform.layout
    }

    /// The Mach host, which makes tasks.
    pub fn mach(&self) -> &Arc<mach::Host<M, Unix>> {
        &self.platform.mach
    }

    /// The server that runs the threads.
    pub fn host(&self) -> &Arc<dyn Host<M>> {
        &self.platform.host
    }

    /// The environment: time and randomness.
    pub fn environment(&self) -> &Arc<dyn Environment> {
        &self.platform.environment
    }

    /// Host name and domain name in the namespaces of the first process.
    pub fn names(&self) -> (Vec<u8>, Vec<u8>) {
        self.processes().with(|table| table.first_namespaces().clone()).names.get()
    }

    /// Writes a line to the log that a program has caused, unless there have been too many of them.
    pub fn log_caused(&self, line: Arguments<'_>) {
        self.platform.log_caused(line);
    }
}
