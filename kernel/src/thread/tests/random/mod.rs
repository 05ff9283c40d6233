//! Threads of several spaces do random things while interrupts come at random.
//!
//! A seed makes a [`Program`]: every system call and what else can happen, as data. While it runs,
//! the kernel's structures are checked, and its answers against a model. One that fails is
//! shortened and printed, to become a test of its own.
//!
//! | file | what |
//! |---|---|
//! | `action` | what a thread does, as data |
//! | `perform` | doing it |
//! | `model`, `answers`, `messages`, `facts` | what the kernel may answer |
//! | `shrink` | shorter programs that fail too |

mod action;
mod answers;
mod facts;
mod messages;
mod model;
mod perform;
pub(super) mod shrink;

use std::cell::Cell;
use std::vec::Vec;

use x2::{Fpage, MapItem, Rights, ThreadId};

use super::Register::*;
use super::{KIP_AREA, UTCB_AREA, World, id, invariants};
pub(super) use action::{Action, NUMBERS, Name};
use model::Model;
pub(super) use perform::perform;

use crate::arch;
use crate::dispatch::timer_interrupt;
use crate::mapping::SpaceMemory;
use crate::memory::{Account, OutOfMemory, VirtAddr};
use crate::scheduler::Next;
use crate::syscall::Call;
use crate::thread::table::threads;
use crate::thread::{Found, ThreadRef, flag, ipc};
use crate::{interrupt, mapping, processor};

