//! The fast path gives the same answers as the general path: the same sequence of calls is made
//! with and without it.

use std::collections::hash_map::DefaultHasher;
use std::format;
use std::hash::{Hash, Hasher};
use std::vec::Vec;

use x2::extension::SystemCallMode;
use x2::protocol::exception::REPLY_WORDS;
use x2::{MessageTag, Rights, ThreadId, Time, Timeouts, utcb};

use super::Register::*;
use super::random::Random;
use super::{World, error, id, invariants};
use crate::dispatch::timer_interrupt;
use crate::scheduler::Next;
use crate::scheduler::timeouts::NEVER;
use crate::syscall::Call;
use crate::thread::table::threads;
use crate::thread::{Found, ThreadRef, exception, fault, flag, ipc};
use crate::{arch, interrupt, processor};

/// Threads of the test: numbers above UserBase. The first of each space gives it its name.
const THREADS: [(u32, u32); 7] = [(4, 4), (5, 4), (6, 6), (7, 6), (8, 8), (9, 8), (10, 8)];

/// Interrupt lines that the first of these threads handle.
const LINES_WITH_HANDLERS: u32 = 4;

/// Division, invalid opcode, alignment: exceptions that are reported.
const VECTORS: [u64; 3] = [0, 6, 17];

/// What programs can see of all threads, and which one runs, as one number.
fn digest(running: Option<ThreadRef>) -> u64 {
    let mut hasher = DefaultHasher::new();
    running.map(|thread| thread.id().raw()).hash(&mut hasher);
    for thread in threads().all() {
        (thread.id().raw(), thread.has(flag::HALTED), thread.waits_until()).hash(&mut hasher);
        format!("{:?}", thread.continuation()).hash(&mut hasher);
        for register in ipc::exception_registers(&thread.registers) {
            register.get().hash(&mut hasher);
        }
        if let Some(block) = thread.utcb.get() {
            (-48..64).for_each(|word| block.read(word).hash(&mut hasher));
        }
    }
    hasher.finish()
}

/// A world whose threads have different priorities and handlers, while the initial servers sleep.
fn populated() -> World {
    let world = World::new();
    for (number, space) in THREADS {
        let thread = world.spawn(id(number, 1), id(space, 1));
        let this = processor::this();
        this.scheduler.set_priority(thread, 100 + u8::from(number == 10), this.current.get());
        thread.set_exception_handler(id(4, 1));
        thread.set_pager(id(6, 1));
        if let Some(space) = thread.space.get() {
            space.ownership.set_mode(SystemCallMode::Exception);
        }
    }
    for (line, (number, _)) in (0..LINES_WITH_HANDLERS).zip(THREADS) {
        let (line, handler) = (ThreadId::interrupt(line).raw(), id(number, 1).raw());
        let arguments = [(Rdi, line), (R8, line), (Rdx, 0), (Rsi, handler), (R9, u64::MAX)];
        world.call(Call::ThreadControl, world.root(), &arguments);
        assert_eq!(world.root().registers.rax().get(), 1, "ThreadControl fails: {}", error(world.root()));
    }
    for server in [id(0, 1), id(2, 1)] {
        let thread = world.thread(server);
        ipc::leave_all(thread);
        world.call(Call::Ipc, thread, &[(Rsi, 0), (Rdx, server.raw()), (R8, 0)]);
    }
    world
}

fn some_thread(random: &mut Random) -> ThreadId {
    let (number, _) = random.of(&THREADS);
    let thread = threads().find(id(number, 1)).map(Found::anywhere);
    match thread {
        Some(thread) if random.one_in(4) => ThreadId::from_raw(thread.local_id.get()),
        _ => id(number, 1),
    }
}

fn ipc_call(world: &World, random: &mut Random, thread: ThreadRef) -> Next {
    // Threads with even numbers are servers, which answer the last caller; those with odd numbers
    // call them. Mostly.
    let server = thread.id().number().is_multiple_of(2);
    let to = match random.below(8) {
        0..=4 if server => ThreadId::from_raw(thread.registers.rsi.get()),
        5 => ThreadId::NIL,
        _ => some_thread(random),
    };
    let from = match random.below(12) {
        0..=9 if server => ThreadId::ANY,
        0..=9 => to,
        10 => ThreadId::ANY_LOCAL,
        _ => some_thread(random),
    };
    let never = Timeouts::NEVER;
    let timeouts = random.of(&[never, never, Timeouts::ZERO, Timeouts::new(Time::ZERO, Time::NEVER)]);
    let span = Time::period(1 + random.below(200));
    let timeouts = match random.below(10) {
        0 => Timeouts::new(Time::NEVER, span),
        1 => Timeouts::new(span, Time::NEVER),
        2 => Timeouts::new(span, span),
        _ => timeouts,
    };
    // Exceptions are answered by long messages.
    let words =
        if random.one_in(3) { REPLY_WORDS - 1 + random.below(4) as usize } else { random.below(13) as usize };
    let tag = MessageTag::new(random.of(&[0, 0, 1, 7]), words, 0);
    let tag = tag.with_propagated(random.one_in(12)).with_error(random.one_in(20));
    if let Some(block) = thread.utcb.get() {
        block.write(utcb::VIRTUAL_SENDER, some_thread(random).raw());
        block.write(utcb::buffer_register(0), random.below(2) * x2::extension::ACCEPT_NOTIFICATION);
        (8..64).for_each(|index| block.write(utcb::message_register(index), random.next()));
    }
    for register in &thread.registers.message[1..] {
        register.set(random.next());
    }
    // Mostly this is an instruction pointer.
    thread.registers.rax().set(random.next() >> random.of(&[17, 17, 17, 16]));
    let arguments = [(R9, tag.raw()), (Rsi, to.raw()), (Rdx, from.raw()), (R8, timeouts.raw())];
    world.enter(Call::Ipc, thread, &arguments)
}

