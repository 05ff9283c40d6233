//! What a random thread does, as data: a sequence of actions can be repeated, shortened and printed
//! as a program.

use x2::{Fpage, MessageTag, ThreadId, Time};

use super::Random;
use crate::arch;
use crate::interrupt;
use crate::thread::ThreadRef;
use crate::thread::table::threads;
use crate::thread::tests::{KIP_AREA, LINES, UTCB_AREA, id};

/// Thread numbers above UserBase that random calls use.
pub(in super::super) const NUMBERS: u32 = 14;
/// The root task's number.
pub(super) const ROOT: u32 = 2;

/// A thread as the actor names it, looked up when the action takes place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Name {
    Nil,
    Any,
    AnyLocal,
    /// The actor itself.
    Own,
    Interrupt(u32),
    /// The thread with this number, by its present id (version 1 if there is none).
    Global(u32),
    /// The thread with this number, by its local id.
    Local(u32),
    /// This number and version, whatever thread has the number.
    Version(u32, u32),
}

impl Name {
    /// The id that the name stands for now.
    pub(in super::super) fn resolve(self, actor: ThreadRef) -> ThreadId {
        let thread =
            |number: u32| threads().by_number(interrupt::user_base() + number).filter(|it| !it.id().is_nil());
        match self {
            Self::Nil => ThreadId::NIL,
            Self::Any => ThreadId::ANY,
            Self::AnyLocal => ThreadId::ANY_LOCAL,
            Self::Own => actor.id(),
            Self::Interrupt(line) => ThreadId::interrupt(line),
            Self::Version(number, version) => id(number, version),
            Self::Global(number) => thread(number).map_or(id(number, 1), |thread| thread.id()),
            Self::Local(number) => {
                thread(number).map_or(id(number, 1), |thread| ThreadId::from_raw(thread.local_id()))
            }
        }
    }

    /// An id that may name a thread: most do, in either form.
    pub(in super::super) fn of_thread(random: &Random) -> Self {
        let number = random.below(NUMBERS.into()) as u32;
        match random.below(16) {
            0..=3 => Self::Local(number),
            4 | 5 => Self::Version(number, 1 + random.below(3) as u32),
            _ => Self::Global(number),
        }
    }

    /// The number of the thread that it means, if it means one by its number.
    pub(super) const fn number(self) -> Option<u32> {
        match self {
            Self::Global(number) | Self::Local(number) | Self::Version(number, _) => Some(number),
            _ => None,
        }
    }
}

/// A timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Limit {
    Never,
    Zero,
    /// Microseconds.
    Period(u64),
    /// The instant this number of microseconds from now.
    Point(u64),
}

impl Limit {
    pub(super) fn time(self) -> Time {
        match self {
            Self::Never => Time::NEVER,
            Self::Zero => Time::ZERO,
            Self::Period(length) => Time::period(length),
            Self::Point(distance) => {
                Time::point(arch::clock(), arch::clock() + distance).unwrap_or(Time::ZERO)
            }
        }
    }

    /// Microseconds that must have gone by before it ends a wait; `None`: it ends none.
    pub(super) const fn shortest_wait(self) -> Option<u64> {
        match self {
            Self::Never => None,
            Self::Zero => Some(0),
            Self::Period(length) | Self::Point(length) => Some(length),
        }
    }

    pub(super) const fn is_zero(self) -> bool {
        matches!(self, Self::Zero | Self::Point(0))
    }

    fn any(random: &Random) -> Self {
        match random.below(4) {
            0 => Self::Zero,
            1 => Self::Period(1 + random.below(1000)),
            2 => Self::Point(random.below(500)),
            _ => Self::Never,
        }
    }
}

