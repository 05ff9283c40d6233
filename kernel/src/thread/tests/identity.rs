//! What an id names while threads come and go on other processors: a call finds a thread that is
//! here, or none, or goes to where it is (X.2 rules 5.15, 5.23).

use x2::ErrorCode;
use x2::control::ExchangeControl;

use super::Register::*;
use super::migration::schedule;
use super::{World, error, id, invariants};
use crate::arch;
use crate::syscall::Call;
use crate::thread::ThreadRef;
use crate::thread::table::threads;

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
