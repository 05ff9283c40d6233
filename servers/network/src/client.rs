//! The client's way to the server.

use crate::NAME;
use alloc::vec;
use alloc::vec::Vec;
use direct::{Array, Error};
use inet::placement::{LONGEST, SHORT, Transport};
use interfaces::network;
use l4::direct::Direct;
use l4::extension;
use l4::x2::{ThreadId, Time};
use rt::root::{Status, names};

/// What a server is told of its client and of the stack that it is to make.
#[derive(Clone, Copy, Debug)]
pub struct Attachment {
    /// What the secrets of the stack are made of: random, and known to the client only.
    pub seed: [u64; 4],
    /// By what the client names itself in its requests; random.
    pub key: u64,
    /// The most bytes that the buffers of all sockets may have.
    pub memory: u64,
    /// The most sockets that there may be.
    pub sockets: u64,
    /// The number from which sockets are counted.
    pub first: u32,
    /// A thread of the client, and the bits by which it is notified.
    pub thread: ThreadId,
    /// The bits.
    pub bits: u64,
}

/// Microseconds that the server has for each phase of a request. It needs far less; one that takes
/// longer does not work any more.
const PATIENCE: u64 = 4_000_000;

/// A connection to the server. Any thread of the client may use it that accepts notifications.
#[derive(Debug)]
pub struct Link {
    server: ThreadId,
    key: u64,
    /// The memory of answers.
    answer: Vec<u8>,
}

/// The thread of the server, if the configuration has one. Blocks until it has registered.
///
/// # Errors
/// `NotFound`: there is no such server.
pub fn find() -> Result<ThreadId, Status> {
    names::lookup_wait(NAME)
}

/// Whether the server with this thread has ended.
pub fn has_ended(server: ThreadId) -> bool {
    extension::notify(server, 0).is_err()
}

/// The registers of a request.
fn registers() -> Direct {
    Direct::notified().within(Time::period(PATIENCE))
}

impl Link {
    /// Attaches to the server that runs now, which makes a new stack.
    ///
    /// # Errors
    /// `NotFound`: there is none now, or it does not answer. `InUse`: it has another client.
    pub fn attach(about: &Attachment) -> Result<(Link, ThreadId), Status> {
        let server = names::lookup(NAME)?;
        let [seed0, seed1, seed2, seed3] = about.seed;
        let Attachment { key, memory, sockets, first, thread, bits, .. } = *about;
        let mut client = network::Client { transport: &mut registers(), to: server };
        let attached = client.network_attach(
            seed0,
            seed1,
            seed2,
            seed3,
            key,
            memory,
            sockets,
            first.into(),
            thread.raw(),
            bits,
        );
        match attached {
            Ok(()) => Ok((Link { server, key, answer: vec![0; LONGEST] }, server)),
            Err(Error::Status(refused)) => Err(refused.into()),
            Err(Error::Ipc(_) | Error::Malformed) => Err(Status::NotFound),
        }
    }
}

impl Transport for Link {
    fn call(&mut self, request: &[u8], long: bool) -> Option<&[u8]> {
        let mut client = network::Client { transport: &mut registers(), to: self.server };
        let length = if long || request.len() > SHORT {
            client.network_transfer(self.key, request, &mut self.answer).ok()?
        } else {
            let answer: Array<u8, SHORT> = client.network_request(self.key, request).ok()?;
            self.answer.get_mut(..answer.len())?.copy_from_slice(&answer);
            answer.len()
        };
        self.answer.get(..length)
    }
}
