//! The process table: records by id, look-ups, wake-ups.

use super::ids::Allocator;
use super::pid_namespace::Numbers;
use super::records::{Phase, Process, Records, Thread, stored_name};
use super::sharing::Contention;
use super::state::Group;
use super::{Control, ExactPid, Listener, Pid, Usage};
use crate::account::{Account, Capacity, Settings};
use crate::credentials::Credentials;
use crate::namespace::Namespaces;
use crate::signal::{Signal, SignalInformation, SignalSet};
use crate::{Error, Result};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::any::Any;
use core::task::Waker;

/// A wake-up that is due after the table's lock has been released.
pub(super) enum Wake {
    /// A request of a thread has to be polled again.
    Request(Waker),
    /// The thread has to be recalled from its program.
    Recall(Arc<dyn Control>),
    /// A listener has to be called because there may be new signals.
    Notify(Arc<dyn Listener>),
}

/// The report of a process that a signal ended, for the log.
#[derive(Clone, Debug)]
pub struct FatalReport {
    /// The id of the process.
    pub pid: Pid,
    /// The id of the thread that took the signal.
    pub tid: Pid,
    /// The name of the process.
    pub name: Vec<u8>,
    /// The signal that ended the process, with its cause.
    pub information: SignalInformation,
}

/// Charges against the limits of one user.
#[derive(Debug)]
pub(super) struct UserCharges {
    pub(super) threads: u64,
    pub(super) signals: u64,
    account: Arc<Account>,
}

impl UserCharges {
    /// Nothing is charged to the user.
    fn is_empty(&self) -> bool {
        self.threads == 0 && self.signals == 0 && self.account.is_closed()
    }
}

/// All processes and threads, as far as they concern each other.
pub struct Table {
    pub(super) processes: Records<Process>,
    pub(super) threads: Records<Thread>,
    pub(super) groups: BTreeMap<Pid, Group>,
    /// Groups that have just become orphaned ([`Table::hanging_up_orphans`]).
    pub(super) orphaned: Vec<Pid>,
    /// How many groups each session has.
    pub(super) sessions: BTreeMap<Pid, usize>,
    pub(super) users: BTreeMap<u32, UserCharges>,
    settings: Arc<Settings>,
    pub(super) ids: Allocator,
    /// The ids of traced threads that have ended, and for which their tracers have not waited.
    pub(super) held_ids: BTreeSet<Pid>,
    /// The numbers of ids in namespaces other than the first one.
    pub(super) numbers: BTreeMap<Pid, Numbers>,
    /// The first processes of namespaces that have become empty ([`Table::settle_namespaces`]).
    pub(super) emptied: Vec<Pid>,
    /// The namespaces of the first process.
    pub(super) first_namespaces: Arc<Namespaces>,
    pub(super) max_threads: usize,
    pub(super) forks: u64,
    /// Resources that processes used which have been removed.
    pub(super) gone: Usage,
    /// Whether threads wait for processors.
    pub(super) contention: Contention,
    pub(super) wakes: Vec<Wake>,
    pub(super) reports: Vec<FatalReport>,
}

impl Table {
    /// An empty table of a system with this capacity.
    pub fn new(capacity: Capacity) -> Table {
        Table {
            processes: Records::default(),
            threads: Records::default(),
            groups: BTreeMap::new(),
            orphaned: Vec::new(),
            sessions: BTreeMap::new(),
            users: BTreeMap::new(),
            settings: Settings::new(capacity.server_memory),
            ids: Allocator::new(Pid::LIMIT),
            held_ids: BTreeSet::new(),
            numbers: BTreeMap::new(),
            emptied: Vec::new(),
            first_namespaces: Arc::new(Namespaces::default()),
            max_threads: capacity.threads,
            forks: 0,
            gone: Usage::default(),
            contention: Contention::default(),
            wakes: Vec::new(),
            reports: Vec::new(),
        }
    }

    /// The process `pid`, which may be a zombie. `ESRCH`.
    pub fn process(&self, pid: Pid) -> Result<&Process> {
        self.processes.get(&pid).ok_or(Error::ESRCH)
    }

    /// The process `pid`, to be changed. `ESRCH`.
    pub fn process_mut(&mut self, pid: Pid) -> Result<&mut Process> {
        self.processes.get_mut(&pid).ok_or(Error::ESRCH)
    }

    /// The record of thread `tid`. `ESRCH`.
    pub fn thread(&self, tid: Pid) -> Result<&Thread> {
        self.threads.get(&tid).ok_or(Error::ESRCH)
    }

