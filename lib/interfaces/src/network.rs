// Written by mig from the definition of `network`. Do not edit.

/// The internet protocols in a task of their own: a stack with its sockets and interfaces. A
/// request is L4 IPC to the thread that the server registers with root. The label of a request
/// is its number here. The label of an answer is that of the request + 100, and its first word
/// is a status as in root's answers (root.defs), or -303 if there is no such request, -304 if
/// its words are not the arguments, -307 if the answer has no room.
///
/// A request to the stack is a sequence of bytes, and so is its answer: inet::placement writes
/// and reads them. The server never waits for its client, so each request is answered soon.
#[allow(unused_imports, reason = "not every interface needs everything")]
use direct::{
    Array, AsyncTransport, Decoder, Encoder, Error, REPLY, Registers, Reply, Status,
    Transport, x2::{MapItem, MessageTag, ThreadId},
};
/// Labels of requests.
pub mod id {
    /// [`network_attach`](super::Server::network_attach).
    pub const NETWORK_ATTACH: u64 = 6000;
    /// [`network_request`](super::Server::network_request).
    pub const NETWORK_REQUEST: u64 = 6001;
    /// [`network_transfer`](super::Server::network_transfer).
    pub const NETWORK_TRANSFER: u64 = 6002;
}
/// Writes a request of [`Server::network_attach`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_network_attach<R: Registers>(
    registers_: &mut R,
    seed0: u64,
    seed1: u64,
    seed2: u64,
    seed3: u64,
    key: u64,
    memory: u64,
    sockets: u64,
    first: u64,
    thread: u64,
    notification: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(seed0);
    encoder_.word(seed1);
    encoder_.word(seed2);
    encoder_.word(seed3);
    encoder_.word(key);
    encoder_.word(memory);
    encoder_.word(sockets);
    encoder_.word(first);
    encoder_.word(thread);
    encoder_.word(notification);
    Ok(encoder_.finish(id::NETWORK_ATTACH))
}
/// Reads the reply of [`Server::network_attach`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_network_attach<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(registers_, tag_, id::NETWORK_ATTACH, 1, 0)?;
    let read = move || {
        decoder_.finish()?;
        Some(())
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::network_attach`].
#[inline]
pub fn reply_network_attach<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(), Status>,
) -> Reply<'a> {
    let () = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::NETWORK_ATTACH, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::NETWORK_ATTACH + REPLY));
    reply_
}
/// Writes a request of [`Server::network_request`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_network_request<R: Registers>(
    registers_: &mut R,
    key: u64,
    request: &[u8],
) -> Result<MessageTag, Error> {
    if request.len() > 480 {
        return Err(Error::Status(Status::ARRAY_TOO_LARGE));
    }
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(key);
    encoder_.array(request);
    Ok(encoder_.finish(id::NETWORK_REQUEST))
}
/// Reads the reply of [`Server::network_request`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_network_request<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<Array<u8, 480>, Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::reply(registers_, tag_, id::NETWORK_REQUEST)?;
    let read = move || {
        let answer = decoder_.array::<u8, 480>()?;
        decoder_.finish()?;
        Some(answer)
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::network_request`].
#[inline]
pub fn reply_network_request<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<Array<u8, 480>, Status>,
) -> Reply<'a> {
    let answer = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::NETWORK_REQUEST, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.array(&answer);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::NETWORK_REQUEST + REPLY));
    reply_
}
/// Writes a request of [`Server::network_transfer`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_network_transfer<R: Registers>(
    registers_: &mut R,
    key: u64,
    request: &[u8],
    answer_room: usize,
) -> Result<MessageTag, Error> {
    if request.len() > 69632 {
        return Err(Error::Status(Status::ARRAY_TOO_LARGE));
    }
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(key);
    encoder_.word(request.len() as u64);
    encoder_.word(answer_room as u64);
    Ok(encoder_.finish(id::NETWORK_TRANSFER))
}
/// Reads the reply of [`Server::network_transfer`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_network_transfer<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
    answer_room: usize,
) -> Result<usize, Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(
        registers_,
        tag_,
        id::NETWORK_TRANSFER,
        2,
        2,
    )?;
    let read = move || {
        let answer = usize::try_from(decoder_.word()?).ok()?;
        if answer > 69632 {
            return None;
        }
        if decoder_.string(answer_room)? != answer {
            return None;
        }
        decoder_.finish()?;
        Some(answer)
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::network_transfer`].
#[inline]
pub fn reply_network_transfer<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<usize, Status>,
    answer_buffer: &'a [u8],
) -> Reply<'a> {
    let answer = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::NETWORK_TRANSFER, status_),
    };
    if answer > answer_buffer.len() {
        return Reply::refusal(registers_, id::NETWORK_TRANSFER, Status::ARRAY_TOO_LARGE);
    }
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(answer as u64);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::NETWORK_TRANSFER + REPLY));
    reply_.add_string(&answer_buffer[..answer]);
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
    /// Makes a new stack, of which the client is the only user. The four words of the seed are
    /// random and secret, and so is the key, by which the client names itself in its requests. The
    /// buffers of all sockets have at most memory bytes, and there are at most so many sockets, if
    /// the server's own memory allows. Sockets are counted from first on. The client's thread is
    /// notified with the bits in notification when sockets have become ready of which no answer has
    /// told.
    ///
    /// Another client is refused as long as the one that there is has not ended.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn network_attach(
        &mut self,
        seed0: u64,
        seed1: u64,
        seed2: u64,
        seed3: u64,
        key: u64,
        memory: u64,
        sockets: u64,
        first: u64,
        thread: u64,
        notification: u64,
    ) -> Result<(), Error> {
        let tag_ = encode_network_attach(
            self.transport,
            seed0,
            seed1,
            seed2,
            seed3,
            key,
            memory,
            sockets,
            first,
            thread,
            notification,
        )?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_network_attach(self.transport, tag_)
    }
    /// Carries out a request to the stack. Request and answer are short.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn network_request(
        &mut self,
        key: u64,
        request: &[u8],
    ) -> Result<Array<u8, 480>, Error> {
        let tag_ = encode_network_request(self.transport, key, request)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_network_request(self.transport, tag_)
    }
    /// Carries out a request to the stack. Request and answer may be long.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn network_transfer(
        &mut self,
        key: u64,
        request: &[u8],
        answer_buffer: &mut [u8],
    ) -> Result<usize, Error> {
        let tag_ = encode_network_transfer(
            self.transport,
            key,
            request,
            answer_buffer.len(),
        )?;
        let strings_: &[&[u8]] = &[request];
        let rooms_: &mut [&mut [u8]] = &mut [&mut *answer_buffer];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_network_transfer(self.transport, tag_, answer_buffer.len())
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
    /// Makes a new stack, of which the client is the only user. The four words of the seed are
    /// random and secret, and so is the key, by which the client names itself in its requests. The
    /// buffers of all sockets have at most memory bytes, and there are at most so many sockets, if
    /// the server's own memory allows. Sockets are counted from first on. The client's thread is
    /// notified with the bits in notification when sockets have become ready of which no answer has
    /// told.
    ///
    /// Another client is refused as long as the one that there is has not ended.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn network_attach(
        &mut self,
        seed0: u64,
        seed1: u64,
        seed2: u64,
        seed3: u64,
        key: u64,
        memory: u64,
        sockets: u64,
        first: u64,
        thread: u64,
        notification: u64,
    ) -> Result<(), Error> {
        let tag_ = encode_network_attach(
            self.transport,
            seed0,
            seed1,
            seed2,
            seed3,
            key,
            memory,
            sockets,
            first,
            thread,
            notification,
        )?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_network_attach(self.transport, tag_)
    }
    /// Carries out a request to the stack. Request and answer are short.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn network_request(
        &mut self,
        key: u64,
        request: &[u8],
    ) -> Result<Array<u8, 480>, Error> {
        let tag_ = encode_network_request(self.transport, key, request)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_network_request(self.transport, tag_)
    }
    /// Carries out a request to the stack. Request and answer may be long.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn network_transfer(
        &mut self,
        key: u64,
        request: &[u8],
        answer_buffer: &mut [u8],
    ) -> Result<usize, Error> {
        let tag_ = encode_network_transfer(
            self.transport,
            key,
            request,
            answer_buffer.len(),
        )?;
        let strings_: &[&[u8]] = &[request];
        let rooms_: &mut [&mut [u8]] = &mut [&mut *answer_buffer];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_network_transfer(self.transport, tag_, answer_buffer.len())
    }
}
/// The functions that carry out the requests in the server.
pub trait Server {
    /// Makes a new stack, of which the client is the only user. The four words of the seed are
    /// random and secret, and so is the key, by which the client names itself in its requests. The
    /// buffers of all sockets have at most memory bytes, and there are at most so many sockets, if
    /// the server's own memory allows. Sockets are counted from first on. The client's thread is
    /// notified with the bits in notification when sockets have become ready of which no answer has
    /// told.
    ///
    /// Another client is refused as long as the one that there is has not ended.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn network_attach(
        &mut self,
        caller_: ThreadId,
        seed0: u64,
        seed1: u64,
        seed2: u64,
        seed3: u64,
        key: u64,
        memory: u64,
        sockets: u64,
        first: u64,
        thread: u64,
        notification: u64,
    ) -> Result<(), Status>;
    /// Carries out a request to the stack. Request and answer are short.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn network_request(
        &mut self,
        caller_: ThreadId,
        key: u64,
        request: &[u8],
    ) -> Result<Array<u8, 480>, Status>;
    /// Carries out a request to the stack. Request and answer may be long.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn network_transfer(
        &mut self,
        caller_: ThreadId,
        key: u64,
        request: &[u8],
        answer_buffer: &mut [u8],
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
        id::NETWORK_ATTACH => {
            serve_network_attach(server_, caller_, tag_, registers_, strings_, room_)
        }
        id::NETWORK_REQUEST => {
            serve_network_request(server_, caller_, tag_, registers_, strings_, room_)
        }
        id::NETWORK_TRANSFER => {
            serve_network_transfer(server_, caller_, tag_, registers_, strings_, room_)
        }
        label => Some(Reply::refusal(registers_, label, Status::BAD_ID)),
    }
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_network_attach<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 10, 0)?;
        let seed0 = decoder_.word()?;
        let seed1 = decoder_.word()?;
        let seed2 = decoder_.word()?;
        let seed3 = decoder_.word()?;
        let key = decoder_.word()?;
        let memory = decoder_.word()?;
        let sockets = decoder_.word()?;
        let first = decoder_.word()?;
        let thread = decoder_.word()?;
        let notification = decoder_.word()?;
        decoder_.finish()?;
        Some((
            seed0,
            seed1,
            seed2,
            seed3,
            key,
            memory,
            sockets,
            first,
            thread,
            notification,
        ))
    };
    let Some(
        (seed0, seed1, seed2, seed3, key, memory, sockets, first, thread, notification),
    ) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::NETWORK_ATTACH, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_
        .network_attach(
            caller_,
            seed0,
            seed1,
            seed2,
            seed3,
            key,
            memory,
            sockets,
            first,
            thread,
            notification,
        );
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_network_attach(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_network_request<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::new(registers_, tag_);
        let key = decoder_.word()?;
        let request = decoder_.array::<u8, 480>()?;
        decoder_.finish()?;
        Some((key, request))
    };
    let Some((key, request)) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::NETWORK_REQUEST, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.network_request(caller_, key, &request);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_network_request(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_network_transfer<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 3, 2)?;
        let key = decoder_.word()?;
        let request = usize::try_from(decoder_.word()?).ok()?;
        let answer_room = usize::try_from(decoder_.word()?).ok()?;
        if request > 69632 {
            return None;
        }
        let request = strings_.get(0).filter(|string| string.len() == request)?;
        if decoder_.string(request.len())? != request.len() {
            return None;
        }
        decoder_.finish()?;
        Some((key, request, answer_room))
    };
    let Some((key, request, answer_room)) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::NETWORK_TRANSFER, Status::BAD_ARGUMENTS),
        )
    };
    let (answer_buffer, room_) = room_.split_at_mut(answer_room.min(room_.len()));
    let result_ = server_.network_transfer(caller_, key, request, &mut *answer_buffer);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_network_transfer(registers_, result_, answer_buffer))
}
