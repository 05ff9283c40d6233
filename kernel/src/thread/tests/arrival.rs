//! Many that come to a processor together, and interrupts in between.

use std::vec::Vec;

use x2::control::UNCHANGED;
use x2::utcb;
use x2::utcb::preempt_flags::DELAY;
use x2::{ThreadId, Time, Timeouts};

use super::Register::*;
use super::{World, id, invariants};
use crate::dispatch::{
    Outcome, after_interrupt, attend_before_requests, dispatch, receive_requests, take_interrupts,
    timer_interrupt,
};
use crate::scheduler::Next;
use crate::syscall::Call;
use crate::thread::ThreadRef;
use crate::{arch, processor};

/// The number of threads that arrive together.
const CALLERS: u32 = 9;

/// A thread that runs on processor 0, another that lives there, too, and others that are on their
/// way there from processor 1, to see which of them runs.
struct Scene {
    world: World,
    runner: ThreadRef,
    other: ThreadRef,
    callers: Vec<ThreadRef>,
}

fn same(one: Option<ThreadRef>, other: ThreadRef) -> bool {
    one.is_some_and(|one| core::ptr::eq(one, other))
}

fn look_at(world: &World, caller: ThreadRef, looked_at: ThreadRef) {
    let arguments =
        [(Rdi, looked_at.id().raw()), (Rdx, UNCHANGED), (R8, UNCHANGED), (Rsi, UNCHANGED), (R9, UNCHANGED)];
    world.call(Call::Schedule, caller, &arguments);
}

impl Scene {
    /// The scene in which the other thread has the runner's priority, and is ready.
    fn new() -> Self {
        Self::with(|_, _| ())
    }

    /// A scene in which `prepare` has done something with the other thread.
    fn with(prepare: impl FnOnce(&World, ThreadRef)) -> Self {
        let world = World::with_processors(2);
        let root = world.root();
        let [runner, other] = [3, 20].map(|number| world.spawn(id(number, 1), root.id()));
        let callers: Vec<_> = (4..4 + CALLERS).map(|number| world.spawn(id(number, 1), root.id())).collect();
        for &caller in &callers {
            world.root_calls(
                Call::Schedule,
                &[(Rdi, caller.id().raw()), (Rdx, UNCHANGED), (R8, 1), (Rsi, UNCHANGED), (R9, UNCHANGED)],
            );
        }
        world.serve_all();
        arch::select_processor(1);
        callers.iter().for_each(|&caller| look_at(&world, caller, runner));
        arch::select_processor(0);
        prepare(&world, other);
        for thread in [root, world.thread(id(0, 1))] {
            let arguments = [(Rsi, 0), (Rdx, ThreadId::ANY.raw()), (R8, Timeouts::NEVER.raw())];
            world.call(Call::Ipc, thread, &arguments);
        }
        assert!(same(processor::this().current.get(), runner));
        assert!(arch::take_attention());
        assert_eq!(callers.iter().filter(|caller| caller.location.is_at(1)).count(), 0);
        world.machine.interrupts(1, 1);
        Self { world, runner, other, callers }
    }

    /// How many callers have been served: they are on their way home.
    fn seen_to(&self) -> usize {
        let returning = |caller: &&ThreadRef| caller.location.processor() == 1;
        let count = self.callers.iter().filter(returning).count();
        assert!(self.callers[..count].iter().all(|caller| returning(&caller)), "in order");
        count
    }

    /// Serves all of them; `interrupt` is what comes whenever there may be an interrupt. Returns
    /// the thread that runs in the end, and how often the processor gave way.
    fn see_to_all(&self, interrupt: impl Fn() -> Option<Next>) -> (Option<ThreadRef>, usize) {
        let mut next = receive_requests();
        let (mut turns, mut seen_to) = (0, 0);
        loop {
            match dispatch(next) {
                Outcome::TakeInterrupts => {
                    turns += 1;
                    assert!(turns < 100, "each turn gets something done");
                    let now = self.seen_to();
                    assert!(now - seen_to <= 2, "{} between two looks for interrupts", now - seen_to);
                    seen_to = now;
                    next = take_interrupts(&interrupt);
                }
                Outcome::Resume(thread) => {
                    assert_eq!(self.seen_to(), self.callers.len(), "they come before threads that live here");
                    invariants::check();
                    return (Some(thread), turns);
                }
                Outcome::Idle => return (None, turns),
            }
        }
    }
}

#[test]
fn threads_that_arrive_together_give_way_to_interrupts() {
    let scene = Scene::new();
    let current = || {
        assert!(same(processor::this().current.get(), scene.runner), "as if they had not come yet");
        Some(after_interrupt())
    };
    let (runs, turns) = scene.see_to_all(current);
    assert!(same(runs, scene.runner));
    // The threads are put in order, arrive here, and do what they came for, two at a time.
    assert!(turns >= 4 + 4 + 4, "{turns} turns");
}

#[test]
fn a_look_that_finds_no_interrupt_changes_nothing() {
    let scene = Scene::new();
    assert!(same(scene.see_to_all(|| None).0, scene.runner));
}

/// Rules: 3.4.
#[test]
fn a_timeslice_ends_between_threads_that_arrive_together() {
    let scene = Scene::new();
    processor::this().scheduler.set_timeslice(scene.runner, 1000);
    let timer = || {
        arch::set_clock(1000);
        Some(timer_interrupt())
    };
    assert!(same(scene.see_to_all(timer).0, scene.other), "it is the other one's turn");
}

#[test]
fn threads_that_arrive_meanwhile_are_served_after_the_others() {
    let scene = Scene::new();
    let late = scene.callers[0];
    let comes_again = || {
        // The first thread is home, and comes again.
        if late.location.processor() == 1 && !late.location.is_at(1) {
            arch::select_processor(1);
            scene.world.attend();
            look_at(&scene.world, late, scene.runner);
            arch::select_processor(0);
            assert!(arch::take_attention());
            return Some(attend_before_requests());
        }
        None
    };
    let mut next = receive_requests();
    let mut came = 0;
    let runs = loop {
        match dispatch(next) {
            Outcome::TakeInterrupts if came == 0 => {
                next = take_interrupts(|| {
                    let next = comes_again();
                    came += usize::from(next.is_some());
                    next
                });
            }
            Outcome::TakeInterrupts => next = take_interrupts(|| None),
            Outcome::Resume(thread) => break Some(thread),
            Outcome::Idle => break None,
        }
    };
    assert_eq!(came, 1);
    assert!(same(runs, scene.runner));
    assert!(scene.callers.iter().all(|caller| caller.location.processor() == 1), "all have been seen to");
    invariants::check();
}

/// Rules: 4.7.
#[test]
fn a_preemption_is_delayed_between_threads_that_arrive_together() {
    for delays in [false, true] {
        let scene = Scene::with(|world, other| {
            processor::this().scheduler.set_priority(other, 120, None);
            let sleep = Timeouts::new(Time::NEVER, Time::period(5000)).raw();
            world.call(Call::Ipc, other, &[(Rsi, 0), (Rdx, other.id().raw()), (R8, sleep)]);
        });
        let runner = scene.runner;
        runner.maximum_delay.set(10_000);
        runner.sensitive_priority.set(150);
        let flags = if delays { DELAY } else { 0 };
        runner.utcb.get().expect("active").write(utcb::FLAGS, flags.into());
        let timer = || {
            arch::set_clock(5000);
            Some(timer_interrupt())
        };
        let runs = scene.see_to_all(timer).0;
        assert!(same(runs, if delays { runner } else { scene.other }), "delays: {delays}");
    }
}
