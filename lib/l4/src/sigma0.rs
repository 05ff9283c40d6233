//! Requests to sigma0 for memory and I/O ports (ABI 14).

use crate::{ipc, kip, utcb};
use x2::protocol::sigma0;
use x2::{Acceptor, Fpage, Region, Rights, ThreadId};

/// Requests the physical memory `fpage`, which is mapped at its physical address. Returns whether
/// sigma0 gave it.
///
/// # Safety
/// Rust code must not rely on what is mapped at these addresses now.
pub unsafe fn request(fpage: Fpage) -> ipc::Result<bool> {
    // SAFETY: the caller promises that Rust code does not rely on the range, and the window is just
    // this range.
    unsafe { map(fpage, Acceptor::new(fpage, false)) }.map(|region| region.is_some())
}

/// Requests any conventional memory of 2^`size_log2` bytes, mapped at its physical address. Returns
/// its region; `None` if sigma0 has no such memory left.
pub fn request_any(size_log2: u32) -> ipc::Result<Option<Region>> {
    // SAFETY: sigma0 gives each page out once, at its physical address, so no Rust object can be
    // there.
    unsafe { map(sigma0::any(size_log2), Acceptor::COMPLETE) }
}

/// Requests the I/O ports of `fpage`. Returns whether sigma0 gave them.
pub fn request_ports(fpage: Fpage) -> ipc::Result<bool> {
    if !fpage.is_io() {
        return Ok(false);
    }
    // SAFETY: the receive window has ports and no memory.
    let given = unsafe { ask(fpage, Acceptor::new(fpage, false)) }?;
    Ok(given.ports().is_some())
}

/// Makes sigma0 serve `thread`, which lives in the root task's space, like the root task's first
/// thread. Only that first thread may call this.
pub fn announce(thread: ThreadId) -> ipc::Result<()> {
    let label = x2::protocol::label(x2::protocol::SIGMA0_EXTENDED, 0);
    ipc::call(kip().sigma0(), ipc::Message::with_words(label, &[ANNOUNCE_THREAD, thread.raw()])).map(drop)
}

/// The first word of the request that announces a thread.
const ANNOUNCE_THREAD: u64 = 3;

/// Requests memory of sigma0. Returns its region; `None` if sigma0 refused.
///
/// # Safety
/// Rust code must not rely on memory in the window.
unsafe fn map(fpage: Fpage, acceptor: Acceptor) -> ipc::Result<Option<Region>> {
    // SAFETY: the caller keeps this function's contract.
    unsafe { ask(fpage, acceptor) }.map(Fpage::region)
}

/// Sends a request for `fpage` to sigma0. Returns the fpage that sigma0 gave, nilpage if none.
///
/// # Safety
/// Rust code must not rely on memory in the window.
unsafe fn ask(fpage: Fpage, acceptor: Acceptor) -> ipc::Result<Fpage> {
    // SAFETY: the caller keeps this function's contract.
    unsafe { utcb::accept(acceptor) };
    let message =
        ipc::Message::with_words(sigma0::REQUEST_TAG.label(), &[fpage.with_rights(Rights::ALL).raw(), 0]);
    let answer = ipc::call(kip().sigma0(), message);
    utcb::accept_untyped_words();
    Ok(answer?.map_item(0).map_or(Fpage::NIL, |item| item.fpage))
}
