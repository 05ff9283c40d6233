//! The view of a thread that files and terminals have.

use super::{Resources, System};
use crate::Identity;
use crate::account::Account;
use crate::credentials::Credentials;
use crate::namespace::{ObjectNamespace, UserNamespace};
use crate::process::{Limit, Pid, Resource};
use crate::process_context::{FileSignal, ProcessContext, ProcessId, SessionHost};
use crate::signal::{Signal, SignalInformation};
use crate::tty::Terminal;
use crate::vfs::{Caller, Directories, Restrictions};
use alloc::sync::{Arc, Weak};
use mach::Machine;

/// What a request needs to act on files in a thread's name: a snapshot, made for one request.
pub struct CallContext<M: Machine> {
    system: Arc<System<M>>,
    tid: Pid,
    pid: Pid,
    identity: Identity,
    directories: Arc<Directories>,
    file_size_limit: u64,
}

impl<M: Machine> Resources<M> {
    /// The thread's context for operations on files.
    pub fn context(&self) -> CallContext<M> {
        self.context_with(|credentials| credentials.identity())
    }

    /// The thread's context for operations on files, with another identity (access(2), and the
    /// loading of programs).
    pub fn context_as(&self, identity: Identity) -> CallContext<M> {
        self.context_with(|_| identity)
    }

    /// Every call on files begins with this: it locks the thread and the process table once each.
    fn context_with(&self, identity: impl FnOnce(&Credentials) -> Identity) -> CallContext<M> {
        let (tid, pid, directories) = {
            let inner = self.inner.lock();
            (inner.tid, inner.pid, inner.directories.clone())
        };
        let (identity, file_size_limit) = self.system.processes().with(|table| {
            let limit = table.process(pid).map(|process| process.limits.soft(Resource::FileSize));
            let identity = match table.thread(tid) {
                Ok(thread) => identity(thread.credentials()),
                Err(_) => identity(&Credentials::nobody()),
            };
            (identity, limit.unwrap_or(Limit::INFINITE))
        });
        CallContext { system: self.system.clone(), tid, pid, identity, directories, file_size_limit }
    }
}

impl<M: Machine> CallContext<M> {
    /// A context of the first process, for what the system does itself.
    pub(super) fn of_system(system: &Arc<System<M>>) -> CallContext<M> {
        CallContext {
            system: system.clone(),
            tid: Pid::INIT,
            pid: Pid::INIT,
            identity: Identity::superuser(),
            directories: Arc::new(Directories::new(&system.vfs().tree)),
            file_size_limit: Limit::INFINITE,
        }
    }

    /// The caller, in the form that operations on files take.
    pub fn caller(&self) -> Caller<'_> {
        Caller {
            vfs: self.system.vfs(),
            identity: &self.identity,
            directories: &self.directories,
            process: self,
            file_size_limit: self.file_size_limit,
            restrictions: Restrictions::empty(),
        }
    }
}

/// The signal that a file asks for with `signal`.
pub(super) fn signal_of(signal: FileSignal) -> Signal {
    match signal {
        FileSignal::Hangup => Signal::HUP,
        FileSignal::Interrupt => Signal::INT,
        FileSignal::Quit => Signal::QUIT,
        FileSignal::Stop => Signal::TSTP,
        FileSignal::BackgroundRead => Signal::TTIN,
        FileSignal::BackgroundWrite => Signal::TTOU,
        FileSignal::Continue => Signal::CONT,
        FileSignal::WindowChange => Signal::WINCH,
    }
}

impl<M: Machine> ProcessContext for CallContext<M> {
    fn process(&self) -> ProcessId {
        self.pid.number()
    }

    fn thread(&self) -> ProcessId {
        self.tid.number()
    }

    fn group(&self) -> ProcessId {
        self.system
            .processes()
            .with(|table| table.process(self.pid).map_or(0, |process| process.group().number()))
    }

    fn session(&self) -> ProcessId {
        self.system
            .processes()
            .with(|table| table.process(self.pid).map_or(0, |process| process.session().number()))
    }

    fn terminal(&self) -> Option<Arc<Terminal>> {
        let session = Pid::new(self.session())?;
        self.system.files.terminal(session)
    }

    fn set_terminal(&self, terminal: Option<Arc<Terminal>>) {
        let Some(session) = Pid::new(self.session()) else { return };
        drop(self.system.files.set_terminal(session, terminal));
    }

    fn disregards(&self, signal: FileSignal) -> bool {
        let signal = signal_of(signal);
        self.system.processes().with(|table| {
            let Ok(process) = table.process(self.pid) else { return true };
            let blocked = table.thread(self.tid).is_ok_and(|thread| thread.blocked().contains(signal));
            blocked || process.actions().lock().ignored().contains(signal)
        })
    }

    fn is_orphaned(&self) -> bool {
        self.system
            .processes()
            .with(|table| table.process(self.pid).is_ok_and(|p| table.is_orphaned(p.group())))
    }

    fn session_of_group(&self, group: ProcessId) -> Option<ProcessId> {
        let group = Pid::new(group)?;
        self.system.processes().with(|table| table.group_session(group)).map(Pid::number)
    }

    fn signal_group(&self, group: ProcessId, signal: FileSignal) {
        if let Some(group) = Pid::new(group) {
            let information = SignalInformation::system(signal_of(signal));
            self.system.processes().with(|table| table.generate_for_group(group, information));
        }
    }

    fn account(&self) -> Arc<Account> {
        self.system.processes().with(|table| table.user_account(self.tid))
    }

    fn owner_of(&self, kind: &str) -> Option<UserNamespace> {
        self.system.processes().with(|table| match kind {
            "tmpfs" | "devpts" => Some(self.identity.namespace().clone()),
            "proc" => Some(table.pid_namespace(self.pid).owner().clone()),
            "mqueue" => Some(table.thread(self.tid).ok()?.namespaces().objects.owner().clone()),
            _ => None,
        })
    }

    fn objects(&self) -> Option<Arc<ObjectNamespace>> {
        let namespaces =
            self.system.processes().with(|table| Some(table.thread(self.tid).ok()?.namespaces().clone()))?;
        Some(namespaces.objects.clone()).filter(|objects| !objects.is_first())
    }
}

/// The processes of a system, as terminals see them, which send signals to them.
struct Sessions<M: Machine>(Weak<System<M>>);

impl<M: Machine> System<M> {
    /// The interface through which terminals reach the processes of this system.
    pub fn session_host(self: &Arc<Self>) -> Arc<dyn SessionHost> {
        Arc::new(Sessions(Arc::downgrade(self)))
    }
}

impl<M: Machine> SessionHost for Sessions<M> {
    fn signal_group(&self, group: ProcessId, signal: FileSignal) {
        if let (Some(system), Some(group)) = (self.0.upgrade(), Pid::new(group)) {
            let information = SignalInformation::system(signal_of(signal));
            system.processes().with(|table| table.generate_for_group(group, information));
        }
    }

    fn signal_process(&self, process: ProcessId, signal: FileSignal) {
        if let (Some(system), Some(process)) = (self.0.upgrade(), Pid::new(process)) {
            let information = SignalInformation::system(signal_of(signal));
            system.processes().with(|table| table.generate_for_process(process, information));
        }
    }

    fn lose_terminal(&self, session: ProcessId) {
        if let (Some(system), Some(session)) = (self.0.upgrade(), Pid::new(session)) {
            drop(system.files.set_terminal(session, None));
        }
    }
}
