// Written by mig from the definition of `memory_object`. Do not edit.

/// The requests to a pager about its memory object.
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
    /// [`memory_object_init`](super::Server::memory_object_init).
    pub const MEMORY_OBJECT_INIT: u32 = 2200;
    /// [`memory_object_terminate`](super::Server::memory_object_terminate).
    pub const MEMORY_OBJECT_TERMINATE: u32 = 2201;
    /// [`memory_object_copy`](super::Server::memory_object_copy).
    pub const MEMORY_OBJECT_COPY: u32 = 2202;
    /// [`memory_object_data_request`](super::Server::memory_object_data_request).
    pub const MEMORY_OBJECT_DATA_REQUEST: u32 = 2203;
    /// [`memory_object_data_unlock`](super::Server::memory_object_data_unlock).
    pub const MEMORY_OBJECT_DATA_UNLOCK: u32 = 2204;
    /// [`memory_object_lock_completed`](super::Server::memory_object_lock_completed).
    pub const MEMORY_OBJECT_LOCK_COMPLETED: u32 = 2206;
    /// [`memory_object_supply_completed`](super::Server::memory_object_supply_completed).
    pub const MEMORY_OBJECT_SUPPLY_COMPLETED: u32 = 2207;
    /// [`memory_object_data_return`](super::Server::memory_object_data_return).
    pub const MEMORY_OBJECT_DATA_RETURN: u32 = 2208;
    /// [`memory_object_change_completed`](super::Server::memory_object_change_completed).
    pub const MEMORY_OBJECT_CHANGE_COMPLETED: u32 = 2209;
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
    /// The object is mapped for the first time. The pager answers memory_object_ready.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn memory_object_init(
        &mut self,
        memory_control: u64,
        memory_object_name: u64,
        memory_object_page_size: u64,
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
                memory_control,
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
                memory_object_name,
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
                memory_object_page_size,
                8,
            );
        writer_
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | 0 << 8,
                    id: id::MEMORY_OBJECT_INIT,
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
    /// The object is no longer used. The pager gets the receive rights of its control and name
    /// ports.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn memory_object_terminate(
        &mut self,
        memory_control: u64,
        memory_object_name: u64,
    ) -> Result<(), Error> {
        let mut message_ = [0; 64];
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
                memory_control,
                8,
            );
        writer_
            .value(
                &Descriptor {
                    name: 16,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                memory_object_name,
                8,
            );
        writer_
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: 17 | 0 << 8,
                    id: id::MEMORY_OBJECT_TERMINATE,
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
    /// A part of the object was copied, as the strategy that the pager has chosen requires.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn memory_object_copy(
        &mut self,
        old_memory_control: u64,
        offset: u64,
        length: u64,
        new_memory_object: u64,
    ) -> Result<(), Error> {
        let mut message_ = [0; 96];
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
                old_memory_control,
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
            .value(
                &Descriptor {
                    name: 11,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                length,
                8,
            );
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
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | 0 << 8,
                    id: id::MEMORY_OBJECT_COPY,
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
    /// The data of a range is needed.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn memory_object_data_request(
        &mut self,
        memory_control: u64,
        offset: u64,
        length: u64,
        desired_access: u32,
    ) -> Result<(), Error> {
        let mut message_ = [0; 96];
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
                memory_control,
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
            .value(
                &Descriptor {
                    name: 11,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                length,
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
                u64::from(desired_access),
                4,
            );
        writer_
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | 0 << 8,
                    id: id::MEMORY_OBJECT_DATA_REQUEST,
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
    /// A locked access to the data of a range is needed.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn memory_object_data_unlock(
        &mut self,
        memory_control: u64,
        offset: u64,
        length: u64,
        desired_access: u32,
    ) -> Result<(), Error> {
        let mut message_ = [0; 96];
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
                memory_control,
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
            .value(
                &Descriptor {
                    name: 11,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                length,
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
                u64::from(desired_access),
                4,
            );
        writer_
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | 0 << 8,
                    id: id::MEMORY_OBJECT_DATA_UNLOCK,
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
    /// A lock request has been carried out.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn memory_object_lock_completed(
        &mut self,
        memory_object_type: u32,
        memory_control: u64,
        offset: u64,
        length: u64,
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
                memory_control,
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
            .value(
                &Descriptor {
                    name: 11,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                length,
                8,
            );
        writer_
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: memory_object_type | 0 << 8,
                    id: id::MEMORY_OBJECT_LOCK_COMPLETED,
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
    /// Data that the pager supplied has been accepted or refused.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn memory_object_supply_completed(
        &mut self,
        memory_object_type: u32,
        memory_control: u64,
        offset: u64,
        length: u64,
        result: u32,
        error_offset: u64,
    ) -> Result<(), Error> {
        let mut message_ = [0; 112];
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
                memory_control,
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
            .value(
                &Descriptor {
                    name: 11,
                    bits: 64,
                    number: 1,
                    flags: 1,
                },
                length,
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
                u64::from(result),
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
                error_offset,
                8,
            );
        writer_
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: memory_object_type | 0 << 8,
                    id: id::MEMORY_OBJECT_SUPPLY_COMPLETED,
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
    /// Data for the pager to keep.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn memory_object_data_return(
        &mut self,
        memory_control: u64,
        offset: u64,
        data: Memory,
        dirty: u32,
        kernel_copy: u32,
    ) -> Result<(), Error> {
        let mut message_ = [0; 112];
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
                memory_control,
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
            .value(
                &Descriptor {
                    name: 0,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(dirty),
                4,
            );
        writer_
            .value(
                &Descriptor {
                    name: 0,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(kernel_copy),
                4,
            );
        writer_
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | 0 << 8,
                    id: id::MEMORY_OBJECT_DATA_RETURN,
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
    /// A change of attributes has been carried out.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn memory_object_change_completed(
        &mut self,
        memory_object_type: u32,
        may_cache: u32,
        copy_strategy: u32,
    ) -> Result<(), Error> {
        let mut message_ = [0; 64];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 0,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(may_cache),
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
                u64::from(copy_strategy),
                4,
            );
        writer_
            .send_async(
                self.transport,
                self.to,
                &Request {
                    bits: memory_object_type | 0 << 8,
                    id: id::MEMORY_OBJECT_CHANGE_COMPLETED,
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
    /// The object is mapped for the first time. The pager answers memory_object_ready.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn memory_object_init(
        &mut self,
        memory_object: u64,
        memory_control: u64,
        memory_object_name: u64,
        memory_object_page_size: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// The object is no longer used. The pager gets the receive rights of its control and name
    /// ports.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn memory_object_terminate(
        &mut self,
        memory_object: u64,
        memory_control: u64,
        memory_object_name: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// A part of the object was copied, as the strategy that the pager has chosen requires.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn memory_object_copy(
        &mut self,
        old_memory_object: u64,
        old_memory_control: u64,
        offset: u64,
        length: u64,
        new_memory_object: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// The data of a range is needed.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn memory_object_data_request(
        &mut self,
        memory_object: u64,
        memory_control: u64,
        offset: u64,
        length: u64,
        desired_access: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// A locked access to the data of a range is needed.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn memory_object_data_unlock(
        &mut self,
        memory_object: u64,
        memory_control: u64,
        offset: u64,
        length: u64,
        desired_access: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// A lock request has been carried out.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn memory_object_lock_completed(
        &mut self,
        memory_object: u64,
        memory_control: u64,
        offset: u64,
        length: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Data that the pager supplied has been accepted or refused.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn memory_object_supply_completed(
        &mut self,
        memory_object: u64,
        memory_control: u64,
        offset: u64,
        length: u64,
        result: u32,
        error_offset: u64,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Data for the pager to keep.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn memory_object_data_return(
        &mut self,
        memory_object: u64,
        memory_control: u64,
        offset: u64,
        data: Memory,
        dirty: u32,
        kernel_copy: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// A change of attributes has been carried out.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn memory_object_change_completed(
        &mut self,
        memory_object: u64,
        may_cache: u32,
        copy_strategy: u32,
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
        id::MEMORY_OBJECT_INIT => {
            serve_memory_object_init(server_, &header_, request_, reply_).await
        }
        id::MEMORY_OBJECT_TERMINATE => {
            serve_memory_object_terminate(server_, &header_, request_, reply_).await
        }
        id::MEMORY_OBJECT_COPY => {
            serve_memory_object_copy(server_, &header_, request_, reply_).await
        }
        id::MEMORY_OBJECT_DATA_REQUEST => {
            serve_memory_object_data_request(server_, &header_, request_, reply_).await
        }
        id::MEMORY_OBJECT_DATA_UNLOCK => {
            serve_memory_object_data_unlock(server_, &header_, request_, reply_).await
        }
        id::MEMORY_OBJECT_LOCK_COMPLETED => {
            serve_memory_object_lock_completed(server_, &header_, request_, reply_).await
        }
        id::MEMORY_OBJECT_SUPPLY_COMPLETED => {
            serve_memory_object_supply_completed(server_, &header_, request_, reply_)
                .await
        }
        id::MEMORY_OBJECT_DATA_RETURN => {
            serve_memory_object_data_return(server_, &header_, request_, reply_).await
        }
        id::MEMORY_OBJECT_CHANGE_COMPLETED => {
            serve_memory_object_change_completed(server_, &header_, request_, reply_)
                .await
        }
        _ => Err(Status::BAD_ID),
    };
    message::answer(&FORMAT, &header_, reply_, result)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_memory_object_init<S: Server + Send>(
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
        let memory_control = reader_
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
        let memory_object_name = reader_
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
        let memory_object_page_size = reader_
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
        Some((memory_control, memory_object_name, memory_object_page_size))
    };
    let (memory_control, memory_object_name, memory_object_page_size) = read_()
        .ok_or(Status::BAD_ARGUMENTS)?;
    server_
        .memory_object_init(
            memory_object,
            memory_control,
            memory_object_name,
            memory_object_page_size,
        )
        .await?;
    Ok(None)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_memory_object_terminate<S: Server + Send>(
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
        let memory_control = reader_
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
        let memory_object_name = reader_
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
        reader_.finish()?;
        Some((memory_control, memory_object_name))
    };
    let (memory_control, memory_object_name) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_
        .memory_object_terminate(memory_object, memory_control, memory_object_name)
        .await?;
    Ok(None)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_memory_object_copy<S: Server + Send>(
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
        let old_memory_control = reader_
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
        let length = reader_
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
        reader_.finish()?;
        Some((old_memory_control, offset, length, new_memory_object))
    };
    let (old_memory_control, offset, length, new_memory_object) = read_()
        .ok_or(Status::BAD_ARGUMENTS)?;
    server_
        .memory_object_copy(
            old_memory_object,
            old_memory_control,
            offset,
            length,
            new_memory_object,
        )
        .await?;
    Ok(None)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_memory_object_data_request<S: Server + Send>(
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
        let memory_control = reader_
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
        let length = reader_
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
        let desired_access = reader_
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
        reader_.finish()?;
        Some((memory_control, offset, length, desired_access))
    };
    let (memory_control, offset, length, desired_access) = read_()
        .ok_or(Status::BAD_ARGUMENTS)?;
    server_
        .memory_object_data_request(
            memory_object,
            memory_control,
            offset,
            length,
            desired_access,
        )
        .await?;
    Ok(None)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_memory_object_data_unlock<S: Server + Send>(
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
        let memory_control = reader_
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
        let length = reader_
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
        let desired_access = reader_
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
        reader_.finish()?;
        Some((memory_control, offset, length, desired_access))
    };
    let (memory_control, offset, length, desired_access) = read_()
        .ok_or(Status::BAD_ARGUMENTS)?;
    server_
        .memory_object_data_unlock(
            memory_object,
            memory_control,
            offset,
            length,
            desired_access,
        )
        .await?;
    Ok(None)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_memory_object_lock_completed<S: Server + Send>(
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
        let memory_control = reader_
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
        let length = reader_
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
        Some((memory_control, offset, length))
    };
    let (memory_control, offset, length) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_
        .memory_object_lock_completed(memory_object, memory_control, offset, length)
        .await?;
    Ok(None)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_memory_object_supply_completed<S: Server + Send>(
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
        let memory_control = reader_
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
        let length = reader_
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
        let result = reader_
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
        let error_offset = reader_
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
        Some((memory_control, offset, length, result, error_offset))
    };
    let (memory_control, offset, length, result, error_offset) = read_()
        .ok_or(Status::BAD_ARGUMENTS)?;
    server_
        .memory_object_supply_completed(
            memory_object,
            memory_control,
            offset,
            length,
            result,
            error_offset,
        )
        .await?;
    Ok(None)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_memory_object_data_return<S: Server + Send>(
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
        let memory_control = reader_
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
        let dirty = reader_
            .value(
                &Expected {
                    name: Some(0),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        let kernel_copy = reader_
            .value(
                &Expected {
                    name: Some(0),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        reader_.finish()?;
        Some((memory_control, offset, data, dirty, kernel_copy))
    };
    let (memory_control, offset, data, dirty, kernel_copy) = read_()
        .ok_or(Status::BAD_ARGUMENTS)?;
    server_
        .memory_object_data_return(
            memory_object,
            memory_control,
            offset,
            data,
            dirty,
            kernel_copy,
        )
        .await?;
    Ok(None)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_memory_object_change_completed<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let memory_object = header_.local;
    let read_ = move || {
        let may_cache = reader_
            .value(
                &Expected {
                    name: Some(0),
                    bits: 32,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                4,
            )? as u32;
        let copy_strategy = reader_
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
        reader_.finish()?;
        Some((may_cache, copy_strategy))
    };
    let (may_cache, copy_strategy) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_
        .memory_object_change_completed(memory_object, may_cache, copy_strategy)
        .await?;
    Ok(None)
}
