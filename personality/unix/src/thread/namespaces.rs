//! How a thread gets into other namespaces: it makes them (clone(2), unshare(2)) or joins those of
//! another process (setns(2)).

use super::Resources;
use crate::account::Account;
use crate::credentials::Credentials;
use crate::namespace::{Names, Namespaces, ObjectNamespace, UserNamespace};
use crate::process::PidNamespace;
use crate::vfs::MountTree;
use crate::{Error, Privilege, Result};
use alloc::sync::Arc;
use bitflags::bitflags;
use mach::Machine;

bitflags! {
    /// The namespaces that are made for a thread.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct NewNamespaces: u32 {
        /// Of users (CLONE_NEWUSER). The others belong to it.
        const USERS = 1;
        /// Of mounts (CLONE_NEWNS).
        const MOUNTS = 2;
        /// Of processes, for the children of the thread (CLONE_NEWPID).
        const PROCESSES = 4;
        /// Of the names of the host (CLONE_NEWUTS).
        const NAMES = 8;
        /// Of System V objects and message queues (CLONE_NEWIPC).
        const OBJECTS = 16;
    }
}

/// A namespace, as files show it.
#[derive(Clone)]
pub enum Namespace {
    /// Of users.
    Users(UserNamespace),
    /// Of mounts.
    Mounts(Arc<MountTree>),
    /// Of processes.
    Processes(PidNamespace),
    /// Of the names of the host.
    Names(Arc<Names>),
    /// Of System V objects and message queues.
    Objects(Arc<ObjectNamespace>),
}

impl Namespace {
    /// The number of the namespace, which no other one has.
    pub fn number(&self) -> u64 {
        match self {
            Namespace::Users(users) => users.number(),
            Namespace::Mounts(tree) => tree.number(),
            Namespace::Processes(processes) => processes.number(),
            Namespace::Names(names) => names.number(),
            Namespace::Objects(objects) => objects.number(),
        }
    }

    /// The namespace of users to which this one belongs; of one of users, the one in which it is.
    /// `None` for the first one of users.
    pub fn owner(&self) -> Option<&UserNamespace> {
        match self {
            Namespace::Users(users) => users.parent(),
            Namespace::Mounts(tree) => Some(tree.owner()),
            Namespace::Processes(processes) => Some(processes.owner()),
            Namespace::Names(names) => Some(names.owner()),
            Namespace::Objects(objects) => Some(objects.owner()),
        }
    }
}

/// What a thread is in after namespaces were made.
pub(super) struct Made {
    pub(super) credentials: Arc<Credentials>,
    pub(super) namespaces: Arc<Namespaces>,
}

impl<M: Machine> Resources<M> {
    /// The namespaces in which the thread is, beyond those of users, mounts and processes.
    pub fn namespaces(&self) -> Arc<Namespaces> {
        let tid = self.tid();
        let found =
            |table: &mut crate::process::Table| table.thread(tid).ok().map(|t| t.namespaces().clone());
        self.system.processes().with(found).unwrap_or_default()
    }

    /// The namespace of processes in which the thread is.
    pub fn pid_namespace(&self) -> PidNamespace {
        self.system.processes().with(|table| table.pid_namespace(self.pid()))
    }

    /// Makes namespaces; those of mounts are left to the caller. `None` if there is nothing to
    /// make.
    ///
    /// # Errors
    /// `EPERM`: the thread has not the privilege, which it has in a namespace of users that is made
    /// with the others; it has another root directory than its tree of mounts, which a namespace of
    /// users would let it leave; or it has ids that its namespace has not. `EINVAL`: its children
    /// begin in another namespace already. `ENOSPC`: too many levels. `ENOMEM`.
    pub(super) fn make_namespaces(&self, new: NewNamespaces, account: &Arc<Account>) -> Result<Option<Made>> {
        if new.is_empty() {
            return Ok(None);
        }
        let mut credentials = self.credentials();
        if new.contains(NewNamespaces::USERS) {
            if !self.directories().is_at_root() {
                return Err(Error::EPERM);
            }
            let users = UserNamespace::make(&credentials, account)?;
            credentials = Arc::new(credentials.in_namespace(users));
        }
        if new != NewNamespaces::USERS && !credentials.has_own(Privilege::Administrator) {
            return Err(Error::EPERM);
        }
        let owner = &credentials.namespace;
        let mut changed = (*self.namespaces()).clone();
        if new.contains(NewNamespaces::NAMES) {
            changed.names = changed.names.copy(owner, account)?;
        }
        if new.contains(NewNamespaces::OBJECTS) {
            changed.objects = ObjectNamespace::make(owner, account)?;
        }
        if new.contains(NewNamespaces::PROCESSES) {
            if self.pid_namespace() != changed.for_children {
                return Err(Error::EINVAL);
            }
            changed.for_children = changed.for_children.make(owner, account)?;
        }
        Ok(Some(Made { credentials, namespaces: Arc::new(changed) }))
    }

