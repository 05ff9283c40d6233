use super::*;
use alloc::vec::Vec;
use core::future::poll_fn;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use core::task::{Context, Poll, Waker};
use std::sync::{Condvar, Mutex};

/// A platform whose clock the test sets, and that counts notifications.
#[derive(Default)]
struct Manual {
    now: AtomicU64,
    notified: Mutex<Vec<usize>>,
}

impl Platform for Manual {
    fn now(&self) -> Instant {
        self.now.load(Ordering::SeqCst)
    }
    fn notify(&self, worker: usize) {
        self.notified.lock().unwrap().push(worker);
    }
}

fn notified(executor: &Executor<Manual>) -> Vec<usize> {
    core::mem::take(&mut *executor.platform().notified.lock().unwrap())
}

fn advance(executor: &Executor<Manual>, to: Instant) {
    executor.platform().now.store(to, Ordering::SeqCst);
}

fn result_of<T>(handle: &mut JoinHandle<T>) -> Poll<Option<T>> {
    core::pin::Pin::new(handle).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_task_runs_and_gives_its_result() {
    let executor = Executor::new(Manual::default(), 1);
    let mut worker = executor.worker(0);
    let mut handle = executor.spawn(0, async { 6 * 7 }).unwrap();
    assert_eq!(result_of(&mut handle), Poll::Pending);
    assert_eq!(worker.run(10), 1);
    assert!(handle.has_ended());
    assert_eq!(result_of(&mut handle), Poll::Ready(Some(42)));
    assert_eq!(worker.run(10), 0);
}

#[test]
fn a_worker_that_is_awake_is_not_notified_and_a_sleeping_one_once() {
    let executor = Executor::new(Manual::default(), 2);
    let mut worker = executor.worker(1);
    let first = executor.spawn(1, async {}).unwrap();
    assert!(notified(&executor).is_empty());
    assert_eq!(worker.prepare_sleep(), Sleep::Busy);
    worker.run(10);
    assert!(first.has_ended());
    assert_eq!(worker.prepare_sleep(), Sleep::Until(None));
    assert!(worker.is_sleeping());
    let _second = executor.spawn(1, async {}).unwrap();
    assert!(!worker.is_sleeping(), "a task was woken");
    let _third = executor.spawn(1, async {}).unwrap();
    assert_eq!(notified(&executor), [1]);
    worker.awake();
    assert_eq!(worker.run(10), 2);
}

#[test]
fn sleeps_end_at_their_deadline_in_order_and_disarm_when_dropped() {
    let executor = Executor::new(Manual::default(), 1);
    let mut worker = executor.worker(0);
    let order = Arc::new(Mutex::new(Vec::new()));
    for deadline in [300u64, 100, 200] {
        let (sleeper, order) = (executor.clone(), order.clone());
        executor
            .spawn(0, async move {
                sleeper.sleep_until(0, deadline).await;
                order.lock().unwrap().push(deadline);
            })
            .unwrap();
    }
    let cancelled = {
        let sleeper = executor.clone();
        executor.spawn(0, async move { sleeper.sleep_until(0, 50).await }).unwrap()
    };
    worker.run(10);
    assert_eq!(worker.prepare_sleep(), Sleep::Until(Some(50)));
    cancelled.abort();
    assert_eq!(notified(&executor), [0]);
    worker.run(10);
    assert_eq!(worker.prepare_sleep(), Sleep::Until(Some(100)));
    advance(&executor, 99);
    worker.run(10);
    assert!(order.lock().unwrap().is_empty());
    advance(&executor, 250);
    assert_eq!(worker.prepare_sleep(), Sleep::Busy);
    worker.run(10);
    assert_eq!(*order.lock().unwrap(), [100, 200]);
    advance(&executor, 300);
    worker.run(10);
    assert_eq!(*order.lock().unwrap(), [100, 200, 300]);
    assert_eq!(worker.prepare_sleep(), Sleep::Until(None));
}

#[test]
fn an_earlier_timer_of_another_worker_notifies_the_sleeper() {
    let executor = Executor::new(Manual::default(), 2);
    let mut sleeper = executor.worker(0);
    assert_eq!(sleeper.prepare_sleep(), Sleep::Until(None));
    let other = executor.clone();
    executor.spawn(1, async move { other.sleep_until(0, 10).await }).unwrap();
    executor.worker(1).run(1);
    assert_eq!(notified(&executor), [0]);
}

#[test]
fn an_aborted_task_is_never_polled_again_and_its_room_is_given_back() {
    let executor = Executor::new(Manual::default(), 1);
    let mut worker = executor.worker(0);
    for _ in 0..1000 {
        let mut handle = executor.spawn(0, core::future::pending::<u8>()).unwrap();
        worker.run(10);
        handle.abort();
        worker.run(10);
        assert_eq!(result_of(&mut handle), Poll::Ready(None));
    }
}

#[test]
fn a_moved_task_is_polled_at_its_new_home() {
    let executor = Executor::new(Manual::default(), 2);
    let (mut first, mut second) = (executor.worker(0), executor.worker(1));
    let waker = Arc::new(Mutex::new(None::<Waker>));
    let stored = waker.clone();
    let polls = Arc::new(AtomicUsize::new(0));
    let count = polls.clone();
    let handle = executor
        .spawn(
            0,
            poll_fn(move |context| {
                *stored.lock().unwrap() = Some(context.waker().clone());
                if count.fetch_add(1, Ordering::SeqCst) == 1 { Poll::Ready(()) } else { Poll::Pending }
            }),
        )
        .unwrap();
    // The task gets another worker while it is in the queue of the old one, which passes it on.
    handle.move_to(1);
    assert_eq!((first.run(10), polls.load(Ordering::SeqCst)), (1, 0));
    assert_eq!((second.run(10), polls.load(Ordering::SeqCst)), (1, 1));
    assert_eq!(second.prepare_sleep(), Sleep::Until(None));
    waker.lock().unwrap().as_ref().unwrap().wake_by_ref();
    assert_eq!(notified(&executor), [1]);
    assert_eq!(first.run(10), 0);
    second.run(10);
    assert!(handle.has_ended());
}

/// A platform of real threads. A notification is a flag and a condition variable for each worker.
struct Threads {
    bells: Vec<(Mutex<bool>, Condvar)>,
}

impl Platform for Threads {
    fn now(&self) -> Instant {
        0
    }
    fn notify(&self, worker: usize) {
        *self.bells[worker].0.lock().unwrap() = true;
        self.bells[worker].1.notify_one();
    }
}

/// Tasks on four workers pass tokens around in a ring, through mailboxes made for the test. If a
/// wake-up or a notification were lost, a token would stay where it is, and the test would not end.
#[test]
fn wake_ups_across_workers_are_never_lost() {
    const WORKERS: usize = 4;
    const TASKS: usize = 16;
    const HOPS: usize = 20_000;
    struct Mailbox(Mutex<(usize, Option<Waker>)>);
    let bells = (0..WORKERS).map(|_| Default::default()).collect();
    let executor = Executor::new(Threads { bells }, WORKERS);
    let boxes: Arc<Vec<Mailbox>> = Arc::new((0..TASKS).map(|_| Mailbox(Mutex::new((0, None)))).collect());
    let hops = Arc::new(AtomicUsize::new(0));
    let stop = Arc::new(AtomicBool::new(false));
    for index in 0..TASKS {
        let (boxes, hops, stop) = (boxes.clone(), hops.clone(), stop.clone());
        let ringer = executor.clone();
        executor
            .spawn(
                index % WORKERS,
                poll_fn(move |context| {
                    let tokens = {
                        let mut own = boxes[index].0.lock().unwrap();
                        own.1 = Some(context.waker().clone());
                        core::mem::take(&mut own.0)
                    };
                    if tokens > 0 {
                        if hops.fetch_add(1, Ordering::SeqCst) == HOPS {
                            stop.store(true, Ordering::SeqCst);
                            (0..WORKERS).for_each(|worker| ringer.platform().notify(worker));
                        }
                        let waker = {
                            let mut next = boxes[(index + 5) % TASKS].0.lock().unwrap();
                            next.0 += tokens;
                            next.1.clone()
                        };
                        if let Some(waker) = waker {
                            waker.wake();
                        }
                    }
                    Poll::<()>::Pending
                }),
            )
            .unwrap();
    }
    boxes[0].0.lock().unwrap().0 = 3;
    std::thread::scope(|scope| {
        for index in 0..WORKERS {
            let (executor, stop) = (executor.clone(), stop.clone());
            scope.spawn(move || {
                let mut worker = executor.worker(index);
                while !stop.load(Ordering::SeqCst) {
                    worker.run(8);
                    if let Sleep::Until(_) = worker.prepare_sleep() {
                        let (flag, bell) = &executor.platform().bells[index];
                        let mut rung = flag.lock().unwrap();
                        while !*rung && !stop.load(Ordering::SeqCst) {
                            rung = bell.wait(rung).unwrap();
                        }
                        *rung = false;
                    }
                    worker.awake();
                }
            });
        }
    });
    assert!(hops.load(Ordering::SeqCst) > HOPS);
}

#[test]
fn a_task_that_gives_way_is_polled_once_between_two_looks_at_the_messages() {
    let executor = Executor::new(Manual::default(), 1);
    let mut worker = executor.worker(0);
    let polls = Arc::new(AtomicUsize::new(0));
    let counter = polls.clone();
    let long = executor.spawn(0, async move {
        loop {
            counter.fetch_add(1, Ordering::SeqCst);
            YieldNow::default().await;
        }
    });
    let short = executor.spawn(0, async {}).unwrap();
    assert_eq!((worker.run(32), polls.load(Ordering::SeqCst)), (2, 1));
    assert!(short.has_ended(), "those behind it have their turn");
    assert_eq!((worker.run(32), polls.load(Ordering::SeqCst)), (1, 2));
    assert_eq!(worker.prepare_sleep(), Sleep::Busy);
    long.unwrap().abort();
    assert_eq!(worker.run(32), 1);
}
