//! Several processors: their kernel entries interleave at random, and cross-processor requests are
//! served late.

use std::vec::Vec;

use x2::ThreadId;
use x2::control::UNCHANGED;

use super::Register::*;
use super::random::{
    Action, NUMBERS, Name, Random, chosen, leave_nothing, map_memory, memory_of, perform, prepare, revive,
    shrink,
};
use super::{KIP_AREA, UTCB_AREA, World, id, invariants};
use crate::arch;
use crate::dispatch::{after_interrupt, receive_requests, timer_interrupt};
use crate::memory::Account;
use crate::scheduler::Next;
use crate::syscall::Call;
use crate::thread::table::threads;
use crate::thread::{Continuation, Found, ipc};
use crate::{interrupt, processor};

/// Rounds after which a machine that is still busy with itself hangs.
const PATIENCE: usize = 20_000;

impl World {
    /// The selected processor takes its interrupts, if it has any.
    pub(super) fn attend(&self) -> bool {
        let asked = arch::take_attention();
        if asked {
            self.run(receive_requests());
        }
        let message = arch::take_message();
        if let Some(message) = message {
            interrupt::message_arrived(message);
            self.run(after_interrupt());
        }
        let line = arch::take_line();
        if let Some(line) = line {
            interrupt::occurred(line);
            self.run(after_interrupt());
        }
        asked || message.is_some() || line.is_some()
    }

