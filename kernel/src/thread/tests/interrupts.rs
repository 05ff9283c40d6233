//! Interrupts on their way to their handlers and back, whatever comes when.

use x2::control::UNCHANGED;
use x2::extension::MessageSource;
use x2::protocol::INTERRUPT_TAG;
use x2::{MessageTag, ThreadId, Timeouts, extension, utcb};

use super::Register::*;
use super::random::Random;
use super::{LINES, World, error, id, invariants};
use crate::syscall::Call;
use crate::thread::{Continuation, ThreadRef};
use crate::{arch, interrupt};

/// Message-signalled interrupts of the machine.
const MESSAGES: u32 = 6;

/// The id of a message-signalled interrupt.
fn message(number: u32) -> ThreadId {
    ThreadId::interrupt(LINES + number)
}

impl World {
    /// Root makes `handler` the handler of `interrupt`.
    fn associate(&self, interrupt: ThreadId, handler: ThreadId) {
        let arguments =
            [(Rdi, interrupt.raw()), (R8, interrupt.raw()), (Rdx, 0), (Rsi, handler.raw()), (R9, u64::MAX)];
        self.root_calls(Call::ThreadControl, &arguments);
        let root = self.root();
        assert_eq!(root.registers.rax().get(), 1, "ThreadControl fails: {}", error(root));
        self.retire_servers();
    }

    fn place(&self, thread: ThreadRef, processor: u32) {
        let unchanged = [Rdx, Rsi, R9].map(|register| (register, UNCHANGED));
        let [a, b, c] = unchanged;
        let arguments = [(Rdi, thread.id().raw()), (R8, processor.into()), a, b, c];
        self.root_calls(Call::Schedule, &arguments);
        self.retire_servers();
    }

    /// One of the processors takes its interrupts.
    fn attend_somewhere(&self, random: &Random, processors: u32) {
        arch::select_processor(random.below(u64::from(processors)) as u32);
        self.attend();
    }

    /// The initial servers, which are more urgent than others, wait, so that another ready thread
    /// goes on.
    fn retire_servers(&self) {
        let (sigma0, root) = (self.thread(id(0, 1)), self.root());
        for (server, other) in [(sigma0, root), (root, sigma0)] {
            if server.is_runnable() {
                self.wait_for(server, ThreadId::NIL, other.id());
            }
        }
        self.serve_all();
    }

    /// `thread`, at user level, sends an empty message to `to` (unless nil) and receives from
    /// `from`.
    fn wait_for(&self, thread: ThreadRef, to: ThreadId, from: ThreadId) {
        arch::select_processor(thread.home().into());
        self.switch_to(thread);
        let arguments = [(R9, 0), (Rsi, to.raw()), (Rdx, from.raw()), (R8, Timeouts::NEVER.raw())];
        self.run(self.enter(Call::Ipc, thread, &arguments));
    }
}

/// Whether the handler is at user level, with an interrupt that it has received last.
fn has_received(handler: ThreadRef, interrupt: ThreadId) -> bool {
    let returned = handler.location.is_at(handler.home())
        && handler.continuation() == Continuation::ReturnToUser
        && handler.registers.rsi.get() == interrupt.raw();
    if returned {
        assert_eq!(handler.registers.r9().get(), INTERRUPT_TAG.raw());
    }
    returned
}

/// A message-signalled interrupt has the last numbers, a message, and the processors in turn.
/// Rules: EXT 3.4.
#[test]
fn messages_have_the_last_numbers() {
    let _world = World::with_messages(2, MESSAGES);
    assert_eq!((interrupt::system_base(), interrupt::messages()), (LINES + MESSAGES, MESSAGES));
    for number in 0..MESSAGES {
        let interrupt = interrupt::find_message(u64::from(LINES + number)).expect("a message");
        let [processor, data] = interrupt.tell_message(MessageSource::Unchecked);
        assert_eq!((processor, data), (u64::from(number % 2), u64::from(number)));
    }
    for number in [0, LINES - 1, LINES + MESSAGES, u32::MAX] {
        assert!(interrupt::find_message(number.into()).is_none());
    }
    assert!(interrupt::find_message(1 << 32 | u64::from(LINES)).is_none());
}

