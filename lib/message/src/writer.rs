//! Writing the items of a message in their order.

use crate::format::{COMPLEX, put};
use crate::{
    AsyncTransport, Descriptor, Error, Format, Header, INLINE, Memory, Reader, Request, Transport, reply,
};
use direct::{Element, Status};

/// A position in a message at which items are written. The buffer of a stub holds the largest
/// message of its interface. What does not fit into the buffer is not written.
#[derive(Debug)]
pub struct Writer<'a> {
    format: &'static Format,
    bytes: &'a mut [u8],
    at: usize,
    complex: bool,
}

impl<'a> Writer<'a> {
    /// Begins a message in the buffer `bytes`, with room for the header.
    #[inline]
    pub fn new(format: &'static Format, bytes: &'a mut [u8]) -> Self {
        Self { format, bytes, at: format.header, complex: false }
    }

    fn put(&mut self, number: u64, size: usize) {
        put(self.bytes, self.at, number, size);
        self.at += size;
    }

    #[inline]
    fn pad(&mut self) {
        let end = self.at.next_multiple_of(self.format.word);
        if let Some(padding) = self.bytes.get_mut(self.at..end) {
            padding.fill(0);
        }
        self.at = end;
    }

    /// Adds a number of `size` bytes, and padding.
    pub fn number(&mut self, number: u64, size: usize) {
        let padded = (self.at + size).next_multiple_of(self.format.word) - self.at;
        if padded <= 8 && size < 8 {
            // The number and its padding are written together.
            self.put(number & !(u64::MAX << (8 * size)), padded);
        } else {
            self.put(number, size);
            self.pad();
        }
    }

    /// Typed dialect: adds a type descriptor and a number of `size` bytes.
    pub fn value(&mut self, descriptor: &Descriptor, number: u64, size: usize) {
        self.describe(descriptor);
        self.number(number, size);
    }

    /// Adds the elements of an array, and padding.
    #[inline]
    pub fn data<T: Element>(&mut self, elements: &[T]) {
        let size = elements.len() * T::SIZE;
        if let Some(room) = self.bytes.get_mut(self.at..self.at + size) {
            for (room, element) in room.chunks_exact_mut(T::SIZE).zip(elements) {
                put(room, 0, element.to_word(), T::SIZE);
            }
        }
        self.at += size;
        self.pad();
    }

    /// Adds a string in a field of `size` bytes, and padding.
    pub fn text(&mut self, text: &[u8], size: usize) {
        let rest = self.bytes.get_mut(self.at..self.at + size);
        if let Some((room, rest)) = rest.and_then(|room| room.split_at_mut_checked(text.len())) {
            room.copy_from_slice(text);
            rest.fill(0);
        }
        self.at += size;
        self.pad();
    }

    /// Typed dialect: adds a type descriptor. It is not inlined, because a stub has one call for
    /// each item.
    #[inline(never)]
    pub fn describe(&mut self, descriptor: &Descriptor) {
        self.complex |= descriptor.is_complex();
        self.at += descriptor.write(self.format, self.bytes, self.at);
    }

    /// Typed dialect: adds the address of memory out of line.
    #[inline]
    pub fn pointer(&mut self, address: u64) {
        self.put(address, self.format.pointer);
        self.pad();
    }

    /// Typed dialect: adds an integer and its descriptor.
    pub fn integer(&mut self, integer: u32) {
        let descriptor = Descriptor { name: 2, bits: 32, number: 1, flags: INLINE };
        self.value(&descriptor, u64::from(integer), 4);
    }

    /// Untyped dialect: adds the number of descriptors in the message.
    #[inline]
    pub fn body(&mut self, descriptors: u32) {
        self.complex = true;
        self.put(u64::from(descriptors), 4);
    }

    /// Untyped dialect: adds a descriptor of a right.
    #[inline]
    pub fn right(&mut self, name: u32, disposition: u32) {
        self.put(u64::from(name), 8);
        self.put(u64::from(disposition) << 16, 4);
    }

    /// Untyped dialect: adds descriptors of `most` rights: of `names`, then of null rights.
    pub fn rights(&mut self, names: &[u32], most: usize, disposition: u32) {
        for at in 0..most {
            self.right(names.get(at).copied().unwrap_or(0), disposition);
        }
    }

    /// Untyped dialect: adds a descriptor of memory out of line: of `size` bytes, or with a
    /// disposition of that many rights.
    pub fn memory(&mut self, memory: Memory, size: u32, disposition: Option<u32>, physical: bool) {
        let kind = u64::from(disposition.is_some()) + 1;
        let word = u64::from(memory.deallocate) | u64::from(!physical) << 8 | kind << 24;
        let word = word | u64::from(disposition.unwrap_or(0)) << 16;
        self.put(memory.address, self.format.pointer);
        let parts = if self.format.pointer == 8 { [word, u64::from(size)] } else { [u64::from(size), word] };
        parts.into_iter().for_each(|part| self.put(part, 4));
    }

