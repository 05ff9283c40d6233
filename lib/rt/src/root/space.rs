//! Address spaces that this server owns (K13 in `docs/src/architecture.md`), and their threads.
//!
//! The kernel lets only root create and delete them; everything else about them is the server's own
//! business, by MapControl, ThreadState and SpaceOptions ([`l4::extension`]). When the server ends,
//! they end with it.

use super::{Status, ask};
use l4::extension;
use l4::x2::ThreadId;
use l4::x2::extension::SystemCallMode;

/// A space that this server owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Space(u64);

/// The properties of a new space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// The address of the space's kernel interface page: a multiple of 4096.
    pub kernel_interface: u64,
    /// The address of the space's UTCB area: a multiple of the area's size.
    pub utcb_area: u64,
    /// Size of the area as a power of two, at least 12: it holds 2^(n - 10) threads.
    pub utcb_area_log2: u32,
    /// What a foreign `syscall` does.
    pub system_calls: SystemCallMode,
    /// The address at which bounce mode continues the program.
    pub emulation_entry: u64,
    /// Kernel memory that the space may use, in bytes, out of the server's; `u64::MAX`: no limit of
    /// its own, which only a server without limit can give.
    pub kernel_memory: u64,
}

/// Creates a space with its first thread, which has place 0 of the UTCB area. `handler`, a thread
/// of this server, is its pager, exception handler and scheduler. The thread has never run: it
/// waits for a start message from `handler`, or for registers by ThreadState. Its priority is 100,
/// or this server's if that is lower.
///
/// # Errors
/// `InvalidArgument`: areas that overlap or lie outside the user area, an unknown handler.
/// `QuotaExceeded`: as many spaces or threads, or as much kernel memory, as the configuration
/// allows. `NoMemory`: of the kernel.
pub fn create(description: &Description, handler: ThreadId) -> Result<(Space, ThreadId), Status> {
    let Description { kernel_interface, utcb_area, utcb_area_log2, emulation_entry, .. } = *description;
    let (space, thread) = ask(|root| {
        root.root_space_create(
            kernel_interface,
            utcb_area,
            utcb_area_log2.into(),
            description.system_calls as u64,
            emulation_entry,
            description.kernel_memory,
            handler.raw(),
        )
    })?;
    let (space, thread) = (Space(space), ThreadId::from_raw(thread));
    match handle_exceptions(thread, handler) {
        Ok(()) => Ok((space, thread)),
        Err(error) => delete(space).and(Err(error)),
    }
}

/// Creates another thread in a space, like the first, at another `place` of the UTCB area (0..
/// below the number of threads that the area holds).
///
/// # Errors
/// `InvalidArgument`: no such space of this server's or handler, or the place is taken.
/// `QuotaExceeded`, `NoMemory`.
pub fn create_thread(space: Space, place: u32, handler: ThreadId) -> Result<ThreadId, Status> {
    let created = ask(|root| root.root_space_thread_create(space.0, place.into(), handler.raw()));
    let thread = ThreadId::from_raw(created?);
    match handle_exceptions(thread, handler) {
        Ok(()) => Ok(thread),
        Err(error) => delete_thread(thread).and(Err(error)),
    }
}

/// Ends a thread, wherever it is. The last thread of a space goes with the space, not alone.
///
/// # Errors
/// `InvalidArgument`: no such thread in a space of this server's, or the last one.
pub fn delete_thread(thread: ThreadId) -> Result<(), Status> {
    ask(|root| root.root_space_thread_delete(thread.raw()))
}

/// Ends a space with all its threads and mappings.
///
/// # Errors
/// `InvalidArgument`: no such space of this server's.
pub fn delete(space: Space) -> Result<(), Status> {
    ask(|root| root.root_space_delete(space.0))
}

/// Only the owner can set the exception handler (K13).
fn handle_exceptions(thread: ThreadId, handler: ThreadId) -> Result<(), Status> {
    extension::set_handlers(thread, Some(handler), None).map_err(|_| Status::InvalidArgument)
}
