// Written by mig from the definition of `mach_i386`. Do not edit.

/// Calls on what is particular to the processors of PCs.
#[allow(unused_imports, reason = "not every interface needs everything")]
use message::{
    Array, Call, Data, Descriptor, Error, Expected, Format, Header, Memory, Number,
    Reader, Request, Status, AsyncTransport, Writer,
};
/// The layout of messages.
pub const FORMAT: Format = Format::MACH64;
/// Bytes of the largest reply.
pub const REPLY_BYTES: usize = 2104;
/// Ids of requests.
pub mod id {
    /// [`i386_set_ldt`](super::Server::i386_set_ldt).
    pub const I386_SET_LDT: u32 = 3803;
    /// [`i386_get_ldt`](super::Server::i386_get_ldt).
    pub const I386_GET_LDT: u32 = 3804;
    /// [`i386_io_perm_create`](super::Server::i386_io_perm_create).
    pub const I386_IO_PERM_CREATE: u32 = 3805;
    /// [`i386_io_perm_modify`](super::Server::i386_io_perm_modify).
    pub const I386_IO_PERM_MODIFY: u32 = 3806;
    /// [`i386_set_gdt`](super::Server::i386_set_gdt).
    pub const I386_SET_GDT: u32 = 3807;
    /// [`i386_get_gdt`](super::Server::i386_get_gdt).
    pub const I386_GET_GDT: u32 = 3808;
    /// [`i386_get_xstate_size`](super::Server::i386_get_xstate_size).
    pub const I386_GET_XSTATE_SIZE: u32 = 3809;
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
    /// Sets segments of a thread's local descriptor table.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn i386_set_ldt(
        &mut self,
        first_selector: u32,
        desc_list: &[u32],
    ) -> Result<(), Error> {
        if desc_list.len() % 2 != 0 {
            return Err(Error::Status(Status::ARRAY_TOO_LARGE));
        }
        let mut message_ = [0; 2104];
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
                u64::from(first_selector),
                4,
            );
        if desc_list.len() > 512 {
            writer_
                .describe(
                    &Descriptor {
                        name: 2,
                        bits: 32,
                        number: desc_list.len() as u32,
                        flags: 2,
                    },
                );
            writer_.pointer(desc_list.as_ptr() as u64);
        } else {
            writer_
                .describe(
                    &Descriptor {
                        name: 2,
                        bits: 32,
                        number: desc_list.len() as u32,
                        flags: 3,
                    },
                );
            writer_.data(desc_list);
        }
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::I386_SET_LDT,
                    reply_port: None,
                    reply: Some(3903),
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
    /// Segments of a thread's local descriptor table.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn i386_get_ldt(
        &mut self,
        first_selector: u32,
        selector_count: u32,
    ) -> Result<Data<u32, 512>, Error> {
        let mut message_ = [0; 2104];
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
                u64::from(first_selector),
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
                u64::from(selector_count),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::I386_GET_LDT,
                    reply_port: None,
                    reply: Some(3904),
                    complex: None,
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
            let descriptor_ = reader_
                .described(
                    &Expected {
                        name: Some(2),
                        bits: 32,
                        number: Number::UpTo(512),
                        inline: None,
                        long: true,
                    },
                )?;
            if descriptor_.number % 2 != 0 {
                return None;
            }
            let desc_list = if descriptor_.flags & message::INLINE != 0 {
                Data::Inline(
                    reader_.array::<u32, 512>(descriptor_.number.checked_mul(1)?)?,
                )
            } else {
                Data::Memory(reader_.pointer(descriptor_, 2)?)
            };
            reader_.finish()?;
            Some(desc_list)
        };
        read_().ok_or(Error::TypeError)
    }
    /// The right to use a range of ports for input and output.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn i386_io_perm_create(
        &mut self,
        from: u16,
        to: u16,
    ) -> Result<u64, Error> {
        let mut message_ = [0; 64];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        writer_
            .value(
                &Descriptor {
                    name: 1,
                    bits: 16,
                    number: 1,
                    flags: 1,
                },
                u64::from(from),
                2,
            );
        writer_
            .value(
                &Descriptor {
                    name: 1,
                    bits: 16,
                    number: 1,
                    flags: 1,
                },
                u64::from(to),
                2,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::I386_IO_PERM_CREATE,
                    reply_port: None,
                    reply: Some(3905),
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
            let io_perm = reader_
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
            Some(io_perm)
        };
        read_().ok_or(Error::TypeError)
    }
    /// Gives a task the right to a range of ports, or takes it.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn i386_io_perm_modify(
        &mut self,
        io_perm: u64,
        enable: u32,
    ) -> Result<(), Error> {
        let mut message_ = [0; 64];
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
                io_perm,
                8,
            );
        writer_
            .value(
                &Descriptor {
                    name: 0,
                    bits: 32,
                    number: 1,
                    flags: 1,
                },
                u64::from(enable),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::I386_IO_PERM_MODIFY,
                    reply_port: None,
                    reply: Some(3906),
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
    /// Sets a segment of a thread in the global descriptor table.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn i386_set_gdt(
        &mut self,
        selector: u32,
        desc: &[u32; 2],
    ) -> Result<u32, Error> {
        let mut message_ = [0; 64];
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
                u64::from(selector),
                4,
            );
        writer_
            .describe(
                &Descriptor {
                    name: 2,
                    bits: 32,
                    number: 2,
                    flags: 1,
                },
            );
        writer_.data(desc);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::I386_SET_GDT,
                    reply_port: None,
                    reply: Some(3907),
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
            let selector = reader_
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
            Some(selector)
        };
        read_().ok_or(Error::TypeError)
    }
    /// A segment of a thread in the global descriptor table.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn i386_get_gdt(&mut self, selector: u32) -> Result<[u32; 2], Error> {
        let mut message_ = [0; 64];
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
                u64::from(selector),
                4,
            );
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::I386_GET_GDT,
                    reply_port: None,
                    reply: Some(3908),
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
            reader_
                .expect(
                    &Expected {
                        name: Some(2),
                        bits: 32,
                        number: Number::Exactly(2),
                        inline: Some(true),
                        long: false,
                    },
                )?;
            let desc = reader_.elements::<u32, 2>()?;
            reader_.finish()?;
            Some(desc)
        };
        read_().ok_or(Error::TypeError)
    }
    /// The size of the flavor of thread state that has the extended registers.
    ///
    /// # Errors
    /// An array is longer than the interface allows, the message was not sent, or the server's
    /// status.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    pub async fn i386_get_xstate_size(&mut self) -> Result<u64, Error> {
        let mut message_ = [0; 64];
        #[allow(unused_mut, reason = "there may be no arguments")]
        let mut writer_ = Writer::new(&FORMAT, &mut message_);
        #[allow(unused_mut, reason = "there may be no results")]
        let mut reader_ = writer_
            .call_async(
                self.transport,
                self.to,
                &Request {
                    bits: 19 | message::MAKE_SEND_ONCE << 8,
                    id: id::I386_GET_XSTATE_SIZE,
                    reply_port: None,
                    reply: Some(3909),
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
            let size = reader_
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
            Some(size)
        };
        read_().ok_or(Error::TypeError)
    }
}
/// The functions that carry out the requests in the server.
pub trait Server {
    /// Sets segments of a thread's local descriptor table.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn i386_set_ldt(
        &mut self,
        target_thread: u64,
        first_selector: u32,
        desc_list: Data<u32, 512>,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Segments of a thread's local descriptor table.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn i386_get_ldt(
        &mut self,
        target_thread: u64,
        first_selector: u32,
        selector_count: u32,
    ) -> impl Future<Output = Result<Data<u32, 512>, Status>> + Send;
    /// The right to use a range of ports for input and output.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn i386_io_perm_create(
        &mut self,
        master_port: u64,
        from: u16,
        to: u16,
    ) -> impl Future<Output = Result<u64, Status>> + Send;
    /// Gives a task the right to a range of ports, or takes it.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn i386_io_perm_modify(
        &mut self,
        target_task: u64,
        io_perm: u64,
        enable: u32,
    ) -> impl Future<Output = Result<(), Status>> + Send;
    /// Sets a segment of a thread in the global descriptor table.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn i386_set_gdt(
        &mut self,
        target_thread: u64,
        selector: u32,
        desc: [u32; 2],
    ) -> impl Future<Output = Result<u32, Status>> + Send;
    /// A segment of a thread in the global descriptor table.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn i386_get_gdt(
        &mut self,
        target_thread: u64,
        selector: u32,
    ) -> impl Future<Output = Result<[u32; 2], Status>> + Send;
    /// The size of the flavor of thread state that has the extended registers.
    ///
    /// # Errors
    /// What the caller gets instead of results; [`Status::NO_REPLY`] if it gets nothing.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "the interface says how many"
    )]
    fn i386_get_xstate_size(
        &mut self,
        host: u64,
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
        id::I386_SET_LDT => serve_i386_set_ldt(server_, &header_, request_, reply_).await,
        id::I386_GET_LDT => serve_i386_get_ldt(server_, &header_, request_, reply_).await,
        id::I386_IO_PERM_CREATE => {
            serve_i386_io_perm_create(server_, &header_, request_, reply_).await
        }
        id::I386_IO_PERM_MODIFY => {
            serve_i386_io_perm_modify(server_, &header_, request_, reply_).await
        }
        id::I386_SET_GDT => serve_i386_set_gdt(server_, &header_, request_, reply_).await,
        id::I386_GET_GDT => serve_i386_get_gdt(server_, &header_, request_, reply_).await,
        id::I386_GET_XSTATE_SIZE => {
            serve_i386_get_xstate_size(server_, &header_, request_, reply_).await
        }
        _ => Err(Status::BAD_ID),
    };
    message::answer(&FORMAT, &header_, reply_, result)
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_i386_set_ldt<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, None)
        .ok_or(Status::BAD_ARGUMENTS)?;
    let target_thread = header_.local;
    let read_ = move || {
        let first_selector = reader_
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
                    name: Some(2),
                    bits: 32,
                    number: Number::UpTo(512),
                    inline: None,
                    long: true,
                },
            )?;
        if descriptor_.number % 2 != 0 {
            return None;
        }
        let desc_list = if descriptor_.flags & message::INLINE != 0 {
            Data::Inline(reader_.array::<u32, 512>(descriptor_.number.checked_mul(1)?)?)
        } else {
            Data::Memory(reader_.pointer(descriptor_, 2)?)
        };
        reader_.finish()?;
        Some((first_selector, desc_list))
    };
    let (first_selector, desc_list) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.i386_set_ldt(target_thread, first_selector, desc_list).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_i386_get_ldt<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let target_thread = header_.local;
    let read_ = move || {
        let first_selector = reader_
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
        let selector_count = reader_
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
        Some((first_selector, selector_count))
    };
    let (first_selector, selector_count) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let desc_list = server_
        .i386_get_ldt(target_thread, first_selector, selector_count)
        .await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    match desc_list {
        Data::Inline(elements_) => {
            writer_
                .describe(
                    &Descriptor {
                        name: 2,
                        bits: 32,
                        number: elements_.len() as u32,
                        flags: 3,
                    },
                );
            writer_.data(&elements_);
        }
        Data::Memory(memory_) => {
            writer_
                .describe(
                    &Descriptor {
                        name: 2,
                        bits: 32,
                        number: memory_.count * 2,
                        flags: 2,
                    },
                );
            writer_.pointer(memory_.address);
        }
    }
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_i386_io_perm_create<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let master_port = header_.local;
    let read_ = move || {
        let from = reader_
            .value(
                &Expected {
                    name: Some(1),
                    bits: 16,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                2,
            )? as u16;
        let to = reader_
            .value(
                &Expected {
                    name: Some(1),
                    bits: 16,
                    number: Number::Exactly(1),
                    inline: Some(true),
                    long: false,
                },
                2,
            )? as u16;
        reader_.finish()?;
        Some((from, to))
    };
    let (from, to) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let io_perm = server_.i386_io_perm_create(master_port, from, to).await?;
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
            io_perm,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_i386_io_perm_modify<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(true))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let target_task = header_.local;
    let read_ = move || {
        let io_perm = reader_
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
        let enable = reader_
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
        Some((io_perm, enable))
    };
    let (io_perm, enable) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    server_.i386_io_perm_modify(target_task, io_perm, enable).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_i386_set_gdt<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let target_thread = header_.local;
    let read_ = move || {
        let selector = reader_
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
        reader_
            .expect(
                &Expected {
                    name: Some(2),
                    bits: 32,
                    number: Number::Exactly(2),
                    inline: Some(true),
                    long: false,
                },
            )?;
        let desc = reader_.elements::<u32, 2>()?;
        reader_.finish()?;
        Some((selector, desc))
    };
    let (selector, desc) = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let selector = server_.i386_set_gdt(target_thread, selector, desc).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .value(
            &Descriptor {
                name: 2,
                bits: 32,
                number: 1,
                flags: 1,
            },
            u64::from(selector),
            4,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_i386_get_gdt<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let target_thread = header_.local;
    let read_ = move || {
        let selector = reader_
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
        Some(selector)
    };
    let selector = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let desc = server_.i386_get_gdt(target_thread, selector).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .describe(
            &Descriptor {
                name: 2,
                bits: 32,
                number: 2,
                flags: 1,
            },
        );
    writer_.data(&desc);
    Ok(Some(writer_.finish(&header_.of_reply())))
}
#[allow(unused_variables, reason = "not every routine needs the trailer or has a reply")]
async fn serve_i386_get_xstate_size<S: Server + Send>(
    server_: &mut S,
    header_: &Header,
    request_: &[u8],
    reply_: &mut [u8; REPLY_BYTES],
) -> Result<Option<usize>, Status> {
    #[allow(unused_mut, reason = "there may be no arguments")]
    let mut reader_ = Reader::new(&FORMAT, header_, request_, Some(false))
        .ok_or(Status::BAD_ARGUMENTS)?;
    let host = header_.local;
    let read_ = move || {
        reader_.finish()?;
        Some(())
    };
    let () = read_().ok_or(Status::BAD_ARGUMENTS)?;
    let size = server_.i386_get_xstate_size(host).await?;
    let mut writer_ = Writer::new(&FORMAT, reply_);
    writer_.integer(0);
    writer_
        .value(
            &Descriptor {
                name: 11,
                bits: 64,
                number: 1,
                flags: 1,
            },
            size,
            8,
        );
    Ok(Some(writer_.finish(&header_.of_reply())))
}
