// Written by mig from the definition of `memory_object_default`. Do not edit.

/// The additional requests to the default pager.
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
    /// [`memory_object_create`](super::Server::memory_object_create).
    pub const MEMORY_OBJECT_CREATE: u32 = 2250;
    /// [`memory_object_data_initialize`](super::Server::memory_object_data_initialize).
    pub const MEMORY_OBJECT_DATA_INITIALIZE: u32 = 2251;
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
    /// A new memory object, whose data the default pager is to keep.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn memory_object_create(
        &mut self,
        new_memory_object: u64,
        new_object_size: u64,
        new_control_port: u64,
        new_name: u64,
        new_page_size: u64,
    ) -> Result<(), Error> {
        let mut message_ = [0; 112];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 16,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                new_memory_object,
                8,
            );
        writer_
            .value(
                &Descriptor {
                    name: 11,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                new_object_size,
                8,
            );
        writer_
            .value(
                &Descriptor {
                    name: 20,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                new_control_port,
                8,
            );
        writer_
            .value(
                &Descriptor {
                    name: 20,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                new_name,
                8,
            );
        writer_
            .value(
                &Descriptor {
                    name: 11,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                new_page_size,
                8,
            );
        writer_
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: 17 | 0 << 8,
                    id: id::MEMORY_OBJECT_CREATE,
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
    /// Data that no pager has had yet.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn memory_object_data_initialize(
        &mut self,
        memory_control_port: u64,
        offset: u64,
        data: Memory,
    ) -> Result<(), Error> {
        let mut message_ = [0; 80];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 20,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                memory_control_port,
                8,
            );
        writer_
            .value(
                &Descriptor {
                    name: 11,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                offset,
                8,
            );
        writer_
            .describe(
                &Descriptor {
                    name: 9,
                    bits: 8,
                    number: data.count * 1,
                    flags: 2,
                },
            );
        writer_.pointer(data.address);
        writer_
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | 0 << 8,
                    id: id::MEMORY_OBJECT_DATA_INITIALIZE,
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
    /// A new memory object, whose data the default pager is to keep.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn memory_object_create(
        &mut self,
        old_memory_object: u64,
        new_memory_object: u64,
        new_object_size: u64,
        new_control_port: u64,
        new_name: u64,
        new_page_size: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Data that no pager has had yet.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn memory_object_data_initialize(
        &mut self,
        memory_object: u64,
        memory_control_port: u64,
        offset: u64,
        data: Memory,
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
        id::MEMORY_OBJECT_CREATE => {
            serve_memory_object_create(server_, &header_, request_, reply_).await
        }
        id::MEMORY_OBJECT_DATA_INITIALIZE => {
            serve_memory_object_data_initialize(server_, &header_, request_, reply_)
                .await
        }
        _ => Err(Status::BAD_ID),
    };
    message::answer(&FORMAT, &header_, reply_, result)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_memory_object_create<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(true))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let old_memory_object = header_.local;
    let read_ = move || {
        let new_memory_object = reader_
            .value(
                &Expected {
                    name: Some(16),
                    bits: 64,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                8,
            )? as u64;
        let new_object_size = reader_
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
        let new_control_port = reader_
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
        let new_name = reader_
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
        let new_page_size = reader_
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
        Some((
            new_memory_object,
            new_object_size,
            new_control_port,
            new_name,
            new_page_size,
        ))
    };
    let (
        new_memory_object,
        new_object_size,
        new_control_port,
        new_name,
        new_page_size,
    ) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_
        .memory_object_create(
            old_memory_object,
            new_memory_object,
            new_object_size,
            new_control_port,
            new_name,
            new_page_size,
        )
        .await?;
    Ok(None)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_memory_object_data_initialize<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(true))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let memory_object = header_.local;
    let read_ = move || {
        let memory_control_port = reader_
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
        let offset = reader_
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
        let descriptor_ = reader_
            .described(
                &Expected {
                    name: Some(9),
                    bits: 8,
                    number: Number::Any,
                    inline: Some(false),
                    long: true,
                },
            )?;
        let data = reader_.pointer(descriptor_, 1)?;
        reader_.finish()?;
        Some((memory_control_port, offset, data))
    };
    let (memory_control_port, offset, data) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_
        .memory_object_data_initialize(memory_object, memory_control_port, offset, data)
        .await?;
    Ok(None)
}
