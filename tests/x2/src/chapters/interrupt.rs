//! Tests of interrupts as IPC (X.2 rules 5.19-5.21). They use the interval timer as the firmware
//! leaves it, which needs no I/O ports. On a machine without it, the tests that wait for an
//! interrupt are skipped.

use crate::framework::fixture::{Space, await_state, new_id, spawn, with_version};
use crate::framework::{failure, tests};
use l4::ipc::{self, Message};
use l4::thread::{self, ThreadControl};
use l4::{extension, kip, utcb};
use x2::control::{ThreadState, UNCHANGED};
use x2::extension::ACCEPT_NOTIFICATION;
use x2::protocol::INTERRUPT_TAG;
use x2::{ErrorCode, IpcError, IpcErrorKind, IpcPhase, MessageTag, ThreadId, Time, Timeouts};

tests! {
    IRQ0001 [5.20, 12.1] "an interrupt is a message from its id, and comes again when it is acknowledged" delivery;
    IRQ0002 [5.20] "an interrupt that was not acknowledged does not come again" masked_until_acknowledged;
    IRQ0003 [5.21] "only the handler can acknowledge, and only what was delivered" acknowledge_errors;
    IRQ0004 [5.19] "association needs an interrupt id, a handler that exists and the interrupt as space" association_errors;
    IRQ0005 [3.13] "Schedule knows an interrupt only while it is associated" schedule;
    IRQ0006 [5.15] "deleting the handler ends the association" handler_deleted;
    IRQ0007 [7.3] "a closed receive from an interrupt without handler waits" closed_receive;
    IRQ0008 [5.20] "an answer takes an interrupt that was there before" pending_at_answer;
    IRQ0009 [3.8, 5.20] "interrupts reach a handler that moves from processor to processor" moving_handler;
    IRQ0010 [5.20, EXT 7.2bc] "of what waits for a thread interrupts come first, then notifications, then messages" first_of_all;
}

/// The timer's line at the I/O APIC.
const TIMER_LINE: u32 = 2;

/// A time longer than the timer's period, whatever the firmware has set.
const LONG: Time = Time::period(500_000);

/// A timeout that expires only if an interrupt never comes, however busy the host is.
const VERY_LONG: Time = Time::period(20_000_000);

fn timer() -> ThreadId {
    if TIMER_LINE >= kip().thread_info().system_base {
        failure::skip("this machine has no such interrupt line");
    }
    ThreadId::interrupt(TIMER_LINE)
}

/// Associates the timer with this thread and receives its first interrupt.
fn first_interrupt() -> ThreadId {
    let timer = timer();
    thread::associate_interrupt(timer, utcb::my_global_id()).unwrap();
    match ipc::receive_timeout(timer, VERY_LONG) {
        Ok(message) => {
            assert_eq!((message.from, message.tag), (timer, INTERRUPT_TAG));
            timer
        }
        Err(_) => {
            thread::disassociate_interrupt(timer).unwrap();
            failure::skip("the firmware leaves the interval timer off")
        }
    }
}

fn delivery() {
    let timer = first_interrupt();
    for round in 0..5 {
        let timeouts = Timeouts::new(Time::ZERO, VERY_LONG);
        let from = if round % 2 == 0 { timer } else { ThreadId::ANY };
        let message = ipc::ipc(timer, from, timeouts, MessageTag::EMPTY).expect("it comes again");
        assert_eq!((message.from, message.tag), (timer, INTERRUPT_TAG));
    }
    thread::disassociate_interrupt(timer).unwrap();
}

fn masked_until_acknowledged() {
    let timer = first_interrupt();
    let error = ipc::receive_timeout(timer, LONG).expect_err("it is masked");
    assert_eq!(error, IpcError::new(IpcPhase::Receive, IpcErrorKind::Timeout));
    // The interrupt is pending while the handler does not receive, and then delivered without
    // waiting.
    ipc::send(timer, Message::new(0)).unwrap();
    ipc::sleep(LONG);
    let message = ipc::receive_timeout(ThreadId::ANY, Time::ZERO).expect("it is pending");
    assert_eq!(message.from, timer);
    thread::disassociate_interrupt(timer).unwrap();
}

fn acknowledge_errors() {
    let me = utcb::my_global_id();
    let timer = timer();
    let error = |result: ipc::Result<()>| result.expect_err("it is refused");
    let no_partner = IpcError::new(IpcPhase::Send, IpcErrorKind::NonExistingPartner);
    assert_eq!(error(ipc::send(timer, Message::new(0))), no_partner, "not associated");
    first_interrupt();
    ipc::send(timer, Message::new(0)).unwrap();
    let other = spawn(move || {
        let error = ipc::send(timer, Message::new(0)).expect_err("it is refused");
        ipc::send(me, Message::with_words(1, &[error.raw()])).unwrap();
    });
    let result = ipc::receive(other).unwrap();
    assert_eq!(result.word(0), no_partner.raw());
    thread::associate_interrupt(timer, me).unwrap();
    let early = error(ipc::send(timer, Message::new(0)));
    assert_eq!(early, IpcError::new(IpcPhase::Send, IpcErrorKind::Timeout));
    thread::disassociate_interrupt(timer).unwrap();
}

