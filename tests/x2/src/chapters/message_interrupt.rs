//! Tests of message-signalled interrupts (SpaceOptions 7; X.2 rules 5.19-5.21): a device interrupts
//! by a message that the kernel names, and cannot be masked. The device is one of the emulator's;
//! without it the tests are skipped.

use crate::framework::edu::Edu;
use crate::framework::fixture::{Space, new_id, spawn, with_version};
use crate::framework::tests;
use core::sync::atomic::{AtomicU64, Ordering};
use l4::ipc::{self, Message};
use l4::thread::{self, ThreadControl};
use l4::{extension, kip, syscall, utcb};
use x2::control::UNCHANGED;
use x2::extension::SpaceOption;
use x2::protocol::INTERRUPT_TAG;
use x2::{ErrorCode, IpcError, IpcErrorKind, IpcPhase, MessageTag, ThreadId, Time, Timeouts};

tests! {
    MSI0001 [EXT 3.4, 10.4] "the last interrupts are message-signalled, each with a message of its own, and no other has one" messages;
    MSI0002 [EXT 3.4] "only a privileged space is told a message" privilege;
    MSI0003 [EXT 3.5, 5.20] "a device's message is a message from its interrupt, as often as it is acknowledged" delivery;
    MSI0004 [EXT 3.5, 5.20] "an interrupt that is not received yet stays pending" pending;
    MSI0005 [EXT 3.5] "whatever comes before the acknowledgement comes after it, once" again;
    MSI0006 [EXT 3.5] "a message without a handler is lost, and does no harm" no_handler;
    MSI0007 [5.19, EXT 3.5] "a new handler gets what comes from then on, and nothing that was pending" new_handler;
    MSI0008 [5.15, 5.20] "messages come while the handler is deleted, and the next handler gets those that follow" handler_deleted;
    MSI0009 [5.19, 5.21] "association and acknowledgement have the errors of any interrupt" errors;
    MSI0010 [EXT 3.5] "a device that changes its message raises the other interrupt" other_message;
    MSI0011 [EXT 3.5] "whatever the processors of message, handler and acknowledgement: the last message is never lost" nothing_is_lost;
    MSI0012 [EXT 3.5, 3.8] "a handler that is moved about gets its interrupts" moving_handler;
}

/// A time longer than a message takes.
const LONG: Time = Time::period(2_000_000);
/// A wait that is long enough to show that an interrupt does not come.
const SHORT: Time = Time::period(20_000);

/// Message-signalled interrupt `index`.
pub(super) fn interrupt(index: u32) -> ThreadId {
    ThreadId::interrupt(kip().message_interrupts().start + index)
}

pub(super) fn processors() -> u32 {
    kip().processor_info().processors
}

/// Moves `thread` to processor `processor` modulo the number of processors.
pub(super) fn place(thread: ThreadId, processor: u32) {
    let processor = u64::from(processor % processors());
    thread::schedule(thread, UNCHANGED, processor, UNCHANGED, UNCHANGED).expect("the processor exists");
}

/// Sets up the device so that it raises interrupt `index`.
fn device(index: u32) -> (Edu, ThreadId) {
    let (device, interrupt) = (Edu::find(), interrupt(index));
    device.use_message(extension::interrupt_message(interrupt.number()).expect("it has a message"));
    (device, interrupt)
}

/// Sets up the device so that it raises interrupt `index`, with this thread as the interrupt's
/// handler.
fn attached(index: u32) -> (Edu, ThreadId) {
    let (device, interrupt) = device(index);
    thread::associate_interrupt(interrupt, utcb::my_global_id()).unwrap();
    (device, interrupt)
}

pub(super) fn expect(interrupt: ThreadId) {
    let message = ipc::receive_timeout(interrupt, LONG).expect("the interrupt comes");
    assert_eq!((message.from, message.tag), (interrupt, INTERRUPT_TAG));
}

