//! The other system calls.

use crate::{fixture, measure};
use l4::thread;
use l4::utcb;
use x2::ThreadId;
use x2::control::UNCHANGED;

pub(crate) fn run() {
    measure("thread-switch-nil", thread::yield_now);
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
    let (id, index) = fixture::new_id();
    let active = fixture::arguments(me, Some(fixture::own_utcb(index)));
    measure("thread-create-delete-active", || {
        thread::control(id, active).expect("a new thread");
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
    measure("thread-control-refused", || {
        thread::control(ThreadId::NIL, inactive).expect_err("nilthread cannot be made");
    });
}
