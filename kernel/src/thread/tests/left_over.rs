//! A thread is deleted in the midst of an Unmap: what is derived from the page goes all the same
//! (X.2 rules 5.15, 8.2; K12).
use core::pin::pin;
use core::ptr::eq;

use x2::{Fpage, MapItem, Rights};

use super::Register::{R8, Rdi, Rdx};
use super::{World, id, invariants};
use crate::dispatch::{Outcome, dispatch};
use crate::mapping::{self, Cursor, Progress, SpaceMemory};
use crate::memory::VirtAddr;
use crate::scheduler::Next;
use crate::syscall::Call;
use crate::thread::ThreadRef;
use crate::thread::table::threads;

const PAGE: u64 = 0x400_0000;
/// How often the page was mapped to and fro.
const DEPTH: u64 = 300;

fn memory(thread: ThreadRef) -> SpaceMemory {
    thread.space.get().expect("a thread has a space").memory
}

fn map(from: SpaceMemory, source: u64, to: SpaceMemory, target: u64) {
    let mut cursor = pin!(Cursor::new());
    let item = MapItem::map(Fpage::memory(source, 12).with_rights(Rights::ALL), target);
    while mapping::map(cursor.as_mut(), from, to, item, Fpage::COMPLETE) == Progress::Preempted {}
}

/// Threads in two spaces that mapped a page to and fro, and the first one is in the midst of an
/// Unmap of it.
fn half_unmapped(world: &World) -> [ThreadRef; 2] {
    let both = [4, 5].map(|number| world.spawn(id(number, 1), id(number, 1)));
    // The thread's space outlives it: with the space, everything would be freed in any case.
    world.spawn(id(7, 1), id(4, 1));
    let spaces = both.map(memory);
    map(memory(world.thread(id(0, 1))), PAGE, spaces[0], PAGE);
    for step in 0..DEPTH {
        let (from, to) = (step as usize % 2, (step as usize + 1) % 2);
        map(spaces[from], PAGE + (step << 12), spaces[to], PAGE + ((step + 1) << 12));
    }
    world.machine.interrupts(1, 1);
    both[0].registers.message[0].set(Fpage::memory(PAGE, 12).with_rights(Rights::ALL).raw());
    world.switch_to(both[0]);
    let next = world.enter(Call::Unmap, both[0], &[(Rdx, 0)]);
    assert!(matches!(next, Next::Interrupted));
    assert!(matches!(dispatch(next), Outcome::TakeInterrupts));
    assert_eq!(pages_of(spaces[1]), DEPTH / 2, "the Unmap has hardly begun");
    both
}

fn pages_of(space: SpaceMemory) -> u64 {
    (0..=DEPTH).filter(|page| space.lookup(VirtAddr::new(PAGE + (page << 12))).is_some()).count() as u64
}

/// Lets `thread` go on until its call has returned; how often it gave way.
fn finish_call(world: &World, thread: ThreadRef) -> u32 {
    let mut turns = 0;
    world.switch_to(thread);
    let mut next = Next::Return;
    loop {
        next = match dispatch(next) {
            Outcome::TakeInterrupts => {
                turns += 1;
                Next::Schedule
            }
            Outcome::Resume(resumed) if eq(resumed, thread) => return turns,
            Outcome::Resume(_) => {
                world.switch_to(thread);
                Next::Return
            }
            Outcome::Idle => unreachable!("the call goes on"),
        };
    }
}

/// Begins a deletion of `victim` by `deleter`, which gives way to an interrupt.
fn begin_deletion(world: &World, deleter: ThreadRef, victim: ThreadRef) {
    world.switch_to(deleter);
    let next = world.enter(Call::ThreadControl, deleter, &[(Rdi, victim.id().raw()), (R8, 0)]);
    assert!(matches!(next, Next::Interrupted), "the deletion gives way");
    assert!(matches!(dispatch(next), Outcome::TakeInterrupts));
}

#[test]
fn k12_the_deleter_of_a_thread_finishes_what_it_was_taking_away() {
    let world = World::new();
    let [unmapping, other] = half_unmapped(&world);
    let root = world.root();
    begin_deletion(&world, root, unmapping);
    assert!(finish_call(&world, root) > 50, "it gives way again and again");
    assert_eq!(root.registers.rax().get(), 1);
    assert!(threads().by_number(id(4, 1).number()).is_none());
    assert_eq!(pages_of(memory(other)), 0, "what was derived from the page is gone");
    world.machine.interrupts(0, 1);
    invariants::check();
}

#[test]
fn k12_the_deleter_of_a_deleter_does_so_too() {
    let world = World::new();
    let [unmapping, other] = half_unmapped(&world);
    world.machine.interrupts(0, 1);
    let deleter = world.spawn(id(6, 1), id(2, 1));
    world.machine.interrupts(1, 1);
    begin_deletion(&world, deleter, unmapping);
    assert_ne!(pages_of(memory(other)), 0);
    let root = world.root();
    begin_deletion(&world, root, deleter);
    finish_call(&world, root);
    assert_eq!(root.registers.rax().get(), 1);
    assert!([4, 6].iter().all(|&number| threads().by_number(id(number, 1).number()).is_none()));
    assert_eq!(pages_of(memory(other)), 0, "what was derived from the page is gone");
    world.machine.interrupts(0, 1);
    invariants::check();
}
