// Written by mig from the definition of `adder`. Do not edit.

/// What the benchmark measures stubs with.
#[allow(unused_imports, reason = "not every interface needs everything")]
use direct::{
    Array, AsyncTransport, Decoder, Encoder, Error, REPLY, Registers, Reply, Status,
    Transport, x2::{MapItem, MessageTag, ThreadId},
};
/// Labels of requests.
pub mod id {
    /// [`add`](super::Server::add).
    pub const ADD: u64 = 4900;
    /// [`send_back`](super::Server::send_back).
    pub const SEND_BACK: u64 = 4901;
}
/// Writes a request of [`Server::add`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_add<R: Registers>(
    registers_: &mut R,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(a);
    encoder_.word(b);
    encoder_.word(c);
    encoder_.word(d);
    Ok(encoder_.finish(id::ADD))
}
/// Reads the reply of [`Server::add`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_add<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(u64, u64), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(registers_, tag_, id::ADD, 3, 0)?;
    let read = move || {
        let sum = decoder_.word()?;
        let count = decoder_.word()?;
        decoder_.finish()?;
        Some((sum, count))
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::add`].
#[inline]
pub fn reply_add<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(u64, u64), Status>,
) -> Reply<'a> {
    let (sum, count) = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::ADD, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(sum);
    encoder_.word(count);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::ADD + REPLY));
    reply_
}
/// Writes a request of [`Server::send_back`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_send_back<R: Registers>(
    registers_: &mut R,
    block: &[u8],
    copy_room: usize,
) -> Result<MessageTag, Error> {
    if block.len() != 512 {
        return Err(Error::Status(Status::ARRAY_TOO_LARGE));
    }
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(block.len() as u64);
    encoder_.word(copy_room as u64);
    Ok(encoder_.finish(id::SEND_BACK))
}
/// Reads the reply of [`Server::send_back`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_send_back<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
    copy_room: usize,
) -> Result<usize, Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(registers_, tag_, id::SEND_BACK, 2, 2)?;
    let read = move || {
        let copy = usize::try_from(decoder_.word()?).ok()?;
        if copy != 512 {
            return None;
        }
        if decoder_.string(copy_room)? != copy {
            return None;
        }
        decoder_.finish()?;
        Some(copy)
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::send_back`].
#[inline]
pub fn reply_send_back<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<usize, Status>,
    copy_buffer: &'a [u8],
) -> Reply<'a> {
    let copy = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::SEND_BACK, status_),
    };
    if copy > copy_buffer.len() {
        return Reply::refusal(registers_, id::SEND_BACK, Status::ARRAY_TOO_LARGE);
    }
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(copy as u64);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::SEND_BACK + REPLY));
    reply_.add_string(&copy_buffer[..copy]);
    reply_
}
/// The client's functions, one for each request. Each blocks until the server has answered.
#[derive(Debug)]
pub struct Client<'a, T> {
    /// The thread's IPC.
    pub transport: &'a mut T,
    /// The server's thread.
    pub to: ThreadId,
}
impl<T: Transport> Client<'_, T> {
    /// The sum of four numbers, and how many they are.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn add(&mut self, a: u64, b: u64, c: u64, d: u64) -> Result<(u64, u64), Error> {
        let tag_ = encode_add(self.transport, a, b, c, d)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_add(self.transport, tag_)
    }
    /// The same bytes in return.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn send_back(
        &mut self,
        block: &[u8],
        copy_buffer: &mut [u8],
    ) -> Result<usize, Error> {
        let tag_ = encode_send_back(self.transport, block, copy_buffer.len())?;
        let strings_: &[&[u8]] = &[block];
        let rooms_: &mut [&mut [u8]] = &mut [&mut *copy_buffer];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_send_back(self.transport, tag_, copy_buffer.len())
    }
}
/// The client's functions as futures, which are ready when the server has answered.
#[derive(Debug)]
pub struct AsyncClient<'a, T> {
    /// The thread's IPC.
    pub transport: &'a mut T,
    /// The server's thread.
    pub to: ThreadId,
}
impl<T: AsyncTransport> AsyncClient<'_, T> {
    /// The sum of four numbers, and how many they are.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn add(
        &mut self,
        a: u64,
        b: u64,
        c: u64,
        d: u64,
    ) -> Result<(u64, u64), Error> {
        let tag_ = encode_add(self.transport, a, b, c, d)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_add(self.transport, tag_)
    }
    /// The same bytes in return.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn send_back(
        &mut self,
        block: &[u8],
        copy_buffer: &mut [u8],
    ) -> Result<usize, Error> {
        let tag_ = encode_send_back(self.transport, block, copy_buffer.len())?;
        let strings_: &[&[u8]] = &[block];
        let rooms_: &mut [&mut [u8]] = &mut [&mut *copy_buffer];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_send_back(self.transport, tag_, copy_buffer.len())
    }
}
/// The functions that carry out the requests in the server.
pub trait Server {
    /// The sum of four numbers, and how many they are.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn add(
        &mut self,
        caller_: ThreadId,
        a: u64,
        b: u64,
        c: u64,
        d: u64,
    ) -> Result<(u64, u64), Status>;
    /// The same bytes in return.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn send_back(
        &mut self,
        caller_: ThreadId,
        block: &[u8],
        copy_buffer: &mut [u8],
    ) -> Result<usize, Status>;
}
/// Decodes a request, calls the server's function, and writes the reply. `strings_` are the
/// strings that were received with the request. Data that the reply sends in string items
/// is written into `room_`. `None`: the request gets no reply.
#[inline]
pub fn serve<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    match tag_.label() {
        id::ADD => serve_add(server_, caller_, tag_, registers_, strings_, room_),
        id::SEND_BACK => {
            serve_send_back(server_, caller_, tag_, registers_, strings_, room_)
        }
        label => Some(Reply::refusal(registers_, label, Status::BAD_ID)),
    }
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_add<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 4, 0)?;
        let a = decoder_.word()?;
        let b = decoder_.word()?;
        let c = decoder_.word()?;
        let d = decoder_.word()?;
        decoder_.finish()?;
        Some((a, b, c, d))
    };
    let Some((a, b, c, d)) = read_(registers_) else {
        return Some(Reply::refusal(registers_, id::ADD, Status::BAD_ARGUMENTS))
    };
    let result_ = server_.add(caller_, a, b, c, d);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_add(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_send_back<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 2, 2)?;
        let block = usize::try_from(decoder_.word()?).ok()?;
        let copy_room = usize::try_from(decoder_.word()?).ok()?;
        if block != 512 {
            return None;
        }
        let block = strings_.get(0).filter(|string| string.len() == block)?;
        if decoder_.string(block.len())? != block.len() {
            return None;
        }
        decoder_.finish()?;
        Some((block, copy_room))
    };
    let Some((block, copy_room)) = read_(registers_) else {
        return Some(Reply::refusal(registers_, id::SEND_BACK, Status::BAD_ARGUMENTS))
    };
    let (copy_buffer, room_) = room_.split_at_mut(copy_room.min(room_.len()));
    let result_ = server_.send_back(caller_, block, &mut *copy_buffer);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_send_back(registers_, result_, copy_buffer))
}
