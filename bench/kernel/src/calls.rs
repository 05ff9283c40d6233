//! Benchmarks of the system calls other than IPC.

use crate::{fixture, measure};
use l4::ipc::{self, Message};
use l4::{kip, start, thread, utcb};
use x2::ThreadId;
use x2::control::UNCHANGED;

/// Gives the processor back whenever it gets it.
extern "C" fn switch_back() -> ! {
    loop {
        thread::switch_to(kip().root());
    }
}

/// Sends the root task a message as soon as the thread runs.
extern "C" fn tell() -> ! {
    let _ = ipc::send(kip().root(), Message::new(1));
    start::halt()
}

/// Measures a switch to another thread and back.
fn switches() {
    for (test, partner) in [
        ("thread-switch-round-trip-within-a-space", fixture::here(switch_back)),
        ("thread-switch-round-trip-across-spaces", fixture::elsewhere(switch_back)),
    ] {
        measure(test, || thread::switch_to(partner));
        thread::delete(partner).expect("deletion never fails");
    }
}

/// The calls that are mostly made to read something, where they change something.
fn changes() {
    let partner = fixture::here(switch_back);
    thread::stop(partner).expect("a thread of this space");
    measure("exchange-registers-stop-and-resume", || {
        thread::resume(partner).expect("a thread of this space");
        thread::stop(partner).expect("a thread of this space");
    });
    measure("schedule-priority", || thread::set_priority(partner, 1).expect("this is its scheduler"));
    thread::delete(partner).expect("deletion never fails");
}

pub(crate) fn run() {
    measure("thread-switch-nil", thread::yield_now);
    switches();
    measure("system-clock", || {
        thread::system_clock();
    });
    let me = utcb::my_local_id();
    measure("exchange-registers-id", || {
        thread::inspect(me).expect("this thread");
    });
    let me = utcb::my_global_id();
    measure("schedule-read", || {
        thread::schedule(me, UNCHANGED, UNCHANGED, UNCHANGED, UNCHANGED).expect("this thread");
    });
    changes();
    let (id, index) = fixture::new_id();
    let active = fixture::arguments(me, Some(fixture::utcb_beside_own()));
    measure("thread-create-delete-active", || {
        thread::control(id, active).expect("a new thread");
        thread::delete(id).expect("deletion never fails");
    });
    measure("thread-create-start-delete", || {
        thread::control(id, active).expect("a new thread");
        fixture::start_at(id, index, tell);
        ipc::receive(id).expect("it runs");
        thread::delete(id).expect("deletion never fails");
    });
    let inactive = fixture::arguments(me, None);
    measure("thread-create-delete-inactive", || {
        thread::control(id, inactive).expect("a new thread");
        thread::delete(id).expect("deletion never fails");
    });
    let space = fixture::arguments(id, None);
    measure("space-create-delete", || {
        thread::control(id, space).expect("a new space");
        thread::delete(id).expect("deletion never fails");
    });
    measure("space-create-activate-delete", || {
        thread::control(id, space).expect("a new space");
        fixture::arrange(id);
        thread::delete(id).expect("deletion never fails");
    });
    measure("thread-control-refused", || {
        thread::control(ThreadId::NIL, inactive).expect_err("nilthread cannot be made");
    });
}
