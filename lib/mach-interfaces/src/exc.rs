// Written by mig from the definition of `exc`. Do not edit.

/// The message that tells the owner of an exception port of an exception of a thread.
#[allow(unused_imports, reason = "not every interface needs everything")]
use message::{
    Array, Call, Data, Descriptor, Error, Expected, Format, Header, Memory, Number,
    Reader, Request, Status, AsyncTransport, Writer,
};
/// The layout of messages.
pub const FORMAT: Format = Format::MACH64;
/// Bytes of the largest reply.
pub const REPLY_BYTES: usize = 48;
/// Ids of requests.
pub mod id {
    /// [`exception_raise`](super::Server::exception_raise).
    pub const EXCEPTION_RAISE: u32 = 2400;
}
/// The client's functions, one for each request.
#[derive(Debug)]
pub struct Client<'a, T> {
    /// The program's messages.
    pub transport: &'a mut T,
    /// The server's port.
    pub to: u64,
}
impl<T: AsyncTransport> Client<'_, T> {
    /// A thread has caused an exception. It continues if the answer is success.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn exception_raise(
        &mut self,
        thread: u64,
        task: u64,
        exception: u32,
        code: u32,
        subcode: u64,
    ) -> Result<(), Error> {
        let mut message_ = [0; 112];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 19,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                thread,
                8,
            );
        writer_
            .value(
                &Descriptor {
                    name: 19,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                task,
                8,
            );
        writer_
            .value(
                &Descriptor {
                    name: 2,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(exception),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: 2,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(code),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: 11,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                subcode,
                8,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::EXCEPTION_RAISE,
                    reply_port: None,
                    reply: Some(2500),
                    complex: Some(false),
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await?;
        let read_ = move || {
            reader_.finish()?;
            Some(())
        };
        read_().ok_or(Error::TypeError)
    }
}
/// The functions that carry out the requests in the server.
pub trait Server {
    /// A thread has caused an exception. It continues if the answer is success.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn exception_raise(
        &mut self,
        exception_port: u64,
        thread: u64,
        task: u64,
        exception: u32,
        code: u32,
        subcode: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
}
/// Decodes a request, calls the server's function, and writes the reply. Returns the size
/// of the reply, or `None` if there is none to send. `request_` is the received message with its
/// trailer.
pub async fn serve<S: Server + Send>(
    server_: &mut S,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Option<usize> {
    let header_ = Header::read(&FORMAT, request_)?;
    let result = match header_.id {
        id::EXCEPTION_RAISE => {
            serve_exception_raise(server_, &header_, request_, reply_).await
        }
        _ => Err(Status::BAD_ID),
    };
    message::answer(&FORMAT, &header_, reply_, result)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_exception_raise<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(true))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let exception_port = header_.local;
    let read_ = move || {
        let thread = reader_
            .value(
                &Expected {
                    name: Some(17),
                    bits: 64,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                8,
            )? as u64;
        let task = reader_
            .value(
                &Expected {
                    name: Some(17),
                    bits: 64,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                8,
            )? as u64;
        let exception = reader_
            .value(
                &Expected {
                    name: Some(2),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        let code = reader_
            .value(
                &Expected {
                    name: Some(2),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        let subcode = reader_
            .value(
                &Expected {
                    name: Some(11),
                    bits: 64,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                8,
            )? as u64;
        reader_.finish()?;
        Some((thread, task, exception, code, subcode))
    };
    let (thread, task, exception, code, subcode) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_
        .exception_raise(exception_port, thread, task, exception, code, subcode)
        .await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
