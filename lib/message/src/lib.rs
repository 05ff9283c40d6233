//! The library under the stubs that `mig` writes for Mach messages. It reads and writes the items
//! of messages in both dialects. Sending and receiving are a trait, so that stubs run over any
//! transport. Only arrays of a size that varies are allocated.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod array;
mod descriptor;
mod format;
mod reader;
mod writer;

pub use array::Array;
pub use descriptor::{DEALLOCATE, Descriptor, INLINE, LONG, for_each_item};
pub use direct::{Element, Status};
pub use format::{Format, Header};
pub use reader::{Described, Expected, Number, Reader};
pub use writer::Writer;

use format::{COMPLEX, get};

/// The type of a send-once right that is made when the message is sent, as for a reply port.
pub const MAKE_SEND_ONCE: u32 = 21;

/// The id of the notification that arrives if the send-once right to a reply port was dropped.
const SEND_ONCE_NOTIFICATION: u32 = 71;

/// The reason why a call has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The message could not be sent, or no reply was received. The number is what `mach_msg`
    /// returned.
    Transport(i32),
    /// The server has answered with this status, which is not success.
    Status(Status),
    /// The reply does not have the form that the interface says: -300 in C.
    TypeError,
    /// The received message is the reply to another request: -301 in C.
    ReplyMismatch,
    /// The server has destroyed the request without a reply: -308 in C.
    ServerDied,
    /// The reply has no trailer with what the client asked for: -309 in C.
    TrailerError,
}

/// Memory out of line, in the address space of the program that sends or has received the message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The address of the first byte.
    pub address: u64,
    /// The number of elements.
    pub count: u32,
    /// Whether the sender gives up its copy, for an argument where the sender decides that.
    pub deallocate: bool,
}

impl Memory {
    /// The memory of `elements`, of which the sender keeps its copy.
    pub fn of<T>(elements: &[T]) -> Memory {
        let count = u32::try_from(elements.len()).unwrap_or(u32::MAX);
        Memory { address: elements.as_ptr() as u64, count, deallocate: false }
    }
}

/// An array that is in the message if it has at most `N` elements, and otherwise out of line.
#[derive(Debug, PartialEq, Eq)]
pub enum Data<T: Element, const N: usize> {
    /// The elements, which were in the message.
    Inline(Array<T, N>),
    /// The memory out of line that has the elements.
    Memory(Memory),
}

/// How a client's stub sends a message and receives the reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Options of `mach_msg` in addition to those that each call has.
    pub options: u32,
    /// How many milliseconds to wait for the reply; `None`: for ever.
    pub wait: Option<u32>,
    /// How many milliseconds to wait until the message is accepted; `None`: for ever.
    pub send: Option<u32>,
    /// How many bytes of the trailer the client wants.
    pub trailer: usize,
}

/// What a client's stub passes to the library about a call of a routine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The header's bits: the types of the rights to the server's port and to the port for the
    /// reply.
    pub bits: u32,
    /// The id of the request.
    pub id: u32,
    /// The port for the reply; `None`: the transport chooses it.
    pub reply_port: Option<u64>,
    /// The id of the reply; `None`: the routine has no reply.
    pub reply: Option<u32>,
    /// Whether the reply must hold rights or memory; `None`: that depends on its items.
    pub complex: Option<bool>,
    /// Options and time-outs.
    pub call: Call,
}

/// A way to send and receive messages.
pub trait Transport {
    /// A port at which the caller can receive a reply. The request carries a right of the type
    /// [`MAKE_SEND_ONCE`] to it.
    fn reply_port(&mut self) -> u64;

    /// Sends the first `length` bytes of `message`, and receives the reply and its trailer into
    /// `message`. Blocks until there is a reply or the time-outs of `call` have ended.
    ///
    /// # Errors
    /// The number that `mach_msg` returns in C.
    fn call(&mut self, message: &mut [u8], length: usize, call: &Call) -> Result<(), i32>;

    /// Sends the first `length` bytes of `message`. Blocks until it is accepted or the time-out of
    /// `call` has ended.
    ///
    /// # Errors
    /// The number that `mach_msg` returns in C.
    fn send(&mut self, message: &mut [u8], length: usize, call: &Call) -> Result<(), i32>;
}

/// A way to send and receive messages of a program that can do other work meanwhile.
pub trait AsyncTransport: Send {
    /// A port for replies, as [`Transport::reply_port`] returns it.
    fn reply_port(&mut self) -> u64;

    /// Like [`Transport::call`], as a future instead of a blocking call.
    ///
    /// # Errors
    /// The number that `mach_msg` returns in C.
    fn call(
        &mut self,
        message: &mut [u8],
        length: usize,
        call: &Call,
    ) -> impl Future<Output = Result<(), i32>> + Send;

    /// Like [`Transport::send`], as a future instead of a blocking call.
    ///
    /// # Errors
    /// The number that `mach_msg` returns in C.
    fn send(
        &mut self,
        message: &mut [u8],
        length: usize,
        call: &Call,
    ) -> impl Future<Output = Result<(), i32>> + Send;
}

/// Whether the type with this number is that of a right.
#[inline]
pub const fn is_right(name: u32) -> bool {
    name >= 16 && name <= 21
}

/// Reads the header and the result of a reply, and returns the rest if the result says success. An
/// untyped message with rights or memory has no result, and means success.
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

/// The trailer: what the kernel appends to a received message of the untyped dialect.
#[derive(Clone, Copy, Debug)]
pub struct Trailer<'a>(&'a [u8]);

impl<'a> Trailer<'a> {
    /// The trailer at the beginning of `bytes`, if there is one.
    fn of(bytes: &'a [u8]) -> Option<Self> {
        let size = usize::try_from(get(bytes, 4, 4)?).ok()?;
        (get(bytes, 0, 4)? == 0).then_some(Self(bytes.get(..size)?))
    }

    /// The sequence number of the message at its port.
    pub fn sequence(&self) -> Option<u32> {
        Some(get(self.0, 8, 4)? as u32)
    }

    /// The security token of the sender, if the trailer has it.
    pub fn sender(&self) -> Option<[u32; 2]> {
        self.words(12)
    }

    /// The audit token of the sender, if the trailer has it.
    pub fn audit(&self) -> Option<[u32; 8]> {
        self.words(20)
    }

    /// The context of the port, if the trailer has it.
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

/// The size in bytes of the reply that a server sends, or `None` if it sends none. `result` is what
/// the routine's stub returned; for an error this writes a reply with the status.
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
