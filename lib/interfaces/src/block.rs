// Written by mig from the definition of `block`. Do not edit.

/// A block device. A request is L4 IPC to the thread that the driver registers with root. The
/// label of a request is its number here. The label of an answer is 4700, and its first word is
/// a status as in root's answers (root.defs), or -303 if there is no such request, -304 if its
/// words are not the arguments.
///
/// share is memory of 32 KiB that the client shares with the driver (root_share_create). It
/// holds a ring of requests and a ring of answers; lib/block describes and implements both. A
/// request reads, writes or discards sectors of 512 bytes, or flushes what was written to
/// stable storage. Its data are pages of pools, which the client has registered with root for
/// the driver (root_pool_create). Each side notifies the other only if it says in the ring that
/// it sleeps; the client notifies the driver's thread with bit 0.
#[allow(unused_imports, reason = "not every interface needs everything")]
use direct::{
    Array, AsyncTransport, Decoder, Encoder, Error, REPLY, Registers, Reply, Status,
    Transport, x2::{MapItem, MessageTag, ThreadId},
};
/// Labels of requests.
pub mod id {
    /// [`block_attach`](super::Server::block_attach).
    pub const BLOCK_ATTACH: u64 = 4600;
    /// [`block_pool`](super::Server::block_pool).
    pub const BLOCK_POOL: u64 = 4601;
    /// [`block_describe`](super::Server::block_describe).
    pub const BLOCK_DESCRIBE: u64 = 4602;
}
/// Writes a request of [`Server::block_attach`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_block_attach<R: Registers>(
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
    Ok(encoder_.finish(id::BLOCK_ATTACH))
}
/// Reads the reply of [`Server::block_attach`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_block_attach<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(registers_, tag_, id::BLOCK_ATTACH, 1, 0)?;
    let read = move || {
        decoder_.finish()?;
        Some(())
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::block_attach`].
#[inline]
pub fn reply_block_attach<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(), Status>,
) -> Reply<'a> {
    let () = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::BLOCK_ATTACH, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::BLOCK_ATTACH + REPLY));
    reply_
}
/// Writes a request of [`Server::block_pool`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_block_pool<R: Registers>(
    registers_: &mut R,
    pool: u64,
    size: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(pool);
    encoder_.word(size);
    Ok(encoder_.finish(id::BLOCK_POOL))
}
/// Reads the reply of [`Server::block_pool`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_block_pool<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<u64, Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(registers_, tag_, id::BLOCK_POOL, 2, 0)?;
    let read = move || {
        let index = decoder_.word()?;
        decoder_.finish()?;
        Some(index)
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::block_pool`].
#[inline]
pub fn reply_block_pool<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<u64, Status>,
) -> Reply<'a> {
    let index = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::BLOCK_POOL, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(index);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::BLOCK_POOL + REPLY));
    reply_
}
/// Writes a request of [`Server::block_describe`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_block_describe<R: Registers>(
    registers_: &mut R,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    Ok(encoder_.finish(id::BLOCK_DESCRIBE))
}
/// Reads the reply of [`Server::block_describe`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_block_describe<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(u64, u64, u64, u64, u64, u64, Array<u8, 64>), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::reply(registers_, tag_, id::BLOCK_DESCRIBE)?;
    let read = move || {
        let sectors = decoder_.word()?;
        let logical = decoder_.word()?;
        let physical = decoder_.word()?;
        let abilities = decoder_.word()?;
        let discard = decoder_.word()?;
        let geometry = decoder_.word()?;
        let identity = decoder_.array::<u8, 64>()?;
        decoder_.finish()?;
        Some((sectors, logical, physical, abilities, discard, geometry, identity))
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::block_describe`].
#[inline]
pub fn reply_block_describe<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(u64, u64, u64, u64, u64, u64, Array<u8, 64>), Status>,
) -> Reply<'a> {
    let (sectors, logical, physical, abilities, discard, geometry, identity) = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::BLOCK_DESCRIBE, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(sectors);
    encoder_.word(logical);
    encoder_.word(physical);
    encoder_.word(abilities);
    encoder_.word(discard);
    encoder_.word(geometry);
    encoder_.array(&identity);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::BLOCK_DESCRIBE + REPLY));
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
    /// From now on the driver takes the requests of the ring in share. The client's thread is
    /// notified with the bits in notification when there are answers. One client uses a device;
    /// another one is refused until it has ended.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn block_attach(
        &mut self,
        share: u64,
        thread: u64,
        notification: u64,
    ) -> Result<(), Error> {
        let tag_ = encode_block_attach(self.transport, share, thread, notification)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_block_attach(self.transport, tag_)
    }
    /// The client's requests may use a pool (root_pool_create). Answers the number by which they
    /// name it.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn block_pool(&mut self, pool: u64, size: u64) -> Result<u64, Error> {
        let tag_ = encode_block_pool(self.transport, pool, size)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_block_pool(self.transport, tag_)
    }
    /// Describes the device: how many sectors of 512 bytes it has, the sizes of its logical and
    /// physical blocks in bytes, what it can do (bit 0: it is read-only; 1: it flushes) and what
    /// drives it (bits 8..16: 0 virtio, 1 NVMe), the most sectors of a request that discards,
    /// cylinders (bits 16 and up), heads (bits 8..16) and sectors (bits 0..8) or 0, and its serial
    /// number.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn block_describe(
        &mut self,
    ) -> Result<(u64, u64, u64, u64, u64, u64, Array<u8, 64>), Error> {
        let tag_ = encode_block_describe(self.transport)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_block_describe(self.transport, tag_)
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
    /// From now on the driver takes the requests of the ring in share. The client's thread is
    /// notified with the bits in notification when there are answers. One client uses a device;
    /// another one is refused until it has ended.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn block_attach(
        &mut self,
        share: u64,
        thread: u64,
        notification: u64,
    ) -> Result<(), Error> {
        let tag_ = encode_block_attach(self.transport, share, thread, notification)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_block_attach(self.transport, tag_)
    }
    /// The client's requests may use a pool (root_pool_create). Answers the number by which they
    /// name it.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn block_pool(&mut self, pool: u64, size: u64) -> Result<u64, Error> {
        let tag_ = encode_block_pool(self.transport, pool, size)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_block_pool(self.transport, tag_)
    }
    /// Describes the device: how many sectors of 512 bytes it has, the sizes of its logical and
    /// physical blocks in bytes, what it can do (bit 0: it is read-only; 1: it flushes) and what
    /// drives it (bits 8..16: 0 virtio, 1 NVMe), the most sectors of a request that discards,
    /// cylinders (bits 16 and up), heads (bits 8..16) and sectors (bits 0..8) or 0, and its serial
    /// number.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn block_describe(
        &mut self,
    ) -> Result<(u64, u64, u64, u64, u64, u64, Array<u8, 64>), Error> {
        let tag_ = encode_block_describe(self.transport)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_block_describe(self.transport, tag_)
    }
}
/// The functions that carry out the requests in the server.
pub trait Server {
    /// From now on the driver takes the requests of the ring in share. The client's thread is
    /// notified with the bits in notification when there are answers. One client uses a device;
    /// another one is refused until it has ended.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn block_attach(
        &mut self,
        caller_: ThreadId,
        share: u64,
        thread: u64,
        notification: u64,
    ) -> Result<(), Status>;
    /// The client's requests may use a pool (root_pool_create). Answers the number by which they
    /// name it.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn block_pool(
        &mut self,
        caller_: ThreadId,
        pool: u64,
        size: u64,
    ) -> Result<u64, Status>;
    /// Describes the device: how many sectors of 512 bytes it has, the sizes of its logical and
    /// physical blocks in bytes, what it can do (bit 0: it is read-only; 1: it flushes) and what
    /// drives it (bits 8..16: 0 virtio, 1 NVMe), the most sectors of a request that discards,
    /// cylinders (bits 16 and up), heads (bits 8..16) and sectors (bits 0..8) or 0, and its serial
    /// number.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn block_describe(
        &mut self,
        caller_: ThreadId,
    ) -> Result<(u64, u64, u64, u64, u64, u64, Array<u8, 64>), Status>;
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
        id::BLOCK_ATTACH => {
            serve_block_attach(server_, caller_, tag_, registers_, strings_, room_)
        }
        id::BLOCK_POOL => {
            serve_block_pool(server_, caller_, tag_, registers_, strings_, room_)
        }
        id::BLOCK_DESCRIBE => {
            serve_block_describe(server_, caller_, tag_, registers_, strings_, room_)
        }
        label => Some(Reply::refusal(registers_, label, Status::BAD_ID)),
    }
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_block_attach<'a, S: Server, R: Registers>(
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
        return Some(Reply::refusal(registers_, id::BLOCK_ATTACH, Status::BAD_ARGUMENTS))
    };
    let result_ = server_.block_attach(caller_, share, thread, notification);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_block_attach(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_block_pool<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 2, 0)?;
        let pool = decoder_.word()?;
        let size = decoder_.word()?;
        decoder_.finish()?;
        Some((pool, size))
    };
    let Some((pool, size)) = read_(registers_) else {
        return Some(Reply::refusal(registers_, id::BLOCK_POOL, Status::BAD_ARGUMENTS))
    };
    let result_ = server_.block_pool(caller_, pool, size);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_block_pool(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_block_describe<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 0, 0)?;
        decoder_.finish()?;
        Some(())
    };
    let Some(()) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::BLOCK_DESCRIBE, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.block_describe(caller_);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_block_describe(registers_, result_))
}