    /// All processors serve each other until there are no requests any more, and what is ready goes
    /// on.
    pub(super) fn serve_all(&self) {
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
    pub(super) fn root_calls(&self, call: Call, arguments: &[(super::Register, u64)]) {
        let root = self.root();
        self.serve_all();
        arch::select_processor(u32::from(root.location.processor()));
        assert!(root.is_here());
        self.stop_at_user_level();
        revive(root);
        self.run(Next::Schedule);
        self.serve_all();
        arch::select_processor(u32::from(root.home()));
        assert!(root.is_here(), "the root task is at home, {:?}", root.continuation());
        self.call(call, root, arguments);
        for _ in 0..PATIENCE {
            self.serve_all();
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

/// One thing that happens, on the processor with a number.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Step {
    /// The processor serves its cross-processor requests, if there are any.
    Attend(u32),
    /// The running thread does something.
    Act(u32, Action),
    /// The processor's timer has fired.
    Timer(u32),
    /// The processor looks for a thread to run.
    Schedule(u32),
    /// Time goes by, and the root task makes threads, with this source of chance.
    Populate(u64),
}

impl Step {
    /// `late`: one in how many looks serves the cross-processor requests.
    fn any(random: &mut Random, processors: u32, late: u64) -> Self {
        let processor = random.below(processors.into()) as u32;
        arch::select_processor(processor);
        if random.one_in(late) && arch::attention_is_wanted() {
            Self::Attend(processor)
        } else if processor::this().current.get().is_some() {
            Self::Act(processor, Action::any(random))
        } else if arch::timer() <= arch::clock() {
            Self::Timer(processor)
        } else {
            Self::Schedule(processor)
        }
    }

    fn take(self, world: &World) {
        let (Self::Attend(processor)
        | Self::Act(processor, _)
        | Self::Timer(processor)
        | Self::Schedule(processor)) = self
        else {
            let Self::Populate(seed) = self else { return };
            arch::set_clock(arch::clock() + 1000);
            world.machine.interrupts(0, 1);
            let mut random = Random::new(seed);
            populate(world, &mut random);
            return world.machine.interrupts(random.next(), 3);
        };
        arch::select_processor(processor);
        let current = processor::this().current.get();
        match (self, current) {
            (Self::Attend(_), _) => {
                world.attend();
            }
            // sigma0 would keep the tables that this splits for ever.
            (Self::Act(_, Action::MemoryControl { .. } | Action::MapControl { .. }), Some(thread))
                if memory_of(thread).is_sigma0() => {}
            (Self::Act(_, action), Some(thread)) => {
                world.run(perform(world, thread, action));
            }
            (Self::Timer(_), None) if arch::timer() <= arch::clock() => {
                arch::set_timer(u64::MAX);
                world.run(timer_interrupt());
            }
            (Self::Schedule(_), None) => {
                world.run(Next::Schedule);
            }
            _ => {}
        }
    }
}

/// All threads do one random thing after another; what they do is noted in `program`.
fn steps(seed: u64, count: usize, processors: u32, program: &mut Vec<Step>) {
    let mut idle = 0;
    // On some machines processors look at their request queues so late that much is in them.
    let late = [2, 20, 200][(seed >> 8) as usize % 3];
    run(seed, processors, |random| {
        if program.len() == count {
            return None;
        }
        let step = if idle > 20 * processors {
            // All threads wait.
            Step::Populate(random.next() | 1)
        } else {
            Step::any(random, processors, late)
        };
        idle = if matches!(step, Step::Schedule(_)) { idle + 1 } else { 0 };
        program.push(step);
        Some(step)
    });
}

/// Takes steps until there are none. In the end all threads are deleted, and nothing must be left.
fn run(seed: u64, processors: u32, mut next: impl FnMut(&mut Random) -> Option<Step>) {
    let world = World::with_processors(processors);
    let (used, mut random) = prepare(&world, seed, populate);
    while let Some(step) = next(&mut random) {
        step.take(&world);
        invariants::check();
    }
    world.machine.interrupts(0, 1);
    world.serve_all();
    invariants::check();
    for number in 3..NUMBERS {
        if let Some(thread) = threads().by_number(interrupt::user_base() + number).map(Found::anywhere) {
            let dest = id(number, thread.id().version().max(1));
            world.root_calls(Call::ThreadControl, &[(Rdi, dest.raw()), (R8, 0)]);
            invariants::check();
        }
    }
    let left: Vec<_> = threads().iter().map(|thread| thread.id()).collect();
    assert_eq!(left, [id(0, 1), id(2, 1)], "seed {seed:#x}");
    leave_nothing(&world);
    assert!(Account::KERNEL.used() <= used, "seed {seed:#x}: memory is lost");
}

/// The root task makes threads that do not exist, starts those that were never started, and spreads
/// them.
fn populate(world: &World, random: &mut Random) {
    let root = world.root();
    map_memory(memory_of(world.thread(id(0, 1))), memory_of(root));
    for number in 3..NUMBERS {
        if random.one_in(3) {
            continue;
        }
        world.serve_all();
        let id = match threads().by_number(interrupt::user_base() + number).map(Found::anywhere) {
            Some(thread) if thread.id().is_nil() || thread.is_active() => continue,
            Some(thread) => thread.id(),
            None => id(number, 1),
        };
        let others =
            [Name::of_thread(random), Name::of_thread(random)].map(|name| name.resolve(world.root()));
        let others = [id, super::id(2, 1), others[0], others[1]];
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
        world.serve_all();
        if let Some(thread) = threads().find(id).map(Found::anywhere) {
            arch::select_processor(u32::from(thread.location.processor()));
            world.stop_at_user_level();
            ipc::cancel_receive(thread);
            world.run(Next::Schedule);
        }
    }
    world.serve_all();
}

fn many(seeds: core::ops::Range<u64>, count: usize) {
    for seed in seeds {
        let (processors, seed) = (2 + (seed % 3) as u32, seed * 0x9e37_79b9);
        let mut program = Vec::new();
        let outcome = shrink::caught(|| steps(seed, count, processors, &mut program));
        if let Err(failure) = outcome {
            let program = shrink::shortest(program, &failure, |program| {
                let mut steps = program.iter().copied();
                run(seed, processors, |_| steps.next());
            });
            panic!("seed {seed:#x} on {processors}: {failure}. In short:\n{}", shrink::lines(&program));
        }
    }
}

#[test]
fn several_processors_keep_everything_consistent() {
    let (seeds, steps, _) = chosen(1..30, 1500);
    many(seeds, steps);
}