/// Between the interrupt's message and its acknowledgement one more is remembered.
/// Rules: EXT 3.5.
#[test]
fn what_comes_before_the_acknowledgement_comes_once_after_it() {
    for (source, home) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let world = World::with_messages(2, MESSAGES);
        let handler = world.spawn(id(5, 1), id(2, 1));
        let interrupt = message(source);
        world.place(handler, home);
        arch::raise_message(source, source);
        world.serve_all();
        world.associate(interrupt, handler.id());
        world.wait_for(handler, ThreadId::NIL, interrupt);
        world.serve_all();
        assert!(!has_received(handler, interrupt), "what came without a handler is lost");
        arch::raise_message(source, source);
        world.serve_all();
        assert!(has_received(handler, interrupt));
        for _ in 0..3 {
            arch::raise_message(source, source);
            world.serve_all();
        }
        handler.registers.rsi.set(0);
        world.wait_for(handler, interrupt, interrupt);
        world.serve_all();
        assert!(has_received(handler, interrupt), "once more");
        world.wait_for(handler, interrupt, interrupt);
        world.serve_all();
        assert!(!has_received(handler, interrupt), "and no more");
    }
}

/// A device, a handler that moves about, and processors that serve cross-processor requests late.
fn random_interrupts(seed: u64, processors: u32) {
    let world = World::with_messages(processors, MESSAGES);
    let random = Random::new(seed);
    let handler = world.spawn(id(5, 1), id(2, 1));
    let number = random.below(u64::from(MESSAGES)) as u32;
    let (interrupt, source) = (message(number), number % processors);
    world.associate(interrupt, handler.id());
    world.wait_for(handler, ThreadId::NIL, interrupt);
    let (mut raised, mut received) = (0, 0);
    let mut told = true;
    for _ in 0..400 {
        match random.below(8) {
            0..=2 => {
                arch::raise_message(number, source);
                raised += 1;
                told = false;
            }
            3 if random.one_in(8) => world.place(handler, random.below(u64::from(processors)) as u32),
            _ => world.attend_somewhere(&random, processors),
        }
        if random.one_in(2) && has_received(handler, interrupt) {
            received += 1;
            told = true;
            handler.registers.rsi.set(0);
            world.wait_for(handler, interrupt, interrupt);
        }
        invariants::check();
    }
    world.serve_all();
    while has_received(handler, interrupt) {
        received += 1;
        told = true;
        handler.registers.rsi.set(0);
        world.wait_for(handler, interrupt, interrupt);
        world.serve_all();
    }
    assert!(told, "seed {seed}: the last of {raised} messages was lost");
    assert!(received <= raised && received > 10, "seed {seed}: {received} of {raised}");
}

/// Rules: EXT 3.5.
#[test]
fn the_last_message_is_never_lost() {
    for seed in 1..40 {
        random_interrupts(seed, 1 + seed as u32 % 3);
    }
}

/// A line of the machine.
const LINE: u32 = 5;

/// The handler's answer to the interrupt goes out, and it waits for the next; the device is
/// content.
fn acknowledge(world: &World, handler: ThreadRef) {
    arch::assert_line(LINE, false);
    handler.registers.rsi.set(0);
    world.wait_for(handler, ThreadId::interrupt(LINE), ThreadId::interrupt(LINE));
}

/// The first interrupt after the handler has moved still comes to its old processor, the next to
/// the new one.
/// Rules: 5.20.
#[test]
fn a_line_follows_its_handler() {
    let world = World::with_messages(3, MESSAGES);
    let handler = world.spawn(id(5, 1), id(2, 1));
    let line = ThreadId::interrupt(LINE);
    world.place(handler, 1);
    world.associate(line, handler.id());
    world.wait_for(handler, ThreadId::NIL, line);
    assert_eq!(arch::line_destination(LINE), Some(1), "it interrupts where its handler lives");
    world.place(handler, 2);
    assert_eq!(arch::line_destination(LINE), Some(1), "it stays while it is open");
    for _ in 0..2 {
        arch::assert_line(LINE, true);
        world.serve_all();
        assert!(has_received(handler, line));
        assert_eq!(arch::line_destination(LINE), None, "it is masked until it is acknowledged");
        acknowledge(&world, handler);
        world.serve_all();
        assert_eq!(arch::line_destination(LINE), Some(2));
    }
}