/// One thing that the running thread does, or that happens to the machine.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in super::super) enum Action {
    /// `words` is the seed of message registers 1 to 63.
    Ipc {
        to: Name,
        from: Name,
        send: Limit,
        receive: Limit,
        tag: u64,
        virtual_sender: Name,
        acceptor: u64,
        words: u64,
    },
    ExchangeRegisters {
        dest: Name,
        control: u64,
        flags: u64,
        handle: u64,
        pager: Name,
    },
    ThreadControl {
        dest: Name,
        space: Name,
        scheduler: Name,
        pager: Name,
        location: u64,
    },
    SpaceControl {
        space: Name,
        control: u64,
        kip: u64,
        utcbs: u64,
        redirector: Name,
    },
    Schedule {
        dest: Name,
        time: u64,
        processor: u64,
        priority: u64,
        preemption: u64,
    },
    ThreadSwitch {
        dest: Name,
    },
    SystemClock,
    /// `pages` is the seed of the fpages.
    Unmap {
        control: u64,
        pages: u64,
    },
    ProcessorControl {
        processor: u64,
    },
    /// `pages` is the seed of the fpages.
    MemoryControl {
        control: u64,
        attributes: [u64; 4],
        pages: u64,
    },
    /// `other` is the value of options that name a space, `value` that of others.
    SpaceOptions {
        space: Name,
        option: u64,
        other: Name,
        value: u64,
    },
    MapControl {
        space: Name,
        target: u64,
        control: u64,
        source: u64,
    },
    /// `words` is the seed of message registers 0 to 22.
    ThreadState {
        thread: Name,
        control: u64,
        buffer: u64,
        size: u64,
        words: u64,
    },
    Notify {
        thread: Name,
        bits: u64,
    },
    /// A system call of another operating system, or of none.
    ForeignCall {
        offset: u64,
    },
    PageFault {
        address: u64,
        write: bool,
    },
    Exception {
        handler: Name,
        number: u64,
    },
    /// Time goes by, and the timer interrupts.
    Timer {
        microseconds: u64,
    },
    /// Time goes by, and a device interrupts.
    Device {
        microseconds: u64,
        line: u32,
    },
    /// If all wait: until the timer ends the wait of one of them.
    Wait,
    /// The root task makes a thread, or starts one, in the space of another, its own or a new one,
    /// with memory or without.
    Spawn {
        number: u32,
        space: Name,
        memory: bool,
    },
}

use Action::*;

impl Action {
    /// Chooses something that a running thread does.
    pub(in super::super) fn any(random: &Random) -> Self {
        match random.below(28) {
            0..=8 => Self::ipc(random),
            9 | 10 => Self::exchange_registers(random),
            11 | 12 => Self::thread_control(random),
            13 => Self::space_control(random),
            14 => Schedule {
                dest: Name::of_thread(random),
                time: random.of(&[u64::MAX, 0x1271 << 16, 5 << 16, 0, 0xffff << 16 | 0x8005, 0x0400]),
                processor: random.of(&[u64::MAX, 0, 1, 2, 9]),
                priority: random.of(&[u64::MAX, 0, 100, 101, 255]),
                preemption: random.of(&[u64::MAX, 0, 0x64_0010, 0xff_0001]),
            },
            15 => ThreadSwitch { dest: Name::of_thread(random) },
            16 => Unmap { control: random.of(&[0, 1, 0x40, 0x41, 10]), pages: random.next() },
            17 => PageFault { address: random.below(1 << 18) << 12, write: random.one_in(2) },
            18 => Exception { handler: Name::of_thread(random), number: random.below(20) },
            19 => Notify { thread: Name::of_thread(random), bits: random.next() },
            20 => SpaceOptions {
                space: Name::of_thread(random),
                option: random.of(&[0, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8]),
                other: random.of(&[Name::Nil, Name::Own, Name::Own, Name::of_thread(random)]),
                value: random.of(&[0, 1, 1, 2, random.next() % (1 << 22)]),
            },
            21 => Self::thread_state(random),
            22 => Self::map_control(random),
            23 => Self::memory_control(random),
            24 => match random.below(4) {
                0 => ProcessorControl { processor: random.below(6) },
                1 => SystemClock,
                _ => ForeignCall { offset: random.next() },
            },
            _ => {
                let microseconds = random.below(300);
                if random.one_in(2) {
                    Device { microseconds, line: random.below(LINES.into()) as u32 }
                } else {
                    Timer { microseconds }
                }
            }
        }
    }

    fn ipc(random: &Random) -> Self {
        let line = Name::Interrupt(random.below(u64::from(LINES) + 1) as u32);
        let any = random.of(&[Name::Any, Name::AnyLocal, Name::Nil, Name::Own, line]);
        let to = if random.one_in(3) { Name::Nil } else { Name::of_thread(random) };
        let to = if random.one_in(12) { any } else { to };
        let from = if random.one_in(2) { any } else { Name::of_thread(random) };
        let from = if random.one_in(3) { to } else { from };
        let [send, receive] =
            if random.one_in(3) { [Limit::Never; 2] } else { [Limit::any(random), Limit::any(random)] };
        let typed = random.of(&[0, 0, 0, 2, 2, 4, 3, 63]);
        let untyped = random.below(12) as usize;
        // The labels are few: some are those of answers to the kernel's messages.
        let label = random.of(&[0, 0, 1, 2, 3, random.next() >> 1]);
        let window =
            random.of(&[Fpage::COMPLETE, Fpage::COMPLETE, Fpage::NIL, Fpage::memory(0x4000_0000, 22)]);
        Ipc {
            to,
            from,
            send,
            receive,
            tag: MessageTag::new(label, untyped, typed).with_propagated(random.one_in(4)).raw(),
            virtual_sender: Name::of_thread(random),
            acceptor: window.raw() | random.of(&[0, 0, 1, 4, 5]),
            words: random.next(),
        }
    }

