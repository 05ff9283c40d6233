//! Requests that find other servers. The name of a server is that in the configuration; no server
//! can take the name of another.

use super::{LONGEST_NAME, Status, ask};
use l4::x2::ThreadId;

/// Registers `thread`, a thread of this server, under the server's name. Servers that wait for the
/// name get their answers.
///
/// # Errors
/// `InvalidArgument`: it is not a thread of this server.
pub fn register(thread: ThreadId) -> Result<(), Status> {
    ask(|root| root.root_name_register(thread.raw()))
}

/// Finds the thread that the server `name` has registered. From then on the two servers can send to
/// each other, until one ends.
///
/// # Errors
/// `NotFound`: there is no such server, it has not registered, or it has ended. `NoMemory`: one of
/// the two has as many partners as a space can have (8).
pub fn lookup(name: &str) -> Result<ThreadId, Status> {
    find(name, false)
}

/// Finds a server like [`lookup`]. If it runs and has not registered yet, blocks until it does.
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
