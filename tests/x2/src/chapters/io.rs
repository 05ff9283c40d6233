//! Tests of I/O ports (ABI 9.2; X.2 rules 7.41, 8.9, 8.10, 12.7, 12.8). The runner has all ports
//! from sigma0.

use crate::framework::fixture::{Space, await_state, call_as_pager, receive_as_pager, spawn};
use crate::framework::{arena, confined, image, leaks, tests};
use core::arch::asm;
use l4::ipc::{self, Message, Received};
use l4::{console, extension, kip, port, space, thread, utcb};
use x2::control::ThreadState;
use x2::protocol::{self, IO_PAGE_FAULT_TAG, exception};
use x2::{Acceptor, Fpage, IpcErrorKind, MapItem, MessageTag, Rights, ThreadId, Time, Timeouts};

tests! {
    IOP0001 [12.7, 8.10] "the root task uses the ports that sigma0 gave" root_uses_ports;
    IOP0002 [12.8] "every instruction that accesses a port faults, telling ports and address, and goes on with them" every_instruction;
    IOP0003 [12.8] "an access that is not aligned names the smallest fpage with all its ports" unaligned;
    IOP0004 [12.8] "an access needs all its ports" needs_all_ports;
    IOP0005 [12.8] "a reply without ports lets the thread fault again" reply_without_ports;
    IOP0006 [12.8] "a fault leaves message registers, acceptor and error word alone" fault_preserves_utcb;
    IOP0007 [7.41, ABI 9.2] "the receiver gets what was sent, accepted and held, and is told what" intersection;
    IOP0008 [7.41] "ports do not fit a memory window, nor memory a window of ports" windows;
    IOP0009 [7.41] "a space without ports gives none" nothing_to_give;
    IOP0010 [8.10] "unmapping takes a port from all spaces that have it from there" unmap_is_recursive;
    IOP0011 [8.10] "flushing takes it from the space itself too" flush;
    IOP0012 [8.9] "ports are removed whatever rights an fpage names, and have no status" rights_do_not_matter;
    IOP0013 [8.10, 7.39] "a granted port leaves its granter, and those above can take it back" grant;
    IOP0014 [8.9, 8.10] "one port out of all is taken, the others stay" one_of_all;
    IOP0015 [8.10] "spaces take turns without using each other's ports" isolation;
    IOP0016 [8.10] "a space gets no ports of one that was there before" fresh_space;
    IOP0017 [8.10] "threads of a space share its ports" shared_by_threads;
    IOP0018 [12.8] "an access beyond the last port is an exception" beyond_the_last;
    IOP0019 [12.8] "with the ports at hand a bad address of a string instruction is an exception" bad_string;
    IOP0020 [ABI 19.6] "no program gets I/O privilege" no_privilege_level;
    IOP0021 [5.34, 12.8] "without a pager the thread is halted" no_pager;
    IOP0022 [EXT 2.1, 12.8] "the pager of an owned space is whom its owner chose" owned_space;
    IOP0023 [7.13, EXT 9.1] "an item of ports that runs out of kernel memory ends with error 4, and can be sent again" out_of_memory;
    IOP0024 [12.8, EXT 9.1] "a fault whose answer runs out of kernel memory is an exception" fault_out_of_memory;
    IOP0025 [8.10, 12.1] "the pager of a program with ports does not find them open" pager_without_ports;
    IOP0026 [8.10, EXT 2.2] "ports do not let a confined program out" confined_with_ports;
}

/// The scratch register of the first serial port, which keeps what is written to it.
const SCRATCH: u16 = 0x3ff;
/// The PCI configuration address, a register of 32 bits.
const PCI: u16 = 0xcf8;

/// Orders for a porter: the label is the operation, the words are its arguments.
const ACCESS: u64 = 1;
const TAKE: u64 = 2;
const GIVE: u64 = 3;
const REVOKE: u64 = 4;

