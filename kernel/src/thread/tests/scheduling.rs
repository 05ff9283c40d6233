//! Preemption and total quanta, to the microsecond (X.2 rules 3.18-3.23, 4.1-4.14).

use x2::control::{PreemptionControl, TimeControl, UNCHANGED};
use x2::protocol::{self, exception};
use x2::utcb::preempt_flags::{DELAY, PENDING, SIGNAL};
use x2::{MessageTag, ThreadId, Time, Timeouts, utcb};

use super::Register::*;
use super::{World, id, invariants};
use crate::dispatch;
use crate::scheduler::timeouts::NEVER;
use crate::syscall::Call;
use crate::thread::{Continuation, IpcKind, ThreadRef, ipc, pending};
use crate::{arch, interrupt, processor};

/// A thread that runs, one of higher priority that sleeps until 5 ms, and an exception handler of a
/// priority in between.
struct Scene {
    world: World,
    runner: ThreadRef,
    preemptor: ThreadRef,
    handler: ThreadRef,
}

fn same(one: Option<ThreadRef>, other: ThreadRef) -> bool {
    one.is_some_and(|one| core::ptr::eq(one, other))
}

impl Scene {
    fn new(flags: u8, delay: u16, sensitive: u8) -> Self {
        let world = World::new();
        let root = world.root();
        let [runner, preemptor, handler] = [10, 11, 12].map(|number| world.spawn(id(number, 1), root.id()));
        let scheduler = &processor::this().scheduler;
        for (thread, priority) in [(preemptor, 120), (handler, 110), (runner, 100)] {
            scheduler.set_priority(thread, priority, None);
        }
        scheduler.set_timeslice(runner, NEVER);
        let block = runner.utcb.get().expect("active");
        block.write(utcb::FLAGS, 0xab00 | u64::from(flags));
        block.write(utcb::EXCEPTION_HANDLER, handler.id().raw());
        runner.maximum_delay.set(delay);
        runner.sensitive_priority.set(sensitive);
        let scene = Self { world, runner, preemptor, handler };
        for thread in [scene.world.thread(id(0, 1)), root, handler] {
            scene.wait(thread);
        }
        let sleep = Timeouts::new(Time::NEVER, Time::period(5000)).raw();
        scene.world.call(Call::Ipc, preemptor, &[(Rsi, 0), (Rdx, preemptor.id().raw()), (R8, sleep)]);
        assert!(same(scene.world.proceed(), runner));
        scene
    }

    /// `thread` waits for any sender. Returns the thread that runs then.
    fn wait(&self, thread: ThreadRef) -> Option<ThreadRef> {
        self.world.call(Call::Ipc, thread, &[(Rsi, 0), (Rdx, ThreadId::ANY.raw()), (R8, 0)])
    }

    /// The timer fires at `now`. Returns the thread that runs then.
    fn tick(&self, now: u64) -> Option<ThreadRef> {
        arch::set_clock(now);
        let next = self.world.run(dispatch::timer_interrupt());
        invariants::check();
        next
    }

    fn flags(&self) -> u8 {
        let word = self.runner.utcb.get().expect("active").read(utcb::FLAGS);
        assert_eq!(word & !0xff, 0xab00, "only the flags change");
        word as u8
    }

    fn heard(&self, thread: ThreadRef) -> (MessageTag, u64, bool) {
        let registers = &thread.registers;
        let from = ThreadId::from_raw(registers.rsi.get());
        let from_runner = from == ThreadId::local(self.runner.local_id.get());
        (MessageTag::from_raw(registers.message[0].get()), registers.message[1].get(), from_runner)
    }

    /// The preemptor waits; the runner goes on. Its handler is told of the preemption at `time`;
    /// `None`: it is not told.
    fn expect_fault(&self, time: Option<u64>) {
        let next = self.wait(self.preemptor);
        if let Some(time) = time {
            // The handler is more urgent; whether it may run immediately is again the runner's
            // choice.
            assert!(same(next, self.handler) || self.flags() & PENDING != 0);
            assert_eq!(self.heard(self.handler), (protocol::PREEMPTION_TAG, time, true));
            assert!(same(self.wait(self.handler), self.runner));
            assert_eq!(self.runner.pending.get(), 0, "once");
        } else {
            assert!(same(next, self.runner));
            assert_eq!(self.handler.continuation(), Continuation::Receive(IpcKind::User));
        }
    }

