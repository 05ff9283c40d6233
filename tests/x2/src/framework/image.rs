//! Where this program lies in memory: virtual = physical, the same in every space that its threads
//! run in.

use core::ops::Range;
use core::sync::atomic::{AtomicU8, Ordering};
use l4::ipc::{self, Message};
use l4::utcb;
use x2::{Acceptor, Fpage, MapItem, Rights, ThreadId};

/// Addresses of the whole program, page-aligned: code, data and the arena.
#[cfg(target_os = "none")]
pub(crate) fn range() -> Range<u64> {
    unsafe extern "C" {
        static __program_start: u8;
        static __program_end: u8;
    }
    // The linker script defines both; only their addresses mean something.
    (&raw const __program_start) as u64..(&raw const __program_end) as u64
}

/// On the host the program is only checked.
#[cfg(not(target_os = "none"))]
pub(crate) fn range() -> Range<u64> {
    0..0
}

/// Reads one byte, so that the page is there afterwards.
pub(crate) fn touch(address: u64) {
    assert!(range().contains(&address), "only the program's own memory is touched");
    // SAFETY: the address is within the program, where every byte can be read; nothing depends on
    // the value.
    unsafe {
        (address as *const u8).read_volatile();
    }
}

/// Reads a byte, and writes it again as it is if that is what `access` asks for, so that the page
/// is there afterwards with that right.
pub(crate) fn touch_for(address: u64, access: Rights) {
    touch(address);
    if access.contains(Rights::WRITE) {
        // SAFETY: the address is within the program, at a place that was about to be written; an
        // atomic operation loses no other thread's store.
        let byte = unsafe { AtomicU8::from_ptr(address as *mut u8) };
        // A compare-and-exchange writes in any case. (An operation that changes nothing becomes a
        // load.)
        let value = byte.load(Ordering::Relaxed);
        let _ = byte.compare_exchange(value, value, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// The whole program comes into the current thread's space, from `test`, which calls [`give_to`]:
/// where its pager is out of its reach, it must not fault, wherever its code happens to lie.
pub(crate) fn take_from(test: ThreadId) {
    // SAFETY: what comes is the program at its own place.
    unsafe { utcb::accept(Acceptor::new(Fpage::COMPLETE, false)) };
    ipc::call(test, Message::new(0)).expect("the program");
    utcb::accept_untyped_words();
}

/// Gives `thread`, whose call has been received, the whole program.
pub(crate) fn give_to(thread: ThreadId) {
    range().step_by(4096).for_each(touch);
    let everything = Fpage::COMPLETE.with_rights(Rights::ALL);
    let message = Message::new(0).map_item(MapItem::map(everything, 0));
    ipc::send(thread, message).expect("it waits for the program");
}
