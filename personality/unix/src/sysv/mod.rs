//! System V interprocess communication (sysvipc(7)): shared memory, semaphores, messages. Objects
//! have keys, by which programs find them, and ids; they exist until they are removed.

pub mod messages;
pub mod objects;
pub mod semaphores;
pub mod shared_memory;

#[cfg(test)]
mod tests;

use crate::account::{Account, Charge};
use crate::{Error, Result};
use alloc::sync::Arc;
use messages::MessageQueues;
use semaphores::Semaphores;
use shared_memory::Segments;

/// All objects of a system.
#[derive(Default)]
pub struct SystemV {
    /// Segments of shared memory.
    pub segments: Segments,
    /// Sets of semaphores.
    pub semaphores: Semaphores,
    /// Message queues.
    pub queues: MessageQueues,
}

/// What a process is when it uses an object.
#[derive(Clone, Debug)]
pub struct User {
    /// With what permissions are checked.
    pub identity: crate::Identity,
    /// The namespace of users to which the objects belong.
    pub owner: crate::namespace::UserNamespace,
    /// The id of the process.
    pub process: u32,
    /// The present time, in seconds since 1970.
    pub now: i64,
    /// The account to which what the process makes is charged.
    pub account: Arc<Account>,
}

/// Bytes of the server's memory for an object, in addition to its contents.
const OBJECT_BYTES: u64 = 256;

impl User {
    /// Charges an object whose contents take this many bytes of the server's memory. `ENOMEM`.
    fn charge(&self, bytes: u64) -> Result<Charge> {
        self.account.charge_memory(OBJECT_BYTES + bytes).ok_or(Error::ENOMEM)
    }
}