/// How a porter accesses a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
enum Form {
    In8,
    In16,
    In32,
    Out8,
    Out16,
    Out32,
    InImmediate,
    OutImmediate,
    Ins8,
    Ins16,
    Ins32,
    Outs8,
    Outs16,
    Outs32,
}

const FORMS: [Form; 14] = [
    Form::In8,
    Form::In16,
    Form::In32,
    Form::Out8,
    Form::Out16,
    Form::Out32,
    Form::InImmediate,
    Form::OutImmediate,
    Form::Ins8,
    Form::Ins16,
    Form::Ins32,
    Form::Outs8,
    Form::Outs16,
    Form::Outs32,
];

/// The port of the instructions that contain the port number: that for diagnostic codes.
const IMMEDIATE: u16 = 0x80;

impl Form {
    fn width_log2(self) -> u32 {
        match self {
            Self::In16 | Self::Out16 | Self::Ins16 | Self::Outs16 => 1,
            Self::In32 | Self::Out32 | Self::Ins32 | Self::Outs32 => 2,
            _ => 0,
        }
    }

    fn perform(self, number: u16, value: u64) -> u64 {
        let mut buffer = value;
        let at = &raw mut buffer;
        macro_rules! string {
            ($instruction:literal, $index:tt) => {
                asm!($instruction, inout("ecx") 1 => _, in("dx") number, inout($index) at => _, options(nostack))
            };
        }
        // SAFETY: the ports of these tests do not affect memory; string instructions use the
        // buffer.
        unsafe {
            match self {
                Self::In8 => buffer = port::read8(number).into(),
                Self::In16 => buffer = port::read16(number).into(),
                Self::In32 => buffer = port::read32(number).into(),
                Self::Out8 => port::write8(number, value as u8),
                Self::Out16 => port::write16(number, value as u16),
                Self::Out32 => port::write32(number, value as u32),
                Self::InImmediate => asm!("in al, 0x80", out("al") _, options(nostack)),
                Self::OutImmediate => asm!("out 0x80, al", in("al") value as u8, options(nostack)),
                Self::Ins8 => string!("rep insb", "rdi"),
                Self::Ins16 => string!("rep insw", "rdi"),
                Self::Ins32 => string!("rep insd", "rdi"),
                Self::Outs8 => string!("rep outsb", "rsi"),
                Self::Outs16 => string!("rep outsw", "rsi"),
                Self::Outs32 => string!("rep outsd", "rsi"),
            }
        }
        buffer
    }
}

/// A porter: a thread in a space of its own that accesses ports as this thread orders, while this
/// thread answers its faults on ports.
#[derive(Clone, Copy)]
struct Porter(ThreadId);

impl Porter {
    fn new() -> Self {
        Self::in_space(&Space::new())
    }

    fn in_space(space: &Space) -> Self {
        let master = utcb::my_global_id();
        Self(space.spawn(move || {
            utcb::set_exception_handler(master);
            serve(master)
        }))
    }

    /// Makes a porter that has `ports`.
    fn with(ports: Fpage) -> Self {
        let porter = Self::new();
        assert_eq!(porter.take(Fpage::COMPLETE_IO, MapItem::map(ports, 0)), ports);
        porter
    }

    fn order(self, label: u64, words: &[u64]) -> Received {
        call_as_pager(self.0, Message::with_words(label, words))
    }

    /// The result of an access: the value that was read, or the message of a fault or exception.
    fn access(self, form: Form, number: u16, value: u64) -> Result<u64, Received> {
        let received = self.order(ACCESS, &[form as u64, number.into(), value]);
        if received.tag.label() == ACCESS { Ok(received.word(0)) } else { Err(received) }
    }

    fn can_use(self, number: u16) -> bool {
        match self.access(Form::In8, number, 0) {
            Ok(_) => true,
            Err(fault) => {
                let ports = Fpage::io(number, 0);
                expect_fault(fault, ports);
                // The answer maps the port, so that the thread continues; afterwards the port is
                // unmapped again.
                assert_eq!(answer(fault, MapItem::map(ports, 0)).tag.label(), ACCESS);
                self.revoke(ports, true);
                false
            }
        }
    }

