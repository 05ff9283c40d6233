//! Threads of several spaces do random things while interrupts come at random.

use x2::{Fpage, MapItem, MessageTag, Rights, ThreadId, Time, Timeouts, utcb};

use super::Register::*;
use super::{KIP_AREA, LINES, UTCB_AREA, World, id, invariants};
use crate::arch;
use crate::dispatch::timer_interrupt;
use crate::mapping::SpaceMemory;
use crate::memory::{Account, VirtAddr};
use crate::scheduler::Next;
use crate::syscall::Call;
use crate::thread::table::threads;
use crate::thread::{ThreadRef, exception, fault, flag, ipc};
use crate::{interrupt, mapping, processor};

/// Thread numbers above UserBase that random calls use.
pub(super) const NUMBERS: u64 = 14;

/// A generator that repeats.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(super) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    pub(super) fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// An id that may name a thread: most do, in either form.
    pub(super) fn thread_id(&mut self) -> ThreadId {
        let number = self.below(NUMBERS) as u32;
        let thread = threads().by_number(interrupt::user_base() + number);
        match thread {
            Some(thread) if self.one_in(4) => ThreadId::from_raw(thread.local_id.get()),
            Some(thread) if !self.one_in(8) => thread.id(),
            _ => id(number, 1 + self.below(3) as u32),
        }
    }

    fn time(&mut self) -> Time {
        match self.below(4) {
            0 => Time::ZERO,
            1 => Time::period(1 + self.below(2000)),
            2 => Time::point(arch::clock(), arch::clock() + self.below(500)).unwrap_or(Time::ZERO),
            _ => Time::NEVER,
        }
    }
}

fn ipc_call(world: &World, random: &mut Random, thread: ThreadRef) -> Next {
    let line = ThreadId::interrupt(random.below(u64::from(LINES)) as u32);
    let any = random.of(&[ThreadId::ANY, ThreadId::ANY_LOCAL, ThreadId::NIL, thread.id(), line]);
    let to = if random.one_in(3) { ThreadId::NIL } else { random.thread_id() };
    let to = if random.one_in(12) { any } else { to };
    let from = if random.one_in(2) { any } else { random.thread_id() };
    let from = if random.one_in(3) { to } else { from };
    let timeouts =
        if random.one_in(3) { Timeouts::NEVER } else { Timeouts::new(random.time(), random.time()) };
    let typed = random.of(&[0, 0, 2, 2, 2, 4, 3, 63]);
    let untyped = random.below(12) as usize;
    let tag = MessageTag::new(random.next(), untyped, typed).with_propagated(random.one_in(4));
    if let Some(block) = thread.utcb.get() {
        block.write(utcb::VIRTUAL_SENDER, random.thread_id().raw());
        let window =
            random.of(&[Fpage::COMPLETE, Fpage::COMPLETE, Fpage::NIL, Fpage::memory(0x4000_0000, 22)]);
        block.write(utcb::buffer_register(0), window.raw() | random.below(2));
        for index in 1..64 {
            let fpage = Fpage::memory(random.below(1 << 11) << 12 | 0x200_0000, random.of(&[12, 14, 21, 22]));
            let item = MapItem {
                fpage: fpage.with_rights(Rights::ALL),
                send_base: fpage.raw(),
                grant: random.one_in(5),
            };
            let [first, second] = item.to_words(random.one_in(2));
            let words = if index % 2 == (untyped + 1) % 2 { first } else { second };
            // Other types and rights; addresses stay in the first GiB (sigma0's trees stay for ever).
            let word = if random.one_in(20) { words ^ random.below(16) } else { words };
            match thread.registers.message.get(index) {
                Some(register) => register.set(word),
                None => block.write(utcb::message_register(index), word),
            }
        }
    }
    let arguments = [(R9, tag.raw()), (Rsi, to.raw()), (Rdx, from.raw()), (R8, timeouts.raw())];
    world.enter(random.of(&[Call::Ipc, Call::Ipc]), thread, &arguments)
}