pub(super) fn expect_none(interrupt: ThreadId) {
    let nothing = IpcError::new(IpcPhase::Receive, IpcErrorKind::Timeout);
    assert_eq!(ipc::receive_timeout(interrupt, SHORT).map(drop), Err(nothing));
}

pub(super) fn acknowledge(interrupt: ThreadId) -> ipc::Result<()> {
    ipc::send(interrupt, Message::new(0))
}

fn messages() {
    let numbers = kip().message_interrupts();
    let end = kip().thread_info().system_base;
    assert_eq!(numbers.end, end);
    assert!(numbers.start >= 16 && numbers.len() >= 8, "{numbers:?}");
    for number in numbers.clone() {
        let message = extension::interrupt_message(number).unwrap();
        assert_eq!(message.address & !0xf_f000, 0xfee0_0000, "the local APICs' addresses");
        assert!((32..=254).contains(&message.data), "a vector, by an edge");
        assert_eq!(extension::interrupt_message(number), Ok(message), "it stays the same");
        for other in numbers.start..number {
            assert_ne!(extension::interrupt_message(other), Ok(message));
        }
    }
    for number in [0, 1, numbers.start - 1, end, end + 1, u32::MAX] {
        let refused = Err(Some(ErrorCode::InvalidParameter));
        assert_eq!(extension::interrupt_message(number), refused, "{number}");
    }
    for number in [1 << 32, 1 << 32 | u64::from(numbers.start), u64::MAX] {
        let option = SpaceOption::InterruptMessage as u64;
        assert_eq!(syscall::space_options(0, option, [number, 0]), (0, [0; 2]));
        assert_eq!(utcb::error_code(), Some(ErrorCode::InvalidParameter));
    }
}

fn privilege() {
    let me = utcb::my_global_id();
    let number = interrupt(0).number();
    let thread = Space::new().spawn(move || {
        let refused = [number, 0].map(extension::interrupt_message) == [Err(Some(ErrorCode::NoPrivilege)); 2];
        ipc::send(me, Message::with_words(0, &[u64::from(refused)])).expect("the test waits");
    });
    assert_eq!(ipc::receive(thread).unwrap().word(0), 1);
}

fn delivery() {
    let (device, interrupt) = attached(0);
    device.raise();
    expect(interrupt);
    for round in 0..200 {
        let from = if round % 2 == 0 { interrupt } else { ThreadId::ANY };
        if round % 3 == 0 {
            device.raise();
            let timeouts = Timeouts::new(Time::ZERO, LONG);
            let message = ipc::ipc(interrupt, from, timeouts, MessageTag::EMPTY).expect("it comes again");
            assert_eq!((message.from, message.tag), (interrupt, INTERRUPT_TAG));
        } else {
            acknowledge(interrupt).unwrap();
            device.raise();
            let message = ipc::receive_timeout(from, LONG).expect("it comes again");
            assert_eq!((message.from, message.tag), (interrupt, INTERRUPT_TAG));
        }
    }
    thread::disassociate_interrupt(interrupt).unwrap();
}

fn pending() {
    let (device, interrupt) = attached(1);
    device.raise();
    // While the test sleeps, it receives from no thread.
    ipc::sleep(SHORT);
    let message = ipc::receive_timeout(ThreadId::ANY, Time::ZERO).expect("it is pending");
    assert_eq!(message.from, interrupt);
    thread::disassociate_interrupt(interrupt).unwrap();
}

fn again() {
    let (device, interrupt) = attached(2);
    for _ in 0..20 {
        // Interrupts that are pending and not delivered: two of them count as one.
        (0..2).for_each(|_| device.raise());
        expect(interrupt);
        // An interrupt is delivered and not acknowledged.
        (0..3).for_each(|_| device.raise());
        expect_none(interrupt);
        acknowledge(interrupt).unwrap();
        expect(interrupt);
        acknowledge(interrupt).unwrap();
        expect_none(interrupt);
    }
    thread::disassociate_interrupt(interrupt).unwrap();
}

