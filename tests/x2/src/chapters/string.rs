//! Tests of string items: simple and compound, buffers, overflow, page faults in the transfer,
//! transfer timeouts, aborts (X.2 rules 1.15, 1.16, 7.11-7.13, 7.21-7.31; ABI 8, 11.6).

pub(super) mod boundaries;
mod support;

use crate::framework::arena;
use crate::framework::fixture::{Space, await_state, image_fault_answer, spawn, state_of};
use crate::framework::tests;
use core::sync::atomic::Ordering;
use l4::ipc::{self, Message};
use l4::{thread, utcb};
use x2::control::ThreadState;
use x2::message::StringDescriptor;
use x2::{Acceptor, Fpage, IpcErrorKind, MapItem, MessageTag, Rights, ThreadId, Time, Timeouts};

use support::*;

tests! {
    STR0001 [7.29, 7.30, 13.3, ABI 8] "a string arrives in the receiver's buffer, within a space and from another" simple;
    STR0002 [7.29, 7.30] "pieces of any sizes go to pieces of any sizes, in order" compound;
    STR0003 [7.26b, 7.29] "each string goes to a buffer of its own, and the rest of a buffer stays as it was" several;
    STR0004 [7.13, 7.12a] "a string for a receiver that accepts none overflows; the words before it arrive" not_accepted;
    STR0005 [7.13, 7.11, 7.12b] "a second string without a buffer overflows behind the first" no_second_buffer;
    STR0006 [7.13, 7.11] "a buffer that is too small is filled" too_small;
    STR0007 [7.29] "a string without bytes uses up a buffer" empty;
    STR0008 [7.13] "a string item that is longer than its message overflows" beyond_the_message;
    STR0009 [7.13, 11.8] "items of no kind overflow" unknown_items;
    STR0010 [7.22] "the sender faults at every page of a string, and the string arrives" sender_faults;
    STR0011 [7.22] "the receiver faults at every page of a buffer, and the string arrives" receiver_faults;
    STR0012 [7.22] "both sides fault at every page" both_fault;
    STR0013 [7.22] "a page that may only be read is a fault of the receiver" read_only_buffer;
    STR0014 [1.16] "with a transfer timeout of zero the first fault ends the transfer, on either side" zero_timeout;
    STR0015 [1.16] "with a transfer timeout of zero a transfer without faults succeeds" zero_timeout_without_fault;
    STR0016 [1.16, 1.9a] "a period and a point end a transfer whose pager is silent, not before their time" finite_timeouts;
    STR0017 [7.24, 1.15] "the error tells whose timeout it was" whose_timeout;
    STR0018 [5.27, 7.11] "the sender's transfer is aborted, on both sides, with the bytes moved" abort;
    STR0019 [5.34] "a pager that goes ends the transfer" pager_goes;
    STR0020 [5.15] "a partner that goes ends the transfer and the fault" partner_goes;
    STR0021 [12.3] "the other words of a message are as they were after faults" words_are_kept;
    STR0022 [1.15, 7.29] "a call with strings in both directions" call;
    STR0023 [7.27] "map items before and after a string are performed in their order" with_map_items;
    STR0024 [7.28] "cache hints change nothing" cache_hints;
    STR0025 [7.31] "a string to overlapping memory below is copied upwards" overlapping;
    STR0026 [1.13] "IPC timeouts do not bound a transfer that has begun" timeouts_end_with_the_wait;
    STR0027 [3.12bc] "of a transfer that waits for a pager one side is sending or receiving, and the other, which faults, runs" states;
}