fn thread_control(world: &World, random: &mut Random, thread: ThreadRef) -> Next {
    let fresh = id(3 + random.below(NUMBERS - 3) as u32, 1 + random.below(3) as u32);
    let irq = ThreadId::interrupt(random.below(u64::from(LINES)) as u32);
    let dest = if random.one_in(10) { irq } else { fresh };
    let space = match random.below(6) {
        0 => ThreadId::NIL,
        1 | 2 => dest,
        3 => id(2, 1),
        _ => random.thread_id(),
    };
    let scheduler = if random.one_in(3) { random.thread_id() } else { id(2, 1) };
    let pager = match random.below(4) {
        0 => ThreadId::NIL,
        1 => dest,
        _ => random.thread_id(),
    };
    let location = UTCB_AREA + 1024 * random.below(NUMBERS);
    let location = if random.one_in(3) { u64::MAX } else { location };
    let arguments =
        [(Rdi, dest.raw()), (R8, space.raw()), (Rdx, scheduler.raw()), (Rsi, pager.raw()), (R9, location)];
    world.enter(Call::ThreadControl, thread, &arguments)
}

fn space_control(world: &World, random: &mut Random, thread: ThreadRef) -> Next {
    let kip =
        random.of(&[KIP_AREA | 12 << 4, KIP_AREA | 12 << 4, 0, 0x4000_0000 | 12 << 4, UTCB_AREA | 12 << 4]);
    let utcbs = random.of(&[UTCB_AREA | 18 << 4, UTCB_AREA | 18 << 4, 0, 0x4010_0000 | 16 << 4, 0x10]);
    let arguments = [(Rdi, random.thread_id().raw()), (Rsi, random.next()), (Rdx, kip), (R8, utcbs)];
    let redirector = random.thread_id().raw();
    R9.of(thread).set(random.of(&[0, 0, u64::MAX, u64::MAX, redirector, 0x3a_0000_0001]));
    world.enter(Call::SpaceControl, thread, &arguments)
}

/// The current thread does something; what the kernel decides.
pub(super) fn act(world: &World, random: &mut Random, thread: ThreadRef) -> Next {
    match random.below(24) {
        0..=8 => ipc_call(world, random, thread),
        9 | 10 => {
            let control = random.next() & 0x3ff;
            let dest = random.thread_id();
            // The root task has to stay alive.
            let control = if dest == id(2, 1) { control & !1 } else { control };
            let arguments =
                [(Rax, dest.raw()), (Rsi, control), (Rdx, 0x1000), (R8, 0x2000), (R9, random.next())];
            Rdi.of(thread).set(random.thread_id().raw());
            R10.of(thread).set(random.next());
            world.enter(Call::ExchangeRegisters, thread, &arguments)
        }
        11 | 12 => thread_control(world, random, thread),
        13 => space_control(world, random, thread),
        14 => {
            let arguments = [
                (Rdi, random.thread_id().raw()),
                (Rdx, random.of(&[u64::MAX, 0x1271 << 16, 5 << 16, 0])),
                (R8, random.of(&[u64::MAX, 0, 1, 2])),
                (Rsi, random.of(&[u64::MAX, 0, 100, 101, 255])),
                (R9, random.of(&[u64::MAX, 0, 0x64_0010])),
            ];
            world.enter(Call::Schedule, thread, &arguments)
        }
        15 => world.enter(Call::ThreadSwitch, thread, &[(Rdi, random.thread_id().raw())]),
        16 => {
            let control = random.of(&[0, 1, 0x40, 0x41, 10]);
            for register in &thread.registers.message {
                register.set(
                    Fpage::memory(random.below(1 << 12) << 12, random.of(&[12, 12, 12, 14, 16, 21, 22, 64]))
                        .raw()
                        | 7,
                );
            }
            world.enter(Call::Unmap, thread, &[(Rdx, control)])
        }
        17 => {
            thread.return_with_all_registers();
            fault::page_fault(thread, random.below(1 << 18) << 12, random.of(&[Rights::READ, Rights::WRITE]))
        }
        18 => {
            if let Some(block) = thread.utcb.get() {
                block.write(utcb::EXCEPTION_HANDLER, random.thread_id().raw());
            }
            thread.return_with_all_registers();
            exception::raised(thread, random.below(20), 0)
        }
        19 => world.enter(Call::Notify, thread, &[(Rdi, random.thread_id().raw()), (Rsi, random.next())]),
        20 => {
            let arguments = [(Rsi, random.below(8)), (Rdx, random.thread_id().raw()), (R8, random.next())];
            Rdi.of(thread).set(random.thread_id().raw());
            world.enter(random.of(&[Call::SpaceOptions, Call::ThreadState]), thread, &arguments)
        }
        21 => {
            thread.entered_by_syscall.set(true);
            crate::syscall::entered(thread, random.next())
        }
        _ => {
            let now = arch::clock() + random.below(300);
            arch::set_clock(now);
            if random.one_in(2) {
                interrupt::occurred(random.below(u64::from(LINES)) as u32);
                crate::dispatch::after_interrupt()
            } else {
                timer_interrupt()
            }
        }
    }
}