fn no_handler() {
    let (device, interrupt) = device(3);
    // Interrupts are lost if the slot has no handler yet, or no handler any more.
    for _ in 0..2 {
        (0..10).for_each(|_| device.raise());
        ipc::sleep(SHORT);
        thread::associate_interrupt(interrupt, utcb::my_global_id()).unwrap();
        expect_none(interrupt);
        device.raise();
        expect(interrupt);
        device.raise();
        thread::disassociate_interrupt(interrupt).unwrap();
    }
}

/// Makes a thread that tells `boss` of every interrupt, with its own mark, and then acknowledges
/// it.
fn handler(interrupt: ThreadId, boss: ThreadId, mark: u64) -> ThreadId {
    spawn(move || {
        loop {
            let message = ipc::receive(interrupt).expect("an interrupt");
            assert_eq!(message.tag, INTERRUPT_TAG);
            ipc::send(boss, Message::with_words(1, &[mark])).expect("the test waits");
            // The call fails if the interrupt belongs to another thread by now.
            let _ = acknowledge(interrupt);
        }
    })
}

fn new_handler() {
    let (device, interrupt) = attached(4);
    let me = utcb::my_global_id();
    device.raise();
    ipc::sleep(SHORT);
    let handlers = [1, 2].map(|mark| handler(interrupt, me, mark));
    handlers.iter().for_each(|&thread| place(thread, 1));
    for round in 0..10 {
        let handler = handlers[round % 2];
        // An interrupt that is pending for this thread is lost.
        thread::associate_interrupt(interrupt, handler).unwrap();
        let nothing = ipc::receive_timeout(handler, SHORT).map(drop);
        assert_eq!(nothing, Err(IpcError::new(IpcPhase::Receive, IpcErrorKind::Timeout)));
        device.raise();
        let told = ipc::receive_timeout(handler, LONG).expect("the new handler tells");
        assert_eq!(told.word(0), round as u64 % 2 + 1);
        thread::associate_interrupt(interrupt, me).unwrap();
        (0..3).for_each(|_| device.raise());
        ipc::sleep(SHORT);
    }
    thread::disassociate_interrupt(interrupt).unwrap();
}

fn handler_deleted() {
    let me = utcb::my_global_id();
    for round in 0..30 {
        let (device, interrupt) = device(round % 4);
        let handler = handler(interrupt, me, 7);
        place(handler, round / 4);
        thread::associate_interrupt(interrupt, handler).unwrap();
        // The thread may be waiting for the interrupt, have it pending, or wait to tell this
        // thread.
        (0..round % 3).for_each(|_| device.raise());
        if round % 5 == 0 {
            thread::yield_now();
        }
        thread::delete(handler).unwrap();
        device.raise();
        let read = thread::schedule(interrupt, UNCHANGED, UNCHANGED, UNCHANGED, UNCHANGED).map(drop);
        assert_eq!(read, Err(Some(ErrorCode::InvalidThread)), "it has no handler");
        // When this thread has run on the processor to which the device's message goes, that
        // processor has taken the message. No fixed time would do: the processor may have to wait
        // for a busy host.
        place(me, round % 4);
        place(me, 0);
        thread::associate_interrupt(interrupt, me).unwrap();
        expect_none(interrupt);
        device.raise();
        expect(interrupt);
        thread::disassociate_interrupt(interrupt).unwrap();
    }
}

