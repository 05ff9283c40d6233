//! Several processors: their kernel entries interleave at random, and attention is paid late.

use x2::ThreadId;
use x2::control::UNCHANGED;

use super::Register::*;
use super::random::{NUMBERS, Random, act, flush_all, map_memory, memory_of, prepare, revive};
use super::{KIP_AREA, UTCB_AREA, World, id, invariants};
use crate::arch;
use crate::dispatch::{receive_mail, timer_interrupt};
use crate::memory::Account;
use crate::scheduler::Next;
use crate::syscall::Call;
use crate::thread::table::threads;
use crate::thread::{Continuation, ipc};
use crate::{interrupt, processor};

/// Rounds after which a machine that is still busy with itself hangs.
const PATIENCE: usize = 20_000;

impl World {
    /// The selected processor takes its interrupt, if it has one.
    fn attend(&self) -> bool {
        let asked = arch::take_attention();
        if asked {
            self.run(receive_mail());
        }
        asked
    }

    /// All processors serve each other until nobody asks any more, and what is ready goes on.
    fn settle(&self) {
        for _ in 0..PATIENCE {
            let mut busy = false;
            for number in 0..arch::cpu_count() {
                arch::select_processor(number);
                busy |= self.attend();
                let this = processor::this();
                if this.current.get().is_none() && this.scheduler.ready.first().is_some() {
                    self.run(Next::Schedule);
                    busy = true;
                }
            }
            if !busy {
                return;
            }
        }
        panic!("the processors keep each other busy for ever");
    }

    /// The root task makes a system call, wherever that takes it.
    fn root_calls(&self, call: Call, arguments: &[(super::Register, u64)]) {
        let root = self.root();
        self.settle();
        arch::select_processor(u32::from(root.location.processor()));
        assert!(root.is_here());
        self.stop_at_user_level();
        revive(root);
        self.run(Next::Schedule);
        self.settle();
        arch::select_processor(u32::from(root.home()));
        assert!(root.is_here(), "the root task is at home, {:?}", root.continuation());
        self.call(call, root, arguments);
        for _ in 0..PATIENCE {
            self.settle();
            if root.location.is_at(root.home()) && root.continuation() == Continuation::ReturnToUser {
                arch::select_processor(u32::from(root.home()));
                return;
            }
        }
        panic!("the root task does not come home");
    }

    fn stop_at_user_level(&self) {
        let this = processor::this();
        if let Some(current) = this.current.take() {
            this.scheduler.make_ready(current);
        }
    }
}

/// Everybody does one random thing after another.
fn steps(seed: u64, count: usize, processors: u32) {
    let world = World::with_processors(processors);
    let (used, mut random) = prepare(&world, seed, populate);
    let mut idle = 0;
    for _ in 0..count {
        arch::select_processor(random.below(u64::from(processors)) as u32);
        if random.one_in(2) && world.attend() {
            idle = 0;
        } else if let Some(thread) = processor::this().current.get() {
            world.run(act(&world, &mut random, thread));
            idle = 0;
        } else if arch::timer() <= arch::clock() {
            arch::set_timer(u64::MAX);
            world.run(timer_interrupt());
        } else {
            world.run(Next::Schedule);
            idle += 1;
        }
        invariants::check();
        if idle > 20 * processors {
            // Everybody waits.
            idle = 0;
            arch::set_clock(arch::clock() + 1000);
            world.machine.interrupts(0, 1);
            populate(&world, &mut random);
            world.machine.interrupts(random.next(), 3);
        }
    }
    world.machine.interrupts(0, 1);
    world.settle();
    invariants::check();
    for number in 3..NUMBERS as u32 {
        if let Some(thread) = threads().by_number(interrupt::user_base() + number) {
            let dest = id(number, thread.id().version().max(1));
            world.root_calls(Call::ThreadControl, &[(Rdi, dest.raw()), (R8, 0)]);
            invariants::check();
        }
    }
    let left: std::vec::Vec<_> = threads().iter().map(|thread| thread.id()).collect();
    assert_eq!(left, [id(0, 1), id(2, 1)], "seed {seed:#x}");
    for thread in [world.thread(id(0, 1)), world.root()] {
        flush_all(memory_of(thread));
    }
    assert!(Account::KERNEL.used() <= used, "seed {seed:#x}: memory is lost");
}

/// The root task makes threads that do not exist, starts those that were never started, and spreads them.
fn populate(world: &World, random: &mut Random) {
    let root = world.root();
    map_memory(memory_of(world.thread(id(0, 1))), memory_of(root));
    for number in 3..NUMBERS as u32 {
        if random.one_in(3) {
            continue;
        }
        world.settle();
        let id = match threads().by_number(interrupt::user_base() + number) {
            Some(thread) if thread.id().is_nil() || thread.is_active() => continue,
            Some(thread) => thread.id(),
            None => id(number, 1),
        };
        let others = [id, super::id(2, 1), random.thread_id(), random.thread_id()];
        let space = if threads().find(id).is_some() { id } else { random.of(&others) };
        let control = |pager: ThreadId, location: u64| {
            let [space, pager] = [space, pager].map(ThreadId::raw);
            let scheduler = world.root().id().raw();
            let arguments = [(Rdi, id.raw()), (R8, space), (Rdx, scheduler), (Rsi, pager), (R9, location)];
            world.root_calls(Call::ThreadControl, &arguments);
        };
        if space == id {
            control(ThreadId::NIL, u64::MAX);
            let areas = [(Rdx, KIP_AREA | 12 << 4), (R8, UTCB_AREA | 18 << 4), (R9, 0)];
            world.root_calls(Call::SpaceControl, &[(Rdi, id.raw()), areas[0], areas[1], areas[2]]);
        }
        control(world.root().id(), UTCB_AREA + 1024 * u64::from(number));
        let processor = random.below(u64::from(arch::cpu_count()));
        let schedule =
            [(Rdi, id.raw()), (Rdx, UNCHANGED), (R8, processor), (Rsi, UNCHANGED), (R9, UNCHANGED)];
        world.root_calls(Call::Schedule, &schedule);
        world.settle();
        if let Some(thread) = threads().find(id) {
            arch::select_processor(u32::from(thread.location.processor()));
            world.stop_at_user_level();
            ipc::cancel_receive(thread);
            world.run(Next::Schedule);
        }
    }
    world.settle();
}

fn many(seeds: core::ops::Range<u64>, count: usize) {
    for seed in seeds {
        steps(seed * 0x9e37_79b9, count, 2 + (seed % 3) as u32);
    }
}

#[test]
fn several_processors_keep_everything_consistent() {
    many(1..30, 1500);
}

#[test]
#[ignore = "takes minutes: for changes of how processors work together"]
fn several_processors_keep_everything_consistent_for_long() {
    many(1000..3000, 4000);
}
