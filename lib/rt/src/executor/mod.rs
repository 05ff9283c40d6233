//! An `async` executor for servers: a blocked request is a future, not a stack (section U6 of
//! `docs/src/architecture.md`).
//!
//! An [`Executor`] has one [`Worker`] per processor. A task has a worker, and only that worker
//! polls it; any processor may wake it. A wake-up puts the task into its worker's queue and, if
//! that worker sleeps, notifies it once.
//!
//! The worker's thread owns the loop, because its blocking operation is its server's IPC receive:
//!
//! ```text
//! loop {
//!     worker.run(BUDGET);                            // poll what is ready, fire what is due
//!     match worker.prepare_sleep() {
//!         Sleep::Busy => receive without blocking,
//!         Sleep::Until(deadline) => receive until a message, a notification or the deadline,
//!     }
//!     worker.awake();
//!     ... turn a received message into a task or answer it immediately ...
//! }
//! ```
//!
//! **No lost wake-up.** `prepare_sleep` sets `sleeping` under the queue's lock and only while the
//! queue is empty; a wake-up pushes under the same lock and takes `sleeping`. So either the worker
//! sees the task before it sleeps, or the waker sees `sleeping` and notifies. A notification that
//! arrives between `prepare_sleep` and the receive is kept by the kernel (section K15) and ends the
//! receive immediately. A timer that becomes the earliest is handled in the same way: the worker
//! reads the earliest deadline after it has set `sleeping`.
//!
//! **Memory.** A spawned task is three allocations (task, future, result); a wake-up, a poll and a
//! timer are none (room is reserved when a task is spawned; a timer that finds no memory polls
//! instead of sleeping).

mod queue;
mod sleep;
mod task;
mod task_state;
mod timers;

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::future::Future;

pub use sleep::{SleepUntil, YieldNow};
pub use task::{JoinHandle, TaskAssignment};

use queue::RunQueue;
use task::Task;
use timers::Timers;

/// A point in time: microseconds of the platform's monotonic clock.
pub type Instant = u64;

/// The operations of the system below that the executor needs.
pub trait Platform: Send + Sync + 'static {
    /// The monotonic clock, in microseconds.
    fn now(&self) -> Instant;

    /// Ends the present or the next sleep of worker `worker`. It must not block, and must not be
    /// lost if the worker is only about to sleep. It may do nothing if the worker calls it for
    /// itself and checks [`Worker::is_sleeping`] before it waits.
    fn notify(&self, worker: usize);
}

/// The error that there is not enough memory; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

/// The part of a worker that other workers use.
struct WorkerShared {
    queue: RunQueue<Arc<Task>>,
    timers: Timers,
}

/// All workers of a server, and the platform on which they run. Tasks refer to it as [`Wakeups`],
/// without its type.
struct Group<P> {
    platform: P,
    workers: Box<[WorkerShared]>,
}

/// The interface by which a task gets into its worker's queue, whatever the platform.
trait Wakeups: Send + Sync {
    /// Queues `task` at `worker` and notifies it if it sleeps.
    fn enqueue(&self, worker: usize, task: Arc<Task>);

    /// Records that a task has ended, and needs no room in the queues any more.
    fn release_room(&self);
}

impl<P: Platform> Wakeups for Group<P> {
    fn enqueue(&self, worker: usize, task: Arc<Task>) {
        if self.workers[worker].queue.push(task) {
            self.platform.notify(worker);
        }
    }

    fn release_room(&self) {
        self.workers.iter().for_each(|shared| shared.queue.release());
    }
}

/// The workers of one server.
pub struct Executor<P>(Arc<Group<P>>);

impl<P> Clone for Executor<P> {
    fn clone(&self) -> Self {
        Executor(self.0.clone())
    }
}

