//! What a system keeps in Mach's tasks and threads.

use alloc::sync::Arc;
use core::future::Future;

use crate::machine::Machine;
use crate::thread::{Exception, Handled, Thread};

/// A system whose processes are Mach tasks and whose threads are Mach threads. What it keeps of
/// each lies inside the task or thread: one allocation and one reference for both, and no look-up
/// from one to the other. Tasks and threads can be used as what is kept in them
/// ([`Deref`](core::ops::Deref)).
///
/// `()` is the personality of tasks that are Mach's alone.
pub trait Personality<M: Machine>: Sized + Send + Sync + 'static {
    /// What the system keeps in a task.
    type Task: Send + Sync;
    /// What the system keeps in a thread.
    type Thread: Send + Sync;

    /// Handles an exception that neither the thread's nor the task's exception handler has handled.
    /// May be dropped at any await, when the thread ends.
    fn raise(thread: &Arc<Thread<M, Self>>, exception: &Exception) -> impl Future<Output = Handled> + Send;
}

impl<M: Machine> Personality<M> for () {
    type Task = ();
    type Thread = ();

    async fn raise(_thread: &Arc<Thread<M, Self>>, _exception: &Exception) -> Handled {
        Handled::Pass
    }
}
