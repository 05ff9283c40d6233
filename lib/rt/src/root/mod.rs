//! Requests to root (`interfaces/root.defs`), by direct IPC with the stubs that `mig` writes.
//!
//! A request goes to root's thread for the processor ([`start_page::root`]). Root answers without
//! blocking, except a [`lookup`](names::lookup) that waits for a name. Every function here uses the
//! thread's message registers.
//!
//! | module | subject |
//! |---|---|
//! | [`memory`] | memory at addresses that the server chooses, boot modules |
//! | [`space`] | address spaces that the server owns, and their threads |
//! | [`names`] | finding other servers |
//! | [`share`] | memory shared with another server |
//! | [`pool`] | memory that the devices of another server use |
//! | [`device`] | interrupts, device memory |
//! | [`pci`] | PCI functions, message-signalled interrupts |
//! | [`console`] | printing through root; panics |

pub mod console;
pub mod device;
pub mod memory;
pub mod names;
pub mod pci;
pub mod pool;
pub mod servers;
pub mod share;
pub mod space;

pub use console::{Console, PANIC_STATUS, report_panics};

use crate::start_page;
use direct::Error;
use interfaces::root::Client;
use l4::direct::Direct;
use l4::x2::ThreadId;

/// The status of a request: the first word of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// A word of the request is not valid, or the words are not those of the request.
    InvalidArgument = 1,
    /// The server would have more than its configuration allows.
    QuotaExceeded = 3,
    /// There is not enough memory, of the machine or of the kernel, or there are not enough thread
    /// numbers.
    NoMemory = 4,
    /// There is no object of that name, or it is not for this server.
    NotFound = 5,
    /// The resource is in use already.
    InUse = 6,
    /// The machine cannot do what was requested.
    Unsupported = 7,
    /// There is no such request, or root's answer is not one that it gives.
    UnknownRequest = direct::Status::BAD_ID.0,
}

impl From<Status> for direct::Status {
    fn from(status: Status) -> direct::Status {
        direct::Status(status as i32)
    }
}

impl From<direct::Status> for Status {
    fn from(status: direct::Status) -> Status {
        use Status::{
            InUse, InvalidArgument, NoMemory, NotFound, QuotaExceeded, UnknownRequest, Unsupported,
        };
        match status {
            direct::Status::BAD_ARGUMENTS | direct::Status::ARRAY_TOO_LARGE => InvalidArgument,
            status => [InvalidArgument, QuotaExceeded, NoMemory, NotFound, InUse, Unsupported]
                .into_iter()
                .find(|&known| direct::Status::from(known) == status)
                .unwrap_or(UnknownRequest),
        }
    }
}

impl From<Error> for Status {
    fn from(error: Error) -> Status {
        match error {
            Error::Status(status) => status.into(),
            Error::Ipc(_) | Error::Malformed => Status::UnknownRequest,
        }
    }
}

/// Bytes of the longest name of a server or module; there is none of a longer name.
const LONGEST_NAME: usize = 256;

/// Makes a request and waits for root's answer.
///
/// # Errors
/// Root's status; `UnknownRequest` if it did not answer as it should.
#[inline]
fn ask<T>(request: impl FnOnce(&mut Client<'_, Direct>) -> Result<T, Error>) -> Result<T, Status> {
    let mut client = Client { transport: &mut Direct::default(), to: start_page::root() };
    request(&mut client).map_err(Status::from)
}

/// Starts a thread in this server's space at `ip` with `sp`. Returns its id.
///
/// # Errors
/// Root's status; `UnknownRequest` if the answer is malformed.
///
/// # Safety
/// `ip` must be code that can run with that stack and no other registers.
#[allow(unsafe_code, reason = "what the thread does is the caller's promise")]
pub unsafe fn create_thread(ip: u64, sp: u64) -> Result<ThreadId, Status> {
    ask(|root| root.root_thread_create(ip, sp)).map(ThreadId::from_raw)
}

/// Ends a thread of this server's space, not its first.
///
/// # Errors
/// `InvalidArgument`: there is no such thread.
pub fn delete_thread(thread: ThreadId) -> Result<(), Status> {
    ask(|root| root.root_thread_delete(thread.raw()))
}

/// Ends this server; root reports `status`.
pub fn exit(status: u64) -> ! {
    // Root answers no exit; if the request could not be sent, the thread can still stop.
    let _ = ask(|root| root.root_exit(status));
    l4::start::halt()
}

/// The way in which the whole system ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The machine is switched off. Under an emulator with the debug-exit device, this status
    /// (0..=127) becomes the emulator's exit status 2 * status + 1.
    PowerOff(u8),
    /// The machine is reset, so that it boots again.
    Reboot,
}

/// Ends the system; for servers whose configuration says `power yes`.
///
/// # Errors
/// The function returns only if the system does not end. `NotFound`: the server has no permission;
/// `Unsupported`: the machine did not do it.
pub fn end_system(end: End) -> Status {
    let (how, status) = match end {
        End::PowerOff(status) => (0, status.into()),
        End::Reboot => (1, 0),
    };
    // Root does not answer that it has ended the system.
    ask(|root| root.root_system_end(how, status)).err().unwrap_or(Status::UnknownRequest)
}

#[cfg(test)]
mod tests {
    use super::Status;

    #[test]
    fn a_status_survives_the_message() {
        for number in -400..=20 {
            let status = Status::from(direct::Status(number));
            match number {
                1 | 3..=7 => assert_eq!(direct::Status::from(status).0, number),
                -304 | -307 => assert_eq!(status, Status::InvalidArgument),
                _ => assert_eq!(status, Status::UnknownRequest),
            }
        }
    }
}
