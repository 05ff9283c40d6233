// Written by mig from the definition of `file_channel`. Do not edit.

/// A channel of messages to a server of files that a device leads to: 9P2000.L. A request is L4
/// IPC to the thread that the driver registers with root. The label of a request is its number
/// here. The label of an answer is 5500, and its first word is a status as in root's answers
/// (root.defs), or
/// -303 if there is no such request, -304 if its words are not the arguments.
///
/// share is memory of 1 MiB that the client shares with the driver (root_share_create). Its
/// first page has for each of seven slots two words of 32 bits: a state and a length. The slots
/// are 128 KiB each, from 4096 on. The client puts a message of 9P with its length into a slot
/// whose state is 0 (free), makes the state 1 (request) and notifies the driver's thread with
/// bit 0. The driver gives the message to the device, puts the device's reply into the same
/// slot with its length, makes the state 2 (reply), or 3 if the request's length cannot be, and
/// notifies the client. The client makes the state 0 again. A slot in state 1 is the driver's,
/// in other states it is the client's.
///
/// A file server of a disk, whose tag is the name of its kind of file systems, has this
/// interface, too. Only the first six slots are for messages to it. In the last slot the file
/// server puts what it asks the client about the disk, makes the state 1 and notifies the
/// client; the client answers, makes it 2 and notifies the file server. The slot begins with
/// six words of 64 bits: what is asked (1: read, 2: write, 3: flush, 4: describe), offset and
/// length in bytes, the answer's status (0, or 1 if it could not be done), the size of the disk
/// in bytes, and whether it is read-only. Data come after the eighth word, at most 64 KiB.
#[allow(unused_imports, reason = "not every interface needs everything")]
use direct::{
    Array, AsyncTransport, Decoder, Encoder, Error, REPLY, Registers, Reply, Status,
    Transport, x2::{MapItem, MessageTag, ThreadId},
};
/// Labels of requests.
pub mod id {
    /// [`file_channel_attach`](super::Server::file_channel_attach).
    pub const FILE_CHANNEL_ATTACH: u64 = 5400;
}
/// Writes a request of [`Server::file_channel_attach`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_file_channel_attach<R: Registers>(
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
    Ok(encoder_.finish(id::FILE_CHANNEL_ATTACH))
}
/// Reads the reply of [`Server::file_channel_attach`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_file_channel_attach<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(u64, u64, u64, u64), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(
        registers_,
        tag_,
        id::FILE_CHANNEL_ATTACH,
        5,
        0,
    )?;
    let read = move || {
        let tag0 = decoder_.word()?;
        let tag1 = decoder_.word()?;
        let tag2 = decoder_.word()?;
        let tag3 = decoder_.word()?;
        decoder_.finish()?;
        Some((tag0, tag1, tag2, tag3))
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::file_channel_attach`].
#[inline]
pub fn reply_file_channel_attach<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(u64, u64, u64, u64), Status>,
) -> Reply<'a> {
    let (tag0, tag1, tag2, tag3) = match result_ {
        Ok(result_) => result_,
        Err(status_) => {
            return Reply::refusal(registers_, id::FILE_CHANNEL_ATTACH, status_);
        }
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(tag0);
    encoder_.word(tag1);
    encoder_.word(tag2);
    encoder_.word(tag3);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::FILE_CHANNEL_ATTACH + REPLY));
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
    /// From now on the messages in share are exchanged with the server. All files that an earlier
    /// client has used are forgotten. The client's thread is notified with the bits in notification
    /// of replies. tag is the name that the device has for the tree of files, of at most 32 bytes
    /// with zeros after them, as little-endian words.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn file_channel_attach(
        &mut self,
        share: u64,
        thread: u64,
        notification: u64,
    ) -> Result<(u64, u64, u64, u64), Error> {
        let tag_ = encode_file_channel_attach(
            self.transport,
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
        decode_file_channel_attach(self.transport, tag_)
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
    /// From now on the messages in share are exchanged with the server. All files that an earlier
    /// client has used are forgotten. The client's thread is notified with the bits in notification
    /// of replies. tag is the name that the device has for the tree of files, of at most 32 bytes
    /// with zeros after them, as little-endian words.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn file_channel_attach(
        &mut self,
        share: u64,
        thread: u64,
        notification: u64,
    ) -> Result<(u64, u64, u64, u64), Error> {
        let tag_ = encode_file_channel_attach(
            self.transport,
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
        decode_file_channel_attach(self.transport, tag_)
    }
}
/// The functions that carry out the requests in the server.
pub trait Server {
    /// From now on the messages in share are exchanged with the server. All files that an earlier
    /// client has used are forgotten. The client's thread is notified with the bits in notification
    /// of replies. tag is the name that the device has for the tree of files, of at most 32 bytes
    /// with zeros after them, as little-endian words.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn file_channel_attach(
        &mut self,
        caller_: ThreadId,
        share: u64,
        thread: u64,
        notification: u64,
    ) -> Result<(u64, u64, u64, u64), Status>;
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
        id::FILE_CHANNEL_ATTACH => {
            serve_file_channel_attach(
                server_,
                caller_,
                tag_,
                registers_,
                strings_,
                room_,
            )
        }
        label => Some(Reply::refusal(registers_, label, Status::BAD_ID)),
    }
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_file_channel_attach<'a, S: Server, R: Registers>(
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
        return Some(
            Reply::refusal(registers_, id::FILE_CHANNEL_ATTACH, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.file_channel_attach(caller_, share, thread, notification);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_file_channel_attach(registers_, result_))
}
