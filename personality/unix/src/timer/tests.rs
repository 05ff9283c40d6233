//! Tests of timer_settime(2) and setitimer(2).

use super::*;
use crate::account::{Account, Settings};
use crate::credentials::Credentials;
use crate::process::{Control, Delivery};
use crate::signal::{Action, Cause, Disposition};
use crate::testing::{Task, TestEnvironment, account, capacity};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

struct Nothing;

impl Control for Nothing {
    fn recall(&self) {}
}

struct World {
    environment: Arc<TestEnvironment>,
    processes: Processes,
    timers: Timers,
}

const PID: Pid = Pid::INIT;

fn world() -> Arc<World> {
    let world = World {
        environment: TestEnvironment::new(),
        processes: Processes::new(capacity(10)),
        timers: Timers::new(),
    };
    world.processes.with(|table| {
        table.create_init(Arc::new(Nothing), Credentials::superuser(), Duration::ZERO);
        for signal in [Signal::ALRM, Signal::PROF, Signal::USR1] {
            let action = Action { disposition: Disposition::Handler(1), ..Action::default() };
            table.set_action(PID, signal, action).unwrap();
        }
    });
    Arc::new(world)
}

impl World {
    fn set(&self, id: TimerId, when: When, interval: Duration) -> Result<Setting> {
        self.timers.set(&*self.environment, &self.processes, (PID, id), when, interval)
    }

    fn pass(&self, time: Duration) {
        self.environment.advance(time);
        self.timers.expire(&*self.environment, &self.processes);
    }