/// A device that asserts its line until it is served, a handler that moves about, processors that
/// serve cross-processor requests late, and interrupts that the controller had sent before the line
/// moved.
fn random_line_interrupts(seed: u64, processors: u32) {
    let world = World::with_messages(processors, MESSAGES);
    let random = Random::new(seed);
    let handler = world.spawn(id(5, 1), id(2, 1));
    let line = ThreadId::interrupt(LINE);
    world.associate(line, handler.id());
    world.wait_for(handler, ThreadId::NIL, line);
    let (mut asserted, mut received) = (false, 0);
    let mut late = None;
    for _ in 0..400 {
        match random.below(8) {
            0..=1 if !asserted => {
                late = arch::line_destination(LINE);
                arch::assert_line(LINE, true);
                asserted = true;
            }
            2 => late.into_iter().for_each(|processor| arch::raise_line(LINE, processor)),
            3 if random.one_in(3) => world.place(handler, random.below(u64::from(processors)) as u32),
            _ => world.attend_somewhere(&random, processors),
        }
        if random.one_in(2) && has_received(handler, line) {
            received += 1;
            asserted = false;
            acknowledge(&world, handler);
        }
        invariants::check();
    }
    loop {
        world.serve_all();
        if !has_received(handler, line) {
            break;
        }
        asserted = false;
        acknowledge(&world, handler);
    }
    assert!(!asserted, "seed {seed}: the device was not served");
    assert!(arch::line_destination(LINE).is_some(), "seed {seed}: the line stays masked");
    assert!(received > 10, "seed {seed}: {received} interrupts");
}

/// Rules: 5.20.
#[test]
fn a_line_that_moves_is_never_lost() {
    for seed in 1..40 {
        random_line_interrupts(seed, 1 + seed as u32 % 3);
    }
}

/// Interrupts come in the order of their numbers, in whatever order they occurred: those that the
/// receive phase admits, before notifications, and these before senders.
/// Rules: 5.20, EXT 7.2b, EXT 7.2c.
#[test]
fn pending_interrupts_come_by_number_and_before_anything_else() {
    const LINES: [u32; 5] = [3, 4, 5, 7, 9];
    let world = World::with_messages(1, MESSAGES);
    let [handler, sender] = [5, 6].map(|number| world.spawn(id(number, 1), id(2, 1)));
    let lines = LINES.map(ThreadId::interrupt);
    lines.into_iter().for_each(|line| world.associate(line, handler.id()));
    for line in [7, 3, 9, 4, 5] {
        arch::assert_line(line, true);
        world.serve_all();
    }
    world.root_calls(Call::Notify, &[(Rdi, handler.id().raw()), (Rsi, 0b101)]);
    world.retire_servers();
    world.wait_for(sender, handler.id(), ThreadId::NIL);
    let buffer = handler.utcb.get().expect("it is active");
    buffer.write(utcb::buffer_register(0), extension::ACCEPT_NOTIFICATION);
    let receive = |from: ThreadId| {
        handler.registers.rsi.set(u64::MAX);
        world.wait_for(handler, ThreadId::NIL, from);
        world.serve_all();
        assert_eq!(handler.continuation(), Continuation::ReturnToUser);
        handler.registers.rsi.get()
    };
    assert_eq!(receive(lines[3]), lines[3].raw(), "the one that is wanted");
    for line in [0, 1, 2, 4] {
        assert_eq!(receive(ThreadId::ANY), lines[line].raw());
    }
    assert_eq!(receive(ThreadId::ANY), ThreadId::NIL.raw());
    assert_eq!(MessageTag::from_raw(handler.registers.r9().get()).label(), extension::NOTIFICATION_LABEL);
    assert_eq!(handler.registers.rax().get(), 0b101);
    assert_eq!(receive(ThreadId::ANY), sender.local_id.get());
    invariants::check();
}

/// A message to an interrupt opens it only after its message was delivered, and only if it is its
/// handler's.
/// Rules: 5.21.
#[test]
fn only_the_handlers_answer_opens_a_line() {
    let world = World::with_messages(1, MESSAGES);
    let [handler, other] = [5, 6].map(|number| world.spawn(id(number, 1), id(2, 1)));
    let line = ThreadId::interrupt(LINE);
    world.associate(line, handler.id());
    arch::assert_line(LINE, true);
    world.serve_all();
    let answer = |thread: ThreadRef| {
        world.wait_for(thread, line, ThreadId::NIL);
        world.serve_all();
        let is_open = arch::line_destination(LINE).is_some();
        (error(thread), is_open)
    };
    // The numbers are those of IPC errors: the phase, and the kind above it.
    let (timeout, none) = (1 << 1, 2 << 1);
    assert_eq!(answer(handler), (timeout, false), "it has not received the message");
    world.wait_for(handler, ThreadId::NIL, line);
    world.serve_all();
    assert!(has_received(handler, line));
    assert_eq!(answer(other), (none, false));
    arch::assert_line(LINE, false);
    world.wait_for(handler, line, ThreadId::NIL);
    assert_eq!(arch::line_destination(LINE), Some(0));
}
