//! Finding other servers. A server's name is the one in the configuration; no server can take
//! another's.

use super::{LONGEST_NAME, Status, ask};
use l4::x2::ThreadId;

/// From now on `thread`, one of this server's, is found by the server's name; servers that wait for
/// the name are told.
///
/// # Errors
/// `InvalidArgument`: it is no thread of this server's.
pub fn register(thread: ThreadId) -> Result<(), Status> {
    ask(|root| root.root_name_register(thread.raw()))
}

/// The thread that the server `name` has registered. From then on the two servers can send to each
/// other, until one ends.
///
/// # Errors
/// `NotFound`: there is no such server, it has not registered, or it has ended. `NoMemory`: one of
/// the two has as many partners as a space can have (8).
pub fn lookup(name: &str) -> Result<ThreadId, Status> {
    find(name, false)
}

/// [`lookup`], waiting until the server registers if it runs and has not done so.
///
/// # Errors
/// Those of [`lookup`].
pub fn lookup_wait(name: &str) -> Result<ThreadId, Status> {
    find(name, true)
}

fn find(name: &str, wait: bool) -> Result<ThreadId, Status> {
    if name.len() > LONGEST_NAME {
        return Err(Status::NotFound);
    }
    ask(|root| root.root_name_lookup(wait.into(), name.as_bytes())).map(ThreadId::from_raw)
}
