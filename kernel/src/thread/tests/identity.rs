//! What an id names while threads come and go on other processors: a call finds a thread that is
//! here, or none, or goes to where it is (X.2 rules 5.15, 5.23).

use x2::control::ExchangeControl;
use x2::{ErrorCode, ThreadId, utcb};

use super::Register::*;
use super::migration::schedule;
use super::{UTCB_AREA, World, error, id, invariants};
use crate::syscall::Call;
use crate::thread::ThreadRef;
use crate::thread::table::threads;
use crate::{arch, interrupt};

/// Threads 4 and 5 of root's space live at processor 1, and the first runs.
fn neighbours(world: &World) -> [ThreadRef; 2] {
    let threads = [4, 5].map(|number| world.spawn(id(number, 1), id(2, 1)));
    for thread in threads {
        schedule(world, world.root(), thread, 1);
        world.serve_all();
        arch::select_processor(0);
    }
    threads
}

/// Rules: 5.15, 5.23a.
#[test]
fn one_whose_end_has_begun_is_not_found_by_its_local_id() {
    let world = World::with_processors(2);
    let [seeker, victim] = neighbours(&world);
    let local = victim.local_id.get();
    let inspect = |seeker| {
        arch::select_processor(1);
        world.call(Call::ExchangeRegisters, seeker, &[(Rax, local), (Rsi, ExchangeControl::DELIVER.raw())]);
        seeker.registers.rax().get()
    };
    assert_eq!(inspect(seeker), victim.id().raw());
    arch::select_processor(0);
    world.call(Call::ThreadControl, world.root(), &[(Rdi, victim.id().raw()), (R8, 0)]);
    // The root task goes to where the thread is, begins its end, and sets out for the other
    // processors.
    arch::select_processor(1);
    world.attend();
    assert!(victim.id().is_nil() && threads().by_number(id(5, 1).number()).is_some());
    assert_eq!(inspect(seeker), 0, "its end has begun");
    assert_eq!(error(seeker), ErrorCode::InvalidThread.raw());
    world.serve_all();
    assert!(threads().by_number(id(5, 1).number()).is_none());
    invariants::check();
}

/// The local id of a pager means something in the space of the caller only: another space gets the
/// global id.
/// Rules: 5.2, 5.19.
#[test]
fn a_pager_is_named_globally_where_its_local_id_means_nothing() {
    let world = World::new();
    let root = world.root();
    let [peer, foreign] = [(4, 2), (5, 5)].map(|(number, space)| world.spawn(id(number, 1), id(space, 1)));
    let (local, global) = (peer.local_id.get(), peer.id().raw());
    let pager = |thread: ThreadRef| thread.utcb.get().expect("it is active").read(utcb::PAGER);
    let exchange = |thread: ThreadRef, pager: u64| {
        let pager = (Rdi, pager);
        let control = ExchangeControl::PAGER.raw();
        world.call(Call::ExchangeRegisters, root, &[(Rax, thread.id().raw()), (Rsi, control), pager]);
        assert_ne!(root.registers.rax().get(), 0, "ExchangeRegisters fails");
    };
    exchange(foreign, local);
    assert_eq!(pager(foreign), global);
    exchange(foreign, global);
    assert_eq!(pager(foreign), global);
    // In the own space both forms mean the same, and the program's is kept.
    for own in [local, global] {
        exchange(peer, own);
        assert_eq!(pager(peer), own);
    }
    // ThreadControl makes it global everywhere. The calls are done by the short form in turn.
    for (number, space) in [(6, 5), (7, 5), (8, 2), (9, 2)] {
        let new = id(number, 1);
        let location = UTCB_AREA + 1024 * u64::from(number);
        let space = (R8, id(space, 1).raw());
        let arguments = [(Rdi, new.raw()), space, (Rdx, root.id().raw()), (Rsi, local), (R9, location)];
        world.call(Call::ThreadControl, root, &arguments);
        assert_eq!(root.registers.rax().get(), 1, "ThreadControl fails: {}", error(root));
        assert_eq!(pager(world.thread(new)), global);
    }
    // The handler of an interrupt, too, may be named locally.
    let line = ThreadId::interrupt(5);
    let arguments =
        [(Rdi, line.raw()), (R8, line.raw()), (Rdx, 0), (Rsi, local), (R9, x2::control::UNCHANGED)];
    world.call(Call::ThreadControl, root, &arguments);
    assert_eq!(root.registers.rax().get(), 1, "ThreadControl fails: {}", error(root));
    let handler = interrupt::find(line).and_then(|line| line.handler());
    assert!(handler.is_some_and(|handler| handler.found_id() == peer.id()));
}
