//! Kernel memory that runs out: every allocation of a call fails in turn, and each time the call
//! fails without a trace (K4).

use x2::{ErrorCode, ThreadId};

use super::Register::*;
use super::{KIP_AREA, UTCB_AREA, World, error, id, invariants};
use crate::memory::{Account, injection};
use crate::syscall::Call;
use crate::thread::ThreadRef;
use crate::thread::table::threads;

/// The state that must be the same before and after a call that failed.
fn state() -> (u64, std::vec::Vec<(ThreadId, bool, u64)>) {
    let threads = threads().all().map(|thread| (thread.id(), thread.is_active(), thread.local_id.get()));
    (Account::KERNEL.used(), threads.collect())
}

/// Makes the call of `thread` with its 1st, 2nd.. allocation failing, until it does not need that
/// many. Returns how many failed.
fn fail_each(world: &World, thread: ThreadRef, call: Call, arguments: &[(super::Register, u64)]) -> u64 {
    for nth in 1.. {
        let before = state();
        injection::fail_nth(nth);
        world.call(call, thread, arguments);
        let unused = injection::cancel();
        invariants::check();
        if unused {
            assert_eq!(thread.registers.rax().get(), 1, "error {}", error(thread));
            return nth - 1;
        }
        assert_eq!(thread.registers.rax().get(), 0, "allocation {nth} failed, the call did not");
        assert_eq!(error(thread), ErrorCode::NoMemory.raw());
        assert_eq!(state(), before, "allocation {nth} of {call:?}");
    }
    unreachable!()
}

/// Rules: EXT 9.1, 5.4b.
#[test]
fn calls_that_run_out_of_memory_change_nothing() {
    let world = World::new();
    let root = world.root();
    let (space, member) = (id(5, 1), id(6, 1));
    let root_id = root.id().raw();
    let create = [(Rdi, space.raw()), (R8, space.raw()), (Rdx, root_id), (Rsi, 0), (R9, u64::MAX)];
    assert!(fail_each(&world, root, Call::ThreadControl, &create) >= 3);
    let areas = [(Rdi, space.raw()), (Rsi, 0), (Rdx, KIP_AREA | 12 << 4), (R8, UTCB_AREA | 18 << 4), (R9, 0)];
    assert!(fail_each(&world, root, Call::SpaceControl, &areas) >= 3);
    let activate = [(Rdi, space.raw()), (R8, space.raw()), (Rdx, 0), (Rsi, root_id), (R9, UTCB_AREA)];
    assert!(fail_each(&world, root, Call::ThreadControl, &activate) >= 2);
    let create =
        [(Rdi, member.raw()), (R8, space.raw()), (Rdx, root_id), (Rsi, root_id), (R9, UTCB_AREA + 0x8000)];
    assert!(fail_each(&world, root, Call::ThreadControl, &create) >= 2);
    let move_to_root = [(Rdi, member.raw()), (R8, root_id), (Rdx, 0), (Rsi, 0), (R9, UTCB_AREA + 0x9000)];
    assert!(fail_each(&world, root, Call::ThreadControl, &move_to_root) >= 1);
}

/// Rules: EXT 9.1.
#[test]
fn deletion_needs_no_memory() {
    let world = World::new();
    let used = Account::KERNEL.used();
    world.spawn(id(5, 1), id(5, 1));
    world.spawn(id(6, 1), id(5, 1));
    for number in [5, 6] {
        injection::fail_nth(1);
        world.call(Call::ThreadControl, world.root(), &[(Rdi, id(number, 1).raw()), (R8, 0)]);
        assert!(injection::cancel(), "a deletion allocates");
        assert_eq!(world.root().registers.rax().get(), 1);
    }
    assert_eq!(Account::KERNEL.used(), used);
}

/// Bytes of the objects that a space is.
const OBJECTS: u64 = 256 + 64;

/// The sizes that the book gives ("Results", on memory).
#[test]
fn what_threads_and_spaces_cost() {
    let world = World::new();
    let space = world.spawn(id(5, 1), id(5, 1));
    let used = || space.account.get().used();
    let (thread, utcbs, tables) = (768, 4096, 5 * 4096);
    let objects = size_of::<crate::space::Space>() as u64 + 64;
    assert_eq!(objects, OBJECTS);
    assert_eq!(used(), thread + utcbs + tables + objects);
    for number in 6..14 {
        let before = used();
        world.spawn(id(number, 1), id(5, 1));
        // Four UTCBs share a frame.
        let frame = if number % 4 == 0 { utcbs } else { 0 };
        assert_eq!(used() - before, thread + frame, "thread {number}");
    }
}
