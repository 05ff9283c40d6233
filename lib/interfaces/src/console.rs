// Written by mig from the definition of `console`. Do not edit.

/// A driver of consoles: a serial port, which is one console, or a screen with several virtual
/// consoles, of which one is visible at a time. A request is L4 IPC to the thread that the
/// driver registers with root. The label of a request is its number here. The label of an
/// answer is 4300, and its first word is a status as in root's answers (root.defs), or -303 if
/// there is no such request, -304 if its words are not the arguments.
///
/// share is memory of 16 KiB that the client shares with the driver (root_share_create). In it,
/// one after the other and at multiples of 64 bytes, lie the ring of output (8192 bytes), the
/// ring of input (4096 bytes), and words of 32 bits: the number of bytes of input that were
/// lost, the number of the console that is visible (0: the driver has only one), that of the
/// console that the client wants visible (0: none; the driver sets it to 0 when it has taken
/// the wish), and the locks of the keyboard that are on (bits 0 Scroll Lock, 1 Num Lock, 2 Caps
/// Lock). A ring begins with three counters of 32 bits: how many bytes have ever been written,
/// how many have ever been read (both modulo 2^32), and whether the writer waits to be notified
/// (1). Its bytes follow directly. The driver's thread is notified with bit 0 when there is
/// something to do for it.
#[allow(unused_imports, reason = "not every interface needs everything")]
use direct::{
    Array, AsyncTransport, Decoder, Encoder, Error, REPLY, Registers, Reply, Status,
    Transport, x2::{MapItem, MessageTag, ThreadId},
};
/// Labels of requests.
pub mod id {
    /// [`console_attach`](super::Server::console_attach).
    pub const CONSOLE_ATTACH: u64 = 4200;
}
/// Writes a request of [`Server::console_attach`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_console_attach<R: Registers>(
    registers_: &mut R,
    number: u64,
    share: u64,
    thread: u64,
    notification: u64,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(number);
    encoder_.word(share);
    encoder_.word(thread);
    encoder_.word(notification);
    Ok(encoder_.finish(id::CONSOLE_ATTACH))
}
/// Reads the reply of [`Server::console_attach`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_console_attach<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(u64, u64), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(registers_, tag_, id::CONSOLE_ATTACH, 3, 0)?;
    let read = move || {
        let columns = decoder_.word()?;
        let rows = decoder_.word()?;
        decoder_.finish()?;
        Some((columns, rows))
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::console_attach`].
#[inline]
pub fn reply_console_attach<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(u64, u64), Status>,
) -> Reply<'a> {
    let (columns, rows) = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::CONSOLE_ATTACH, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(columns);
    encoder_.word(rows);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::CONSOLE_ATTACH + REPLY));
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
    /// From now on the rings in share are the way to and from a console: number 0 of a serial port,
    /// 1 and up of a screen. The client's thread is notified with the bits in notification when
    /// there is input, and when there is room for output that the client waits for. The answer has
    /// the console's size in characters, or 0 and 0 if the driver does not know it. Status 5 (not
    /// found): there is no console of this number.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn console_attach(
        &mut self,
        number: u64,
        share: u64,
        thread: u64,
        notification: u64,
    ) -> Result<(u64, u64), Error> {
        let tag_ = encode_console_attach(
            self.transport,
            number,
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
        decode_console_attach(self.transport, tag_)
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
    /// From now on the rings in share are the way to and from a console: number 0 of a serial port,
    /// 1 and up of a screen. The client's thread is notified with the bits in notification when
    /// there is input, and when there is room for output that the client waits for. The answer has
    /// the console's size in characters, or 0 and 0 if the driver does not know it. Status 5 (not
    /// found): there is no console of this number.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn console_attach(
        &mut self,
        number: u64,
        share: u64,
        thread: u64,
        notification: u64,
    ) -> Result<(u64, u64), Error> {
        let tag_ = encode_console_attach(
            self.transport,
            number,
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
        decode_console_attach(self.transport, tag_)
    }
}
/// The functions that carry out the requests in the server.
pub trait Server {
    /// From now on the rings in share are the way to and from a console: number 0 of a serial port,
    /// 1 and up of a screen. The client's thread is notified with the bits in notification when
    /// there is input, and when there is room for output that the client waits for. The answer has
    /// the console's size in characters, or 0 and 0 if the driver does not know it. Status 5 (not
    /// found): there is no console of this number.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn console_attach(
        &mut self,
        caller_: ThreadId,
        number: u64,
        share: u64,
        thread: u64,
        notification: u64,
    ) -> Result<(u64, u64), Status>;
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
        id::CONSOLE_ATTACH => {
            serve_console_attach(server_, caller_, tag_, registers_, strings_, room_)
        }
        label => Some(Reply::refusal(registers_, label, Status::BAD_ID)),
    }
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_console_attach<'a, S: Server, R: Registers>(
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
        let number = decoder_.word()?;
        let share = decoder_.word()?;
        let thread = decoder_.word()?;
        let notification = decoder_.word()?;
        decoder_.finish()?;
        Some((number, share, thread, notification))
    };
    let Some((number, share, thread, notification)) = read_(registers_) else {
        return Some(
            Reply::refusal(registers_, id::CONSOLE_ATTACH, Status::BAD_ARGUMENTS),
        )
    };
    let result_ = server_.console_attach(caller_, number, share, thread, notification);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_console_attach(registers_, result_))
}
