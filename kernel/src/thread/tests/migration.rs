//! Threads that are moved while they wait (X.2 rule 3.8).

use x2::ThreadId;
use x2::control::UNCHANGED;

use super::Register::*;
use super::{World, id, invariants};
use crate::arch;
use crate::syscall::Call;
use crate::thread::{Continuation, IpcKind, Offer, ThreadRef};

/// A server at processor 0, which has got the request of a client that lives at processor `home`.
fn served(home: u16) -> (World, ThreadRef, ThreadRef) {
    let world = World::with_processors(2);
    let [server, client] = [4, 5].map(|number| world.spawn(id(number, 1), id(2, 1)));
    schedule(&world, world.root(), client, home);
    world.serve_all();
    arch::select_processor(0);
    send_and_receive(&world, server, ThreadId::NIL, ThreadId::ANY);
    arch::select_processor(home.into());
    send_and_receive(&world, client, server.id(), server.id());
    world.serve_all();
    arch::select_processor(0);
    assert_eq!(server.continuation(), Continuation::ReturnToUser);
    assert!(waits_at(client, 0), "the answer comes from there");
    (world, server, client)
}

pub(super) fn send_and_receive(world: &World, thread: ThreadRef, to: ThreadId, from: ThreadId) {
    world.call(Call::Ipc, thread, &[(R9, 0), (Rsi, to.raw()), (Rdx, from.raw()), (R8, 0)]);
}

/// `scheduler` lets `thread` live at `processor`.
pub(super) fn schedule(world: &World, scheduler: ThreadRef, thread: ThreadRef, processor: u16) {
    let unchanged = [Rdx, Rsi, R9].map(|register| (register, UNCHANGED));
    let [a, b, c] = unchanged;
    world.call(Call::Schedule, scheduler, &[(Rdi, thread.id().raw()), (R8, processor.into()), a, b, c]);
    assert_ne!(scheduler.registers.rax().get(), 0, "Schedule fails");
}

fn waits_at(thread: ThreadRef, processor: u16) -> bool {
    thread.location.is_at(processor)
        && thread.awaits_message() == Some(IpcKind::User)
        && !thread.ready.is_queued()
}

/// The server answers without leaving its processor, and the client is back where it lives, which
/// is processor `home`.
fn answer(world: &World, server: ThreadRef, client: ThreadRef, home: u16) {
    send_and_receive(world, server, client.id(), ThreadId::NIL);
    assert_eq!(server.continuation(), Continuation::ReturnToUser, "no thread has to be followed");
    assert!(server.is_here());
    world.serve_all();
    assert_eq!(client.home(), home);
    assert!(client.location.is_at(home));
    assert_eq!(client.continuation(), Continuation::ReturnToUser);
    assert_eq!(client.registers.rsi.get(), server.local_id.get());
    invariants::check();
}

/// Rules: 3.8.
#[test]
fn a_thread_that_is_moved_by_its_partner_takes_the_answer_along() {
    for (from, to) in [(0, 1), (1, 0)] {
        let (world, server, client) = served(from);
        schedule(&world, server, client, to);
        invariants::check();
        assert!(waits_at(client, 0), "it stays with the server");
        assert!(client.offer() == Offer::NONE);
        answer(&world, server, client, to);
    }
}

/// Rules: 3.8.
#[test]
fn a_thread_that_is_moved_by_another_than_its_partner_moves_before_the_answer() {
    let (world, server, client) = served(0);
    schedule(&world, world.root(), client, 1);
    world.serve_all();
    invariants::check();
    assert!(client.home() == 1 && waits_at(client, 1));
    arch::select_processor(0);
    send_and_receive(&world, server, client.id(), ThreadId::NIL);
    world.serve_all();
    assert!(client.location.is_at(1) && client.continuation() == Continuation::ReturnToUser);
    assert!(server.location.is_at(0) && server.continuation() == Continuation::ReturnToUser);
}

/// A thread comes home to be moved on, together with another one that changes its priority before
/// it is seen to.
/// Rules: 3.8, 3.16.
#[test]
fn one_that_has_just_come_home_moves_on_although_its_priority_changes() {
    const PRIORITY: u8 = 50;
    let world = World::with_processors(2);
    let [client, scheduler, server] = [4, 5, 6].map(|number| world.spawn(id(number, 1), id(2, 1)));
    schedule(&world, world.root(), client, 1);
    world.serve_all();
    arch::select_processor(0);
    send_and_receive(&world, server, ThreadId::NIL, ThreadId::ANY);
    // The scheduler sets out for where the client is, and is not let in there yet.
    let [a, b, c] = [Rdx, R8, R9].map(|register| (register, UNCHANGED));
    let arguments = [(Rdi, client.id().raw()), (Rsi, PRIORITY.into()), a, b, c];
    world.call(Call::Schedule, scheduler, &arguments);
    arch::select_processor(1);
    send_and_receive(&world, client, server.id(), server.id());
    arch::select_processor(0);
    world.attend();
    assert!(waits_at(client, 0), "the answer comes from there");
    schedule(&world, world.root(), client, 0);
    assert_eq!(client.location.processor(), 1, "it goes home first");
    arch::select_processor(1);
    world.attend();
    assert_eq!(client.priority.get(), PRIORITY);
    world.serve_all();
    assert_eq!(client.home(), 0);
    assert!(client.location.is_at(0));
    invariants::check();
}
