//! Transfers and calls that give way to interrupts, and what can happen to them meanwhile.

use core::ptr::eq;

use x2::control::ExchangeControl;
use x2::{Fpage, IpcError, IpcErrorKind, IpcPhase, MapItem, MessageTag, Rights, ThreadId, utcb};

use super::Register::*;
use super::{World, error, id, invariants};
use crate::dispatch::{Outcome, dispatch};
use crate::scheduler::Next;
use crate::syscall::Call;
use crate::thread::{Continuation, IpcKind, ThreadRef};

/// A map item of sigma0's that a receiver in another space takes, stopped by an interrupt in the
/// middle.
fn interrupted_transfer(world: &World) -> (ThreadRef, ThreadRef) {
    let sigma0 = world.thread(id(0, 1));
    let receiver = world.spawn(id(5, 1), id(5, 1));
    let window = Fpage::COMPLETE.raw();
    receiver.utcb.get().expect("active").write(utcb::buffer_register(0), window);
    world.call(Call::Ipc, receiver, &[(Rsi, 0), (Rdx, sigma0.id().raw()), (R8, 0)]);
    assert_eq!(receiver.continuation(), Continuation::Receive(IpcKind::User));
    let item = MapItem::map(Fpage::memory(0x200_1000, 12).with_rights(Rights::ALL), 0x200_1000);
    let large = MapItem::map(Fpage::memory(0x400_0000, 22).with_rights(Rights::ALL), 0x400_0000);
    let [first, second] = item.to_words(true);
    let [third, fourth] = large.to_words(false);
    for (index, word) in [first, second, third, fourth].into_iter().enumerate() {
        sigma0.registers.message[index + 1].set(word);
    }
    world.machine.interrupts(1, 1);
    world.switch_to(sigma0);
    let tag = MessageTag::new(7, 0, 4).raw();
    let arguments = [(R9, tag), (Rsi, receiver.id().raw()), (Rdx, 0), (R8, 0)];
    let next = world.enter(Call::Ipc, sigma0, &arguments);
    assert!(matches!(next, Next::Interrupted), "the transfer polls for interrupts");
    assert!(matches!(dispatch(next), Outcome::TakeInterrupts));
    invariants::check();
    assert_eq!(sigma0.continuation(), Continuation::SendTransfer(IpcKind::User));
    assert_eq!(receiver.continuation(), Continuation::ReceiveTransfer(IpcKind::User));
    (sigma0, receiver)
}

fn ipc_error(thread: ThreadRef) -> Option<IpcError> {
    IpcError::from_raw(error(thread))
}

/// Rules: 7.25, ABI 19.9.
#[test]
fn an_interrupted_transfer_ends_like_any_other() {
    let world = World::new();
    let (sigma0, receiver) = interrupted_transfer(&world);
    world.machine.interrupts(5, 2);
    world.proceed();
    for thread in [sigma0, receiver] {
        assert_eq!(thread.continuation(), Continuation::ReturnToUser);
    }
    assert_eq!(sigma0.registers.r9().get(), 0);
    assert_eq!(MessageTag::from_raw(receiver.registers.r9().get()), MessageTag::new(7, 0, 4));
    assert_eq!(ThreadId::from_raw(receiver.registers.rsi.get()), sigma0.id());
    let memory = receiver.space.get().expect("it lives").memory;
    for address in [0x200_1000, 0x400_0000, 0x43f_f000] {
        let translation = memory.lookup(crate::memory::VirtAddr::new(address));
        assert_eq!(translation.map(|translation| translation.address.value()), Some(address));
    }
}

/// Rules: 5.27, 7.10.
#[test]
fn an_aborted_transfer_fails_on_both_sides() {
    for (control, victim_sends) in
        [(ExchangeControl::CANCEL_SEND, true), (ExchangeControl::CANCEL_RECEIVE, false)]
    {
        let world = World::new();
        let (sigma0, receiver) = interrupted_transfer(&world);
        world.machine.interrupts(0, 1);
        let victim = if victim_sends { sigma0 } else { receiver };
        if victim_sends {
            assert!(crate::thread::ipc::cancel_send(victim));
        } else {
            // The root task is the receiver's pager.
            let arguments = [(Rax, victim.id().raw()), (Rsi, control.raw())];
            world.call(Call::ExchangeRegisters, world.root(), &arguments);
            assert_eq!(world.root().registers.rsi.get(), 2, "it was receiving");
        }
        world.proceed();
        let aborted = |phase| Some(IpcError::new(phase, IpcErrorKind::Aborted));
        assert_eq!(ipc_error(sigma0), aborted(IpcPhase::Send));
        assert_eq!(ipc_error(receiver), aborted(IpcPhase::Receive));
        for thread in [sigma0, receiver] {
            let tag = MessageTag::new(7, 0, 4).with_error(true);
            assert_eq!(MessageTag::from_raw(thread.registers.r9().get()), tag);
        }
        invariants::check();
    }
}

