//! Asking sigma0 for memory and I/O ports (ABI 14).

use crate::{ipc, kip, utcb};
use x2::protocol::sigma0;
use x2::{Acceptor, Fpage, Region, Rights, ThreadId};

/// Asks for physical memory at a fixed place: `fpage` is mapped at its own address. Returns whether
/// sigma0 gave it.
///
/// # Safety
/// Rust code does not rely on what the range holds now.
pub unsafe fn request(fpage: Fpage) -> ipc::Result<bool> {
    // SAFETY: the caller's promise; nothing else is in the window.
    unsafe { map(fpage, Acceptor::new(fpage, false)) }.map(|region| region.is_some())
}

/// Asks for any conventional memory of 2^`size_log2` bytes, mapped at its physical address. Returns
/// where it is, or nothing when sigma0 has none left.
pub fn request_any(size_log2: u32) -> ipc::Result<Option<Region>> {
    // SAFETY: sigma0 gives out every piece of memory once and maps it at its own address, so the
    // memory was in no other use.
    unsafe { map(sigma0::any(size_log2), Acceptor::COMPLETE) }
}

/// Asks for the I/O ports of `fpage`. Returns whether sigma0 gave them.
pub fn request_ports(fpage: Fpage) -> ipc::Result<bool> {
    if !fpage.is_io() {
        return Ok(false);
    }
    // SAFETY: the window is none of memory.
    let given = unsafe { ask(fpage, Acceptor::new(fpage, false)) }?;
    Ok(given.ports().is_some())
}

/// Has sigma0 serve `thread`, of the root task's space, as it serves the root task's first thread,
/// which asks for this.
pub fn announce(thread: ThreadId) -> ipc::Result<()> {
    let label = x2::protocol::label(x2::protocol::SIGMA0_EXTENDED, 0);
    ipc::call(kip().sigma0(), ipc::Message::with_words(label, &[ANNOUNCE_THREAD, thread.raw()])).map(drop)
}

/// The first word of that request.
const ANNOUNCE_THREAD: u64 = 3;

/// # Safety
/// Rust code does not rely on memory in the window.
unsafe fn map(fpage: Fpage, acceptor: Acceptor) -> ipc::Result<Option<Region>> {
    // SAFETY: the caller keeps this function's contract.
    unsafe { ask(fpage, acceptor) }.map(Fpage::region)
}

/// Asks sigma0 for `fpage`. Returns what sigma0 gave, nilpage if nothing.
///
/// # Safety
/// Rust code does not rely on memory in the window.
unsafe fn ask(fpage: Fpage, acceptor: Acceptor) -> ipc::Result<Fpage> {
    // SAFETY: the caller keeps this function's contract.
    unsafe { utcb::accept(acceptor) };
    let message =
        ipc::Message::with_words(sigma0::REQUEST_TAG.label(), &[fpage.with_rights(Rights::ALL).raw(), 0]);
    let answer = ipc::call(kip().sigma0(), message);
    utcb::accept_untyped_words();
    Ok(answer?.map_item(0).map_or(Fpage::NIL, |item| item.fpage))
}
