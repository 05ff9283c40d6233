// Written by mig from the definition of `net`. Do not edit.

/// A network interface: a device that sends and receives Ethernet frames. A request is L4 IPC
/// to the thread that the driver registers with root. The label of a request is its number
/// here. The label of an answer is 5900, and its first word is a status as in root's answers
/// (root.defs), or -303 if there is no such request, -304 if its words are not the arguments.
///
/// share is memory of 16 KiB that the client shares with the driver (root_share_create). It
/// holds rings of buffers for frames to send and for received frames; lib/net describes and
/// implements them. The buffers are in a pool of 1 MiB of the client's memory
/// (root_pool_create), which the device reads and writes. Each side notifies the other only if
/// it says in the ring that it sleeps; the client notifies the driver's thread with bit 0.
#[allow(unused_imports, reason = "not every interface needs everything")]
use direct::{
    Array, AsyncTransport, Decoder, Encoder, Error, REPLY, Registers, Reply, Status,
    Transport, x2::{MapItem, MessageTag, ThreadId},
};
/// Labels of requests.
pub mod id {
    /// [`net_attach`](super::Server::net_attach).
    pub const NET_ATTACH: u64 = 5800;
}
/// Writes a request of [`Server::net_attach`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_net_attach<R: Registers>(
    registers_: &mut R,
    share: u64,
    pool: u64,
    thread: u64,
    notification: u64,
    offload: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(share);
    encoder_.word(pool);
    encoder_.word(thread);
    encoder_.word(notification);
    encoder_.word(offload);
    Ok(encoder_.finish(id::NET_ATTACH))
}
/// Reads the reply of [`Server::net_attach`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_net_attach<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(u64, u64, u64), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(registers_, tag_, id::NET_ATTACH, 4, 0)?;
    let read = move || {
        let address = decoder_.word()?;
        let mtu = decoder_.word()?;
        let agreed = decoder_.word()?;
        decoder_.finish()?;
        Some((address, mtu, agreed))
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::net_attach`].
#[inline]
pub fn reply_net_attach<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(u64, u64, u64), Status>,
) -> Reply<'a> {
    let (address, mtu, agreed) = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::NET_ATTACH, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(address);
    encoder_.word(mtu);
    encoder_.word(agreed);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::NET_ATTACH + REPLY));
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
    /// From now on the driver sends and receives frames by the rings in share, with the buffers of
    /// the pool. The client's thread is notified with the bits in notification. offload says what
    /// the client can leave to the device (bit 0: it gets frames without a checksum of TCP or UDP,
    /// 1: it sends them, 2: it sends TCP segments over IPv4 that are longer than the MTU, 3: over
    /// IPv6, 4: it gets such segments). One client uses a device; another one is refused until it
    /// has ended.
    ///
    /// Answers the device's address (its first byte in bits 0..8), its MTU in bytes, and what of
    /// offload it does.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn net_attach(
        &mut self,
        share: u64,
        pool: u64,
        thread: u64,
        notification: u64,
        offload: u64,
    ) -> Result<(u64, u64, u64), Error> {
        let tag_ = encode_net_attach(
            self.transport,
            share,
            pool,
            thread,
            notification,
            offload,
        )?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_net_attach(self.transport, tag_)
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
    /// From now on the driver sends and receives frames by the rings in share, with the buffers of
    /// the pool. The client's thread is notified with the bits in notification. offload says what
    /// the client can leave to the device (bit 0: it gets frames without a checksum of TCP or UDP,
    /// 1: it sends them, 2: it sends TCP segments over IPv4 that are longer than the MTU, 3: over
    /// IPv6, 4: it gets such segments). One client uses a device; another one is refused until it
    /// has ended.
    ///
    /// Answers the device's address (its first byte in bits 0..8), its MTU in bytes, and what of
    /// offload it does.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn net_attach(
        &mut self,
        share: u64,
        pool: u64,
        thread: u64,
        notification: u64,
        offload: u64,
    ) -> Result<(u64, u64, u64), Error> {
        let tag_ = encode_net_attach(
            self.transport,
            share,
            pool,
            thread,
            notification,
            offload,
        )?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_net_attach(self.transport, tag_)
    }
}
/// The functions that carry out the requests in the server.
pub trait Server {
    /// From now on the driver sends and receives frames by the rings in share, with the buffers of
    /// the pool. The client's thread is notified with the bits in notification. offload says what
    /// the client can leave to the device (bit 0: it gets frames without a checksum of TCP or UDP,
    /// 1: it sends them, 2: it sends TCP segments over IPv4 that are longer than the MTU, 3: over
    /// IPv6, 4: it gets such segments). One client uses a device; another one is refused until it
    /// has ended.
    ///
    /// Answers the device's address (its first byte in bits 0..8), its MTU in bytes, and what of
    /// offload it does.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn net_attach(
        &mut self,
        caller_: ThreadId,
        share: u64,
        pool: u64,
        thread: u64,
        notification: u64,
        offload: u64,
    ) -> Result<(u64, u64, u64), Status>;
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
        id::NET_ATTACH => {
            serve_net_attach(server_, caller_, tag_, registers_, strings_, room_)
        }
        label => Some(Reply::refusal(registers_, label, Status::BAD_ID)),
    }
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_net_attach<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 5, 0)?;
        let share = decoder_.word()?;
        let pool = decoder_.word()?;
        let thread = decoder_.word()?;
        let notification = decoder_.word()?;
        let offload = decoder_.word()?;
        decoder_.finish()?;
        Some((share, pool, thread, notification, offload))
    };
    let Some((share, pool, thread, notification, offload)) = read_(registers_) else {
        return Some(Reply::refusal(registers_, id::NET_ATTACH, Status::BAD_ARGUMENTS))
    };
    let result_ = server_
        .net_attach(caller_, share, pool, thread, notification, offload);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_net_attach(registers_, result_))
}