    /// Makes the porter receive `item` into `window`. Returns what it got.
    fn take(self, window: Fpage, item: MapItem) -> Fpage {
        self.order(TAKE, &[Acceptor::new(window, false).raw()]);
        let received = call_as_pager(self.0, Message::new(0).map_item(item));
        Fpage::from_raw(received.word(0))
    }

    /// Makes the porter send `item` to `other`, which accepts ports. Returns what `other` got.
    fn give(self, other: Self, item: MapItem) -> Fpage {
        other.order(TAKE, &[Acceptor::new(Fpage::COMPLETE_IO, false).raw()]);
        let [base, fpage] = item.to_words(false);
        Fpage::from_raw(self.order(GIVE, &[other.0.raw(), base, fpage]).word(0))
    }

    /// Makes the porter unmap, or flush, `ports`. Returns the result of Unmap.
    fn revoke(self, ports: Fpage, flush: bool) -> Fpage {
        Fpage::from_raw(self.order(REVOKE, &[ports.raw(), flush.into()]).word(0))
    }
}

/// The next message of a thread that sends without an order.
fn next_message(thread: ThreadId) -> Received {
    receive_as_pager(thread).expect("the thread goes on")
}

fn serve(master: ThreadId) -> ! {
    let mut order = ipc::receive(master).expect("an order");
    loop {
        let word = |index| order.word(index);
        let answer = match order.tag.label() {
            ACCESS => {
                let form = FORMS[word(0) as usize];
                // The master answers only faults about the ports, since it waits for one thread at
                // a time.
                utcb::set_pager(master);
                let value = form.perform(word(1) as u16, word(2));
                utcb::set_pager(kip().root());
                Message::with_words(ACCESS, &[value])
            }
            TAKE => {
                let acceptor = Acceptor::from_raw(word(0));
                // SAFETY: no Rust object lies in the windows of these tests.
                unsafe { utcb::accept(acceptor) };
                ipc::send(master, Message::new(0)).expect("the master waits");
                let received = ipc::wait().expect("items");
                utcb::accept_untyped_words();
                let got = received.map_item(0).map_or(0, |item| item.fpage.raw());
                let report = Message::with_words(0, &[got]);
                if received.from != master {
                    ipc::send(received.from, report).expect("the sender waits");
                    order = ipc::receive(master).expect("an order");
                    continue;
                }
                report
            }
            GIVE => {
                let (to, words) = (ThreadId::from_raw(word(0)), [word(1), word(2)]);
                let item = MapItem::from_words(words).expect("an item");
                let report = ipc::call(to, Message::new(0).map_item(item)).expect("the other takes it");
                Message::with_words(0, &[report.word(0)])
            }
            REVOKE => {
                let mut ports = [Fpage::from_raw(word(0))];
                if word(1) == 0 {
                    space::unmap(&mut ports);
                } else {
                    // SAFETY: ports are not memory.
                    unsafe { space::flush(&mut ports) };
                }
                Message::with_words(0, &[ports[0].raw()])
            }
            label => panic!("no such order: {label}"),
        };
        order = ipc::call(master, answer).expect("an order");
    }
}

fn map(number: u16, size_log2: u32) -> MapItem {
    MapItem::map(Fpage::io(number, size_log2), 0)
}

fn answer(fault: Received, item: MapItem) -> Received {
    call_as_pager(fault.from, Message::new(0).map_item(item))
}

fn expect_fault(received: Received, ports: Fpage) {
    assert_eq!(received.tag, IO_PAGE_FAULT_TAG);
    assert_eq!(Fpage::from_raw(received.word(0)), ports);
    assert!(image::range().contains(&received.word(1)), "IP {:#x}", received.word(1));
}

fn expect_general_protection(received: Received) {
    assert_eq!(protocol::of(received.tag), protocol::ARCHITECTURE_EXCEPTION);
    assert_eq!(received.word(exception::NUMBER - 1), 13);
}