fn simple() {
    let (from, to) = (Area::new().fill(1), Area::new());
    for (offset, size) in [(0, 1), (1, 7), (5, 4096), (4090, 20), (3, 20_000)] {
        let partner = receiver(None, simple_words(to.0 + 2 * offset, size), Timeouts::NEVER);
        let message = Message::with_words(9, &[42]).typed_words(&simple_words(from.0 + offset, size));
        assert_eq!(send_noted(partner, message), None);
        assert_eq!((got(0), got_word(0)), (0, MessageTag::new(9, 1, 2).raw()));
        assert_eq!((got_word(1), got_word(2), got_word(3)), (42, size << 10, to.0 + 2 * offset));
        to.check(2 * offset, size, 1, offset);
    }
    let to = Area::new();
    let far =
        sender(pager(64), Timeouts::NEVER, move || Message::new(3).typed_words(&simple_words(from.0, 9000)));
    let buffer = simple_words(to.0 + 1, 9000);
    let received = receive(far, &buffer).expect("the string");
    assert_eq!([1, 2].map(utcb::buffer_register), buffer);
    assert_eq!(received.tag, MessageTag::new(3, 0, 2));
    to.check(1, 9000, 1, 0);
    assert_eq!(senders_error(far), 0);
}

fn compound() {
    let (from, to) = (Area::new().fill(2), Area::new());
    // The string has two descriptors: three pieces of 100 bytes, two of 1000. They go to pieces of
    // 50, 50, 2000 and 400 bytes.
    let pieces = [0, 500, 1000, 2000, 4000].map(|offset| from.0 + offset);
    let send = [
        StringDescriptor::new(100, 3, true).raw(),
        pieces[0],
        pieces[1],
        pieces[2],
        StringDescriptor::new(1000, 2, false).raw(),
        pieces[3],
        pieces[4],
    ];
    let buffers = [
        StringDescriptor::new(50, 2, true).raw(),
        to.0,
        to.0 + 100,
        StringDescriptor::new(1900, 1, true).raw(),
        to.0 + 1000,
        StringDescriptor::new(400, 1, false).raw(),
        to.0 + 5000,
    ];
    let partner = receiver(None, buffers, Timeouts::NEVER);
    assert_eq!(send_noted(partner, Message::new(1).typed_words(&send)), None);
    to.check(0, 50, 2, 0);
    to.check(100, 50, 2, 50);
    to.check(1000, 100, 2, 500);
    to.check(1100, 100, 2, 1000);
    to.check(1200, 1000, 2, 2000);
    to.check(2200, 700, 2, 4000);
    to.check(5000, 300, 2, 4700);
    assert_eq!(got_word(1), send[0]);
    // If a substring arrives in one piece, its pointer says where; the pointers of others are 0.
    let pointers = [2, 3, 4, 6, 7].map(got_word);
    assert_eq!(pointers, [0, to.0 + 1000, to.0 + 1100, to.0 + 1200, 0]);
}

fn several() {
    let (from, to) = (Area::new().fill(3), Area::new().fill(4));
    let mut buffers = [0; 6];
    for (index, buffer) in buffers.chunks_exact_mut(2).enumerate() {
        let descriptor = StringDescriptor::new(1000, 1, false).with_continues(index < 2);
        buffer.copy_from_slice(&[descriptor.raw(), to.0 + 2000 * index as u64]);
    }
    let partner = receiver(None, buffers, Timeouts::NEVER);
    let message = [(10, 300), (700, 1000), (5000, 1)]
        .into_iter()
        .fold(Message::new(1), |message, (at, size)| message.typed_words(&simple_words(from.0 + at, size)));
    assert_eq!(send_noted(partner, message), None);
    for (index, (at, size)) in [(10, 300), (700, 1000), (5000, 1)].into_iter().enumerate() {
        let place = 2000 * index as u64;
        to.check(place, size, 3, at);
        to.check(place + size, 1000 - size, 4, place + size);
        assert_eq!(got_word(1 + 2 * index), size << 10 | u64::from(index < 2), "bit C in all but the last");
        assert_eq!(got_word(2 + 2 * index), to.0 + place);
    }
}

