//! Helpers for the tests of this crate and of its front ends: a small deterministic executor, an
//! environment whose clock the tests move, and a file system with a process.

use crate::account::{Account, Capacity, Settings};
use crate::memory::ObjectProvider;
use crate::vfs::MemoryProvider;
use crate::{BoxFuture, Environment, Timestamp};
use core::future::Future;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use mach::machine::simulated::Simulated;
use mach::vm::Vm;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Wake;

/// The capacity of a system with `threads` threads, whose server has much more memory than tests
/// need.
pub fn capacity(threads: usize) -> Capacity {
    Capacity { threads, server_memory: 1 << 40 }
}

/// The account of a user with large limits.
pub fn account() -> Arc<Account> {
    Account::new(1000, Settings::new(1 << 40))
}

/// Memory for files, on a simulated machine with room for what tests write.
pub fn memory() -> Arc<dyn MemoryProvider> {
    Arc::new(ObjectProvider(Vm::new(Simulated::new(1024)).expect("there is memory")))
}

/// Runs a future that must complete when it is polled once.
#[track_caller]
pub fn now<F: Future>(future: F) -> F::Output {
    let mut future = Box::pin(future);
    for _ in 0..1000 {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
    }
    panic!("the future waits");
}

/// A future that the test polls by hand, and that records whether it was woken.
pub struct Task<T> {
    future: BoxFuture<'static, T>,
    flag: Arc<Flag>,
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl<T> Task<T> {
    /// A task that was not polled yet.
    pub fn new(future: impl Future<Output = T> + Send + 'static) -> Task<T> {
        Task { future: Box::pin(future), flag: Arc::new(Flag(AtomicBool::new(true))) }
    }

    /// Polls the future if it was woken since the last poll (or never polled), so that a lost
    /// wake-up makes the test fail.
    pub fn run(&mut self) -> Option<T> {
        let waker = Waker::from(self.flag.clone());
        while self.flag.0.swap(false, Ordering::SeqCst) {
            if let Poll::Ready(value) = self.future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Some(value);
            }
        }
        None
    }

    /// Polls the future as [`Task::run`] does; panics unless it completes.
    #[track_caller]
    pub fn finish(&mut self) -> T {
        self.run().expect("the task still waits")
    }

    /// Polls the future as [`Task::run`] does; panics if it completes.
    #[track_caller]
    pub fn waits(&mut self) {
        assert!(self.run().is_none(), "the task completed");
    }
}

/// Polls several tasks in turn until all are complete.
#[track_caller]
pub fn run_all(tasks: Vec<BoxFuture<'static, ()>>) {
    let mut tasks: VecDeque<_> = tasks.into_iter().map(Task::new).collect();
    let mut idle = 0;
    while let Some(mut task) = tasks.pop_front() {
        let was_woken = task.flag.0.load(Ordering::SeqCst);
        if task.run().is_none() {
            tasks.push_back(task);
        }
        idle = if was_woken { 0 } else { idle + 1 };
        assert!(idle <= tasks.len() + 1, "every task waits: a deadlock or a lost wake-up");
    }
}

/// An environment whose clock moves only when the test says so, and whose random bytes are a fixed
/// sequence.
pub struct TestEnvironment {
    state: Arc<Mutex<TestClock>>,
}

struct TestClock {
    now: Duration,
    seed: u64,
    sleepers: Vec<(Duration, Waker)>,
}

impl TestEnvironment {
    /// An environment whose clock stands at one second.
    pub fn new() -> Arc<TestEnvironment> {
        let clock = TestClock { now: Duration::from_secs(1), seed: 1, sleepers: Vec::new() };
        Arc::new(TestEnvironment { state: Arc::new(Mutex::new(clock)) })
    }

    /// Moves the clock and wakes the tasks whose time has come.
    pub fn advance(&self, by: Duration) {
        let mut clock = self.state.lock().unwrap();
        clock.now += by;
        let now = clock.now;
        let (due, later) = clock.sleepers.drain(..).partition(|(deadline, _)| *deadline <= now);
        clock.sleepers = later;
        drop(clock);
        let due: Vec<(Duration, Waker)> = due;
        due.into_iter().for_each(|(_, waker)| waker.wake());
    }
}

/// A future that completes at a time of the test's clock.
struct Sleep(Arc<Mutex<TestClock>>, Duration);

impl Future for Sleep {
    type Output = ();
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut clock = self.0.lock().unwrap();
        if clock.now >= self.1 {
            return Poll::Ready(());
        }
        clock.sleepers.push((self.1, cx.waker().clone()));
        Poll::Pending
    }
}

impl Environment for TestEnvironment {
    fn realtime(&self) -> Timestamp {
        let now = self.state.lock().unwrap().now;
        Timestamp { seconds: 1_000_000_000 + now.as_secs() as i64, nanoseconds: now.subsec_nanos() }
    }

    fn monotonic(&self) -> Duration {
        self.state.lock().unwrap().now
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        let mut clock = self.state.lock().unwrap();
        for byte in bytes {
            clock.seed = clock.seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            *byte = (clock.seed >> 56) as u8;
        }
    }

    fn stir(&self, bytes: &[u8]) {
        let mut clock = self.state.lock().unwrap();
        clock.seed = bytes.iter().fold(clock.seed, |seed, byte| seed.rotate_left(5) ^ u64::from(*byte));
    }

    fn sleep_until(&self, deadline: Duration) -> BoxFuture<'static, ()> {
        Box::pin(Sleep(self.state.clone(), deadline))
    }
}

/// The name of a place in the code, and what happens when a thread comes there.
type Meanwhile = (&'static str, Box<dyn FnOnce()>);

std::thread_local! {
    static MEANWHILE: core::cell::RefCell<Option<Meanwhile>> = const { core::cell::RefCell::new(None) };
}

/// Makes `act` run once, as if on another worker, when this thread comes to the place `place`
/// ([`crate::sync::delay`]).
pub fn meanwhile(place: &'static str, act: impl FnOnce() + 'static) {
    MEANWHILE.set(Some((place, Box::new(act))));
}

/// Runs the action that [`meanwhile`] registered for `place`, which the thread has reached
/// ([`crate::sync::delay`]).
pub fn delayed(place: &'static str) {
    let act = MEANWHILE.with_borrow_mut(|next| next.take_if(|(at, _)| *at == place));
    if let Some((_, act)) = act {
        act();
    }
}

/// Whether all actions that [`meanwhile`] registered have run.
pub fn has_happened() -> bool {
    MEANWHILE.with_borrow(Option::is_none)
}

mod network;
mod world;
pub use network::{Task as NetworkTask, elsewhere, place};
pub use world::{TestProcess, World, pipe};
