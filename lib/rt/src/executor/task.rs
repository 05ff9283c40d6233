//! Tasks: a future with its state, its worker, and the handle that waits for the result.

use super::Wakeups;
use super::task_state::TaskState;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::task::Wake;
use core::future::Future;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};
use pin_project_lite::pin_project;
use spin::Mutex;

type BoxedFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

pub(super) struct Task {
    state: TaskState,
    /// The worker that polls this task. Any processor may read it; with a stale value the task is
    /// passed on once more.
    worker: AtomicUsize,
    aborted: AtomicBool,
    wakeups: Arc<dyn Wakeups>,
    /// The future, which is locked by the worker that polls it; `None` after the task has ended.
    future: Mutex<Option<BoxedFuture>>,
}

impl Task {
    pub(super) fn worker(&self) -> usize {
        self.worker.load(Ordering::Relaxed)
    }

    fn move_to(&self, worker: usize) {
        self.worker.store(worker, Ordering::Relaxed);
    }

    /// Polls the task once. Its worker calls this after it has taken the task from its queue.
    /// Returns true if the task was woken meanwhile and is in the queue again.
    pub(super) fn run(self: Arc<Self>) -> bool {
        self.state.start();
        let waker = Waker::from(self.clone());
        let mut slot = self.future.lock();
        let ended = self.aborted.load(Ordering::Acquire)
            || slot
                .as_mut()
                .is_none_or(|future| future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
        if ended {
            let future = slot.take();
            drop(slot);
            self.state.finish();
            drop(future);
            self.wakeups.release_room();
            return false;
        }
        drop(slot);
        let again = self.state.pause();
        if again {
            self.enqueue();
        }
        again
    }

    fn enqueue(self: Arc<Self>) {
        let (worker, wakeups) = (self.worker(), self.wakeups.clone());
        wakeups.enqueue(worker, self);
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        if self.state.wake() {
            self.enqueue();
        }
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.wake() {
            self.clone().enqueue();
        }
    }
}

enum Outcome<T> {
    Running(Option<Waker>),
    Ended(Option<T>),
}

/// Sets the outcome when the task's future is dropped: after its last poll, or without a result if
/// it was aborted.
struct Finish<T> {
    outcome: Arc<Mutex<Outcome<T>>>,
    value: Option<T>,
}

impl<T> Finish<T> {
    fn set(&mut self, value: T) {
        self.value = Some(value);
    }
}

impl<T> Drop for Finish<T> {
    fn drop(&mut self) {
        let before = core::mem::replace(&mut *self.outcome.lock(), Outcome::Ended(self.value.take()));
        if let Outcome::Running(Some(waker)) = before {
            waker.wake();
        }
    }
}

pin_project! {
    /// The state that a task polls: a future, and then its result. It is a structure and not an
    /// `async` block around the future: such a block would hold the future twice, as a captured
    /// variable and as the future that it awaits, and would move it from one place to the other.
    struct Finishing<F: Future> {
        // The future is dropped before `finish` reports the end of the task.
        #[pin]
        future: F,
        finish: Finish<F::Output>,
    }
}

impl<F: Future> Future for Finishing<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        this.future.poll(context).map(|value| this.finish.set(value))
    }
}

/// Makes a task of `future` and queues it at `worker`. The caller has reserved room for it in every
/// queue.
pub(super) fn spawn<F>(wakeups: Arc<dyn Wakeups>, worker: usize, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let outcome = Arc::new(Mutex::new(Outcome::Running(None)));
    let finish = Finish { outcome: outcome.clone(), value: None };
    // The future is written directly to its place, because futures are large.
    let future = Box::into_pin(Box::write(Box::new_uninit(), Finishing { future, finish }));
    let task = Arc::new(Task {
        state: TaskState::queued(),
        worker: AtomicUsize::new(worker),
        aborted: AtomicBool::new(false),
        wakeups,
        future: Mutex::new(Some(future)),
    });
    task.clone().enqueue();
    JoinHandle { task, outcome }
}

/// A reference to a task by which it is given another worker. It keeps the task's memory, but not
/// its future after the end.
#[derive(Clone)]
pub struct TaskAssignment(Arc<Task>);

impl TaskAssignment {
    /// Gives the task another worker, which polls it from its next wake-up on.
    pub fn move_to(&self, worker: usize) {
        self.0.move_to(worker);
    }
}

/// Waits for the result of a task. Dropping it leaves the task running.
pub struct JoinHandle<T> {
    task: Arc<Task>,
    outcome: Arc<Mutex<Outcome<T>>>,
}

impl<T> JoinHandle<T> {
    /// Ends the task: its worker drops the future before it would be polled again. No effect if the
    /// task has ended.
    pub fn abort(&self) {
        self.task.aborted.store(true, Ordering::Release);
        self.task.wake_by_ref();
    }

    /// A reference by which code that does not wait for the task can give it another worker.
    pub fn assignment(&self) -> TaskAssignment {
        TaskAssignment(self.task.clone())
    }

    /// Assigns the task to another worker: see [`TaskAssignment::move_to`].
    pub fn move_to(&self, worker: usize) {
        self.task.move_to(worker);
    }

    /// Whether the task has ended.
    pub fn has_ended(&self) -> bool {
        matches!(*self.outcome.lock(), Outcome::Ended(_))
    }
}

impl<T> Future for JoinHandle<T> {
    /// The result of the task; `None` if it was aborted.
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        match &mut *self.outcome.lock() {
            Outcome::Ended(value) => Poll::Ready(value.take()),
            Outcome::Running(waker) => {
                match waker {
                    Some(current) => current.clone_from(context.waker()),
                    None => *waker = Some(context.waker().clone()),
                }
                Poll::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finishing<F: Future>(future: F) -> Finishing<F> {
        Finishing {
            future,
            finish: Finish { outcome: Arc::new(Mutex::new(Outcome::Running(None))), value: None },
        }
    }

    #[test]
    fn a_task_holds_its_future_once() {
        let large = [0u8; 4096];
        let future = async move {
            core::future::pending::<()>().await;
            core::hint::black_box(large).len()
        };
        let size = size_of_val(&future);
        assert!(size >= 4096 && size_of_val(&finishing(future)) <= size + 64);
    }
}
