//! Requests for address spaces that this server owns (section K13 of `docs/src/architecture.md`),
//! and for their threads.
//!
//! The kernel lets only root create and delete them. The server itself does everything else, by
//! MapControl, ThreadState and SpaceOptions ([`l4::extension`]). When the server ends, its spaces
//! end, too.

use super::{Status, ask};
use l4::extension;
use l4::x2::ThreadId;
use l4::x2::extension::SystemCallMode;

/// A space that this server owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Space(u64);

/// The parameters of a new space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// The address of the space's kernel interface page: a multiple of 4096.
    pub kernel_interface: u64,
    /// The address of the space's UTCB area: a multiple of the area's size.
    pub utcb_area: u64,
    /// Size of the area as a power of two, at least 12: it holds 2^(n - 10) threads.
    pub utcb_area_log2: u32,
    /// The effect of a foreign `syscall` in the space.
    pub system_calls: SystemCallMode,
    /// The address at which bounce mode continues the program.
    pub emulation_entry: u64,
    /// How many bytes of kernel memory the space may use, out of the server's own; `u64::MAX`: no
    /// limit, which only a server without a limit can give.
    pub kernel_memory: u64,
}

/// Creates a space with its first thread, which has place 0 of the UTCB area. `handler`, a thread
/// of this server, is its pager, exception handler and scheduler. The thread has never run: it
/// waits for a start message from `handler`, or for registers by ThreadState. Its priority is 100,
/// or this server's if that is lower.
///
/// # Errors
/// `InvalidArgument`: the areas overlap or lie outside the user area, or the handler is unknown.
/// `QuotaExceeded`: the server would have more spaces, threads or kernel memory than the
/// configuration allows. `NoMemory`: kernel memory is short.
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

/// Creates another thread in a space, in the state that [`create`] describes, at `place` in the
/// UTCB area: a number below that of the threads that the area can hold.
///
/// # Errors
/// `InvalidArgument`: this server has no such space or handler, or the place is taken.
/// `QuotaExceeded`: the server would have too many threads. `NoMemory`: kernel memory is short.
pub fn create_thread(space: Space, place: u32, handler: ThreadId) -> Result<ThreadId, Status> {
    let created = ask(|root| root.root_space_thread_create(space.0, place.into(), handler.raw()));
    let thread = ThreadId::from_raw(created?);
    match handle_exceptions(thread, handler) {
        Ok(()) => Ok(thread),
        Err(error) => delete_thread(thread).and(Err(error)),
    }
}

/// Ends a thread, wherever it is. The last thread of a space can be ended only together with the
/// space.
///
/// # Errors
/// `InvalidArgument`: there is no such thread in a space of this server, or it is the last one.
pub fn delete_thread(thread: ThreadId) -> Result<(), Status> {
    ask(|root| root.root_space_thread_delete(thread.raw()))
}

/// Ends a space with all its threads and mappings.
///
/// # Errors
/// `InvalidArgument`: this server has no such space.
pub fn delete(space: Space) -> Result<(), Status> {
    ask(|root| root.root_space_delete(space.0))
}

/// Sets the exception handler of a thread, which only the owner of its space can do (section K13 of
/// docs/src/architecture.md).
fn handle_exceptions(thread: ThreadId, handler: ThreadId) -> Result<(), Status> {
    extension::set_handlers(thread, Some(handler), None).map_err(|_| Status::InvalidArgument)
}