fn association_errors() {
    let timer = timer();
    let me = utcb::my_global_id();
    let wrong_version = with_version(TIMER_LINE, 2);
    let control = |id, space, pager| {
        thread::control(id, ThreadControl { space, scheduler: ThreadId::NIL, pager, utcb: None })
    };
    assert_eq!(control(wrong_version, wrong_version, me), Err(Some(ErrorCode::InvalidThread)));
    assert_eq!(control(timer, me, me), Err(Some(ErrorCode::InvalidSpace)));
    assert_eq!(control(timer, ThreadId::NIL, ThreadId::NIL), Err(Some(ErrorCode::InvalidSpace)));
    for handler in [ThreadId::NIL, new_id(), ThreadId::ANY] {
        assert_eq!(control(timer, timer, handler), Err(Some(ErrorCode::InvalidThread)), "{handler:?}");
    }
    control(timer, timer, timer).unwrap();
}

fn schedule() {
    let timer = timer();
    let set = || thread::schedule(timer, UNCHANGED, UNCHANGED, 100, UNCHANGED).map(drop);
    assert_eq!(set(), Err(Some(ErrorCode::InvalidThread)));
    thread::associate_interrupt(timer, utcb::my_global_id()).unwrap();
    set().unwrap();
    thread::disassociate_interrupt(timer).unwrap();
    assert_eq!(set(), Err(Some(ErrorCode::InvalidThread)));
}

fn handler_deleted() {
    let timer = timer();
    let handler = Space::new().spawn(|| ipc::sleep(Time::NEVER));
    thread::associate_interrupt(timer, handler).unwrap();
    thread::delete(handler).unwrap();
    let read = thread::schedule(timer, UNCHANGED, UNCHANGED, UNCHANGED, UNCHANGED).map(drop);
    assert_eq!(read, Err(Some(ErrorCode::InvalidThread)));
}

fn closed_receive() {
    let error = ipc::receive_timeout(timer(), Time::period(1000)).expect_err("nothing comes");
    assert_eq!(error, IpcError::new(IpcPhase::Receive, IpcErrorKind::Timeout));
}

fn pending_at_answer() {
    let timer = first_interrupt();
    let me = utcb::my_global_id();
    let client = spawn(move || {
        let _ = ipc::call(me, Message::new(1));
        l4::start::halt();
    });
    assert_eq!(ipc::receive(client).unwrap().tag.label(), 1);
    ipc::send(timer, Message::new(0)).expect("it was delivered");
    // While the test sleeps, it receives no message.
    ipc::sleep(LONG);
    let next = ipc::reply_wait(client, Message::new(2)).expect("the interrupt");
    assert_eq!((next.from, next.tag), (timer, INTERRUPT_TAG));
    thread::disassociate_interrupt(timer).unwrap();
}

fn first_of_all() {
    let timer = first_interrupt();
    let me = utcb::my_global_id();
    let sender = spawn(move || ipc::send(me, Message::new(3)).expect("the test waits"));
    await_state(sender, ThreadState::PendingSend);
    extension::notify(me, 4).unwrap();
    ipc::send(timer, Message::new(0)).expect("it was delivered");
    // While the test sleeps, it receives no message.
    ipc::sleep(LONG);
    // SAFETY: the acceptor takes no mappings or strings.
    unsafe { utcb::set_buffer_register(0, ACCEPT_NOTIFICATION) };
    let order = [(); 3].map(|()| ipc::receive_timeout(ThreadId::ANY, Time::ZERO).expect("it is there").from);
    utcb::accept_untyped_words();
    assert_eq!(order, [timer, ThreadId::NIL, thread::local_id_of(sender).unwrap()]);
    thread::disassociate_interrupt(timer).unwrap();
}

/// The handler moves to another processor while its interrupt is not acknowledged, and while it
/// waits for the next, which comes by way of the old processor; and it stays there.
fn moving_handler() {
    let me = utcb::my_global_id();
    let timer = first_interrupt();
    let handler = spawn(move || {
        let mut next = ipc::receive(timer);
        loop {
            assert_eq!(next.map(|message| message.tag), Ok(INTERRUPT_TAG));
            ipc::send(me, Message::with_words(0, &[utcb::processor_number()])).unwrap();
            ipc::receive(me).unwrap();
            let timeouts = Timeouts::new(Time::ZERO, Time::NEVER);
            next = ipc::ipc(timer, timer, timeouts, MessageTag::EMPTY);
        }
    });
    thread::associate_interrupt(timer, handler).unwrap();
    let processors = u64::from(kip().processor_info().processors);
    let place = |processor| {
        thread::schedule(handler, UNCHANGED, processor, UNCHANGED, UNCHANGED).expect("the processor exists");
    };
    let acknowledge = || ipc::send(handler, Message::new(0)).unwrap();
    let (mut before, mut now) = (utcb::processor_number(), utcb::processor_number());
    for round in 0..3 * processors {
        let told = ipc::receive(handler).unwrap().word(0);
        assert!(told == now || told == before, "on {told}, not {now}");
        before = now;
        match round % 3 {
            0 => {
                now = (now + 1) % processors;
                place(now);
                before = now;
                acknowledge();
            }
            1 => {
                acknowledge();
                now = (now + 1) % processors;
                place(now);
            }
            _ => acknowledge(),
        }
    }
    thread::disassociate_interrupt(timer).unwrap();
}