    /// The next signal that is delivered, and its overrun count if it is a timer's.
    fn arrived(&self) -> Option<(Signal, Option<u32>)> {
        self.processes.with(|table| match table.return_to_user(PID) {
            Delivery::Handler(frame) => {
                let _ = table.set_mask(PID, Default::default());
                let overrun = match frame.information.cause {
                    Cause::Timer { overrun, .. } => Some(overrun),
                    _ => None,
                };
                Some((frame.signal, overrun))
            }
            _ => None,
        })
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn an_interval_timer_signals_at_each_expiration() {
    let world = world();
    assert_eq!(world.set(TimerId::Real, When::After(2 * SECOND), SECOND), Ok(Setting::default()));
    world.pass(SECOND);
    assert_eq!(world.arrived(), None);
    let setting = world.timers.get(&*world.environment, &world.processes, (PID, TimerId::Real));
    assert_eq!(setting, Ok(Setting { value: SECOND, interval: SECOND }));
    world.pass(SECOND);
    assert_eq!(world.arrived(), Some((Signal::ALRM, None)));
    world.pass(5 * SECOND);
    assert_eq!(world.arrived(), Some((Signal::ALRM, None)));
    assert_eq!(world.arrived(), None);
    let old = world.set(TimerId::Real, When::After(Duration::ZERO), Duration::ZERO).unwrap();
    assert_eq!(old, Setting { value: SECOND, interval: SECOND });
    world.pass(10 * SECOND);
    assert_eq!(world.arrived(), None);
}

#[test]
fn a_created_timer_counts_overruns_while_its_signal_is_pending() {
    let world = world();
    let notification = |value| Notification::Signal { signal: Signal::USR1, value, thread: None };
    let create = || world.timers.create(&account(), PID, Clock::Monotonic, |id| notification(u64::from(id)));
    assert_eq!((create(), create()), (Ok(0), Ok(1)));
    let poor = Account::new(1001, Settings::new(0));
    let refused = world.timers.create(&poor, PID, Clock::Monotonic, |_| Notification::None);
    assert_eq!(refused, Err(Error::EAGAIN), "the user has no room for it");
    let id = TimerId::Created(0);
    world.set(id, When::At(3 * SECOND), SECOND).unwrap();
    world.pass(4 * SECOND);
    world.pass(2 * SECOND);
    // The timer was due at 3 s and it is 7 s: one signal and four further expirations.
    assert_eq!(world.arrived(), Some((Signal::USR1, Some(4))));
    assert_eq!(world.processes.with(|table| table.timer_overrun(PID, 0)), 4);
    world.pass(SECOND);
    world.timers.delete(&world.processes, PID, 0).unwrap();
    assert_eq!(world.arrived(), None, "a deleted timer's signal is gone");
    assert_eq!(world.timers.delete(&world.processes, PID, 0), Err(Error::EINVAL));
    assert_eq!(world.set(id, When::After(SECOND), SECOND), Err(Error::EINVAL));
    assert_eq!(create(), Ok(0));
    world.timers.delete_all(&world.processes, PID, false);
    assert!(!world.timers.exists(PID, TimerId::Created(1)));
}

#[test]
fn a_profiling_timer_expires_by_processor_time() {
    let world = world();
    world.set(TimerId::Profiling, When::After(SECOND), Duration::ZERO).unwrap();
    world.pass(10 * SECOND);
    assert_eq!(world.arrived(), None, "it did not run");
    world.processes.with(|table| table.account(PID, SECOND, Duration::ZERO));
    world.pass(10 * SECOND);
    assert_eq!(world.arrived(), Some((Signal::PROF, None)));
}

#[test]
fn the_driver_wakes_up_for_earlier_deadlines() {
    let world = world();
    let mut driver = Task::new({
        let world = world.clone();
        async move { world.timers.drive(&*world.environment, &world.processes).await }
    });
    driver.waits();
    world.set(TimerId::Real, When::After(100 * SECOND), Duration::ZERO).unwrap();
    driver.waits();
    world.set(TimerId::Real, When::After(SECOND), Duration::ZERO).unwrap();
    driver.waits();
    world.environment.advance(SECOND);
    driver.waits();
    assert_eq!(world.arrived(), Some((Signal::ALRM, None)));
}

#[test]
fn the_driver_sleeps_on_if_a_deadline_is_later_or_gone() {
    let world = world();
    let polls = Arc::new(AtomicUsize::new(0));
    let mut driver = Task::new({
        let (world, polls) = (world.clone(), polls.clone());
        async move {
            let mut driving = pin!(world.timers.drive(&*world.environment, &world.processes));
            poll_fn(|cx| {
                polls.fetch_add(1, Ordering::SeqCst);
                driving.as_mut().poll(cx)
            })
            .await
        }
    });
    let set = |after| world.set(TimerId::Real, When::After(after), Duration::ZERO).unwrap();
    set(SECOND);
    driver.waits();
    let before = polls.load(Ordering::SeqCst);
    set(Duration::ZERO);
    set(3 * SECOND);
    driver.waits();
    assert_eq!(polls.load(Ordering::SeqCst), before, "it was woken");
    world.environment.advance(SECOND);
    driver.waits();
    assert_eq!(world.arrived(), None);
    world.environment.advance(2 * SECOND);
    driver.waits();
    assert_eq!(world.arrived(), Some((Signal::ALRM, None)));
}

/// A clock that advances at every look, as on a real machine.
struct Passing(Arc<TestEnvironment>);

impl Environment for Passing {
    fn realtime(&self) -> crate::Timestamp {
        self.0.realtime()
    }
    fn monotonic(&self) -> Duration {
        self.0.advance(Duration::from_micros(1));
        self.0.monotonic()
    }
    fn fill_random(&self, bytes: &mut [u8]) {
        self.0.fill_random(bytes);
    }
    fn stir(&self, bytes: &[u8]) {
        self.0.stir(bytes);
    }
    fn sleep_until(&self, deadline: Duration) -> crate::BoxFuture<'static, ()> {
        self.0.sleep_until(deadline)
    }
}

#[test]
fn the_driver_lets_others_run_although_a_timer_is_always_due() {
    let world = world();
    let interval = Duration::from_nanos(1);
    world.set(TimerId::Real, When::After(interval), interval).unwrap();
    let passing = Passing(world.environment.clone());
    for _ in 0..10 {
        let next = world.timers.expire(&passing, &world.processes).unwrap();
        assert!(next >= world.environment.monotonic(), "the next deadline would have passed already");
        world.environment.advance(Duration::from_millis(1));
    }
    assert_eq!(world.arrived(), Some((Signal::ALRM, None)));
}