fn not_accepted() {
    let from = Area::new().fill(5);
    let me = utcb::my_global_id();
    let partner = spawn(move || {
        utcb::accept_untyped_words();
        let error = ipc::receive(me).map_or_else(|error| error.raw(), |_| 0);
        let words = [error, utcb::message_register(0), utcb::message_register(1), utcb::message_register(3)];
        ipc::send(me, Message::with_words(1, &words)).unwrap();
    });
    await_state(partner, ThreadState::Waiting);
    let message = Message::with_words(6, &[0x99]).typed_words(&simple_words(from.0, 10));
    assert_eq!(ipc::send(partner, message).err(), send_error(IpcErrorKind::MessageOverflow, 0));
    let tag = MessageTag::new(6, 1, 2).with_error(true);
    assert_eq!(utcb::message_register(0), tag.raw());
    let told = ipc::receive(partner).unwrap();
    let expected = [receive_error(IpcErrorKind::MessageOverflow, 0), tag.raw(), 0x99, 0];
    assert_eq!([0, 1, 2, 3].map(|index| told.word(index)), expected);
}

fn no_second_buffer() {
    let (from, to) = (Area::new().fill(6), Area::new());
    let partner = receiver(None, simple_words(to.0, 3000), Timeouts::NEVER);
    let message =
        Message::new(1).typed_words(&simple_words(from.0, 2500)).typed_words(&simple_words(from.0, 5));
    assert_eq!(send_noted(partner, message), send_error(IpcErrorKind::MessageOverflow, 2500));
    assert_eq!(got(0), receive_error(IpcErrorKind::MessageOverflow, 2500));
    to.check(0, 2500, 6, 0);
}

fn too_small() {
    let (from, to) = (Area::new().fill(7), Area::new().fill(8));
    let partner = receiver(None, simple_words(to.0, 252), Timeouts::NEVER);
    let message = Message::new(1).typed_words(&simple_words(from.0, 256));
    assert_eq!(send_noted(partner, message), send_error(IpcErrorKind::MessageOverflow, 252));
    assert_eq!(got(0), receive_error(IpcErrorKind::MessageOverflow, 252));
    to.check(0, 252, 7, 0);
    to.check(252, 100, 8, 252);
}

fn empty() {
    let (from, to) = (Area::new().fill(9), Area::new());
    let first = [StringDescriptor::new(100, 1, false).with_continues(true).raw(), to.0];
    let second = simple_words(to.0 + 1000, 100);
    let partner = receiver(None, [first[0], first[1], second[0], second[1]], Timeouts::NEVER);
    let message =
        Message::new(1).typed_words(&simple_words(from.0, 0)).typed_words(&simple_words(from.0, 50));
    assert_eq!(send_noted(partner, message), None);
    to.check(1000, 50, 9, 0);
    assert_eq!(to.read(0), 0);
}

fn beyond_the_message() {
    let (from, to) = (Area::new().fill(10), Area::new());
    let missing_pointer = StringDescriptor::new(10, 2, false).raw();
    let missing_descriptor = StringDescriptor::new(10, 1, true).raw();
    for word in [missing_pointer, missing_descriptor] {
        let partner = receiver(None, simple_words(to.0, 100), Timeouts::NEVER);
        let message = Message::new(1).typed_words(&[word, from.0]);
        assert_eq!(send_noted(partner, message), send_error(IpcErrorKind::MessageOverflow, 0));
        assert_eq!((got(0), to.read(0)), (receive_error(IpcErrorKind::MessageOverflow, 0), 0));
    }
}

fn unknown_items() {
    let to = Area::new();
    for kind in [0xc, 0xe] {
        let partner = receiver(None, simple_words(to.0, 100), Timeouts::NEVER);
        let message = Message::new(1).typed_words(&[kind, 0]);
        assert_eq!(send_noted(partner, message), send_error(IpcErrorKind::MessageOverflow, 0));
    }
}