fn root_uses_ports() {
    // SAFETY: the scratch register has no effect.
    unsafe {
        for value in [0x5a, 0xa5] {
            port::write8(SCRATCH, value);
            assert_eq!(port::read8(SCRATCH), value);
        }
    }
}

fn every_instruction() {
    for form in FORMS {
        let porter = Porter::new();
        let number = match form {
            Form::InImmediate | Form::OutImmediate | Form::Out16 | Form::Outs16 => IMMEDIATE,
            _ if form.width_log2() == 0 => SCRATCH,
            _ => PCI,
        };
        let ports = Fpage::io(number, form.width_log2());
        let fault = porter.access(form, number, 0x8000_0000).expect_err("it has no ports");
        expect_fault(fault, ports);
        assert_eq!(answer(fault, MapItem::map(ports, 0)).tag.label(), ACCESS, "{form:?}");
        assert!(porter.access(form, number, 0).is_ok(), "{form:?}");
    }
}

fn unaligned() {
    let porter = Porter::new();
    for (form, number, first, size_log2) in [
        (Form::In16, 0x2f9, 0x2f8, 2),
        (Form::In32, 0x2fa, 0x2f8, 3),
        (Form::In16, 0x2f7, 0x2f0, 4),
        (Form::In16, 0x7fff, 0, 16),
    ] {
        let fault = porter.access(form, number, 0).expect_err("it has no ports");
        expect_fault(fault, Fpage::io(first, size_log2));
        assert_eq!(answer(fault, map(first, size_log2)).tag.label(), ACCESS);
        space::unmap_one(Fpage::COMPLETE_IO);
    }
}

fn needs_all_ports() {
    // There is no device at these ports.
    let porter = Porter::with(Fpage::io(0x2f8, 3));
    assert!(porter.access(Form::In8, 0x2ff, 0).is_ok());
    assert!(porter.access(Form::In16, 0x2fe, 0).is_ok());
    let fault = porter.access(Form::In16, 0x2ff, 0).expect_err("one port is missing");
    expect_fault(fault, Fpage::io(0x200, 9));
    assert_eq!(answer(fault, map(0x300, 0)).tag.label(), ACCESS);
    let fault = porter.access(Form::Ins32, 0x2f5, 0).expect_err("three ports are missing");
    expect_fault(fault, Fpage::io(0x2f0, 4));
    let again = answer(fault, map(0x2f6, 1));
    expect_fault(again, Fpage::io(0x2f0, 4));
    assert_eq!(answer(again, map(0x2f5, 0)).tag.label(), ACCESS);
}

fn reply_without_ports() {
    let porter = Porter::new();
    let page = arena::page();
    let mut fault = porter.access(Form::In8, SCRATCH, 0).expect_err("it has no ports");
    for item in [
        MapItem::map(Fpage::NIL, 0),
        MapItem::map(Fpage::io(0x2f8, 3), 0),
        MapItem::map(page.fpage(Rights::ALL), 0x4000_0000_0000),
    ] {
        fault = answer(fault, item);
        expect_fault(fault, Fpage::io(SCRATCH, 0));
    }
    assert_eq!(answer(fault, map(SCRATCH, 0)).tag.label(), ACCESS);
}

fn fault_preserves_utcb() {
    let me = utcb::my_global_id();
    let thread = Space::new().spawn_paged_by(me, move || {
        (0..64).for_each(|index| utcb::set_message_register(index, 0x9000 + index as u64));
        let acceptor = Acceptor::new(Fpage::memory(0x4000_0000_0000, 16), false);
        // SAFETY: no Rust object lies in the window.
        unsafe { utcb::accept(acceptor) };
        utcb::set_error_word(0x55);
        Form::In8.perform(SCRATCH, 0);
        (0..64).for_each(|index| assert_eq!(utcb::message_register(index), 0x9000 + index as u64));
        assert_eq!(utcb::buffer_register(0), acceptor.raw());
        assert_eq!(utcb::error_word(), 0x55);
        ipc::send(me, Message::new(1)).unwrap();
    });
    let fault = next_message(thread);
    expect_fault(fault, Fpage::io(SCRATCH, 0));
    assert_eq!(answer(fault, map(SCRATCH, 0)).tag.label(), 1);
}