fn errors() {
    let (device, interrupt) = device(5);
    let me = utcb::my_global_id();
    let control = |id, space, pager| {
        thread::control(id, ThreadControl { space, scheduler: ThreadId::NIL, pager, utcb: None })
    };
    let wrong_version = with_version(interrupt.number(), 2);
    assert_eq!(control(wrong_version, wrong_version, me), Err(Some(ErrorCode::InvalidThread)));
    assert_eq!(control(interrupt, me, me), Err(Some(ErrorCode::InvalidSpace)));
    assert_eq!(control(interrupt, interrupt, new_id()), Err(Some(ErrorCode::InvalidThread)));
    let no_partner = Err(IpcError::new(IpcPhase::Send, IpcErrorKind::NonExistingPartner));
    let nothing = Err(IpcError::new(IpcPhase::Send, IpcErrorKind::Timeout));
    assert_eq!(acknowledge(interrupt), no_partner, "not associated");
    control(interrupt, interrupt, me).unwrap();
    assert_eq!(acknowledge(interrupt), nothing, "nothing has come");
    device.raise();
    expect(interrupt);
    let other = spawn(move || {
        let refused = acknowledge(interrupt) == no_partner;
        ipc::send(me, Message::with_words(1, &[u64::from(refused)])).unwrap();
    });
    place(other, 1);
    assert_eq!(ipc::receive(other).unwrap().word(0), 1, "another's");
    acknowledge(interrupt).unwrap();
    assert_eq!(acknowledge(interrupt), nothing, "already acknowledged");
    control(interrupt, interrupt, interrupt).unwrap();
    assert_eq!(acknowledge(interrupt), no_partner, "not associated any more");
}

fn other_message() {
    let (device, _) = device(0);
    let me = utcb::my_global_id();
    let last = kip().message_interrupts().len() as u32;
    (0..last).for_each(|index| thread::associate_interrupt(interrupt(index), me).unwrap());
    for index in (0..last).chain((0..last).rev()) {
        let interrupt = interrupt(index);
        device.use_message(extension::interrupt_message(interrupt.number()).unwrap());
        device.raise();
        let message = ipc::receive_timeout(ThreadId::ANY, LONG).expect("the interrupt comes");
        assert_eq!((message.from, message.tag), (interrupt, INTERRUPT_TAG));
        acknowledge(interrupt).unwrap();
    }
    (0..last).for_each(|index| thread::disassociate_interrupt(interrupt(index)).unwrap());
}

/// How often the device has interrupted, and the last number that the handler has read.
static RAISED: AtomicU64 = AtomicU64::new(0);
static SEEN: AtomicU64 = AtomicU64::new(0);

/// Makes a handler of `interrupt` on `processor` that stores the number that it has read.
fn watcher(interrupt: ThreadId, processor: u32) -> ThreadId {
    RAISED.store(0, Ordering::SeqCst);
    SEEN.store(0, Ordering::SeqCst);
    let handler = spawn(move || {
        let mut from = ThreadId::NIL;
        loop {
            ipc::ipc(from, interrupt, Timeouts::NEVER, MessageTag::EMPTY).expect("an interrupt");
            from = interrupt;
            SEEN.store(RAISED.load(Ordering::SeqCst), Ordering::SeqCst);
        }
    });
    place(handler, processor);
    thread::associate_interrupt(interrupt, handler).unwrap();
    handler
}

/// Raises `count` interrupts, some close together; after some it waits until the handler has seen
/// the last.
fn flood(device: Edu, count: u64, mut between: impl FnMut(u64)) {
    for number in 1..=count {
        RAISED.store(number, Ordering::SeqCst);
        device.raise();
        (0..number * 7 % 40).for_each(|_| core::hint::spin_loop());
        between(number);
        if number % 5 == 0 || number == count {
            // The loop does not end if the interrupt was lost.
            while SEEN.load(Ordering::SeqCst) != number {
                thread::yield_now();
            }
        }
    }
}

fn nothing_is_lost() {
    let me = utcb::my_global_id();
    let most = processors().min(3);
    for source in 0..most {
        for home in 0..most {
            for raiser in 0..most {
                place(me, raiser);
                let (device, interrupt) = device(source);
                let handler = watcher(interrupt, home);
                flood(device, 100, |_| {});
                thread::delete(handler).unwrap();
            }
        }
    }
}

fn moving_handler() {
    let (device, interrupt) = device(1);
    let handler = watcher(interrupt, 0);
    flood(device, 300, |number| {
        if number % 3 == 0 {
            place(handler, (number / 3) as u32);
        }
    });
    thread::disassociate_interrupt(interrupt).unwrap();
}