/// The offset and the length of the strings in the tests of page faults: a string lies in five
/// pages, and neither end is on a page boundary.
const START: u64 = 300;
const LENGTH: u64 = 4 * 4096 + 100;

/// The page faults that such a string at `base` must cause, in order.
fn expected_faults(base: u64, write: bool) -> impl Iterator<Item = u64> {
    let first = base + START;
    let rest = (1..=4).map(move |page| base + 4096 * page);
    core::iter::once(first).chain(rest).map(move |address| address & !1 | u64::from(write))
}

fn sender_faults() {
    let (from, to) = (Area::new().fill(11), Area::new());
    let far = sender(pager(64), Timeouts::NEVER, move || {
        Message::with_words(4, &[1]).typed_words(&simple_words(from.0 + START, LENGTH))
    });
    let received = receive(far, &simple_words(to.0 + 77, LENGTH)).expect("the string");
    assert_eq!(received.from, far);
    to.check(77, LENGTH, 11, START);
    assert!(faults().eq(expected_faults(from.0, false)));
    assert_eq!(senders_error(far), 0);
}

fn receiver_faults() {
    let (from, to) = (Area::new().fill(12), Area::new());
    let space = Space::new();
    let partner = receiver(Some((&space, pager(64))), simple_words(to.0 + START, LENGTH), Timeouts::NEVER);
    assert_eq!(send_noted(partner, Message::new(4).typed_words(&simple_words(from.0 + 77, LENGTH))), None);
    assert_eq!((got(0), got_word(2)), (0, to.0 + START));
    to.check(START, LENGTH, 12, 77);
    assert!(faults().eq(expected_faults(to.0, true)));
}

fn both_fault() {
    let (from, to) = (Area::new().fill(13), Area::new());
    let pager = pager(64);
    let me = utcb::my_global_id();
    let receiving = Space::new().spawn_paged_by(pager, move || {
        let from = ipc::receive(me).expect("the sender's id").word(0);
        accept(&simple_words(to.0 + START, LENGTH));
        let result = ipc::receive(ThreadId::from_raw(from));
        ipc::send(me, Message::with_words(result.is_ok().into(), &[])).unwrap();
    });
    let sending = Space::new().spawn_paged_by(pager, move || {
        let message = Message::new(4).typed_words(&simple_words(from.0 + START + 1, LENGTH));
        ipc::send(receiving, message).expect("it arrives");
    });
    ipc::send(receiving, Message::with_words(0, &[sending.raw()])).unwrap();
    assert_eq!(ipc::receive(receiving).unwrap().tag.label(), 1);
    to.check(START, LENGTH, 13, START + 1);
    assert_eq!(faults().filter(|fault| fault & 1 == 0).count(), 5);
    assert_eq!(faults().filter(|fault| fault & 1 == 1).count(), 5);
}

fn read_only_buffer() {
    let (from, to) = (Area::new().fill(14), Area::new());
    let (space, pager) = (Space::new(), pager(64));
    let me = utcb::my_global_id();
    let partner = space.spawn_paged_by(pager, move || {
        // SAFETY: the memory belongs to the arena.
        unsafe { utcb::accept(Acceptor::new(Fpage::memory(to.0, 12), false)) };
        ipc::receive(me).expect("the page, to be read");
        receive_and_note(me, &simple_words(to.0, 64), Timeouts::NEVER);
    });
    let item = MapItem::map(Fpage::memory(to.0, 12).with_rights(Rights::READ), to.0);
    ipc::send(partner, Message::new(0).map_item(item)).unwrap();
    assert_eq!(send_noted(partner, Message::new(4).typed_words(&simple_words(from.0, 64))), None);
    to.check(0, 64, 14, 0);
    assert!(faults().eq([to.0 | 1]));
}