fn intersection() {
    let (small, large) = (Fpage::io(0x3f8, 3), Fpage::io(0x300, 8));
    for (sent, window, got) in [
        (small, Fpage::COMPLETE_IO, small),
        (Fpage::COMPLETE_IO, small, small),
        (large, small, small),
        (small, large, small),
        (small, Fpage::io(0x2f8, 3), Fpage::NIL),
        (Fpage::io(0x3f8, 17), Fpage::COMPLETE_IO, Fpage::NIL),
        (Fpage::from_raw(0x3f8 << 16 | 63 << 10 | 2 << 4), Fpage::COMPLETE_IO, Fpage::NIL),
        (small, Fpage::from_raw(0x300 << 16 | 17 << 10 | 2 << 4), Fpage::NIL),
    ] {
        let porter = Porter::new();
        assert_eq!(porter.take(window, MapItem::map(sent, 0x1234_5000)), got, "{sent:?} to {window:?}");
        assert_eq!(porter.can_use(SCRATCH), got == small);
        assert!(!porter.can_use(0x2ff));
    }
    // A porter in the middle has eight ports and offers all ports.
    let (middle, end) = (Porter::with(small), Porter::new());
    middle.give(end, MapItem::map(Fpage::COMPLETE_IO, 0));
    assert!(end.can_use(SCRATCH) && end.can_use(0x3f8) && !end.can_use(0x3f7) && !end.can_use(0x400));
}

fn windows() {
    let porter = Porter::new();
    let page = arena::page();
    assert_eq!(porter.take(Fpage::COMPLETE, map(SCRATCH, 0)), Fpage::NIL);
    assert_eq!(porter.take(Fpage::memory(0x4000_0000_0000, 30), map(SCRATCH, 0)), Fpage::NIL);
    assert_eq!(porter.take(Fpage::NIL, map(SCRATCH, 0)), Fpage::NIL);
    assert!(!porter.can_use(SCRATCH));
    assert_eq!(porter.take(Fpage::COMPLETE_IO, MapItem::map(page.fpage(Rights::ALL), 0)), Fpage::NIL);
}

fn nothing_to_give() {
    let (giver, taker) = (Porter::new(), Porter::new());
    assert_eq!(giver.give(taker, MapItem::map(Fpage::COMPLETE_IO, 0)), Fpage::NIL);
    assert_eq!(giver.give(taker, MapItem::grant(Fpage::io(SCRATCH, 0), 0)), Fpage::NIL);
    let giver = Porter::with(Fpage::io(0x2f8, 3));
    assert_eq!(giver.give(taker, map(SCRATCH, 0)), Fpage::NIL);
    assert!(!taker.can_use(SCRATCH));
}

fn unmap_is_recursive() {
    let ports = Fpage::io(0x3f8, 3);
    let (first, second, third) = (Porter::with(ports), Porter::new(), Porter::new());
    assert_eq!(first.give(second, MapItem::map(ports, 0)), ports);
    assert_eq!(second.give(third, MapItem::map(ports, 0)), ports);
    assert!(third.can_use(SCRATCH));
    first.revoke(Fpage::io(SCRATCH, 0), false);
    assert!(!third.can_use(SCRATCH) && !second.can_use(SCRATCH));
    assert!(first.can_use(SCRATCH) && third.can_use(0x3f8));
    // A space cannot take ports from the space that it got them from.
    third.revoke(Fpage::COMPLETE_IO, true);
    assert!(!third.can_use(0x3f8) && second.can_use(0x3f8));
    space::unmap_one(Fpage::COMPLETE_IO);
    assert!(!first.can_use(0x3f8) && !second.can_use(0x3f8));
    root_uses_ports();
}

