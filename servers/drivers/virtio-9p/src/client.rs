//! The client's side of a channel of messages. No function but [`open`] waits for the driver.

use crate::area::{Area, FREE, MESSAGE, REFUSED, REPLY, REQUEST, SIZE, SLOTS, get, put};
use crate::disk_slot;
use direct::Error;
use driver::connection::Connection;
use interfaces::file_channel::Client;
use l4::direct::Direct;
use l4::x2::ThreadId;
use rt::root::Status;

/// The longest tag in bytes.
pub const TAG: usize = 32;

/// The tag in words, as the server says it.
type Words = (u64, u64, u64, u64);

/// The client's end of a channel.
#[derive(Debug)]
pub struct Channel {
    connection: Connection,
    area: Area,
    tag: [u8; TAG],
}

/// Opens the channel that the server `name` drives. The shared area of 1 MiB is mapped at
/// `address`, a multiple of 4096. `thread`, a thread of this server, will be notified by `bits`
/// when there are replies. Blocks until the driver has registered and has answered; overwrites the
/// message registers.
///
/// # Errors
/// `NotFound`: there is no such server, it has ended for good, or it has no such channel. `InUse`:
/// another server has it. `InvalidArgument`, `QuotaExceeded`, `NoMemory`: root's status for the
/// shared memory.
pub fn open(name: &str, address: u64, thread: ThreadId, bits: u64) -> Result<Channel, Status> {
    let (connection, words) = Connection::open(name, address, SIZE, attach(thread, bits))?;
    let tag = tag_of(words);
    #[allow(unsafe_code, reason = "the shared memory is root's, not a Rust object")]
    // SAFETY: root has mapped the memory there for these two servers, as long as this one lives.
    let area = unsafe { Area::at(address) };
    Ok(Channel { connection, area, tag })
}

fn attach(thread: ThreadId, bits: u64) -> impl Fn(ThreadId, u64) -> Result<Words, Error> {
    move |to, share| {
        Client { transport: &mut Direct::default(), to }.file_channel_attach(share, thread.raw(), bits)
    }
}

fn tag_of(words: Words) -> [u8; TAG] {
    let mut tag = [0; TAG];
    for (bytes, word) in tag.chunks_mut(8).zip([words.0, words.1, words.2, words.3]) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    tag
}

/// What a slot has for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The request is under way.
    None,
    /// The length of the reply.
    Reply(usize),
    /// The driver does not take a message of this length.
    Refused,
}

impl Channel {
    /// The name that the device has for the tree of files.
    pub fn tag(&self) -> &[u8] {
        self.tag.split(|&byte| byte == 0).next().unwrap_or_default()
    }

    /// Connects with the server that was started in place of the one that has ended. All slots are
    /// free then, whatever they had. `thread` and `bits` are as for [`open`]. Blocks until the
    /// server has answered; overwrites the message registers.
    ///
    /// # Errors
    /// `NotFound`: the server has not registered yet, or has ended again. `InUse`: the last one has
    /// not ended. Otherwise as for [`open`].
    pub fn open_again(&self, name: &str, thread: ThreadId, bits: u64) -> Result<(), Status> {
        if !self.has_ended() {
            return Err(Status::InUse);
        }
        (0..SLOTS).for_each(|number| self.area.slot(number).pass(FREE, 0));
        self.connection.open_again(name, attach(thread, bits)).map(drop)
    }

    /// Puts a request of at most [`MESSAGE`] bytes into a slot that the client has, and passes the
    /// slot to the driver.
    pub fn send(&self, slot: usize, message: &[u8]) {
        let slot = self.area.slot(slot);
        put(message, slot.words);
        slot.pass(REQUEST, message.len().min(MESSAGE));
        self.connection.notify();
    }

    /// Whether the driver has answered the request in a slot.
    pub fn answer(&self, slot: usize) -> Answer {
        let slot = self.area.slot(slot);
        match slot.state() {
            REPLY => Answer::Reply(slot.length()),
            REFUSED => Answer::Refused,
            _ => Answer::None,
        }
    }

    /// Copies the reply in a slot, and frees the slot.
    pub fn take(&self, slot: usize, reply: &mut [u8]) {
        let slot = self.area.slot(slot);
        get(slot.words, reply);
        slot.pass(FREE, 0);
    }

    /// What the server asks for the disk in the last slot ([`disk_slot`]).
    pub fn asked(&self) -> Option<Result<disk_slot::Ask, ()>> {
        disk_slot::asked(&self.area)
    }

    /// Copies the data of a write that the server asks for.
    pub fn asked_data(&self, data: &mut [u8]) {
        disk_slot::data(&self.area, data);
    }

    /// Answers what the server asks ([`disk_slot::answer`]), and notifies it.
    pub fn answer_asked(&self, done: Option<(u64, u64)>, data: &[u8]) {
        disk_slot::answer(&self.area, done, data);
        self.connection.notify();
    }

    /// Whether the driver has ended: then no more replies come.
    pub fn has_ended(&self) -> bool {
        self.connection.has_ended()
    }
}