    fn exchange_registers(random: &Random) -> Self {
        let control = random.next() & 0x3ff;
        let dest = Name::of_thread(random);
        // The root task has to stay alive.
        let control = if dest.number() == Some(ROOT) { control & !1 } else { control };
        let pager = Name::of_thread(random);
        ExchangeRegisters { dest, control, flags: random.next(), handle: random.next(), pager }
    }

    fn thread_control(random: &Random) -> Self {
        let number = ROOT + 1 + random.below((NUMBERS - ROOT - 1).into()) as u32;
        let fresh = Name::Version(number, 1 + random.below(3) as u32);
        let line = Name::Interrupt(random.below(u64::from(LINES) + 1) as u32);
        let dest = if random.one_in(10) { line } else { fresh };
        let space = match random.below(6) {
            0 => Name::Nil,
            1 | 2 => dest,
            3 => Name::Version(ROOT, 1),
            _ => Name::of_thread(random),
        };
        let scheduler = if random.one_in(3) { Name::of_thread(random) } else { Name::Version(ROOT, 1) };
        let pager = match random.below(4) {
            0 => Name::Nil,
            1 => dest,
            _ => Name::of_thread(random),
        };
        let location = UTCB_AREA + 1024 * random.below(NUMBERS.into());
        let location = if random.one_in(3) { u64::MAX } else { location };
        ThreadControl { dest, space, scheduler, pager, location }
    }

    fn space_control(random: &Random) -> Self {
        let page = KIP_AREA | 12 << 4;
        SpaceControl {
            space: Name::of_thread(random),
            control: random.next(),
            kip: random.of(&[page, page, 0, 0x4000_0000 | 12 << 4, UTCB_AREA | 12 << 4, 0x20]),
            utcbs: random.of(&[UTCB_AREA | 18 << 4, UTCB_AREA | 18 << 4, 0, 0x4010_0000 | 16 << 4, 0x10]),
            redirector: random.of(&[
                Name::Nil,
                Name::Nil,
                Name::Any,
                Name::Any,
                Name::of_thread(random),
                Name::of_thread(random),
            ]),
        }
    }

    fn memory_control(random: &Random) -> Self {
        MemoryControl {
            control: random.of(&[0, 0, 1, 3, 63, 64]),
            attributes: core::array::from_fn(|_| random.of(&[0, 1, 2, 5, 6, 7, 7, 3])),
            pages: random.next(),
        }
    }

    fn map_control(random: &Random) -> Self {
        let size = random.of(&[12, 12, 12, 14, 21]);
        let target = Fpage::memory(random.below(1 << 11) << 12 | 0x200_0000, size).raw() | random.below(8);
        let control = random.below(16) | random.of(&[0, 1, 3, 16]) << 16;
        let control = if random.one_in(16) { control | 1 << 5 } else { control };
        MapControl {
            space: Name::of_thread(random),
            target,
            control: if random.one_in(8) { random.below(520) } else { control | 1 << 63 },
            source: random.below(1 << 11) << 12 | 0x200_0000 | random.of(&[0, 0, 0, 0, 1]),
        }
    }

    fn thread_state(random: &Random) -> Self {
        let control =
            random.of(&[0, 1, 1, 2, 3, 4, 8, 0x10, 0x20, 0x40, 0x71, 0x80, 0x100, 0x100, 0x180, 0x200]);
        // The root task has to stay alive.
        let thread = random.of(&[Name::of_thread(random), Name::Global(3 + random.below(11) as u32)]);
        let control = if thread.number() == Some(ROOT) { control & 1 } else { control };
        ThreadState {
            thread,
            control,
            buffer: random.below(1 << 11) << 12 | 0x200_0000,
            size: random.of(&[0, 100, 832, 4096]),
            words: random.next(),
        }
    }
}
