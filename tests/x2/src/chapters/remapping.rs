//! Tests of the table of interrupts (SpaceOptions 7 and 8): a function raises the interrupts that
//! have been made for it, and no others. The chapter `interrupt` runs afterwards, so that lines go
//! through the table, too.

use super::message_interrupt::{acknowledge, expect, expect_none, interrupt, place, processors};
use crate::framework::edu::Edu;
use crate::framework::fixture::Space;
use crate::framework::unit::{self, IO_APIC};
use crate::framework::{failure, tests};
use l4::ipc::{self, Message};
use l4::{extension, kip, thread, utcb};
use x2::extension::{MessageSource, SpaceOption, TableRequest};
use x2::{ErrorCode, ThreadId};

tests! {
    RMP0001 [EXT 3.7] "the kernel tells what units need, and wants to know of each I/O APIC" requests;
    RMP0002 [EXT 3.7] "only a privileged space may ask" privilege;
    RMP0003 [EXT 3.8] "a function raises each interrupt that has been made for it" own;
    RMP0004 [EXT 3.8] "it does not raise one that has been made for another function" other;
    RMP0005 [EXT 3.8] "nor one that has been given back" given_back;
    RMP0006 [EXT 3.8] "nor one that has never been a function's" never_made;
    RMP0007 [EXT 3.7] "lines go through the table, wherever their handlers live" lines;
}

const INVALID: thread::Result<[u64; 2]> = Err(Some(ErrorCode::InvalidParameter));

fn options(option: SpaceOption, values: [u64; 2]) -> thread::Result<[u64; 2]> {
    extension::space_options(ThreadId::NIL, option, values)
}

fn requests() {
    let Ok([register, without_source]) = extension::interrupt_table(TableRequest::Tell) else {
        failure::skip("the kernel has no table of interrupts");
    };
    assert!((7..15).contains(&(register & 0xfff)), "{register:x}: 2^8 to 2^15 entries");
    let number = interrupt(0).number();
    if without_source > 0 {
        assert_eq!(without_source, 1);
        assert_eq!(extension::interrupt_table(TableRequest::Use), INVALID, "an I/O APIC has no source");
        let same = extension::interrupt_message(number);
        assert_eq!(extension::interrupt_message_of(number, MessageSource::Function(0x18)), same);
    }
    let other = TableRequest::Lines { io_apic: 0xff, source: 0xff00 };
    assert_eq!(extension::interrupt_table(other), INVALID, "there is no such I/O APIC");
    for values in [[0, 1], [1, 1 << 24], [2, 1], [3, 0], [u64::MAX; 2]] {
        assert_eq!(options(SpaceOption::InterruptTable, values), INVALID, "{values:?}");
    }
    for source in [1, 0xffff, 2 << 16, u64::MAX] {
        assert_eq!(options(SpaceOption::InterruptMessage, [number.into(), source]), INVALID, "{source:x}");
    }
    assert_eq!(extension::interrupt_table(IO_APIC), Ok([register, 0]));
    unit::remap();
    assert_eq!(extension::interrupt_table(TableRequest::Tell), Ok([register, 0]));
}

fn privilege() {
    let me = utcb::my_global_id();
    let thread = Space::new().spawn(move || {
        let refused = [TableRequest::Tell, IO_APIC, TableRequest::Use].map(extension::interrupt_table);
        let is_refused = refused == [Err(Some(ErrorCode::NoPrivilege)); 3];
        ipc::send(me, Message::with_words(0, &[u64::from(is_refused)])).expect("the test waits");
    });
    assert_eq!(ipc::receive(thread).unwrap().word(0), 1);
}

/// The interval timer's line, which the firmware leaves on.
const TIMER: ThreadId = ThreadId::interrupt(2);

/// A device that uses the message of interrupt `index`, which has been made for `source`, or, if
/// that is `None`, for the device. This thread is the handler.
fn device(index: u32, source: Option<u16>) -> (Edu, ThreadId) {
    unit::remap();
    let (device, interrupt) = (Edu::find(), interrupt(index));
    let source = MessageSource::Function(source.unwrap_or(device.place()));
    let message = extension::interrupt_message_of(interrupt.number(), source).expect("it has a message");
    assert_eq!(message.address & !0xf_ffe0, 0xfee0_0010, "it names an entry");
    device.use_message(message);
    thread::associate_interrupt(interrupt, utcb::my_global_id()).unwrap();
    (device, interrupt)
}

fn own() {
    for index in 0..kip().message_interrupts().len() as u32 {
        let (device, interrupt) = device(index, None);
        for _ in 0..20 {
            device.raise();
            expect(interrupt);
            acknowledge(interrupt).unwrap();
        }
        thread::disassociate_interrupt(interrupt).unwrap();
    }
}

fn other() {
    let place = Edu::find().place();
    // One that differs in the function, in the device, in the bus.
    for other in [place ^ 1, place ^ 8, place ^ 1 << 8] {
        let (refused, interrupt) = device(0, Some(other));
        refused.raise();
        expect_none(interrupt);
        let (own, _) = device(0, None);
        own.raise();
        expect(interrupt);
        thread::disassociate_interrupt(interrupt).unwrap();
    }
}

fn given_back() {
    let (device, interrupt) = device(1, None);
    extension::interrupt_message(interrupt.number()).expect("it is given back");
    device.raise();
    expect_none(interrupt);
    thread::disassociate_interrupt(interrupt).unwrap();
}

fn never_made() {
    let (device, own) = device(2, None);
    let source = MessageSource::Function(device.place());
    let mut message = extension::interrupt_message_of(own.number(), source).expect("it has a message");
    let next = interrupt(3);
    extension::interrupt_message(next.number()).expect("it has a message, too, and no source");
    thread::associate_interrupt(next, utcb::my_global_id()).unwrap();
    message.address += 1 << 5;
    device.use_message(message);
    device.raise();
    expect_none(next);
    thread::disassociate_interrupt(next).unwrap();
    thread::disassociate_interrupt(own).unwrap();
}

fn lines() {
    unit::remap();
    for processor in (0..processors()).chain([0]) {
        place(utcb::my_global_id(), processor);
        thread::associate_interrupt(TIMER, utcb::my_global_id()).unwrap();
        for _ in 0..3 {
            expect(TIMER);
            acknowledge(TIMER).unwrap();
        }
        thread::disassociate_interrupt(TIMER).unwrap();
    }
}