    /// The thread `tid`, to be changed. `ESRCH`.
    pub fn thread_mut(&mut self, tid: Pid) -> Result<&mut Thread> {
        self.threads.get_mut(&tid).ok_or(Error::ESRCH)
    }

    /// The process that `exact` identifies, which may be a zombie. `ESRCH` if it has been removed,
    /// even if another process has its id now.
    pub fn exact_process(&self, exact: ExactPid) -> Result<&Process> {
        self.process(exact.pid()).and_then(|process| match process.exact_pid() == exact {
            true => Ok(process),
            false => Err(Error::ESRCH),
        })
    }

    /// The process that thread `tid` belongs to. `ESRCH`.
    pub fn process_of(&self, tid: Pid) -> Result<&Process> {
        self.process(self.thread(tid)?.pid)
    }

    /// The records of all processes, in the order of ids.
    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        self.processes.values()
    }

    /// How many threads there are, and how many of them run or could run.
    pub fn thread_counts(&self) -> (usize, usize) {
        let running = self.threads.values().filter(|t| t.run_state() == super::RunState::Running).count();
        (self.threads.len(), running)
    }

    /// How many threads and processes have been made since boot.
    pub fn forks(&self) -> u64 {
        self.forks
    }

    /// Takes the reports of processes that signals ended since the last call.
    pub fn take_reports(&mut self) -> Vec<FatalReport> {
        core::mem::take(&mut self.reports)
    }

    pub(super) fn id_is_used(&self, pid: Pid) -> bool {
        self.threads.contains_key(&pid)
            || self.processes.contains_key(&pid)
            || self.groups.contains_key(&pid)
            || self.sessions.contains_key(&pid)
            || self.held_ids.contains(&pid)
    }

    /// Frees `id` if no thread, process, group or session has it any more.
    pub(super) fn release_id(&mut self, id: Pid) {
        if !self.id_is_used(id) {
            self.release_numbers(id);
            self.ids.release(id);
        }
    }

    /// Wakes the request of thread `tid`, or recalls the thread from its program, because something
    /// has changed for it.
    pub(super) fn wake(&mut self, tid: Pid) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        match thread.is_in_program {
            true => self.wakes.push(Wake::Recall(thread.control.clone())),
            false => self.wakes.extend(thread.waker.take().map(Wake::Request)),
        }
    }

    pub(super) fn wake_all_threads(&mut self, pid: Pid) {
        let threads: Vec<Pid> =
            self.processes.get(&pid).map_or(Vec::new(), |p| p.threads.iter().copied().collect());
        threads.into_iter().for_each(|tid| self.wake(tid));
    }

    /// Adds a listener that is called, as long as it exists, for every signal that becomes pending
    /// for `pid` or its threads. `ESRCH`.
    pub fn listen(&mut self, pid: Pid, listener: Weak<dyn Listener>) -> Result<()> {
        let process = self.process_mut(pid)?;
        process.listeners.retain(|known| known.strong_count() > 0);
        process.listeners.push(listener);
        Ok(())
    }

    /// Wakes the threads of `pid` that wait for children.
    pub(super) fn wake_child_waiters(&mut self, pid: Pid) {
        let waiters = self.processes.get_mut(&pid).map(|p| core::mem::take(&mut p.child_waiters));
        waiters.unwrap_or_default().into_iter().for_each(|tid| self.wake(tid));
    }

    /// Records that the request of thread `tid` waits with `waker`.
    pub fn set_waker(&mut self, tid: Pid, waker: &Waker) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            match &mut thread.waker {
                Some(old) => old.clone_from(waker),
                none => *none = Some(waker.clone()),
            }
        }
    }

    /// Records that thread `tid` has come to the server. Returns whether a tracer or a filter sees
    /// its system calls.
    pub fn enter(&mut self, tid: Pid) -> bool {
        self.threads.get_mut(&tid).is_some_and(|thread| {
            thread.is_in_program = false;
            thread.tracing.is_some() || thread.filter.is_some()
        })
    }

    /// What decides about the system calls of thread `tid`, if anything does.
    pub fn filter(&self, tid: Pid) -> Option<Arc<dyn Any + Send + Sync>> {
        self.threads.get(&tid)?.filter.clone()
    }

    /// Sets what decides about the system calls of thread `tid`, and of the threads that it makes.
    /// `ESRCH`.
    pub fn set_filter(&mut self, tid: Pid, filter: Arc<dyn Any + Send + Sync>) -> Result<()> {
        self.thread_mut(tid)?.filter = Some(filter);
        Ok(())
    }

    /// Whether a tracer or a filter sees the system calls of thread `tid`.
    pub fn is_observed(&self, tid: Pid) -> bool {
        self.threads.get(&tid).is_some_and(|thread| thread.tracing.is_some() || thread.filter.is_some())
    }

    /// Whether thread `tid` has to interrupt its request: for a signal, a stop, or its end.
    pub fn has_work(&self, tid: Pid) -> bool {
        let Some(thread) = self.threads.get(&tid) else { return true };
        let Some(process) = self.processes.get(&thread.pid) else { return true };
        let pending = thread.pending.set() | process.pending.set();
        thread.must_exit
            || process.state.phase != Phase::Running
            || self.stop_holds(tid)
            || thread.tracing.as_ref().is_some_and(|tracing| tracing.is_interrupted)
            || !(pending & !(thread.blocked & !SignalSet::UNMASKABLE)).is_empty()
    }

    /// Whether thread `tid` has to end.
    pub fn must_exit(&self, tid: Pid) -> bool {
        let Some(thread) = self.threads.get(&tid) else { return true };
        let Some(process) = self.processes.get(&thread.pid) else { return true };
        let fatal = thread.pending.set() | process.pending.set();
        thread.must_exit || process.state.phase != Phase::Running || fatal.contains(Signal::KILL)
    }

    /// Replaces the credentials of thread `tid` and moves its charges to the account of the new
    /// user. A process whose user ids have changed may hold data that only the old ids could get:
    /// other processes may not inspect it from then on, and it gets no signal at the end of its
    /// parent. `ESRCH`.
    pub fn set_credentials(&mut self, tid: Pid, credentials: Arc<Credentials>) -> Result<()> {
        self.thread(tid)?;
        self.replace_credentials(tid, credentials);
        Ok(())
    }

    /// Replaces the credentials of thread `tid`, which must exist, as [`Table::set_credentials`]
    /// does.
    pub(super) fn replace_credentials(&mut self, tid: Pid, credentials: Arc<Credentials>) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let old = core::mem::replace(&mut thread.credentials, credentials.clone());
        let pid = thread.pid;
        if !old.acts_as(&credentials) {
            thread.parent_death_signal = None;
            if let Some(process) = self.processes.get_mut(&pid) {
                process.is_dumpable = false;
            }
        }
        let (from, to) = (old.user.real, credentials.user.real);
        let mut signals = 0;
        if tid == pid
            && let Some(process) = self.processes.get_mut(&tid)
        {
            process.credentials = credentials;
            signals = process.queued;
        }
        self.charge(from, -1, -(signals as i64));
        self.charge(to, 1, signals as i64);
    }

    /// Sets the name of thread `tid` (its first 15 bytes), and of its process if it is the first
    /// thread.
    pub fn set_name(&mut self, tid: Pid, name: &[u8]) -> Result<()> {
        let thread = self.threads.get_mut(&tid).ok_or(Error::ESRCH)?;
        thread.name = stored_name(name);
        if thread.pid == tid
            && let Some(process) = self.processes.get_mut(&tid)
        {
            process.name = stored_name(name);
        }
        Ok(())
    }

    pub(super) fn charge(&mut self, user: u32, threads: i64, signals: i64) {
        let charges = self.charges(user);
        charges.threads = charges.threads.saturating_add_signed(threads);
        charges.signals = charges.signals.saturating_add_signed(signals);
        if charges.is_empty() {
            self.users.remove(&user);
        }
    }

    fn charges(&mut self, user: u32) -> &mut UserCharges {
        if !self.users.contains_key(&user) {
            // Drop the accounts of users that have no charges any more. A user without a process
            // may have had files and messages, which may have been removed since.
            self.users.retain(|_, charges| !charges.is_empty());
        }
        let settings = &self.settings;
        self.users.entry(user).or_insert_with(|| UserCharges {
            threads: 0,
            signals: 0,
            account: Account::new(user, settings.clone()),
        })
    }

    /// The account of the user for which thread `tid` acts (its real user id). If the thread has
    /// ended, the account of the user `nobody`.
    pub fn user_account(&mut self, tid: Pid) -> Arc<Account> {
        let none = Credentials::nobody().user.real;
        let user = self.thread(tid).map_or(none, |thread| thread.credentials.user.real);
        self.account_of(user)
    }

    /// The account of user `user`.
    pub fn account_of(&mut self, user: u32) -> Arc<Account> {
        self.charges(user).account.clone()
    }

    /// The namespaces of the first process.
    pub fn first_namespaces(&self) -> &Arc<Namespaces> {
        &self.first_namespaces
    }

    /// The limits that all accounts share.
    pub fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }
}
