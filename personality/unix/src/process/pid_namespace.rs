//! Namespaces of processes (pid_namespaces(7)). A process has a number in its namespace and in each
//! in which that is; its id in the table is the one in the first namespace. Processes of other
//! namespaces have no number, and so cannot be named.

use super::records::Phase;
use super::table::Table;
use super::{ExactPid, Pid, Process};
use crate::account::{Account, Charge};
use crate::namespace::{self, LEVEL_MAXIMUM, NAMESPACE_BYTES, UserNamespace};
use crate::signal::{Cause, Signal, SignalInformation};
use crate::sync::SpinLock;
use crate::{Error, Result};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A namespace of processes.
#[derive(Clone, Debug, Default)]
pub struct PidNamespace(Option<Arc<Inner>>);

struct Inner {
    number: u64,
    parent: PidNamespace,
    level: u32,
    owner: UserNamespace,
    /// What is changed under the lock of the table only.
    space: SpinLock<Space>,
    _charge: Charge,
}

#[derive(Debug)]
struct Space {
    /// The ids of threads, processes, groups and sessions, by their numbers in the namespace.
    ids: BTreeMap<u32, Pid>,
    next: u32,
    /// The first process of the namespace, which adopts orphans.
    init: Option<Pid>,
    /// The first process has ended: there will be no more.
    has_ended: bool,
}

impl core::fmt::Debug for Inner {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}", self.number)
    }
}

impl PartialEq for PidNamespace {
    fn eq(&self, other: &PidNamespace) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Eq for PidNamespace {}

impl PidNamespace {
    /// Makes a namespace in this one, which belongs to `owner`. `ENOSPC` if it would be too deep,
    /// `EINVAL` if `owner` is not in the one to which this belongs, `ENOMEM`.
    pub fn make(&self, owner: &UserNamespace, account: &Arc<Account>) -> Result<PidNamespace> {
        if !owner.is_within(self.owner()) {
            return Err(Error::EINVAL);
        }
        if self.level() >= LEVEL_MAXIMUM {
            return Err(Error::ENOSPC);
        }
        let charge = account.charge_memory(NAMESPACE_BYTES).ok_or(Error::ENOMEM)?;
        let space = Space { ids: BTreeMap::new(), next: 1, init: None, has_ended: false };
        Ok(PidNamespace(Some(Arc::new(Inner {
            number: namespace::new_number(),
            parent: self.clone(),
            level: self.level() + 1,
            owner: owner.clone(),
            space: SpinLock::new(space),
            _charge: charge,
        }))))
    }

    /// Whether this is the first namespace of the system.
    pub fn is_first(&self) -> bool {
        self.0.is_none()
    }

    /// The number of the namespace, which no other one has.
    pub fn number(&self) -> u64 {
        self.0.as_ref().map_or(namespace::PROCESS, |inner| inner.number)
    }

    /// How many namespaces this one is in.
    pub fn level(&self) -> u32 {
        self.0.as_ref().map_or(0, |inner| inner.level)
    }

    /// The namespace in which this one is; `None` for the first one.
    pub fn parent(&self) -> Option<&PidNamespace> {
        self.0.as_ref().map(|inner| &inner.parent)
    }

    /// The namespace of users to which this one belongs.
    pub fn owner(&self) -> &UserNamespace {
        const FIRST: &UserNamespace = &UserNamespace::FIRST;
        self.0.as_ref().map_or(FIRST, |inner| &inner.owner)
    }

    /// Whether this is `other`, or is in it, directly or through others.
    pub fn is_within(&self, other: &PidNamespace) -> bool {
        self.at_level(other.level()) == Some(other)
    }

    /// The namespace at this level in which this one is.
    fn at_level(&self, level: u32) -> Option<&PidNamespace> {
        let mut here = self;
        while here.level() > level {
            here = here.parent()?;
        }
        (here.level() == level).then_some(here)
    }

    /// This namespace and those in which it is, without the first one.
    fn chain(&self) -> impl Iterator<Item = &Inner> {
        core::iter::successors(self.0.as_deref(), |inner| inner.parent.0.as_deref())
    }

    fn init(&self) -> Option<Pid> {
        match &self.0 {
            None => Some(Pid::INIT),
            Some(inner) => inner.space.lock().init,
        }
    }
}

/// The numbers of a thread and of its process in their namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnNumbers {
    /// That of the process.
    pub process: u32,
    /// That of the thread.
    pub thread: u32,
    /// That of the namespace; 0 for the first one.
    pub namespace: u64,
}

