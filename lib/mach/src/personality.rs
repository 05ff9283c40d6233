//! The part of tasks and threads that belongs to a personality.

use alloc::sync::Arc;
use core::future::Future;

use crate::machine::Machine;
use crate::thread::{Exception, Handled, Thread};

/// A system whose processes are Mach tasks and whose threads are Mach threads. Its data for each
/// lie inside the Mach task or thread, so that both have one allocation and one reference. Tasks
/// and threads dereference to these data ([`Deref`](core::ops::Deref)).
///
/// `()` is the personality of tasks that are Mach's alone.
pub trait Personality<M: Machine>: Sized + Send + Sync + 'static {
    /// The data that the system keeps in a task.
    type Task: Send + Sync;
    /// The data that the system keeps in a thread.
    type Thread: Send + Sync;

    /// Handles an exception that neither the thread's nor the task's exception handler has handled.
    /// May be dropped at any await, when the thread ends.
    fn raise(thread: &Arc<Thread<M, Self>>, exception: &Exception) -> impl Future<Output = Handled> + Send;

    /// The task has been terminated: its threads have ended, its memory has not. Must not block.
    fn task_ended(task: &Self::Task) {
        let _ = task;
    }

    /// The thread has ended. Must not block.
    fn thread_ended(thread: &Self::Thread) {
        let _ = thread;
    }
}

impl<M: Machine> Personality<M> for () {
    type Task = ();
    type Thread = ();

    async fn raise(_thread: &Arc<Thread<M, Self>>, _exception: &Exception) -> Handled {
        Handled::Pass
    }
}
