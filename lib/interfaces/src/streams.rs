// Written by mig from the definition of `streams`. Do not edit.

/// Streams of bytes between this machine and its host: the ports of a virtio console. A request
/// is L4 IPC to the thread that the driver registers with root. The label of a request is its
/// number here. The label of an answer is 5700, and its first word is a status as in root's
/// answers (root.defs), or -303 if there is no such request, -304 if its words are not the
/// arguments.
///
/// share is memory of 256 KiB that the client shares with the driver (root_share_create). In
/// it, one after the other and at multiples of 64 bytes, lie the ring of output (65536 bytes,
/// to the host), the ring of input (65536 bytes), and two words of 32 bits: whether the host
/// has opened its end of the port (0: not yet, 1: it has, 2: it has closed it again), and the
/// number of pieces of output that the driver has taken out of the ring and the device has not
/// passed on yet. A ring begins with three counters of 32 bits: how many bytes have ever been
/// written, how many have ever been read (both modulo 2^32), and whether the writer waits to be
/// notified (1). Its bytes follow directly. When the host has closed its end, all bytes that
/// came before are in the ring of input already, and output is discarded. The driver's thread
/// is notified with bit 0 when there is something to do for it.
#[allow(unused_imports, reason = "not every interface needs everything")]
use direct::{
    Array, AsyncTransport, Decoder, Encoder, Error, REPLY, Registers, Reply, Status,
    Transport, x2::{MapItem, MessageTag, ThreadId},
};
/// Labels of requests.
pub mod id {
    /// [`streams_attach`](super::Server::streams_attach).
    pub const STREAMS_ATTACH: u64 = 5600;
}
/// Writes a request of [`Server::streams_attach`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_streams_attach<R: Registers>(
    registers_: &mut R,
    port: u64,
    share: u64,
    thread: u64,
    notification: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(port);
    encoder_.word(share);
    encoder_.word(thread);
    encoder_.word(notification);
    Ok(encoder_.finish(id::STREAMS_ATTACH))
}
/// Reads the reply of [`Server::streams_attach`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_streams_attach<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(registers_, tag_, id::STREAMS_ATTACH, 1, 0)?;
    let read = move || {
        decoder_.finish()?;
        Some(())
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::streams_attach`].
#[inline]
pub fn reply_streams_attach<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(), Status>,
) -> Reply<'a> {
    let () = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::STREAMS_ATTACH, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::STREAMS_ATTACH + REPLY));
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
    /// From now on the rings in share are the two directions of this port, whose number is as
    /// virtio has it. The client's thread is notified with the bits in notification when there is
    /// input, when there is room for output that the client waits for, when all output is passed
    /// on, and when the host has opened or closed its end.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn streams_attach(
        &mut self,
        port: u64,
        share: u64,
        thread: u64,
        notification: u64,
    ) -> Result<(), Error> {
        let tag_ = encode_streams_attach(
            self.transport,
            port,
            share,
            thread,
            notification,
        )?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_streams_attach(self.transport, tag_)
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
    /// From now on the rings in share are the two directions of this port, whose number is as
    /// virtio has it. The client's thread is notified with the bits in notification when there is
    /// input, when there is room for output that the client waits for, when all output is passed
    /// on, and when the host has opened or closed its end.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn streams_attach(
        &mut self,
        port: u64,
        share: u64,
        thread: u64,
        notification: u64,
    ) -> Result<(), Error> {
        let tag_ = encode_streams_attach(
            self.transport,
            port,
            share,
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
        decode_streams_attach(self.transport, tag_)
    }
}
/// The functions that carry out the requests in the server.
pub trait Server {
    /// From now on the rings in share are the two directions of this port, whose number is as
    /// virtio has it. The client's thread is notified with the bits in notification when there is
    /// input, when there is room for output that the client waits for, when all output is passed
    /// on, and when the host has opened or closed its end.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn streams_attach(
        &mut self,
        caller_: ThreadId,
        port: u64,
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
        id::STREAMS_ATTACH => {
            serve_streams_attach(server_, caller_, tag_, registers_, strings_, room_)
        }
        label => Some(Reply::refusal(registers_, label, Status::BAD_ID)),
    }
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_streams_attach<'a, S: Server, R: Registers>(
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
        let port = decoder_.word()?;
        let share = decoder_.word()?;
        let thread = decoder_.word()?;
        let notification = decoder_.word()?;
        decoder_.finish()?;
        Some((port, share, thread, notification))
    };
    let Some((port, share, thread, notification)) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::STREAMS_ATTACH, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.streams_attach(caller_, port, share, thread, notification);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_streams_attach(registers_, result_))
}