    /// Untyped dialect: adds the representation of this machine's numbers.
    #[inline]
    pub fn representation(&mut self) {
        self.put(1 << 32, 8);
    }

    /// Untyped dialect: adds a 32-bit integer.
    #[inline]
    pub fn word(&mut self, word: u32) {
        self.put(u64::from(word), 4);
    }

    /// Writes the header, now that the size and the presence of rights and memory are known.
    /// Returns the size of the message in bytes.
    pub fn finish(self, header: &Header) -> usize {
        let bits = header.bits | if self.complex { COMPLEX } else { 0 };
        Header { bits, size: self.at, ..*header }.write(self.format, self.bytes);
        self.at
    }

    fn request(self, reply_port: impl FnOnce() -> u64, to: u64, request: &Request) -> (usize, &'a mut [u8]) {
        let local = match request.reply_port {
            Some(port) => port,
            None if request.reply.is_none() => 0,
            None => reply_port(),
        };
        let bits = request.bits | if self.complex { COMPLEX } else { 0 };
        let header = Header { bits, size: self.at, remote: to, local, sequence: 0, id: request.id };
        header.write(self.format, self.bytes);
        (self.at, self.bytes)
    }

    /// Sends the message as a request to the port `to`, and receives the reply into the same
    /// buffer. Blocks until there is a reply or the time-outs of the request have ended.
    ///
    /// # Errors
    /// `Transport`: the message was not sent, or no reply was received. Other errors: the received
    /// message is not a reply that says success.
    #[inline(never)]
    pub fn call<T: Transport>(
        self,
        transport: &mut T,
        to: u64,
        request: &Request,
    ) -> Result<Reader<'a>, Error> {
        let format = self.format;
        let (length, bytes) = self.request(|| transport.reply_port(), to, request);
        transport.call(bytes, length, &request.call).map_err(Error::Transport)?;
        reply(format, bytes, request)
    }

    /// Sends the message as a request to the port `to`, without a reply. Blocks until it is
    /// accepted or the time-out of the request has ended.
    ///
    /// # Errors
    /// `Transport`: the message was not sent.
    #[inline(never)]
    pub fn send<T: Transport>(self, transport: &mut T, to: u64, request: &Request) -> Result<(), Error> {
        let (length, bytes) = self.request(|| transport.reply_port(), to, request);
        transport.send(bytes, length, &request.call).map_err(Error::Transport)
    }

    /// Like [`call`](Self::call), as a future instead of a blocking call.
    ///
    /// # Errors
    /// Those of [`call`](Self::call).
    pub async fn call_async<T: AsyncTransport>(
        self,
        transport: &mut T,
        to: u64,
        request: &Request,
    ) -> Result<Reader<'a>, Error> {
        let format = self.format;
        let (length, bytes) = self.request(|| transport.reply_port(), to, request);
        transport.call(bytes, length, &request.call).await.map_err(Error::Transport)?;
        reply(format, bytes, request)
    }

    /// Like [`send`](Self::send), as a future instead of a blocking call.
    ///
    /// # Errors
    /// Those of [`send`](Self::send).
    pub async fn send_async<T: AsyncTransport>(
        self,
        transport: &mut T,
        to: u64,
        request: &Request,
    ) -> Result<(), Error> {
        let (length, bytes) = self.request(|| transport.reply_port(), to, request);
        transport.send(bytes, length, &request.call).await.map_err(Error::Transport)
    }

    /// Writes a reply that has only the result `status`. Returns its size in bytes.
    pub fn refusal(format: &'static Format, bytes: &'a mut [u8], request: &Header, status: Status) -> usize {
        let mut writer = Writer::new(format, bytes);
        writer.result(status.0 as u32);
        writer.finish(&request.of_reply())
    }

    /// Adds the result of a routine as the first item of its reply.
    pub fn result(&mut self, result: u32) {
        if self.format.is_typed() {
            self.integer(result);
        } else {
            self.representation();
            self.word(result);
        }
    }
}

impl Header {
    /// The header of the reply to the request with this header. Its size is still 0.
    #[inline]
    pub fn of_reply(&self) -> Header {
        let id = self.id.wrapping_add(100);
        Header { bits: self.remote_type(), remote: self.remote, local: 0, sequence: 0, id, size: 0 }
    }
}