/// Whatever the root task is in ends, and it is ready to go on.
pub(super) fn revive(root: ThreadRef) {
    ipc::leave_all(root);
    root.set_flag(flag::HALTED, false);
    // It may have given itself to another space.
    root.space.get().inspect(|space| assert!(space.set_owner(None)));
    if !processor::this().is_current(root) {
        processor::this().scheduler.make_ready(root);
    }
}

/// The root task makes threads that do not exist, some in spaces of their own, and starts those that were never started.
fn populate(world: &World, random: &mut Random) {
    let root = world.root();
    map_memory(memory_of(world.thread(id(0, 1))), memory_of(root));
    for number in 3..NUMBERS as u32 {
        if random.one_in(3) {
            continue;
        }
        revive(root);
        let id = match threads().by_number(interrupt::user_base() + number) {
            Some(thread) if thread.id().is_nil() || thread.is_active() => continue,
            Some(thread) => thread.id(),
            None => id(number, 1),
        };
        let others = [id, super::id(2, 1), random.thread_id(), random.thread_id()];
        let space = if threads().find(id).is_some() { id } else { random.of(&others) };
        let control = |pager: ThreadId, location: u64| {
            let [space, pager] = [space, pager].map(ThreadId::raw);
            let arguments =
                [(Rdi, id.raw()), (R8, space), (Rdx, root.id().raw()), (Rsi, pager), (R9, location)];
            world.call(Call::ThreadControl, root, &arguments);
        };
        if space == id {
            control(ThreadId::NIL, u64::MAX);
            let areas = [(Rdx, KIP_AREA | 12 << 4), (R8, UTCB_AREA | 18 << 4), (R9, 0)];
            world.call(Call::SpaceControl, root, &[(Rdi, id.raw()), areas[0], areas[1], areas[2]]);
        }
        control(root.id(), UTCB_AREA + 1024 * u64::from(number));
        if let Some(thread) = threads().find(id) {
            ipc::cancel_receive(thread);
            if random.one_in(2) {
                map_memory(memory_of(root), memory_of(thread));
            }
        }
    }
}

/// Everybody waits: time passes, or, if nobody waits for time, the root task is woken and sees to the others.
fn wake(world: &World, random: &mut Random) -> Next {
    let timer = arch::timer();
    let root = world.root();
    if timer != u64::MAX {
        arch::set_clock(timer.max(arch::clock()));
        // It fires once.
        arch::set_timer(u64::MAX);
        return timer_interrupt();
    }
    revive(root);
    world.machine.interrupts(0, 1);
    populate(world, random);
    world.machine.interrupts(random.next(), 3);
    processor::this().current.get().map_or(Next::Schedule, |_| Next::Return)
}

