//! Address spaces: configuration, unmapping (X.2 rules 6, 8).

use crate::{syscall, thread, utcb};
use x2::control::UnmapControl;
use x2::message::REGISTER_MESSAGE_REGISTERS;
use x2::{Fpage, ThreadId};

/// SpaceControl (privileged): sets the areas and the redirector of the space of thread `space`.
/// Returns the old control word.
pub fn control(
    space: ThreadId,
    control: u64,
    kip_area: Fpage,
    utcb_area: Fpage,
    redirector: ThreadId,
) -> thread::Result<u64> {
    let (result, old) =
        syscall::space_control(space.raw(), control, kip_area.raw(), utcb_area.raw(), redirector.raw());
    thread::check(result).map(|()| old)
}

/// Revokes rights, those in the rights bits of each fpage, from all spaces that got the fpages from
/// this space, directly or indirectly. The status bits (referenced, written, executed) are returned
/// in the rights bits. At most 64 fpages.
pub fn unmap(fpages: &mut [Fpage]) {
    // SAFETY: the mappings of this space are not changed.
    unsafe { unmap_raw(fpages, false) }
}

/// Revokes rights to a single fpage like [`unmap`]. Returns the fpage with its status bits.
pub fn unmap_one(fpage: Fpage) -> Fpage {
    let mut fpages = [fpage];
    unmap(&mut fpages);
    fpages[0]
}

/// Revokes rights like [`unmap`], from this space, too.
///
/// # Safety
/// Rust code must not rely on the memory in the fpages any more.
pub unsafe fn flush(fpages: &mut [Fpage]) {
    // SAFETY: the caller keeps this function's contract.
    unsafe { unmap_raw(fpages, true) }
}

/// MemoryControl (privileged): sets the attribute of the memory that this space has mapped in each
/// fpage (up to 64). The attribute's number, 0 to 3, is in the two lowest bits of the fpage
/// ([`x2::control::MemoryAttribute`]).
pub fn memory_control(fpages: &[Fpage], attributes: [u64; 4]) -> thread::Result<()> {
    for (index, fpage) in fpages.iter().enumerate() {
        utcb::set_message_register(index, fpage.raw());
    }
    let control = fpages.len().wrapping_sub(1) as u64;
    // SAFETY: the call does not change the content of memory, on which Rust code relies; the UTCB
    // pointer is this thread's.
    thread::check(unsafe { syscall::memory_control(control, attributes, utcb::pointer()) }).map(drop)
}

/// Unmaps or flushes up to 64 fpages.
///
/// # Safety
/// If `flush` is set, Rust code must not rely on the memory in the fpages any more.
unsafe fn unmap_raw(fpages: &mut [Fpage], flush: bool) {
    assert!(fpages.len() <= 64, "at most 64 fpages");
    if fpages.is_empty() {
        return;
    }
    for (index, fpage) in fpages.iter().enumerate() {
        utcb::set_message_register(index, fpage.raw());
    }
    let mut registers = [0; REGISTER_MESSAGE_REGISTERS];
    for (index, register) in registers.iter_mut().enumerate() {
        *register = utcb::message_register(index);
    }
    let control = UnmapControl::new(fpages.len(), flush);
    // SAFETY: the UTCB pointer is this thread's; the caller is responsible for flushed memory.
    let registers = unsafe { syscall::unmap(control.raw(), registers, utcb::pointer()) };
    for (index, fpage) in fpages.iter_mut().enumerate() {
        let raw = registers.get(index).copied().unwrap_or_else(|| utcb::message_register(index));
        *fpage = Fpage::from_raw(raw);
    }
}