    /// The runner waits for the handler's answer to its preemption exception.
    fn expect_exception(&self) {
        assert_eq!(self.runner.continuation(), Continuation::Receive(IpcKind::Exception));
        assert!(same(self.wait(self.preemptor), self.handler));
        let (tag, _, from_runner) = self.heard(self.handler);
        assert_eq!((tag, from_runner), (exception::PREEMPTION_TAG, true));
        let block = self.handler.utcb.get().expect("active");
        let number = block.read(utcb::message_register(exception::NUMBER));
        assert_eq!(number, exception::PREEMPTION_NUMBER);
        let reply = MessageTag::new(0, exception::REPLY_WORDS, 0).raw();
        let arguments = [(Rsi, self.runner.id().raw()), (Rdx, 0), (R8, 0), (R9, reply)];
        assert!(same(self.world.call(Call::Ipc, self.handler, &arguments), self.handler));
        assert!(same(self.wait(self.handler), self.runner));
    }
}

/// Rules: 4.7.
#[test]
fn without_flags_the_preemption_is_silent() {
    let scene = Scene::new(0, 10_000, 150);
    assert!(same(scene.tick(5000), scene.preemptor));
    scene.expect_fault(None);
}

/// Rules: 4.1, 4.7, 4.9ac, 4.12.
#[test]
fn a_signalled_preemption_is_told_when_the_thread_goes_on() {
    for (flags, sensitive) in [(SIGNAL, 150), (SIGNAL | DELAY, 119)] {
        let scene = Scene::new(flags, 10_000, sensitive);
        assert!(same(scene.tick(5000), scene.preemptor), "sensitive below {sensitive}");
        assert_eq!(scene.flags(), flags);
        arch::set_clock(7000);
        scene.expect_fault(Some(5000));
    }
}

/// Rules: 4.5, 4.7.
#[test]
fn a_delayed_preemption_takes_place_when_the_delay_is_over() {
    for flags in [DELAY, DELAY | SIGNAL] {
        let scene = Scene::new(flags, 10_000, 120);
        assert!(same(scene.tick(5000), scene.runner));
        assert_eq!(scene.flags(), flags | PENDING);
        assert_eq!(arch::timer(), 15_000);
        // A second preemption does not prolong the delay.
        assert!(same(scene.tick(9000), scene.runner));
        assert!(same(scene.tick(14_999), scene.runner));
        assert!(same(scene.tick(15_000), scene.preemptor));
        assert_eq!(scene.flags(), flags & SIGNAL);
        if flags & SIGNAL == 0 {
            scene.expect_fault(None);
        } else {
            scene.expect_exception();
        }
    }
}

/// Rules: 4.5, 4.6.
#[test]
fn a_delay_ends_with_the_timeslice() {
    for flags in [DELAY, DELAY | SIGNAL] {
        let scene = Scene::new(flags, 10_000, 150);
        processor::this().scheduler.set_timeslice(scene.runner, 8000);
        scene.world.switch_to(scene.runner);
        processor::this().current.set(None);
        processor::this().scheduler.make_ready(scene.runner);
        assert!(same(scene.world.proceed(), scene.runner), "on a timeslice of its own");
        assert!(same(scene.tick(5000), scene.runner));
        assert!(same(scene.tick(7999), scene.runner));
        assert!(same(scene.tick(8000), scene.preemptor));
        assert_eq!(scene.flags(), flags & SIGNAL);
    }
}

/// Rules: 4.7, 4.12.
#[test]
fn without_a_delay_allowed_a_signalled_preemption_is_an_exception_without_delay() {
    let scene = Scene::new(DELAY | SIGNAL, 0, 150);
    assert!(same(scene.tick(5000), scene.preemptor));
    assert_eq!(scene.flags(), SIGNAL);
    scene.expect_exception();
    drop(scene);
    let scene = Scene::new(DELAY, 0, 150);
    assert!(same(scene.tick(5000), scene.preemptor));
    assert_eq!(scene.flags(), DELAY, "it is never seen pending");
    scene.expect_fault(None);
}

/// Rules: 4.8, 4.14.
#[test]
fn flags_that_change_during_the_delay_count_at_its_end() {
    let block = |scene: &Scene| scene.runner.utcb.get().expect("active");
    let scene = Scene::new(DELAY | SIGNAL, 10_000, 150);
    scene.tick(5000);
    block(&scene).write(utcb::FLAGS, 0xab00 | u64::from(DELAY | PENDING));
    assert!(same(scene.tick(15_000), scene.preemptor));
    scene.expect_fault(None);
    drop(scene);
    let scene = Scene::new(DELAY | SIGNAL, 10_000, 150);
    scene.tick(5000);
    block(&scene).write(utcb::FLAGS, 0xab00 | u64::from(SIGNAL | PENDING));
    assert!(same(scene.tick(14_999), scene.runner), "the delay goes on");
    assert!(same(scene.tick(15_000), scene.preemptor));
    scene.expect_fault(Some(15_000));
}