/// Rules: 5.15.
#[test]
fn a_transfer_ends_when_its_partner_is_deleted() {
    let world = World::new();
    let (sigma0, receiver) = interrupted_transfer(&world);
    world.machine.interrupts(3, 2);
    let number = receiver.id();
    world.call(Call::ThreadControl, world.root(), &[(Rdi, number.raw()), (R8, 0)]);
    assert!(crate::thread::table::threads().find(number).is_none());
    assert_eq!(ipc_error(sigma0), Some(IpcError::new(IpcPhase::Send, IpcErrorKind::Aborted)));
    invariants::check();
}

/// Rules: 5.14b.
#[test]
fn a_transfer_ends_when_a_side_gets_another_version() {
    let world = World::new();
    let (sigma0, receiver) = interrupted_transfer(&world);
    world.machine.interrupts(0, 1);
    let (old, newer) = (receiver.id(), id(5, 2));
    let arguments = [(Rdi, newer.raw()), (R8, old.raw()), (Rdx, 0), (Rsi, 0), (R9, u64::MAX)];
    world.call(Call::ThreadControl, world.root(), &arguments);
    assert_eq!((world.root().registers.rax().get(), receiver.id()), (1, newer));
    let aborted = |phase| Some(IpcError::new(phase, IpcErrorKind::Aborted));
    assert_eq!(ipc_error(sigma0), aborted(IpcPhase::Send));
    assert_eq!(ipc_error(receiver), aborted(IpcPhase::Receive));
    invariants::check();
}

#[test]
fn the_deleter_of_a_deleter_finishes_its_work() {
    let world = World::new();
    let root = world.root();
    // Many threads wait for the victim, so that its deletion takes long.
    let victim = world.spawn(id(4, 1), id(4, 1));
    let waiters: std::vec::Vec<_> = (10..40).map(|number| world.spawn(id(number, 1), id(2, 1))).collect();
    for waiter in &waiters {
        world.call(
            Call::Ipc,
            waiter,
            &[(Rsi, victim.id().raw()), (Rdx, victim.id().raw()), (R8, 0), (R9, 0)],
        );
    }
    let deleter = world.spawn(id(6, 1), id(2, 1));
    world.machine.interrupts(9, 1);
    world.switch_to(deleter);
    let next = world.enter(Call::ThreadControl, deleter, &[(Rdi, id(4, 1).raw()), (R8, 0)]);
    assert!(matches!(next, Next::Interrupted));
    assert!(matches!(dispatch(next), Outcome::TakeInterrupts));
    world.machine.interrupts(0, 1);
    world.call(Call::ThreadControl, root, &[(Rdi, id(6, 1).raw()), (R8, 0)]);
    for gone in [id(4, 1), id(6, 1)] {
        assert!(crate::thread::table::threads().by_number(gone.number()).is_none(), "{gone:?}");
    }
    for waiter in waiters {
        assert_eq!(ipc_error(waiter), Some(IpcError::new(IpcPhase::Send, IpcErrorKind::NonExistingPartner)));
    }
    invariants::check();
}

/// A version that comes back while its end is under way: a thread that waits for it then waits for
/// an existing thread. Rules: 5.14e.
#[test]
fn an_id_that_is_used_again_ends_no_wait() {
    let world = World::new();
    let victim = world.spawn(id(4, 1), id(4, 1));
    let [first, waiter, renamer] = [5, 10, 6].map(|number| world.spawn(id(number, 1), id(2, 1)));
    let rename = |version: u32| [(Rdi, id(4, version).raw()), (R8, id(2, 1).raw()), (Rdx, 0), (Rsi, 0)];
    let place = (R9, super::UTCB_AREA + 1024 * 4);
    let calls = |thread| {
        let arguments = [(Rsi, id(4, 1).raw()), (Rdx, id(4, 1).raw()), (R8, 0), (R9, 0)];
        world.call(Call::Ipc, thread, &arguments);
    };
    calls(first);
    world.machine.interrupts(9, 1);
    world.switch_to(renamer);
    let [name, space, scheduler, pager] = rename(2);
    let next = world.enter(Call::ThreadControl, renamer, &[name, space, scheduler, pager, place]);
    assert!(matches!(next, Next::Interrupted));
    assert!(matches!(dispatch(next), Outcome::TakeInterrupts));
    world.machine.interrupts(0, 1);
    assert_eq!(ipc_error(first), Some(IpcError::new(IpcPhase::Send, IpcErrorKind::NonExistingPartner)));
    let [name, space, scheduler, pager] = rename(1);
    world.call(Call::ThreadControl, world.root(), &[name, space, scheduler, pager, (R9, u64::MAX)]);
    assert_eq!(victim.id(), id(4, 1));
    calls(waiter);
    world.switch_to(renamer);
    world.proceed();
    assert_eq!(renamer.continuation(), Continuation::ReturnToUser);
    assert_eq!(waiter.continuation(), Continuation::Send(IpcKind::User), "its partner is there");
    invariants::check();
}

