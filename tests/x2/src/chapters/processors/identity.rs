//! Threads that are looked up on one processor while another makes and deletes them: a call finds a thread that there is, or
//! none.

use super::{await_growth, place};
use crate::framework::fixture::{new_id, new_root_utcb, spawn};
use core::arch::naked_asm;
use core::sync::atomic::{AtomicU64, Ordering};
use l4::ipc::{self, Message};
use l4::thread::{self, ThreadControl};
use l4::utcb;
use x2::control::UNCHANGED;
use x2::{ErrorCode, ThreadId};

/// A thread that runs and needs nothing, not even a stack.
#[unsafe(naked)]
extern "C" fn spin() -> ! {
    naked_asm!("2: pause", "jmp 2b")
}

/// Makes `id`, whose UTCB is at `location`, a thread that runs on `processor` when nothing else does.
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

/// What is looked up by its local id runs on the processor of the thread that looks, and ends on another one.
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

static TURNS: AtomicU64 = AtomicU64::new(0);

/// What a local id names is written in a UTCB, where the program changes it while a call on another processor looks.
pub(super) fn local_ids_that_change() {
    const ROUNDS: u64 = 12;
    place(utcb::my_global_id(), 0);
    let target = spawn(|| {
        loop {
            TURNS.fetch_add(1, Ordering::Relaxed);
        }
    });
    let local = thread::local_id_of(target).expect("it is a neighbour");
    thread::set_priority(target, 1).expect("it is there");
    place(target, 1);
    let word = local.raw() - x2::utcb::MR0_OFFSET + x2::utcb::byte_offset(x2::utcb::MY_GLOBAL_ID);
    // SAFETY: the word lies in the UTCB of a thread that does not use it itself.
    let word = unsafe { AtomicU64::from_ptr(word as *mut u64) };
    for _ in 0..ROUNDS {
        let writer = spawn(move || {
            loop {
                word.store(0, Ordering::Relaxed);
                word.store(target.raw(), Ordering::Relaxed);
            }
        });
        place(writer, 1);
        while let Err(error) = thread::stop(local) {
            assert_eq!(error, Some(ErrorCode::InvalidThread), "it has no name at this moment");
        }
        // Nothing is left to run there but what was stopped: its processor must know.
        thread::delete(writer).expect("it is there");
        word.store(target.raw(), Ordering::Relaxed);
        thread::resume(local).expect("it has its name again");
        await_growth(&TURNS, 3);
    }
}