fn zero_timeout() {
    let (from, to) = (Area::new().fill(15), Area::new());
    let zero = Timeouts::ZERO;
    // Only the first of the two pages is present.
    let far = sender(pager(1), zero, move || {
        crate::framework::arena::read_at(from.0);
        Message::new(4).typed_words(&simple_words(from.0, LENGTH))
    });
    let error = receive(far, &simple_words(to.0, LENGTH)).expect_err("the second page is missing");
    assert_eq!(error.raw(), receive_error(IpcErrorKind::XferTimeoutPartner, 4096));
    assert_eq!(utcb::message_register(0), MessageTag::new(4, 0, 2).with_error(true).raw());
    assert_eq!(senders_error(far), send_error(IpcErrorKind::XferTimeoutOwn, 4096).unwrap().raw());
    to.check(0, 4096, 15, 0);
    assert!(faults().eq([from.0]), "the pager is not told");
    let space = Space::new();
    let partner = receiver(Some((&space, pager(64))), simple_words(to.0 + START, LENGTH), zero);
    let message = Message::new(4).typed_words(&simple_words(from.0, LENGTH));
    assert_eq!(send_noted(partner, message), send_error(IpcErrorKind::XferTimeoutPartner, 0));
    assert_eq!(got(0), receive_error(IpcErrorKind::XferTimeoutOwn, 0));
    assert_eq!(faults().count(), 0);
}

fn zero_timeout_without_fault() {
    let (from, to) = (Area::new().fill(16), Area::new());
    let partner = receiver(None, simple_words(to.0, LENGTH), Timeouts::ZERO);
    utcb::set_xfer_timeouts(Timeouts::ZERO);
    let message = Message::new(4).typed_words(&simple_words(from.0 + 5, LENGTH));
    assert_eq!(send_noted(partner, message), None);
    to.check(0, LENGTH, 16, 5);
}

fn finite_timeouts() {
    let (from, to) = (Area::new().fill(17), Area::new());
    for point in [false, true] {
        // On a busy host a timeout may expire before the faults have been answered; then a longer
        // timeout is tried.
        let waits = (0..10).map(|attempt| 20_000 << attempt);
        let ended = waits.map(|wait| end_by_timeout(from, to, wait, point)).find(|&ended| ended);
        assert_eq!(ended, Some(true), "the third fault is met");
    }
}

/// Makes a transfer whose timeout is `wait` microseconds, as a point in time or as a period. The
/// pager does not answer the third page fault. Returns whether the transfer ended at that fault.
fn end_by_timeout(from: Area, to: Area, wait: u64, point: bool) -> bool {
    let silent = pager(2);
    let before = thread::system_clock();
    let time = move || {
        let now = thread::system_clock();
        if point { Time::point(now, now + wait).expect("near") } else { Time::period(wait) }
    };
    let far = sender(silent, Timeouts::NEVER, move || {
        utcb::set_xfer_timeouts(Timeouts::new(time(), Time::NEVER));
        Message::new(4).typed_words(&simple_words(from.0 + START, LENGTH))
    });
    let error = receive(far, &simple_words(to.0, LENGTH)).expect_err("the pager is silent");
    // A timeout to a point in time may expire up to one of its units early.
    let step = (wait >> 10).max(32);
    assert!(thread::system_clock() - before >= wait - step);
    let (is_third, moved) = (faults().count() == 3, error.offset);
    assert!(!is_third || moved == 2 * 4096 - START, "{moved} bytes are moved");
    assert_eq!(error.raw(), receive_error(IpcErrorKind::XferTimeoutPartner, moved));
    assert_eq!(senders_error(far), send_error(IpcErrorKind::XferTimeoutOwn, moved).unwrap().raw());
    to.check(0, moved, 17, START);
    is_third
}