    /// Makes namespaces for the thread, and with `directories` or one of mounts or users gives it
    /// root, working directory and umask of its own (unshare(2)). `EINVAL` for one of users if the
    /// process has other threads; other errors of [`Self::clone_thread`].
    pub fn unshare(&self, new: NewNamespaces, directories: bool) -> Result<()> {
        let (tid, pid) = (self.tid(), self.pid());
        if new.contains(NewNamespaces::USERS) {
            self.check_alone()?;
        }
        let account = self.system.processes().with(|table| table.user_account(tid));
        let made = self.make_namespaces(new, &account)?;
        if directories || new.intersects(NewNamespaces::MOUNTS | NewNamespaces::USERS) {
            let copy = Arc::new(self.directories().copy());
            if let Some(made) = made.as_ref().filter(|_| new.contains(NewNamespaces::MOUNTS)) {
                copy.unshare_mounts(&made.credentials.namespace, &account)?;
            }
            let old = core::mem::replace(&mut self.inner.lock().directories, copy);
            drop(old);
        }
        if new.contains(NewNamespaces::OBJECTS) {
            // What the process would undo at its end it undoes now: it leaves the objects.
            let now = self.system.environment().realtime().seconds;
            self.namespaces().objects.system_v.semaphores.process_ended(pid.number(), now);
        }
        made.map_or(Ok(()), |made| self.enter(made))
    }

    fn enter(&self, made: Made) -> Result<()> {
        let tid = self.tid();
        self.system.processes().with(|table| {
            table.thread_mut(tid)?.set_namespaces(made.namespaces);
            table.set_credentials(tid, made.credentials)
        })
    }

    /// Checks that the thread is the only one of its process. `EINVAL`.
    fn check_alone(&self) -> Result<()> {
        let is_alone = self.system.processes().with(|table| table.is_alone(self.tid()));
        if is_alone { Ok(()) } else { Err(Error::EINVAL) }
    }

    /// Moves the thread into namespaces (setns(2)). One of users comes first if there is one.
    ///
    /// # Errors
    /// `EPERM`: the thread has not the privilege in a namespace and in its own. `EINVAL`: the
    /// process is in a namespace of users already, or has other threads that share what changes;
    /// or a namespace of processes is not in the thread's own. `ESRCH`.
    pub fn join(&self, all: &[Namespace]) -> Result<()> {
        let (mut credentials, namespaces) = (self.credentials(), self.namespaces());
        let mut changed = (*namespaces).clone();
        let mut tree = None;
        for namespace in all {
            if let Namespace::Users(users) = namespace {
                if credentials.namespace == *users {
                    return Err(Error::EINVAL);
                }
                self.check_alone()?;
                self.check_directories()?;
                if !credentials.has_in(users, Privilege::Administrator) {
                    return Err(Error::EPERM);
                }
                credentials = Arc::new(credentials.in_namespace(users.clone()));
                continue;
            }
            let owner = namespace.owner().ok_or(Error::EINVAL)?;
            let may = credentials.has_in(owner, Privilege::Administrator)
                && credentials.has_own(Privilege::Administrator);
            if !may {
                return Err(Error::EPERM);
            }
            match namespace {
                Namespace::Users(_) => {}
                Namespace::Mounts(mounts) => {
                    if !credentials.has_own(Privilege::ChangeRoot) {
                        return Err(Error::EPERM);
                    }
                    self.check_directories()?;
                    tree = Some(mounts.clone());
                }
                Namespace::Processes(processes) => {
                    if !processes.is_within(&self.pid_namespace()) {
                        return Err(Error::EINVAL);
                    }
                    changed.for_children = processes.clone();
                }
                Namespace::Names(names) => changed.names = names.clone(),
                Namespace::Objects(objects) => changed.objects = objects.clone(),
            }
        }
        if !Arc::ptr_eq(&changed.objects, &namespaces.objects) {
            let (pid, now) = (self.pid().number(), self.system.environment().realtime().seconds);
            namespaces.objects.system_v.semaphores.process_ended(pid, now);
        }
        if let Some(tree) = tree {
            self.directories().set_tree(tree);
        }
        self.enter(Made { credentials, namespaces: Arc::new(changed) })
    }

    /// Checks that no other thread shares the directories. `EINVAL`.
    fn check_directories(&self) -> Result<()> {
        let own = self.directories();
        let threads = self.system.life.threads.lock();
        let share = |thread: &&Arc<super::Thread<M>>| Arc::ptr_eq(&thread.inner.lock().directories, &own);
        if threads.values().filter(share).count() <= 1 { Ok(()) } else { Err(Error::EINVAL) }
    }
}
