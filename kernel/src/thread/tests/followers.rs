//! A thread moves, and many that wait to send to it go after it: interrupts are looked for in
//! between, and none of them is lost.

use core::ptr::eq;
use std::vec::Vec;

use x2::control::{ExchangeControl, UNCHANGED};
use x2::{IpcErrorKind, MessageTag, ThreadId, Time, Timeouts};

use super::Register::*;
use super::migration::schedule;
use super::{World, id, invariants};
use crate::dispatch::{
    Outcome, after_interrupt, dispatch, receive_requests, take_interrupts, timer_interrupt,
};
use crate::scheduler::Next;
use crate::syscall::Call;
use crate::thread::table::threads;
use crate::thread::{Continuation, IpcKind, ThreadRef, flag};
use crate::{arch, processor};

/// The number of senders that wait.
const SENDERS: u32 = 12;
/// The timeout of the senders that have one, in microseconds.
const TIMEOUT: u64 = 5000;

/// A receiver of processor 0, and what waits there to send to it, in the order in which it is to be
/// served.
struct Scene {
    world: World,
    receiver: ThreadRef,
    senders: Vec<ThreadRef>,
}

fn waits_in_queue(thread: ThreadRef) -> bool {
    thread.continuation() == Continuation::Send(IpcKind::User)
}

/// How the send of `thread` has failed.
fn failure(thread: ThreadRef) -> Option<IpcErrorKind> {
    assert_eq!(thread.continuation(), Continuation::ReturnToUser);
    let tag = MessageTag::from_raw(thread.registers.r9().get());
    assert!(tag.is_error(), "the send has not failed");
    let error = thread.utcb.get()?.read(x2::utcb::ERROR_CODE);
    Some(x2::IpcError::from_raw(error)?.kind)
}

impl Scene {
    fn new() -> Self {
        let world = World::with_processors(2);
        let receiver = world.spawn(id(3, 1), id(2, 1));
        let mut senders: Vec<_> =
            (0..SENDERS).map(|number| world.spawn(id(4 + number, 1), id(2, 1))).collect();
        for (number, &sender) in senders.iter().enumerate() {
            processor::this().scheduler.set_priority(sender, 100 + (number % 3) as u8, None);
            // One sender in four has a timeout.
            let timeout = if number % 4 == 1 { Time::period(TIMEOUT) } else { Time::NEVER };
            let timeouts = Timeouts::new(timeout, Time::NEVER).raw();
            let arguments = [(R9, 0), (Rsi, receiver.id().raw()), (Rdx, 0), (R8, timeouts)];
            world.call(Call::Ipc, sender, &arguments);
            assert!(waits_in_queue(sender));
        }
        senders.sort_by_key(|sender| u8::MAX - sender.priority.get());
        assert!(receiver.senders.iter().zip(&senders).all(|(one, other)| eq(one, *other)));
        Self { world, receiver, senders }
    }

    /// How many senders have gone, always those that come first, without `except`.
    fn gone(&self, except: &[ThreadRef]) -> usize {
        let counted =
            || self.senders.iter().filter(|sender| !except.iter().any(|other| eq(*other, **sender)));
        let count = counted().take_while(|sender| sender.location.processor() == 1).count();
        assert!(counted().skip(count).all(|sender| waits_in_queue(sender)), "in order");
        count
    }

    /// Does what `begin` says with an interrupt pending at each look; `interrupt` is told how often
    /// there has been one.
    fn go_on(&self, begin: impl FnOnce() -> Next, interrupt: impl Fn(usize) -> Option<Next>) -> usize {
        self.world.machine.interrupts(1, 1);
        let (mut next, mut turns) = (begin(), 0);
        while let Outcome::TakeInterrupts = dispatch(next) {
            turns += 1;
            assert!(turns < 100, "each turn gets something done");
            next = take_interrupts(|| interrupt(turns));
        }
        self.world.machine.interrupts(0, 1);
        turns
    }

    /// The root task lets the receiver live at processor 1.
    fn moves(&self) -> Next {
        let root = self.world.root();
        self.world.switch_to(root);
        let unchanged = [Rdx, Rsi, R9].map(|register| (register, UNCHANGED));
        let [a, b, c] = unchanged;
        let arguments = [(Rdi, self.receiver.id().raw()), (R8, 1), a, b, c];
        self.world.enter(Call::Schedule, root, &arguments)
    }

    /// Checks that all senders have arrived, and wait in the same order as before, without
    /// `except`.
    fn check(&self, except: &[ThreadRef]) {
        invariants::check();
        self.world.serve_all();
        invariants::check();
        assert_eq!(self.receiver.home(), 1);
        let queue: Vec<_> = self.receiver.senders.iter().map(|thread| thread.id()).collect();
        let left = self.senders.iter().filter(|sender| !except.iter().any(|other| eq(*other, **sender)));
        assert_eq!(queue, left.map(|sender| sender.id()).collect::<Vec<_>>());
    }
}