/// A generator that repeats.
pub(super) struct Random(Cell<u64>);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(Cell::new(seed))
    }

    pub(super) fn next(&self) -> u64 {
        let mut value = self.0.get();
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
        self.0.set(value);
        value >> 11
    }

    pub(super) fn below(&self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(super) fn one_in(&self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub(super) fn of<T: Copy>(&self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// What the threads of a world do, one after the other: the thread that is running does the next
/// thing.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Program {
    /// Whether the fast path may be taken.
    pub fast: bool,
    /// When long operations find interrupts pending.
    pub interrupts: u64,
    pub actions: Vec<Action>,
}

/// Where the actions of a run come from.
enum Source<'a> {
    /// Actions are chosen at random, and noted.
    Random(Random, &'a mut Program),
    Given(core::slice::Iter<'a, Action>),
}

impl Source<'_> {
    fn next(&mut self, running: bool) -> Option<Action> {
        let (random, program) = match self {
            Self::Given(actions) => return actions.next().copied(),
            Self::Random(random, program) => (random, program),
        };
        let action = if running {
            Action::any(random)
        } else if arch::timer() != u64::MAX {
            Action::Wait
        } else {
            spawn(random)
        };
        program.actions.push(action);
        Some(action)
    }
}

fn spawn(random: &mut Random) -> Action {
    let number = 3 + random.below(u64::from(NUMBERS) - 3) as u32;
    let space = random.of(&[
        Name::Version(number, 1),
        Name::Version(number, 1),
        Name::Version(2, 1),
        Name::of_thread(random),
    ]);
    Action::Spawn { number, space, memory: random.one_in(2) }
}

/// How often everything is checked.
const EVERY_STEP: usize = 1;

/// The result of a run.
#[derive(Default, PartialEq, Debug)]
struct Summary {
    /// The most nodes of the mapping database.
    nodes: u32,
    /// Answers that were compared, by system call: good ones and errors.
    compared: [[u64; 2]; model::CALLS],
}

/// How many threads the root task makes before anything else.
const POPULATION: usize = 8;

/// Lets threads do `count` things from `source`. The kernel's structures are checked after every
/// `check_every`th, the answers always. In the end all threads are deleted, and nothing must be
/// left.
fn run(fast: bool, interrupts: u64, source: &mut Source, count: usize, check_every: usize) -> Summary {
    let world = World::new();
    let (used, _) = prepare(&world, interrupts, |_, _| {});
    processor::allow_fast_path(fast);
    let mut model = Model::new();
    let mut summary = Summary::default();
    let mut running = world.proceed();
    for step in 0..count {
        summary.nodes = summary.nodes.max(mapping::usage().0);
        let populating = step < POPULATION;
        let Some(action) = source.next(running.is_some() && !populating) else { break };
        let next = match (action, running) {
            (Action::Spawn { number, space, memory }, _) => {
                world.machine.interrupts(0, 1);
                spawn_thread(&world, number, space, memory);
                world.machine.interrupts(interrupts.wrapping_add(step as u64) | 1, 3);
                model.start_over();
                processor::this().current.get().map_or(Next::Schedule, |_| Next::Return)
            }
            (Action::Wait, None) if arch::timer() != u64::MAX => {
                arch::set_clock(arch::timer().max(arch::clock()));
                // The timer fires once.
                arch::set_timer(u64::MAX);
                timer_interrupt()
            }
            // sigma0 would keep the tables that this splits for ever.
            (Action::MemoryControl { .. }, Some(thread)) if memory_of(thread).is_sigma0() => Next::Return,
            (_, Some(thread)) => model.perform(&world, thread, action),
            // There is no thread to do the action.
            (_, None) => continue,
        };
        running = world.run(next);
        model.observe();
        if step % check_every == 0 {
            invariants::check();
        }
    }
    world.machine.interrupts(0, 1);
    end_all(&world, used);
    summary.compared = model.compared;
    summary
}

/// Ends what all threads have begun; then deletes all but the first threads, of which nothing may
/// be left.
fn end_all(world: &World, used: u64) {
    for number in 3..NUMBERS {
        if let Some(thread) = threads().by_number(interrupt::user_base() + number).map(Found::anywhere) {
            let root = world.root();
            revive(root);
            let dest = id(number, thread.id().version().max(1));
            world.call(Call::ThreadControl, root, &[(Rdi, dest.raw()), (R8, 0)]);
            invariants::check();
        }
    }
    let left: Vec<_> = threads().iter().map(|thread| thread.id()).collect();
    assert_eq!(left, [id(0, 1), id(2, 1)]);
    leave_nothing(world);
    let now = Account::KERNEL.used();
    assert!(now <= used, "{} bytes are lost", now - used);
}

/// Ends whatever the root task is in, and makes it ready to go on.
pub(super) fn revive(root: ThreadRef) {
    ipc::leave_all(root);
    root.set_flag(flag::HALTED, false);
    // The root task may have given its space to another space.
    root.space.get().inspect(|space| assert_eq!(space.set_owner(None), Ok(())));
    if !processor::this().is_current(root) {
        processor::this().scheduler.make_ready(root);
    }
}

/// The root task, which is made to be ready, makes thread `number` if there is none, in a space of
/// its own or that of `space`, or starts it if it was never started, and gives it `memory`.
fn spawn_thread(world: &World, number: u32, space: Name, memory: bool) {
    let root = world.root();
    revive(root);
    map_memory(memory_of(world.thread(id(0, 1))), memory_of(root));
    let id = match threads().by_number(interrupt::user_base() + number).map(Found::anywhere) {
        Some(thread) if thread.id().is_nil() || thread.is_active() => return,
        Some(thread) => thread.id(),
        None => id(number, 1),
    };
    let space = if threads().find(id).is_some() { id } else { space.resolve(root) };
    let control = |pager: ThreadId, location: u64| {
        let [space, pager] = [space, pager].map(ThreadId::raw);
        let arguments = [(Rdi, id.raw()), (R8, space), (Rdx, root.id().raw()), (Rsi, pager), (R9, location)];
        world.call(Call::ThreadControl, root, &arguments);
    };
    if space == id {
        control(ThreadId::NIL, u64::MAX);
        let areas = [(Rdx, KIP_AREA | 12 << 4), (R8, UTCB_AREA | 18 << 4), (R9, 0)];
        world.call(Call::SpaceControl, root, &[(Rdi, id.raw()), areas[0], areas[1], areas[2]]);
    }
    control(root.id(), UTCB_AREA + 1024 * u64::from(number));
    if let Some(thread) = threads().find(id).map(Found::anywhere) {
        ipc::cancel_receive(thread);
        if memory {
            map_memory(memory_of(root), memory_of(thread));
        }
    }
}

/// Maps the memory that random map items are about.
pub(super) fn map_memory(from: SpaceMemory, to: SpaceMemory) {
    let mut cursor = core::pin::pin!(mapping::Cursor::new());
    let item = MapItem::map(Fpage::memory(0x200_0000, 23).with_rights(Rights::ALL), 0x200_0000);
    let mapped = mapping::map(cursor.as_mut(), from, to, item, Fpage::COMPLETE);
    assert!(matches!(mapped, mapping::Progress::Done(Ok(_))));
}

/// sigma0 and the root task give back what they have.
pub(super) fn leave_nothing(world: &World) {
    let spaces = [id(0, 1), id(2, 1)].map(|id| world.thread(id).space.get().expect("it lives"));
    for space in spaces {
        flush_all(space.memory);
        spaces.iter().for_each(|other| space.close(other));
    }
    // A table that has become empty may have stayed as a spare table, which an allocation takes
    // when memory is short.
    let _ = mapping::or_from_spare(|| Err::<(), _>(OutOfMemory));
}

pub(super) fn memory_of(thread: ThreadRef) -> SpaceMemory {
    thread.space.get().expect("it lives").memory
}

pub(super) fn flush_all(memory: SpaceMemory) {
    let mut cursor = core::pin::pin!(mapping::Cursor::new());
    let everything = Fpage::COMPLETE.with_rights(Rights::ALL);
    assert!(mapping::unmap(cursor.as_mut(), memory, everything, true) != mapping::Progress::Preempted);
}

/// Makes everything that random calls act on, the threads by `populate`. Returns the kernel memory
/// that is in use when all of that is gone again, and the source of chance.
pub(super) fn prepare(world: &World, seed: u64, populate: impl FnOnce(&World, &mut Random)) -> (u64, Random) {
    processor::allow_fast_path(seed.is_multiple_of(2));
    // sigma0 keeps the tables of what it has touched; it touches the first GiB.
    let sigma0 = world.thread(id(0, 1)).space.get().expect("it lives");
    assert_eq!(mapping::sigma0_fault(sigma0.memory, VirtAddr::new(0)), Ok(true));
    // The first mapping from sigma0 makes a directory of trees that stays.
    let root_memory = memory_of(world.root());
    map_memory(sigma0.memory, root_memory);
    flush_all(root_memory);
    let used = Account::KERNEL.used();
    let mut random = Random::new(seed);
    populate(world, &mut random);
    world.machine.interrupts(seed, 3);
    (used, random)
}

/// The seed of a world's interrupts and actions.
const fn mixed(seed: u64) -> u64 {
    seed.wrapping_mul(0x9e37_79b9) | 1
}

/// Lets the world of `seed` do `count` things. The program that this was, and how it went.
fn try_seed(seed: u64, count: usize, check_every: usize) -> (Program, Result<Summary, shrink::Failure>) {
    let seed = mixed(seed);
    let mut program = Program { fast: seed & 2 == 0, interrupts: seed, actions: Vec::new() };
    let (fast, interrupts) = (program.fast, program.interrupts);
    let mut source = Source::Random(Random::new(seed), &mut program);
    let outcome = shrink::caught(|| run(fast, interrupts, &mut source, count, check_every));
    (program, outcome)
}

/// Runs a program.
fn replay(program: &Program) -> Summary {
    let mut source = Source::Given(program.actions.iter());
    run(program.fast, program.interrupts, &mut source, program.actions.len(), EVERY_STEP)
}

/// Lets the world do `count` things from each of the seeds. The first failure ends in a short
/// program that fails in the same way.
fn many(seeds: core::ops::Range<u64>, count: usize, check_every: usize) -> Summary {
    let mut sum = Summary::default();
    for seed in seeds {
        match try_seed(seed, count, check_every) {
            (_, Ok(summary)) => {
                sum.nodes = sum.nodes.max(summary.nodes);
                let places = sum.compared.iter_mut().flatten();
                places.zip(summary.compared.iter().flatten()).for_each(|(sum, count)| *sum += count);
                if seed % 100 == 99 {
                    std::println!("seeds up to {seed}");
                }
            }
            (program, Err(failure)) => {
                std::println!("seed {seed}, {} actions: {failure}", program.actions.len());
                let actions = shrink::shortest(program.actions.clone(), &failure, |actions| {
                    replay(&Program { actions: actions.to_vec(), ..program.clone() });
                });
                let program = Program { actions, ..program };
                panic!("seed {seed}: {failure}. In short:\n\n{}", shrink::as_test(&program));
            }
        }
    }
    sum
}

/// A full campaign tries this number of times as many seeds.
const FULL: u64 = 20;

/// The seeds that a test tries, how much each does, and after how many steps the structures are
/// checked. The usual values, more with `MAC_TEST_ALL`, or what the environment says:
/// `RANDOM_SEEDS=FIRST..END`, `RANDOM_STEPS`, `RANDOM_CHECK`.
pub(super) fn chosen(seeds: core::ops::Range<u64>, steps: usize) -> (core::ops::Range<u64>, usize, usize) {
    let number = |name: &str, usual: usize| {
        std::env::var(name).map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
    };
    let factor = if std::env::var_os("MAC_TEST_ALL").is_some() { FULL } else { 1 };
    let usual = seeds.start..seeds.start + factor * (seeds.end - seeds.start);
    let seeds = std::env::var("RANDOM_SEEDS").map_or(usual, |chosen| {
        let ends = chosen.split_once("..").map(|(first, end)| [first, end].map(str::parse));
        let Some([Ok(first), Ok(end)]) = ends else { panic!("RANDOM_SEEDS={chosen} is no FIRST..END") };
        first..end
    });
    (seeds, number("RANDOM_STEPS", steps), number("RANDOM_CHECK", EVERY_STEP))
}

#[test]
fn random_system_calls_keep_everything_consistent() {
    const USUAL: core::ops::Range<u64> = 1..40;
    let (seeds, steps, every) = chosen(USUAL, 1500);
    let sum = many(seeds.clone(), steps, every);
    std::println!("answers compared, good and errors, by system call: {:?}", sum.compared);
    // A run with few seeds need not do everything.
    if seeds.start <= USUAL.start && seeds.end >= USUAL.end {
        assert!(sum.nodes > 512, "large pages are split");
        for (call, counts) in sum.compared.into_iter().enumerate() {
            assert!(counts[0] > 5, "call {call} succeeds {} times", counts[0]);
        }
    }
}

/// A map operation into what everything is mapped from removed its own source.
#[test]
fn the_space_of_sigma0_gets_no_owner() {
    use action::{Action::*, Name::*};
    let actions = [
        PageFault { address: 45_707_264, write: false },
        Spawn { number: 4, space: Version(2, 1), memory: true },
        SpaceOptions { space: Global(0), option: 1, other: Global(4), value: 0 },
        MapControl {
            space: Global(0),
            target: 39_846_230,
            control: 1 << 63 | 3 << 16 | 0xd,
            source: 34_275_328,
        },
    ];
    replay(&Program { fast: true, interrupts: 1, actions: actions.into() });
}
