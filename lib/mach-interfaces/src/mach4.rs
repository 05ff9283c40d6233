// Written by mig from the definition of `mach4`. Do not edit.

/// Proxies of memory objects.
#[allow(unused_imports, reason = "not every interface needs everything")]
use message::{
    Array, Call, Data, Descriptor, Error, Expected, Format, Header, Memory, Number,
    Reader, Request, Status, AsyncTransport, Writer,
};
/// The layout of messages.
pub const FORMAT: Format = Format::MACH64;
/// Bytes of the largest reply.
pub const REPLY_BYTES: usize = 64;
/// Ids of requests.
pub mod id {
    /// [`memory_object_create_proxy`](super::Server::memory_object_create_proxy).
    pub const MEMORY_OBJECT_CREATE_PROXY: u32 = 4010;
    /// [`vm_region_create_proxy`](super::Server::vm_region_create_proxy).
    pub const VM_REGION_CREATE_PROXY: u32 = 4011;
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
    /// Makes a memory object that stands for a part of another, with at most these rights.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn memory_object_create_proxy(
        &mut self,
        max_protection: u32,
        object: &[u64],
        object_type: u32,
        offset: &[u64],
        start: &[u64],
        len: &[u64],
    ) -> Result<u64, Error> {
        if object.len() > 1024 {
            return Err(Error::Status(Status::ARRAY_TOO_LARGE));
        }
        if offset.len() > 1024 {
            return Err(Error::Status(Status::ARRAY_TOO_LARGE));
        }
        if start.len() > 1024 {
            return Err(Error::Status(Status::ARRAY_TOO_LARGE));
        }
        if len.len() > 1024 {
            return Err(Error::Status(Status::ARRAY_TOO_LARGE));
        }
        let mut message_ = [0; 32848];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 2,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(max_protection),
                4,
            );
        writer_
            .describe(
                &Descriptor {
                    name: object_type,
                    bits: 64,
                    number: object.len() as u32,
                    flags: 1,
                },
            );
        writer_.data(object);
        writer_
            .describe(
                &Descriptor {
                    name: 11,
                    bits: 64,
                    number: offset.len() as u32,
                    flags: 1,
                },
            );
        writer_.data(offset);
        writer_
            .describe(
                &Descriptor {
                    name: 11,
                    bits: 64,
                    number: start.len() as u32,
                    flags: 1,
                },
            );
        writer_.data(start);
        writer_
            .describe(
                &Descriptor {
                    name: 11,
                    bits: 64,
                    number: len.len() as u32,
                    flags: 1,
                },
            );
        writer_.data(len);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::MEMORY_OBJECT_CREATE_PROXY,
                    reply_port: None,
                    reply: Some(4110),
                    complex: Some(true),
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
            let proxy = reader_
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
            Some(proxy)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Makes a memory object that stands for a region of a task's memory, with at most these
    /// rights.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn vm_region_create_proxy(
        &mut self,
        address: u64,
        max_protection: u32,
        len: u64,
    ) -> Result<u64, Error> {
        let mut message_ = [0; 80];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 11,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                address,
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
                u64::from(max_protection),
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
                len,
                8,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::VM_REGION_CREATE_PROXY,
                    reply_port: None,
                    reply: Some(4111),
                    complex: Some(true),
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
            let proxy = reader_
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
            Some(proxy)
        };
        read_().ok_or(Error::TypeError)
    }
}
/// The functions that carry out the requests in the server.
pub trait Server {
    /// Makes a memory object that stands for a part of another, with at most these rights.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn memory_object_create_proxy(
        &mut self,
        task: u64,
        max_protection: u32,
        object: Array<u64, 1024>,
        offset: Array<u64, 1024>,
        start: Array<u64, 1024>,
        len: Array<u64, 1024>,
    ) -> impl Future<Output = Result<u64, Status>> + Send;
    /// Makes a memory object that stands for a region of a task's memory, with at most these
    /// rights.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn vm_region_create_proxy(
        &mut self,
        task: u64,
        address: u64,
        max_protection: u32,
        len: u64,
    ) -> impl Future<Output = Result<u64, Status>> + Send;
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
        id::MEMORY_OBJECT_CREATE_PROXY => {
            serve_memory_object_create_proxy(server_, &header_, request_, reply_).await
        }
        id::VM_REGION_CREATE_PROXY => {
            serve_vm_region_create_proxy(server_, &header_, request_, reply_).await
        }
        _ => Err(Status::BAD_ID),
    };
    message::answer(&FORMAT, &header_, reply_, result)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_memory_object_create_proxy<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, None)
        .ok_or(Status::BAD_ARGUMENTS)?;
    let task = header_.local;
    let read_ = move || {
        let max_protection = reader_
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
        let descriptor_ = reader_
            .described(
                &Expected {
                    name: Some(17),
                    bits: 64,
                    number: Number::UpTo(1024),
                    inline: Some(true),
                    long: false,
                },
            )?;
        let object = reader_.array::<u64, 1024>(descriptor_.number.checked_mul(1)?)?;
        let descriptor_ = reader_
            .described(
                &Expected {
                    name: Some(11),
                    bits: 64,
                    number: Number::UpTo(1024),
                    inline: Some(true),
                    long: false,
                },
            )?;
        let offset = reader_.array::<u64, 1024>(descriptor_.number.checked_mul(1)?)?;
        let descriptor_ = reader_
            .described(
                &Expected {
                    name: Some(11),
                    bits: 64,
                    number: Number::UpTo(1024),
                    inline: Some(true),
                    long: false,
                },
            )?;
        let start = reader_.array::<u64, 1024>(descriptor_.number.checked_mul(1)?)?;
        let descriptor_ = reader_
            .described(
                &Expected {
                    name: Some(11),
                    bits: 64,
                    number: Number::UpTo(1024),
                    inline: Some(true),
                    long: false,
                },
            )?;
        let len = reader_.array::<u64, 1024>(descriptor_.number.checked_mul(1)?)?;
        reader_.finish()?;
        Some((max_protection, object, offset, start, len))
    };
    let (max_protection, object, offset, start, len) = read_()
        .ok_or(Status::BAD_ARGUMENTS)?;
    let proxy = server_
        .memory_object_create_proxy(task, max_protection, object, offset, start, len)
        .await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .value(
            &Descriptor {
                name: 19,
                bits: 64,
                number: 1,
                flags: 1,
            },
            proxy,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_vm_region_create_proxy<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let task = header_.local;
    let read_ = move || {
        let address = reader_
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
        let max_protection = reader_
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
        let len = reader_
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
        Some((address, max_protection, len))
    };
    let (address, max_protection, len) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let proxy = server_
        .vm_region_create_proxy(task, address, max_protection, len)
        .await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .value(
            &Descriptor {
                name: 19,
                bits: 64,
                number: 1,
                flags: 1,
            },
            proxy,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