/// Maps the memory that random map items are about.
pub(super) fn map_memory(from: SpaceMemory, to: SpaceMemory) {
    let mut cursor = core::pin::pin!(mapping::Cursor::new());
    let item = MapItem::map(Fpage::memory(0x200_0000, 23).with_rights(Rights::ALL), 0x200_0000);
    let mapped = mapping::map(cursor.as_mut(), from, to, item, Fpage::COMPLETE);
    assert!(matches!(mapped, mapping::Progress::Done(Ok(_))));
}

pub(super) fn memory_of(thread: ThreadRef) -> SpaceMemory {
    thread.space.get().expect("it lives").memory
}

pub(super) fn flush_all(memory: SpaceMemory) {
    let mut cursor = core::pin::pin!(mapping::Cursor::new());
    let everything = Fpage::COMPLETE.with_rights(Rights::ALL);
    assert!(mapping::unmap(cursor.as_mut(), memory, everything, true) != mapping::Progress::Preempted);
}

/// Makes everything that random calls act on, the threads by `populate`. Returns the kernel memory that is in use when all of that is gone again, and
/// the source of chance.
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
    let mut random = Random(seed);
    populate(world, &mut random);
    world.machine.interrupts(seed, 3);
    (used, random)
}

/// Lets threads do `count` random things. Returns how many nodes the mapping database had at most.
fn steps(seed: u64, count: usize) -> u32 {
    let world = World::new();
    let (used, mut random) = prepare(&world, seed, populate);
    let mut running = world.proceed();
    let mut nodes = 0;
    for _ in 0..count {
        nodes = nodes.max(mapping::usage().0);
        let next = match running {
            Some(thread) => act(&world, &mut random, thread),
            None => wake(&world, &mut random),
        };
        running = world.run(next);
        invariants::check();
    }
    world.machine.interrupts(0, 1);
    // What everybody has begun ends; then all but the first threads are deleted and nothing is left of them.
    for number in 3..NUMBERS as u32 {
        if let Some(thread) = threads().by_number(interrupt::user_base() + number) {
            let root = world.root();
            revive(root);
            let dest = id(number, thread.id().version().max(1));
            world.call(Call::ThreadControl, root, &[(Rdi, dest.raw()), (R8, 0)]);
            invariants::check();
        }
    }
    let left: std::vec::Vec<_> = threads().iter().map(|thread| thread.id()).collect();
    assert_eq!(left, [id(0, 1), id(2, 1)]);
    let root = world.root();
    for thread in [world.thread(id(0, 1)), root] {
        flush_all(memory_of(thread));
    }
    assert!(
        Account::KERNEL.used() <= used,
        "seed {seed:#x}: {} bytes are lost",
        Account::KERNEL.used() - used
    );
    nodes
}

/// Lets the world do `count` things from each of the seeds.
fn many(seeds: core::ops::Range<u64>, count: usize) {
    let nodes = seeds.map(|seed| steps(seed * 0x9e37_79b9, count)).max();
    assert!(nodes.is_some_and(|nodes| nodes > 512), "large pages are split");
}

#[test]
fn random_system_calls_keep_everything_consistent() {
    many(1..40, 1500);
}

#[test]
#[ignore = "takes minutes: for changes of the kernel's structures"]
fn many_random_system_calls_keep_everything_consistent() {
    // RANDOM_SEEDS=FIRST..END chooses others, of which each makes 3000 calls.
    let chosen = std::env::var("RANDOM_SEEDS").unwrap_or_else(|_| "1000..4000".into());
    let seeds = chosen.split_once("..").map(|(first, end)| [first, end].map(str::parse));
    let Some([Ok(first), Ok(end)]) = seeds else { panic!("RANDOM_SEEDS={chosen} is no FIRST..END") };
    many(first..end, 3000);
    std::println!("{} calls from seeds {chosen}", (end - first) * 3000);
}
