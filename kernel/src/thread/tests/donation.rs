//! Which thread runs when another one gives it its time, and which comes first after that.

use x2::{ThreadId, Time, Timeouts};

use super::Register::*;
use super::{World, id, invariants};
use crate::dispatch;
use crate::scheduler::Next;
use crate::scheduler::timeouts::NEVER;
use crate::syscall::Call;
use crate::thread::ThreadRef;
use crate::{arch, processor};

fn same(one: Option<ThreadRef>, other: ThreadRef) -> bool {
    one.is_some_and(|one| core::ptr::eq(one, other))
}

/// Some threads of these priorities, of which the first runs; the initial servers wait.
fn threads<const N: usize>(priorities: [u8; N]) -> (World, [ThreadRef; N]) {
    let world = World::new();
    let root = world.root();
    let threads = core::array::from_fn(|number| world.spawn(id(10 + number as u32, 1), root.id()));
    for (thread, priority) in threads.into_iter().zip(priorities) {
        processor::this().scheduler.set_priority(thread, priority, None);
    }
    for server in [world.thread(id(0, 1)), root] {
        wait(&world, server);
    }
    assert!(same(world.proceed(), threads[0]));
    (world, threads)
}

/// `thread` waits for any sender. Returns the thread that runs then.
fn wait(world: &World, thread: ThreadRef) -> Option<ThreadRef> {
    world.call(Call::Ipc, thread, &[(Rsi, 0), (Rdx, ThreadId::ANY.raw()), (R8, Timeouts::NEVER.raw())])
}

fn donate(world: &World, from: ThreadRef, to: ThreadRef) -> Option<ThreadRef> {
    world.run(world.enter(Call::ThreadSwitch, from, &[(Rdi, to.id().raw())]))
}

fn tick(world: &World, now: u64) -> Option<ThreadRef> {
    arch::set_clock(now);
    let next = world.run(dispatch::timer_interrupt());
    invariants::check();
    next
}

/// Rules: 3.25.
#[test]
fn a_donor_comes_first_among_its_equals_when_its_time_comes_back() {
    let (world, [donor, _other, runner]) = threads([100; 3]);
    assert!(same(donate(&world, donor, runner), runner));
    assert!(same(wait(&world, runner), donor));
}

/// Rules: 3.25.
#[test]
fn donated_time_is_lost_only_to_threads_above_the_donor() {
    for (priority, preempts) in [(110, false), (120, false), (121, true)] {
        let (world, [donor, late, runner]) = threads([200, 150, 90]);
        // One of the threads sleeps until 5 ms.
        let sleep = Timeouts::new(Time::NEVER, Time::period(5000)).raw();
        assert!(same(wait(&world, donor), late));
        world.call(Call::Ipc, late, &[(Rsi, 0), (Rdx, late.id().raw()), (R8, sleep)]);
        let scheduler = &processor::this().scheduler;
        scheduler.set_priority(late, priority, None);
        scheduler.set_priority(donor, 120, None);
        scheduler.set_timeslice(donor, NEVER);
        crate::thread::ipc::cancel_receive(donor);
        assert!(same(world.proceed(), donor));
        assert!(same(donate(&world, donor, runner), runner));
        assert!(same(tick(&world, 5000), if preempts { late } else { runner }), "by {priority}");
    }
}

/// A thread that can run now, and is more urgent than the one that gets the time, but not than the
/// donor.
/// Rules: 3.25.
#[test]
fn a_donor_passes_over_ready_threads() {
    let (world, [donor, _other, runner]) = threads([120, 110, 90]);
    assert!(same(donate(&world, donor, runner), runner));
    assert!(same(wait(&world, runner), donor));
}

/// Rules: 3.4.
#[test]
fn a_thread_that_is_preempted_keeps_its_place_and_the_rest_of_its_timeslice() {
    let (world, [preemptor, runner, other]) = threads([120, 100, 100]);
    let sleep = Timeouts::new(Time::NEVER, Time::period(5000)).raw();
    let next = world.call(Call::Ipc, preemptor, &[(Rsi, 0), (Rdx, preemptor.id().raw()), (R8, sleep)]);
    assert!(same(next, runner));
    assert!(same(tick(&world, 5000), preemptor));
    arch::set_clock(8000);
    assert!(same(wait(&world, preemptor), runner));
    assert_eq!(processor::this().scheduler.timeslice_left(runner), 5000);
    assert!(same(tick(&world, 12_999), runner));
    assert!(same(tick(&world, 13_000), other), "its timeslice is over, and it comes last");
}

/// Rules: 3.4.
#[test]
fn an_interrupt_in_a_long_operation_leaves_the_thread_first_among_its_equals() {
    let (world, [runner, _other]) = threads([100, 100]);
    assert!(same(world.run(Next::Interrupted), runner));
}

/// A thread that has used a part of its timeslice: another preempted it.
fn with_rest_of_a_timeslice() -> (World, [ThreadRef; 3]) {
    let (world, [preemptor, thread, other]) = threads([120, 100, 100]);
    let sleep = Timeouts::new(Time::NEVER, Time::period(4000)).raw();
    world.call(Call::Ipc, preemptor, &[(Rsi, 0), (Rdx, preemptor.id().raw()), (R8, sleep)]);
    assert!(same(tick(&world, 4000), preemptor));
    assert!(same(wait(&world, preemptor), thread));
    assert_eq!(left(thread), 6000);
    (world, [preemptor, thread, other])
}

fn left(thread: ThreadRef) -> u64 {
    processor::this().scheduler.timeslice_left(thread)
}

/// Rules: 3.24.
#[test]
fn a_thread_that_gives_up_its_timeslice_begins_with_a_new_one() {
    let (world, [_, thread, other]) = with_rest_of_a_timeslice();
    arch::set_clock(5000);
    assert!(same(world.run(world.enter(Call::ThreadSwitch, thread, &[(Rdi, 0)])), other));
    assert_eq!(left(thread), 10_000);
}

/// Rules: 3.24, 3.25.
#[test]
fn a_thread_whose_time_another_gives_up_begins_with_a_new_timeslice() {
    let (world, [_, donor, runner]) = with_rest_of_a_timeslice();
    assert!(same(donate(&world, donor, runner), runner));
    arch::set_clock(5000);
    assert!(same(world.run(world.enter(Call::ThreadSwitch, runner, &[(Rdi, 0)])), donor));
    assert_eq!((left(donor), left(runner)), (10_000, 10_000));
}

/// Rules: 3.4.
#[test]
fn at_the_end_of_the_rest_of_a_timeslice_there_is_a_whole_one() {
    let (world, [_, thread, other]) = with_rest_of_a_timeslice();
    assert!(same(tick(&world, 9999), thread));
    assert!(same(tick(&world, 10_000), other));
    assert_eq!(left(thread), 10_000);
}

/// Rules: 3.26.
#[test]
fn a_switch_to_oneself_gives_nothing_up() {
    let (world, [_, thread, _]) = with_rest_of_a_timeslice();
    arch::set_clock(5000);
    assert!(same(donate(&world, thread, thread), thread));
    assert_eq!(left(thread), 5000);
}