fn act(world: &World, random: &mut Random, thread: ThreadRef) -> Next {
    match random.below(17) {
        0..=9 => ipc_call(world, random, thread),
        10 | 11 => {
            thread.registers.rip.set(0x1000);
            thread.entered_by_syscall.set(true);
            crate::syscall::entered(thread, 0x1000)
        }
        12 => {
            thread.return_with_all_registers();
            fault::page_fault(thread, random.next(), random.of(&[Rights::READ, Rights::WRITE]))
        }
        13 => {
            thread.return_with_all_registers();
            exception::raised(thread, random.of(&VECTORS), random.below(4))
        }
        14 => {
            // The call resumes the thread in half of all cases.
            let control = random.next() & 0x3f | random.below(2) << 8;
            let arguments =
                [(Rax, some_thread(random).raw()), (Rsi, control), (R8, random.of(&[0x2000, 1 << 60]))];
            world.enter(Call::ExchangeRegisters, thread, &arguments)
        }
        15 => {
            world.enter(Call::Notify, thread, &[(Rdi, some_thread(random).raw()), (Rsi, 1 + random.below(9))])
        }
        _ => {
            arch::set_clock(arch::clock() + random.below(100));
            interrupt::occurred(random.below(LINES_WITH_HANDLERS.into()) as u32);
            timer_interrupt()
        }
    }
}

/// Makes random calls, with or without the fast path. Returns what could be seen after each, and
/// how many of them took the fast path.
fn steps(seed: u64, count: usize, fast_path: bool) -> (Vec<u64>, usize) {
    let world = populated();
    processor::allow_fast_path(fast_path);
    let mut random = Random::new(seed);
    let (mut seen, mut fast) = (Vec::new(), 0);
    let mut running = world.proceed();
    for _ in 0..count {
        let next = match running {
            Some(thread) => act(&world, &mut random, thread),
            None => {
                for (number, _) in THREADS {
                    let thread = world.thread(id(number, 1));
                    ipc::leave_all(thread);
                    thread.set_flag(flag::HALTED, false);
                    processor::this().scheduler.make_ready(thread);
                }
                Next::Schedule
            }
        };
        fast += usize::from(matches!(next, Next::Switched(_)));
        running = world.run(next);
        invariants::check();
        seen.push(digest(running));
    }
    (seen, fast)
}

/// A wait ends when its timeout says, whichever path began it and has seen its offer.
/// Rules: 1.11a.
#[test]
fn a_wait_that_others_see_ends_in_time() {
    const LENGTH: u64 = 100;
    for fast_path in [true, false] {
        let world = populated();
        processor::allow_fast_path(fast_path);
        let [client, server] = [id(5, 1), id(6, 1)].map(|id| world.thread(id));
        let this = processor::this();
        this.scheduler.set_priority(server, 150, this.current.get());
        world.call(Call::Ipc, server, &[(Rsi, 0), (Rdx, ThreadId::ANY.raw()), (R8, Timeouts::NEVER.raw())]);
        let timeouts = Timeouts::new(Time::NEVER, Time::period(LENGTH)).raw();
        let start = arch::clock();
        for to in [server.id(), ThreadId::NIL] {
            // First the client's call, which the server does not answer; then a wait for the answer
            // alone.
            world.switch_to(client);
            let arguments = [(R9, 0), (Rsi, to.raw()), (Rdx, server.id().raw()), (R8, timeouts)];
            let began = arch::clock();
            let next = world.enter(Call::Ipc, client, &arguments);
            assert_eq!(matches!(next, Next::Switched(_)), fast_path && !to.is_nil());
            world.run(next);
            for (after, waits) in [(LENGTH - 1, true), (LENGTH, false)] {
                arch::set_clock(began + after);
                world.run(timer_interrupt());
                invariants::check();
                assert_eq!(client.waits_until() != NEVER, waits, "{after} of {LENGTH} later");
            }
            let tag = MessageTag::from_raw(client.registers.message[0].get());
            assert!(tag.is_error() && error(client) == 3, "it is told that the receive timed out");
        }
        assert_eq!(arch::clock(), start + 2 * LENGTH);
    }
}

/// Rules: ABI 19.10.
#[test]
fn the_fast_path_cannot_be_told_from_the_general_path() {
    let mut taken = 0;
    for seed in 1..30 {
        let [(fast, count), (general, none)] =
            [true, false].map(|fast_path| steps(seed * 0x9e37_79b9, 1000, fast_path));
        let step = fast.iter().zip(&general).position(|(fast, general)| fast != general);
        assert_eq!(step, None, "seed {seed}: the first step with another result");
        assert_eq!(none, 0);
        taken += count;
    }
    assert!(taken > 400, "only {taken} calls took the fast path");
}