/// Rules: 4.8.
#[test]
fn giving_up_the_processor_ends_the_delay() {
    let scene = Scene::new(DELAY | SIGNAL, 10_000, 150);
    assert!(same(scene.tick(5000), scene.runner));
    assert!(same(scene.world.call(Call::ThreadSwitch, scene.runner, &[(Rdi, 0)]), scene.preemptor));
    assert_eq!(scene.flags(), DELAY | SIGNAL);
    scene.expect_fault(None);
    assert!(same(scene.tick(15_000), scene.runner), "nothing is left of the delay");
}

/// Rules: 4.5, 4.7.
#[test]
fn one_above_the_sensitive_priority_ends_the_delay() {
    let scene = Scene::new(DELAY | SIGNAL, 10_000, 120);
    assert!(same(scene.tick(5000), scene.runner));
    let other = scene.world.root();
    let wake = Timeouts::new(Time::NEVER, Time::period(1000)).raw();
    ipc::cancel_receive(other);
    scene.world.call(Call::Ipc, other, &[(Rsi, 0), (Rdx, other.id().raw()), (R8, wake)]);
    // Root has interrupted the runner here, which ends the delay as well: begin another.
    scene.wait(scene.preemptor);
    assert!(same(scene.tick(7000), other));
}

/// Rules: 4.1.
#[test]
fn the_end_of_a_timeslice_is_told_if_another_thread_runs() {
    let scene = Scene::new(SIGNAL, 0, 100);
    let root = scene.world.root();
    ipc::cancel_receive(root);
    let rival = scene.world.spawn(id(13, 1), root.id());
    let scheduler = &processor::this().scheduler;
    for thread in [scene.runner, rival] {
        scheduler.set_timeslice(thread, 1000);
    }
    let mut now = 1000;
    if same(scene.wait(root), rival) {
        assert!(same(scene.tick(now), scene.runner));
        now += 1000;
    }
    assert!(same(scene.tick(now), rival));
    assert_eq!((scene.runner.pending.get(), scene.runner.preempted_at.get()), (pending::PREEMPTED, now));
    // Without its rival the thread goes on, and nothing is lost.
    scene.wait(rival);
    assert_eq!(scene.heard(scene.handler), (protocol::PREEMPTION_TAG, now, true));
    assert!(same(scene.wait(scene.handler), scene.runner));
    assert!(same(scene.tick(now + 1000), scene.runner));
    assert_eq!(scene.runner.pending.get(), 0);
}

/// Rules: 4.1.
#[test]
fn a_thread_that_becomes_ready_by_an_interrupt_preempts() {
    let scene = Scene::new(SIGNAL, 0, 100);
    let line = ThreadId::interrupt(1);
    interrupt::find(line).expect("a line").associate(scene.preemptor.into());
    ipc::cancel_receive(scene.preemptor);
    assert!(same(scene.wait(scene.preemptor), scene.runner));
    arch::set_clock(1000);
    arch::raise_line(1, 0);
    let event = scene.world.interrupt().expect("the line is raised");
    assert!(same(scene.world.run(event), scene.preemptor));
    assert_eq!(scene.preemptor.registers.rsi.get(), line.raw());
    assert_eq!((scene.runner.pending.get(), scene.runner.preempted_at.get()), (pending::PREEMPTED, 1000));
    scene.expect_fault(Some(1000));
}

/// Rules: 4.1.
#[test]
fn waiting_and_thread_switch_are_no_preemptions() {
    let scene = Scene::new(SIGNAL, 0, 100);
    let root = scene.world.root();
    ipc::cancel_receive(root);
    let rival = scene.world.spawn(id(13, 1), root.id());
    scene.wait(root);
    scene.world.switch_to(scene.runner);
    for to in [ThreadId::NIL, rival.id()] {
        let next = scene.world.call(Call::ThreadSwitch, scene.runner, &[(Rdi, to.raw())]);
        assert!(same(next, rival), "to {to:?}");
        assert_eq!(scene.runner.pending.get(), 0, "to {to:?}");
    }
    assert!(same(scene.wait(scene.runner), rival));
    assert_eq!(scene.runner.pending.get(), 0);
    assert!(scene.wait(rival).is_none());
    assert_eq!(scene.handler.continuation(), Continuation::Receive(IpcKind::User), "it is told nothing");
}

