//! An `async` executor for servers: a blocked request is a future, not a stack (U6 in
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
//! arrives between `prepare_sleep` and the receive is kept by the kernel (K15) and ends the receive
//! immediately. A timer that becomes the earliest is handled in the same way: the worker reads the
//! earliest deadline after it has set `sleeping`.
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

pub use sleep::{Elapsed, SleepUntil, Timeout, YieldNow};
pub use task::{JoinHandle, TaskAssignment};

use queue::RunQueue;
use task::Task;
use timers::Timers;

/// A point in time: microseconds of the platform's monotonic clock.
pub type Instant = u64;

/// What the executor needs of the system below it.
pub trait Platform: Send + Sync + 'static {
    /// The monotonic clock, in microseconds.
    fn now(&self) -> Instant;

    /// Ends the present or the next sleep of worker `worker`. Must not block, and must not be lost
    /// if the worker is only about to sleep. May do nothing where the worker itself calls this, if
    /// it looks at [`Worker::is_sleeping`] before it waits.
    fn notify(&self, worker: usize);
}

/// There is no memory for what was asked; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

/// The part of a worker that other workers use.
struct WorkerShared {
    queue: RunQueue<Arc<Task>>,
    timers: Timers,
}

/// All workers of one server and the platform they run on. Type-erased inside tasks as [`Wakeups`].
struct Group<P> {
    platform: P,
    workers: Box<[WorkerShared]>,
}

/// How a task reaches its worker's queue, whatever the platform.
trait Wakeups: Send + Sync {
    /// Queues `task` at `worker` and notifies it if it sleeps.
    fn enqueue(&self, worker: usize, task: Arc<Task>);

    /// A task has ended and needs no room in the queues any more.
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
    /// An executor of `workers` workers, which its threads fetch with [`Executor::worker`].
    ///
    /// # Panics
    /// If `workers` is 0: an executor that can never run anything is a mistake in the server.
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

    /// The platform.
    pub fn platform(&self) -> &P {
        &self.0.platform
    }

    /// The loop driver of worker `index`. Each worker is to be driven by one thread; two drivers of
    /// one worker would be safe, but would share its tasks.
    pub fn worker(&self, index: usize) -> Worker<P> {
        assert!(index < self.workers(), "worker {index} of {}", self.workers());
        Worker { group: self.0.clone(), index }
    }

    /// Starts `future` as a task of `worker`. The task runs on whether or not the handle is
    /// kept.
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

    /// A future that is ready once the clock has reached `deadline`, kept by `worker`'s timers.
    pub fn sleep_until(&self, worker: usize, deadline: Instant) -> SleepUntil<P> {
        SleepUntil::new(self.clone(), worker, deadline)
    }

    /// `future`, or [`Elapsed`] if it is not ready when the clock reaches `deadline`. The future is
    /// polled first: one that is ready wins against a deadline that has passed.
    pub fn timeout_at<F: Future>(&self, worker: usize, deadline: Instant, future: F) -> Timeout<F, P> {
        Timeout::new(future, self.sleep_until(worker, deadline))
    }
}

/// What a worker may do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// There is work: receive without blocking.
    Busy,
    /// There is nothing to do until a message, a notification, or this time (`None`: no timer is
    /// armed).
    Until(Option<Instant>),
}

/// Drives the tasks of one worker; owned by that worker's thread.
pub struct Worker<P> {
    group: Arc<Group<P>>,
    index: usize,
}

impl<P: Platform> Worker<P> {
    /// This worker's number.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The executor this worker belongs to.
    pub fn executor(&self) -> Executor<P> {
        Executor(self.group.clone())
    }

    /// Fires the timers that are due, then polls up to `budget` ready tasks. A task that gives way
    /// is not polled a second time: messages come first. Returns how many were polled.
    pub fn run(&mut self, mut budget: usize) -> usize {
        let shared = &self.group.workers[self.index];
        // The clock is a system call where it cannot be read at user level.
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
        // This is read after `sleeping` is set: a timer that is armed from now on notifies if it is
        // the earliest.
        match shared.timers.earliest() {
            Some(deadline) if deadline <= self.group.platform.now() => {
                shared.queue.awake();
                Sleep::Busy
            }
            deadline => Sleep::Until(deadline),
        }
    }

    /// Whether the sleep that was announced goes on: false once a task was woken.
    pub fn is_sleeping(&self) -> bool {
        self.group.workers[self.index].queue.is_sleeping()
    }

    /// Says that the sleep is over; wake-ups need no notification any more.
    pub fn awake(&mut self) {
        self.group.workers[self.index].queue.awake();
    }
}
