//! New threads and processes with their resources (clone(2), fork(2), vfork(2)).

use super::{Inner, NewNamespaces, Resources, System, context_error};
use crate::memory::Memory;
use crate::personality::Thread;
use crate::process::{NewThread, Pid};
use crate::signal::Signal;
use crate::{Error, Result};
use alloc::boxed::Box;
use alloc::sync::Arc;
use mach::Machine;
use mach::machine::{ExecutionContext, ThreadState};
use mach::thread::ExceptionState;

/// The properties of a new thread or process. The front end has checked that they go together.
#[derive(Clone, Copy, Debug, Default)]
pub struct CloneRequest {
    /// Whether the child shares the caller's address space.
    pub share_memory: bool,
    /// Whether the child shares the caller's descriptor table.
    pub share_descriptors: bool,
    /// Whether the child shares the caller's root directory, working directory and umask.
    pub share_directories: bool,
    /// The namespaces that are made for the child. With one of mounts it shares no directories.
    pub namespaces: NewNamespaces,
    /// Whether the child shares the caller's signal actions.
    pub share_actions: bool,
    /// Whether the child is a thread of the caller's process, instead of a process.
    pub same_process: bool,
    /// Whether the caller's parent becomes the child's parent.
    pub same_parent: bool,
    /// Whether signals with handlers get their default actions in the child.
    pub clear_handlers: bool,
    /// Whether the caller waits until the child executes a program or ends (vfork(2)).
    pub vfork: bool,
    /// The signal that the parent gets when the child ends.
    pub exit_signal: Option<Signal>,
    /// Address in the caller's memory at which the child's id is stored; 0 for none.
    pub store_in_parent: u64,
    /// Address in the child's memory at which the child's id is stored; 0 for none.
    pub store_in_child: u64,
}

/// A new thread that has an id and can be found, but does not run yet. It is removed if this is
/// dropped.
pub struct Unstarted<'a, M: Machine> {
    system: &'a System<M>,
    tid: Pid,
    thread: Arc<Thread<M>>,
    kept: bool,
}

impl<M: Machine> Unstarted<'_, M> {
    /// The id of the new thread.
    pub fn tid(&self) -> Pid {
        self.tid
    }

    /// The thread, to be prepared before it runs.
    pub fn thread(&self) -> &Thread<M> {
        &self.thread
    }

    /// Starts the new thread with registers `state`.
    pub fn start(self, state: Box<ThreadState>) {
        let system = self.system;
        system.host().start_thread(self.keep(), state);
    }

    /// The new thread, which dropping does not remove any more. The caller has to start it.
    pub fn keep(mut self) -> Arc<Thread<M>> {
        self.kept = true;
        self.thread.clone()
    }
}

impl<M: Machine> Drop for Unstarted<'_, M> {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        self.system.life.threads.lock().remove(self.tid, |found| core::ptr::eq(found, &*self.thread));
        self.system.processes().with(|table| table.abandon(self.tid));
    }
}

impl<M: Machine> Resources<M> {
    /// Makes a thread or a process, which the caller starts. This does not wait for the child of a
    /// vfork; the caller does that with [`crate::process::Processes::wait_vfork`]. `EAGAIN`,
    /// `ENOMEM`.
    pub async fn clone_thread(&self, request: &CloneRequest) -> Result<Unstarted<'_, M>> {
        let system = &self.system;
        let (own_memory, own_descriptors, own_directories) =
            (&self.memory, self.descriptors(), self.directories());
        let account = system.processes().with(|table| table.user_account(self.tid()));
        let memory = match request.share_memory {
            true => own_memory.clone(),
            false => {
                let child = Memory::fork(own_memory, &account).await?;
                system.host().prepare(&child)?;
                child
            }
        };
        let descriptors = match request.share_descriptors {
            true => own_descriptors,
            false => Arc::new(own_descriptors.copy()?),
        };
        let directories = match request.share_directories {
            true => own_directories,
            false => Arc::new(own_directories.copy()),
        };
        let made = self.make_namespaces(request.namespaces, &account)?;
        if let Some(made) = made.as_ref().filter(|_| request.namespaces.contains(NewNamespaces::MOUNTS)) {
            directories.unshare_mounts(&made.credentials.namespace, &account)?;
        }
        let (credentials, namespaces) = made.map(|made| (made.credentials, made.namespaces)).unzip();
        let caller = self.tid();
        let inner = Inner {
            tid: caller,
            pid: self.pid(),
            numbers: None,
            descriptors,
            directories: directories.clone(),
            trap: ExceptionState::default(),
            debug_registers: None,
        };
        let thread = system.create_thread(&memory, inner).await?;
        thread.set_extended_state(&self.extended_state()?)?;
        thread.context.set_affinity(self.context.affinity()).map_err(context_error)?;
        let new = NewThread {
            control: thread.clone(),
            same_process: request.same_process,
            share_actions: request.share_actions,
            clear_handlers: request.clear_handlers,
            same_parent: request.same_parent,
            exit_signal: request.exit_signal,
            vfork: request.vfork,
            keep_stack: !request.share_memory || request.vfork,
            credentials,
            namespaces,
            now: system.environment().monotonic(),
        };
        let tid = system.processes().with(|table| table.create(caller, new))?;
        let unstarted = Unstarted { system, tid, thread: thread.clone(), kept: false };
        if self.is_observed() && system.processes().with(|table| table.is_observed(tid)) {
            thread.observe_calls();
        }
        let (numbers, shown) =
            system.processes().with(|table| (table.own_numbers(tid), table.number_for(caller, tid)));
        {
            let mut inner = thread.inner.lock();
            (inner.tid, inner.numbers) = (tid, numbers);
            if !request.same_process {
                inner.pid = tid;
            }
        }
        {
            // The lock orders this with exec: either exec sees that this thread shares its
            // directories, or exec has sealed the directories before
            //, and this call fails.
            let mut threads = system.life.threads.lock();
            if request.share_directories && directories.is_sealed() {
                return Err(Error::EAGAIN);
            }
            threads.insert(tid, thread);
        }
        // Now that the thread can be found, a change of its priority after this one reaches it.
        unstarted.thread.begin_schedule(tid)?;
        // If the address that the program gave cannot be written, the id is not stored, and that is
        // no error.
        if request.store_in_parent != 0 {
            let id = shown.to_le_bytes();
            own_memory.copy_out(request.store_in_parent, &id).await.map_err(|_| Error::EFAULT)?;
        }
        if request.store_in_child != 0 {
            let id = numbers.map_or(tid.number(), |own| own.thread).to_le_bytes();
            let _ = memory.copy_out(request.store_in_child, &id).await;
        }
        Ok(unstarted)
    }
}
