//! Meetings that come about because something else changes than sender and receiver (X.2 rules 7.14
//! to 7.16), and the search for one among many senders.

use x2::{MessageTag, ThreadId, Time, Timeouts, utcb};

use super::Register::*;
use super::migration::schedule;
use super::{UTCB_AREA, World, id, invariants};
use crate::dispatch::{Outcome, dispatch};
use crate::scheduler::Next;
use crate::syscall::Call;
use crate::thread::{Continuation, IpcKind, ThreadRef, ipc};
use crate::{arch, processor};

/// `sender` sends to `to`, in `originator`'s name if it is given, and waits until that thread
/// receives.
fn send(world: &World, sender: ThreadRef, to: ThreadRef, originator: Option<ThreadRef>) {
    let tag = MessageTag::new(9, 0, 0).with_propagated(originator.is_some());
    if let (Some(originator), Some(block)) = (originator, sender.utcb.get()) {
        block.write(utcb::VIRTUAL_SENDER, originator.id().raw());
    }
    world.call(Call::Ipc, sender, &[(R9, tag.raw()), (Rsi, to.id().raw()), (Rdx, 0), (R8, 0)]);
}

fn receive(world: &World, receiver: ThreadRef, from: ThreadId) {
    world.call(Call::Ipc, receiver, &[(Rsi, 0), (Rdx, from.raw()), (R8, 0)]);
}

/// Gives up the processor to all others in turn until `thread` is at user level.
fn let_run(world: &World, thread: ThreadRef) {
    lower_first(world);
    let mut turns = 0;
    while thread.continuation() != Continuation::ReturnToUser {
        if let Some(current) = processor::this().current.take() {
            processor::this().scheduler.make_ready(current);
        }
        world.run(Next::Schedule);
        turns += 1;
        assert!(turns < 100, "the meeting is missed");
    }
}

/// The first threads, which are ready, let others run.
fn lower_first(world: &World) {
    let this = processor::this();
    for thread in [world.thread(id(0, 1)), world.root()] {
        this.scheduler.set_priority(thread, 50, this.current.get());
    }
}

fn sender_seen_by(receiver: ThreadRef) -> u64 {
    receiver.registers.rsi.get()
}

fn four(world: &World) -> [ThreadRef; 4] {
    [4, 5, 6, 7].map(|number| world.spawn(id(number, 1), id(2, 1)))
}

/// `change` does something to the originator that makes the message the sender's own, and the
/// receiver takes it.
fn message_becomes_the_senders(change: impl FnOnce(&World, ThreadRef)) {
    let world = World::new();
    let [sender, originator, ..] = four(&world);
    let receiver = world.spawn(id(8, 1), id(8, 1));
    receive(&world, receiver, sender.id());
    send(&world, sender, receiver, Some(originator));
    assert_eq!(sender.continuation(), Continuation::Send(IpcKind::User), "the receiver waits for another");
    change(&world, originator);
    let_run(&world, receiver);
    assert_eq!(sender_seen_by(receiver), sender.id().raw());
    invariants::check();
}

/// Rules: 7.14.
#[test]
fn a_message_in_the_name_of_a_deleted_thread_becomes_the_senders() {
    message_becomes_the_senders(|world, originator| {
        world.call(Call::ThreadControl, world.root(), &[(Rdi, originator.id().raw()), (R8, 0)]);
    });
}

/// Rules: 7.14.
#[test]
fn a_message_in_the_name_of_a_thread_that_moves_away_becomes_the_senders() {
    message_becomes_the_senders(|world, originator| {
        let elsewhere = world.spawn(id(9, 1), id(9, 1));
        let location = UTCB_AREA + 0x8000;
        let arguments = [(Rdi, originator.id().raw()), (R8, elsewhere.id().raw()), (Rdx, 0), (Rsi, 0)];
        world.root().registers.r9().set(location);
        world.call(Call::ThreadControl, world.root(), &arguments);
        assert_eq!(world.root().registers.rax().get(), 1);
    });
}

/// Rules: 6.15.
#[test]
fn a_thread_that_moves_leaves_no_space_without_a_redirector() {
    let world = World::new();
    let [moving, elsewhere, partner] = [4, 5, 6].map(|number| world.spawn(id(number, 1), id(number, 1)));
    world.spawn(id(7, 1), moving.id());
    receive(&world, partner, moving.id());
    let arguments = [(Rdi, moving.id().raw()), (R8, elsewhere.id().raw()), (Rdx, 0), (Rsi, 0)];
    world.root().registers.r9().set(UTCB_AREA + 0x8000);
    world.call(Call::ThreadControl, world.root(), &arguments);
    assert_eq!(world.root().registers.rax().get(), 1);
    for thread in [moving, elsewhere, partner, world.root()] {
        assert!(thread.space.get().is_some_and(|space| !space.is_redirected()), "no redirector has gone");
    }
    invariants::check();
}