fn schedule(scene: &Scene, quantum: u64, preemption: u64) -> (u64, u64) {
    let root = scene.world.root();
    let time = TimeControl::new(None, Some(Time::period(quantum))).raw();
    let arguments = [(Rdi, scene.runner.id().raw()), (Rdx, time), (R8, UNCHANGED), (Rsi, UNCHANGED)];
    let [a, b, c, d] = arguments;
    ipc::cancel_receive(root);
    scene.world.call(Call::Schedule, root, &[a, b, c, d, (R9, preemption)]);
    (root.registers.rax().get(), root.registers.rdx.get() & 0xffff)
}

/// Rules: 3.19, 3.21, 3.23a.
#[test]
fn a_thread_that_has_used_its_quantum_tells_its_scheduler_and_stops() {
    let scene = Scene::new(0, 0, 100);
    let root = scene.world.root();
    let control = PreemptionControl { max_delay: 7, sensitive_priority: 100 }.raw();
    assert_eq!(schedule(&scene, 3000, control), (3, u64::from(Time::NEVER.raw())));
    assert!(same(scene.wait(root), scene.runner));
    assert_eq!(arch::timer(), 3000);
    assert!(same(scene.tick(2999), scene.runner));
    assert!(same(scene.tick(3000), root), "the scheduler is more urgent");
    assert_eq!(scene.heard(root), (protocol::PREEMPTION_TAG, 3000, true));
    assert!(scene.wait(root).is_none(), "no thread can run");
    // Neither a switch to the thread nor resuming it lets it run.
    let resume = x2::control::ExchangeControl::RESUME.raw();
    ipc::cancel_receive(root);
    scene.world.call(Call::ExchangeRegisters, root, &[(Rax, scene.runner.id().raw()), (Rsi, resume)]);
    assert!(same(scene.world.call(Call::ThreadSwitch, root, &[(Rdi, scene.runner.id().raw())]), root));
    assert_eq!(schedule(&scene, 500, UNCHANGED), (3, u64::from(Time::ZERO.raw())));
    assert!(same(scene.wait(root), scene.runner));
    assert!(same(scene.tick(3500), root), "it has used the new one, too");
}

/// Rules: 3.18b.
#[test]
fn only_running_uses_a_quantum() {
    let scene = Scene::new(0, 0, 100);
    let root = scene.world.root();
    schedule(&scene, 6000, UNCHANGED);
    scene.wait(root);
    assert!(same(scene.tick(5000), scene.preemptor));
    arch::set_clock(9000);
    assert!(same(scene.wait(scene.preemptor), scene.runner));
    assert!(same(scene.tick(9999), scene.runner));
    assert!(same(scene.tick(10_000), root));
    // The message is in the runner's name, and does not touch its registers.
    assert_eq!(scene.runner.registers.rsi.get(), 0);
}

/// Rules: 3.22.
#[test]
fn a_new_quantum_takes_back_a_message_that_was_not_received() {
    let scene = Scene::new(0, 0, 100);
    let root = scene.world.root();
    schedule(&scene, 1000, UNCHANGED);
    // The root task sleeps: it does not receive messages.
    let sleep = [(Rsi, 0), (Rdx, root.id().raw()), (R8, 0)];
    assert!(same(scene.world.call(Call::Ipc, root, &sleep), scene.runner));
    assert!(scene.tick(1000).is_none());
    assert_eq!(scene.runner.continuation(), Continuation::Send(IpcKind::Quantum));
    assert_eq!(schedule(&scene, 1000, UNCHANGED), (3, u64::from(Time::ZERO.raw())));
    assert!(same(scene.wait(root), scene.runner), "there is nothing to hear");
    ipc::cancel_receive(root);
    scene.world.call(Call::Ipc, root, &sleep);
    assert!(scene.tick(2000).is_none());
    ipc::cancel_send(scene.runner);
    assert!(scene.tick(2001).is_none(), "without the message it stays where it is");
}

/// Rules: 3.23c.
#[test]
fn without_a_scheduler_it_is_halted() {
    let scene = Scene::new(0, 0, 100);
    schedule(&scene, 1000, UNCHANGED);
    scene.wait(scene.world.root());
    scene.runner.scheduler.set(id(99, 1));
    assert!(scene.tick(1000).is_none());
    assert!(scene.runner.has(crate::thread::flag::HALTED));
}