fn flush() {
    let porter = Porter::with(Fpage::io(0x3f8, 3));
    assert!(porter.can_use(SCRATCH));
    porter.revoke(Fpage::io(0x3fc, 2), true);
    assert!(!porter.can_use(SCRATCH) && porter.can_use(0x3f8));
}

fn rights_do_not_matter() {
    let ports = Fpage::io(0x3f8, 3);
    for rights in [Rights::NONE, Rights::WRITE, Rights::ALL] {
        let porter = Porter::new();
        assert_eq!(porter.take(Fpage::COMPLETE_IO, MapItem::map(ports.with_rights(rights), 0)), ports);
        assert!(porter.access(Form::Out8, SCRATCH, 1).is_ok());
        let other = Porter::new();
        porter.give(other, MapItem::map(ports, 0));
        assert!(other.can_use(SCRATCH));
        assert_eq!(porter.revoke(ports.with_rights(rights), false), ports, "no status");
        assert!(!other.can_use(SCRATCH) && porter.can_use(SCRATCH));
    }
}

fn grant() {
    let ports = Fpage::io(0x3f8, 3);
    let (first, second, third) = (Porter::with(ports), Porter::new(), Porter::new());
    first.give(second, MapItem::map(ports, 0));
    assert_eq!(second.give(third, MapItem::grant(ports, 0)), ports);
    assert!(third.can_use(SCRATCH) && !second.can_use(SCRATCH));
    first.revoke(ports, false);
    assert!(!third.can_use(SCRATCH));
}

fn one_of_all() {
    let porter = Porter::with(Fpage::COMPLETE_IO);
    for number in [0x3f8, SCRATCH, 0xffff, 0x80] {
        assert!(porter.can_use(number));
    }
    let other = Porter::new();
    assert_eq!(porter.give(other, MapItem::map(Fpage::COMPLETE_IO, 0)), Fpage::COMPLETE_IO);
    porter.revoke(Fpage::io(SCRATCH, 0), true);
    for taken in [porter, other] {
        assert!(!taken.can_use(SCRATCH));
        assert!(taken.can_use(0x3fe) && taken.can_use(0x400) && taken.can_use(0xffff));
    }
    porter.revoke(Fpage::COMPLETE_IO, true);
    assert!(!porter.can_use(0x3fe) && !other.can_use(0xffff));
}

fn isolation() {
    let (with, without, else_where) =
        (Porter::with(Fpage::io(0x3f8, 3)), Porter::new(), Porter::with(Fpage::io(PCI, 2)));
    for value in 0..5 {
        assert!(with.access(Form::Out8, SCRATCH, value).is_ok());
        // The processor switches from this space, whose ports it has loaded, directly to one that
        // has none. SAFETY: the scratch register has no effect.
        unsafe { port::read8(SCRATCH) };
        assert!(!without.can_use(SCRATCH) && !without.can_use(PCI));
        assert!(else_where.access(Form::In32, PCI, 0).is_ok());
        // SAFETY: the scratch register has no effect.
        unsafe { port::read8(SCRATCH) };
        assert!(!else_where.can_use(SCRATCH));
        assert_eq!(with.access(Form::In8, SCRATCH, 0).ok(), Some(value));
        assert!(!with.can_use(PCI));
    }
}

fn fresh_space() {
    for _ in 0..3 {
        let porter = Porter::with(Fpage::io(0x3f8, 3));
        assert!(porter.can_use(SCRATCH));
        thread::delete(porter.0).expect("deletion never fails");
        assert!(!Porter::new().can_use(SCRATCH));
    }
}

fn shared_by_threads() {
    let space = Space::new();
    let (first, second) = (Porter::in_space(&space), Porter::in_space(&space));
    assert!(!second.can_use(SCRATCH));
    first.take(Fpage::COMPLETE_IO, map(SCRATCH, 0));
    assert!(second.can_use(SCRATCH));
    second.revoke(Fpage::COMPLETE_IO, true);
    assert!(!first.can_use(SCRATCH));
}

