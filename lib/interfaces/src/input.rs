// Written by mig from the definition of `input`. Do not edit.

/// A source of input events: a keyboard. A request is L4 IPC to the thread that the driver
/// registers with root. The label of a request is its number here. The label of an answer is
/// 4900, and its first word is a status as in root's answers (root.defs), or -303 if there is
/// no such request,
/// -304 if its words are not the arguments.
///
/// share is memory of 4 KiB that the client shares with the driver (root_share_create). It
/// holds a ring of 2048 bytes: three words of 32 bits, which are the number of bytes that were
/// ever written, the number of bytes that were ever read (both modulo 2^32), and whether the
/// writer waits to be notified (1); then the bytes. The driver writes events of 8 bytes, with
/// the numbers that Linux has for them, the low byte first: the type (16 bits), the code (16
/// bits), and the value (32 bits, signed). If the ring has no room, events are lost, and the
/// next one that is written has type 0 and code 3 (SYN_DROPPED): then any key may have changed,
/// and the client must take all keys as released. The client notifies the driver's thread with
/// bit 0 when it has read events and the writer waits.
///
/// The ring takes 2112 bytes, since it is a multiple of 64 bytes long. A word of 32 bits
/// follows, in which the client says which lights are to be on: bit n is the light with Linux'
/// number n (0 Num Lock, 1 Caps Lock, 2 Scroll Lock). When it has changed the word, it notifies
/// the driver's thread with bit 0.
#[allow(unused_imports, reason = "not every interface needs everything")]
use direct::{
    Array, AsyncTransport, Decoder, Encoder, Error, REPLY, Registers, Reply, Status,
    Transport, x2::{MapItem, MessageTag, ThreadId},
};
/// Labels of requests.
pub mod id {
    /// [`input_attach`](super::Server::input_attach).
    pub const INPUT_ATTACH: u64 = 4800;
}
/// Writes a request of [`Server::input_attach`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_input_attach<R: Registers>(
    registers_: &mut R,
    share: u64,
    thread: u64,
    notification: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(share);
    encoder_.word(thread);
    encoder_.word(notification);
    Ok(encoder_.finish(id::INPUT_ATTACH))
}
/// Reads the reply of [`Server::input_attach`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_input_attach<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(registers_, tag_, id::INPUT_ATTACH, 1, 0)?;
    let read = move || {
        decoder_.finish()?;
        Some(())
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::input_attach`].
#[inline]
pub fn reply_input_attach<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(), Status>,
) -> Reply<'a> {
    let () = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::INPUT_ATTACH, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::INPUT_ATTACH + REPLY));
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
    /// From now on the ring in share gets the events. The client's thread is notified with the bits
    /// in notification when some have been written.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn input_attach(
        &mut self,
        share: u64,
        thread: u64,
        notification: u64,
    ) -> Result<(), Error> {
        let tag_ = encode_input_attach(self.transport, share, thread, notification)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_input_attach(self.transport, tag_)
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
    /// From now on the ring in share gets the events. The client's thread is notified with the bits
    /// in notification when some have been written.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn input_attach(
        &mut self,
        share: u64,
        thread: u64,
        notification: u64,
    ) -> Result<(), Error> {
        let tag_ = encode_input_attach(self.transport, share, thread, notification)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_input_attach(self.transport, tag_)
    }
}
/// The functions that carry out the requests in the server.
pub trait Server {
    /// From now on the ring in share gets the events. The client's thread is notified with the bits
    /// in notification when some have been written.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn input_attach(
        &mut self,
        caller_: ThreadId,
        share: u64,
        thread: u64,
        notification: u64,
    ) -> Result<(), Status>;
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
        id::INPUT_ATTACH => {
            serve_input_attach(server_, caller_, tag_, registers_, strings_, room_)
        }
        label => Some(Reply::refusal(registers_, label, Status::BAD_ID)),
    }
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_input_attach<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 3, 0)?;
        let share = decoder_.word()?;
        let thread = decoder_.word()?;
        let notification = decoder_.word()?;
        decoder_.finish()?;
        Some((share, thread, notification))
    };
    let Some((share, thread, notification)) = read_(registers_) else {
        return Some(Reply::refusal(registers_, id::INPUT_ATTACH, Status::BAD_ARGUMENTS))
    };
    let result_ = server_.input_attach(caller_, share, thread, notification);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_input_attach(registers_, result_))
}