fn whose_timeout() {
    let (from, to) = (Area::new().fill(18), Area::new());
    let long = Time::period(5_000_000);
    let short = Time::period(10_000);
    let own = IpcErrorKind::XferTimeoutOwn;
    let partners = IpcErrorKind::XferTimeoutPartner;
    // The sender faults. Error 5 is for the thread whose timeout is smaller; if they are equal, for
    // the sender.
    for (sends, receives, expected) in [
        (short, long, partners),
        (long, short, own),
        (short, Time::NEVER, partners),
        (Time::NEVER, short, own),
    ] {
        let far = sender(pager(0), Timeouts::new(sends, Time::ZERO), move || {
            Message::new(4).typed_words(&simple_words(from.0, 100))
        });
        utcb::set_xfer_timeouts(Timeouts::new(Time::ZERO, receives));
        let error = receive(far, &simple_words(to.0, 100)).expect_err("no thread answers");
        assert_eq!(error.raw(), receive_error(expected, 0), "{sends:?} {receives:?}");
        let other = if expected == own { partners } else { own };
        assert_eq!(senders_error(far), send_error(other, 0).unwrap().raw());
    }
}

/// Waits until the pager has recorded `count` faults.
fn await_faults(count: u64) {
    while FAULT_COUNT.load(Ordering::Relaxed) < count {
        ipc::sleep(Time::period(500));
    }
}

fn abort() {
    let (from, to) = (Area::new().fill(19), Area::new());
    let me = utcb::my_global_id();
    // The receiver is in the test's space, so that the test can abort its IPC; the sender's pager
    // is, too.
    for abort_receiver in [false, true] {
        let silent = pager(1);
        let partner = spawn(move || {
            let from = ipc::receive(me).expect("the sender's id").word(0);
            accept(&simple_words(to.0, LENGTH));
            let error = ipc::receive(ThreadId::from_raw(from)).map_or_else(|error| error.raw(), |_| 0);
            ipc::send(me, Message::with_words(1, &[error])).unwrap();
        });
        let far = Space::new().spawn_paged_by(silent, move || {
            let message = Message::new(4).typed_words(&simple_words(from.0, LENGTH));
            let error = ipc::send(partner, message).map_or_else(|error| error.raw(), |()| 0);
            ipc::send(me, Message::with_words(1, &[error])).unwrap();
        });
        ipc::send(partner, Message::with_words(0, &[far.raw()])).unwrap();
        await_faults(2);
        let before = thread::abort_ipc(if abort_receiver { partner } else { far }).expect("in reach");
        assert!(if abort_receiver { before.state.receiving } else { before.state.sending });
        let mut errors = [0; 2];
        for _ in 0..2 {
            let told = ipc::wait().expect("both tell");
            errors[usize::from(told.from == far)] = told.word(0);
        }
        assert_eq!(errors[0], receive_error(IpcErrorKind::Aborted, 4096));
        assert_eq!(errors[1], send_error(IpcErrorKind::Aborted, 4096).unwrap().raw());
    }
}

fn states() {
    let (from, to) = (Area::new().fill(22), Area::new());
    let me = utcb::my_global_id();
    // First the sender's string is not mapped and its pager does not answer; then the same is true
    // of the receiver's buffer.
    for receiver_faults in [false, true] {
        let silent = pager(0);
        let far = Space::new();
        let receive = move || {
            let sender = ipc::receive(me).expect("the sender's id").word(0);
            accept(&simple_words(to.0, LENGTH));
            let _ = ipc::receive(ThreadId::from_raw(sender));
        };
        let receiver = if receiver_faults { far.spawn_paged_by(silent, receive) } else { spawn(receive) };
        let send = move || {
            let _ = ipc::send(receiver, Message::new(4).typed_words(&simple_words(from.0, LENGTH)));
        };
        let sender = if receiver_faults { spawn(send) } else { far.spawn_paged_by(silent, send) };
        ipc::send(receiver, Message::with_words(0, &[sender.raw()])).unwrap();
        await_faults(1);
        let expected = if receiver_faults {
            [ThreadState::Sending, ThreadState::Running]
        } else {
            [ThreadState::Running, ThreadState::Receiving]
        };
        assert_eq!([sender, receiver].map(state_of), expected);
    }
}

