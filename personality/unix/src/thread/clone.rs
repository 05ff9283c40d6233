//! New threads and processes with their resources (clone(2), fork(2), vfork(2)).

use super::{Inner, Resources, System, context_error};
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

/// What clone(2) asks for. The front end has checked that the flags go together.
#[derive(Clone, Copy, Debug, Default)]
pub struct CloneRequest {
    /// The child shares the address space (CLONE_VM).
    pub share_memory: bool,
    /// The child shares the descriptors (CLONE_FILES).
    pub share_descriptors: bool,
    /// The child shares root, working directory and umask (CLONE_FS).
    pub share_directories: bool,
    /// The child shares the signal actions (CLONE_SIGHAND).
    pub share_actions: bool,
    /// The child is a thread of the same process (CLONE_THREAD).
    pub same_process: bool,
    /// The caller's parent becomes the parent (CLONE_PARENT).
    pub same_parent: bool,
    /// Handlers become defaults (CLONE_CLEAR_SIGHAND).
    pub clear_handlers: bool,
    /// Wait until the child execs or ends (CLONE_VFORK).
    pub vfork: bool,
    /// What the parent is sent when the new process ends.
    pub exit_signal: Option<Signal>,
    /// Where to store the id in the caller's memory (CLONE_PARENT_SETTID); 0: nowhere.
    pub store_in_parent: u64,
    /// Where to store the id in the new thread's memory (CLONE_CHILD_SETTID); 0: nowhere.
    pub store_in_child: u64,
}

/// A new thread that has an id and is known, but does not run yet; taken back if dropped.
pub struct Unstarted<'a, M: Machine> {
    system: &'a System<M>,
    tid: Pid,
    thread: Arc<Thread<M>>,
    kept: bool,
}

impl<M: Machine> Unstarted<'_, M> {
    /// Its id.
    pub fn tid(&self) -> Pid {
        self.tid
    }

    /// The thread, to be prepared before it runs.
    pub fn thread(&self) -> &Thread<M> {
        &self.thread
    }

    /// Has it run, from registers `state` on.
    pub fn start(self, state: Box<ThreadState>) {
        let system = self.system;
        system.host().start_thread(self.keep(), state);
    }

    /// The thread, which is not taken back any more. The caller has to see to it that it runs.
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
    /// Makes a thread or a process, which the caller starts. Does not wait for a vfork's child:
    /// that is [`crate::process::Processes::wait_vfork`]. `EAGAIN`, `ENOMEM`.
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
        let caller = self.tid();
        let inner = Inner {
            tid: caller,
            pid: self.pid(),
            descriptors,
            directories: directories.clone(),
            trap: ExceptionState::default(),
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
            now: system.environment().monotonic(),
        };
        let tid = system.processes().with(|table| table.create(caller, new))?;
        let unstarted = Unstarted { system, tid, thread: thread.clone(), kept: false };
        {
            let mut inner = thread.inner.lock();
            inner.tid = tid;
            if !request.same_process {
                inner.pid = tid;
            }
        }
        {
            // The lock orders this with exec. Either exec sees that this thread shares its
            // directories, or it has sealed them before, and this call fails.
            let mut threads = system.life.threads.lock();
            if request.share_directories && directories.is_sealed() {
                return Err(Error::EAGAIN);
            }
            threads.insert(tid, thread);
        }
        let id = tid.number().to_le_bytes();
        // If the program gave an address that cannot be written, the number is not stored, and that
        // is no error.
        if request.store_in_parent != 0 {
            own_memory.copy_out(request.store_in_parent, &id).await.map_err(|_| Error::EFAULT)?;
        }
        if request.store_in_child != 0 {
            let _ = memory.copy_out(request.store_in_child, &id).await;
        }
        Ok(unstarted)
    }
}
