// Written by mig from the definition of `everything`. Do not edit.

/// Everything that can travel by direct IPC.
#[allow(unused_imports, reason = "not every interface needs everything")]
use direct::{
    Array, AsyncTransport, Decoder, Encoder, Error, REPLY, Registers, Reply, Status,
    Transport, x2::{MapItem, MessageTag, ThreadId},
};
/// Labels of requests.
pub mod id {
    /// [`numbers`](super::Server::numbers).
    pub const NUMBERS: u64 = 5000;
    /// [`nothing`](super::Server::nothing).
    pub const NOTHING: u64 = 5001;
    /// [`hint`](super::Server::hint).
    pub const HINT: u64 = 5002;
    /// [`small`](super::Server::small).
    pub const SMALL: u64 = 5003;
    /// [`bulk`](super::Server::bulk).
    pub const BULK: u64 = 5004;
    /// [`rights`](super::Server::rights).
    pub const RIGHTS: u64 = 5005;
    /// [`change`](super::Server::change).
    pub const CHANGE: u64 = 5006;
}
/// Writes a request of [`Server::numbers`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_numbers<R: Registers>(
    registers_: &mut R,
    a: u8,
    b: u16,
    c: u32,
    d: u64,
    count: u32,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(u64::from(a));
    encoder_.word(u64::from(b));
    encoder_.word(u64::from(c));
    encoder_.word(d);
    encoder_.word(u64::from(count));
    Ok(encoder_.finish(id::NUMBERS))
}
/// Reads the reply of [`Server::numbers`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_numbers<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(u64, u32), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(registers_, tag_, id::NUMBERS, 3, 0)?;
    let read = move || {
        let sum = decoder_.word()?;
        let count = decoder_.number::<u32>()?;
        decoder_.finish()?;
        Some((sum, count))
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::numbers`].
#[inline]
pub fn reply_numbers<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(u64, u32), Status>,
) -> Reply<'a> {
    let (sum, count) = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::NUMBERS, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(sum);
    encoder_.word(u64::from(count));
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::NUMBERS + REPLY));
    reply_
}
/// Writes a request of [`Server::nothing`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_nothing<R: Registers>(registers_: &mut R) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    Ok(encoder_.finish(id::NOTHING))
}
/// Reads the reply of [`Server::nothing`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_nothing<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(registers_, tag_, id::NOTHING, 1, 0)?;
    let read = move || {
        decoder_.finish()?;
        Some(())
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::nothing`].
#[inline]
pub fn reply_nothing<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(), Status>,
) -> Reply<'a> {
    let () = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::NOTHING, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::NOTHING + REPLY));
    reply_
}
/// Writes a request of [`Server::hint`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_hint<R: Registers>(
    registers_: &mut R,
    type_: u32,
    text: &[u8],
) -> Result<MessageTag, Error> {
    if text.len() > 40 {
        return Err(Error::Status(Status::ARRAY_TOO_LARGE));
    }
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(u64::from(type_));
    encoder_.array(text);
    Ok(encoder_.finish(id::HINT))
}
/// Writes a request of [`Server::small`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_small<R: Registers>(
    registers_: &mut R,
    text: &[u8],
    shorts: &[u16],
    five: &[u32; 5],
    name: &[u8],
    pair: &[u64; 2],
) -> Result<MessageTag, Error> {
    if text.len() > 40 {
        return Err(Error::Status(Status::ARRAY_TOO_LARGE));
    }
    if shorts.len() > 7 {
        return Err(Error::Status(Status::ARRAY_TOO_LARGE));
    }
    if name.len() > 32 {
        return Err(Error::Status(Status::ARRAY_TOO_LARGE));
    }
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.array(text);
    encoder_.array(shorts);
    encoder_.elements(five);
    encoder_.array(name);
    encoder_.elements(pair);
    Ok(encoder_.finish(id::SMALL))
}
/// Reads the reply of [`Server::small`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_small<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<([u64; 2], Array<u16, 7>, Array<u8, 40>), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::reply(registers_, tag_, id::SMALL)?;
    let read = move || {
        let pair = decoder_.elements::<u64, 2>()?;
        let backwards = decoder_.array::<u16, 7>()?;
        let upper = decoder_.array::<u8, 40>()?;
        decoder_.finish()?;
        Some((pair, backwards, upper))
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::small`].
#[inline]
pub fn reply_small<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<([u64; 2], Array<u16, 7>, Array<u8, 40>), Status>,
) -> Reply<'a> {
    let (pair, backwards, upper) = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::SMALL, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.elements(&pair);
    encoder_.array(&backwards);
    encoder_.array(&upper);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::SMALL + REPLY));
    reply_
}
/// Writes a request of [`Server::bulk`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_bulk<R: Registers>(
    registers_: &mut R,
    memory: &[u8],
    large: &[u8],
    words: &[u8],
    number: u32,
    copy_room: usize,
    again_room: usize,
) -> Result<MessageTag, Error> {
    if large.len() > 2000 {
        return Err(Error::Status(Status::ARRAY_TOO_LARGE));
    }
    if words.len() != 800 {
        return Err(Error::Status(Status::ARRAY_TOO_LARGE));
    }
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(memory.len() as u64);
    encoder_.word(large.len() as u64);
    encoder_.word(words.len() as u64);
    encoder_.word(u64::from(number));
    encoder_.word(copy_room as u64);
    encoder_.word(again_room as u64);
    Ok(encoder_.finish(id::BULK))
}
/// Reads the reply of [`Server::bulk`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_bulk<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
    copy_room: usize,
    again_room: usize,
) -> Result<(usize, u64, usize), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(registers_, tag_, id::BULK, 4, 4)?;
    let read = move || {
        let copy = usize::try_from(decoder_.word()?).ok()?;
        let length = decoder_.word()?;
        let again = usize::try_from(decoder_.word()?).ok()?;
        if decoder_.string(copy_room)? != copy {
            return None;
        }
        if again > 2000 {
            return None;
        }
        if decoder_.string(again_room)? != again {
            return None;
        }
        decoder_.finish()?;
        Some((copy, length, again))
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::bulk`].
#[inline]
pub fn reply_bulk<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(usize, u64, usize), Status>,
    copy_buffer: &'a [u8],
    again_buffer: &'a [u8],
) -> Reply<'a> {
    let (copy, length, again) = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::BULK, status_),
    };
    if copy > copy_buffer.len() {
        return Reply::refusal(registers_, id::BULK, Status::ARRAY_TOO_LARGE);
    }
    if again > again_buffer.len() {
        return Reply::refusal(registers_, id::BULK, Status::ARRAY_TOO_LARGE);
    }
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(copy as u64);
    encoder_.word(length);
    encoder_.word(again as u64);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::BULK + REPLY));
    reply_.add_string(&copy_buffer[..copy]);
    reply_.add_string(&again_buffer[..again]);
    reply_
}
/// Writes a request of [`Server::rights`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_rights<R: Registers>(
    registers_: &mut R,
    port: u64,
    port_type: u32,
    page: MapItem,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(port);
    encoder_.word(u64::from(port_type));
    encoder_.map(page);
    Ok(encoder_.finish(id::RIGHTS))
}
/// Reads the reply of [`Server::rights`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_rights<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
) -> Result<(MapItem, u64, u32), Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(registers_, tag_, id::RIGHTS, 3, 2)?;
    let read = move || {
        let other = decoder_.word()?;
        let other_type = decoder_.number::<u32>()?;
        let same = decoder_.map()?;
        decoder_.finish()?;
        Some((same, other, other_type))
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::rights`].
#[inline]
pub fn reply_rights<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<(MapItem, u64, u32), Status>,
) -> Reply<'a> {
    let (same, other, other_type) = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::RIGHTS, status_),
    };
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(other);
    encoder_.word(u64::from(other_type));
    encoder_.map(same);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::RIGHTS + REPLY));
    reply_
}
/// Writes a request of [`Server::change`] into the registers.
///
/// # Errors
/// An array is longer than the interface allows.
#[inline]
#[allow(clippy::too_many_arguments, reason = "the interface says how many")]
pub fn encode_change<R: Registers>(
    registers_: &mut R,
    data: &[u8],
    data_room: usize,
) -> Result<MessageTag, Error> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(data.len() as u64);
    encoder_.word(data_room as u64);
    Ok(encoder_.finish(id::CHANGE))
}
/// Reads the reply of [`Server::change`].
///
/// # Errors
/// The server's status, or the message is not a reply to this request.
#[inline]
pub fn decode_change<R: Registers>(
    registers_: &R,
    tag_: MessageTag,
    data_room: usize,
) -> Result<usize, Error> {
    #[allow(unused_mut, reason = "there may be no results")]
    let mut decoder_ = direct::exact_reply(registers_, tag_, id::CHANGE, 2, 2)?;
    let read = move || {
        let data = usize::try_from(decoder_.word()?).ok()?;
        if decoder_.string(data_room)? != data {
            return None;
        }
        decoder_.finish()?;
        Some(data)
    };
    read().ok_or(Error::Malformed)
}
/// Writes the reply of [`Server::change`].
#[inline]
pub fn reply_change<'a, R: Registers>(
    registers_: &mut R,
    result_: Result<usize, Status>,
    data_buffer: &'a [u8],
) -> Reply<'a> {
    let data = match result_ {
        Ok(result_) => result_,
        Err(status_) => return Reply::refusal(registers_, id::CHANGE, status_),
    };
    if data > data_buffer.len() {
        return Reply::refusal(registers_, id::CHANGE, Status::ARRAY_TOO_LARGE);
    }
    let mut encoder_ = Encoder::new(registers_);
    encoder_.word(0);
    encoder_.word(data as u64);
    #[allow(unused_mut, reason = "there may be no strings")]
    let mut reply_ = Reply::new(encoder_.finish(id::CHANGE + REPLY));
    reply_.add_string(&data_buffer[..data]);
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
    /// Numbers of each size: four words there and two back.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn numbers(
        &mut self,
        a: u8,
        b: u16,
        c: u32,
        d: u64,
        count: u32,
    ) -> Result<(u64, u32), Error> {
        let tag_ = encode_numbers(self.transport, a, b, c, d, count)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_numbers(self.transport, tag_)
    }
    /// Nothing there, nothing back.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn nothing(&mut self) -> Result<(), Error> {
        let tag_ = encode_nothing(self.transport)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_nothing(self.transport, tag_)
    }
    /// Not answered.
    ///
    /// # Errors
    /// The request could not be sent.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn hint(&mut self, type_: u32, text: &[u8]) -> Result<(), Error> {
        let tag_ = encode_hint(self.transport, type_, text)?;
        self.transport.send(self.to, tag_, &[]).map_err(Error::Ipc)
    }
    /// Data in the registers.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn small(
        &mut self,
        text: &[u8],
        shorts: &[u16],
        five: &[u32; 5],
        name: &[u8],
        pair: &[u64; 2],
    ) -> Result<([u64; 2], Array<u16, 7>, Array<u8, 40>), Error> {
        let tag_ = encode_small(self.transport, text, shorts, five, name, pair)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_small(self.transport, tag_)
    }
    /// Data in strings: what is out of line, and what does not fit.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn bulk(
        &mut self,
        memory: &[u8],
        large: &[u8],
        words: &[u8],
        number: u32,
        copy_buffer: &mut [u8],
        again_buffer: &mut [u8],
    ) -> Result<(usize, u64, usize), Error> {
        let tag_ = encode_bulk(
            self.transport,
            memory,
            large,
            words,
            number,
            copy_buffer.len(),
            again_buffer.len(),
        )?;
        let strings_: &[&[u8]] = &[memory, large, words];
        let rooms_: &mut [&mut [u8]] = &mut [&mut *copy_buffer, &mut *again_buffer];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_bulk(self.transport, tag_, copy_buffer.len(), again_buffer.len())
    }
    /// Rights and pages.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn rights(
        &mut self,
        port: u64,
        port_type: u32,
        page: MapItem,
    ) -> Result<(MapItem, u64, u32), Error> {
        let tag_ = encode_rights(self.transport, port, port_type, page)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_rights(self.transport, tag_)
    }
    /// Data in a string both ways.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub fn change(
        &mut self,
        data: &[u8],
        data_buffer: &mut [u8],
    ) -> Result<usize, Error> {
        let tag_ = encode_change(self.transport, data, data_buffer.len())?;
        let strings_: &[&[u8]] = &[data];
        let rooms_: &mut [&mut [u8]] = &mut [&mut *data_buffer];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .map_err(Error::Ipc)?;
        decode_change(self.transport, tag_, data_buffer.len())
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
    /// Numbers of each size: four words there and two back.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn numbers(
        &mut self,
        a: u8,
        b: u16,
        c: u32,
        d: u64,
        count: u32,
    ) -> Result<(u64, u32), Error> {
        let tag_ = encode_numbers(self.transport, a, b, c, d, count)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_numbers(self.transport, tag_)
    }
    /// Nothing there, nothing back.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn nothing(&mut self) -> Result<(), Error> {
        let tag_ = encode_nothing(self.transport)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_nothing(self.transport, tag_)
    }
    /// Data in the registers.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn small(
        &mut self,
        text: &[u8],
        shorts: &[u16],
        five: &[u32; 5],
        name: &[u8],
        pair: &[u64; 2],
    ) -> Result<([u64; 2], Array<u16, 7>, Array<u8, 40>), Error> {
        let tag_ = encode_small(self.transport, text, shorts, five, name, pair)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_small(self.transport, tag_)
    }
    /// Data in strings: what is out of line, and what does not fit.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn bulk(
        &mut self,
        memory: &[u8],
        large: &[u8],
        words: &[u8],
        number: u32,
        copy_buffer: &mut [u8],
        again_buffer: &mut [u8],
    ) -> Result<(usize, u64, usize), Error> {
        let tag_ = encode_bulk(
            self.transport,
            memory,
            large,
            words,
            number,
            copy_buffer.len(),
            again_buffer.len(),
        )?;
        let strings_: &[&[u8]] = &[memory, large, words];
        let rooms_: &mut [&mut [u8]] = &mut [&mut *copy_buffer, &mut *again_buffer];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_bulk(self.transport, tag_, copy_buffer.len(), again_buffer.len())
    }
    /// Rights and pages.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn rights(
        &mut self,
        port: u64,
        port_type: u32,
        page: MapItem,
    ) -> Result<(MapItem, u64, u32), Error> {
        let tag_ = encode_rights(self.transport, port, port_type, page)?;
        let strings_: &[&[u8]] = &[];
        let rooms_: &mut [&mut [u8]] = &mut [];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_rights(self.transport, tag_)
    }
    /// Data in a string both ways.
    ///
    /// # Errors
    /// The server's status, or the IPC has failed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    pub async fn change(
        &mut self,
        data: &[u8],
        data_buffer: &mut [u8],
    ) -> Result<usize, Error> {
        let tag_ = encode_change(self.transport, data, data_buffer.len())?;
        let strings_: &[&[u8]] = &[data];
        let rooms_: &mut [&mut [u8]] = &mut [&mut *data_buffer];
        let tag_ = self
            .transport
            .call(self.to, tag_, strings_, rooms_)
            .await
            .map_err(Error::Ipc)?;
        decode_change(self.transport, tag_, data_buffer.len())
    }
}
/// The functions that carry out the requests in the server.
pub trait Server {
    /// Numbers of each size: four words there and two back.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn numbers(
        &mut self,
        caller_: ThreadId,
        a: u8,
        b: u16,
        c: u32,
        d: u64,
        count: u32,
    ) -> Result<(u64, u32), Status>;
    /// Nothing there, nothing back.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn nothing(&mut self, caller_: ThreadId) -> Result<(), Status>;
    /// Not answered.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn hint(&mut self, caller_: ThreadId, type_: u32, text: &[u8]);
    /// Data in the registers.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn small(
        &mut self,
        caller_: ThreadId,
        text: &[u8],
        shorts: &[u16],
        five: &[u32; 5],
        name: &[u8],
        pair: &[u64; 2],
    ) -> Result<([u64; 2], Array<u16, 7>, Array<u8, 40>), Status>;
    /// Data in strings: what is out of line, and what does not fit.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn bulk(
        &mut self,
        caller_: ThreadId,
        memory: &[u8],
        large: &[u8],
        words: &[u8],
        number: u32,
        copy_buffer: &mut [u8],
        again_buffer: &mut [u8],
    ) -> Result<(usize, u64, usize), Status>;
    /// Rights and pages.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn rights(
        &mut self,
        caller_: ThreadId,
        port: u64,
        port_type: u32,
        page: MapItem,
    ) -> Result<(MapItem, u64, u32), Status>;
    /// Data in a string both ways.
    #[allow(clippy::too_many_arguments, reason = "the interface says how many")]
    fn change(
        &mut self,
        caller_: ThreadId,
        data: &[u8],
        data_buffer: &mut [u8],
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
        id::NUMBERS => serve_numbers(server_, caller_, tag_, registers_, strings_, room_),
        id::NOTHING => serve_nothing(server_, caller_, tag_, registers_, strings_, room_),
        id::HINT => serve_hint(server_, caller_, tag_, registers_, strings_, room_),
        id::SMALL => serve_small(server_, caller_, tag_, registers_, strings_, room_),
        id::BULK => serve_bulk(server_, caller_, tag_, registers_, strings_, room_),
        id::RIGHTS => serve_rights(server_, caller_, tag_, registers_, strings_, room_),
        id::CHANGE => serve_change(server_, caller_, tag_, registers_, strings_, room_),
        label => Some(Reply::refusal(registers_, label, Status::BAD_ID)),
    }
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_numbers<'a, S: Server, R: Registers>(
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
        let a = decoder_.number::<u8>()?;
        let b = decoder_.number::<u16>()?;
        let c = decoder_.number::<u32>()?;
        let d = decoder_.word()?;
        let count = decoder_.number::<u32>()?;
        decoder_.finish()?;
        Some((a, b, c, d, count))
    };
    let Some((a, b, c, d, count)) = read_(registers_) else {
        return Some(Reply::refusal(registers_, id::NUMBERS, Status::BAD_ARGUMENTS))
    };
    let result_ = server_.numbers(caller_, a, b, c, d, count);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_numbers(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_nothing<'a, S: Server, R: Registers>(
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
        return Some(Reply::refusal(registers_, id::NOTHING, Status::BAD_ARGUMENTS))
    };
    let result_ = server_.nothing(caller_);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_nothing(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_hint<'a, S: Server, R: Registers>(
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
        let type_ = decoder_.number::<u32>()?;
        let text = decoder_.array::<u8, 40>()?;
        decoder_.finish()?;
        Some((type_, text))
    };
    let Some((type_, text)) = read_(registers_) else { return None };
    server_.hint(caller_, type_, &text);
    None
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_small<'a, S: Server, R: Registers>(
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
        let text = decoder_.array::<u8, 40>()?;
        let shorts = decoder_.array::<u16, 7>()?;
        let five = decoder_.elements::<u32, 5>()?;
        let name = decoder_.array::<u8, 32>()?;
        let pair = decoder_.elements::<u64, 2>()?;
        decoder_.finish()?;
        Some((text, shorts, five, name, pair))
    };
    let Some((text, shorts, five, name, pair)) = read_(registers_) else {
        return Some(Reply::refusal(registers_, id::SMALL, Status::BAD_ARGUMENTS))
    };
    let result_ = server_.small(caller_, &text, &shorts, &five, &name, &pair);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_small(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_bulk<'a, S: Server, R: Registers>(
    server_: &mut S,
    caller_: ThreadId,
    tag_: MessageTag,
    registers_: &mut R,
    strings_: &[&[u8]],
    room_: &'a mut [u8],
) -> Option<Reply<'a>> {
    let read_ = |registers_: &R| {
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut decoder_ = Decoder::exact(registers_, tag_, 6, 6)?;
        let memory = usize::try_from(decoder_.word()?).ok()?;
        let large = usize::try_from(decoder_.word()?).ok()?;
        let words = usize::try_from(decoder_.word()?).ok()?;
        let number = decoder_.number::<u32>()?;
        let copy_room = usize::try_from(decoder_.word()?).ok()?;
        let again_room = usize::try_from(decoder_.word()?).ok()?;
        let memory = strings_.get(0).filter(|string| string.len() == memory)?;
        if decoder_.string(memory.len())? != memory.len() {
            return None;
        }
        if large > 2000 {
            return None;
        }
        let large = strings_.get(1).filter(|string| string.len() == large)?;
        if decoder_.string(large.len())? != large.len() {
            return None;
        }
        if words != 800 {
            return None;
        }
        let words = strings_.get(2).filter(|string| string.len() == words)?;
        if decoder_.string(words.len())? != words.len() {
            return None;
        }
        decoder_.finish()?;
        Some((memory, large, words, number, copy_room, again_room))
    };
    let Some((memory, large, words, number, copy_room, again_room)) = read_(registers_)
    else { return Some(Reply::refusal(registers_, id::BULK, Status::BAD_ARGUMENTS)) };
    let (copy_buffer, room_) = room_.split_at_mut(copy_room.min(room_.len()));
    let (again_buffer, room_) = room_.split_at_mut(again_room.min(room_.len()));
    let result_ = server_
        .bulk(
            caller_,
            memory,
            large,
            words,
            number,
            &mut *copy_buffer,
            &mut *again_buffer,
        );
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_bulk(registers_, result_, copy_buffer, again_buffer))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_rights<'a, S: Server, R: Registers>(
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
        let port = decoder_.word()?;
        let port_type = decoder_.number::<u32>()?;
        let page = decoder_.map()?;
        decoder_.finish()?;
        Some((port, port_type, page))
    };
    let Some((port, port_type, page)) = read_(registers_) else {
        return Some(Reply::refusal(registers_, id::RIGHTS, Status::BAD_ARGUMENTS))
    };
    let result_ = server_.rights(caller_, port, port_type, page);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_rights(registers_, result_))
}
#[inline]
#[allow(unused_variables, reason = "not every routine needs everything")]
fn serve_change<'a, S: Server, R: Registers>(
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
        let data = usize::try_from(decoder_.word()?).ok()?;
        let data_room = usize::try_from(decoder_.word()?).ok()?;
        let data = strings_.get(0).filter(|string| string.len() == data)?;
        if decoder_.string(data.len())? != data.len() {
            return None;
        }
        decoder_.finish()?;
        Some((data, data_room))
    };
    let Some((data, data_room)) = read_(registers_) else {
        return Some(Reply::refusal(registers_, id::CHANGE, Status::BAD_ARGUMENTS))
    };
    let (data_buffer, room_) = room_.split_at_mut(data_room.min(room_.len()));
    let result_ = server_.change(caller_, data, &mut *data_buffer);
    if matches!(result_, Err(Status::NO_REPLY)) {
        return None;
    }
    Some(reply_change(registers_, result_, data_buffer))
}