/// Rules: 6.16.
#[test]
fn a_change_of_redirector_gives_way_and_comes_to_its_end() {
    for deleted in [false, true] {
        let world = World::new();
        let [receiver, redirector] = [4, 5].map(|number| world.spawn(id(number, 1), id(number, 1)));
        let senders: std::vec::Vec<_> =
            (10..45).map(|number| world.spawn(id(number, 1), id(10, 1))).collect();
        for sender in &senders {
            world.call(Call::Ipc, sender, &[(Rsi, receiver.id().raw()), (Rdx, 0), (R8, 0), (R9, 0)]);
        }
        let waiting = |at: ThreadRef| {
            senders.iter().filter(|it| it.senders_node.receiver().is_some_and(|it| eq(it, at))).count()
        };
        assert_eq!(waiting(receiver), senders.len());
        let caller = world.spawn(id(6, 1), id(2, 1));
        world.machine.interrupts(9, 1);
        world.switch_to(caller);
        let space = (Rdi, id(10, 1).raw());
        let arguments = [space, (Rsi, 0), (Rdx, 0), (R8, 0), (R9, redirector.id().raw())];
        let next = world.enter(Call::SpaceControl, caller, &arguments);
        assert!(matches!(next, Next::Interrupted));
        assert!(matches!(dispatch(next), Outcome::TakeInterrupts));
        invariants::check();
        assert!((1..senders.len()).contains(&waiting(receiver)), "half of it is done");
        world.machine.interrupts(0, 1);
        if deleted {
            let delete = [(Rdi, caller.id().raw()), (R8, 0)];
            world.call(Call::ThreadControl, world.root(), &delete);
            assert_eq!(world.root().registers.rax().get(), 1);
            assert!(crate::thread::table::threads().by_number(id(6, 1).number()).is_none());
        } else {
            world.switch_to(caller);
            world.proceed();
            assert_eq!(caller.continuation(), Continuation::ReturnToUser);
            assert_eq!(caller.registers.rax().get(), 1);
        }
        assert_eq!(waiting(receiver), 0, "all senders have looked again");
        invariants::check();
    }
}

/// Rules: 6.4.
#[test]
fn a_move_of_the_utcb_area_that_gives_way_leaves_no_thread_a_utcb() {
    use super::{KIP_AREA, UTCB_AREA};
    use x2::utcb::SIZE;
    const NUMBERS: std::ops::Range<u32> = 10..60;
    const NEW_AREA: u64 = UTCB_AREA + (1 << 30);
    let world = World::new();
    let root = world.root();
    let space = id(NUMBERS.start, 1);
    let control = |number: u32, location: u64| {
        let values = [(R8, space.raw()), (Rdx, root.id().raw()), (Rsi, 0), (R9, location)];
        let [space, scheduler, pager, location] = values;
        let arguments = [(Rdi, id(number, 1).raw()), space, scheduler, pager, location];
        world.call(Call::ThreadControl, root, &arguments);
        root.registers.rax().get() == 1
    };
    let areas = |utcbs: u64| {
        [(Rdi, space.raw()), (Rsi, 0), (Rdx, KIP_AREA | 12 << 4), (R8, utcbs | 18 << 4), (R9, 0)]
    };
    let location = |number: u32| UTCB_AREA + SIZE * u64::from(number - NUMBERS.start);
    assert!(control(NUMBERS.start, u64::MAX), "a space");
    world.call(Call::SpaceControl, root, &areas(UTCB_AREA));
    assert_eq!(root.registers.rax().get(), 1);
    assert!({ NUMBERS }.all(|number| control(number, location(number))));
    let with_utcb = || NUMBERS.filter(|&number| world.thread(id(number, 1)).utcb.get().is_some()).count();
    assert_eq!(with_utcb(), NUMBERS.len());
    let caller = world.spawn(id(6, 1), id(2, 1));
    world.machine.interrupts(9, 1);
    world.switch_to(caller);
    let next = world.enter(Call::SpaceControl, caller, &areas(NEW_AREA));
    assert!(matches!(next, Next::Interrupted));
    assert!(matches!(dispatch(next), Outcome::TakeInterrupts));
    assert!((1..NUMBERS.len()).contains(&with_utcb()), "half of it is done");
    world.machine.interrupts(0, 1);
    assert!(control(NUMBERS.start, location(NUMBERS.start)), "the area is still where it was");
    invariants::check();
    world.switch_to(caller);
    world.proceed();
    assert_eq!((caller.continuation(), caller.registers.rax().get()), (Continuation::ReturnToUser, 1));
    assert_eq!(with_utcb(), 0);
    assert!(!control(NUMBERS.start, location(NUMBERS.start)), "the area is elsewhere");
    assert!(control(NUMBERS.start, NEW_AREA));
    invariants::check();
}