/// The numbers of an id in namespaces other than the first one.
pub(super) struct Numbers {
    namespace: PidNamespace,
    /// The numbers from the namespace outwards.
    numbers: Vec<u32>,
}

impl Table {
    /// Gives an id numbers in a namespace and in those in which that is. `ENOMEM` if the namespace
    /// has ended, `EAGAIN` if one has no numbers left.
    pub(super) fn enter_namespace(
        &mut self,
        id: Pid,
        namespace: &PidNamespace,
        is_process: bool,
    ) -> Result<()> {
        if namespace.is_first() {
            return Ok(());
        }
        if namespace.chain().any(|inner| inner.space.lock().has_ended) {
            return Err(Error::ENOMEM);
        }
        let mut numbers = Vec::new();
        numbers.try_reserve_exact(namespace.level() as usize).map_err(|_| Error::ENOMEM)?;
        for inner in namespace.chain() {
            match inner.space.lock().allocate(id) {
                Some(number) => numbers.push(number),
                None => {
                    self.leave_namespace(id, Numbers { namespace: namespace.clone(), numbers });
                    return Err(Error::EAGAIN);
                }
            }
        }
        if let Some(inner) = namespace.0.as_ref().filter(|_| is_process) {
            inner.space.lock().init.get_or_insert(id);
        }
        self.numbers.insert(id, Numbers { namespace: namespace.clone(), numbers });
        Ok(())
    }

    /// Takes the numbers of an id that is free.
    pub(super) fn release_numbers(&mut self, id: Pid) {
        if let Some(numbers) = self.numbers.remove(&id) {
            self.leave_namespace(id, numbers);
        }
    }

    fn leave_namespace(&mut self, id: Pid, numbers: Numbers) {
        for (inner, number) in numbers.namespace.chain().zip(&numbers.numbers) {
            let mut space = inner.space.lock();
            space.ids.remove(number);
            match (space.ids.len(), space.init) {
                // It has not run: the next one is the first.
                (0, Some(init)) if init == id && !space.has_ended => (space.init, space.next) = (None, 1),
                (1, Some(init)) if space.has_ended => self.emptied.push(init),
                _ => {}
            }
        }
    }

    /// The namespace of process `pid`; the first one if there is no such process.
    pub fn pid_namespace(&self, pid: Pid) -> PidNamespace {
        self.processes.get(&pid).map_or(PidNamespace::default(), |process| process.pid_namespace.clone())
    }

    /// The number that an id has in a namespace; 0 if it has none there.
    pub fn number_in(&self, namespace: &PidNamespace, id: Pid) -> u32 {
        if namespace.is_first() {
            return id.number();
        }
        let Some(found) = self.numbers.get(&id) else { return 0 };
        let distance = found.namespace.level().checked_sub(namespace.level());
        let number = distance.and_then(|distance| found.numbers.get(distance as usize));
        number.filter(|_| found.namespace.is_within(namespace)).copied().unwrap_or(0)
    }

    /// The number that an id has for thread `viewer`.
    pub fn number_for(&self, viewer: Pid, id: Pid) -> u32 {
        let pid = self.threads.get(&viewer).map_or(viewer, |thread| thread.pid);
        match self.processes.get(&pid) {
            Some(process) => self.number_in(&process.pid_namespace, id),
            None => 0,
        }
    }

    /// The number that an id has for the tracer of thread `tid`; 0 without one.
    pub fn number_for_tracer(&self, tid: Pid, id: Pid) -> u32 {
        self.tracing(tid).map_or(0, |tracing| self.number_for(tracing.tracer_process(), id))
    }

    /// The numbers of thread `tid` and of its process in their namespace; `None` in the first one.
    pub fn own_numbers(&self, tid: Pid) -> Option<OwnNumbers> {
        let process = self.processes.get(&self.threads.get(&tid)?.pid)?;
        let number = |id| self.number_in(&process.pid_namespace, id);
        let namespace = process.pid_namespace.number();
        let own = || OwnNumbers { process: number(process.pid), thread: number(tid), namespace };
        (!process.pid_namespace.is_first()).then(own)
    }

    /// The numbers of an id from `namespace` on to its own.
    pub fn numbers_from(&self, namespace: &PidNamespace, id: Pid) -> Vec<u32> {
        let mut all: Vec<u32> = self.numbers.get(&id).map_or(Vec::new(), |found| found.numbers.clone());
        all.push(id.number());
        all.reverse();
        all.drain(..(namespace.level() as usize).min(all.len()));
        all
    }

