// Written by mig from the definition of `rtc`. Do not edit.

/// The clock of the machine that runs while it is off. A request is L4 IPC to the thread that
/// the driver registers with root. The label of a request is its number here, and that of its
/// answer is 100 more. The first word of an answer is a status as in root's answers
/// (root.defs): 1 a field is out of its range, 7 the clock gives no time; or -303 if there is
/// no such request, -304 if its words are not the arguments.
///
/// The fields are what the clock shows. Whether that is UTC or another zone's time is not said.
/// A day may be one that its month does not have.
#[allow(unused_imports, reason = "not every interface needs everything")]
use direct::{
    Array, AsyncTransport, Decoder, Encoder, Error, REPLY, Registers, Reply, Status,
    Transport, x2::{MapItem, MessageTag, ThreadId},
};
/// Labels of requests.
pub mod id {
    /// [`rtc_read`](super::Server::rtc_read).
    pub const RTC_READ: u64 = 6200;
    /// [`rtc_set`](super::Server::rtc_set).
    pub const RTC_SET: u64 = 6201;
}
/// Writes a request of [`Server::rtc_read`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_rtc_read<R: Registers>(registers_: &mut R) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    Ok(encoder_.finish(id::RTC_READ))
}
/// Reads the reply of [`Server::rtc_read`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_rtc_read<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(u32, u32, u32, u32, u32, u32), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(registers_, tag_, id::RTC_READ, 7, 0)?;
    let read = move || {
        let year = decoder_.number::<u32>()?;
        let month = decoder_.number::<u32>()?;
        let day = decoder_.number::<u32>()?;
        let hour = decoder_.number::<u32>()?;
        let minute = decoder_.number::<u32>()?;
        let second = decoder_.number::<u32>()?;
        decoder_.finish()?;
        Some((year, month, day, hour, minute, second))
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::rtc_read`].
#[inline]
pub fn reply_rtc_read<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(u32, u32, u32, u32, u32, u32), Status>,
) -> Reply<'a> {
    let (year, month, day, hour, minute, second) = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::RTC_READ, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(u64::from(year));
    encoder_.word(u64::from(month));
    encoder_.word(u64::from(day));
    encoder_.word(u64::from(hour));
    encoder_.word(u64::from(minute));
    encoder_.word(u64::from(second));
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::RTC_READ + REPLY));
    reply_
}
/// Writes a request of [`Server::rtc_set`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_rtc_set<R: Registers>(
    registers_: &mut R,
    year: u32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(u64::from(year));
    encoder_.word(u64::from(month));
    encoder_.word(u64::from(day));
    encoder_.word(u64::from(hour));
    encoder_.word(u64::from(minute));
    encoder_.word(u64::from(second));
    Ok(encoder_.finish(id::RTC_SET))
}
/// Reads the reply of [`Server::rtc_set`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_rtc_set<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(registers_, tag_, id::RTC_SET, 1, 0)?;
    let read = move || {
        decoder_.finish()?;
        Some(())
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::rtc_set`].
#[inline]
pub fn reply_rtc_set<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(), Status>,
) -> Reply<'a> {
    let () = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::RTC_SET, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::RTC_SET + REPLY));
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
    /// What the clock shows. The answer may take some milliseconds.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn rtc_read(&mut self) -> Result<(u32, u32, u32, u32, u32, u32), Error> {
        let tag_ = encode_rtc_read(self.transport)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_rtc_read(self.transport, tag_)
    }
    /// Sets the clock, which shows the next second half a second later. The year is one from 1970
    /// to 2069, month and day begin with 1.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn rtc_set(
        &mut self,
        year: u32,
        month: u32,
        day: u32,
        hour: u32,
        minute: u32,
        second: u32,
    ) -> Result<(), Error> {
        let tag_ = encode_rtc_set(
            self.transport,
            year,
            month,
            day,
            hour,
            minute,
            second,
        )?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_rtc_set(self.transport, tag_)
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
    /// What the clock shows. The answer may take some milliseconds.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn rtc_read(&mut self) -> Result<(u32, u32, u32, u32, u32, u32), Error> {
        let tag_ = encode_rtc_read(self.transport)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_rtc_read(self.transport, tag_)
    }
    /// Sets the clock, which shows the next second half a second later. The year is one from 1970
    /// to 2069, month and day begin with 1.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn rtc_set(
        &mut self,
        year: u32,
        month: u32,
        day: u32,
        hour: u32,
        minute: u32,
        second: u32,
    ) -> Result<(), Error> {
        let tag_ = encode_rtc_set(
            self.transport,
            year,
            month,
            day,
            hour,
            minute,
            second,
        )?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_rtc_set(self.transport, tag_)
    }
}
/// The functions that carry out the requests in the server.
pub trait Server {
    /// What the clock shows. The answer may take some milliseconds.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn rtc_read(
        &mut self,
        caller_: ThreadId,
    ) -> Result<(u32, u32, u32, u32, u32, u32), Status>;
    /// Sets the clock, which shows the next second half a second later. The year is one from 1970
    /// to 2069, month and day begin with 1.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn rtc_set(
        &mut self,
        caller_: ThreadId,
        year: u32,
        month: u32,
        day: u32,
        hour: u32,
        minute: u32,
        second: u32,
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
        id::RTC_READ => {
            serve_rtc_read(server_, caller_, tag_, registers_, strings_, room_)
        }
        id::RTC_SET => serve_rtc_set(server_, caller_, tag_, registers_, strings_, room_),
        label => Some(Reply::refusal(registers_, label, Status::BAD_ID)),
    }
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_rtc_read<'a, S: Server, R: Registers>(
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
        return Some(Reply::refusal(registers_, id::RTC_READ, Status::BAD_ARGUMENTS))
    };
    let result_ = server_.rtc_read(caller_);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_rtc_read(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_rtc_set<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 6, 0)?;
        let year = decoder_.number::<u32>()?;
        let month = decoder_.number::<u32>()?;
        let day = decoder_.number::<u32>()?;
        let hour = decoder_.number::<u32>()?;
        let minute = decoder_.number::<u32>()?;
        let second = decoder_.number::<u32>()?;
        decoder_.finish()?;
        Some((year, month, day, hour, minute, second))
    };
    let Some((year, month, day, hour, minute, second)) = read_(registers_) else {
        return Some(Reply::refusal(registers_, id::RTC_SET, Status::BAD_ARGUMENTS))
    };
    let result_ = server_.rtc_set(caller_, year, month, day, hour, minute, second);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_rtc_set(registers_, result_))
}