/// Rules: 6.16, 7.14.
#[test]
fn a_message_of_a_redirector_that_is_none_any_more_becomes_its_own() {
    let world = World::new();
    let [redirector, originator, receiver] =
        [4, 5, 6].map(|number| world.spawn(id(number, 1), id(number, 1)));
    let redirect = |to: ThreadId| {
        let areas = [(Rsi, 0), (Rdx, 0), (R8, 0)];
        world.root().registers.rdi.set(originator.id().raw());
        world.call(Call::SpaceControl, world.root(), &[areas[0], areas[1], areas[2], (R9, to.raw())]);
        assert_eq!(world.root().registers.rax().get(), 1);
    };
    redirect(redirector.id());
    receive(&world, receiver, redirector.id());
    send(&world, redirector, receiver, Some(originator));
    assert_eq!(
        redirector.continuation(),
        Continuation::Send(IpcKind::User),
        "it is the originator's message"
    );
    redirect(ThreadId::ANY);
    let_run(&world, receiver);
    assert_eq!(sender_seen_by(receiver), redirector.id().raw());
    invariants::check();
}

/// Rules: 7.16.
#[test]
fn an_originator_that_is_turned_to_another_partner_takes_what_waits_from_it() {
    let world = World::new();
    let [server, client, worker, helper] = four(&world);
    receive(&world, client, server.id());
    // The helper sends in the name of the worker, for which the client does not wait yet.
    send(&world, helper, client, Some(worker));
    assert_eq!(helper.continuation(), Continuation::Send(IpcKind::User));
    receive(&world, worker, ThreadId::ANY);
    send(&world, server, worker, Some(client));
    let_run(&world, client);
    assert_eq!(sender_seen_by(client), worker.local_id.get());
    invariants::check();
}

/// Rules: 7.16.
#[test]
fn an_originator_that_comes_to_wait_late_is_turned_too_wherever_the_three_live() {
    for homes in 0..27 {
        let homes: [u16; 3] = [homes % 3, homes / 3 % 3, homes / 9];
        let world = World::with_processors(3);
        let [sender, originator, receiver, _] = four(&world);
        for (thread, home) in [sender, originator, receiver].into_iter().zip(homes) {
            schedule(&world, world.root(), thread, home);
        }
        let at_home = |thread: ThreadRef| {
            world.serve_all();
            arch::select_processor(thread.home().into());
            assert!(thread.is_here() && thread.continuation() == Continuation::ReturnToUser);
        };
        at_home(sender);
        send(&world, sender, receiver, Some(originator));
        at_home(originator);
        assert_eq!(sender.continuation(), Continuation::Send(IpcKind::User), "{homes:?}");
        receive(&world, originator, sender.id());
        at_home(receiver);
        invariants::check();
        receive(&world, receiver, ThreadId::ANY);
        at_home(sender);
        at_home(receiver);
        assert_eq!(sender_seen_by(receiver), originator.local_id.get());
        assert_eq!(originator.partner(), receiver.id(), "{homes:?}");
        let no_wait = Timeouts::new(Time::ZERO, Time::NEVER).raw();
        let arguments = [(R9, 0), (Rsi, originator.id().raw()), (Rdx, 0), (R8, no_wait)];
        world.call(Call::Ipc, receiver, &arguments);
        at_home(receiver);
        assert!(!MessageTag::from_raw(receiver.registers.r9().get()).is_error(), "{homes:?}");
        at_home(originator);
        assert_eq!(sender_seen_by(originator), receiver.local_id.get());
        invariants::check();
    }
}

/// Rules: 7.14.
#[test]
fn a_right_to_propagate_that_comes_later_is_not_used() {
    let world = World::new();
    let [sender, receiver, ..] = four(&world);
    let tag = MessageTag::new(9, 0, 0).with_propagated(true);
    sender.utcb.get().expect("active").write(utcb::VIRTUAL_SENDER, id(9, 1).raw());
    let arguments = [(R9, tag.raw()), (Rsi, receiver.id().raw()), (Rdx, 0), (R8, 0)];
    world.call(Call::Ipc, sender, &arguments);
    world.spawn(id(9, 1), id(2, 1));
    receive(&world, receiver, ThreadId::ANY);
    assert_eq!(sender_seen_by(receiver), sender.local_id.get());
    assert!(!MessageTag::from_raw(receiver.registers.r9().get()).is_propagated());
}

/// Rules: 7.7a.
#[test]
fn a_search_among_many_senders_gives_way_and_goes_on() {
    let world = World::new();
    let receiver = world.spawn(id(4, 1), id(4, 1));
    let strangers: std::vec::Vec<_> = (10..70).map(|number| world.spawn(id(number, 1), id(2, 1))).collect();
    for stranger in &strangers {
        send(&world, stranger, receiver, None);
    }
    let member = world.spawn(id(5, 1), id(4, 1));
    send(&world, member, receiver, None);
    lower_first(&world);
    world.machine.interrupts(1, 1);
    world.switch_to(receiver);
    let arguments = [(Rsi, 0), (Rdx, ThreadId::ANY_LOCAL.raw()), (R8, 0)];
    let mut next = world.enter(Call::Ipc, receiver, &arguments);
    let mut interrupted = 0;
    while let Outcome::TakeInterrupts = dispatch(next) {
        interrupted += 1;
        invariants::check();
        // The thread that the search would look at next goes away meanwhile.
        let next_one = receiver.search.get().expect("the search is not over");
        ipc::leave_all(next_one);
        let moved = receiver.search.get().expect("there are more");
        assert!(!core::ptr::eq(next_one, moved));
        next = Next::Schedule;
    }
    assert!(interrupted >= 3, "{interrupted} times");
    assert_eq!(sender_seen_by(receiver), member.local_id.get());
}