/// What an owner can write into the registers of a thread that waits to send (K15).
/// Rules: EXT 6.2.
#[test]
fn a_tag_that_is_none_is_sent_as_an_empty_message() {
    let world = World::new();
    let sender = world.spawn(id(4, 1), id(4, 1));
    let receiver = world.spawn(id(5, 1), id(2, 1));
    world.call(Call::Ipc, sender, &[(Rsi, receiver.id().raw()), (Rdx, 0), (R8, 0), (R9, 0)]);
    assert_eq!(sender.continuation(), Continuation::Send(IpcKind::User));
    sender.registers.r9().set(MessageTag::new(7, 63, 63).raw());
    world.call(Call::Ipc, receiver, &[(Rsi, 0), (Rdx, sender.id().raw()), (R8, 0)]);
    assert_eq!(MessageTag::from_raw(receiver.registers.r9().get()), MessageTag::EMPTY);
    assert_eq!(sender.continuation(), Continuation::ReturnToUser);
    invariants::check();
}

#[test]
fn only_one_side_drives_an_interrupted_transfer() {
    let world = World::new();
    let sigma0 = world.thread(id(0, 1));
    let receiver = world.spawn(id(5, 1), id(5, 1));
    receiver.utcb.get().expect("active").write(utcb::buffer_register(0), Fpage::COMPLETE.raw());
    let [other, waiting] = [id(6, 1), id(7, 1)].map(|id| world.spawn(id, super::id(2, 1)));
    // The receiver comes from its send phase into a receive phase for which a sender waits: it is
    // ready to look.
    let any = ThreadId::ANY.raw();
    world.call(Call::Ipc, receiver, &[(Rsi, other.id().raw()), (Rdx, any), (R8, 0), (R9, 0)]);
    world.call(Call::Ipc, waiting, &[(Rsi, receiver.id().raw()), (Rdx, 0), (R8, 0), (R9, 0)]);
    world.call(Call::Ipc, other, &[(Rsi, 0), (Rdx, receiver.id().raw()), (R8, 0)]);
    assert_eq!(receiver.continuation(), Continuation::Receive(IpcKind::User));
    assert!(receiver.ready.is_queued());
    let item = MapItem::map(Fpage::memory(0x400_0000, 22).with_rights(Rights::ALL), 0x400_0000);
    for (index, word) in item.to_words(false).into_iter().enumerate() {
        sigma0.registers.message[index + 1].set(word);
    }
    world.machine.interrupts(1, 1);
    world.switch_to(sigma0);
    let tag = MessageTag::new(7, 0, 2).raw();
    let arguments = [(R9, tag), (Rsi, receiver.id().raw()), (Rdx, 0), (R8, 0)];
    let next = world.enter(Call::Ipc, sigma0, &arguments);
    assert!(matches!(next, Next::Interrupted), "the transfer polls for interrupts");
    assert!(matches!(dispatch(next), Outcome::TakeInterrupts));
    invariants::check();
    world.machine.interrupts(0, 1);
    world.proceed();
    invariants::check();
    assert_eq!(sigma0.continuation(), Continuation::ReturnToUser);
    assert_eq!(MessageTag::from_raw(receiver.registers.r9().get()), MessageTag::new(7, 0, 2));
}