    /// The id that has a number in a namespace.
    pub fn id_in(&self, namespace: &PidNamespace, number: u32) -> Option<Pid> {
        match &namespace.0 {
            None => Pid::new(number),
            Some(inner) => inner.space.lock().ids.get(&number).copied(),
        }
    }

    /// The processes of a namespace, and of those in it, in the order of their numbers there.
    pub fn processes_in(&self, namespace: &PidNamespace) -> Vec<(u32, ExactPid)> {
        match &namespace.0 {
            None => {
                self.processes.values().map(|process| (process.pid.number(), process.exact_pid())).collect()
            }
            Some(inner) => {
                let space = inner.space.lock();
                let process =
                    |(number, id): (&u32, &Pid)| Some((*number, self.processes.get(id)?.exact_pid()));
                space.ids.iter().filter_map(process).collect()
            }
        }
    }

    /// Whether process `pid` is the first one of its namespace.
    pub fn is_init(&self, pid: Pid) -> bool {
        self.processes.get(&pid).is_some_and(|process| process.pid_namespace.init() == Some(pid))
    }

    /// The process that adopts orphans of process `of`, if that is not the process itself and still
    /// runs.
    pub(super) fn init_of(&self, of: &Process) -> Option<Pid> {
        let init = of.pid_namespace.init().filter(|init| *init != of.pid)?;
        let runs =
            |process: &Process| process.pid_namespace.is_first() || process.state.phase == Phase::Running;
        self.processes.get(&init).filter(|process| runs(process)).map(|_| init)
    }

    /// To be called when the first process of a namespace ends: kills all others in it. No process
    /// can be made there from now on.
    pub(super) fn end_namespace_of(&mut self, pid: Pid) {
        if !self.is_init(pid) {
            return;
        }
        let Some(inner) = self.processes.get(&pid).and_then(|process| process.pid_namespace.0.clone()) else {
            return;
        };
        let others: Vec<Pid> = {
            let mut space = inner.space.lock();
            space.has_ended = true;
            space.ids.values().copied().filter(|id| *id != pid && self.processes.contains_key(id)).collect()
        };
        for other in others {
            self.generate_for_process(other, SignalInformation::system(Signal::KILL));
        }
    }

    /// Whether others are left in the namespace of which process `pid` is the first one, which has
    /// ended: its parent learns that after they are gone.
    pub(super) fn waits_for_namespace(&self, pid: Pid) -> bool {
        let Some(process) = self.processes.get(&pid) else { return false };
        process.pid_namespace.0.as_ref().is_some_and(|inner| {
            let space = inner.space.lock();
            space.init == Some(pid) && space.has_ended && space.ids.len() > 1
        })
    }

    /// Tells the parents of first processes whose namespaces have become empty of their ends.
    pub(super) fn settle_namespaces(&mut self) {
        while let Some(init) = self.emptied.pop() {
            let is_held = self.processes.get(&init).is_some_and(|process| process.tracer.is_some());
            if !self.waits_for_namespace(init) {
                self.change_state(init, |state| state.is_held = is_held);
                self.notify_parent_of_exit(init);
            }
        }
    }

    /// Whether thread `sender` has no number in the namespace of process `pid`, in which its
    /// signals are then those of the system.
    pub(super) fn is_outside(&self, sender: Pid, pid: Pid) -> bool {
        let Some(process) = self.processes.get(&pid) else { return false };
        self.number_in(&process.pid_namespace, sender) == 0
    }

    /// The information of a signal with the numbers that its recipient, process `pid`, knows.
    pub(super) fn seen_by(&self, pid: Pid, mut information: SignalInformation) -> SignalInformation {
        let Some(recipient) = self.processes.get(&pid) else { return information };
        if recipient.pid_namespace.is_first() && recipient.credentials.namespace.is_first() {
            return information;
        }
        if let Cause::Kill { process, user }
        | Cause::ThreadKill { process, user }
        | Cause::Child { process, user, .. } = &mut information.cause
        {
            let id = Pid::new(*process);
            *process = id.map_or(0, |id| self.number_in(&recipient.pid_namespace, id));
            *user = recipient.credentials.namespace.shown_user(*user);
        }
        information
    }
}

impl Space {
    /// Takes the next free number for an id.
    fn allocate(&mut self, id: Pid) -> Option<u32> {
        let free = |ids: &BTreeMap<u32, Pid>, mut range: core::ops::Range<u32>| {
            range.find(|number| !ids.contains_key(number))
        };
        let number = free(&self.ids, self.next..Pid::LIMIT).or_else(|| free(&self.ids, 2..Pid::LIMIT))?;
        self.next = number + 1;
        self.ids.insert(number, id);
        Some(number)
    }
}
