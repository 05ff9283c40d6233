//! The addresses of this program: virtual = physical, and the same in every space in which its
//! threads run.

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
    // The linker script defines both symbols; only their addresses have a meaning.
    (&raw const __program_start) as u64..(&raw const __program_end) as u64
}

/// The addresses in host builds, where the program is only checked.
#[cfg(not(target_os = "none"))]
pub(crate) fn range() -> Range<u64> {
    0..0
}

/// Reads one byte, so that its page is present afterwards.
pub(crate) fn touch(address: u64) {
    assert!(range().contains(&address), "only the program's own memory is touched");
    // SAFETY: the address is within the program, where every byte can be read; nothing depends on
    // the value.
    unsafe {
        (address as *const u8).read_volatile();
    }
}

/// Makes the page of an address present with the right `access`: reads a byte, and writes it back
/// unchanged if `access` requires that.
pub(crate) fn touch_for(address: u64, access: Rights) {
    touch(address);
    if access.contains(Rights::WRITE) {
        // SAFETY: the address is within the program, where the kernel was about to write; an atomic
        // operation loses no store of another thread.
        let byte = unsafe { AtomicU8::from_ptr(address as *mut u8) };
        // A compare-and-exchange always writes. (The compiler turns an operation without effect
        // into a load.)
        let value = byte.load(Ordering::Relaxed);
        let _ = byte.compare_exchange(value, value, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Receives the whole program into the current thread's space from `test`, which calls [`give_to`].
/// It is needed where a thread cannot reach its pager, and so must not fault wherever its code
/// lies.
pub(crate) fn take_from(test: ThreadId) {
    // SAFETY: the mapping is that of the program at its own address.
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