/// Rules: 4.13.
#[test]
fn of_handler_and_preemptor_the_more_urgent_runs() {
    for (priority, handler_first) in [(110, false), (119, false), (121, true), (130, true)] {
        let scene = Scene::new(SIGNAL | DELAY, 0, 120);
        processor::this().scheduler.set_priority(scene.handler, priority, None);
        let next = scene.tick(5000);
        let (first, second) =
            if handler_first { (scene.handler, scene.preemptor) } else { (scene.preemptor, scene.handler) };
        assert!(same(next, first), "handler of priority {priority}");
        assert_eq!(scene.runner.continuation(), Continuation::Receive(IpcKind::Exception));
        assert!(same(scene.wait(first), second), "the other one is next");
    }
}

/// Rules: 3.28.
#[test]
fn donated_time_is_the_donors_timeslice_and_the_runners_quantum() {
    for by_message in [false, true] {
        let world = World::new();
        let root = world.root();
        let [donor, runner] = [10, 11].map(|number| world.spawn(id(number, 1), root.id()));
        let scheduler = &processor::this().scheduler;
        for (thread, slice, quantum) in [(donor, 10_000, 50_000), (runner, 3000, 40_000)] {
            scheduler.set_timeslice(thread, slice);
            scheduler.set_quantum(thread, quantum);
        }
        let wait = [(Rsi, 0), (Rdx, ThreadId::ANY.raw()), (R8, 0)];
        let waiting = [world.thread(id(0, 1)), root, runner];
        for thread in &waiting[..if by_message { 3 } else { 2 }] {
            world.call(Call::Ipc, thread, &wait);
        }
        assert!(same(world.proceed(), donor));
        arch::set_clock(1000);
        let to = runner.id().raw();
        let next = if by_message {
            world.call(Call::Ipc, donor, &[(Rsi, to), (Rdx, to), (R8, 0), (R9, 0)])
        } else {
            world.call(Call::ThreadSwitch, donor, &[(Rdi, to)])
        };
        assert!(same(next, runner));
        // The thread runs for longer than a timeslice of its own.
        arch::set_clock(5000);
        let slices = [donor, runner].map(|thread| scheduler.timeslice_left(thread));
        assert_eq!(slices, [5000, 3000], "by a message: {by_message}");
        assert_eq!([donor, runner].map(|thread| scheduler.quantum_left(thread)), [49_000, 36_000]);
        arch::set_clock(9999);
        assert!(same(world.run(dispatch::timer_interrupt()), runner), "the donor's time is not over");
        arch::set_clock(10_000);
        let next = world.run(dispatch::timer_interrupt());
        assert!(same(next, if by_message { runner } else { donor }));
        assert_eq!(scheduler.quantum_left(runner), 31_000);
        let slices = [donor, runner].map(|thread| scheduler.timeslice_left(thread));
        assert_eq!(slices, [10_000, 3000], "the thread that runs now has a timeslice of its own");
    }
}

/// Rules: 3.2b.
#[test]
fn a_new_thread_has_the_defaults() {
    let world = World::new();
    let thread = world.spawn(id(10, 1), world.root().id());
    let scheduler = &processor::this().scheduler;
    assert_eq!(
        (thread.priority.get(), thread.sensitive_priority.get(), thread.maximum_delay.get()),
        (100, 100, 0)
    );
    assert_eq!((scheduler.timeslice_left(thread), scheduler.quantum_left(thread)), (10_000, NEVER));
}

/// Every time that there is, as a timeslice and as a total quantum.
///
/// Rules: 1.9b, 3.3ab, 3.18c.
#[test]
fn every_period_but_zero_is_a_timeslice_and_a_quantum() {
    let world = World::new();
    let (root, thread) = (world.root(), world.spawn(id(10, 1), world.root().id()));
    let scheduler = &processor::this().scheduler;
    for raw in 0..u16::MAX {
        let time = Time::from_raw(raw);
        for (control, is_slice) in
            [(TimeControl::new(Some(time), None), true), (TimeControl::new(None, Some(time)), false)]
        {
            scheduler.set_timeslice(thread, 777);
            scheduler.set_quantum(thread, 777);
            let arguments = [(Rdi, thread.id().raw()), (Rdx, control.raw()), (R8, UNCHANGED)];
            let [a, b, c] = arguments;
            world.call(Call::Schedule, root, &[a, b, c, (Rsi, UNCHANGED), (R9, UNCHANGED)]);
            let length = match time.micros() {
                _ if time.is_never() => Some(NEVER),
                Some(0) | None => None,
                length => length,
            };
            let left = [scheduler.timeslice_left(thread), scheduler.quantum_left(thread)];
            let changed = length.unwrap_or(777);
            assert_eq!(left, if is_slice { [changed, 777] } else { [777, changed] }, "{raw:#x}");
            assert_eq!(root.registers.rax().get() != 0, length.is_some(), "{raw:#x}");
            if length.is_none() {
                assert_eq!(super::error(root), 5, "{raw:#x}");
            }
        }
    }
}

