//! Messages to threads that wait at a processor which has nothing to do.

use x2::{MessageTag, ThreadId};

use super::migration::{schedule, send_and_receive};
use super::{World, id, invariants};
use crate::thread::{Continuation, Offer, ThreadRef};
use crate::{arch, processor};

/// A receiver that waits at processor 1, where nothing else is, and a sender at processor 0.
fn scene() -> (World, ThreadRef, ThreadRef) {
    let world = World::with_processors(2);
    let [receiver, sender] = [4, 5].map(|number| world.spawn(id(number, 1), id(2, 1)));
    schedule(&world, world.root(), receiver, 1);
    world.serve_all();
    arch::select_processor(1);
    send_and_receive(&world, receiver, ThreadId::NIL, ThreadId::ANY);
    assert!(processor::this().current.get().is_none() && receiver.is_here());
    arch::select_processor(0);
    (world, receiver, sender)
}

/// Rules: 7.1, 7.18a.
#[test]
fn a_thread_that_only_sends_to_an_idle_processor_goes_on() {
    let (world, receiver, sender) = scene();
    send_and_receive(&world, sender, receiver.id(), ThreadId::NIL);
    assert!(sender.is_here() && sender.continuation() == Continuation::ReturnToUser);
    assert!(receiver.offer() == Offer::NONE && !receiver.location.is_at(1), "it has its message");
    invariants::check();
    arch::select_processor(1);
    assert!(world.attend());
    assert!(processor::this().is_current(receiver));
    let tag = MessageTag::from_raw(receiver.registers.message[0].get());
    assert!(tag.is_cross_processor() && !tag.is_error());
    invariants::check();
    // No processor is idle now.
    arch::select_processor(0);
    send_and_receive(&world, sender, receiver.id(), ThreadId::NIL);
    assert!(!sender.is_here());
    world.serve_all();
    invariants::check();
}

/// A thread that waits for an answer goes to where it comes from, as ever.
#[test]
fn a_thread_that_calls_an_idle_processor_goes_there() {
    let (world, receiver, sender) = scene();
    send_and_receive(&world, sender, receiver.id(), receiver.id());
    assert!(!sender.is_here() && receiver.location.is_at(1));
    world.serve_all();
    arch::select_processor(1);
    assert!(sender.is_here() && processor::this().is_current(receiver));
    invariants::check();
}

/// A wait that makes no offer is the other processor's matter.
#[test]
fn a_send_to_a_thread_without_an_offer_goes_there() {
    let (world, receiver, sender) = scene();
    receiver.withdraw_offer();
    send_and_receive(&world, sender, receiver.id(), ThreadId::NIL);
    assert!(!sender.is_here() && receiver.location.is_at(1));
    world.serve_all();
    assert_eq!(receiver.continuation(), Continuation::ReturnToUser);
    invariants::check();
}
