//! Tests of threads that are looked up on one processor while another creates and deletes them: a
//! call must find an existing thread, or none.

use super::{await_growth, place};
use crate::framework::fixture::{await_state, new_id, new_root_utcb, spawn, spawn_as};
use core::arch::naked_asm;
use core::sync::atomic::{AtomicU64, Ordering};
use l4::ipc::{self, Message};
use l4::thread::{self, ThreadControl};
use l4::utcb;
use x2::control::{ThreadState, UNCHANGED};
use x2::{ErrorCode, ThreadId, Time, Timeouts};

/// The code of a thread that runs for ever and needs nothing, not even a stack.
#[unsafe(naked)]
extern "C" fn spin() -> ! {
    naked_asm!("2: pause", "jmp 2b")
}

/// Makes `id`, whose UTCB is at `location`, a thread of lowest priority that runs on `processor`.
fn make(id: ThreadId, location: u64, processor: u64) {
    let me = utcb::my_global_id();
    let arguments = ThreadControl { space: me, scheduler: me, pager: me, utcb: Some(location) };
    thread::control(id, arguments).expect("the number is free");
    let start = [spin as *const () as u64, location];
    ipc::send(id, Message::with_words(0, &start)).expect("it awaits its start");
    thread::schedule(id, UNCHANGED, UNCHANGED, 1, UNCHANGED).expect("it is there");
    place(id, processor);
}

static FOUND: AtomicU64 = AtomicU64::new(0);

/// A thread is looked up by its local id from its own processor while another processor deletes it.
pub(super) fn lookups_of_the_deleted() {
    const ROUNDS: u64 = 40;
    let (id, location) = (new_id(), new_root_utcb());
    let local = ThreadId::local(location + x2::utcb::MR0_OFFSET);
    let seeker = spawn(move || {
        loop {
            match thread::inspect(local) {
                Ok(found) => {
                    assert_eq!((found.id, found.handle), (id, 0), "it is the thread with this id");
                    FOUND.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => assert_eq!(error, Some(ErrorCode::InvalidThread)),
            }
        }
    });
    place(seeker, 1);
    place(utcb::my_global_id(), 0);
    for _ in 0..ROUNDS {
        make(id, location, 1);
        await_growth(&FOUND, 3);
        thread::delete(id).expect("nothing else deletes it");
    }
}

/// The present id of the receiver.
static ID: AtomicU64 = AtomicU64::new(0);
static RECEIVED: AtomicU64 = AtomicU64::new(0);

/// A receiver on one processor gets one id after another; a sender on another processor says in
/// each message for which it is. The receiver has a higher priority than the thread that changes
/// its id, and both stay on one processor. So the receiver checks a message before its id changes
/// again.
pub(super) fn ids_that_change() {
    const CHANGES: u32 = 4000;
    let me = place(utcb::my_global_id(), 0);
    let first = new_id();
    spawn_as(first, || {
        loop {
            // The wait also ends when the id changes.
            if let Ok(message) = ipc::wait() {
                assert_eq!(message.word(0), utcb::my_global_id().raw(), "it is for another id");
                RECEIVED.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    thread::set_priority(first, 200).expect("it is there");
    place(first, 1);
    await_state(first, ThreadState::Waiting);
    ID.store(first.raw(), Ordering::Relaxed);
    let sender = spawn(|| {
        loop {
            let id = ID.load(Ordering::Relaxed);
            let timeouts = Timeouts::new(Time::NEVER, Time::ZERO);
            // The call may fail, or the id may belong to another thread by now.
            let error = ipc::call_timeouts(ThreadId::from_raw(id), Message::with_words(0, &[id]), timeouts);
            error.expect_err("nothing answers");
            // Lets other processors run, where the emulator runs them in turns.
            core::hint::spin_loop();
        }
    });
    let changer = spawn(move || {
        // This thread moves to the receiver's processor. On the processor where it was created, it
        // could change the id between a message and its check.
        ipc::receive(me).expect("it is where the receiver is");
        let mut id = first;
        for version in 2..2 + CHANGES {
            // Some versions have no place in a global id.
            let Some(new) = ThreadId::global(first.number(), version) else { continue };
            let (scheduler, pager) = (ThreadId::NIL, ThreadId::NIL);
            thread::control(new, ThreadControl { space: new, scheduler, pager, utcb: None })
                .expect("another version");
            ID.store(new.raw(), Ordering::Relaxed);
            id = new;
            // Most messages come too late, or between two ids. Some must come in time, even if
            // processors run in turns.
            if version % 64 == 1 {
                let before = RECEIVED.load(Ordering::Relaxed);
                while RECEIVED.load(Ordering::Relaxed) == before {
                    ipc::sleep(Time::period(100));
                }
            }
        }
        ipc::send(me, Message::with_words(0, &[id.raw()])).expect("the test waits");
    });
    place(changer, 1);
    ipc::send(changer, Message::new(0)).expect("it waits for it");
    let last = ipc::receive(changer).expect("it is done").word(0);
    thread::delete(sender).expect("it is there");
    thread::delete(ThreadId::from_raw(last)).expect("it is there");
}
