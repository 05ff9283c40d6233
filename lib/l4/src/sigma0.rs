//! Asking sigma0 for memory (ABI 14).

use crate::{ipc, kip, utcb};
use x2::protocol::sigma0;
use x2::{Acceptor, Fpage, Region, Rights};

/// Asks for physical memory at a fixed place: `fpage` is mapped at its own address. Returns whether sigma0 gave it.
///
/// # Safety
/// Rust code does not rely on what the range holds now.
pub unsafe fn request(fpage: Fpage) -> ipc::Result<bool> {
    // SAFETY: the caller's promise; nothing else is in the window.
    unsafe { map(fpage, Acceptor::new(fpage, false)) }.map(|region| region.is_some())
}

/// Asks for any conventional memory of 2^`size_log2` bytes, mapped at its physical address. Returns where it is, or
/// nothing when sigma0 has none left.
pub fn request_any(size_log2: u32) -> ipc::Result<Option<Region>> {
    // SAFETY: sigma0 gives out every piece of memory once and maps it at its own address, so the memory was nobody's.
    unsafe { map(sigma0::any(size_log2), Acceptor::COMPLETE) }
}

/// # Safety
/// Rust code does not rely on memory in the window.
unsafe fn map(fpage: Fpage, acceptor: Acceptor) -> ipc::Result<Option<Region>> {
    // SAFETY: the caller's promise.
    unsafe { utcb::accept(acceptor) };
    let message =
        ipc::Message::with_words(sigma0::REQUEST_TAG.label(), &[fpage.with_rights(Rights::ALL).raw(), 0]);
    let answer = ipc::call(kip().sigma0(), message);
    utcb::accept_untyped_words();
    Ok(answer?.map_item(0).and_then(|item| item.fpage.region()))
}