impl<P: Platform> Executor<P> {
    /// An executor with `workers` workers. Each thread gets its worker by [`Executor::worker`].
    ///
    /// # Panics
    /// If `workers` is 0: such an executor could never run anything.
    pub fn new(platform: P, workers: usize) -> Self {
        assert!(workers > 0, "an executor needs at least one worker");
        let workers =
            (0..workers).map(|_| WorkerShared { queue: RunQueue::new(), timers: Timers::new() }).collect();
        Executor(Arc::new(Group { platform, workers }))
    }

    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.0.workers.len()
    }

    /// The platform on which the executor runs.
    pub fn platform(&self) -> &P {
        &self.0.platform
    }

    /// The driver of worker `index`. Only one thread should drive a worker; two drivers would be
    /// safe, but would share its tasks.
    pub fn worker(&self, index: usize) -> Worker<P> {
        assert!(index < self.workers(), "worker {index} of {}", self.workers());
        Worker { group: self.0.clone(), index }
    }

    /// Starts `future` as a task of `worker`. The task also runs if the handle is dropped.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the worker's queue cannot hold one more task.
    pub fn spawn<F>(&self, worker: usize, future: F) -> Result<JoinHandle<F::Output>, OutOfMemory>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        // Every queue has room for every task of the server: a task may move, and a wake-up must
        // not allocate.
        for (admitted, shared) in self.0.workers.iter().enumerate() {
            if let Err(error) = shared.queue.reserve() {
                self.0.workers[..admitted].iter().for_each(|shared| shared.queue.release());
                return Err(error);
            }
        }
        Ok(task::spawn(self.0.clone(), worker, future))
    }

    /// A future that is ready when the clock has reached `deadline`. Its timer belongs to `worker`.
    pub fn sleep_until(&self, worker: usize, deadline: Instant) -> SleepUntil<P> {
        SleepUntil::new(self.clone(), worker, deadline)
    }
}

/// What a worker may do after it has polled its tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// There is work: receive without blocking.
    Busy,
    /// There is nothing to do until a message, a notification, or this time (`None`: no timer is
    /// armed).
    Until(Option<Instant>),
}

/// The driver of one worker's tasks. It belongs to the worker's thread.
pub struct Worker<P> {
    group: Arc<Group<P>>,
    index: usize,
}

impl<P: Platform> Worker<P> {
    /// The number of this worker.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The executor this worker belongs to.
    pub fn executor(&self) -> Executor<P> {
        Executor(self.group.clone())
    }

    /// Fires the timers that are due, then polls up to `budget` ready tasks. A task that yields is
    /// not polled a second time, because messages are served first. Returns how many tasks were
    /// polled.
    pub fn run(&mut self, mut budget: usize) -> usize {
        let shared = &self.group.workers[self.index];
        // The clock is read only if there is a timer, since that may need a system call.
        if shared.timers.earliest().is_some() {
            shared.timers.fire(self.group.platform.now());
        }
        let mut polled = 0;
        while polled < budget {
            let Some(task) = shared.queue.pop() else { break };
            polled += 1;
            let worker = task.worker();
            if worker != self.index {
                self.group.enqueue(worker, task);
            } else if task.run() {
                // This task is the last in the queue.
                budget = budget.min(polled + shared.queue.len() - 1);
            }
        }
        polled
    }

    /// Announces that this worker is about to sleep: from here on a wake-up notifies it.
    pub fn prepare_sleep(&mut self) -> Sleep {
        let shared = &self.group.workers[self.index];
        if !shared.queue.prepare_sleep() {
            return Sleep::Busy;
        }
        // The deadline is read after `sleeping` was set: a timer that is armed later and is the
        // earliest notifies the worker.
        match shared.timers.earliest() {
            Some(deadline) if deadline <= self.group.platform.now() => {
                shared.queue.awake();
                Sleep::Busy
            }
            deadline => Sleep::Until(deadline),
        }
    }

    /// Whether the announced sleep is still in force: false after a task was woken.
    pub fn is_sleeping(&self) -> bool {
        self.group.workers[self.index].queue.is_sleeping()
    }

    /// Announces that the sleep has ended, so that wake-ups need no notification.
    pub fn awake(&mut self) {
        self.group.workers[self.index].queue.awake();
    }
}