fn pager_goes() {
    let (from, to) = (Area::new().fill(20), Area::new());
    let silent = pager(1);
    let far =
        sender(silent, Timeouts::NEVER, move || Message::new(4).typed_words(&simple_words(from.0, LENGTH)));
    spawn(move || {
        await_faults(2);
        thread::delete(silent).unwrap();
    });
    let error = receive(far, &simple_words(to.0, LENGTH)).expect_err("the pager goes");
    assert_eq!(error.raw(), receive_error(IpcErrorKind::Aborted, 4096));
    await_state(far, ThreadState::Inactive);
}

fn partner_goes() {
    let (from, to) = (Area::new().fill(21), Area::new());
    let me = utcb::my_global_id();
    for sender_goes in [false, true] {
        let silent = pager(1);
        let (error_of_far, error_of_near) = (&GOT[0], &GOT[1]);
        let partner = spawn(move || {
            let from = ipc::receive(me).expect("the sender's id").word(0);
            accept(&simple_words(to.0, LENGTH));
            let error = ipc::receive(ThreadId::from_raw(from)).map_or_else(|error| error.raw(), |_| 0);
            error_of_near.store(error, Ordering::Relaxed);
            ipc::send(me, Message::new(1)).unwrap();
        });
        let far = Space::new().spawn_paged_by(silent, move || {
            let message = Message::new(4).typed_words(&simple_words(from.0, LENGTH));
            let error = ipc::send(partner, message).map_or_else(|error| error.raw(), |()| 0);
            error_of_far.store(error, Ordering::Relaxed);
            ipc::send(me, Message::new(1)).unwrap();
        });
        ipc::send(partner, Message::with_words(0, &[far.raw()])).unwrap();
        await_faults(2);
        thread::delete(if sender_goes { far } else { partner }).unwrap();
        ipc::wait().expect("the other goes on");
        let expected = if sender_goes {
            receive_error(IpcErrorKind::Aborted, 4096)
        } else {
            send_error(IpcErrorKind::Aborted, 4096).unwrap().raw()
        };
        assert_eq!(if sender_goes { got(1) } else { got(0) }, expected);
    }
}

fn words_are_kept() {
    let (from, to) = (Area::new().fill(22), Area::new());
    let space = Space::new();
    let partner = receiver(Some((&space, pager(64))), simple_words(to.0 + START, LENGTH), Timeouts::NEVER);
    let message = (0..61).fold(Message::new(5), |message, word| message.word(word * 0x1234_5678));
    let message = message.typed_words(&simple_words(from.0, LENGTH));
    assert_eq!(send_noted(partner, message), None);
    for word in 0..61 {
        assert_eq!(got_word(1 + word), word as u64 * 0x1234_5678);
    }
    assert_eq!(got_word(63), to.0 + START);
}

fn call() {
    let (from, to, back) = (Area::new().fill(23), Area::new(), Area::new());
    let me = utcb::my_global_id();
    let server = Space::new().spawn_paged_by(pager(64), move || {
        accept(&simple_words(to.0, LENGTH));
        ipc::receive(me).expect("a request");
        let answer = Message::new(2).typed_words(&simple_words(to.0 + 10, LENGTH - 10));
        ipc::send(me, answer).expect("the client waits");
    });
    await_state(server, ThreadState::Waiting);
    accept(&simple_words(back.0 + 3, LENGTH));
    let answer = ipc::call(server, Message::new(1).typed_words(&simple_words(from.0 + 1, LENGTH))).unwrap();
    assert_eq!(answer.tag, MessageTag::new(2, 0, 2));
    back.check(3, LENGTH - 10, 23, 11);
    utcb::accept_untyped_words();
}