/// Rules: 1.11b.
#[test]
fn a_point_is_resolved_when_the_call_begins() {
    let world = World::new();
    let [server, client] = [10, 11].map(|number| world.spawn(id(number, 1), world.root().id()));
    const BEGIN: u64 = 10_000;
    let point = Time::point(BEGIN, BEGIN + 500).expect("near");
    // Long after the call the same point in time means a later instant.
    const LATER: u64 = BEGIN + 2200;
    assert!(matches!(point.deadline(LATER), x2::Deadline::At(_)));
    arch::set_clock(BEGIN);
    let to = server.id().raw();
    let timeouts = Timeouts::new(Time::NEVER, point).raw();
    world.call(Call::Ipc, client, &[(Rsi, to), (Rdx, to), (R8, timeouts), (R9, 0)]);
    assert_eq!(client.continuation(), Continuation::Send(IpcKind::User));
    arch::set_clock(LATER);
    world.call(Call::Ipc, server, &[(Rsi, 0), (Rdx, client.id().raw()), (R8, 0)]);
    assert!(arch::timer() <= LATER, "its receive phase is over");
    world.run(dispatch::timer_interrupt());
    assert_eq!(client.continuation(), Continuation::ReturnToUser);
    assert_eq!(super::error(client), 3);
    invariants::check();
}

/// Rules: 4.4b.
#[test]
fn a_preemption_by_the_own_send_is_delayed() {
    for (flags, is_delayed) in [(DELAY, true), (0, false)] {
        let scene = Scene::new(flags, 1000, 120);
        ipc::cancel_receive(scene.preemptor);
        assert!(same(scene.wait(scene.preemptor), scene.runner));
        let send = [(Rsi, scene.preemptor.id().raw()), (Rdx, 0), (R8, 0), (R9, 0)];
        let next = scene.world.call(Call::Ipc, scene.runner, &send);
        assert!(same(next, if is_delayed { scene.runner } else { scene.preemptor }));
        assert_eq!(scene.flags(), if is_delayed { DELAY | PENDING } else { 0 });
        if is_delayed {
            assert!(same(scene.tick(1000), scene.preemptor), "the delay is over");
            assert_eq!(scene.flags(), 0);
        }
    }
}

/// Rules: 4.9b.
#[test]
fn a_preemption_fault_does_not_wait_for_its_handler() {
    let scene = Scene::new(SIGNAL, 0, 100);
    let sleep = [(Rsi, 0), (Rdx, scene.handler.id().raw()), (R8, 0)];
    ipc::cancel_receive(scene.handler);
    scene.world.call(Call::Ipc, scene.handler, &sleep);
    assert!(same(scene.tick(5000), scene.preemptor));
    assert!(same(scene.wait(scene.preemptor), scene.runner), "it goes on, and no scheduler was told");
    assert_eq!(scene.runner.pending.get(), 0);
    ipc::cancel_receive(scene.handler);
    assert!(same(scene.wait(scene.handler), scene.runner), "nor does later");
}

/// Rules: 3.17b, 4.1.
#[test]
fn losing_the_processor_to_a_new_priority_is_a_preemption() {
    let scene = Scene::new(SIGNAL, 0, 100);
    ipc::cancel_receive(scene.world.root());
    let other = scene.world.spawn(id(13, 1), scene.world.root().id());
    processor::this().scheduler.set_priority(other, 90, None);
    assert!(same(scene.wait(scene.world.root()), scene.runner));
    let arguments = [(Rdi, other.id().raw()), (Rdx, UNCHANGED), (R8, UNCHANGED), (Rsi, 150), (R9, UNCHANGED)];
    arch::set_clock(3000);
    assert!(same(scene.world.call(Call::Schedule, scene.runner, &arguments), other));
    assert!(same(scene.wait(other), scene.handler), "the runner tells when it goes on");
    assert_eq!(scene.heard(scene.handler), (protocol::PREEMPTION_TAG, 3000, true));
}
