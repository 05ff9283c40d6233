//! Threads that are looked up on one processor while another makes and deletes them: a call finds a
//! thread that there is, or none.

use super::{await_growth, place};
use crate::framework::fixture::{await_state, new_id, new_root_utcb, spawn, spawn_as};
use core::arch::naked_asm;
use core::sync::atomic::{AtomicU64, Ordering};
use l4::ipc::{self, Message};
use l4::thread::{self, ThreadControl};
use l4::utcb;
use x2::control::{ThreadState, UNCHANGED};
use x2::{ErrorCode, ThreadId, Time, Timeouts};

/// A thread that runs and needs nothing, not even a stack.
#[unsafe(naked)]
extern "C" fn spin() -> ! {
    naked_asm!("2: pause", "jmp 2b")
}

/// Makes `id`, whose UTCB is at `location`, a thread that runs on `processor` when nothing else
/// does.
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

/// A thread that is looked up by its local id runs on the processor of the thread that looks, and
/// ends on another one.
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

/// The id that the receiver has.
static ID: AtomicU64 = AtomicU64::new(0);
static RECEIVED: AtomicU64 = AtomicU64::new(0);

/// A receiver on one processor gets one id after another; a sender on another processor says in
/// each message for which it is. The receiver has a higher priority than what changes its id, on
/// the same processor, and never leaves that: so it looks at a message before its id changes again.
pub(super) fn ids_that_change() {
    const CHANGES: u32 = 4000;
    let me = place(utcb::my_global_id(), 0);
    let first = new_id();
    spawn_as(first, || {
        loop {
            // A change of the id ends the wait.
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
            // The call fails, or the id is another thread's by now.
            let error = ipc::call_timeouts(ThreadId::from_raw(id), Message::with_words(0, &[id]), timeouts);
            error.expect_err("nothing answers");
            // Where processors take turns, this lets the others run.
            core::hint::spin_loop();
        }
    });
    let changer = spawn(move || {
        // On the processor where the thread was made this thread would change its id between a
        // message and the look at it.
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
            // Most messages are late, or come between; some must be in time, also where the
            // processors take turns.
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