fn beyond_the_last() {
    for (form, number) in [(Form::In16, 0xffff), (Form::Out32, 0xfffd), (Form::Ins32, 0xfffe)] {
        for ports in [Fpage::COMPLETE_IO, Fpage::io(0x3f8, 3)] {
            expect_general_protection(Porter::with(ports).access(form, number, 0).expect_err("no such port"));
        }
    }
}

fn bad_string() {
    let me = utcb::my_global_id();
    let thread = Space::new().spawn_paged_by(me, move || {
        utcb::set_exception_handler(me);
        // SAFETY: no memory lies there.
        unsafe { asm!("insb", in("dx") SCRATCH, inout("rdi") 1u64 << 63 => _, options(nostack)) };
    });
    let fault = next_message(thread);
    if protocol::of(fault.tag) == protocol::ARCHITECTURE_EXCEPTION {
        // A processor may check the address before the port.
        return expect_general_protection(fault);
    }
    expect_fault(fault, Fpage::io(SCRATCH, 0));
    expect_general_protection(answer(fault, map(SCRATCH, 0)));
}

fn no_privilege_level() {
    let me = utcb::my_global_id();
    let thread = Space::new().spawn_paged_by(me, move || {
        let flags: u64;
        // SAFETY: the processor lets programs change only their own flags.
        unsafe {
            asm!("pushfq", "or qword ptr [rsp], 0x3000", "popfq", "pushfq", "pop {}", out(reg) flags);
        }
        assert_eq!(flags & 0x3000, 0, "I/O privilege level");
        Form::In8.perform(SCRATCH, 0);
        panic!("the port was read");
    });
    expect_fault(next_message(thread), Fpage::io(SCRATCH, 0));
}

fn no_pager() {
    let thread = spawn(move || {
        utcb::set_pager(ThreadId::NIL);
        // SAFETY: ports are not memory.
        unsafe { space::flush(&mut [Fpage::io(0x2f8, 3)]) };
        Form::In8.perform(0x2ff, 0);
    });
    await_state(thread, ThreadState::Inactive);
    assert!(thread::inspect(thread).expect("the thread exists").state.halted);
}

fn owned_space() {
    let me = utcb::my_global_id();
    let space = confined::space();
    let thread = confined::spawn(&space, move || {
        // This pager gets no message.
        utcb::set_pager(kip().root());
        ipc::receive(me).expect("the owner has chosen");
        let value = Form::In8.perform(SCRATCH, 0);
        ipc::send(me, Message::with_words(1, &[value])).expect("the owner is in reach");
    });
    extension::set_handlers(thread, None, Some(me)).expect("the thread is owned");
    ipc::send(thread, Message::new(0)).expect("it waits");
    let fault = next_message(thread);
    expect_fault(fault, Fpage::io(SCRATCH, 0));
    assert_eq!(answer(fault, map(SCRATCH, 0)).tag.label(), 1);
}

fn out_of_memory() {
    leaks::require();
    let me = utcb::my_global_id();
    let receiver = Space::new().spawn(move || {
        // The first operation fails, and the second succeeds. So later it needs no page of the
        // program that it does not have: mapping one takes memory, too.
        let mut patience = Time::ZERO;
        loop {
            // SAFETY: ports are not memory.
            unsafe { utcb::accept(Acceptor::new(Fpage::COMPLETE_IO, false)) };
            let error = ipc::receive_timeout(me, patience).map_or_else(|error| error.raw(), |_| 0);
            utcb::accept_untyped_words();
            ipc::send(me, Message::with_words(0, &[error])).unwrap();
            patience = Time::NEVER;
        }
    });
    assert_ne!(ipc::receive(receiver).unwrap().word(0), 0, "nothing was sent");
    let send = || ipc::send(receiver, Message::new(0).map_item(map(0x3f8, 3)));
    send().unwrap();
    ipc::receive(receiver).unwrap();
    space::unmap_one(Fpage::COMPLETE_IO);
    for nth in 1..100 {
        console::fail_kernel_allocation(nth);
        let sent = send();
        let failed = !console::fail_kernel_allocation(0);
        let told = ipc::receive(receiver).unwrap();
        if !failed {
            assert_eq!((sent, told.word(0)), (Ok(()), 0));
            assert!(nth > 1, "ports take memory");
            return;
        }
        assert_eq!(sent.expect_err("an allocation failed").kind, IpcErrorKind::MessageOverflow);
        let seen = x2::IpcError::from_raw(told.word(0)).expect("the receiver too has an error");
        assert_eq!(seen.kind, IpcErrorKind::MessageOverflow);
    }
    panic!("eight ports do not take a hundred allocations");
}