fn with_map_items() {
    const WINDOW: u64 = 0x5000_0000_0000;
    let (from, to, pages) = (Area::new().fill(24), Area::new(), [arena::page(), arena::page()]);
    pages.iter().enumerate().for_each(|(index, page)| page.write(0, 0x100 + index as u64));
    let me = utcb::my_global_id();
    let partner = Space::new().spawn_paged_by(pager(64), move || {
        accept(&simple_words(to.0, 100));
        // SAFETY: no Rust object lies in the window.
        unsafe { utcb::accept(Acceptor::new(Fpage::memory(WINDOW, 13), true)) };
        ipc::receive(me).expect("three items");
        let words = [0, 1].map(|page| arena::read_at(WINDOW + 4096 * page));
        ipc::send(me, Message::with_words(1, &words)).unwrap();
    });
    await_state(partner, ThreadState::Waiting);
    let item = |index: usize| MapItem::map(pages[index].fpage(Rights::READ), 4096 * index as u64);
    let message = Message::new(1).map_item(item(0)).typed_words(&simple_words(from.0, 100)).map_item(item(1));
    ipc::send(partner, message).expect("it arrives");
    let told = ipc::receive(partner).unwrap();
    assert_eq!([told.word(0), told.word(1)], [0x100, 0x101]);
    to.check(0, 100, 24, 0);
}

fn cache_hints() {
    let (from, to) = (Area::new().fill(25), Area::new());
    for hint in 1..4 {
        let hinted = |words: [u64; 2]| [words[0] | hint << 1, words[1]];
        let partner = receiver(None, hinted(simple_words(to.0, 100)), Timeouts::NEVER);
        let message = Message::new(1).typed_words(&hinted(simple_words(from.0 + hint, 100)));
        assert_eq!(send_noted(partner, message), None);
        to.check(0, 100, 25, hint);
    }
}

fn overlapping() {
    let area = Area::new().fill(26);
    for distance in [1, 8, 100, 4096] {
        let area = area.fill(26);
        let partner = receiver(None, simple_words(area.0, 12_000), Timeouts::NEVER);
        let message = Message::new(1).typed_words(&simple_words(area.0 + distance, 12_000));
        assert_eq!(send_noted(partner, message), None);
        area.check(0, 12_000, 26, distance);
    }
}

fn timeouts_end_with_the_wait() {
    let (from, to) = (Area::new().fill(27), Area::new());
    let me = utcb::my_global_id();
    // The pager delays the first page until the IPC timeouts of both sides have expired.
    const SEND: u64 = 1_000_000;
    let slow = spawn(move || {
        let mut is_first = true;
        loop {
            let mut request = ipc::wait().unwrap();
            loop {
                let answer = image_fault_answer(request).unwrap_or_else(|| {
                    let address = request.word(0);
                    if core::mem::take(&mut is_first) {
                        ipc::sleep(Time::period(SEND + SEND / 4));
                    }
                    let page = Fpage::memory(address & !0xfff, 12).with_rights(Rights::ALL);
                    Message::new(0).map_item(MapItem::map(page, address & !0xfff))
                });
                match ipc::ipc(request.from, ThreadId::ANY, Timeouts::NEVER, answer.tag()) {
                    Ok(next) => request = next,
                    Err(_) => break,
                }
            }
        }
    });
    let far = Space::new().spawn_paged_by(slow, move || {
        let message = Message::new(3).typed_words(&simple_words(from.0, 9000));
        let sent = ipc::send_timeout(me, message, Time::period(SEND));
        ipc::send(me, Message::with_words(1, &[sent.map_or_else(|error| error.raw(), |()| 0)])).unwrap();
    });
    await_state(far, ThreadState::PendingSend);
    accept(&simple_words(to.0, 9000));
    let received = ipc::receive_timeout(far, Time::period(1000)).expect("it has begun");
    assert_eq!(received.tag.label(), 3);
    utcb::accept_untyped_words();
    to.check(0, 9000, 27, 0);
    assert_eq!(ipc::receive(far).unwrap().word(0), 0);
}
