//! A deterministic executor for tests: it has one thread and virtual time, and polls tasks in the
//! order in which they were woken.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::task::Wake;
use alloc::vec::Vec;
use core::future::Future;
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};

use macadamia_sync::SpinLock;

use super::Simulated;

type Queue = Arc<SpinLock<VecDeque<usize>>>;

/// Puts a task into the run queue when the task is woken; only once until it is polled.
struct TaskWaker {
    number: usize,
    queued: AtomicBool,
    queue: Queue,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            self.queue.lock().push_back(self.number);
        }
    }
}

struct Task {
    future: Pin<Box<dyn Future<Output = ()>>>,
    waker: Arc<TaskWaker>,
}

/// Runs futures over a [`Simulated`] machine. When no task can be polled, the machine's clock jumps
/// to the next timer.
pub struct Executor {
    machine: Simulated,
    tasks: Vec<Option<Task>>,
    queue: Queue,
}

/// Identifies a spawned task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskId(usize);

impl Executor {
    /// An executor that uses the machine's timers.
    pub fn new(machine: Simulated) -> Self {
        Self { machine, tasks: Vec::new(), queue: Queue::default() }
    }

    /// Adds a task; it runs when the executor does.
    pub fn spawn(&mut self, future: impl Future<Output = ()> + 'static) -> TaskId {
        let number = self.tasks.len();
        let waker = Arc::new(TaskWaker { number, queued: AtomicBool::new(true), queue: self.queue.clone() });
        self.tasks.push(Some(Task { future: Box::pin(future), waker }));
        self.queue.lock().push_back(number);
        TaskId(number)
    }

    /// Drops a task before its end, as when a request is cancelled.
    pub fn cancel(&mut self, task: TaskId) {
        self.tasks[task.0] = None;
    }

    /// Whether the task has ended (or was cancelled).
    pub fn is_finished(&self, task: TaskId) -> bool {
        self.tasks[task.0].is_none()
    }

    /// Polls the task that was woken first. Returns false if there is none.
    pub fn step(&mut self) -> bool {
        let Some(number) = self.queue.lock().pop_front() else { return false };
        if let Some(mut task) = self.tasks[number].take() {
            // The flag is cleared before the poll, so that a wake-up during the poll queues the
            // task again.
            task.waker.queued.store(false, Ordering::Release);
            let waker = Waker::from(task.waker.clone());
            if task.future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                self.tasks[number] = Some(task);
            }
        }
        true
    }

    /// Runs until every task has ended or waits for something other than time. Returns whether all
    /// have ended.
    pub fn run(&mut self) -> bool {
        while self.step() || self.machine.advance_to_next_timer() {}
        self.tasks.iter().all(Option::is_none)
    }

    /// Runs `future` to its end, and the spawned tasks meanwhile.
    ///
    /// # Panics
    /// If no task can be polled and `future` has not ended: a deadlock.
    pub fn block_on<T>(&mut self, future: impl Future<Output = T>) -> T {
        self.try_block_on(future).expect("deadlock: the future waits for something that cannot happen")
    }

    /// Runs `future` as [`block_on`](Self::block_on) does. Returns `None` on a deadlock.
    pub fn try_block_on<T>(&mut self, future: impl Future<Output = T>) -> Option<T> {
        const MAIN: usize = usize::MAX;
        let waker =
            Arc::new(TaskWaker { number: MAIN, queued: AtomicBool::new(false), queue: self.queue.clone() });
        let mut future = pin!(future);
        waker.clone().wake();
        loop {
            let next = self.queue.lock().front().copied();
            match next {
                Some(MAIN) => {
                    self.queue.lock().pop_front();
                    waker.queued.store(false, Ordering::Release);
                    let context_waker = Waker::from(waker.clone());
                    if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&context_waker))
                    {
                        return Some(value);
                    }
                }
                Some(_) => {
                    self.step();
                }
                None if self.machine.advance_to_next_timer() => {}
                None => return None,
            }
        }
    }
}

impl Simulated {
    /// Runs a future that depends on no other task; see [`Executor::block_on`].
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        Executor::new(self.clone()).block_on(future)
    }
}