fn fault_out_of_memory() {
    leaks::require();
    let porter = Porter::new();
    let fault = porter.access(Form::In8, SCRATCH, 0).expect_err("it has no ports");
    console::fail_kernel_allocation(1);
    let message = Message::new(0).map_item(map(SCRATCH, 0));
    let sent = ipc::send(fault.from, message);
    console::fail_kernel_allocation(0);
    assert_eq!(sent.expect_err("no memory for the ports").kind, IpcErrorKind::MessageOverflow);
    expect_general_protection(next_message(porter.0));
}

fn pager_without_ports() {
    let me = utcb::my_global_id();
    let page = arena::page();
    // The pager waits for any thread as soon as it has sent its message.
    let pager = Space::new().spawn_paged_by(me, move || {
        let fault = ipc::ipc(me, ThreadId::ANY, Timeouts::NEVER, MessageTag::EMPTY);
        assert_eq!(fault.expect("a fault").word(0), page.address);
        Form::In8.perform(SCRATCH, 0);
        let _ = ipc::send(me, Message::new(9));
    });
    next_message(pager);
    let space = confined::space();
    let program = confined::spawn(&space, move || {
        ipc::receive(me).expect("the owner is its pager");
        Form::In8.perform(SCRATCH, 0);
        ipc::call(me, Message::new(2)).expect("the owner has chosen another pager");
        // The thread faults although the processor has loaded the port for this space.
        Form::In8.perform(SCRATCH, 0);
        arena::read_at(page.address);
    });
    extension::set_handlers(program, None, Some(me)).expect("the thread is owned");
    ipc::send(program, Message::new(0)).expect("it waits");
    let fault = next_message(program);
    assert_eq!(answer(fault, map(SCRATCH, 0)).tag.label(), 2);
    extension::set_handlers(program, None, Some(pager)).expect("the thread is owned");
    ipc::send(program, Message::new(0)).expect("it waits");
    expect_fault(next_message(pager), Fpage::io(SCRATCH, 0));
}

fn confined_with_ports() {
    let me = utcb::my_global_id();
    let outside = Space::new().spawn(|| {
        loop {
            if let Ok(request) = ipc::wait() {
                let _ = ipc::send(request.from, Message::new(0));
            }
        }
    });
    await_state(outside, ThreadState::Waiting);
    let _ = ipc::receive_timeout(outside, Time::ZERO);
    let space = confined::space();
    let program = confined::spawn(&space, move || {
        ipc::receive(me).expect("the owner is its pager");
        Form::In8.perform(SCRATCH, 0);
        let refused = ipc::call(outside, Message::new(0)).err().map(|error| error.kind);
        let refused = u64::from(refused == Some(IpcErrorKind::NonExistingPartner));
        ipc::send(me, Message::with_words(2, &[refused])).expect("the owner is in reach");
    });
    extension::set_handlers(program, None, Some(me)).expect("the thread is owned");
    ipc::send(program, Message::new(0)).expect("it waits");
    let fault = next_message(program);
    assert_eq!(answer(fault, map(SCRATCH, 0)).word(0), 1, "another's message is refused");
}
