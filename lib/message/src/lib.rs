//! What the stubs that `mig` writes over Mach messages are made of: items of messages of both
//! dialects, and sending and receiving as a trait, so that stubs run over any transport. Nothing
//! here allocates.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

mod format;
mod reader;
mod writer;

pub use direct::{Array, Element, Status};
pub use format::{Format, Header};
pub use reader::{Described, Expected, Number, Reader};
pub use writer::Writer;

use format::{COMPLEX, get};

/// Flag of a type descriptor: the data is in the message.
pub const INLINE: u32 = 1;
/// Flag of a type descriptor: it has the long form.
pub const LONG: u32 = 2;
/// Flag of a type descriptor: the sender's copy goes away.
pub const DEALLOCATE: u32 = 4;

/// The type of a right that is made for the receiver of a reply.
pub const MAKE_SEND_ONCE: u32 = 21;

/// The id of the message that arrives when a right to a reply port was destroyed.
const SEND_ONCE_NOTIFICATION: u32 = 71;

/// Why a call has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The message could not be sent, or no reply received: what `mach_msg` returned.
    Transport(i32),
    /// The server has answered this status.
    Status(Status),
    /// The reply is not what the interface says: -300 in C.
    TypeError,
    /// The reply is one to another request: -301 in C.
    ReplyMismatch,
    /// The server has destroyed the request: -308 in C.
    ServerDied,
    /// The kernel has not appended what was asked for: -309 in C.
    TrailerError,
}

/// A type descriptor of the typed dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// The type.
    pub name: u32,
    /// Bits of an element.
    pub bits: u32,
    /// Elements.
    pub number: u32,
    /// [`INLINE`], [`LONG`], [`DEALLOCATE`].
    pub flags: u32,
}

/// Memory that a message points to, in the address space of the program that has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Its address.
    pub address: u64,
    /// Elements.
    pub count: u32,
    /// The sender's copy goes away. For an argument whose sender decides.
    pub deallocate: bool,
}

impl Memory {
    /// Memory of the program's own, which it keeps.
    pub fn of<T>(elements: &[T]) -> Memory {
        let count = u32::try_from(elements.len()).unwrap_or(u32::MAX);
        Memory { address: elements.as_ptr() as u64, count, deallocate: false }
    }
}

/// An array that is in the message if it is not too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data<T: Element, const N: usize> {
    /// In the message.
    Inline(Array<T, N>),
    /// Out of line.
    Memory(Memory),
}

/// How a message is sent, and its reply received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Options of `mach_msg` in addition to those that the call implies.
    pub options: u32,
    /// Milliseconds until the reply is there.
    pub wait: Option<u32>,
    /// Milliseconds until the message is taken.
    pub send: Option<u32>,
    /// How much of the trailer the client wants: bytes.
    pub trailer: usize,
}

/// What a client's stub knows of a routine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The types of the rights to the server's port and to that for the reply: the header's bits.
    pub bits: u32,
    /// The id.
    pub id: u32,
    /// The port for the reply, if the program says which.
    pub reply_port: Option<u64>,
    /// The id of the reply; none if there is no reply.
    pub reply: Option<u32>,
    /// Whether the reply must hold rights or memory, if that does not depend on its items.
    pub complex: Option<bool>,
    /// Options and times.
    pub call: Call,
}

/// A program's messages.
pub trait Transport {
    /// A port for a reply, for [`MAKE_SEND_ONCE`].
    fn reply_port(&mut self) -> u64;

    /// Sends the first `length` bytes of `message`, and receives the reply and its trailer into it.
    /// Blocks until there is a reply.
    ///
    /// # Errors
    /// What `mach_msg` returns in C.
    fn call(&mut self, message: &mut [u8], length: usize, call: &Call) -> Result<(), i32>;

    /// Sends the first `length` bytes of `message`. Blocks until it is taken.
    ///
    /// # Errors
    /// What `mach_msg` returns in C.
    fn send(&mut self, message: &mut [u8], length: usize, call: &Call) -> Result<(), i32>;
}

/// Whether a type is that of a right.
#[inline]
const fn is_right(name: u32) -> bool {
    name >= 16 && name <= 21
}

/// A reply that says success, after its result, which an untyped message with rights or memory does
/// not have.
fn reply<'a>(format: &'static Format, bytes: &'a [u8], request: &Request) -> Result<Reader<'a>, Error> {
    let header = Header::read(format, bytes).ok_or(Error::TypeError)?;
    if Some(header.id) != request.reply {
        let died = header.id == SEND_ONCE_NOTIFICATION;
        return Err(if died { Error::ServerDied } else { Error::ReplyMismatch });
    }
    let (size, at) = format.result();
    let is_complex = header.bits & COMPLEX != 0;
    let has_result = format.is_typed() || !is_complex;
    if has_result {
        let status = get(bytes, at, 4).filter(|_| header.size >= size).ok_or(Error::TypeError)? as i32;
        if status != 0 {
            let is_error = header.size == size && !is_complex;
            return Err(if is_error { Error::Status(Status(status)) } else { Error::TypeError });
        }
    }
    let mut reader = Reader::new(format, &header, bytes, request.complex).ok_or(Error::TypeError)?;
    if format.is_typed() {
        reader.integer().ok_or(Error::TypeError)?;
    } else if has_result {
        reader.representation().and_then(|()| reader.word()).ok_or(Error::TypeError)?;
    }
    Ok(reader)
}

/// What the kernel appends to a received message of the untyped dialect.
#[derive(Clone, Copy, Debug)]
pub struct Trailer<'a>(&'a [u8]);

impl<'a> Trailer<'a> {
    /// The trailer that is here.
    fn of(bytes: &'a [u8]) -> Option<Self> {
        let size = usize::try_from(get(bytes, 4, 4)?).ok()?;
        (get(bytes, 0, 4)? == 0).then_some(Self(bytes.get(..size)?))
    }

    /// The sequence number of the message at its port.
    pub fn sequence(&self) -> Option<u32> {
        Some(get(self.0, 8, 4)? as u32)
    }

    /// The sender's security token.
    pub fn sender(&self) -> Option<[u32; 2]> {
        self.words(12)
    }

    /// The sender's audit token.
    pub fn audit(&self) -> Option<[u32; 8]> {
        self.words(20)
    }

    /// The context of the port.
    pub fn context(&self) -> Option<u64> {
        get(self.0, 52, 8)
    }

    fn words<const N: usize>(&self, start: usize) -> Option<[u32; N]> {
        let mut words = [0; N];
        for (at, word) in words.iter_mut().enumerate() {
            *word = get(self.0, start + at * 4, 4)? as u32;
        }
        Some(words)
    }
}

/// What a server sends for a request: nothing, or a reply of so many bytes.
pub fn answer(
    format: &'static Format,
    request: &Header,
    reply: &mut [u8],
    result: Result<Option<usize>, Status>,
) -> Option<usize> {
    match result {
        Ok(size) => size,
        Err(Status::NO_REPLY) => None,
        Err(_) if request.remote == 0 => None,
        Err(status) => Some(Writer::refusal(format, reply, request, status)),
    }
}