/// Rules: 3.8, 7.7a.
#[test]
fn senders_that_follow_a_receiver_give_way_to_interrupts() {
    let scene = Scene::new();
    let gone = core::cell::Cell::new(0);
    let turns = scene.go_on(
        || scene.moves(),
        |_| {
            let now = scene.gone(&[]);
            assert!(now - gone.replace(now) <= 2, "between two looks for interrupts");
            assert_eq!(scene.receiver.location.processor(), 0, "it goes after them");
            Some(after_interrupt())
        },
    );
    assert!(turns as u32 >= SENDERS / 2, "{turns} turns");
    scene.check(&[]);
}

/// Rules: 1.6, 3.8.
#[test]
fn a_timeout_ends_while_others_follow_their_receiver() {
    let scene = Scene::new();
    let ended: Vec<_> =
        scene.senders.iter().copied().filter(|sender| sender.timeout.deadline().is_some()).collect();
    let late = |sender: &ThreadRef| sender.location.is_at(0);
    let left = core::cell::Cell::new(0);
    scene.go_on(
        || scene.moves(),
        |turn| {
            if turn != 3 {
                return None;
            }
            left.set(ended.iter().filter(|sender| late(sender)).count());
            arch::set_clock(TIMEOUT);
            Some(timer_interrupt())
        },
    );
    assert!((1..ended.len()).contains(&left.get()), "some have gone, and some have not");
    for sender in ended.iter().filter(|sender| late(sender)) {
        assert_eq!(failure(sender), Some(IpcErrorKind::Timeout));
    }
    scene.check(&ended);
    assert!(ended.iter().all(|sender| failure(sender) == Some(IpcErrorKind::Timeout)), "the others, too");
}

/// Rules: 3.8, 5.15, 5.27, 5.30.
#[test]
fn senders_that_follow_a_receiver_are_cancelled_halted_and_deleted_from_elsewhere() {
    let scene = Scene::new();
    let world = &scene.world;
    let [aborted, halted, deleted] = [3, 5, 8].map(|number: usize| scene.senders[number]);
    let names = [aborted, halted, deleted].map(|thread| thread.id());
    let actors = [30, 31, 32].map(|number| world.spawn(id(number, 1), id(2, 1)));
    actors.iter().for_each(|&actor| schedule(world, world.root(), actor, 1));
    world.serve_all();
    arch::select_processor(0);
    scene.go_on(
        || scene.moves(),
        |turn| {
            if turn == 2 {
                arch::select_processor(1);
                let send = ExchangeControl::CANCEL_SEND;
                let exchange = [(names[0], send), (names[1], send.with(ExchangeControl::STOP))];
                for (actor, (id, control)) in actors.into_iter().zip(exchange) {
                    let arguments = [(Rax, id.raw()), (Rsi, control.raw())];
                    world.call(Call::ExchangeRegisters, actor, &arguments);
                }
                world.call(Call::ThreadControl, actors[2], &[(Rdi, names[2].raw()), (R8, 0)]);
                arch::select_processor(0);
            }
            None
        },
    );
    world.serve_all();
    assert_eq!(failure(aborted), Some(IpcErrorKind::Cancelled));
    scene.check(&[aborted, halted, deleted]);
    assert!(halted.has(flag::HALTED));
    assert!(threads().find(names[2]).is_none());
}

/// A receiver that is away when it is moved comes home first: its senders go from there before it
/// does. It is away to send, and perhaps to receive the answer.
/// Rules: 3.8.
#[test]
fn a_receiver_that_comes_home_to_be_moved_lets_its_senders_go_first() {
    for awaits_answer in [false, true] {
        let scene = Scene::new();
        let Scene { ref world, receiver, .. } = scene;
        let [server, mover] = [30, 31].map(|number| world.spawn(id(number, 1), id(2, 1)));
        for thread in [server, mover] {
            schedule(world, world.root(), thread, 1);
        }
        world.serve_all();
        arch::select_processor(0);
        let from = if awaits_answer { server.id() } else { ThreadId::NIL };
        let send = [(R9, 0), (Rsi, server.id().raw()), (Rdx, from.raw()), (R8, Timeouts::NEVER.raw())];
        let receive = [(R9, 0), (Rsi, 0), (Rdx, receiver.id().raw()), (R8, Timeouts::NEVER.raw())];
        world.call(Call::Ipc, receiver, &send);
        arch::select_processor(1);
        world.attend();
        assert!(waits_in_queue(receiver) && receiver.is_here());
        if awaits_answer {
            world.call(Call::Ipc, server, &receive);
            assert!(receiver.awaits_message().is_some() && receiver.is_here());
        }
        schedule(world, mover, receiver, 1);
        if !awaits_answer {
            world.call(Call::Ipc, server, &receive);
        }
        assert_eq!((receiver.home(), receiver.location.processor()), (0, 0), "it goes home first");
        arch::select_processor(0);
        assert!(arch::take_attention());
        let turns = scene.go_on(receive_requests, |_| {
            assert!(receiver.is_here(), "it goes after them");
            None
        });
        assert!(turns as u32 >= SENDERS / 2, "{turns} turns");
        scene.check(&[]);
        assert!(receiver.location.is_at(1));
    }
}
