// Written by mig from the definition of `task_notify`. Do not edit.

/// The message that tells the port of register_new_task_notification of a new task.
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
    /// [`mach_notify_new_task`](super::Server::mach_notify_new_task).
    pub const MACH_NOTIFY_NEW_TASK: u32 = 4400;
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
    /// A task was created.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn mach_notify_new_task(
        &mut self,
        task: u64,
        parent: u64,
    ) -> Result<(), Error> {
        let mut message_ = [0; 64];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 17,
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
                    name: 17,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                parent,
                8,
            );
        writer_
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | 0 << 8,
                    id: id::MACH_NOTIFY_NEW_TASK,
                    reply_port: None,
                    reply: None,
                    complex: None,
                    call: Call {
                        options: 0,
                        wait: None,
                        send: None,
                        trailer: 0,
                    },
                },
            )
            .await
    }
}
/// The functions that carry out the requests in the server.
pub trait Server {
    /// A task was created.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn mach_notify_new_task(
        &mut self,
        notify: u64,
        task: u64,
        parent: u64,
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
        id::MACH_NOTIFY_NEW_TASK => {
            serve_mach_notify_new_task(server_, &header_, request_, reply_).await
        }
        _ => Err(Status::BAD_ID),
    };
    message::answer(&FORMAT, &header_, reply_, result)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_mach_notify_new_task<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(true))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let notify = header_.local;
    let read_ = move || {
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
        let parent = reader_
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
        reader_.finish()?;
        Some((task, parent))
    };
    let (task, parent) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.mach_notify_new_task(notify, task, parent).await?;
    Ok(None)
}
